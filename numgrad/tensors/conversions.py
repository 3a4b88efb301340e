"""Binary operators of a Tensor; its conversions to numbers, arrays, text and copies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib import import_module
from operator import index as as_index
from typing import Any

import numpy as np

from numgrad.autograd.forward_ad import has_tangent, share_tangents
from numgrad.autograd.row_sparse_tensor import as_tensor
from numgrad.autograd.variable import NO_GRAD_VIEW, Parameter, Tensor, root
from numgrad.autograd.versions import shared_version
from numgrad.core.abstract import BRANCH, COUNT, NDARRAY, PRINT, AbstractArray, AbstractLength
from numgrad.core.foreign import (
    NO_ARRAY,
    asked_by_constructor,
    asked_by_product,
    is_sparse_kind,
    labelled_kind,
    multiplies_by_star,
)
from numgrad.core.interpreter import state
from numgrad.core.op import OPS, Op
from numgrad.errors import (
    NumgradIndexError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
    warn,
)
from numgrad.operations.lazy_operations import declared
from numgrad.tensors.hints import in_solver, library_call
from numgrad.tensors.labels import asked_by_brackets, priority_over_pandas

_made: list[tuple[Op, Any]] = []
"""Operations, and methods made of them, which hold the function behind calls."""
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


_OPERANDS = (
    Tensor, np.ndarray, int, float, complex, np.generic, list, tuple, range, AbstractLength,
)  # fmt: skip
_FOREIGN = {
    **dict.fromkeys(
        ("torch", "jax", "jaxlib", "tensorflow"),
        "gradients do not pass to a Tensor nor back; convert it with ng.tensor",
    ),
    "dask": "elements are computed later, without gradients; give its .compute()",
}
"""Libraries whose arrays are no operands beside Tensors, and why."""


def operator(op: Op) -> Callable[..., Any]:
    """``a <op> b``, which leaves the right operand its say if it is no number or array."""
    enter, is_product, compares = op.entry, op.dunder == "matmul", op.dunder in COMPARISONS
    is_star = op.dunder == "mul"

    def method(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if compares and (self._requires_grad or self._extra is not None) and in_solver():
            self._refuse_conversion()  # pyright: ignore[reportAttributeAccessIssue]
        if kind is Tensor or kind is float or kind is int:
            return enter(self, other)
        if acceptable(other):
            if is_star and (kind is list or kind is tuple):
                _refuse_repetition(self)
            return enter(self, other)
        if is_product and is_sparse_kind(kind):
            return enter(self, other)
        refuse_foreign(op, other)
        return NotImplemented

    _made.append((op, method))
    return method


def reflected(op: Op) -> Callable[..., Any]:
    """``b <op> a`` for a Tensor ``a`` on the right."""
    enter, is_product, is_star = op.entry, op.dunder == "matmul", op.dunder == "mul"

    def method(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if kind is float or kind is int:
            return enter(other, self)
        if acceptable(other):
            if is_star and (kind is list or kind is tuple):
                _refuse_repetition(self)
            return enter(other, self)
        if (is_product and is_sparse_kind(type(other))) or (is_star and multiplies_by_star(other)):
            return OPS["matmul"](other, self)
        refuse_foreign(op, other)
        return NotImplemented

    _made.append((op, method))
    return method


def _refuse_repetition(x: Tensor) -> None:
    """Raise if a Tensor stands for a Python integer, by which a list is repeated."""
    array = x._array
    if isinstance(array, AbstractArray) and array.immutable and array.dtype.kind in "iu":
        array.refuse("a list times a number", COUNT)


def enter_again() -> None:
    """Let the operators call the functions that are behind operations now."""
    for op, method in _made:
        cells = dict(zip(method.__code__.co_freevars, method.__closure__, strict=True))
        cells["enter"].cell_contents = op.entry


def acceptable(value: Any) -> bool:
    """Whether a Tensor's operator computes with ``value`` as its other operand."""
    if isinstance(value, _OPERANDS):
        return True
    kind = labelled_kind(type(value))
    # Note [Labels] in ``labels``
    return kind is not None and not kind.startswith("xarray.") and hasattr(value, "__array__")


def refuse_foreign(op: Op, value: Any) -> None:
    """Name the library of an array whose gradients would be lost, rather than two kinds.

    And text and bytes, which Python would repeat.
    """
    if op.dunder == "mul" and isinstance(value, str | bytes | bytearray):
        raise NumgradTypeError(
            f"{op.name}: operands are arrays and numbers, got {type(value).__name__} {value!r:.40}"
        )
    if op.dunder == "matmul" and (labelled_kind(type(value)) or "").startswith("xarray."):
        raise NumgradTypeError(
            "matmul: xarray multiplies by the names of dimensions, which a Tensor has not; label "
            "the Tensor with xarray.DataArray(t, dims=...) and use xarray.dot, or give the .data "
            "of the other operand"
        )
    if is_sparse_kind(type(value)) and op.dunder not in ("matmul", "mul", "truediv"):
        raise NumgradTypeError(
            f"{op.name}: a {type(value).__name__} of scipy.sparse is an operand of @ only, as in "
            "A @ t; give its .toarray()"
        )
    library = type(value).__module__.partition(".")[0]
    if library in _FOREIGN and hasattr(value, "__array__"):
        raise NumgradTypeError(
            f"{op.name}: an operand is an array of {library}, whose {_FOREIGN[library]}"
        )


_KEEPS_ARRAY = (
    "np.stack or ng.asarray makes a Tensor of several, ng.r_ joins them as np.r_ does, ng.zeros "
    "makes one to write into, operations take Tensors as they are, and .detach()"
)
_KEEPS_NUMBER = (
    "np.sqrt and its like take Tensors where math.sqrt does not, ng.zeros makes a Tensor to write "
    "into where np.zeros does not, and .item() or .detach()"
)


SHOWN = 10
"""The most rows or columns of a table in a notebook."""


def _shown_indices(count: int) -> list[int | None]:
    """Indices along an axis, None for those that are left out."""
    half = SHOWN // 2
    return [*range(count)] if count <= SHOWN else [*range(half), None, *range(count - half, count)]


def _shown_index(index: int | None) -> str:
    return "..." if index is None else str(index)


def _shown_number(array: np.ndarray, i: int | None, j: int | None) -> str:
    if i is None or j is None:
        return "..."
    return f"{array[i, j]:.6g}" if array.dtype.kind in "fc" else str(array[i, j])


class TensorConversions(Tensor):
    """Members of ``Tensor``; there are no objects of this class: Note [Members of Tensor]."""

    __slots__ = ()
    __array_priority__ = 1000.0
    __pandas_priority__ = property(priority_over_pandas)  # pyright: ignore
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The ndarray itself, sharing memory; with ``force`` also where a gradient is lost.

        Raises
        ------
        NumgradRuntimeError
            If the tensor requires grad: an ndarray cannot carry that.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.tensor([1.0, 2.0]).numpy()
        array([1., 2.])
        """
        if not force:
            _refuse_loss(self, "numpy", "an ndarray", _KEEPS_ARRAY)
        if isinstance(self._array, AbstractArray):
            self._array.refuse("numpy()", NDARRAY)
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if asked_by_product():
            return NO_ARRAY
        if _carried(self) or isinstance(self._array, AbstractArray):
            if asked_by_constructor(self):
                return np.full(self.shape, _Refusal(self), object)
            self._refuse_conversion()
        if self._array.dtype.kind == "b" and asked_by_brackets():
            raise NumgradTypeError(
                "pandas takes a Tensor in brackets for labels or places: choose by a mask with its "
                ".numpy(), as in series[mask.numpy()]"
            )
        return np.array(self._array, dtype=dtype, copy=copy)

    def _refuse_conversion(self) -> None:
        """Raise if an ndarray would lose something, by the name of the function that asks."""
        what, instead = library_call() or ("conversion to an ndarray", None)
        keeps = _KEEPS_ARRAY if instead is None else _and_detach(instead)
        _refuse_loss(self, what, "an ndarray", keeps)
        if isinstance(self._array, AbstractArray):
            self._array.refuse(what, instead or NDARRAY)

    @property
    def _numba_type_(self) -> Any:
        """Raise: Numba asks for it to type an argument of a function that it compiles.

        Its code in C asks first whether it is there, and would swallow what is raised.
        """
        if not str(sys._getframe(1).f_globals.get("__name__")).startswith("numba."):
            raise AttributeError("_numba_type_")
        raise NumgradTypeError(
            "numba: a function that Numba compiles takes arrays, and a Tensor's gradients end "
            "there; call it with .numpy() (after .detach()), or make it an operation with "
            "derivatives by ng.primitive or ng.elementwise(kernel=...)"
        )

    @property
    def device(self) -> str:
        """Where the numbers are: on the CPU."""
        return "cpu"

    def to_device(self, device: Any, *, stream: Any = None) -> Tensor:
        """The tensor itself: there is one device.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.tensor([1.0]).to_device("cpu")
        tensor([1.])
        """
        if device != "cpu":
            raise NumgradValueError(f"to_device: device {device!r} is not available; it is 'cpu'")
        if stream is not None:
            raise NumgradValueError("to_device: a CPU has no streams; leave stream out")
        return self

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
            raise NumgradValueError(
                f"__array_namespace__: version {api_version!r} of the standard is not available; "
                "the newest is 2025.12"
            )
        return import_module("numgrad.array_api")

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        _refuse_loss(self, "__dlpack__", "another library's array", _KEEPS_ARRAY)
        if isinstance(self._array, AbstractArray):
            self._array.refuse("__dlpack__()", NDARRAY)
        return self._array.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU

    def item(self, *args: Any) -> Any:
        """The one element as a Python number, or that at an index, without its gradient.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.tensor([1.5]).item()
        1.5
        """
        if args:
            try:
                return self._array.item(*args)
            except (IndexError, ValueError) as error:
                raise NumgradIndexError(f"item: {error}") from None
        if self._array.size != 1:
            raise NumgradValueError(
                f"item: the tensor has shape {self._array.shape}; only one element makes a number"
            )
        return self._array.item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers, without their gradients.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return self._array.tolist()

    def __float__(self) -> float:
        return _scalar(self, float)

    def __int__(self) -> int:
        return _scalar(self, int)

    def __complex__(self) -> complex:
        return _scalar(self, complex)

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise NumgradValueError(
                f"bool(): a tensor of shape {self._array.shape} is neither true nor false as a "
                "whole; use any() or all()"
            )
        if isinstance(self._array, AbstractArray):
            return bool(self._array)
        return bool(self._array.item())

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iu" or self._array.size != 1:
            raise NumgradTypeError("only an integer tensor of one element can be an index")
        if isinstance(self._array, AbstractArray):
            self._array.refuse("range(), a length or an index", COUNT)
        return int(self._array.item())

    def __len__(self) -> int:
        if not self._array.ndim:
            raise NumgradTypeError("len(): a 0-d tensor has no length")
        return self._array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise NumgradTypeError("a 0-d tensor cannot be iterated over")
        return (self[k] for k in range(self._array.shape[0]))

    def __contains__(self, value: Any) -> bool:
        if isinstance(self._array, AbstractArray):
            self._array.refuse("the operator in", BRANCH)
        other = value._array if isinstance(value, Tensor) else value
        try:
            return bool((self._array == other).any())
        except (ValueError, OverflowError) as error:
            raise NumgradValueError(
                f"in: a {type(value).__name__} cannot be compared with a tensor of shape "
                f"{self._array.shape}: {error}"
            ) from None

    def __repr__(self) -> str:
        array = self._array
        if isinstance(array, AbstractArray):
            return f"tensor({array!r})"
        text = np.array2string(array, separator=", ", prefix="tensor(")
        parts = [text]
        if array.size == 0:
            parts.append(f"shape={array.shape}")
        if array.dtype not in (np.float64, np.int64, np.bool_) or array.size == 0:
            parts.append(f"dtype={array.dtype}")
        text = f"tensor({', '.join(parts + self._history())})"
        return f"Parameter containing:\n{text}" if isinstance(self, Parameter) else text

    def _history(self) -> list[str]:
        """How a gradient gets to it, as ``repr`` says it."""
        node = self.grad_fn
        if node is not None:
            return [f"grad_fn=<{node.name()}>"]
        if is_invalid(self):
            return ["grad_fn=<Invalid>"]
        return ["requires_grad=True"] if self._requires_grad else []

    def _repr_html_(self) -> str:
        """Vectors and matrices as tables, for Jupyter; the middle of large ones is left out."""
        from numgrad.markup import preformatted, table  # a millisecond, for notebooks alone

        array = self._array
        if isinstance(array, AbstractArray) or array.ndim not in (1, 2) or not array.size:
            return preformatted(repr(self))
        kind = "Parameter" if isinstance(self, Parameter) else "tensor"
        caption = ", ".join([f"{kind} {list(array.shape)}, {array.dtype}", *self._history()])
        rows, columns = (_shown_indices(n) for n in np.atleast_2d(array).shape)
        texts = [[_shown_number(np.atleast_2d(array), i, j) for j in columns] for i in rows]
        names = [_shown_index(i) for i in rows] if array.ndim == 2 else [""]
        lines = ([name, *line] for name, line in zip(names, texts, strict=True))
        return table(lines, ["", *map(_shown_index, columns)], caption)

    def __str__(self) -> str:
        if isinstance(self._array, AbstractArray) and state.ground.inner:
            self._array.refuse("print() or str()", PRINT)
        return repr(self)

    def __format__(self, spec: str) -> str:
        if isinstance(self._array, AbstractArray) or not spec:
            return str(self)
        if self._array.size != 1:
            raise NumgradTypeError(
                f"format {spec!r}: the tensor has shape {self._array.shape}, and a format is for "
                "one number; format its elements one by one, or use "
                "np.array2string(t.detach().numpy())"
            )
        try:
            return format(self._array.item(), spec)
        except ValueError as error:
            raise NumgradValueError(
                f"format {spec!r} of dtype {self._array.dtype}: {error}"
            ) from None

    # --------------------------------------------------------------------------------- numbers

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            raise NumgradTypeError(
                "pow: of Tensors there is no power modulo a number; write "
                "np.remainder(t**n, modulus)"
            )
        # exponents with an exact and faster operation of their own
        if type(other) is int and other == 2:
            return OPS["square"](self)
        if type(other) in (int, float):
            kind = self._array.dtype.kind
            if kind in "fc" and other == 2:
                return OPS["square"](self)
            if other == 1 and (kind in "fc" or (kind in "iu" and type(other) is int)):
                return OPS["positive"](self)
            if kind == "f" and other == 0.5:
                return OPS["sqrt"](self)
            if kind == "f" and other == -1:
                return OPS["reciprocal"](self)
        elif not acceptable(other):
            refuse_foreign(OPS["power"], other)
            return NotImplemented
        return OPS["power"](self, other)

    def __divmod__(self, other: Any) -> tuple:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple:
        return other // self, other % self

    def compress(self, condition: Any, axis: Any = None) -> Any:  # pyright: ignore
        """The parts along an axis at which a condition holds: ``ng.compress``."""
        return declared("compress")(condition, self, axis)

    def choose(self, choices: Any, mode: str = "raise") -> Any:
        """Elements of several operands, which these indices choose: ``ng.choose``."""
        return declared("choose")(self, choices, mode=mode)

    def tobytes(self, order: Any = "C") -> bytes:
        """The bytes of the elements, without their gradients, as NumPy's method."""
        return self._array.tobytes(order)

    def __round__(self, ndigits: Any = None) -> Any:
        try:
            return OPS["round"](self, as_index(ndigits or 0))
        except (TypeError, OverflowError):
            raise NumgradTypeError(f"round: ndigits is an integer, got {ndigits!r}") from None

    # ---------------------------------------------------------------------------------- copies

    def __reduce__(self) -> tuple:
        if isinstance(self._array, AbstractArray):
            self._array.refuse("pickling", NDARRAY)
        hooks = None if self._extra is None else self._extra.hooks
        if hooks is not None and any(hooks.tensor.values()):
            warn(
                f"pickle: the hooks of a tensor of shape {self.shape} that change its gradient are "
                "not pickled with it; register them again where it is loaded"
            )
        return _rebuild, (self._array, self._requires_grad, type(self)), attributes_of(self)

    def __copy__(self) -> Tensor:
        twin = _rebuild(self._array, self._requires_grad, type(self))
        twin._grad_fn, twin._slot, twin._memory = self._grad_fn, self._slot, shared_version(self)
        share_tangents(self, twin)
        _give(twin, attributes_of(self))
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self._grad_fn is not None:
            raise NumgradRuntimeError(
                "deepcopy: the tensor is the result of "
                f"{self._grad_fn.name()}; only leaves can be copied, use detach() or clone()"
            )
        if state.interpreters and has_tangent(self):
            raise NumgradRuntimeError(
                "deepcopy: the tensor has a tangent (forward mode), which belongs to the level; "
                "use clone() to keep it, or detach()"
            )
        twin = _rebuild(self._array.copy(), self._requires_grad, type(self))
        memo[id(self)] = twin
        if self._grad is not None:
            twin._grad = as_tensor(self._grad._array.copy())
        _give(twin, deepcopy(attributes_of(self), memo))
        return twin


class _Refusal:
    """An element of the array that a constructor gets which would replace an error by its own."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __bool__(self) -> bool:
        self.tensor._refuse_conversion()
        return True


def attributes_of(tensor: Tensor) -> dict[str, Any] | None:
    """Attributes that a user gave a parameter, or one of a class of the user's; None without."""
    return getattr(tensor, "__dict__", None) or None


def _give(twin: Tensor, attributes: dict[str, Any] | None) -> None:
    if attributes:
        vars(twin).update(attributes)


def _carried(self: Tensor) -> str | None:
    """The gradient or tangent that numbers alone would lose, in words."""
    if self.requires_grad and state.grad_enabled:
        return "requires grad"
    return "has a tangent (forward mode)" if state.interpreters and has_tangent(self) else None


def _and_detach(instead: str) -> str:
    return f"{instead}, and .detach()" if instead else ".detach()"


def _refuse_loss(self: Tensor, what: str, carrier: str, instead: str) -> None:
    """Raise if numbers alone would lose a gradient or a tangent."""
    reason = _carried(self)
    if reason is None:
        return
    raise NumgradRuntimeError(
        f"{what}: the tensor of shape {self._array.shape} {reason}, which {carrier} cannot carry; "
        f"{instead} drops it on purpose"
    )


def _scalar(self: Tensor, kind: type) -> Any:
    if self._array.size != 1:
        raise NumgradTypeError(
            f"{kind.__name__}(): the tensor has shape {self._array.shape}; only one element makes "
            "a number, reduce it or take one"
        )
    if isinstance(self._array, AbstractArray):
        return kind(self._array)
    if _carried(self):
        what, instead = library_call() or (f"{kind.__name__}()", None)
        keeps = _KEEPS_NUMBER if instead is None else _and_detach(instead)
        _refuse_loss(self, what, f"a Python {kind.__name__}", keeps)
    return kind(self._array.item())


def is_invalid(self: Tensor) -> bool:
    """Whether this is a view from no_grad of something differentiable that was changed since."""
    owner = root(self)
    return self._slot == NO_GRAD_VIEW and owner._requires_grad and self._version > 0


def _rebuild(array: np.ndarray, requires_grad: bool, kind: type[Tensor] = Tensor) -> Tensor:
    twin = kind.__new__(kind)  # the constructors of subclasses take other arguments
    Tensor.__init__(twin, array, requires_grad)
    return twin
