"""Inverses of the error function and of the normal distribution.

Note [Inverse of the error function]
------------------------------------
With ``w = -log(1 - x**2)``, ``erfinv(x) / x`` is smooth in ``w`` up to 6.25 and in ``s = sqrt(w)``
from there on (Giles, 2010); far out, where only a probability gets and no ``x`` below 1, erfinv is
``s`` times a polynomial in ``1 / s``. ``1 - x**2`` is ``4 p (1 - p)`` of a probability ``p``, and
``y (2 - y)`` for ``y = 1 - x``, so the tails of ndtri and erfcinv lose nothing. Errors of the
polynomials relative to the function: 2**-56 (float64), 2**-27 (float32). Arguments from
``abs(x) = 0.999`` on are rare ones: Note [Rare arguments] in ``loops``.
"""

import numpy as np

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import estrin, fabs, maximum, minimum, select, sqrt
from numgrad.kernels.vmath.logarithm import log_f32, log_f64
from numgrad.kernels.vmath.precision import float32s, float64s, single

# erfinv(x) / x in (w - 3.125) / 3.125
_CENTRE_F64 = float64s("""
    1.6536545626831027 0.7504943200799635 -0.05892256710377784 -0.022604447453449802
    0.017808361818295655 -0.00413731437741443 -0.0012716922684373015 0.0012324855686812834
    -0.0002643936684366174 -0.0001168888399309713 9.33673917780479e-05 -1.5027710420277575e-05
    -1.1257319182677936e-05 7.1300572630824496e-06 -6.83718721812117e-07 -1.059321402540731e-06
    5.394320648707009e-07 -1.0185147576818285e-08 -9.867713140174249e-08 3.915473114023045e-08
    4.792369996100387e-09 -8.562787796742932e-09 1.5401738716654886e-09 7.689312733742569e-10
    -2.7032254091069344e-10""")
# erfinv(x) / x in (s - 4.375) / 1.875
_TAIL_F64 = float64s("""
    4.218480707652916 1.8939929107274542 0.0017701087787871555 -0.0033690068730543926
    0.002180939695982786 -0.001175719223796931 0.0006578820094151727 -0.0004795881073806648
    0.00047179288618053955 -0.0005007442767887612 0.00047580531229548677 -0.0003639964568073601
    0.00019379457460032127 -2.9889309641798558e-05 -7.094922702897495e-05 9.293003943352243e-05
    -6.200493000928428e-05 1.9068731287270303e-05 8.877838377001116e-06 -1.6428773921121137e-05
    1.027835228534867e-05 -1.170039341231265e-06 -2.272973105475798e-06 7.147011771347108e-07
    7.83407448980885e-08 5.827473249874168e-07 -3.6853194237916486e-07 -2.2373483394681596e-07
    1.74221652794069e-07 1.823802838122105e-08 -2.180122006384302e-08""")
# erfinv / s in 1 / s between 1 / 27.5 and 1 / 6
_FAR_F64 = float64s("""
    0.9888039234196565 -0.011084606872057813 -0.0014534783445636211 0.00044605012134703987
    -7.356010105285564e-05 1.8266340913070737e-05 -5.9894274570423234e-06 2.20862643854249e-06
    -8.85404890625813e-07 3.7860924083156975e-07 -1.6995423889770183e-07 7.929564745252203e-08
    -3.84926761133199e-08 1.902728683185984e-08 -8.61985431764407e-09 4.364412339344592e-09
    -4.219356636443729e-09 2.3196966209876053e-09 1.4235683504934723e-09 -8.580506590071674e-10
    -1.9965126005276773e-09 1.1542876573674587e-09 8.307952981659664e-10 -4.841058836103807e-10
    -2.3907669674668247e-10 1.3831077065052069e-10""")
# erfinv(x) / x in (w - 3.125) / 3.125
_CENTRE_F32 = float32s("""
    1.6536545753479004 0.7504943013191223 -0.05892295390367508 -0.02260430157184601
    0.017812905833125114 -0.0041390457190573215 -0.0012911827070638537 0.0012401178246363997
    -0.00022648746380582452 -0.00013252552889753133 5.930168481427245e-05 6.543455697283207e-07""")
# erfinv(x) / x in s between 2.5 and 4.25
_TAIL_F32 = float32s("""
    3.209620237350464 0.8806380033493042 0.0031911854166537523 -0.0018326948629692197
    0.0009590050322003663 -0.000554156897123903 0.0002972710062749684 -0.00012495586997829378
    2.450769898132421e-05 1.2814989531761967e-05 -7.711274520261213e-06""")
# erfinv in s between 4 and 10.25
_FAR_F32 = float32s("""
    6.995086193084717 3.1514618396759033 -0.004978068172931671 0.00027945899637416005
    0.0004863129579462111 -0.0004316887934692204 0.0002589142823126167 -0.00010305339674232528
    5.176345439394936e-05 -5.834914918523282e-05 2.683828461158555e-05""")
_LOW, _HIGH = 1 / 27.5, 1 / 6.0
_FAR_CENTRE, _FAR_SCALE = np.float64(0.5 * (_LOW + _HIGH)), np.float64(2 / (_HIGH - _LOW))
_ROOT_2 = np.float64(1.4142135623730951)
_LEAST_F64, _LEAST_F32 = np.float64(0.00194), np.float32(0.00194)  # of rest, up to w = 6.25
D_ONE, D_TWO = np.float64(1), np.float64(2)
F_ZERO, F_ONE, F_TWO, F_FOUR, F_HALF, F_ROOT_2 = float32s("0 1 2 4 0.5 1.4142135623730951")
CENTRE, F_CENTRE = np.float64(3.125), np.float32(3.125)
SCALE, F_SCALE = np.float64(0.32), np.float32(0.32)


@device
def _centre_f64(x, w):
    return x * estrin((w - CENTRE) * SCALE, _CENTRE_F64)


_centre_f32 = single(_centre_f64)


@device
def _near_f64(x, rest):
    """The inverse at ``x``, where ``rest`` is ``1 - x**2`` and not small."""
    return _centre_f64(x, -log_f64(rest))


_near_f32 = single(_near_f64)


@device
def _inverse_f64(x, rest):
    """The same for any ``x``."""
    w = -log_f64(rest)
    s = sqrt(maximum(w, 1.0))
    tail = x * estrin((minimum(s, 6.25) - 4.375) * (1.0 / 1.875), _TAIL_F64)
    near = select(rest > _LEAST_F64, _centre_f64(x, w), tail)
    inverse = maximum(1.0 / s, _LOW)
    far = s * estrin((minimum(inverse, _HIGH) - _FAR_CENTRE) * _FAR_SCALE, _FAR_F64)
    far = select(x < 0.0, -far, far)
    result = select(s > 6.1, far, near)
    return select(rest == 0.0, x * np.inf, result)


@device
def _inverse_f32(x, rest):
    """The same for any ``x``."""
    w = -log_f32(rest)
    s = sqrt(maximum(w, F_ONE))
    centred = minimum(s, np.float32(4.25)) - np.float32(3.375)
    tail = x * estrin(centred * np.float32(1 / 0.875), _TAIL_F32)
    near = select(rest > _LEAST_F32, _centre_f32(x, w), tail)
    centred = minimum(s, np.float32(10.25)) - np.float32(7.125)
    far = estrin(centred * np.float32(0.32), _FAR_F32)
    far = select(x < F_ZERO, -far, far)
    result = select(s > np.float32(4.2), far, near)
    return select(rest == F_ZERO, x * np.float32(np.inf), result)


@device
def erfinv_rare_f64(x):
    """Whether the fast form does not hold."""
    return not ((D_ONE - fabs(x)) * (D_ONE + fabs(x)) > _LEAST_F64)


erfinv_rare_f32 = single(erfinv_rare_f64)


@device
def erfinv_f64(x):
    """Inverse error function."""
    return _near_f64(x, (D_ONE - fabs(x)) * (D_ONE + fabs(x)))


erfinv_f32 = single(erfinv_f64)


@device
def erfinv_slow_f64(x):
    """The same of any argument."""
    return _inverse_f64(x, (D_ONE - fabs(x)) * (D_ONE + fabs(x)))


erfinv_slow_f32 = single(erfinv_slow_f64)


@device
def erfcinv_rare_f64(x):
    """Whether the fast form does not hold."""
    return not (x * (D_TWO - x) > _LEAST_F64)


erfcinv_rare_f32 = single(erfcinv_rare_f64)


@device
def erfcinv_f64(x):
    """Inverse of the complementary error function."""
    return _near_f64(D_ONE - x, x * (D_TWO - x))


erfcinv_f32 = single(erfcinv_f64)


@device
def erfcinv_slow_f64(x):
    """The same of any argument."""
    return _inverse_f64(D_ONE - x, x * (D_TWO - x))


erfcinv_slow_f32 = single(erfcinv_slow_f64)


@device
def ndtri_rare_f64(x):
    """Whether the fast form does not hold."""
    return not (4.0 * (x * (1.0 - x)) > _LEAST_F64)


@device
def ndtri_f64(x):
    """Quantile of the standard normal distribution."""
    return _ROOT_2 * _near_f64((x - 0.5) * 2.0, 4.0 * (x * (1.0 - x)))


@device
def ndtri_slow_f64(x):
    """The same of any argument."""
    return _ROOT_2 * _inverse_f64((x - 0.5) * 2.0, 4.0 * (x * (1.0 - x)))


@device
def ndtri_rare_f32(x):
    """Whether the fast form does not hold."""
    return not ((F_FOUR * x) * (F_ONE - x) > _LEAST_F32)


@device
def ndtri_f32(x):
    """Quantile of the standard normal distribution."""
    return F_ROOT_2 * _near_f32((x - F_HALF) * F_TWO, (F_FOUR * x) * (F_ONE - x))


@device
def ndtri_slow_f32(x):
    """The same of any argument."""
    return F_ROOT_2 * _inverse_f32((x - F_HALF) * F_TWO, (F_FOUR * x) * (F_ONE - x))
