"""Special functions that SciPy exports to compiled code, called inside kernels.

Their addresses change with every process, so machine code on disk refers to them by name; see
``linker``. They work in float64; float32 arguments are converted.
"""

from typing import Any

import numpy as np
from numba import types

from numgrad.kernels.device import device, outlined
from numgrad.kernels.linker import external_symbol

# Cython's second argument says whether to look for Python overrides
_UNARY = types.float64(types.float64, types.int32)


def _external(name: str, signature: Any) -> Any:
    symbol = external_symbol(f"scipy.special.cython_special:{name}")
    return types.ExternalFunction(symbol, signature)


_gammaln = _external("gammaln", _UNARY)
_gamma = _external("__pyx_fuse_1gamma", _UNARY)
_psi = _external("__pyx_fuse_1psi", _UNARY)
_NO = np.int32(0)
_erfinv = _external("__pyx_fuse_0erfinv", _UNARY)


@device
def gammaln_f64(x):
    """Logarithm of the absolute gamma function."""
    return _gammaln(x, _NO)


@device
def gamma_f64(x):
    """Gamma function."""
    return _gamma(x, _NO)


@device
def digamma_f64(x):
    """Derivative of gammaln."""
    return _psi(x, _NO)


# Bernoulli numbers B(2j) / (2j)!, j = 1 ... 12, from their definition
_EULER_MACLAURIN = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
    -174611 / 802857662698291200000, 77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)  # fmt: skip


@outlined
def zeta_f64(s, x):
    """Hurwitz zeta function for ``s > 1``; SciPy does not export its own.

    Terms are added up to an argument of 12, the rest is the Euler-Maclaurin formula.
    """
    if not (s == s and x == x) or s < 1.0:
        return np.nan
    if s == 1.0:
        return np.inf
    if x <= 0.0:
        if x == np.floor(x):
            return np.inf
        if s != np.floor(s):
            return np.nan
    total = 0.0
    while x < 12.0:
        total += x**-s
        x += 1.0
    power = x**-s
    if power == 0.0:  # an infinite argument, or all that is left underflows
        return total
    total += x * power / (s - 1.0) + 0.5 * power
    factor = s * power / x
    for j in range(12):
        term = _EULER_MACLAURIN[j] * factor
        total += term
        if abs(term) < 1e-17 * abs(total):
            break
        factor *= (s + 2 * j + 1.0) * (s + 2 * j + 2.0) / (x * x)
    return total


@device
def erfinv_f64(x):
    """Inverse error function."""
    return _erfinv(x, _NO)


@device
def gammaln_f32(x):
    """Logarithm of the absolute gamma function."""
    return np.float32(_gammaln(np.float64(x), _NO))


@device
def gamma_f32(x):
    """Gamma function."""
    return np.float32(_gamma(np.float64(x), _NO))


@device
def digamma_f32(x):
    """Derivative of gammaln."""
    return np.float32(_psi(np.float64(x), _NO))


@device
def zeta_f32(s, x):
    """Hurwitz zeta function."""
    return np.float32(zeta_f64(np.float64(s), np.float64(x)))


@device
def erfinv_f32(x):
    """Inverse error function."""
    return np.float32(_erfinv(np.float64(x), _NO))
