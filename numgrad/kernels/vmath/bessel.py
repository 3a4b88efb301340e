"""The scaled modified Bessel function of order 0.

Up to 8 it is the power series of I0, whose terms are positive, times ``exp(-x)``; beyond it is a
polynomial in ``1 / x`` over the root of ``x``. Both are right to 2**-55 of the function.
"""

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import estrin, fabs, maximum, minimum, select, sqrt
from numgrad.kernels.vmath.exponential import exp_f64
from numgrad.kernels.vmath.precision import float64s, through_float64

# 1 / k!**2: those of I0 in x**2 / 4
_NEAR = float64s("""
    1.0 1.0 0.25 0.027777777777777776 0.001736111111111111 6.944444444444444e-05
    1.9290123456790124e-06 3.936759889140842e-08 6.151187326782565e-10 7.594058428126624e-12
    7.594058428126623e-14 6.276081345559193e-16 4.358389823304995e-18 2.5789288895295828e-20
    1.3157800456783586e-22 5.8479113141260385e-25 2.2843403570804838e-27 7.904291893012054e-30
    2.4395962632753253e-32 6.757884385804225e-35 1.6894710964510564e-37 3.8310002187098785e-40
    7.915289708078262e-43""")
# sqrt(x) i0e(x) in 16 / x - 1
_FAR = float64s("""
    0.4021765094450081 0.003360551983667854 0.00013621607439232746 1.1143033791556743e-05
    1.4838475473607391e-06 2.973598432479169e-07 8.87225351128584e-08 3.932602459703109e-08
    2.1545177650836005e-08 7.553516470355896e-09 -6.729724111923548e-09 -1.3404241991980871e-08
    -5.4685974495866e-09 7.540601378890834e-09 7.58022133915272e-09 -3.4857887470034955e-09
    -6.188265090497361e-09 1.497880830187091e-09 3.881151253996067e-09 -5.562201990080394e-10
    -1.7789375042917173e-09 1.4672236659214398e-10 5.181936971288284e-10 -1.9216763724933513e-11
    -7.06893851181878e-11""")


@device
def i0e_f64(x):
    """``exp(-abs(x)) I0(x)``."""
    a = fabs(x)
    near = minimum(a, 8.0)
    small = exp_f64(-near) * estrin(near * near * 0.25, _NEAR)
    far = maximum(a, 8.0)
    large = estrin(16.0 / far - 1.0, _FAR) / sqrt(far)
    return select(a > 8.0, large, small)


i0e_f32 = through_float64(i0e_f64)
