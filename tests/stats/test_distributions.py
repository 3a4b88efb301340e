"""Distributions against scipy.stats: values, gradients against differences, outside of supports."""

import math

import mpmath
import numpy as np
import pytest
import scipy.stats

import numgrad as ng
from numgrad import stats
from numgrad.errors import NumgradTypeError
from numgrad.testing import gradcheck, gradgradcheck

inf, nan = np.inf, np.nan
X = np.array([-inf, -30.0, -3.0, -0.2, 0.0, 0.3, 0.7, 1.0, 1.5, 2.0, 9.0, 40.0, inf, nan])
Q = np.array([-0.5, 0.0, 1e-9, 0.2, 0.5, 0.9, 1.0, 1.5, nan])
SHAPES = {  # of continuous distributions, valid and not
    "norm": [()], "beta": [(2.5, 0.7), (-1.0, 1.0)], "t": [(2.5,), (-1.0,)],
    "truncnorm": [(-1.0, 2.0), (3.0, 5.0), (-inf, -1.0), (2.0, 1.0), (9.0, inf)],
    "gamma": [(2.5,), (0.5,), (0.0,)], "logistic": [()], "laplace": [()], "cauchy": [()],
    "gumbel_r": [()], "skewnorm": [(1.5,)], "vonmises": [(2.0,), (-1.0,)], "uniform": [()],
    "expon": [()],
    "lognorm": [(0.7,), (0.0,)], "chi2": [(3.0,)], "weibull_min": [(1.7,), (0.5,)],
    "pareto": [(2.5,), (0.7,)], "invgamma": [(2.5,), (0.7,)], "halfnorm": [()],
    "f": [(3.0, 5.0)], "rayleigh": [()], "halfcauchy": [()],
    "genpareto": [(0.3,), (-0.4,), (0.0,), (-1.0,), (nan,)],
}  # fmt: skip
FUNCTIONS = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf")
LACKING = {"vonmises": {"cdf", "sf", "logcdf", "logsf", "ppf", "isf"},
           "skewnorm": {"ppf", "isf"}}  # fmt: skip


def agreed(found, expected, given):
    """Without far tails in which one logarithm is that of an underflow, and NaN of SciPy's."""
    kept = ~(np.isinf(expected) & np.isfinite(found) & (found < -700))
    kept &= ~(np.isinf(found) & np.isfinite(expected) & (expected < -300))
    kept &= ~(np.isinf(given) & np.isnan(expected))  # a difference of infinities
    return found[kept], expected[kept]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_are_those_of_scipy(name):
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for shapes in SHAPES[name]:
        for loc, scale in ((0.0, 1.0), (0.5, 2.0), (0.0, -1.0))[: 3 if shapes == SHAPES[name][0]
                                                                else 1]:  # fmt: skip
            for function in (*FUNCTIONS, "ppf", "isf"):
                if function in LACKING.get(name, ()):
                    continue
                given = Q if function in ("ppf", "isf") else X
                expected = getattr(theirs, function)(given, *shapes, loc, scale)
                found = getattr(ours, function)(ng.tensor(given), *shapes, loc=loc, scale=scale)
                if name == "vonmises":  # SciPy's support is wider or narrower by version
                    given, expected, found = (a[2:-2] for a in (given, expected, found))
                rtol = 1e-7 if (name, function) == ("truncnorm", "isf") else 1e-9  # as ppf(1 - q)
                np.testing.assert_allclose(
                    *agreed(found.numpy(), expected, given),
                    rtol=rtol,
                    atol=1e-15 if name in ("skewnorm", "halfnorm") else 1e-300,
                    err_msg=(function, shapes),
                )
            for function in ("mean", "var", "std", "entropy"):
                if {function, "var" if function == "std" else ""} & LACKING.get(name, set()):
                    continue
                if (name, function) == ("truncnorm", "entropy") and np.isinf(shapes).any():
                    continue  # NaN of SciPy's
                if name == "vonmises" and loc:
                    continue  # which SciPy integrates
                expected = getattr(theirs, function)(*shapes, loc, scale)
                found = getattr(ours, function)(*shapes, loc, scale)
                np.testing.assert_allclose(
                    np.asarray(found), expected, rtol=1e-9, atol=1e-12, err_msg=function
                )


@pytest.mark.parametrize(
    ("name", "shapes"),
    [(name, (a,)) for name in ("t", "pareto", "invgamma") for a in (1.0, 1.5, 2.0)]
    + [("f", (3.0, dfd)) for dfd in (2.0, 3.0, 4.0)],
)
def test_moments_from_which_parameter_on_they_are_finite(name, shapes):
    for function in ("mean", "var"):
        found = getattr(getattr(stats, name), function)(*shapes)
        expected = getattr(getattr(scipy.stats, name), function)(*shapes)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", SHAPES)
def test_gradients(name):
    shapes = SHAPES[name][0]
    x = np.array([1.1, 1.4, 1.9])
    names = [f for f in (*FUNCTIONS, "ppf", "isf") if f not in LACKING.get(name, ())]

    def function(x, loc, scale, *shapes):
        at = [getattr(stats.__dict__[name], f)(
            0.3 + 0.2 * x if f in ("ppf", "isf") else x, *shapes, loc, scale
        ) for f in names]  # fmt: skip
        return sum(np.sin(y) for y in at)

    given = [ng.tensor(a, requires_grad=True) for a in (x, 0.1, 1.9, *shapes)]
    if name == "pareto":
        given[2] = ng.tensor(0.8, requires_grad=True)
    assert gradcheck(function, given)


@pytest.mark.parametrize("name", SHAPES)
def test_gradients_outside_are_zero_and_nan_for_invalid_parameters_only(name):
    for shapes in SHAPES[name]:
        for function in FUNCTIONS:
            if function in LACKING.get(name, ()):
                continue
            if name == "vonmises" and function[:3] == "log":
                continue  # a distribution function that goes on is below 0 there
            x = ng.tensor([-30.0, 0.01, 3.3], requires_grad=True)
            given = [ng.tensor(a, requires_grad=True) for a in (*shapes, 0.0, 1.0)]
            y = getattr(getattr(stats, name), function)(x, *given)
            finite, valid = (
                np.isfinite(y.numpy(force=True)),
                not np.isnan(y.numpy(force=True)).any(),
            )
            for g in ng.autograd.grad(y.sum(), [x, *given]):
                if not valid:
                    assert np.isnan(g.numpy()).all(), (function, shapes)
                    continue
                assert not np.isnan(g.numpy()).any(), (function, shapes)
                if g.shape == x.shape:
                    assert not g.numpy()[~finite].any()


COUNTS = {"poisson": [(2.5,), (0.0,), (-1.0,)], "binom": [(5.0, 0.3), (5.0, 1.0), (2.5, 0.3)],
          "bernoulli": [(0.3,), (1.5,)], "nbinom": [(2.5, 0.3), (2.0, 0.0)],
          "geom": [(0.3,), (0.0,)]}  # fmt: skip
K = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 5.0, 7.0])


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_distributions_of_integers(name):
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for shapes in COUNTS[name]:
        for function in ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf"):
            for loc in (0, 1):
                expected = getattr(theirs, function)(K, *shapes, loc)
                found = getattr(ours, function)(ng.tensor(K), *shapes, loc=loc).numpy()
                valid = not np.isnan(theirs.mean(*shapes))  # SciPy's is 0 above some invalid ones
                found, expected = (a if valid else a[:3] for a in (found, expected))
                np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=(function, shapes))
        for function in ("mean", "var", "std"):
            expected = getattr(theirs, function)(*shapes)
            np.testing.assert_allclose(np.asarray(getattr(ours, function)(*shapes)), expected)
    moving = [ng.tensor(a, requires_grad=True) for a in COUNTS[name][0]]
    if name == "binom":
        moving[0] = moving[0].detach()
    inside = K[[3, 4] if name == "geom" else [1, 3]]
    for function in ("logpmf", "cdf", "sf"):
        assert gradcheck(lambda *p, f=function: getattr(ours, f)(inside, *p), moving)


def test_classes():
    p = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
    found = stats.categorical.logpmf(np.array([2, 0]), ng.tensor(p)).numpy()
    np.testing.assert_allclose(found, [np.log(0.5), -inf])
    x = np.array([[1, 2, 3], [1, 1, 1], [0, 6, 0]])
    np.testing.assert_allclose(
        stats.multinomial.logpmf(x, 6, ng.tensor(p[0])).numpy(),
        scipy.stats.multinomial.logpmf(x, 6, p[0]), rtol=1e-13,
    )  # fmt: skip
    with pytest.raises(ng.NumgradValueError, match="classes"):
        stats.multinomial.logpmf([1, 2], 3, p[0])


def test_parameters_are_named_in_errors():
    with pytest.raises(ng.NumgradTypeError, match=r"gamma.logpdf: a must be given"):
        stats.gamma.logpdf(1.0)
    with pytest.raises(ng.NumgradTypeError, match=r"norm.cdf: 'sigma'"):
        stats.norm.cdf(1.0, sigma=2.0)
    with pytest.raises(ng.NumgradTypeError, match=r"norm.cdf: takes loc, scale, got 3"):
        stats.norm.cdf(1.0, 1.0, 2.0, 3.0)
    with pytest.raises(ng.NumgradTypeError, match=r"norm.cdf: loc must be real"):
        stats.norm.cdf(1.0, 1j)
    with pytest.raises(ng.NumgradTypeError, match=r"skewnorm.ppf: has no formula"):
        stats.skewnorm.ppf(0.5, 2.0)


def test_tails():
    x = ng.tensor([-40.0, 40.0], requires_grad=True)
    y = stats.norm.logcdf(x)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy(force=True), scipy.stats.norm.logcdf([-40, 40]))
    np.testing.assert_allclose(x.grad.numpy()[0], 40.02496882, rtol=1e-8)


def test_single_precision_stays():
    x = ng.tensor([0.5, 1.0], dtype=np.float32)
    for name in ("norm", "expon", "laplace"):
        assert getattr(stats, name).logpdf(x).dtype == np.float32
    assert stats.gamma.logpdf(x, 2.0).dtype == np.float32


def test_derivatives_where_smooth_functions_are_put_together_from_pieces():
    def derivatives(function, at):
        found = []
        for _ in range(2):
            function = ng.grad(function)
            found.append(function(at))
        return found

    c = np.cos(0.3)
    at = [
        (lambda k: stats.vonmises.logpdf(0.3, k), 0.0, [c, -0.5]),
        (lambda k: stats.vonmises.pdf(0.3, k) * (2 * np.pi), 0.0, [c, c * c - 0.5]),
        (stats.vonmises.entropy, 0.0, [0.0, -0.5]),
        (stats.logistic.logpdf, 0.0, [0.0, -0.5]),
        (stats.laplace.cdf, 0.0, [0.5, 0.5]),
        (stats.laplace.logsf, 0.0, [-1.0, 0.0]),
    ]
    for function, x, expected in at:
        np.testing.assert_allclose(derivatives(function, x), expected, rtol=1e-13, atol=1e-15)
    _, slope = ng.jvp(lambda k: stats.vonmises.logpdf(0.3, k), (0.0,), (1.0,))
    assert slope == pytest.approx(c, rel=1e-15)
    k = np.array([0.5, 1.0, 1.5, 800.0])  # both branches
    np.testing.assert_allclose(
        stats.vonmises.entropy(ng.tensor(k)).numpy(), scipy.stats.vonmises.entropy(k), rtol=1e-13
    )


@pytest.mark.filterwarnings("error")
def test_gradients_by_invalid_parameters_are_nan():
    def gradients(function, *given):
        found = ng.grad(function, tuple(range(len(given))))(*given)
        assert np.isnan(function(*given))
        return np.asarray(found)

    assert np.isnan(gradients(stats.norm.logpdf, 1.0, 0.0, -1.0)).all()
    assert np.isnan(gradients(stats.gamma.cdf, 1.0, -2.0, 0.0, 1.0)).all()
    assert np.isnan(gradients(stats.norm.ppf, 1.5, 0.0, 1.0)).all()
    assert np.isnan(gradients(stats.beta.entropy, 1.0, -2.0)).all()
    assert np.isnan(gradients(stats.bernoulli.logpmf, 1.0, 1.5)).all()
    assert np.isnan(gradients(stats.poisson.mean, -1.0)).all()
    _, slope = ng.jvp(lambda s: stats.norm.logpdf(1.0, 0.0, s), (-1.0,), (1.0,))
    assert np.isnan(slope)
    # valid elements beside them, and those outside of the support, are not touched
    x, scale = np.array([1.0, 1.0, -1.0]), np.array([-1.0, 2.0, 1.0])
    for grad in (ng.grad, lambda f: ng.jit(ng.grad(f))):
        found = grad(lambda s, x: np.sum(stats.expon.logpdf(x, 0.0, s)))(scale, x)
        np.testing.assert_allclose(found, [nan, -0.25, 0.0])
    alpha = ng.tensor([1.0, -1.0], requires_grad=True)
    stats.dirichlet.logpdf(np.array([0.5, 0.5]), alpha).backward()
    assert np.isnan(alpha.grad.numpy()).all()
    # endless parameters that are valid
    assert ng.grad(lambda x: stats.truncnorm.logpdf(x, -inf, inf))(0.5) == pytest.approx(-0.5)


def test_distribution_functions_of_nan_are_nan():
    for found in (
        ng.stats.bernoulli.cdf(np.nan, 0.3),
        ng.stats.bernoulli.logsf(np.nan, 0.3),
        ng.stats.binom.cdf(np.nan, 3, 0.3),
    ):
        assert np.isnan(float(found))


QUANTILES = {
    "poisson": [(2.5,), (0.0,), (-1.0,)],
    "binom": [(5.0, 0.3), (1000.0, 0.02), (5.0, 0.0), (5.0, 1.0), (0.0, 0.5)],
    "bernoulli": [(0.3,), (1.5,)],
    "nbinom": [(2.5, 0.3), (5.0, 1.0)],
    "geom": [(0.37,), (1e-6,)],
}


def scipys_quantiles(function, q, *given):
    """NaN for shapes that are no distribution's also at 0 and 1, where older SciPy has an end."""
    found = np.asarray(function(q, *given))
    return found if np.isfinite(function(0.5, *given)) else np.full_like(found, np.nan)


@pytest.mark.parametrize(
    ("name", "shapes"), [(name, shapes) for name, rows in QUANTILES.items() for shapes in rows]
)
def test_quantiles_of_integers(name, shapes):
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    q = np.array([0.0, 1e-12, 0.001, 0.21, 0.5, 0.91, 1 - 1e-12, 1.0, -0.1, 1.1, np.nan])
    for function in ("ppf", "isf"):
        expected = scipys_quantiles(getattr(theirs, function), q, *shapes, 2)
        found = getattr(ours, function)(ng.tensor(q), *shapes, loc=2).numpy()
        np.testing.assert_array_equal(found, expected, err_msg=function)


def test_quantiles_of_integers_are_steps():
    q = np.array([0.3, 0.6])

    def whole(mu, loc):
        return np.sum(ng.stats.poisson.ppf(q, mu, loc))

    k = np.arange(6.0)
    np.testing.assert_array_equal(stats.poisson.ppf(scipy.stats.poisson.cdf(k, 2.5), 2.5), k)
    assert ng.grad(whole, argnums=(0, 1))(2.5, 1.0) == (0.0, 2.0)
    np.testing.assert_array_equal(
        ng.jit(lambda q: ng.stats.nbinom.ppf(q, 5, 0.4))(q), scipy.stats.nbinom.ppf(q, 5, 0.4)
    )


@pytest.mark.parametrize("name", ["poisson", "binom", "nbinom", "bernoulli"])
def test_quantiles_of_counts(name):
    q = np.concatenate(
        [[0, 1, -1, 2, np.nan, 1e-100, 1e-12, 1 - 1e-12], np.linspace(0.01, 0.99, 60)]
    )
    function, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for shapes in COUNTS[name]:
        with np.errstate(all="ignore"):
            expected = scipys_quantiles(theirs.ppf, q, *shapes)
        np.testing.assert_array_equal(np.asarray(function.ppf(q, *shapes)), expected)
        below = np.nextafter(theirs.cdf(np.arange(4.0), *shapes), 0)
        np.testing.assert_array_equal(
            np.asarray(function.ppf(below, *shapes)), theirs.ppf(below, *shapes)
        )
    x = ng.tensor([0.2, 0.9], requires_grad=True)
    assert not function.ppf(x, *COUNTS[name][0]).requires_grad


@pytest.mark.parametrize("e", [2.0**-53, 1e-12, 0.3])
def test_the_upper_tail_of_cauchy(e):
    expected = 1 / math.tan(math.pi * (1 - (1 - e)))  # 1 - e is rounded first
    np.testing.assert_allclose(stats.cauchy.ppf(1 - e), expected, rtol=1e-14)
    np.testing.assert_allclose(stats.cauchy.isf(1 - e), -expected, rtol=1e-14)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("kappa", [0.0, 1e5, 2.0, 50.0])
def test_angles(kappa):
    """Against integrals, where SciPy takes a normal distribution, and to the last of the tail."""
    kappa_, width = mpmath.mpf(kappa), 1 / mpmath.sqrt(1 + mpmath.mpf(kappa))

    def tail(kappa, x):
        height = mpmath.exp(kappa) / (2 * mpmath.pi * mpmath.besseli(0, kappa))
        ends = [x, *(x + width * mpmath.mpf(j) / 2 for j in range(1, 40)), mpmath.pi]
        return height * mpmath.quad(
            lambda t: mpmath.exp(kappa * (mpmath.cos(t) - 1)), [t for t in ends if t <= mpmath.pi]
        )

    with mpmath.workdps(25):
        for x in (1e-3, 0.3, 1.5, 3.1):
            expected = tail(kappa_, mpmath.mpf(x))
            if expected < 1e-280:
                continue
            assert stats.vonmises.sf(x, kappa) == pytest.approx(float(expected), rel=1e-12)
            assert stats.vonmises.cdf(-x, kappa) == pytest.approx(float(expected), rel=1e-12)
            found = stats.vonmises.isf(float(expected), kappa)
            assert found == pytest.approx(x, rel=1e-11, abs=1e-11)
            if not kappa:
                continue
            slope = mpmath.diff(lambda k: tail(k, mpmath.mpf(x)), kappa_, h=1e-8 * kappa_)  # noqa: B023
            found = ng.grad(lambda k: stats.vonmises.sf(x, k))(kappa)  # noqa: B023
            assert found == pytest.approx(float(slope), rel=1e-9)
    assert stats.vonmises.cdf(ng.tensor([10.0], dtype=np.float32), 2.0).dtype == np.float32


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", ["cdf", "ppf", "logcdf", "sf", "isf"])
def test_second_derivatives_of_angles(name):
    given = [ng.tensor(a, requires_grad=True) for a in ([0.2, 0.6, 0.9], 2.0, 0.1)]
    function = getattr(stats.vonmises, name)
    assert gradcheck(function, given)
    assert gradgradcheck(function, given)
    fast = ng.jit(ng.grad(lambda x, k: function(x, k).sum()))
    each = ng.vmap(ng.grad(function))
    x, kappa = np.array([0.2, 0.6]), np.array([2.0, 3.0])
    np.testing.assert_allclose(fast(x, kappa), each(x, kappa), rtol=1e-12)


ENDS = {  # where densities are 0: shapes, place, slope and bend from inside
    "gamma": ((2.0,), 0.0, 1.0, -2.0), "chi2": ((4.0,), 0.0, 0.25, -0.25),
    "weibull_min": ((2.0,), 0.0, 2.0, 0.0), "rayleigh": ((), 0.0, 1.0, 0.0),
    "f": ((4.0, 5.0), 0.0, 5.6, -40.32), "beta": ((2.0, 2.0), 0.0, 6.0, -12.0),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_densities_at_an_end_of_the_support(name):
    shapes, place, slope, bend = ENDS[name]
    function = getattr(stats, name).pdf
    assert function(place, *shapes) == 0.0
    first = ng.grad(function)
    assert first(place, *shapes) == pytest.approx(slope)
    assert ng.grad(first)(place, *shapes) == pytest.approx(bend, abs=1e-12)
    assert ng.jit(lambda x: first(x, *shapes))(place) == pytest.approx(slope)
    h = 1e-6
    theirs = getattr(scipy.stats, name).pdf
    assert theirs(place + h, *shapes) / h == pytest.approx(slope, rel=1e-4)
    by_shapes = ng.grad(function, argnums=tuple(range(len(shapes) + 3)))(place, *shapes, 0.0, 2.0)
    assert np.isfinite(by_shapes).all()
    assert not any(by_shapes[1 : 1 + len(shapes)])


def test_chances_of_zero_and_one():
    k = np.array([0.0, 1.0])
    np.testing.assert_allclose(ng.jacobian(lambda p: stats.bernoulli.pmf(k, p))(0.0), [-1, 1])
    np.testing.assert_allclose(ng.jacobian(lambda p: stats.bernoulli.pmf(k, p))(1.0), [-1, 1])
    assert ng.grad(lambda m: stats.poisson.pmf(1.0, m))(0.0) == pytest.approx(1.0)
    assert ng.grad(lambda p: stats.binom.pmf(1.0, 5.0, p))(0.0) == pytest.approx(5.0)
    assert ng.grad(lambda p: stats.binom.pmf(4.0, 5.0, p))(1.0) == pytest.approx(-5.0)
    assert ng.grad(lambda p: stats.binom.pmf(-1.0, 5.0, p))(1.0) == 0.0
    assert ng.grad(lambda p: stats.nbinom.pmf(1.0, 3.0, p))(1.0) == pytest.approx(-3.0)
    assert ng.grad(lambda p: stats.geom.pmf(2.0, p))(1.0) == pytest.approx(-1.0)
    p = np.array([0.0, 0.4, 0.6])
    np.testing.assert_allclose(ng.grad(lambda p: stats.categorical.pmf(0, p))(p), [1, 0, 0])
    x = np.array([[0, 2, 1], [1, 1, 1], [1, 1, 2]])
    np.testing.assert_allclose(
        stats.multinomial.pmf(x, 3, p), scipy.stats.multinomial.pmf(x, 3, p), rtol=1e-12
    )
    slope = ng.grad(lambda p: stats.multinomial.pmf(np.array([1, 2, 1]), 4, p))(p)
    np.testing.assert_allclose(slope, [12 * 0.16 * 0.6, 0, 0], rtol=1e-12, atol=1e-15)


def test_angles_in_the_middle_have_the_density_as_slope():
    for x in (0.0, -0.0, np.pi, -np.pi):
        slope = ng.grad(stats.vonmises.cdf)(x, 2.0)
        assert slope == pytest.approx(scipy.stats.vonmises.pdf(x, 2.0), rel=1e-12)


def test_quantiles_of_half_lines_by_their_end():
    assert ng.grad(stats.truncnorm.ppf, argnums=2)(0.5, 0.0, np.inf) == 0.0
    assert ng.grad(stats.truncnorm.ppf, argnums=1)(0.5, -np.inf, 1.0) == 0.0


@pytest.mark.parametrize("name", [*SHAPES, *COUNTS])
def test_what_follows_from_others(name):
    if name == "skewnorm":
        pytest.skip("there is no quantile")
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    shapes, loc = (SHAPES | COUNTS)[name][0], 1
    for function, args in (
        ("median", ()), ("interval", (0.8,)), ("support", ()), ("moment", (2,)), ("stats", ()),
    ):  # fmt: skip
        if name == "cauchy" and function in ("moment", "stats"):
            continue
        expected = getattr(theirs, function)(*args, *shapes, loc=loc)
        found = getattr(ours, function)(*args, *shapes, loc=loc)
        if name == "vonmises" and function in ("support", "moment"):
            continue  # SciPy's is one turn; and an integral
        np.testing.assert_allclose(np.asarray(found, float), expected, rtol=1e-7, err_msg=function)
    np.testing.assert_array_equal(ours.stats(*shapes, moments="v"), ours.var(*shapes))
    assert isinstance(ours.stats(*shapes, moments="v"), ng.Tensor | np.ndarray | float)
    with pytest.raises(NumgradTypeError, match="moment"):
        ours.moment(3, *shapes)
    with pytest.raises(NumgradTypeError, match="moments"):
        ours.stats(*shapes, moments="s")


def test_functions_that_distributions_lack_say_what_to_do():
    with pytest.raises(AttributeError, match="pdf"):
        stats.norm.pmf  # noqa: B018
    assert not hasattr(stats.poisson, "pdf")
    x = np.array([1.0, 2.5])
    theta = (2.0, 0.5, 1.5)
    np.testing.assert_allclose(stats.gamma.nnlf(theta, x), scipy.stats.gamma.nnlf(theta, x))


@pytest.mark.parametrize("kappa", [0.0, 0.3, 19.0, 20.5, 300.0])
def test_the_variance_of_angles(kappa):
    with mpmath.workdps(30):
        parts = [mpmath.quad(lambda x, n=n: x**n * mpmath.exp(kappa * (mpmath.cos(x) - 1)),
                             [0, 0.1, 0.5, mpmath.pi]) for n in (0, 2)]  # fmt: skip
    assert stats.vonmises.var(kappa) == pytest.approx(float(parts[1] / parts[0]), rel=1e-14)
    if kappa:
        assert gradgradcheck(stats.vonmises.var, [ng.tensor(kappa, requires_grad=True)])


@pytest.mark.parametrize("t", [-30.0, -0.31, -0.29, 0.2, 0.5, 30.0])
def test_continuous_bernoulli_is_a_truncated_exponential_distribution(t):
    """Which it is of ``x`` where the density falls, of ``1 - x`` where it rises."""
    own, truth = stats.continuous_bernoulli(t), scipy.stats.truncexpon(abs(t), 0, 1 / abs(t))

    def of(x):
        return 1 - x if t > 0 else x

    x = np.array([0.0, 1e-5, 0.3, 1.0])
    np.testing.assert_allclose(own.logpdf(x), truth.logpdf(of(x)), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(own.cdf(x), truth.sf(of(x)) if t > 0 else truth.cdf(x), rtol=1e-10)
    q = np.array([0.2, 0.9])
    np.testing.assert_allclose(own.ppf(q), of(truth.ppf(of(q))), rtol=1e-11)
    np.testing.assert_allclose(own.mean(), of(truth.mean()), rtol=1e-11)
    np.testing.assert_allclose(own.var(), truth.var(), rtol=1e-10)
    np.testing.assert_allclose(own.entropy(), truth.entropy(), rtol=1e-11, atol=1e-14)


def test_continuous_bernoulli_near_the_uniform_distribution():
    t = ng.tensor([-1e-9, 0.0, 2e-5], requires_grad=True)
    d = stats.continuous_bernoulli(t)
    # the density is 1 + t (x - 1/2) + ...
    slopes = {"cdf": -0.5 * 0.3 * 0.7, "ppf": 0.5 * 0.3 * 0.7, "logpdf": 0.3 - 0.5}
    for name, slope in slopes.items():
        (found,) = ng.autograd.grad(getattr(d, name)(0.3).sum(), t)
        np.testing.assert_allclose(found.numpy(), slope, rtol=1e-4)
    (found,) = ng.autograd.grad(d.mean().sum(), t)
    np.testing.assert_allclose(found.numpy(), 1 / 12, rtol=1e-9)
    np.testing.assert_allclose(d.var().numpy(force=True), 1 / 12, rtol=1e-9)
