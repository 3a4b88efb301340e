"""The error function, its complement, and the normal distribution.

Note [erf]
Below 105/128, ``x + x Q(x**2)``. From there, where erfc < 1/4, to where erf rounds to 1,
``1 - exp(-L(|x| - 1))``: the logarithm of erfc is smooth, and an error in it counts only times
erfc. Degrees 11 and 19 (float64), 6 and 7 (float32); errors relative to erf 2**-56 and 2**-58,
2**-30 and 2**-33.

Note [erfc]
Below 3/4, ``1 - x - x Q(x**2)``. Above, with ``a = |x|`` and ``t = (a - c) / (a + c)``,
``erfc a = exp(-a**2) p(t) / (1 + 2 a)``: p stays near 1.2 and t maps the half-line on an interval
(Shepherd and Laframboise, 1981). Factor by factor the rounding errors are carried along: that of
a**2, the low parts of the exponential and of p, the remainder of the division; so the tail is as
accurate as the rest, down to subnormal results. The degree of p is 21 (float64, error 2**-56) or 9
(float32, 2**-27).
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import bits, estrin, fabs, from_bits, mul_add, select
from numgrad.kernels.vmath import exponential
from numgrad.kernels.vmath.error_free import exact_mul_add_f64, fast_two_sum
from numgrad.kernels.vmath.exponential import reduce_f64, scale_f64, square_terms_f64
from numgrad.kernels.vmath.precision import INT, float32s, float64s, single

_SHIFT_F64, _SHIFT_F32 = exponential.SHIFT, exponential.F_SHIFT
_SHIFT_ONCE_F64, _SHIFT_ONCE_F32 = exponential.SHIFT_ONCE, exponential.F_SHIFT_ONCE
_BITS_F64, _BITS_F32 = 52, 23
_SIGN_F64, _SIGN_F32 = -1 << 63, -1 << 31
_ZERO_F64, _ONE_F64, _TWO_F64 = np.float64(0.0), np.float64(1.0), np.float64(2.0)
_EDGE_F64 = np.float64(0.8203125)  # 105 / 128
_ERF_MOST_F64 = np.float64(6.0)  # erf of it rounds to 1
_ERFC_MOST_F64 = np.float64(27.3)  # erfc of it rounds to 0
_NEAR_ZERO_F64, _ERFC_CENTRE_F64 = float64s("0.75 4.0")
_HALF_F64, _ROOT_HALF_F64 = np.float64(0.5), np.float64(0.7071067811865476)
_NDTR_MOST_F64 = np.float64(39.0)  # x ndtr(-x) of it rounds to 0
# erf(x) / x - 1 in x**2 on x <= 105/128
_ERF_F64 = float64s("""
    0.1283791670955126 -0.3761263890318375 0.11283791670954704 -0.02686617064502198
    0.005223977623977216 -0.0008548326907318587 0.00012055327131889461 -1.4925455813345156e-05
    1.6457780817235804e-06 -1.6301668125405604e-07 1.419698019408727e-08 -8.857251875994202e-10""")
_LOG_ERFC_0_F64 = np.float64(1.8496055099332482)
_LOG_ERFC_0_LOW_F64 = np.float64(1.2216620486737461e-17)  # what the rounding of the above left
# (-log erfc(1 + u) - the above) / u in u on -23/128 <= u <= 5
_LOG_ERFC_F64 = float64s("""
    2.6389675142347913 0.8431072563584848 0.041561098046509246 -0.010033825434226765
    0.001977903021650792 -0.0002373247115225306 -2.6270370615533628e-05 2.714115326878384e-05
    -9.577523115423266e-06 2.0190325734358264e-06 -1.0313973550433301e-07 -1.2679773470151391e-07
    6.82636084463416e-08 -2.163598222370433e-08 4.909225048899133e-09 -8.103731208327677e-10
    9.300114975335967e-11 -6.639503855963207e-12 2.2160388164840026e-13""")
_ERFC_0_F64 = np.float64(1.2329951186255526)
_ERFC_0_LOW_F64 = np.float64(-4.5779552956220086e-17)  # what the rounding of the above left
# (p(t) - p(0)) / t
_ERFC_F64 = float64s("""
    -0.13962111684056247 0.015379652102619818 0.06809705425468696 -0.10103906603630727
    0.09373283499861046 -0.06633036581220648 0.03716751553205051 -0.016197734056845214
    0.0050319700401547825 -0.0007577733072693343 -0.0001992571240277477 0.0001506218402531482
    -2.439733593175342e-05 -1.122285536368888e-05 5.704439193178258e-06 2.963063222353973e-07
    -8.159427911072464e-07 7.014497221692437e-08 9.98147878282797e-08 -1.349772608764755e-08
    -8.235119422126731e-09""")
_ZERO_F32, _ONE_F32, _TWO_F32 = np.float32(0.0), np.float32(1.0), np.float32(2.0)
_EDGE_F32 = np.float32(0.8203125)  # 105 / 128
_ERF_MOST_F32 = np.float32(4.0)  # erf of it rounds to 1
_ERFC_MOST_F32 = np.float32(10.2)  # erfc of it rounds to 0
_NEAR_ZERO_F32, _ERFC_CENTRE_F32 = float32s("0.75 3.0")
_HALF_F32, _ROOT_HALF_F32 = np.float32(0.5), np.float32(0.7071067811865476)
_NDTR_MOST_F32 = np.float32(14.6)  # x ndtr(-x) of it rounds to 0
# erf(x) / x - 1 in x**2 on x <= 105/128
_ERF_F32 = float32s("""
    0.12837916612625122 -0.37612631916999817 0.11283675581216812 -0.026858417317271233
    0.005198609549552202 -0.0008113387739285827 8.232268010033295e-05""")
_LOG_ERFC_0_F32 = np.float32(1.8496055603027344)
_LOG_ERFC_0_LOW_F32 = np.float32(-5.092158161801308e-08)  # what the rounding of the above left
# (-log erfc(1 + u) - the above) / u in u on -23/128 <= u <= 3
_LOG_ERFC_F32 = float32s("""
    2.638967514038086 0.8431074023246765 0.04156017303466797 -0.010035696439445019
    0.001996958162635565 -0.0002802139788400382 1.9589904695749283e-05""")
_ERFC_0_F32 = np.float32(1.2530080080032349)
_ERFC_0_LOW_F32 = np.float32(4.962447519574198e-08)  # what the rounding of the above left
# (p(t) - p(0)) / t
_ERFC_F32 = float32s("""
    -0.1356210857629776 -0.04756219685077667 0.12964437901973724 -0.11927614361047745
    0.06831896305084229 -0.023748615756630898 0.002467949641868472 0.0018086056225001812
    -0.00063367432449013""")


@device
def erf_f64(x):
    """Error function."""
    a = fabs(x)
    small = mul_add(a, estrin(a * a, _ERF_F64), a)
    u = select(a > _ERF_MOST_F64, _ERF_MOST_F64, a) - _ONE_F64
    log, log_low = fast_two_sum(_LOG_ERFC_0_F64, u * estrin(u, _LOG_ERFC_F64))
    log_low = log_low + _LOG_ERFC_0_LOW_F64
    shifted, _, r, r_low = reduce_f64(-log, _SHIFT_ONCE_F64)
    power = _ONE_F64 + (r + (square_terms_f64(r) + (r_low - log_low)))
    large = mul_add(-power, from_bits(INT(bits(shifted) << _BITS_F64)), _ONE_F64)
    y = select(a < _EDGE_F64, small, large)
    return from_bits(INT(bits(y) | (bits(x) & _SIGN_F64)))


erf_f32 = single(erf_f64)


@device
def erfc_tail_f64(a, square, square_low):
    """``(y, shifted)``: ``erfc a = y 2**k`` for ``a > 0``, its square as a sum, k + shift."""
    shifted, _, r, r_low = reduce_f64(-square, _SHIFT_F64)
    r, r_low = fast_two_sum(r, r_low - square_low)
    power, power_low = fast_two_sum(_ONE_F64, r)
    power_low = power_low + square_terms_f64(r)
    power_low = mul_add(r_low, power + power_low, power_low)

    t = (a - _ERFC_CENTRE_F64) / (a + _ERFC_CENTRE_F64)
    p, p_low = fast_two_sum(_ERFC_0_F64, t * estrin(t, _ERFC_F64))
    p_low = p_low + _ERFC_0_LOW_F64

    n = power * p
    n_low = mul_add(power, p_low, mul_add(power_low, p, exact_mul_add_f64(power, p, -n)))
    d, d_low = fast_two_sum(_ONE_F64, _TWO_F64 * a)
    inverse = _ONE_F64 / d
    q = n * inverse
    remainder = exact_mul_add_f64(-q, d, n) + mul_add(-q, d_low, n_low)
    return mul_add(remainder, inverse, q), shifted


erfc_tail_f32 = single(erfc_tail_f64)


@device
def erfc_f64(x):
    """Complement ``1 - erf(x)``, accurate to the end of its tail."""
    high, low = fast_two_sum(_ONE_F64, -x)
    near = high + mul_add(-x, estrin(x * x, _ERF_F64), low)
    a = fabs(x)
    near_zero = a < _NEAR_ZERO_F64
    a = select(a > _ERFC_MOST_F64, _ERFC_MOST_F64, a)
    square = a * a
    y, shifted = erfc_tail_f64(a, square, exact_mul_add_f64(a, a, -square))
    y = scale_f64(y, shifted)
    return select(near_zero, near, select(x < _ZERO_F64, _TWO_F64 - y, y))


erfc_f32 = single(erfc_f64)


@device
def times_ndtr_f64(factor, x):
    """``factor`` times the probability that a standard normal number is below ``x``.

    The exponent of the tail is exact, and what underflows is rounded after the product.
    """
    far = fabs(x) > _NDTR_MOST_F64
    b = select(far, _NDTR_MOST_F64, fabs(x))
    square = b * b
    square_low = exact_mul_add_f64(b, b, -square)
    y, shifted = erfc_tail_f64(b * _ROOT_HALF_F64, _HALF_F64 * square, _HALF_F64 * square_low)
    half = _HALF_F64 * factor
    tail = scale_f64(y * half, shifted)
    z = x * _ROOT_HALF_F64
    near = half + half * mul_add(z, estrin(z * z, _ERF_F64), z)
    positive = x > _ZERO_F64
    y = select(fabs(z) < _NEAR_ZERO_F64, near, select(positive, factor - tail, tail))
    return select(far, select(positive, factor, factor * _ZERO_F64), y)


times_ndtr_f32 = single(times_ndtr_f64)


@device
def ndtr_f64(x):
    """Probability that a standard normal number is below ``x``."""
    return times_ndtr_f64(_ONE_F64, x)


ndtr_f32 = single(ndtr_f64)


@device
def gelu_f64(x):
    """``x ndtr(x)``."""
    return times_ndtr_f64(x, x)


gelu_f32 = single(gelu_f64)
