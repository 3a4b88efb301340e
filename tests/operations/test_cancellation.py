"""Derivatives where a formula by the result, or a quotient, would cancel, against mpmath."""

import mpmath
import numpy as np
import pytest

import numgrad as ng
from numgrad import special
from numgrad.nn import functional

mp = mpmath.mp
_DIGITS = 120


def derivatives(function, x):
    """First and second derivative of a function of mpmath's, by differences of many digits."""
    x = mpmath.mpmathify(x)
    h = abs(x) * mp.mpf(10) ** -20
    low, here, high = function(x - h), function(x), function(x + h)
    return (high - low) / (2 * h), (high - 2 * here + low) / h**2


def check(function, truth, places, rtol=1e-11, orders=(1, 2)):
    x = np.array(places)
    options = {"holomorphic": True} if x.dtype.kind == "c" else {}
    first = ng.grad(lambda x: np.sum(function(x)), **options)
    found = [first, ng.grad(lambda x: np.sum(first(x)), **options)]
    with mpmath.workdps(_DIGITS):
        wanted = [derivatives(truth, place) for place in places]
    for order in orders:
        want = [complex(w[order - 1]) if options else float(w[order - 1]) for w in wanted]
        np.testing.assert_allclose(found[order - 1](x), want, rtol=rtol, err_msg=str(order))


def si(x):
    """The sine integral by its series, as mpmath's own loses digits near 0."""
    return mpmath.nsum(
        lambda k: (-1) ** k * x ** (2 * k + 1) / ((2 * k + 1) * mpmath.factorial(2 * k + 1)),
        [0, 40],
        method="direct",
    )


def shi(x):
    return (si(1j * x) / 1j).real if mpmath.im(x) == 0 else si(1j * x) / 1j


def expit(z):
    return 1 / (1 + mpmath.exp(-z))


def lower(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def fraction(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


_TAILS = [40 + 30j, 36 + 1j, 20 + 1j, 1 + 30j, 0.5 + 20j, -40 + 3j, 2 - 3j, 5 + 1e-3j, -1 + 25j]


@pytest.mark.parametrize(
    ("function", "truth"), [(ng.sigmoid, expit), (np.tanh, mpmath.tanh), (np.tan, mpmath.tan)]
)
def test_complex_tails(function, truth):
    check(function, truth, _TAILS)


def test_complex_limits():
    far = np.array([800 + 1j, -800 + 1j, complex(np.inf, 1), complex(-np.inf, 1)])
    turned = np.array([complex(z.imag, z.real) for z in far])
    for function, x in ((ng.sigmoid, far), (np.tanh, far), (np.tan, turned)):
        got = ng.grad(lambda x, f=function: np.sum(f(x)), holomorphic=True)(x)
        np.testing.assert_array_equal(got, 0)


def test_complex_tail_in_other_modes():
    x = np.array(_TAILS)
    with mpmath.workdps(60):
        want = [complex(mpmath.sech(mpmath.mpc(z)) ** 2) for z in _TAILS]
    grad = ng.grad(lambda x: np.sum(np.tanh(x)), holomorphic=True)
    np.testing.assert_allclose(ng.jit(grad)(x), want, rtol=1e-12)
    np.testing.assert_allclose(ng.jvp(np.tanh, (x,), (np.ones_like(x),))[1], want, rtol=1e-12)
    each = ng.vmap(ng.grad(np.tanh, holomorphic=True))
    np.testing.assert_allclose(each(x), want, rtol=1e-12)


def test_real_formulas_keep_the_result_alone():
    x, z = ng.ones(3, requires_grad=True), ng.tensor([1j, 2.0], requires_grad=True)
    for function in (np.tanh, ng.sigmoid):
        for operand, names in ((x, ("y",)), (z, ("x", "x y"))):
            node = function(operand).grad_fn
            assert " ".join(node.call.saves(1)) in names


@pytest.mark.parametrize(
    ("function", "truth"),
    [(np.arctan, lambda z: mpmath.atan(z)), (np.arcsinh, lambda z: mpmath.asinh(z))],
)
def test_near_branch_points(function, truth):
    check(function, truth, [1e-9 + 1j, -1e-7 - 1j, 1e-6 + (1 - 1e-6) * 1j, 0.3 + 0.2j, 1e12 + 1e9j])


def test_arcsinh_far_on_the_left():
    check(np.arcsinh, mpmath.asinh, [-1e100, -1e12, -2.0, 1e12])


_NEAR = [1e-12, 1e-9, 1e-5, 0.3, -1e-7]


@pytest.mark.parametrize(("part", "truth"), [(0, si), (1, shi)])
def test_integrals_of_quotients(part, truth):
    integral = (special.sici, special.shichi)[part]
    check(lambda x: integral(x)[0], truth, _NEAR)
    check(lambda x: integral(x)[0], truth, [1e-9 + 1e-10j, 1e-6j, 0.5 + 0.5j])
    third = ng.grad(ng.grad(ng.grad(lambda x: integral(x)[0])))
    np.testing.assert_allclose(third(1e-9), (-1 / 3, 1 / 3)[part], rtol=1e-12)


def _bei_slope(x):
    return mpmath.nsum(
        lambda k: (
            (-1) ** k * (2 * k + 1) * (x / 2) ** (4 * k + 1) / mpmath.factorial(2 * k + 1) ** 2
        ),
        [0, 30],
        method="direct",
    )


def _ber_slope(x):
    return mpmath.nsum(
        lambda k: (-1) ** k * 2 * k * (x / 2) ** (4 * k - 1) / mpmath.factorial(2 * k) ** 2,
        [1, 30],
        method="direct",
    )


def test_kelvin_functions_near_0():
    check(special.beip, _bei_slope, [1e-9, 1e-3, 0.5, 0.99, 1.01, -0.2])
    check(special.berp, _ber_slope, [1e-9, 1e-3, 0.5, 0.99, 1.01, -0.2])
    check(lambda x: np.imag(special.kelvin(x)[2]), _bei_slope, [1e-9, 0.5])


def test_means_far_apart():
    check(
        lambda x: special.agm(x, 2.0),
        lambda x: mpmath.re(mpmath.agm(x, 2)),
        [1e-100, 1e-12, 1.99, 2.0, 1e100],
    )
    check(special.ellipkm1, lambda p: mpmath.ellipk(1 - p), [1e-40, 1e-17, 1e-6, 0.995, 1.0, 3.0])


def test_pseudo_huber_of_large_residuals():
    r = mp.mpf(0.75)
    check(
        lambda delta: special.pseudo_huber(delta, 0.75),
        lambda delta: delta**2 * (mpmath.sqrt(1 + (r / delta) ** 2) - 1),
        [1e-9, 1e-3, 1.0, 1e4],
    )
    check(
        lambda x: special.pseudo_huber(0.75, x),
        lambda x: r**2 * (mpmath.sqrt(1 + (x / r) ** 2) - 1),
        [1e-9, 1.0, 1e6, 1e10],
    )


def test_divergence_of_nearly_equal_numbers():
    a = mp.mpf(1.25)
    places = [1.25 - 2.0**-30, 1.25 + 2.0**-40, 1e-9, 1e9]
    truth = lambda x: a * mpmath.log(a / x) - a + x  # noqa: E731
    check(lambda x: special.kl_div(1.25, x), truth, places)
    truth = lambda x: x * mpmath.log(x / a) - x + a  # noqa: E731
    check(lambda x: special.kl_div(x, 1.25), truth, places)


def test_tanhshrink_near_0():
    check(functional.tanhshrink, lambda x: x - mpmath.tanh(x), [1e-12, 1e-6, 1e-3, 0.5, 3.0])


def test_logarithm_of_normal_distribution_on_the_right():
    places = [8 - 6j, 6 + 0.1j, 3 + 1j, 0.5 + 0.1j, 2 + 5j, -3 + 2j, 20 + 19j]
    truth = lambda z: mpmath.log(mpmath.erfc(-z / mpmath.sqrt(2)) / 2)  # noqa: E731
    check(special.log_ndtr, truth, places)
    with mpmath.workdps(_DIGITS):
        want = [complex(truth(mpmath.mpc(z))) for z in places]
    np.testing.assert_allclose(special.log_ndtr(np.array(places)), want, rtol=1e-13)


def test_incomplete_gamma_in_far_tails():
    shapes = [1e-8, 0.1, 0.49, 0.51, 2.0, 25.0, 60.0, 100.0]
    check(lambda a: special.gammainc(a, 1.7), lambda a: lower(a, mp.mpf(1.7)), shapes, 1e-10, (2,))
    check(
        lambda a: special.gammaincc(a, 20.0),
        lambda a: mpmath.gammainc(a, 20, mpmath.inf, regularized=True),
        [1e-8, 0.3, 1.0, 5.0, 25.0],
        1e-10,
        (2,),
    )


def test_incomplete_beta_in_far_tails():
    places = [1e-3, 0.3, 2.0, 30.0, 60.0]
    for b, x in ((3.0, 0.25), (0.2, 0.1)):
        truth = lambda a, b=b, x=x: fraction(a, mp.mpf(b), mp.mpf(x))  # noqa: E731
        check(lambda a, b=b, x=x: special.betainc(a, b, x), truth, places, 1e-10, (2,))
        truth = lambda a, b=b, x=x: fraction(mp.mpf(b), a, mp.mpf(1 - x))  # noqa: E731
        check(lambda a, b=b, x=x: special.betainc(b, a, 1 - x), truth, places, 1e-10, (2,))


def test_incomplete_beta_mixed_in_far_tail():
    a, b, x = 60.0, 5.0, 0.125
    got = ng.grad(lambda a: ng.grad(lambda b: special.betainc(a, b, x))(b))(a)
    with mpmath.workdps(_DIGITS):
        h = mp.mpf(10) ** -25
        corners = [
            s * t * fraction(a + s * h, b + t * h, mp.mpf(x)) for s in (1, -1) for t in (1, -1)
        ]
        want = float(sum(corners) / (4 * h * h))
    np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("places", [[30.5, 1e6], [29.5, 1e3]])
@pytest.mark.parametrize("order", [0, 1])
def test_scaled_bessel_functions_far_from_0(order, places):
    rising, falling = ((special.i0e, special.k0e), (special.i1e, special.k1e))[order]
    truth = lambda x: mpmath.besseli(order, x) * mpmath.exp(-abs(x))  # noqa: E731
    check(rising, truth, [*places, -places[0]])
    check(falling, lambda x: mpmath.besselk(order, x) * mpmath.exp(x), places)
    assert np.isnan(ng.grad(falling)(-40.0))
