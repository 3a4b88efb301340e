"""Operations that are declared when one of their names is first asked for.

A program uses few of them, and declaring one takes about 0.1 ms: what most scripts call is
declared before the first Tensor is made, the rest when it is asked for. ``ng.sort``,
``tensor.sort()`` and ``np.sort(tensor)`` ask for a name; ``np.linalg.solve(tensor, b)`` for a
namespace.
"""

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from numgrad.core.namespaces import loading
from numgrad.core.op import OPS, Op

_USUAL: dict[str, str] = {
    "arithmetic": "abs absolute add angle around ceil conj conjugate copysign divide fix "
    "float_power floor floor_divide fmod imag mod multiply negative positive power real reciprocal "
    "remainder rint round sign square subtract true_divide trunc",
    "arrangement": "flip fliplr flipud matrix_transpose moveaxis permute permute_dims roll rot90 "
    "swapaxes transpose",
    "choice": "clamp clip fmax fmin heaviside maximum minimum nan_to_num where",
    "compare": "allclose bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or "
    "bitwise_right_shift bitwise_xor equal greater greater_equal invert isclose isfinite isinf "
    "isnan left_shift less less_equal logical_and logical_not logical_or logical_xor not_equal "
    "right_shift signbit",
    "cumulative": "cumprod cumsum cumulative_prod cumulative_sum diff linear_recurrence",
    "diagonal": "diag diagonal trace tril triu",
    "einsum": "einsum",
    "error_gamma_logistic": "digamma erf erfc erfinv expit gamma gammaln lgamma log_sigmoid logit "
    "polygamma psi relu sigmoid softplus zeta",
    "exponential": "acosh arccosh arcsinh arctanh asinh atanh cbrt cosh exp exp2 expm1 hypot log "
    "log10 log1p log2 logaddexp logaddexp2 sinh sqrt tanh",
    "extend": "pad repeat tile",
    "index": "",
    "join": "array_split cat column_stack concat concatenate dsplit dstack hsplit hstack meshgrid "
    "split stack unbind unstack vsplit vstack",
    "matmul": "dot inner kron matmul outer tensordot vdot vecdot",
    "norm": "matrix_norm norm renorm vector_norm",
    "reduce": "all amax amin any argmax argmin count_nonzero log_softmax logsumexp max mean min "
    "prod softmax std sum var",
    "region": "",
    "scatter": "index_add index_copy index_fill scatter scatter_add",
    "shape": "astype atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to copy expand "
    "expand_dims flatten ravel reshape squeeze unsqueeze",
    "take": "take take_along_axis",
    "trigonometric": "acos arccos arcsin arctan arctan2 asin atan atan2 cos deg2rad degrees "
    "rad2deg radians sin tan",
    "write": "diagonal_scatter fill index_put masked_fill masked_scatter put select_scatter "
    "slice_scatter",
}
"""Modules of this package that every Tensor needs -> public names that they declare."""

_MODULES: dict[str, str] = {
    "assembling": "append block delete diag_embed diagflat insert ix_ resize rollaxis trim_zeros",
    "calculus": "cumulative_trapezoid ediff1d gradient interp simpson trapezoid unwrap",
    "elementary": "bitwise_count divmod fabs frexp gcd isneginf isposinf lcm ldexp modf nextafter "
    "real_if_close sinc spacing",
    "histogram": "histogram histogram2d histogram_bin_edges histogramdd",
    "linear_algebra.vector_products": "cross matvec vecmat",
    "nan_reductions": "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod "
    "nanstd nansum nanvar",
    "polynomial": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots "
    "vander",
    "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "running": "cummax cummin logcumsumexp",
    "scatter_reduce": "scatter_reduce",
    "selecting": "argwhere bincount choose compress digitize extract flatnonzero nonzero "
    "searchsorted select",
    "sets": "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_consecutive "
    "unique_counts unique_inverse unique_values",
    "sliding_windows": "convolve correlate sliding_window_view unfold",
    "special_functions.bessel": "i0",
    "sorting": "argpartition argsort lexsort partition sort sort_complex topk",
    "statistics": "average corrcoef cov ptp",
}
"""Other modules of this package -> public names that they declare."""

LATE = {name: f"{__package__}.{home}" for home, names in _MODULES.items() for name in names.split()}
"""Public names of ``numgrad`` -> modules that declare them."""

NAMES = frozenset([name for names in _USUAL.values() for name in names.split()]).union(LATE)
"""Public names of all of them."""

_METHODS: dict[str, str] = {
    "assembling": "diag_embed",
    "elementary": "sinc",
    "nan_reductions": "nanmean nansum",
    "quantiles": "median nanmedian nanquantile quantile",
    "running": "cummax cummin logcumsumexp",
    "scatter_reduce": "scatter_reduce",
    "selecting": "argwhere nonzero searchsorted",
    "sliding_windows": "unfold",
    "sorting": "argpartition argsort partition sort topk",
    "statistics": "ptp",
}
"""The same modules -> those of their names that are methods of Tensor too."""

METHODS = frozenset(name for names in _METHODS.values() for name in names.split())
"""Names of methods of Tensor among them."""

NAMESPACES: dict[str, str] = {
    "numpy.linalg": "numgrad.linalg",
    "scipy.special": "numgrad.special",
    "numpy.fft": "numgrad.fft",
    "scipy.ndimage": "numgrad.ndimage",
    "scipy.signal": "numgrad.signal",
}
"""Modules of NumPy and SciPy -> modules of ours, whose import declares what stands for theirs."""

_INTERNAL = ("sparse_matrices",)
"""Modules of this package whose operations are parts of functions."""

_OTHERS = {"numpy.lib.scimath": f"{__package__}.elementary"}
"""Modules of NumPy for which there is no namespace of ours -> modules that declare theirs."""

_AT_HOME = ("numpy", "numpy.lib.stride_tricks")
"""Modules of NumPy whose functions have their operations under names of ``numgrad`` itself."""


def _load(module: str) -> ModuleType:
    with loading():
        return import_module(module)


def declare_usual() -> None:
    """Declare the operations that every Tensor needs."""
    for home in _USUAL:
        _load(f"{__package__}.{home}")


def declared(name: str) -> Op:
    """The operation of a public name."""
    if name in LATE:
        _load(LATE[name])
    else:
        declare_usual()
    return next(op for op in list(OPS.values()) if name in op.names)  # others may declare meanwhile


def declare_for(function: Any) -> bool:
    """Declare what may stand for a function of NumPy's or SciPy's; False if nothing more can."""
    name = function.__name__
    home = getattr(function, "__module__", None) or "numpy"
    if isinstance(function, np.ufunc):
        home = "numpy" if getattr(np, name, None) is function else "scipy.special"
    module = LATE.get(name) if home in _AT_HOME else (NAMESPACES | _OTHERS).get(home)
    known = len(OPS)
    if module is not None:
        _load(module)
    return len(OPS) > known


def of_namespace(function: Any) -> Op | None:
    """The operation in a namespace of ours that stands for a function of NumPy's or SciPy's."""
    home = NAMESPACES.get(getattr(function, "__module__", None) or "")
    result = getattr(_load(home), function.__name__, None) if home else None
    return result if isinstance(result, Op) else None


def declare_all() -> None:
    """Declare all operations of these tables."""
    declare_usual()
    internal = [f"{__package__}.{home}" for home in _INTERNAL]
    homes = (*LATE.values(), *NAMESPACES.values(), *internal, *_OTHERS.values())
    for module in dict.fromkeys(homes):  # in one order
        _load(module)
