"""Examples of batches as the tape knows them; elements that a mask of an example selects.

Note [Selected elements]
------------------------
``x[mask]`` has a shape that only the numbers of the mask tell. In a function that is compiled, and
for an example of a batch, there are none: there a ``Selected`` stands for these elements. It has
the whole array, of which elementwise operations are computed everywhere, and sums and their like
look at those alone that are selected; averages and extremes of none are NaN. What stands elsewhere
has no part in derivatives: operands have gradients where they are selected, so that a NaN elsewhere
stays there. What needs the number of elements, or their places, is refused.

The tape lies below all batches: what it has of an example is the whole batch. So gradients and
tangents of examples are asked for there, and come back as examples.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn, TypeGuard

import numpy as np

from numgrad.autograd.batching.batch import Batched, BatchingInterpreter
from numgrad.autograd.variable import Tensor
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import above_ground, state
from numgrad.core.op import OPS, Op
from numgrad.core.primitive import Composite
from numgrad.errors import NumgradIndexError
from numgrad.operations.reduce import deviation
from numgrad.operations.shape import as_operand


def levels() -> list[BatchingInterpreter]:
    """The levels of examples that code in this thread is in, the outermost first."""
    if not state.interpreters:
        return []
    stack = state.interpreters[above_ground() :]
    return [each for each in stack if isinstance(each, BatchingInterpreter) and each.examples]


def levels_of(x: Tensor) -> list[BatchingInterpreter]:
    """The levels here of which ``x`` is an example, the outermost first.

    In the step of a loop those around it are no matter of the step: its rule takes them.
    """
    own: list[BatchingInterpreter] = []
    here = levels() if isinstance(x, Batched) else ()
    while isinstance(x, Batched) and x.level in here:
        own.append(x.level)
        x = x.value
    return own[::-1]


def beneath(x: Tensor) -> Tensor:
    """The Tensor of all examples of ``x`` that the tape knows; axes of levels are in front."""
    here = levels() if isinstance(x, Batched) else ()
    while isinstance(x, Batched) and x.level in here:
        x = x.value
    return x


def spread(x: Tensor, over: Sequence[BatchingInterpreter]) -> Tensor:
    """``x`` as an example of each of these levels, the outermost first; repeated where it is none.

    Gradients by the result are gradients by example.
    """
    if not over or set(over) <= set(levels_of(x)):
        return x
    *outer, level = over
    with level._below():
        value = (
            x.value
            if isinstance(x, Batched) and level.owns(x)
            else BatchOperand(x, False).repeated(level.size)
        )
        return Batched(spread(value, outer), level)


def lowered(x: Tensor, below: Sequence[BatchingInterpreter]) -> Tensor:
    """``x`` with the axes of these levels, the outermost, as the tape has it."""
    if not below:
        return x
    if _is_inside(x, below):
        with x.level._below():
            value = lowered(x.value, below)
            return Batched(apply("moveaxis", value, source=len(below), destination=0), x.level)
    return beneath(spread(x, below))


def raised(x: Tensor, above: Sequence[BatchingInterpreter]) -> Tensor:
    """``x``, which has the axes of these levels in front, as an example of each of them."""
    if _is_inside(x, above):
        with x.level._below():
            value = apply("moveaxis", x.value, source=0, destination=len(above))
            return Batched(raised(value, above), x.level)
    for level in above:
        x = Batched(x, level)
    return x


def _is_inside(x: Tensor, levels: Sequence[BatchingInterpreter]) -> TypeGuard[Batched]:
    """Whether ``x`` is an example of a level entered inside of these."""
    if not isinstance(x, Batched) or not levels:
        return False
    stack = state.interpreters
    return stack.index(x.level) > stack.index(levels[-1])


def example_index(index: Any) -> Any:
    """A part of an index that is different for each example, as an array; None for any other."""
    if isinstance(index, list | tuple) and any(isinstance(p, Batched) for p in index):
        index = OPS["stack"](index)
    if not isinstance(index, Batched):
        return None
    if index.dtype.kind not in "iub":
        raise NumgradIndexError(
            f"getitem: an index of dtype {index.dtype} that differs by example; indices are "
            "integers and masks"
        )
    return index


def as_examples(made: Tensor, like: Any) -> Tensor:
    """A new array as memory of its own for each example that ``like`` stands for.

    What is made inside of a trace, such as that of a step, is one array to the levels around it.
    What is of examples already, as random numbers are, stays as it is.
    """
    if not isinstance(like, Batched) or like.level not in state.interpreters[above_ground() :]:
        return made
    if isinstance(made, Batched) and (made.level is like.level or _is_inside(made, [like.level])):
        return made
    level = like.level
    if level.owns(made):  # as random numbers are
        return made
    with level._below():
        value = apply("copy", BatchOperand(made, False).repeated(level.size))
        return Batched(as_examples(value, like.value), level)


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
                return tuple([Selected(output, self.flags) for output in out])
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
