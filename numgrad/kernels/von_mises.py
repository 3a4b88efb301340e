"""The distribution of angles around 0 with density ``exp(kappa (cos(x) - 1))``, by quadrature.

Note [Moments of angles]
------------------------
``angles_within`` is the integral of ``(1 - cos(t))**n`` times ``exp(kappa (cos(t) - 1))`` from 0 to
an angle ``x`` between 0 and pi, ``angles_beyond`` that from ``x`` to pi: their derivatives in
``kappa`` are those of ``n + 1``. They are computed by Gauss and Legendre's rule of 48 points over
the part of the interval where the exponential is above ``exp(-48)`` of its largest value. The
integrand is positive, so nothing cancels, however small the tail: about 14 digits are right.
"""

import math

import numpy as np

from numgrad.codegen import library
from numgrad.codegen.device import DeviceFunction, device, outlined
from numgrad.codegen.intrinsics import fabs, maximum, minimum, sqrt
from numgrad.kernels.vmath.exponential import exp_f64
from numgrad.kernels.vmath.inverse_trigonometric import asin_f64
from numgrad.kernels.vmath.logarithm import log_f64
from numgrad.kernels.vmath.precision import floats, through_float64
from numgrad.kernels.vmath.trigonometric import sin_f64

MODULE = "numgrad.kernels.von_mises"
_PI, _HALF, _TWO = np.float64(math.pi), np.float64(0.5), np.float64(2.0)
_ZERO, _ONE, _QUARTER = np.float64(0.0), np.float64(1.0), np.float64(0.25)
_REST, _TINY = np.float64(24.0), np.float64(1e-300)  # half of the exponent that is left out
_CLOSE, _STEPS = np.float64(1e-16), 100

# Of the nodes and weights of the rule those on the right.
_NODES = floats("""
    0.03238017096286936 0.0970046992094627 0.1612223560688917 0.22476379039468905
    0.28736248735545555 0.34875588629216075 0.4086864819907167 0.4669029047509584
    0.523160974722233 0.5772247260839727 0.6288673967765136 0.6778723796326639
    0.7240341309238146 0.7671590325157404 0.8070662040294426 0.8435882616243935
    0.8765720202742479 0.9058791367155696 0.9313866907065543 0.9529877031604309
    0.9705915925462473 0.9841245837228269 0.9935301722663508 0.9987710072524261""")
_WEIGHTS = floats("""
    0.06473769681268392 0.06446616443595009 0.06392423858464819 0.06311419228625402
    0.062039423159892665 0.06070443916589388 0.059114839698395635 0.057277292100403214
    0.055199503699984165 0.05289018948519367 0.05035903555385447 0.04761665849249048
    0.04467456085669428 0.04154508294346475 0.03824135106583071 0.03477722256477044
    0.03116722783279809 0.027426509708356948 0.02357076083932438 0.01961616045735553
    0.015579315722943849 0.01147723457923454 0.0073275539012762625 0.0031533460523058385""")


@outlined
def _integral(n, kappa, low, high):
    """The integral between two angles, but for a factor ``exp(kappa (cos(low) - 1))``."""
    start = sin_f64(_HALF * low)
    reach = start * start + _REST / kappa
    if reach < _ONE:
        high = minimum(high, _TWO * asin_f64(sqrt(reach)))
    half, middle = _HALF * (high - low), _HALF * (high + low)
    if not half > _ZERO:
        return half * _ZERO
    total = _ZERO
    for k in range(48):
        away = _NODES[k % 24] * half
        t = middle + (away if k < 24 else -away)
        # the difference of squares of sines, which would cancel
        exponent = -_TWO * kappa * sin_f64(_HALF * (t - low)) * sin_f64(_HALF * (t + low))
        if n != _ZERO:
            sine = sin_f64(_HALF * t)
            exponent += n * log_f64(_TWO * sine * sine)
        total += _WEIGHTS[k % 24] * exp_f64(exponent)
    return total * half


@device
def _height(kappa, x):
    sine = sin_f64(_HALF * x)
    return exp_f64(-_TWO * kappa * sine * sine)


@outlined
def angles_within_f64(n, kappa, x):
    """The integral from 0 to an angle."""
    return _integral(n, kappa, _ZERO, x)


@outlined
def angles_beyond_f64(n, kappa, x):
    """The integral from an angle to pi."""
    return _height(kappa, x) * _integral(n, kappa, x, _PI)


@outlined
def angle_exceeded_f64(kappa, q):
    """The angle that is exceeded with a probability of at most one half, by Newton's method.

    It follows the logarithm of small probabilities, and the difference from one half of others;
    where a step leaves the interval in which the angle is, that is halved.
    """
    if not (q > _ZERO and q <= _HALF and kappa >= _ZERO):
        return np.nan
    whole = _TWO * _integral(_ZERO, kappa, _ZERO, _PI)
    small = q < _QUARTER
    aim = (q if small else _HALF - q) * whole
    low, high = _ZERO, _PI
    x = minimum(_HALF * _PI, _ONE / sqrt(maximum(kappa, _TINY)))
    for _ in range(_STEPS):
        slope = _height(kappa, x)
        if small:
            beyond = angles_beyond_f64(_ZERO, kappa, x)
            step = log_f64(beyond / aim) * beyond / slope
        else:
            step = (aim - angles_within_f64(_ZERO, kappa, x)) / slope
        if step > _ZERO:
            low = x
        else:
            high = x
        after = x + step
        if not (after > low and after < high):
            after = _HALF * (low + high)
        if fabs(after - x) <= _CLOSE * after:
            return after
        x = after
    return x


def _enter(name: str, f64: DeviceFunction) -> None:
    globals()[f"{name}_f32"] = through_float64(f64)
    library.LIBRARY[name] = (MODULE, name)
    library.EXTERNALS[name] = ()


_enter("angles_within", angles_within_f64)
_enter("angles_beyond", angles_beyond_f64)
_enter("angle_exceeded", angle_exceeded_f64)
