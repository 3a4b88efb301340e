"""Functions and dtypes of the Array API standard that differ from those of ``ng``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_operand

CPU = "cpu"


def check_device(name: str, device: Any) -> None:
    """Raise unless a device is None or the one there is."""
    if device not in (None, CPU):
        raise NumgradValueError(f"{name}: device {device!r} is not available; it is 'cpu' or None")


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> ng.Tensor:
    """``obj`` as a Tensor, through which gradients flow; with ``copy=True`` always a copy.

    Examples
    --------
    >>> from numgrad import array_api as xp
    >>> xp.asarray([1, 2], dtype=xp.float32)
    tensor([1., 2.], dtype=float32)
    """
    check_device("asarray", device)
    if isinstance(obj, ng.Tensor):
        same = dtype is None or np.dtype(dtype) == obj.dtype
        if copy is False and not same:
            raise NumgradValueError(
                f"asarray: a Tensor of dtype {obj.dtype} becomes {np.dtype(dtype)} by a copy only; "
                "give copy=None"
            )
        out = obj if same else OPS["astype"](obj, dtype=dtype)
        return OPS["copy"](out) if copy and same else out
    if copy is False and not hasattr(obj, "__array__") and not hasattr(obj, "__buffer__"):
        raise NumgradValueError(f"asarray: a {type(obj).__name__} becomes an array by a copy only")
    if copy is not None and isinstance(obj, np.ndarray):
        obj = np.array(obj, dtype=dtype, copy=copy)
    return ng.asarray(obj, dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ng.Tensor:
    """A Tensor over the memory of another library's array, without a gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from numgrad import array_api as xp
    >>> xp.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    check_device("from_dlpack", device)
    try:
        array = np.from_dlpack(x, copy=copy)
    except AttributeError:
        raise NumgradTypeError(
            f"from_dlpack: a {type(x).__name__} has no __dlpack__; use asarray"
        ) from None
    except BufferError as error:
        raise NumgradValueError(f"from_dlpack: {error}") from error
    return ng.from_numpy(array)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> ng.Tensor:
    """Evenly spaced numbers from ``start`` up to, not including, ``stop``."""
    check_device("arange", device)
    return ng.arange(start, stop, step, dtype=dtype)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> ng.Tensor:
    """``num`` evenly spaced numbers from ``start`` to ``stop``."""
    check_device("linspace", device)
    return ng.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> ng.Tensor:
    """A matrix with ones on the diagonal ``k`` and zeros elsewhere."""
    check_device("eye", device)
    return ng.eye(n_rows, n_cols, k, dtype)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """A Tensor whose elements are whatever the memory held."""
    check_device("empty", device)
    return ng.empty(shape, dtype)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """A Tensor of zeros."""
    check_device("zeros", device)
    return ng.zeros(shape, dtype)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """A Tensor of ones."""
    check_device("ones", device)
    return ng.ones(shape, dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """A Tensor with ``fill_value`` everywhere."""
    check_device("full", device)
    return ng.full(shape, fill_value, dtype)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """Uninitialised memory with the shape and dtype of ``x``."""
    check_device("empty_like", device)
    return ng.empty_like(x, dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """Zeros with the shape and dtype of ``x``."""
    check_device("zeros_like", device)
    return ng.zeros_like(x, dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """Ones with the shape and dtype of ``x``."""
    check_device("ones_like", device)
    return ng.ones_like(x, dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> ng.Tensor:
    """``fill_value`` everywhere, with the shape and dtype of ``x``."""
    check_device("full_like", device)
    return ng.full_like(x, fill_value, dtype)


_DTYPES = {
    name: np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64", "complex64", "complex128",
    )
}  # fmt: skip


def _dtype(x: Any) -> Any:
    return x.dtype if isinstance(x, ng.Tensor | np.ndarray) else x


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> ng.Tensor:
    """The elements converted to ``dtype``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.array_api.astype(ng.tensor([1.5]), ng.int64)
    tensor([1])
    """
    check_device("astype", device)
    return OPS["astype"](x, dtype=dtype, copy=copy)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a dtype, or that of an array, goes into another without loss."""
    return bool(np.can_cast(_dtype(from_), to))


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype that dtypes, arrays and Python numbers promote to."""
    return np.result_type(*map(_dtype, arrays_and_dtypes))


class FloatLimits(NamedTuple):
    """Result of ``finfo``: Python numbers, and the real dtype they are of."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


def finfo(type: Any, /) -> FloatLimits:
    """Limits of a floating dtype, or of that of an array.

    Examples
    --------
    >>> from numgrad import array_api as xp
    >>> xp.finfo(xp.complex64).bits
    32
    """
    info = np.finfo(_dtype(type))
    eps, most, least = float(info.eps), float(info.max), float(info.min)
    return FloatLimits(info.bits, eps, most, least, float(info.smallest_normal), info.dtype)


def iinfo(type: Any, /) -> Any:
    """Limits of an integer dtype, or of that of an array."""
    return np.iinfo(_dtype(type))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind, such as ``"real floating"``, or of one of several."""
    return np.isdtype(dtype, kind)


class NamespaceInfo:
    """Result of ``__array_namespace_info__``: devices, dtypes and capabilities.

    Examples
    --------
    >>> from numgrad import array_api as xp
    >>> xp.__array_namespace_info__().default_device()
    'cpu'
    """

    def capabilities(self) -> dict[str, Any]:
        """Capabilities of the namespace."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The only device."""
        return CPU

    def devices(self) -> tuple[str, ...]:
        """All devices."""
        return (CPU,)

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """Dtypes that are taken where none is given."""
        check_device("default_dtypes", device)
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """Dtypes by name, all or those of a kind."""
        check_device("dtypes", device)
        return {
            name: dtype
            for name, dtype in _DTYPES.items()
            if kind is None or np.isdtype(dtype, kind)
        }


def __array_namespace_info__() -> NamespaceInfo:
    """Devices, dtypes and capabilities of the namespace."""
    return NamespaceInfo()


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise NumgradValueError(f"broadcast_shapes: {error}") from None


def concat(arrays: Any, /, *, axis: int | None = 0) -> ng.Tensor:
    """Arrays one after another along an axis."""
    return OPS["concat"](list(arrays), axis=axis)


def stack(arrays: Any, /, *, axis: int = 0) -> ng.Tensor:
    """Arrays of one shape along a new axis."""
    return OPS["stack"](list(arrays), axis=axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[ng.Tensor, ...]:
    """The parts along an axis, without it."""
    return OPS["unstack"](x, axis=axis)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[ng.Tensor, ...]:
    """Coordinate arrays of the grid that vectors span."""
    return OPS["meshgrid"](*arrays, indexing=indexing)


def expm1(x: Any, /) -> ng.Tensor:
    """``exp(x) - 1``, where a complex -0 has the real part +0, as the standard writes it."""
    result = OPS["expm1"](x)
    return result + complex(0.0, -0.0) if result.dtype.kind == "c" else result


def expand_dims(x: Any, /, axis: Any = 0) -> ng.Tensor:
    """New axes of length 1 at positions of the result."""
    return OPS["expand_dims"](x, axis=axis)


def squeeze(x: Any, /, axis: Any) -> ng.Tensor:
    """Without the given axes, which must have length 1."""
    return OPS["squeeze"](x, axis=axis)


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> ng.Tensor:
    """The same elements in another shape; a view where that is possible unless ``copy``."""
    return np.reshape(ng.asarray(x), shape, copy=copy)  # pyright: ignore


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> ng.Tensor:
    """Each element repeated along an axis."""
    return OPS["repeat"](x, repeats, axis=axis)


def tile(x: Any, repetitions: tuple[int, ...], /) -> ng.Tensor:
    """The operand repeated along each axis."""
    return OPS["tile"](x, repetitions)


def diff(
    x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> ng.Tensor:
    """Differences of neighbours along an axis."""
    return OPS["diff"](x, n, axis, prepend, append)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> ng.Tensor:
    """The elements in order along an axis."""
    return ng.sort(x, axis=axis, descending=descending, stable=stable)  # pyright: ignore


def argsort(
    x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> ng.Tensor:
    """The indices that sort along an axis."""
    return ng.argsort(x, axis=axis, descending=descending, stable=stable)  # pyright: ignore


def nonzero(x: Any, /) -> tuple[ng.Tensor, ...]:
    """The indices of elements that are not zero, an array for each axis."""
    if not as_operand(x).shape:
        raise NumgradIndexError("nonzero: a 0-d array has no indices")
    return ng.nonzero(x)  # pyright: ignore


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> ng.Tensor:
    """Where elements belong into a sorted vector."""
    return ng.searchsorted(x1, x2, side, sorter)  # pyright: ignore


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> ng.Tensor:
    """Whether each element is one of others."""
    return ng.isin(x1, x2, invert=invert)  # pyright: ignore


def std(
    x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> ng.Tensor:
    """Standard deviation, of a sum divided by the number of elements less ``correction``."""
    return OPS["std"](_floating("std", x), axis=axis, ddof=correction, keepdims=keepdims)


def var(
    x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> ng.Tensor:
    """Variance, a sum divided by the number of elements less ``correction``."""
    return OPS["var"](_floating("var", x), axis=axis, ddof=correction, keepdims=keepdims)


def _floating(name: str, x: Any) -> Any:
    x = as_operand(x)
    if x.dtype.kind == "b":
        raise NumgradTypeError(f"{name}: booleans have no spread; convert them with astype")
    return x
