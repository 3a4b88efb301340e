"""Integrals of functions and of samples against SciPy's, their gradients against differences."""

import numpy as np
import pytest
from scipy import integrate

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

I = ng.integrate  # noqa: E741
RNG = np.random.default_rng(5)
Y = RNG.normal(size=(2, 9))
X = np.cumsum(RNG.uniform(0.5, 1.5, 9))


def leaf(value):
    return ng.tensor(value, requires_grad=True)


# ----------------------------------------------------------------------------------------- samples


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9])
def test_cumulative_simpson(count):
    y, x = Y[:, :count], X[:count]
    for options in ({}, {"dx": 0.5}, {"x": x}, {"x": x + 0 * y}, {"initial": 2.0}):
        true = integrate.cumulative_simpson(y, **options)
        found = I.cumulative_simpson(y, **options).numpy()
        np.testing.assert_allclose(found, true, rtol=1e-12, atol=1e-13)
    true = integrate.cumulative_simpson(y.T, x=x, axis=0, initial=[[3.0, 4.0]])
    found = I.cumulative_simpson(y.T, x=x, axis=0, initial=np.array([[3.0, 4.0]]))
    np.testing.assert_allclose(found.numpy(), true, rtol=1e-12)


@pytest.mark.parametrize(
    "x", [[0.0, 0, 1], [0.0, 1, 1], [1.0, 1, 1, 1], [0.0, 0.4, 1, 1], [3, 2, 2, 0]]
)
def test_simpson_of_samples_at_one_place(x):
    x, y = np.array(x), Y[:, : len(x)]
    np.testing.assert_allclose(I.simpson(y, x).numpy(), integrate.simpson(y, x=x), rtol=1e-12)
    np.testing.assert_allclose(ng.jit(I.simpson)(y, x), integrate.simpson(y, x=x), rtol=1e-12)
    gradients = ng.grad(lambda y, x: ng.sum(I.simpson(y, x)), argnums=(0, 1))(y, x * 1.0)
    assert all(np.isfinite(g).all() for g in gradients)
    weights = [integrate.simpson(unit, x=x) for unit in np.eye(len(x))]
    np.testing.assert_allclose(gradients[0], weights + 0 * y, rtol=1e-12, atol=1e-14)
    assert I.simpson(y.astype(np.float32), x.astype(np.float32)).dtype == np.float32


def test_gradients_of_integrals_of_samples():
    def function(y, x, start):
        return I.cumulative_simpson(y, x=x, initial=start)

    inputs = leaf(Y[0, :6]), leaf(X[:6]), leaf([0.5])
    assert gradcheck(function, inputs, fast_mode=True)
    assert gradcheck(lambda y, dx: I.romb(y[:5], dx), (leaf(Y[0]), leaf(0.3)))
    single = Y.astype(np.float32)
    assert I.romb(single).dtype == I.cumulative_simpson(single).dtype == np.float32


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_romb(count):
    for y in (Y[:, :count], Y[:, :count] * 1j):
        np.testing.assert_allclose(I.romb(y, 0.5).numpy(), integrate.romb(y, 0.5), rtol=1e-12)
    np.testing.assert_allclose(I.romb(Y[:, :count].T, axis=0), integrate.romb(Y[:, :count]))


# --------------------------------------------------------------------------------------- functions


def test_fixed_quad():
    for n in (1, 5, 8):
        found, nothing = I.fixed_quad(lambda x, k: np.exp(-k * x), 0.5, 2.0, (1.5,), n)
        true, _ = integrate.fixed_quad(lambda x, k: np.exp(-k * x), 0.5, 2.0, (1.5,), n)
        np.testing.assert_allclose(found.numpy(), true, rtol=1e-14)
        assert nothing is None

    def area(a, b, k):
        return I.fixed_quad(lambda x: np.stack([np.exp(-k * x), k * x]), a, b)[0]

    assert gradcheck(area, (leaf(0.5), leaf(2.0), leaf(1.5)))
    assert I.fixed_quad(np.cos, 1.0, 1.0)[0].item() == 0.0


@pytest.mark.slow(cases=0)
def test_fixed_quad_compiles():
    def area(b, k):
        return I.fixed_quad(lambda x, k: np.exp(-k * x), 0.0, b, (k,))[0]

    found = ng.jit(ng.value_and_grad(area, argnums=(0, 1)))(2.0, 1.5)
    np.testing.assert_allclose(found[0], area(2.0, 1.5))
    np.testing.assert_allclose(found[1], ng.grad(area, argnums=(0, 1))(2.0, 1.5))
    np.testing.assert_allclose(ng.vmap(area)(np.array([1.0, 2.0]), np.ones(2))[1], area(2.0, 1.0))


def test_arrays():
    def powers(x, k):
        return np.stack([np.exp(-k * x), k * x, k / (1 + x * x)])

    for options in ({}, {"norm": "max", "points": (0.3,)}):
        found, error = I.quad_vec(powers, 0.0, 2.0, args=(ng.tensor(1.5),), **options)
        true, _ = integrate.quad_vec(lambda x: powers(x, 1.5), 0.0, 2.0, **options)
        np.testing.assert_allclose(found.numpy(), true, rtol=1e-9)
        assert error < 1e-7
    whole = I.quad_vec(lambda x: np.exp(-x * x), -np.inf, np.inf)[0]
    np.testing.assert_allclose(whole, np.sqrt(np.pi), rtol=1e-8)
    assert gradcheck(
        lambda k, b: I.quad_vec(powers, 0.0, b, args=(k,))[0],
        (leaf(1.5), leaf(2.0)),
        fast_mode=True,
    )


def closing_over(k, b):
    return ng.quad(lambda x: np.exp(-k[0] * x * x) * k[1], 0.0, b)[0]


def mixed(scale, p):
    """Intermediate results, beside parameters, and in a part of the interval."""
    rate = np.exp(scale)

    def integrand(x, p):
        return p * np.exp(-rate * x) if x < 1 else p * x

    return ng.quad(integrand, 0, 3, (p,), points=[1])[0]


def test_gradients_of_what_an_integrand_closes_over():
    assert gradcheck(closing_over, (leaf([0.7, 2.0]), leaf(1.2)), fast_mode=True)
    assert gradcheck(mixed, (leaf(0.5), leaf(1.3)), fast_mode=True)
    found = ng.grad(lambda k: ng.quad(lambda x: np.exp(-k * x), 0, np.inf)[0])(2.0)
    np.testing.assert_allclose(found, -0.25, rtol=1e-7)
    with ng.no_grad():
        assert not ng.asarray(closing_over(leaf([0.7, 2.0]), 1.0)).requires_grad


@pytest.mark.slow(cases=0)
def test_second_gradients_of_what_an_integrand_closes_over():
    assert gradgradcheck(closing_over, (leaf([0.7, 2.0]), leaf(1.2)))
    assert gradgradcheck(mixed, (leaf(0.5), leaf(1.3)))


def test_what_is_closed_over_may_be_a_limit_and_a_parameter_too():
    def function(k):
        return ng.quad(lambda x, a: k * x * a, 0, k, (k,))[0]  # k**4 / 2

    derivatives = function, ng.grad(function), ng.grad(ng.grad(function))
    np.testing.assert_allclose([float(f(1.5)) for f in derivatives], [2.53125, 6.75, 13.5])


def test_a_closure_that_no_point_showed_is_not_lost():
    k = leaf(2.0)
    with pytest.raises(ng.NumgradRuntimeError, match="args"):
        ng.quad(lambda x: k * x if 0.7 < x < 0.8 else x, 0, 1, points=[0.7, 0.8])


# ------------------------------------------------------------------------------ several variables


def wave(z, y, x, k):
    return np.cos(k * x * y) * z + k


def test_nested_integrals():
    def tilted(y, x, k):
        return np.cos(k * x) * y + k

    ranges = [lambda x, k: (0.0, x * k), (0.0, 1.0)]
    found, error = I.nquad(tilted, ranges, (0.8,))
    true, _ = integrate.nquad(tilted, ranges, (0.8,))
    np.testing.assert_allclose(found, true, rtol=1e-10)
    assert 0 < error < 1e-8


def test_limits_that_are_numbers_are_followed_by_all_modes():
    area = lambda r, h: I.dblquad(lambda y, x: x * y, 0, r, 0, h)[0]  # noqa: E731
    value, slope = ng.jvp(area, (2.0, 3.0), (1.0, 10.0))  # r**2 * h**2 / 4
    np.testing.assert_allclose([value, slope], [9.0, 2 * 9 / 2 + 10 * 4 * 3 / 2])
    np.testing.assert_allclose(ng.vmap(area, (None, 0))(2.0, np.array([1.0, 3.0])), [1.0, 9.0])
    closed = lambda h: I.dblquad(lambda y, x: x * y, 0, 2, 0, lambda x: h * x)[0]  # noqa: E731
    np.testing.assert_allclose(ng.grad(closed)(2.0), 8.0)
    for call in (lambda: ng.jvp(closed, (2.0,), (1.0,)), lambda: ng.vmap(closed)(np.ones(2))):
        with pytest.raises(ng.NumgradError, match=r"dblquad: .* for limits take nquad"):
            call()
    ranges = [lambda x, h: (0.0, h * x), (0.0, 2.0)]
    passed = lambda h: I.nquad(lambda y, x, h: x * y, ranges, (h,))[0]  # noqa: E731
    np.testing.assert_allclose(ng.jvp(passed, (2.0,), (1.0,)), [8.0, 8.0])  # 2 * h**2


def test_numbers_of_nested_integrals():
    calls = []

    def integrand(z, y, x):
        calls.append(None)
        return x * y * z

    value, error = I.tplquad(integrand, 1, 2, 2, 3, 0, 1)
    assert type(value) is float
    assert error < 1e-9
    assert abs(value - 1.875) < 1e-12
    assert len(calls) == 21**3  # SciPy's alone: nothing is looked for that gradients might go to
    with ng.no_grad():
        assert abs(I.tplquad(integrand, 1, 2, 2, 3, 0, leaf(1.0))[0].item() - 1.875) < 1e-12


@pytest.mark.slow(cases=0)
def test_triple_integrals_and_options():
    found = I.tplquad(wave, 0, 1, 0, lambda x: x, lambda x, y: x * y, 2.0, (0.8,))[0]
    true = integrate.tplquad(
        wave, 0, 1, lambda x: 0, lambda x: x, lambda x, y: x * y, lambda x, y: 2.0, (0.8,)
    )[0]
    np.testing.assert_allclose(found, true, rtol=1e-9)
    found = I.dblquad(lambda y, x: np.exp(-x * x - y * y), -np.inf, np.inf, 0, np.inf)[0]
    np.testing.assert_allclose(found, np.pi / 2, rtol=1e-7)
    options = {"epsabs": 1e-4}, lambda x: {"points": [x / 2]}
    found = I.nquad(lambda y, x: abs(y - x / 2), [lambda x: (0, x), (0, 1)], opts=options[::-1])[0]
    np.testing.assert_allclose(found, 1 / 12, rtol=1e-6)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize(
    "area",
    [
        lambda r, k: I.dblquad(lambda y, x: x * y, 0, r, 0, lambda x: x * k)[0],
        lambda r, k: I.dblquad(lambda y, x, k: k * x * y * y, 0, r, 0, lambda x: x * k, (k,))[0],
        lambda r, k: I.nquad(lambda y, x: np.exp(-k * x * y), [(0.0, 1.0), (0.0, r)])[0],
    ],
)
def test_gradients_of_double_integrals(area):
    assert gradcheck(area, (leaf(1.2), leaf(0.7)), fast_mode=True)


@pytest.mark.slow(cases=0)
def test_second_gradients_of_double_integrals():
    def area(r, k):
        return I.dblquad(lambda y, x, k: k * x * y * y, 0, r, 0, lambda x: x * k, (k,))[0]

    assert gradgradcheck(area, (leaf(1.2), leaf(0.7)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: I.romb(np.ones(4)), "power of 2"),
        (lambda: I.cumulative_simpson(np.ones(4), initial=[1.0, 2.0]), "initial of shape"),
        (lambda: I.fixed_quad(np.cos, 0, np.inf), "must be finite"),
        (lambda: I.fixed_quad(np.cos, 0, 1, n=0), "at least 1"),
        (lambda: I.cumulative_simpson(np.ones(4), x=[3.0, 2.0, 1.0, 0.0]), "strictly increasing"),
        (lambda: I.cumulative_simpson(np.ones(3), x=leaf([0.0, 1.0, 1.0])), "strictly increasing"),
        (
            lambda: ng.vmap(lambda y: I.cumulative_simpson(y, x=[3, 2, 1]))(np.ones((1, 3))),
            "strictly",
        ),
        (lambda: I.nquad(np.cos, []), "ranges is empty"),
        (lambda: I.nquad(np.cos, [(0, 1)], opts=[{}, {}]), "2 options for 1 ranges"),
        (lambda: I.nquad(lambda x: 1j * x, [(0, 1)]), "nquad: the function returned .*complex"),
        (lambda: I.nquad(lambda x: np.ones(2), [(0, 1)]), "nquad: the function returned shape"),
        (lambda: I.nquad(np.cos, [(0, [1, 2])]), "nquad: the limit high"),
        (lambda: I.quad_vec(np.cos, [0, 1], 1), "quad_vec: the limit a"),
        (lambda: ng.jit(lambda b: I.quad_vec(np.cos, 0, b)[0])(1.0), "fixed_quad"),
    ],
)
def test_errors(call, words):
    with pytest.raises(ng.NumgradError, match=words):
        call()


def test_gradients_of_what_an_integrand_closes_over_in_a_branch():
    def area(p):
        a, b = p[0], p[1]
        return ng.quad(lambda x: b * x if 0.5 < x < 0.6 else a * x, 0, 1, points=(0.5, 0.6))[0]

    np.testing.assert_allclose(ng.grad(area)(np.array([2.0, 3.0])), [0.445, 0.055])
