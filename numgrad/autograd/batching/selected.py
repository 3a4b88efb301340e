"""Elements that a mask selects whose numbers come later, or differ by example.

Note [Selected elements]
------------------------
``x[mask]`` has a shape that only the numbers of the mask tell. In a function that is compiled, and
for an example of a batch, there are none: there a ``Selected`` stands for these elements. It has
the whole array, of which elementwise operations are computed everywhere, and sums and their like
look at those alone that are selected; averages and extremes of none are NaN. What stands elsewhere
has no part in derivatives: operands have gradients where they are selected, so that a NaN elsewhere
stays there. What needs the number of elements, or their places, is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any, NoReturn

import numpy as np

from numgrad.autograd.batching.examples import beneath
from numgrad.autograd.variable import Tensor
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import state
from numgrad.core.op import OPS, Op
from numgrad.core.primitive import Composite
from numgrad.errors import NumgradIndexError
from numgrad.operations.reduce import deviation
from numgrad.operations.shape import as_operand

_REMEDY = (
    "that is known only with its numbers; elementwise operations with numbers, or with what the "
    "same mask selects, sum, prod, mean, var, std, any, all, count_nonzero, logsumexp, and max and "
    "min of floats need not, nor does x[mask] = ...; use np.where(mask, x, 0) for others"
)
_NOTHING = {
    "sum": 0, "prod": 1, "any": False, "all": True, "count_nonzero": 0, "logsumexp": -np.inf,
    "max": -np.inf, "min": np.inf,
}  # fmt: skip
"""Values that change no result of a reduction."""
_KEPT = ("astype", "copy", "positive", "detach", "conjugate")


class Selected(Tensor):
    """The elements of ``x`` at which ``mask`` is true, along one axis: Note [Selected elements]."""

    __slots__ = ("flags", "whole")
    _applies = True

    def __init__(self, whole: Any, flags: Any) -> None:
        self.whole, self.flags = whole, flags
        self._requires_grad = False
        self._memory = self._grad_fn = self._grad = self._extra = None
        self._slot = 0

    @property
    def _array(self) -> Any:  # pyright: ignore
        return _Unknown(self.dtype, self.ndim)

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype of the elements."""
        return self.whole.dtype

    @property
    def ndim(self) -> int:
        """Number of axes; the first counts the elements."""
        return self.whole.ndim - self.flags.ndim + 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Raises: nobody knows how many there are."""
        refuse("shape")

    @property
    def size(self) -> int:
        """Raises: nobody knows how many there are."""
        refuse("size")

    @property
    def requires_grad(self) -> bool:
        """Whether operations on them are recorded."""
        return self.whole.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:  # pyright: ignore
        refuse("requires_grad = ...")

    def detach(self) -> Tensor:
        """The same without what recorded them."""
        return Selected(self.whole.detach(), self.flags)

    def clone(self) -> Tensor:
        """The same: nothing writes to them."""
        return self

    def __repr__(self) -> str:
        return f"<elements of {self.whole!r} that a mask selects>"

    def placed(self, x: Any, mask: Any) -> Any:
        """``x`` with these elements in place of those at a mask, by which they were selected."""
        if tuple(x.shape) != tuple(self.whole.shape) or not _same(OPS["copy"](mask), self.flags):
            refuse("setitem with another mask")
        return OPS["where"](_beside(self.flags, x.ndim), self.whole, x)

    def apply(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        """Apply an operation to these and other operands."""
        product = op.name in ("matmul", "dot", "vecdot") and not params and len(args) == 2
        if product and all(isinstance(a, Selected) and a.ndim == 1 for a in args):
            return OPS["sum"](OPS["multiply"](*args))
        if isinstance(op, Composite):
            return op.expanded(args, params)
        if op.name in _REDUCTIONS and len(args) == 1:
            return self._reduced(op.name, **params)
        if isinstance(op, Elementwise) or op.name in _KEPT:
            out = op(*(self._whole(op, a) for a in args), **params)
            if isinstance(out, tuple):
                return tuple([Selected(part, self.flags) for part in out])
            return Selected(out, self.flags)
        refuse(op.name)

    def _whole(self, op: Op, a: Any) -> Any:
        if isinstance(a, Selected):
            if a is not self and not (a.flags is self.flags or _same(a.flags, self.flags)):
                refuse(f"{op.name} of what different masks select")
            return a.whole
        a = as_operand(a)
        if np.ndim(a) >= self.ndim:
            refuse(f"{op.name} with an operand of shape {tuple(a.shape)}")
        return followed_where(self.flags, a, self.whole)

    def _reduced(self, name: str, axis: Any = None, **params: Any) -> Any:
        lead = self.flags.ndim
        if params.pop("keepdims", False) or params.get("where") is not None:
            refuse(f"{name} with keepdims or where")
        if axis is not None and type(axis) is not int:
            refuse(f"{name} along {axis}")
        if axis is not None and axis % self.ndim:
            position = axis % self.ndim - 1 + lead
            whole = OPS[name](self.whole, axis=position, **params)
            return Selected(whole, self.flags)
        axes = None if axis is None else tuple(range(lead))
        if name in ("mean", "var", "std"):
            return self._averaged(name, axes, **params)
        flags = _beside(self.flags, self.whole.ndim)
        extreme = name in ("max", "min")
        if extreme and self.dtype.kind != "f":
            refuse(f"{name} of dtype {self.dtype}, which has no value for nothing,")
        elements = OPS["where"](flags, self.whole, np.asarray(_NOTHING[name], self.dtype)[()])
        result = OPS[name](elements, axis=axes, **params)
        if extreme:
            result = OPS["where"](OPS["any"](self.flags), result, self.dtype.type(np.nan))
        return result

    def _averaged(self, name: str, axes: Any, dtype: Any = None, **params: Any) -> Any:
        ddof = params.pop("ddof", params.pop("correction", 0))
        if any(x is not None for x in params.values()) or dtype is not None:
            refuse(f"{name} with {sorted(params) or 'dtype'}")
        whole = self.whole if self.dtype.kind in "fc" else OPS["astype"](self.whole, np.float64)
        flags = _beside(self.flags, whole.ndim)
        each = 1 if axes is not None else prod(whole.shape[self.flags.ndim :])
        real = np.empty((), whole.dtype).real.dtype
        count = OPS["astype"](OPS["sum"](self.flags) * each, real)

        def elements(x: Any) -> Any:
            return OPS["where"](flags, x, np.zeros((), x.dtype)[()])

        mean = OPS["sum"](elements(whole), axis=axes) / count
        if name == "mean":
            return mean
        off = elements(
            whole - mean
        )  # before the square, whose derivative at a NaN elsewhere is NaN
        squares = off * off if whole.dtype.kind != "c" else off.real**2 + off.imag**2
        variance = OPS["sum"](squares, axis=axes) / OPS["maximum"](count - ddof, 0)
        return deviation(variance) if name == "std" else variance


_REDUCTIONS = (*_NOTHING, "mean", "var", "std")


class _Unknown:
    """Number of axes and dtype, in place of an array of which nobody knows the shape."""

    __slots__ = ("dtype", "ndim")

    def __init__(self, dtype: np.dtype, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim

    def refuse(self, what: str, remedy: str = "") -> NoReturn:
        """Raise: ``what`` needs the elements."""
        refuse(what)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__array"):
            refuse("conversion to an array")
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(name)


def selected(x: Any, mask: Any) -> Selected:
    """The elements of ``x`` at a mask along its first axes.

    Raises
    ------
    NumgradIndexError
        If the mask has not the lengths of these.
    """
    if not mask.ndim or tuple(mask.shape) != tuple(x.shape[: mask.ndim]):
        raise NumgradIndexError(
            f"getitem: a mask of shape {tuple(mask.shape)} meets axes of lengths "
            f"{tuple(x.shape[: mask.ndim])} of shape {tuple(x.shape)}; they must be equal"
        )
    flags = OPS["copy"](mask)
    return Selected(followed_where(flags, x, x), flags)


def _same(a: Any, b: Any) -> bool:
    """Whether two masks are known to be the same."""
    a, b = beneath(a), beneath(b)
    return tuple(a.shape) == tuple(b.shape) and state.ground.equal(a, b)


def followed_where(flags: Any, a: Any, like: Any) -> Any:
    """``a`` beside an array, with derivatives where flags are set."""
    if not isinstance(a, Tensor) or a.dtype.kind not in "fc":
        return a
    return OPS["where"](_beside(flags, like.ndim), a, a.detach())


def _beside(flags: Any, ndim: int) -> Any:
    """Flags of the first axes beside an array with more."""
    return OPS["reshape"](flags, (*flags.shape, *(1,) * (ndim - flags.ndim)))


def refuse(what: str) -> NoReturn:
    """Raise since nobody knows how many elements a mask selects."""
    message = (
        f"indexing with a mask: {what} needs to know how many elements it selects, and {_REMEDY}"
    )
    if state.ground.deferred:
        state.ground.once(message)
    raise NumgradIndexError(message)


def _refusal(what: str) -> Callable[..., NoReturn]:
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(what)

    return method


def _augmented(name: str) -> Callable[[Any, Any], Any]:
    """``+=`` makes another one, which ``x[mask] += y`` writes back."""
    plain = getattr(operator, f"__{name}__")
    return lambda self, other: plain(self, other)


for _name in ("add", "and", "floordiv", "mod", "mul", "or", "pow", "sub", "truediv", "xor"):
    setattr(Selected, f"__i{_name}__", _augmented(_name))
for _name, _what in {
    "__array__": "conversion to an ndarray", "__bool__": "bool() or if", "__float__": "float()",
    "__complex__": "complex()", "__int__": "int()", "__index__": "use as an index",
    "__iter__": "iteration", "__len__": "len()", "__getitem__": "an index",
    "__setitem__": "a write", "__contains__": "in", "item": "item()", "numpy": "numpy()",
    "tolist": "tolist()", "backward": "backward()", "__reduce__": "pickling",
}.items():  # fmt: skip
    setattr(Selected, _name, _refusal(_what))
