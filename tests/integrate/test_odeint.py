"""``ng.odeint`` against closed forms, SciPy at tight tolerance, differences, JAX, and itself."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import numgrad as ng
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.integrate.runge_kutta import TABLEAUS
from tests.crossed import each_first

ADAPTIVE = sorted(TABLEAUS)
STATES = [1.3, np.array([1.0, 0.5])]
TIMES = np.linspace(0.0, 1.0, 4)
RATES = np.array([1.5, 1.0, 3.0, 1.0])
ANIMALS = np.array([10.0, 5.0])
SEASONS = np.linspace(0.0, 1.5, 4)
TIGHT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}
either = pytest.mark.parametrize("run", [lambda f: f, ng.jit], ids=["eager", "compiled"])


def decay(y, t, rate=1.0):
    return -rate * y


def lotka_volterra(y, t, p):
    hares, lynxes = y[0], y[1]
    return np.stack([p[0] * hares - p[1] * hares * lynxes, p[3] * hares * lynxes - p[2] * lynxes])


def animals(p, y0, t, **options):
    return ng.odeint(lotka_volterra, y0, t, p, **options)


def true_animals(p):
    """States and their derivatives by the rates, of the system that both fulfil together."""

    def slope(t, z):
        y, s = z[:2], z[2:].reshape(2, 4)
        x, v = y
        jac = np.array([[p[0] - p[1] * v, -p[1] * x], [p[3] * v, p[3] * x - p[2]]])
        by_rates = np.array([[x, -x * v, 0, 0], [0, 0, -v, x * v]])
        return [*(p[0] * x - p[1] * x * v, p[3] * x * v - p[2] * v), *(jac @ s + by_rates).ravel()]

    start = [*ANIMALS, *np.zeros(8)]
    options: dict[str, Any] = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12}
    z = solve_ivp(slope, (0, SEASONS[-1]), start, t_eval=SEASONS, **options).y.T
    return z[:, :2], z[:, 2:].reshape(-1, 2, 4)


@pytest.mark.parametrize("name", ADAPTIVE)
def test_methods_fulfil_their_order_conditions(name):
    method = TABLEAUS[name]
    nodes = np.array([0.0, *method.nodes])
    n = len(nodes)
    a = np.array([[*row, *[0.0] * (n - len(row))] for row in ((), *method.rows)])
    np.testing.assert_allclose(a.sum(axis=1), nodes, atol=1e-14)
    dense = np.array(method.dense)
    ac = a @ nodes
    np.testing.assert_allclose(dense.sum(axis=1), a[-1], atol=1e-13)
    np.testing.assert_allclose(dense @ [1, 2, 3, 4], np.eye(n)[-1], atol=1e-12)  # slope at the end

    def trees(part):  # what a term of a solution is at a part of the step: order, its weights
        one = np.ones(n)
        yield from ((part, one), (part**2 / 2, nodes), (part**3 / 3, nodes**2), (part**3 / 6, ac))
        yield from ((part**4 / 4, nodes**3), (part**4 / 8, nodes * ac))
        yield from ((part**4 / 12, a @ nodes**2), (part**4 / 24, a @ ac))

    for part in (0.3, 0.7, 1.0):
        weights = dense @ part ** np.arange(1.0, 5.0)
        for term, vector in trees(part):
            np.testing.assert_allclose(weights @ vector, term, atol=1e-13)
    for _, vector in trees(1.0):  # the step of order four that the estimate compares with
        np.testing.assert_allclose(np.array(method.errors) @ vector, 0.0, atol=1e-13)
    fifth = {1 / 5: nodes**4, 1 / 20: ac**2, 1 / 120: a @ a @ ac, 1 / 30: nodes * (a @ ac)}
    for term, vector in fifth.items():
        np.testing.assert_allclose(a[-1] @ vector, term, atol=1e-14)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_lotka_volterra_and_its_derivatives(method):
    states, slopes = true_animals(RATES)
    found = animals(RATES, ANIMALS, SEASONS, method=method, **TIGHT)
    np.testing.assert_allclose(found, states, rtol=1e-7)
    weights = np.random.default_rng(0).normal(size=states.shape)

    def f(p):
        return np.sum(weights * animals(p, ANIMALS, SEASONS, method=method, **TIGHT))

    truth = np.einsum("ij,ijk", weights, slopes)
    np.testing.assert_allclose(ng.grad(f)(RATES), truth, rtol=1e-6)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("method", ADAPTIVE)
def test_compiled_as_eager(method):
    """The same steps, and so the same gradients to rounding: of rates, the state, and times."""

    def f(p, y0, t):
        return np.sum(np.sin(animals(p, y0, t, method=method, rtol=1e-6)))

    given = RATES, ANIMALS, SEASONS
    derived = ng.value_and_grad(f, (0, 1, 2))
    value, gradients = derived(*given)
    fast, fast_gradients = ng.jit(derived)(*given)
    np.testing.assert_allclose(fast, value, rtol=1e-11)
    for a, b in zip(fast_gradients, gradients, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


DERIVATIVES = {
    "jacobian": ng.jacobian,
    "value": lambda f: f,
    "forward": ng.jacfwd,
    "hessian": lambda f: ng.hessian(lambda p: np.sum(f(p) ** 2)),
}


def swing(p):
    """A pendulum of changing frequency, whose steps differ by example."""
    y0 = {"x": p[0], "v": np.sin(p)}
    slope = lambda y, t: {"x": y["v"][0] * p[1], "v": -p * y["x"] * np.cos(t)}  # noqa: E731
    found = ng.odeint(slope, y0, TIMES, rtol=1e-3, atol=1e-3)
    return np.concatenate([found["x"], found["v"][-1]])


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("compiled", ["outside", "inside"])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_transforms(name, compiled, batch):
    p = np.array([1.2, 0.7])
    points = np.stack([p, 3 * p, 0.2 * p])
    derived = DERIVATIVES[name]
    truth = np.stack([derived(swing)(x) for x in points])
    inner = derived(ng.jit(swing)) if compiled == "inside" else derived(swing)
    f = ng.vmap(inner) if batch else inner
    f = ng.jit(f) if compiled == "outside" else f
    found = f(points) if batch else np.stack([f(x) for x in points])
    np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-10)
    if compiled == "outside" and batch:
        np.testing.assert_allclose(ng.vmap(derived(swing))(points), truth, rtol=1e-9, atol=1e-10)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize(
    ("y0", "method"),
    [
        *zip(STATES, ADAPTIVE, strict=True),
        *zip(STATES, ADAPTIVE[::-1], strict=True),
    ],
    ids=repr,
)
def test_compiled_derivatives_by_the_state(y0, method):
    """The solution of ``y' = -y**2`` is ``y0 / (1 + t y0)``."""

    def f(y):
        return np.sum(ng.odeint(lambda y, t: -y * y, y, ng.asarray(TIMES), method=method, **TIGHT))

    grown = 1 + np.multiply.outer(TIMES, y0)
    value, slope = np.sum(y0 / grown), np.sum(grown**-2.0, axis=0)
    pair = np.stack([np.asarray(y0)] * 2)
    np.testing.assert_allclose(ng.jit(ng.grad(f))(y0), slope, rtol=1e-6)
    found = ng.jit(lambda y, v: ng.jvp(f, (y,), (v,)))(y0, y0)
    np.testing.assert_allclose(found, [value, np.sum(slope * y0)], rtol=1e-6)
    np.testing.assert_allclose(ng.jit(ng.vmap(f))(pair), [value] * 2, rtol=1e-6)
    np.testing.assert_allclose(ng.jit(ng.vmap(ng.grad(f)))(pair), [slope] * 2, rtol=1e-6)


@either
def test_a_step_that_is_refused_has_no_gradient(run):
    """The first step tried leads to the root of a negative number."""
    times = ng.asarray([0.0, 1.9])

    def f(y):
        return ng.odeint(lambda y, t: -np.sqrt(y), y, times, first_step=1.9)[-1]

    value, slope = run(ng.value_and_grad(f))(1.0)
    np.testing.assert_allclose([value, slope], [0.05**2, 0.05], rtol=1e-5)


def test_linear_system():
    """Closed forms: the exponential of a matrix, slopes by time, and by the first time."""
    a = np.array([[-0.5, 2.0], [-2.0, -0.1]])
    y0 = np.array([1.0, 0.5])
    f = lambda a, y0, t: ng.odeint(lambda y, t, a: a @ y, y0, t, a, **TIGHT)  # noqa: E731
    states = np.stack([expm(a * t) @ y0 for t in TIMES])
    np.testing.assert_allclose(f(a, y0, TIMES), states, rtol=1e-7)
    by_state = ng.jacobian(f, 1)(a, y0, TIMES)
    np.testing.assert_allclose(by_state, [expm(a * t) for t in TIMES], atol=1e-7)
    by_time = np.einsum("tj,ts->tjs", states @ a.T, np.eye(4))
    by_time[:, :, 0] = -states @ a.T
    by_time[0, :, 0] = 0.0
    np.testing.assert_allclose(ng.jacobian(f, 2)(a, y0, TIMES), by_time, atol=3e-6)
    backwards = f(a, states[-1], TIMES[::-1])
    np.testing.assert_allclose(backwards, states[::-1], rtol=1e-7)


def test_by_time_where_the_system_depends_on_it():
    """``dy/dt = cos(t) y``: the first time moves the solution, which starts later."""
    f = lambda t: ng.odeint(lambda y, t: np.cos(t) * y, 2.0, t, **TIGHT)  # noqa: E731
    times = TIMES + 0.3
    y = 2 * np.exp(np.sin(times) - np.sin(times[0]))
    slopes = np.diag(np.cos(times) * y)
    slopes[1:, 0], slopes[0, 0] = -np.cos(times[0]) * y[1:], 0.0
    np.testing.assert_allclose(ng.jacobian(f)(times), slopes, atol=1e-6)


def test_what_a_function_closes_over_has_gradients():
    rate = ng.tensor(0.5, requires_grad=True)
    ng.odeint(lambda y, t: -rate * y, 2.0, TIMES)[-1].backward()
    assert rate.grad is not None
    np.testing.assert_allclose(rate.grad.item(), -2 * np.exp(-0.5), rtol=1e-6)


TIMES_OF_DTYPES = [TIMES, TIMES.astype(np.float32), [0, 1, 2]]


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize(
    ("dtype", "t"), each_first(["float32", "float64", "complex128", "int64"], TIMES_OF_DTYPES)
)
def test_dtypes(dtype, t):
    y0 = np.array([2, 3], dtype)
    rate = 1 - 1j if dtype == "complex128" else 1.0
    for found in (ng.odeint(decay, y0, t, rate), ng.odeint(decay, y0, t, rate, method="rk4")):
        assert type(found) is np.ndarray
        assert found.dtype == ("float64" if dtype == "int64" else dtype)
    found = ng.odeint(decay, y0, t, rate)
    truth = y0 * np.exp(-rate * np.asarray(t)[:, None])
    np.testing.assert_allclose(found, truth, rtol=1e-3 if dtype == "float32" else 1e-6)
    assert isinstance(ng.odeint(decay, ng.asarray(y0), t, rate), ng.Tensor)


def test_containers():
    """A list of numbers is a vector; other nestings come out as they went in."""
    found = ng.odeint(lambda y, t: [y[1], -y[0]], [0.0, 1.0], TIMES)
    np.testing.assert_allclose(found, np.stack([np.sin(TIMES), np.cos(TIMES)], 1), rtol=1e-6)
    given = {"a": np.ones((2, 3)), "b": (np.float32(1), [np.array(2j)])}
    slope = lambda y, t, c: ng.tree.map(lambda x: -c["rate"][0] * x, y)  # noqa: E731
    out = ng.odeint(slope, given, TIMES, {"rate": [1.0]}, atol={"a": 1e-9, "b": (1e-5, [1e-9])})
    assert out["a"].shape == (4, 2, 3)
    assert out["b"][0].dtype == np.float32
    np.testing.assert_allclose(out["b"][1][0], 2j * np.exp(-TIMES), rtol=1e-6)


def test_arguments_as_a_tuple():
    f = lambda r: ng.odeint(decay, 1.0, TIMES, args=(r,))[-1]  # noqa: E731
    assert ng.grad(f)(0.5) == ng.grad(lambda r: ng.odeint(decay, 1.0, TIMES, r)[-1])(0.5)


@either
def test_few_times_and_repeated_ones(run):
    """No time, one, and several that are the same."""
    f = run(lambda y, t: ng.odeint(decay, y, t))
    assert f(np.ones((2, 3)), TIMES[:0]).shape == (0, 2, 3)
    np.testing.assert_array_equal(f(2.0, TIMES[:1]), [2.0])
    np.testing.assert_allclose(f(2.0, np.repeat(TIMES, 2)), 2 * np.exp(-np.repeat(TIMES, 2)), 1e-6)


def test_empty_states():
    assert ng.odeint(decay, np.zeros((0, 2)), TIMES).shape == (4, 0, 2)
    assert ng.vmap(lambda y: ng.odeint(decay, y, TIMES))(np.zeros((0, 2))).shape == (0, 4, 2)


FAILURES = {
    "in order": (lambda y, t: decay(y, t), np.array([0.0, 1.0, 0.5]), NumgradValueError),
    "not finite": (lambda y, t: decay(y, t), np.array([0.0, np.nan, 0.5]), NumgradValueError),
    "at t = 0.5 no step": (
        lambda y, t: np.sqrt(0.5 - t) * y, np.array([0, 0.4, 0.9]), NumgradRuntimeError,
    ),
    "at t = 1 no step": (lambda y, t: y * y, np.array([0.0, 0.9, 2.0]), NumgradRuntimeError),
    "at t = 0 no step": (lambda y, t: y * np.nan, np.array([0.0, 0.9]), NumgradRuntimeError),
    "solve_ivp": (lambda y, t: 1e5 * (np.cos(t) - y), np.array([0.0, 1e-4, 9.0]), RuntimeError),
}  # fmt: skip


@pytest.mark.parametrize("message", FAILURES)
def test_errors(message):
    f, t, kind = FAILURES[message]
    with pytest.raises(kind, match=message):
        ng.odeint(f, 1.0, t, max_steps=600)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("message", sorted(FAILURES))
def test_compiled_failures_are_nan(message):
    """States that are reached are right; of the others, gradients are NaN too."""
    f, t, kind = FAILURES[message]
    solve = lambda y, t: ng.odeint(f, y, t, max_steps=600)  # noqa: E731
    reached = t[:-1] if kind is not NumgradValueError else t[:1]
    found = ng.jit(solve)(1.0, t)
    np.testing.assert_allclose(found[: len(reached)], solve(1.0, reached), rtol=1e-6)
    assert np.isnan(found[len(reached) :]).all()
    gradient = ng.jit(ng.grad(lambda y, t: solve(y, t)[-1]))
    assert np.isnan(gradient(1.0, t))


def test_examples_that_fail_leave_the_others_alone():
    rates = np.array([0.5, np.nan, 2.0])
    f = lambda r: ng.odeint(decay, 1.0, TIMES, r)[-1]  # noqa: E731
    value, slope = ng.vmap(ng.value_and_grad(f))(rates)
    np.testing.assert_allclose(value, np.exp(-rates), rtol=1e-6)
    np.testing.assert_allclose(slope, -np.exp(-rates), rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"method": "euler"}, NumgradValueError, "dopri5, tsit5, rk4"),
        ({"y0": "a"}, NumgradTypeError, "str"),
        ({"y0": []}, NumgradValueError, "no array"),
        ({"t": np.ones((2, 2))}, NumgradValueError, "1-D"),
        ({"t": 1j * TIMES}, NumgradValueError, "real"),
        ({"f": lambda y, t: y[:1]}, NumgradValueError, r"\(1,\) for y of shape \(2,\)"),
        ({"f": lambda y, t: None}, NumgradTypeError, "NoneType"),
        ({"f": lambda y, t: {"a": y}}, NumgradValueError, "dict"),
        ({"f": lambda y, t: 1j * y}, NumgradTypeError, "complex y0"),
        ({"f": 3}, NumgradTypeError, "function"),
        ({"rtol": -1.0}, NumgradValueError, "rtol"),
        ({"atol": 0}, NumgradValueError, "atol"),
        ({"atol": "tight"}, NumgradValueError, "atol"),
        ({"first_step": -1.0}, NumgradValueError, "first_step"),
        ({"max_step": 0}, NumgradValueError, "max_step"),
        ({"max_steps": 1.5}, NumgradTypeError, "max_steps"),
        ({"method": "rk4", "substeps": 0}, NumgradValueError, "substeps"),
    ],
)
def test_arguments_that_do_not_suit(change, kind, message):
    given = {"f": decay, "y0": np.ones(2), "t": TIMES, **change}
    with pytest.raises(kind, match=message):
        ng.odeint(given.pop("f"), given.pop("y0"), given.pop("t"), **given)


@either
def test_fixed_steps_are_those_of_a_loop(run):
    t = np.array([0.0, 0.5, 0.3, 1.0])

    def by_hand(p, t):
        y, found = p, [p]
        for a, b in itertools.pairwise(t):
            h = (b - a) / 3
            for k in range(3):
                s = a + k * h
                k1 = np.cos(s) * y * p
                k2 = np.cos(s + h / 2) * (y + h / 2 * k1) * p
                k3 = np.cos(s + h / 2) * (y + h / 2 * k2) * p
                k4 = np.cos(s + h) * (y + h * k3) * p
                y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            found.append(y)
        return np.sum(np.stack(found) ** 2)

    def f(p, t):
        y = ng.odeint(lambda y, t, p: np.cos(t) * y * p, p, t, p, method="rk4", substeps=3)
        return np.sum(y**2)

    p = np.array([0.5, 1.0])
    expected = ng.value_and_grad(by_hand, (0, 1))(p, t)
    value, gradients = run(ng.value_and_grad(f, (0, 1)))(p, t)
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    for a, b in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


@pytest.mark.slow(cases=0)
def test_as_jax():
    jax = pytest.importorskip("jax")
    from jax.experimental.ode import odeint

    def f(p):
        y = odeint(lotka_volterra_of_jax, ANIMALS, SEASONS, p, rtol=1e-9, atol=1e-9)
        return (y**2).sum()

    def lotka_volterra_of_jax(y, t, p):
        return jax.numpy.stack([(p[0] - p[1] * y[1]) * y[0], (p[3] * y[0] - p[2]) * y[1]])

    with jax.enable_x64(True):
        expected = jax.value_and_grad(f)(jax.numpy.asarray(RATES))
    found = ng.value_and_grad(lambda p: np.sum(animals(p, ANIMALS, SEASONS, **TIGHT) ** 2))(RATES)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
