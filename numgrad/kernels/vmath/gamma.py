"""Logarithm of the gamma function, and its derivative, of positive numbers without branches.

Note [Gamma functions]
----------------------
Below 9.5 the recurrence brings the argument to between 1.5 and 2.5, where ``gammaln(2 + t) / t`` is
a polynomial, so that the zeros at 1 and 2 are exact; the factors are multiplied before the one
logarithm. digamma goes to between 1 and 2, where it is the distance from its root times a
polynomial, and adds up the reciprocals as one fraction. Further on both are Stirling's series. What
is negative, tiny or huge goes to SciPy's functions: Note [Rare arguments] in ``loops``.
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import estrin, minimum, select
from numgrad.kernels.scipy_functions import scipy_digamma_f64, scipy_gammaln_f64
from numgrad.kernels.vmath.logarithm import log_f64
from numgrad.kernels.vmath.precision import float64s, through_float64

# gammaln(2 + t) / t on |t| <= 1/2: error 2**-60
_GAMMALN_AT_2 = float64s("""
    0.42278433509846713 0.32246703342411326 -0.0673523010531981 0.02058080842778038
    -0.0073855510286719986 0.002890510331034267 -0.0011927539118428156 0.0005096695154115458
    -0.00022315475400520507 9.945767355819498e-05 -4.49263133791557e-05 2.0505590755833454e-05
    -9.438715099211532e-06 4.38470440459836e-06 -2.0439048107029907e-06 9.200527894968101e-07
    -4.3252393445604814e-07 2.78740805211359e-07 -1.3219945666117874e-07""")
# digamma(x) / (x - root) in x - 3/2 on 1 <= x <= 2
_DIGAMMA_AT_ROOT = float64s("""
    0.9510558760318328 -0.4236274212814606 0.24054248424078697 -0.14840492305388092
    0.09498872445289039 -0.06192213327548831 0.040760833940846085 -0.026975796659787055
    0.017907248317313294 -0.011908220105959716 0.007927021796868154 -0.005279937255532708
    0.003518106563802472 -0.0023454947397380833 0.0015633696313653504 -0.0010364584817312839
    0.0006909255761282986 -0.00048595039220036254 0.00032395945401345196 -0.00014480643368061614
    9.653646261410062e-05 -0.0001782188548855923 0.00011881232908510335""")
# B(2k) / (2k (2k - 1))
_STIRLING = float64s("""
    0.08333333333333333 -0.002777777777777778 0.0007936507936507937 -0.0005952380952380953
    0.0008417508417508417 -0.0019175269175269176 0.00641025641025641 -0.029550653594771242
    0.17964437236883057 -1.3924322169059011""")
# B(2k) / 2k
_STIRLING_SLOPE = float64s("""
    0.08333333333333333 -0.008333333333333333 0.003968253968253968 -0.004166666666666667
    0.007575757575757576 -0.021092796092796094 0.08333333333333333 -0.4432598039215686
    3.0539543302701198 -26.456212121212122""")
_ROOT, _ROOT_LOW = 1.4616321449683622, 9.549995429965697e-17
_HALF_LOG_2_PI = 0.9189385332046728
_LEAST, _MOST = 1e-290, 1e17


@device
def gammaln_rare_f64(x):
    """Whether the fast form does not hold."""
    return not ((x > _LEAST) & (x < _MOST))


@device
def _down(y, product):
    """A step of the recurrence of the gamma function down to 2.5."""
    step = y > 2.5
    return select(step, y - 1.0, y), product * select(step, y - 1.0, 1.0)


@device
def _lower(y, numerator, denominator):
    """A step of the recurrence of digamma down to 2, which adds a reciprocal to a fraction."""
    step = y >= 2.0
    below = select(step, y - 1.0, y)
    factor = select(step, below, 1.0)
    added = numerator * factor + select(step, denominator, 0.0)
    return below, added, denominator * factor


@device
def gammaln_f64(x):
    """Logarithm of the absolute gamma function."""
    # a factor for each step of the recurrence; of small arguments they divide
    small = x < 1.5
    one = select(x < 0.5, x * (x + 1.0), x)
    product = select(small, one, 1.0)
    y, product = _down(x, product)
    y, product = _down(y, product)
    y, product = _down(y, product)
    y, product = _down(y, product)
    y, product = _down(y, product)
    y, product = _down(y, product)
    y, product = _down(y, product)
    t = select(small, select(x < 0.5, x, x - 1.0), minimum(y, 2.5) - 2.0)
    large = x >= 9.5
    log = log_f64(select(large, x, product))
    near = t * estrin(t, _GAMMALN_AT_2) + select(small, -log, log)
    inverse = 1.0 / select(large, x, 10.0)
    series = inverse * estrin(inverse * inverse, _STIRLING)
    far = (x - 0.5) * (log - 1.0) + (series + (_HALF_LOG_2_PI - 0.5))
    return select(large, far, near)


gammaln_f32 = through_float64(gammaln_f64)


@device
def digamma_rare_f64(x):
    """Whether the fast form does not hold."""
    return not ((x > _LEAST) & (x < _MOST))


@device
def digamma_f64(x):
    """Derivative of gammaln."""
    tiny = x < 1.0
    y = select(tiny, x + 1.0, x)
    y, numerator, denominator = _lower(y, 0.0, 1.0)
    y, numerator, denominator = _lower(y, numerator, denominator)
    y, numerator, denominator = _lower(y, numerator, denominator)
    y, numerator, denominator = _lower(y, numerator, denominator)
    y, numerator, denominator = _lower(y, numerator, denominator)
    y, numerator, denominator = _lower(y, numerator, denominator)
    y, numerator, denominator = _lower(y, numerator, denominator)
    y, numerator, denominator = _lower(y, numerator, denominator)
    root = ((y - _ROOT) - _ROOT_LOW) * estrin(minimum(y, 2.0) - 1.5, _DIGAMMA_AT_ROOT)
    numerator = select(tiny, -1.0, numerator)
    denominator = select(tiny, x, denominator)
    near = root + numerator / denominator
    large = x >= 10.0
    inverse = 1.0 / select(large, x, 10.0)
    square = inverse * inverse
    far = log_f64(select(large, x, 10.0)) - (
        0.5 * inverse + square * estrin(square, _STIRLING_SLOPE)
    )
    return select(large, far, near)


digamma_f32 = through_float64(digamma_f64)


@outlined
def gammaln_slow_f64(x):
    """The same of any argument."""
    return scipy_gammaln_f64(x)


gammaln_slow_f32 = through_float64(gammaln_slow_f64)


@outlined
def digamma_slow_f64(x):
    """The same of any argument."""
    return scipy_digamma_f64(x)


digamma_slow_f32 = through_float64(digamma_slow_f64)


@device
def gammaln_rare_f32(x):
    """Whether the fast form does not hold."""
    return not ((x > np.float32(1e-37)) & (x < np.float32(1e17)))


@device
def digamma_rare_f32(x):
    """Whether the fast form does not hold."""
    return not ((x > np.float32(1e-37)) & (x < np.float32(1e17)))
