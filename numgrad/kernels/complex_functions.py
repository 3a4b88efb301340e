"""Special functions of complex arguments: SciPy's, and Hurwitz's zeta function.

They compute in complex128; complex64 is converted around them. SciPy's are known to the linker by
name: Note [External functions] of ``linker``.
"""

import numpy as np

from numgrad.codegen.device import DeviceFunction, device, outlined
from numgrad.codegen.intrinsics import fabs, floor, select
from numgrad.kernels.complex_table import EXPORTED, OF_WHOLE_ORDER
from numgrad.kernels.scipy_functions import CALLED, MOST, NO, NOTHING
from numgrad.kernels.special import EULER_MACLAURIN, exported
from numgrad.kernels.vmath.complex_exponential import exp_c128
from numgrad.kernels.vmath.complex_inverse import log1p_c128, log_c128

D_ONE, D_HALF, D_FAR = np.float64(1.0), np.float64(0.5), np.float64(12.0)
ROOT_HALF = np.float64(0.5**0.5)


def _of_arguments(function: str, count: int) -> DeviceFunction:
    return CALLED[count](exported(function, "complex128"))


def _of_whole_order(function: str) -> DeviceFunction:
    f = exported(function, "complex128", "int64")

    @outlined
    def c128(n, z):
        if not (n > -1.0 and n < MOST):
            return complex(np.nan, np.nan)
        return f(np.int64(n), z, NO, NOTHING)

    return c128


globals().update({f"{name}_c128": _of_arguments(*known) for name, known in EXPORTED.items()})
globals().update({f"{name}_c128": _of_whole_order(f) for name, f in OF_WHOLE_ORDER.items()})


def _log_ndtr() -> DeviceFunction:
    far_left, of_tail = _of_arguments(*EXPORTED["log_ndtr"]), _of_arguments(*EXPORTED["erfc"])

    @outlined
    def c128(z):
        if z.real > 0.0:  # SciPy's logarithm is rounded where the tail is small beside 1
            tail = complex(D_HALF, 0.0) * of_tail(z * complex(ROOT_HALF, 0.0))
            if fabs(tail.real) < D_HALF and fabs(tail.imag) < D_HALF:
                return log1p_c128(-tail)
        return far_left(z)

    return c128


log_ndtr_c128 = _log_ndtr()


@device
def power_c128(z, s):
    """``z**-s``, by products for the small integers that derivatives of digamma have."""
    inverse = np.divide(complex(D_ONE, 0.0), z)
    if s == floor(s) and s >= 1.0 and s <= 16.0:
        power = inverse
        for _ in range(np.int64(s) - 1):
            power = power * inverse
        return power
    return exp_c128(log_c128(z) * complex(-s, 0.0))


@outlined
def half_plane_zeta_c128(s, z):
    """The sum of ``(k + z)**-s``: terms up to an argument of 12, then Euler and Maclaurin.

    As of real places: their series needs an argument above ``s``, if terms have not vanished.
    """
    total = complex(0.0, 0.0)
    one = complex(D_ONE, 0.0)
    far = select(s > 4.0, s + 8.0, D_FAR)
    if fabs(z.imag) < far or z.real < 0.0:
        while z.real < far:
            term = power_c128(z, s)
            total = total + term
            size, whole = fabs(term.real) + fabs(term.imag), fabs(total.real) + fabs(total.imag)
            if z.real > 2.0 and not size > np.float64(1e-19) * whole:
                return total
            z = z + one
    power = power_c128(z, s)
    inverse = np.divide(one, z)
    total = total + z * power * complex(D_ONE / (s - D_ONE), 0.0) + power * complex(D_HALF, 0.0)
    factor = power * inverse * complex(s, 0.0)
    square = inverse * inverse
    for j in range(12):
        total = total + factor * complex(EULER_MACLAURIN[j], 0.0)
        factor = factor * square * complex((s + 2 * j + 1.0) * (s + 2 * j + 2.0), 0.0)
    return total


@outlined
def zeta_c128(s, z):
    """Hurwitz zeta function of a complex place, for real ``s > 1``.

    Far on the left, for integers ``s``, as the sum over all integers less that over the others.
    """
    if not (s > 1.0 and z.real - z.real == 0.0 and z.imag - z.imag == 0.0):
        return complex(np.nan, np.nan)
    if z.real > -32.0:
        return half_plane_zeta_c128(s, z)
    if s != floor(s):
        return complex(np.nan, np.nan)
    sign = complex(D_ONE if s * D_HALF == floor(s * D_HALF) else -D_ONE, 0.0)
    one = complex(D_ONE, 0.0)
    near = complex(z.real - floor(z.real), z.imag)
    both = half_plane_zeta_c128(s, near) + sign * half_plane_zeta_c128(s, one - near)
    return both - sign * half_plane_zeta_c128(s, one - z)
