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

from typing import Any as _Any

import numgrad as _ng
from numgrad.core.namespaces import namespace as _namespace

_EXTENSIONS = ("fft", "linalg")
_BESIDE = ("special", "einsum")
"""Names that SciPy and xarray look for beside the standard's: an extension to be, a function."""

_namespace(
    globals(),
    {
        "numgrad.array_api.standard": "arange asarray empty empty_like eye from_dlpack full "
        "full_like linspace ones ones_like zeros zeros_like __array_namespace_info__ astype "
        "can_cast finfo iinfo isdtype result_type argsort broadcast_shapes concat diff "
        "expand_dims expm1 isin meshgrid nonzero repeat reshape searchsorted sort squeeze stack "
        "std tile unstack var",
        "numpy": "bool=bool_ complex64 complex128 e float32 float64 inf int8 int16 int32 int64 "
        "nan newaxis pi uint8 uint16 uint32 uint64",
    },
    late={"numgrad.array_api": " ".join(_EXTENSIONS), "numgrad": " ".join(_BESIDE)},
)

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
_load = globals()["__getattr__"]


def __getattr__(name: str) -> _Any:
    if name in (*_EXTENSIONS, *_BESIDE):
        return _load(name)
    if name not in __all__:
        raise _ng.NumgradAttributeError(
            f"the Array API standard {__array_api_version__} has no {name!r}; ng.{name}, or the "
            "function of NumPy's, may be what is meant"
        )
    globals()[name] = getattr(_ng, _RENAMED.get(name, name))
    return globals()[name]


def __dir__() -> list[str]:
    return [*__all__, "__array_api_version__", "__array_namespace_info__"]


__all__ = sorted(  # pyright: ignore[reportUnsupportedDunderAll]
    {name for name in globals() if name[0] != "_"} - {"standard"}
    | {*_RENAMED, *_EXTENSIONS, *(set(_SAME.split()) & set(dir(_ng)))}
)
