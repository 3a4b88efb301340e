"""The namespace of the Array API standard 2025.12, for code written for any array library.

``x.__array_namespace__()`` is this module. Its functions take and return Tensors, have the
standard's signatures, and carry gradients. What does not differ is that of ``ng`` itself.

>>> import numgrad as ng
>>> x = ng.tensor([3.0, 4.0], requires_grad=True)
>>> xp = x.__array_namespace__()
>>> xp.std(x, correction=1).backward()
>>> x.grad
tensor([-0.70710678,  0.70710678])
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from numpy import bool_ as bool  # noqa: F401 (a name of the standard)
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import e as e
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import inf as inf
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import nan as nan
from numpy import newaxis as newaxis
from numpy import pi as pi
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64

import numgrad as _ng
from numgrad.array_api.creation import arange as arange
from numgrad.array_api.creation import asarray as asarray
from numgrad.array_api.creation import empty as empty
from numgrad.array_api.creation import empty_like as empty_like
from numgrad.array_api.creation import eye as eye
from numgrad.array_api.creation import from_dlpack as from_dlpack
from numgrad.array_api.creation import full as full
from numgrad.array_api.creation import full_like as full_like
from numgrad.array_api.creation import linspace as linspace
from numgrad.array_api.creation import ones as ones
from numgrad.array_api.creation import ones_like as ones_like
from numgrad.array_api.creation import zeros as zeros
from numgrad.array_api.creation import zeros_like as zeros_like
from numgrad.array_api.dtypes import __array_namespace_info__ as __array_namespace_info__
from numgrad.array_api.dtypes import astype as astype
from numgrad.array_api.dtypes import can_cast as can_cast
from numgrad.array_api.dtypes import finfo as finfo
from numgrad.array_api.dtypes import iinfo as iinfo
from numgrad.array_api.dtypes import isdtype as isdtype
from numgrad.array_api.dtypes import result_type as result_type
from numgrad.array_api.functions import argsort as argsort
from numgrad.array_api.functions import broadcast_shapes as broadcast_shapes
from numgrad.array_api.functions import concat as concat
from numgrad.array_api.functions import diff as diff
from numgrad.array_api.functions import expand_dims as expand_dims
from numgrad.array_api.functions import expm1 as expm1
from numgrad.array_api.functions import isin as isin
from numgrad.array_api.functions import meshgrid as meshgrid
from numgrad.array_api.functions import nonzero as nonzero
from numgrad.array_api.functions import repeat as repeat
from numgrad.array_api.functions import reshape as reshape
from numgrad.array_api.functions import searchsorted as searchsorted
from numgrad.array_api.functions import sort as sort
from numgrad.array_api.functions import squeeze as squeeze
from numgrad.array_api.functions import stack as stack
from numgrad.array_api.functions import std as std
from numgrad.array_api.functions import tile as tile
from numgrad.array_api.functions import unstack as unstack
from numgrad.array_api.functions import var as var

__array_api_version__ = "2025.12"

_SAME = """
abs acos acosh add all any argmax argmin asin asinh atan atan2 atanh bitwise_and bitwise_invert
bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to ceil
clip conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum divide equal exp flip
floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log10
log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max
maximum mean min minimum moveaxis multiply negative nextafter not_equal permute_dims positive prod
real reciprocal remainder roll round sign signbit sin sinh sqrt square subtract sum take
take_along_axis tan tanh tensordot tril triu trunc unique_all unique_counts unique_inverse
unique_values vecdot where
"""
"""Functions of ``ng`` that are those of the standard."""

_RENAMED = {"pow": "power"}
_EXTENSIONS = ("fft", "linalg")
_SPECIAL = "special"
"""No extension yet, but where SciPy looks for its special functions first."""
_EINSUM = "einsum"
"""No function of the standard, but by which xarray multiplies."""


def __getattr__(name: str) -> _Any:
    if name in _EXTENSIONS:
        value: _Any = _import_module(f"{__name__}.{name}")
    elif name == _SPECIAL:
        value = _import_module(f"numgrad.{name}")
    elif name in __all__ or name == _EINSUM:
        value = getattr(_ng, _RENAMED.get(name, name))
    else:
        raise _ng.NumgradAttributeError(
            f"the Array API standard {__array_api_version__} has no {name!r}; ng.{name}, or the "
            "function of NumPy's, may be what is meant"
        )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__array_api_version__", "__array_namespace_info__"]


__all__ = sorted(  # pyright: ignore[reportUnsupportedDunderAll]
    {name for name in globals() if name[0] != "_"} - {"creation", "dtypes", "functions"}
    | {*_RENAMED, *_EXTENSIONS, *(set(_SAME.split()) & set(dir(_ng)))}
)
