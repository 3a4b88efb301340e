"""Derivatives with respect to parameters for which no closed formula holds everywhere.

Note [Differences in a parameter]
---------------------------------
They are central differences of order ten, the linear combination of differences over 1, 2, 3, 4 and
5 steps from which Richardson's extrapolation has removed the terms up to the tenth power of the
step. The functions are SciPy's, right to some units of the last place, so a step ``h`` loses that
over ``h``: with ``h = 1 / 32`` two digits. Positive functions are followed by their logarithm,
which is tame where the function decays like a power or an exponential of the parameter; of a
probability and its complement the smaller one is followed. Steps shrink with a parameter that has a
pole at zero, and grow with the width of the distribution where that is large. Compared with mpmath,
first derivatives are right to about eleven digits, second ones, which are differences of first
ones, to about eight. Where the function is below ``1e-250`` its derivative counts as 0.
"""

import numpy as np

from numgrad.codegen import library
from numgrad.codegen.device import DeviceFunction, outlined
from numgrad.codegen.intrinsics import fabs, select, sqrt
from numgrad.kernels.scipy_functions import EXTERNALS, of_floats, single
from numgrad.kernels.vmath.logarithm import log_f64

WEIGHTS = (5 / 6, -5 / 21, 5 / 84, -5 / 504, 1 / 1260)
_LEAST = 1e-250
STEP = 0.03125
_NO = np.int32(0)


@outlined
def _width(a):
    """Step in a shape parameter of a distribution."""
    return select(a < 4.0, a * STEP, sqrt(fabs(a)) * 0.0625)


@outlined
def _share(a):
    """Step in a positive number that the function has a scale of its own in."""
    return a * STEP


@outlined
def _constant(v):
    """Step in an order."""
    return STEP


def difference(f: DeviceFunction, step: DeviceFunction) -> DeviceFunction:
    """The derivative of a function of three numbers with respect to the first."""

    @outlined
    def slope(p, x, y):
        h = step(p)
        total = 0.0
        for k in range(5):
            t = (k + 1) * h
            total += WEIGHTS[k] * (f(p + t, x, y) - f(p - t, x, y))
        return total / h

    return slope


def log_difference(f: DeviceFunction, step: DeviceFunction) -> DeviceFunction:
    """The same of a positive function, by its logarithm."""

    @outlined
    def slope(p, x, y):
        value = f(p, x, y)
        if value < _LEAST:
            return 0.0
        h = step(p)
        total = 0.0
        for k in range(5):
            t = (k + 1) * h
            total += WEIGHTS[k] * log_f64(f(p + t, x, y) / f(p - t, x, y))
        return value * (total / h)

    return slope


def probability_difference(
    f: DeviceFunction, complement: DeviceFunction, step: DeviceFunction
) -> DeviceFunction:
    """The same of a probability, of which the complement is known as well."""
    of_itself, of_other = log_difference(f, step), log_difference(complement, step)

    @outlined
    def slope(p, x, y):
        if f(p, x, y) > complement(p, x, y):
            return -of_other(p, x, y)
        return of_itself(p, x, y)

    return slope


# -------------------------------------------------------------------------- incomplete functions

_gammainc, _gammaincc = of_floats("gammainc", 2), of_floats("gammaincc", 2)
_betainc = of_floats("__pyx_fuse_0betainc", 3)
_betaincc = of_floats("__pyx_fuse_0betaincc", 3)


@outlined
def _lower(a, x, y):
    return _gammainc(a, x, _NO)


@outlined
def _upper(a, x, y):
    return _gammaincc(a, x, _NO)


@outlined
def _below(a, b, x):
    return _betainc(a, b, x, _NO)


@outlined
def _above(a, b, x):
    return _betaincc(a, b, x, _NO)


@outlined
def _below_by_b(b, a, x):
    return _betainc(a, b, x, _NO)


@outlined
def _above_by_b(b, a, x):
    return _betaincc(a, b, x, _NO)


_gammainc_a = probability_difference(_lower, _upper, _width)
_gammainc_aa = difference(_gammainc_a, _width)
_betainc_a = probability_difference(_below, _above, _width)
_betainc_b = probability_difference(_below_by_b, _above_by_b, _width)
_betainc_aa = difference(_betainc_a, _width)
_betainc_bb = difference(_betainc_b, _width)


@outlined
def _betainc_a_by_b(b, a, x):
    return _betainc_a(a, b, x)


_betainc_ba = difference(_betainc_a_by_b, _width)


@outlined
def gammainc_a_f64(a, x):
    """Derivative of gammainc with respect to ``a``."""
    return _gammainc_a(a, x, 0.0)


@outlined
def gammainc_aa_f64(a, x):
    """Second derivative of gammainc with respect to ``a``."""
    return _gammainc_aa(a, x, 0.0)


@outlined
def betainc_a_f64(a, b, x):
    """Derivative of betainc with respect to ``a``."""
    return _betainc_a(a, b, x)


@outlined
def betainc_b_f64(a, b, x):
    """Derivative of betainc with respect to ``b``."""
    return _betainc_b(b, a, x)


@outlined
def betainc_aa_f64(a, b, x):
    """Second derivative of betainc with respect to ``a``."""
    return _betainc_aa(a, b, x)


@outlined
def betainc_ab_f64(a, b, x):
    """Second derivative of betainc with respect to ``a`` and ``b``."""
    return _betainc_ba(b, a, x)


@outlined
def betainc_bb_f64(a, b, x):
    """Second derivative of betainc with respect to ``b``."""
    return _betainc_bb(b, a, x)


# ------------------------------------------------------- noncentral chi-squared

_chndtr = of_floats("__pyx_fuse_0chndtr", 3)


@outlined
def _by_freedom(df, x, nc):
    return _chndtr(x, df, nc, _NO)


_chndtr_df = difference(_by_freedom, _share)


@outlined
def chndtr_df_f64(x, df, nc):
    """Derivative of chndtr with respect to ``df``."""
    return _chndtr_df(df, x, nc)


# --------------------------------------------------------------------------- Bessel in the order


def _by_order(f: DeviceFunction, tame: bool) -> tuple[DeviceFunction, DeviceFunction]:
    """First and second derivative in the order of a function that has a sign where that is large.

    J and Y keep theirs from where the order exceeds the argument, I and K always.
    """
    plain, by_log = difference(f, _constant), log_difference(f, _constant)
    factor = 0.0 if tame else 1.0

    @outlined
    def slope(v, x, y):
        if x > 0.0 and v > factor * x + 1.0:
            return by_log(v, x, y)
        return plain(v, x, y)

    return slope, difference(slope, _constant)


def _bessel(name: str) -> None:
    """Enter the derivatives of a Bessel function in its order."""
    exported = of_floats(f"__pyx_fuse_1{name}", 2)
    sign = -1.0 if name[0] == "y" else 1.0

    @outlined
    def f(v, x, y):
        return sign * exported(v, x, _NO)

    for suffix, derivative in zip(("v", "vv"), _by_order(f, name[0] in "ik"), strict=True):
        _enter_order(f"{name}_{suffix}", derivative, sign, name)


def _enter_order(name: str, derivative: DeviceFunction, sign: float, source: str) -> None:
    @outlined
    def f64(v, x):
        return sign * derivative(v, x, 0.0)

    globals()[f"{name}_f64"] = f64
    _SOURCES[name] = (source,)


_SOURCES: dict[str, tuple[str, ...]] = {
    "gammainc_a": ("gammainc", "gammaincc"),
    "gammainc_aa": ("gammainc", "gammaincc"),
    "chndtr_df": ("chndtr",),
    **{f"betainc_{order}": ("betainc", "betaincc") for order in ("a", "b", "aa", "ab", "bb")},
}
for _name in ("jv", "yv", "iv", "kv", "ive", "kve"):
    _bessel(_name)
for _name, _sources in _SOURCES.items():
    _count = 3 if _name.startswith(("beta", "chndtr")) else 2
    globals()[f"{_name}_f32"] = single(globals()[f"{_name}_f64"], _count)
    library.LIBRARY[_name] = (__name__, _name)
    library.EXTERNALS[_name] = tuple(s for source in _sources for s in EXTERNALS[source])
