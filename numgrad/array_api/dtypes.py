"""Dtypes and what the namespace can do, as the Array API standard asks for it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import numgrad as ng
from numgrad.array_api.creation import CPU, check_device
from numgrad.core.op import OPS

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
