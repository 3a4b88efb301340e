"""Sampled derivatives and integrals, interpolation, convolution, polynomials, parts of numbers."""

import numpy as np
import pytest
import scipy.integrate

import numgrad as ng
from numgrad.codegen import threads as threads_of_kernels
from numgrad.testing import gradcheck, gradgradcheck
from tests.quiet import quiet

rng = np.random.default_rng(7)
X = rng.normal(size=(3, 5))
POINTS = np.array([0.0, 1.0, 2.5, 3.0, 4.5])


def leaf(x):
    return ng.tensor(x, requires_grad=True)


def test_derivatives_of_samples():
    f, x = leaf(X), leaf(POINTS)
    for order in (1, 2):
        assert gradcheck(lambda f, x, k=order: ng.gradient(f, x, axis=1, edge_order=k), (f, x))
    assert gradcheck(lambda f, h: ng.gradient(f, h, axis=0), (f, leaf(0.3)))
    assert gradgradcheck(lambda f, x: ng.gradient(f[0], x), (f, x))
    fast = ng.jit(ng.grad(lambda f: (ng.gradient(f, 0.5)[1] ** 2).sum()))
    for a in (X, rng.normal(size=(4, 7))):
        expected = ng.grad(lambda f: (ng.gradient(f, 0.5)[1] ** 2).sum())(a)
        np.testing.assert_allclose(fast(a), expected)


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid", "simpson"])
def test_integrals_are_those_of_scipy(name):
    ours, theirs = getattr(ng, name), getattr(scipy.integrate, name)
    for y in (X, X[:, :4], X[:, :2], X.T[:3], np.arange(5)):
        points = POINTS[: y.shape[-1]]
        for keywords in ({}, {"dx": 0.5}, {"x": points}, {"x": y + 9 * np.arange(y.shape[-1])}):
            found = ours(y, **keywords).numpy()
            np.testing.assert_allclose(found, theirs(y, **keywords), rtol=1e-12)
    np.testing.assert_allclose(ours(X.T, axis=0).numpy(), theirs(X.T, axis=0))
    y, x = leaf(X[:, :4]), leaf(POINTS[:4])
    assert gradcheck(ours, (y, x))
    assert gradgradcheck(lambda y, x: ours(y[0], x), (y, x))


def test_cumulative_integrals_from_zero():
    found = ng.cumulative_trapezoid(X, initial=0)
    np.testing.assert_allclose(found.numpy(), scipy.integrate.cumulative_trapezoid(X, initial=0))
    assert ng.cumulative_trapezoid([2.0], initial=0).tolist() == [0.0]


def test_interpolation():
    f = rng.normal(size=5)
    x = np.array([-1.0, 0.4, 1.0, 2.7, 3.0, 4.5, 6.0, np.nan, np.inf, -np.inf])
    for values in (f, f + 1j * f[::-1]):
        for keywords in ({}, {"left": 7.0}, {"right": -7.0}, {"period": 3.7}):
            if keywords.get("period"):
                x = x[:7]
            found = ng.interp(x, POINTS, values, **keywords).numpy()
            np.testing.assert_allclose(found, np.interp(x, POINTS, values, **keywords), rtol=1e-12)
    t = leaf([0.4, 2.7, 3.2, 9.0])
    assert gradcheck(ng.interp, (t, leaf(POINTS), leaf(f)))
    assert gradgradcheck(ng.interp, (t, leaf(POINTS), leaf(f)))
    assert gradcheck(lambda *a: ng.interp(*a, period=3.7), (t, leaf(POINTS), leaf(f)))
    at_points = leaf(POINTS)
    ng.interp(at_points, POINTS, f).sum().backward()
    slopes = np.append(np.diff(f) / np.diff(POINTS), 0)
    np.testing.assert_allclose(at_points.grad.numpy(), slopes)
    fast = ng.jit(ng.grad(lambda x, f: ng.interp(x, ng.arange(5.0), f).sum(), argnums=(0, 1)))
    plain = ng.grad(lambda x, f: ng.interp(x, ng.arange(5.0), f).sum(), argnums=(0, 1))
    for a, b in zip(fast(X, f), plain(X, f), strict=True):
        np.testing.assert_allclose(a, b)


def test_interpolation_at_many_points(monkeypatch):
    """NumPy's bits; gradients are the formulas', whatever the number of threads."""
    monkeypatch.setattr(threads_of_kernels, "worth", lambda _: ng.get_num_threads())
    before = ng.get_num_threads()
    for n in (1, 2, 7, 300):
        xp, fp = np.sort(rng.normal(size=n)), rng.normal(size=n)
        xp[n // 2 : n // 2 + 2] = xp[n // 2]  # a jump
        x = rng.normal(size=40_000)
        x[:3], x[3:6], x[6 : 6 + n] = np.nan, (np.inf, -np.inf, 0), xp
        for at in (x, np.sort(x), x.reshape(200, 200).T):
            for keywords in ({}, {"left": -3.0, "right": 4.0}):
                found = ng.interp(at, xp, fp, **keywords).numpy()
                np.testing.assert_array_equal(found, np.interp(at, xp, fp, **keywords))
        gradients, weights = [], rng.normal(size=x.size)
        for threads, again in ((1, False), (2, False), (2, True)):
            ng.set_num_threads(threads)
            leaves = [leaf(a) for a in (x, xp, fp)]
            y = ng.interp(*leaves)
            gradients.append(ng.autograd.grad(y, leaves, weights, create_graph=again))
        ng.set_num_threads(before)
        for one, two, formula in zip(*gradients, strict=True):
            np.testing.assert_array_equal(one.numpy(), two.numpy())
            np.testing.assert_allclose(one.numpy(), formula.detach().numpy(), rtol=1e-7, atol=1e-8)


def test_interpolation_of_nan_at_one_point():
    x, f = np.array([np.nan, 0.0, 3.0]), np.array([5.0])
    for form in (lambda f: f, ng.jit):
        found = form(lambda x, f: ng.interp(x, np.ones(1), f, left=2.0))(x, f)
        np.testing.assert_array_equal(found, np.interp(x, [1.0], f, left=2.0))
        both = ng.grad(lambda x, f: np.sum(ng.interp(x, np.ones(1), f)), argnums=(0, 1))
        for a, b in zip(form(both)(x, f), ([0, 0, 0], [3]), strict=True):
            np.testing.assert_array_equal(a, b)


def test_interpolation_between_infinite_values():
    for fp in ([-np.inf, 1.0, np.inf, np.inf], [0.0, np.nan, 1.0, -np.inf], [np.inf] * 4):
        x = np.linspace(-1.0, 4.0, 21)
        found = ng.interp(x, np.arange(4.0), fp).numpy()
        np.testing.assert_array_equal(found, np.interp(x, np.arange(4.0), fp))


def test_gradients_of_values_beyond_the_points():
    x, left, right = leaf([-1.0, 0.5, 9.0]), leaf(2.0), leaf(3.0)
    f = leaf([1.0, 5.0, 4.0])
    y = ng.interp(x, np.arange(3.0), f, left, right)
    assert y.tolist() == [2.0, 3.0, 3.0]
    y.sum().backward()
    assert [a.grad.tolist() for a in (x, left, right, f)] == [[0, 4, 0], 1, 1, [0.5, 0.5, 0]]
    z = leaf(np.array([1.0 + 2j, 3.0, -1j]))
    assert gradcheck(lambda z, x: ng.interp(x, np.arange(3.0), z), (z, leaf([0.3, 1.6])))


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_sliding_products(name):
    ours, theirs = getattr(ng, name), getattr(np, name)
    for n, m in ((1, 1), (4, 1), (5, 2), (5, 4), (4, 4), (2, 5), (3, 6)):
        a, v = rng.normal(size=n), rng.normal(size=m)
        for mode in ("full", "same", "valid"):
            for b in (v, v + 1j * v[::-1]):
                np.testing.assert_allclose(
                    ours(a, b, mode).numpy(), theirs(a, b, mode), rtol=1e-12, atol=1e-13
                )
    for mode in ("full", "same", "valid"):
        a, v = leaf(rng.normal(size=5) + 1j), leaf(rng.normal(size=3) - 2j)
        assert gradcheck(lambda a, v, mode=mode: ours(a, v, mode), (a, v))
    a, v = leaf(X[0]), leaf(X[1, :2])
    assert gradgradcheck(lambda a, v: ours(a, v, "same"), (a, v))
    compiled = ng.jit(lambda a, v: ours(a * 2, v, "same"))
    np.testing.assert_allclose(compiled(X[0], X[1]), theirs(X[0] * 2, X[1], "same"))


def test_angles_are_unwrapped_with_a_gradient_of_one():
    x = np.cumsum(rng.uniform(-3, 3, 40))
    t = leaf(np.angle(np.exp(1j * x)))
    y = ng.unwrap(t)
    np.testing.assert_allclose(y.detach().numpy() - y[0].item(), x - x[0])
    y.sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), np.ones(40))


def test_polynomials():
    p, x = leaf(X[0]), leaf(X[1])
    assert gradcheck(ng.polyval, (p, x))
    assert gradcheck(lambda p, x: ng.polydiv(p, x[:3])[0], (p, x))
    assert gradcheck(lambda p, x: ng.polydiv(p, x[:3])[1], (p, x))
    assert gradcheck(lambda p: ng.polyint(ng.polyder(p), 2, 1.0), (p,))
    assert gradcheck(lambda x: ng.poly(x[:4]), (x,))
    assert gradgradcheck(lambda x: ng.vander(x, 3), (x,))
    points = np.arange(5.0)
    assert gradcheck(lambda y, w: ng.polyfit(points, y, 2, w=w + 3), (p, x))
    assert gradgradcheck(lambda x, y: ng.polyfit(x + points, y, 1), (leaf(X[2] * 0.1), p))
    short = [quiet(lib.polyfit, X[0], X[1], 2, rcond=0.5) for lib in (np, ng)]  # of lower rank
    np.testing.assert_allclose(*short)
    assert abs(short[0] - np.polyfit(X[0], X[1], 2)).max() > 0.1
    compiled = ng.jit(lambda p, x: ng.polyval(ng.polymul(p, ng.polyder(p)), x))
    expected = np.polyval(np.polymul(X[0], np.polyder(X[0])), X[1])
    np.testing.assert_allclose(compiled(X[0], X[1]), expected)


# --------------------------------------------------------------------------------- parts of numbers


def test_sinc_near_zero():
    x = np.array([0.0, 1e-9, 1e-3, 0.0318, 0.0319, 0.5, 30.0])
    t = leaf(x)
    y = ng.sinc(t)
    np.testing.assert_allclose(y.detach().numpy(), np.sinc(x), rtol=1e-15, atol=1e-16)
    y.sum().backward()
    mpmath = pytest.importorskip("mpmath")
    slope = [float(mpmath.diff(lambda v: mpmath.sincpi(v), v)) if v else 0.0 for v in x]
    np.testing.assert_allclose(t.grad.numpy(), slope, rtol=1e-11, atol=1e-300)
    (second,) = ng.autograd.grad(
        ng.autograd.grad(ng.sinc(z := leaf(0.0)), z, create_graph=True)[0], z
    )
    np.testing.assert_allclose(second.item(), -(np.pi**2) / 3)
    assert gradgradcheck(ng.sinc, (leaf([0.2, 1.3]),))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
def test_parts_are_those_of_numpy(dtype):
    x = (X * 20).astype(dtype)
    y = np.array([3, -4, 5, 2, 1]).astype(dtype)
    for name in ("modf", "frexp", "fabs", "spacing", "isposinf", "isneginf"):
        found, expected = getattr(ng, name)(x), getattr(np, name)(x)
        for a, b in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
            np.testing.assert_array_equal(a, b)
            assert np.asarray(a).dtype == b.dtype, name
    names = ("gcd", "lcm", "divmod") if x.dtype.kind == "i" else ("nextafter", "divmod")
    for name in names:
        found, expected = getattr(ng, name)(x, y), getattr(np, name)(x, y)
        np.testing.assert_array_equal(np.stack(found), expected)
        np.testing.assert_array_equal(np.stack(getattr(np, name)(ng.tensor(x), y)), expected)
    powers = np.arange(5)
    np.testing.assert_array_equal(ng.ldexp(x, powers).numpy(), np.ldexp(x, powers))
    if x.dtype.kind == "i":
        np.testing.assert_array_equal(ng.bitwise_count(x).numpy(), np.bitwise_count(x))


def test_gradients_of_parts():
    t = leaf([[1.3, -2.6], [0.2, 5.0]])
    powers = np.array([3, -2])
    for function, expected in (
        (lambda t: ng.modf(t)[0], np.ones((2, 2))),
        (lambda t: ng.frexp(t)[0], [[0.5, 0.25], [4.0, 0.125]]),
        (lambda t: ng.ldexp(t, powers), [[8.0, 0.25], [8.0, 0.25]]),
        (lambda t: ng.nextafter(t, 9.0), np.ones((2, 2))),
        (ng.spacing, np.zeros((2, 2))),
        (lambda t: ng.divmod(t, 2.0)[1], np.ones((2, 2))),
    ):
        np.testing.assert_array_equal(ng.autograd.grad(function(t).sum(), t)[0].numpy(), expected)
        found = ng.jacfwd(lambda x, f=function: f(x))(t.detach().numpy())
        np.testing.assert_array_equal(found.sum(axis=(2, 3)), expected)
    small = leaf([2.0, 3.0])
    ng.ldexp(small, np.array([[1], [2]])).sum().backward()
    np.testing.assert_array_equal(small.grad.numpy(), [6.0, 6.0])
    for value in (np.inf, -np.inf, np.nan, 0.0):
        np.testing.assert_array_equal([p.item() for p in ng.modf(value)], np.modf(value))
    compiled = ng.jit(lambda x: ng.frexp(x)[0] + ng.ldexp(x, ng.gcd(4, 6)) + ng.modf(x)[0])
    expected = np.frexp(X)[0] + np.ldexp(X, 2) + np.modf(X)[0]
    np.testing.assert_allclose(compiled(X), expected)


@pytest.mark.parametrize("kind", [np.float64, np.complex128, np.float32])
def test_roots_and_their_gradients(kind):
    p = np.array([2.0, -3.0, 1.0, 5.0, -1.0], kind)
    p += np.arange(5) * (0.5j if kind == np.complex128 else 0)
    expected = np.roots(p)
    np.testing.assert_allclose(ng.roots(p), expected, rtol=1e-6)
    np.testing.assert_allclose(ng.jit(ng.roots)(p), expected, rtol=1e-6)
    np.testing.assert_allclose(ng.roots([0, 0, 2, 4, 0]), [-2, 0])
    assert ng.roots([3]).shape == ng.roots([0, 0]).shape == (0,)
    if kind != np.float32:
        x = ng.tensor(p, requires_grad=True)
        assert gradcheck(np.roots, (x,))
        assert gradgradcheck(np.roots, (x,))
    # the quadratic formula, of many at once, and where a root is zero
    q = np.array([[1.0, -3.0, 2.0], [2.0, 1.0, 0.0]])
    rows = ng.vmap(ng.grad(lambda p: np.abs(ng.roots(p)).max()))(q)

    def high(a, b, c):
        return (abs(b) + np.sqrt(b * b - 4 * a * c)) / (2 * a)

    for row, abc in zip(rows, q, strict=True):
        steps = [high(*(abc + 1e-6 * e)) - high(*(abc - 1e-6 * e)) for e in np.eye(3)]
        np.testing.assert_allclose(row, np.array(steps) / 2e-6, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ng.gradient(X[:1]), ValueError, r"gradient: axis 0 of shape \(1, 5\)"),
        (lambda: ng.gradient(X, 1.0, 2.0, 3.0), TypeError, "gradient: 3 spacings for 2 axes"),
        (lambda: ng.gradient(X[0], POINTS[:3]), ValueError, "gradient: coordinates of shape"),
        (lambda: ng.gradient(X, edge_order=3), ValueError, "gradient: edge_order"),
        (lambda: ng.trapezoid(X, POINTS[:2]), ValueError, "trapezoid: 2 points"),
        (lambda: ng.cumulative_trapezoid(X, initial=2), ValueError, "cumulative_trapezoid: init"),
        (lambda: ng.interp(X, POINTS, POINTS[:2]), ValueError, r"interp: .*\(5,\) and \(2,\)"),
        (lambda: ng.interp(X, [], []), ValueError, "interp: needs"),
        (lambda: ng.interp(X * 1j, POINTS, POINTS), TypeError, "interp: .*complex"),
        (lambda: ng.convolve(X, X), ValueError, r"convolve: .*\(3, 5\)"),
        (lambda: ng.convolve([], [1.0]), ValueError, "convolve: .*no elements"),
        (lambda: ng.correlate(X[0], X[1], "all"), ValueError, "correlate: mode"),
        (lambda: ng.polyval(X, 1.0), ValueError, "polyval: coefficients"),
        (lambda: ng.polyder(X[0], -1), ValueError, "polyder: the order"),
        (lambda: ng.polyint(X[0], 3, [1.0, 2.0]), ValueError, "polyint: 2 constants"),
        (lambda: ng.polyfit(X[0], X[1], -1), ValueError, "polyfit: the degree"),
        (lambda: ng.polyfit(X[0], X[1, :3], 1), TypeError, "polyfit: 5 points and values"),
        (lambda: ng.roots(X), ValueError, r"roots: .*\(3, 5\)"),
        (lambda: ng.roots([1.0, np.nan]), ValueError, "roots: .*finite"),
        (lambda: ng.average(np.ones((0, 2)), 0, np.ones(0)), ZeroDivisionError, "average: weights"),
        (lambda: ng.unwrap(X * 1j), TypeError, "unwrap: .*complex"),
        (lambda: ng.ediff1d([1, 2], 0.5), TypeError, "ediff1d: to_end of dtype float64"),
        (lambda: ng.gcd(1.5, 2), TypeError, "gcd: not defined for float64"),
        (lambda: ng.ldexp(1.5, 2.5), TypeError, "ldexp: not defined"),
        (lambda: ng.modf(1j), TypeError, "modf: .*complex"),
        (lambda: ng.isposinf(1j), TypeError, "isposinf: .*complex"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert isinstance(raised.value, ng.NumgradError)


def test_compiled_fits_at_places_that_are_an_argument():
    fast = ng.jit(lambda t, y: np.polyfit(t, y, 2))
    for n in (6, 9):
        t = np.linspace(0.0, 1.0, n)
        np.testing.assert_allclose(fast(t, np.sin(t)), np.polyfit(t, np.sin(t), 2), rtol=1e-10)


def test_vander_of_infinities_and_negative_columns():
    x = np.array([np.inf, np.nan, -2.0])
    for count in (0, 1, 3):
        for increasing in (False, True):
            found = ng.vander(ng.tensor(x), count, increasing).numpy()
            np.testing.assert_array_equal(found, np.vander(x, count, increasing))
    with pytest.raises(ng.NumgradValueError, match="vander: N must be non-negative, got -1"):
        ng.vander(ng.tensor(x), -1)
