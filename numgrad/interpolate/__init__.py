"""Interpolation of data, with gradients in values, points and places.

Names, parameters and defaults are those of ``scipy.interpolate``. Interpolants return Tensors; they
are compositions of operations, which ``ng.jit`` compiles and ``ng.vmap`` maps, with derivatives of
any order. Where numbers are not known, as in compiled functions, the order of points and places
outside of them are not checked.

>>> import numpy as np, numgrad as ng
>>> x = np.linspace(0, 3, 4)
>>> ng.grad(lambda t: ng.interpolate.CubicSpline(x, x**2)(t))(1.5)
np.float64(3.0)
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.interpolate.bsplines": "BSpline make_interp_spline make_lsq_spline "
        "splantider splder splev splint",
        "numgrad.interpolate.cubic": "CubicSpline",
        "numgrad.interpolate.grids": "RegularGridInterpolator interp1d interpn",
        "numgrad.interpolate.piecewise": "Akima1DInterpolator CubicHermiteSpline "
        "PPoly PchipInterpolator",
        "numgrad.interpolate.smoothing": "make_smoothing_spline",
    },
    {
        "splrep": "make_interp_spline goes through points, make_smoothing_spline near them",
        "UnivariateSpline": "make_smoothing_spline, or make_lsq_spline with given knots",
        "LSQUnivariateSpline": "make_lsq_spline is the same",
        "InterpolatedUnivariateSpline": "make_interp_spline is the same",
        "RectBivariateSpline": "RegularGridInterpolator with method='cubic' is the same",
        "interp2d": "RegularGridInterpolator is in its place",
        "*": "of what is not here scipy.interpolate takes arrays without gradients",
    },
)
