"""Operations that are declared when one of their names is first asked for.

A program uses few of them, and declaring one takes about 0.1 ms: what most scripts call is
declared at import, the rest stands in the tables below. ``ng.sort``, ``tensor.sort()`` and
``np.sort(tensor)`` ask for a name; ``np.linalg.solve(tensor, b)`` for a namespace.
"""

from importlib import import_module
from typing import Any

import numpy as np

from numgrad.core.op import OPS, Op

_MODULES: dict[str, str] = {
    "calculus": "cumulative_trapezoid ediff1d gradient simpson trapezoid unwrap",
    "convolve": "convolve correlate",
    "elementary": "bitwise_count divmod fabs frexp gcd isneginf isposinf lcm ldexp modf nextafter "
    "real_if_close sinc spacing",
    "histogram": "histogram histogram2d histogram_bin_edges histogramdd",
    "interpolation": "interp",
    "linear_algebra.products": "cross matvec vecmat",
    "nan_reductions": "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod "
    "nanstd nansum nanvar",
    "order_statistics": "median nanmedian",
    "polynomial": "poly polyadd polyder polydiv polyint polymul polysub polyval vander",
    "polynomial_fit": "polyfit",
    "polynomial_roots": "roots",
    "quantiles": "nanpercentile nanquantile percentile quantile",
    "running": "cummax cummin logcumsumexp",
    "searching": "argwhere bincount digitize flatnonzero nonzero searchsorted",
    "sets": "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_consecutive "
    "unique_counts unique_inverse unique_values",
    "special_functions.bessel": "i0",
    "sorting": "argpartition argsort lexsort partition sort sort_complex topk",
    "statistics": "average corrcoef cov ptp",
    "assembling": "append block delete insert ix_ resize trim_zeros",
    "diagonal_matrices": "diag_embed diagflat rollaxis",
    "scatter_reduce": "scatter_reduce",
    "selecting": "choose compress extract select",
    "windows": "sliding_window_view unfold",
}
"""Modules of this package -> public names that they declare."""

LATE = {name: f"{__package__}.{home}" for home, names in _MODULES.items() for name in names.split()}
"""Public names of ``numgrad`` -> modules that declare them."""

_METHODS: dict[str, str] = {
    "elementary": "sinc",
    "nan_reductions": "nanmean nansum",
    "order_statistics": "median nanmedian",
    "quantiles": "nanquantile quantile",
    "running": "cummax cummin logcumsumexp",
    "searching": "argwhere nonzero searchsorted",
    "sorting": "argpartition argsort partition sort topk",
    "statistics": "ptp",
    "diagonal_matrices": "diag_embed",
    "scatter_reduce": "scatter_reduce",
    "windows": "unfold",
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

_INTERNAL = ("sparse.products", "sparse.systems")
"""Modules of this package whose operations are parts of functions."""

_OTHERS = {"numpy.lib.scimath": f"{__package__}.emath"}
"""Modules of NumPy for which there is no namespace of ours -> modules that declare theirs."""

_AT_HOME = ("numpy", "numpy.lib.stride_tricks")
"""Modules of NumPy whose functions have their operations under names of ``numgrad`` itself."""


def declared(name: str) -> Op:
    """The operation of a name in ``LATE``."""
    import_module(LATE[name])
    return next(op for op in OPS.values() if name in op.names)


def declare_for(function: Any) -> bool:
    """Declare what may stand for a function of NumPy's or SciPy's; False if nothing more can."""
    name = function.__name__
    home = getattr(function, "__module__", None) or "numpy"
    if isinstance(function, np.ufunc):
        home = "numpy" if getattr(np, name, None) is function else "scipy.special"
    module = LATE.get(name) if home in _AT_HOME else (NAMESPACES | _OTHERS).get(home)
    known = len(OPS)
    if module is not None:
        import_module(module)
    return len(OPS) > known


def of_namespace(function: Any) -> Op | None:
    """What stands in a namespace of ours for a function of one of NumPy's or SciPy's."""
    home = NAMESPACES.get(getattr(function, "__module__", None) or "")
    found = getattr(import_module(home), function.__name__, None) if home else None
    return found if isinstance(found, Op) else None


def declare_all() -> None:
    """Declare all operations of these tables."""
    internal = [f"{__package__}.{home}" for home in _INTERNAL]
    homes = (*LATE.values(), *NAMESPACES.values(), *internal, *_OTHERS.values())
    for module in dict.fromkeys(homes):  # in one order
        import_module(module)
