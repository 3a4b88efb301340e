"""Loops whose results and derivatives have a closed form."""

import numpy as np
import pytest
from scipy.linalg import expm, expm_frechet

import numgrad as ng

RNG = np.random.default_rng(5)
either = pytest.mark.parametrize("run", [lambda f: f, ng.jit], ids=["eager", "compiled"])
SCALES = {"float32": 1e-5, "float64": 1e-12, "complex128": 1e-12}


def recurrence(p, n):
    """``x = a x + b``, ``n`` times."""
    a, b, x = p
    return ng.scan(lambda x, _: (a * x + b, None), x, length=n)[0]


def powers(a, n, order=0):
    """``a**n`` and its derivatives."""
    factor = np.prod([n - k for k in range(order)])
    return factor * a ** (n - order) if n >= order else 0.0


@either
@pytest.mark.parametrize("n", [0, 1, 12])
@pytest.mark.parametrize("dtype", SCALES)
def test_linear_recurrence(run, n, dtype):
    p = np.array([0.8, 0.3, 1.7], dtype)
    if dtype == "complex128":
        p = p + 1j * np.array([0.2, -0.4, 0.1])
    a, b, x = (v.item() for v in p)
    tolerance = {"rtol": SCALES[dtype], "atol": SCALES[dtype]}
    sums = [sum(powers(a, k, order) for k in range(n)) for order in range(3)]
    value = powers(a, n) * x + b * sums[0]
    found = run(lambda p: recurrence(p, n))(p)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, value, **tolerance)
    slopes = [powers(a, n, 1) * x + b * sums[1], sums[0], powers(a, n)]
    holomorphic = {"holomorphic": True} if dtype == "complex128" else {}
    found = run(ng.grad(lambda p: recurrence(p, n), **holomorphic))(p)
    np.testing.assert_allclose(found, slopes, **tolerance)
    if dtype == "float64":
        curved = powers(a, n, 2) * x + b * sums[2]
        across = powers(a, n, 1)
        hessian = [[curved, sums[1], across], [sums[1], 0, 0], [across, 0, 0]]
        found = run(ng.hessian(lambda p: recurrence(p, n)))(p)
        np.testing.assert_allclose(found, hessian, **tolerance)
        forward = run(ng.jacfwd(lambda p: recurrence(p, n)))(p)
        np.testing.assert_allclose(forward, slopes, **tolerance)


@either
def test_integers_of_fibonacci(run):
    def numbers(n):
        step = lambda c, _: ((c[1], c[0] + c[1]), c[0])  # noqa: E731
        return ng.scan(step, (0, 1), length=n)[1]

    golden = (1 + 5**0.5) / 2
    expected = [round(golden**k / 5**0.5) for k in range(40)]
    np.testing.assert_array_equal(run(lambda: numbers(40))(), expected)


@either
@pytest.mark.parametrize("n", [1, 2, 5])
def test_matrix_exponential(run, n):
    a, v, direction = RNG.normal(size=(n, n)), RNG.normal(size=n), RNG.normal(size=(n, n))

    def series(a, v):
        def term(k, carry):
            total, last = carry
            last = a @ last / (k + 1)
            return total + last, last

        return ng.fori_loop(0, 60, term, (v, v))[0]

    np.testing.assert_allclose(run(series)(a, v), expm(a) @ v, rtol=1e-11)
    in_a, in_v = run(ng.grad(lambda a, v: np.sum(series(a, v)), (0, 1)))(a, v)
    along = expm_frechet(a, direction, compute_expm=False) @ v
    np.testing.assert_allclose(np.sum(in_a * direction), np.sum(along), rtol=1e-10)
    np.testing.assert_allclose(in_v, np.sum(expm(a), axis=0), rtol=1e-10)


@either
@pytest.mark.parametrize("n", [1, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_partial_results(run, n, reverse):
    x = RNG.uniform(0.5, 1.5, size=(n, 2))
    turned = x[::-1] if reverse else x
    weights = RNG.normal(size=(n, 2))
    for f, whole in ((np.add, np.cumsum), (np.multiply, np.cumprod)):
        expected = whole(turned, axis=0)
        expected = expected[::-1] if reverse else expected
        found = run(lambda x, f=f: ng.associative_scan(f, x, reverse))(x)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        pulled = run(ng.grad(lambda x, f=f: np.sum(ng.associative_scan(f, x, reverse) * weights)))
        each = weights * expected if f is np.multiply else weights
        ahead = each if reverse else each[::-1]
        gradient = np.cumsum(ahead, axis=0)
        gradient = gradient if reverse else gradient[::-1]
        gradient = gradient / x if f is np.multiply else gradient
        np.testing.assert_allclose(pulled(x), gradient, rtol=1e-11, atol=1e-13)


@either
def test_affine_maps_put_together_are_the_recurrence(run):
    a, b = RNG.uniform(0.5, 1.2, size=11), RNG.normal(size=11)

    def together(a, b):
        maps = ng.associative_scan(lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]), (a, b))
        return maps[0] * 0.3 + maps[1]

    def one_by_one(a, b):
        def step(x, ab):
            x = ab[0] * x + ab[1]
            return x, x

        return ng.scan(step, 0.3, (a, b))[1]

    states = [0.3]
    for k in range(11):
        states.append(a[k] * states[-1] + b[k])
    following = np.array([np.prod(a[k + 1 :]) for k in range(11)])  # of the last state, in b
    for f in (together, one_by_one):
        np.testing.assert_allclose(run(f)(a, b), states[1:], rtol=1e-12)
        in_a, in_b = run(ng.grad(lambda a, b, f=f: f(a, b)[-1], (0, 1)))(a, b)
        np.testing.assert_allclose(in_b, following, rtol=1e-12)
        np.testing.assert_allclose(in_a, following * states[:-1], rtol=1e-12)


MOTION = np.array([[1.0, 1.0], [0.0, 1.0]])


def filtered(logs, y):
    """Kalman's filter of a trend: level and slope walk at random."""
    q, r = np.exp(logs[:2]), np.exp(logs[2])

    def step(carry, y):
        mean, spread = carry
        total = spread[0, 0] + r
        miss, gain = y - mean[0], spread[:, 0] / total
        term = -0.5 * (np.log(2 * np.pi * total) + miss**2 / total)
        mean, spread = mean + gain * miss, spread - gain[:, None] * spread[0]
        return (MOTION @ mean, MOTION @ spread @ MOTION.T + np.diag(q)), term

    return np.sum(ng.scan(step, (ng.zeros(2), np.diag(q)), y)[1])


@either
def test_filter_is_the_joint_normal_distribution(run):
    n, logs = 9, np.array([0.3, -1.0, 0.5])
    y = np.cumsum(RNG.normal(size=n))
    parts = np.zeros((3, n, n))  # what each variance brings to the covariance
    parts[2] = np.eye(n)
    for which in range(2):
        rows = [np.linalg.matrix_power(MOTION, k)[0, which] for k in range(n)]
        for start in range(n):
            seen = np.concatenate([np.zeros(start), rows[: n - start]])
            parts[which] += np.outer(seen, seen)
    covariance = np.tensordot(np.exp(logs), parts, 1)
    inverse = np.linalg.inv(covariance)
    pulled = inverse @ y
    logdet = np.linalg.slogdet(covariance)[1]
    expected = -0.5 * (n * np.log(2 * np.pi) + logdet + y @ pulled)
    slopes = [
        0.5 * np.exp(s) * (pulled @ part @ pulled - np.sum(inverse * part))
        for s, part in zip(logs, parts, strict=True)
    ]
    value, gradient = run(ng.value_and_grad(filtered))(logs, y)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10)
    in_y = run(ng.grad(filtered, 1))(logs, y)
    np.testing.assert_allclose(in_y, -pulled, rtol=1e-10)


def test_a_loop_that_ends_by_its_carry_is_the_power_that_it_reaches():
    def doubled(x):
        return ng.while_loop(lambda c: c < 100, lambda c: 2 * c, x)

    for x in (1.0, 3.0, 200.0):
        steps = max(0, int(np.ceil(np.log2(100 / x))))
        assert ng.value_and_grad(doubled)(x) == (2.0**steps * x, 2.0**steps)
