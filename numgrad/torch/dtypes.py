"""PyTorch's types of elements, promotion by category, sizes, devices and layouts.

Note [Promotion by category]
----------------------------
PyTorch sorts dtypes into booleans, integers, floats and complex numbers. Tensors with axes decide;
Tensors without axes, and behind them Python's numbers, count only where their category is higher,
and a number's dtype is then the default one. So float32 plus a float64 without axes is float32, and
an integer Tensor plus ``0.5`` is of the default dtype. (The rules of ``torch.result_type``.)
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from operator import index
from typing import Any, Final

import numpy as np

from numgrad.core.abstract import AbstractLength
from numgrad.errors import NumgradNotImplementedError, NumgradRuntimeError, NumgradTypeError

BOOL, INTEGER, FLOAT, COMPLEX = range(4)
"""Categories of dtypes."""
_CATEGORIES = {"b": BOOL, "i": INTEGER, "u": INTEGER, "f": FLOAT, "c": COMPLEX}


class dtype:
    """A type of elements, one object each.

    Parameters
    ----------
    name
        Its name in PyTorch.
    kind, itemsize
        Kind and size as NumPy has them.
    numpy
        NumPy's dtype; None for those that nothing is computed with.
    """

    __module__ = "numgrad.torch"

    def __init__(self, name: str, kind: str, itemsize: int, numpy: Any = None) -> None:
        self._name, self.itemsize, self.kind = name, itemsize, kind
        self._numpy: Any = None if numpy is None else np.dtype(numpy)
        self.category = _CATEGORIES[kind]

    is_complex = property(lambda self: self.kind == "c", doc="Whether numbers are complex.")
    is_floating_point = property(lambda self: self.kind == "f", doc="Whether numbers are floats.")
    is_signed = property(lambda self: self.kind not in "ub", doc="Whether numbers have a sign.")

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype.

        Raises
        ------
        NumgradNotImplementedError
            If nothing is computed with this one.
        """
        if self._numpy is None:
            known = "float32, float64, complex64, complex128, integers and booleans; use float32"
            raise NumgradNotImplementedError(f"torch.{self._name}: numgrad computes with {known}")
        return self._numpy

    def to_real(self) -> dtype:
        """The dtype of the real part."""
        return (float32 if self is complex64 else float64) if self.is_complex else self

    def to_complex(self) -> dtype:
        """The complex dtype with parts of this one."""
        return complex64 if self._numpy == np.float32 else complex128

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


bool_ = dtype("bool", "b", 1, np.bool)
uint8, int8 = dtype("uint8", "u", 1, np.uint8), dtype("int8", "i", 1, np.int8)
uint16, int16 = dtype("uint16", "u", 2, np.uint16), dtype("int16", "i", 2, np.int16)
uint32, int32 = dtype("uint32", "u", 4, np.uint32), dtype("int32", "i", 4, np.int32)
uint64, int64 = dtype("uint64", "u", 8, np.uint64), dtype("int64", "i", 8, np.int64)
float32, float64 = dtype("float32", "f", 4, np.float32), dtype("float64", "f", 8, np.float64)
complex64 = dtype("complex64", "c", 8, np.complex64)
complex128 = dtype("complex128", "c", 16, np.complex128)
float16, bfloat16 = dtype("float16", "f", 2), dtype("bfloat16", "f", 2)
complex32 = dtype("complex32", "c", 4)
float8_e4m3fn, float8_e5m2 = dtype("float8_e4m3fn", "f", 1), dtype("float8_e5m2", "f", 1)
quint8, qint8, qint32 = dtype("quint8", "u", 1), dtype("qint8", "i", 1), dtype("qint32", "i", 4)

DTYPES: Final = {each._name: each for each in list(globals().values()) if type(each) is dtype}
"""By name."""
ALIASES: Final = {
    "float": float32, "double": float64, "half": float16, "short": int16, "int": int32,
    "long": int64, "cfloat": complex64, "cdouble": complex128, "chalf": complex32,
}  # fmt: skip
"""Other names of them."""
PREFIXES: Final = {
    "Float": float32, "Double": float64, "Long": int64, "Int": int32, "Short": int16, "Char": int8,
    "Byte": uint8, "Bool": bool_, "ComplexFloat": complex64, "ComplexDouble": complex128,
}  # fmt: skip
"""Prefixes of names of classes of Tensors and of storages, ``FloatTensor``, by dtype."""
OF: Final = {each._numpy: each for each in DTYPES.values() if each._numpy is not None}
"""By NumPy's dtype."""
_PYTHON = {float: float64, int: int64, bool: bool_, complex: complex128}
_default = float32


def get_default_dtype() -> dtype:
    """The dtype of floats that nothing else decides."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of floats that nothing else decides: float32 at first.

    Raises
    ------
    NumgradTypeError
        If it is none of float32 and float64.
    """
    global _default
    if d not in (float32, float64):
        raise NumgradTypeError(f"set_default_dtype: takes torch.float32 and float64, got {d}")
    _default = d


def as_numpy(d: Any) -> np.dtype[Any] | None:
    """NumPy's dtype of one of PyTorch's, of a Python type or of NumPy; None for None."""
    if type(d) is dtype:
        return d.numpy
    if d is None:
        return None
    if d in _PYTHON:
        return _PYTHON[d].numpy
    if isinstance(d, np.dtype | type):
        return np.dtype(d)
    raise NumgradTypeError(f"a dtype is one of torch's, such as torch.float32, got {d!r}")


def category_of_number(number: Any) -> np.dtype[Any]:
    """NumPy's dtype that a Python number counts as."""
    if isinstance(number, bool | np.bool):
        return bool_.numpy
    if isinstance(number, int | np.integer | AbstractLength):
        return int64.numpy
    return (_default if isinstance(number, float | np.floating) else _default.to_complex()).numpy


def promoted(a: Any, b: Any) -> Any:
    """The common dtype of two of NumPy's, either of which may be None."""
    if a is None or b is None or a == b:
        return b if a is None else a
    ours, theirs = OF[a].category, OF[b].category
    if ours != theirs and {ours, theirs} != {FLOAT, COMPLEX}:
        return a if ours > theirs else b
    return np.promote_types(a, b)


def _combined(higher: Any, lower: Any) -> Any:
    """The dtype where one kind of operands goes before another."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    ours, theirs = OF[higher].category, OF[lower].category
    if ours == FLOAT and theirs == COMPLEX:
        return OF[higher].to_complex().numpy
    return promoted(higher, lower) if theirs > ours else higher


def common_dtype(operands: Iterable[Any]) -> Any:
    """NumPy's dtype of a result of arrays and numbers: Note [Promotion by category]."""
    arrays = scalars = numbers = None
    for each in operands:
        found = getattr(each, "dtype", None)
        if found is None or not hasattr(each, "shape") or isinstance(each, np.generic):
            if each is not None:
                numbers = promoted(numbers, category_of_number(each))
        elif each.shape:
            arrays = promoted(arrays, found)
        else:
            scalars = promoted(scalars, found)
    return _combined(arrays, _combined(scalars, numbers))


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The common dtype of two.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> torch.promote_types(torch.int64, torch.float32)
    torch.float32
    """
    return OF[promoted(type1.numpy, type2.numpy)]


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether results of a dtype may be written into a Tensor of another.

    Not from a higher category to a lower one.
    """
    return from_.category <= to.category


class _Limits:
    """The limits of a dtype, read from NumPy's."""

    _read: Any = None
    _kinds, _names = "", ("min", "max")

    def __init__(self, type: dtype | None = None) -> None:
        vars(self).update(self._of(type or _default))

    @classmethod
    @cache
    def _of(cls, d: dtype) -> dict[str, Any]:
        if d.kind not in cls._kinds:
            raise NumgradTypeError(f"{d!r}: torch.finfo is of floats, torch.iinfo of integers")
        info = cls._read(d.numpy)
        values = {name: np.asarray(getattr(info, name)).item() for name in cls._names}
        return {"dtype": d.to_real()._name, "bits": int(info.bits), **values}

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name):g}" for name in self._names]
        return f"{type(self).__name__}({', '.join(shown)}, dtype={self.dtype})"


class finfo(_Limits):
    """The limits of a floating dtype, the default one if none is given."""

    _read, _kinds = np.finfo, "fc"
    _names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")


class iinfo(_Limits):
    """The limits of an integer dtype."""

    _read, _kinds = np.iinfo, "iu"


class Size(tuple[int, ...]):
    """The lengths of a Tensor's axes."""

    __slots__ = ()

    def numel(self) -> int:
        """Number of elements."""
        return int(np.prod(self, dtype=np.int64))

    def __add__(self, other: Any) -> Size:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count: Any) -> Size:
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        part = tuple.__getitem__(self, index)
        return Size(part) if type(index) is slice else part

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


def sizes(args: tuple) -> tuple[int, ...]:
    """A shape, written as several integers or as one sequence."""
    if len(args) == 1 and isinstance(args[0], tuple | list):
        args = tuple(args[0])
    try:
        shape: Any = tuple([n if isinstance(n, AbstractLength) else index(n) for n in args])
    except TypeError as error:
        raise NumgradTypeError(f"a size must be an integer, or several: {error}") from error
    if any(n < 0 for n in shape):
        raise NumgradRuntimeError(f"a Tensor cannot have a negative dimension: {list(shape)}")
    return shape


class device:
    """A device, which is the CPU.

    Raises
    ------
    NumgradRuntimeError
        If it is another one.
    """

    __slots__ = ("index", "type")

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        name = type.type if isinstance(type, device) else str(type)
        kind, _, number = name.partition(":")
        self.type, self.index = kind, int(number) if number else index
        if kind not in ("cpu", "meta"):
            way = "torch.device('cpu'), as scripts do where torch.cuda.is_available() is False"
            raise NumgradRuntimeError(f"device {name!r}: numgrad computes on the CPU; use {way}")
        if kind == "meta":
            raise NumgradNotImplementedError("device 'meta': Tensors without memory do not exist")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        number = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{number})"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (str(self),)

    def __enter__(self) -> device:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class _Constant:
    """A constant known by name, of a layout or a memory format."""

    __module__ = "numgrad.torch"

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class layout(_Constant):
    """A layout of memory; ``torch.strided`` is the one that there is."""


class memory_format(_Constant):
    """An order of axes in memory."""


strided, sparse_coo, sparse_csr = map(layout, ("strided", "sparse_coo", "sparse_csr"))
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
