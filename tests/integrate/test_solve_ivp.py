"""``ng.solve_ivp``: values of SciPy, gradients of the exact solution."""

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize

import numgrad as ng
from tests.crossed import each_first

# SciPy's BDF subtracts memory that nobody has written before it overwrites the result
pytestmark = pytest.mark.filterwarnings(
    "ignore:(invalid value|overflow) encountered in subtract:RuntimeWarning:scipy"
)
METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
A = np.array([[-0.4, 1.1, 0.2], [-0.9, -0.1, 0.5], [0.3, -0.6, -0.8]])
Y0 = np.array([1.0, -0.5, 2.0])
W = np.array([1.0, -2.0, 0.5])


def linear(t, y, a):
    return a @ y


def linear_truth(t):
    """Value and gradients (a, y0, t) of ``W @ expm(t A) @ Y0``."""
    flow = scipy.linalg.expm(t * A)
    by_a = np.zeros((3, 3))
    for i, j in np.ndindex(3, 3):
        unit = np.zeros((3, 3))
        unit[i, j] = t
        by_a[i, j] = W @ scipy.linalg.expm_frechet(t * A, unit, compute_expm=False) @ Y0
    return W @ flow @ Y0, (by_a, flow.T @ W, W @ A @ flow @ Y0)


def lotka_volterra(t, y, p):
    return [p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]]


RATES = np.array([1.1, 0.4, 0.1, 0.4])


def close(found, expected, tolerance):
    """Compare with the largest element as the measure."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected)) <= tolerance * np.max(np.abs(expected))


@pytest.mark.slow(cases=len(METHODS))
@pytest.mark.parametrize(("method", "adjoint"), each_first(METHODS, ["forward", "reverse"]))
def test_a_linear_system(method, adjoint):
    def end(a, y0, t):
        found = ng.solve_ivp(
            linear, (0, t), y0, method, args=(a,), adjoint=adjoint, rtol=1e-6, atol=1e-8
        )
        return W @ found.y[:, -1]

    value, found = ng.value_and_grad(end, argnums=(0, 1, 2))(A, Y0, 1.5)
    expected, gradients = linear_truth(1.5)
    tolerance = 1e-4 if method in ("RK23", "BDF", "LSODA") else 5e-6  # LSODA, BDF control loosely
    close(value, expected, tolerance)
    for g, e in zip(found, gradients, strict=True):
        close(g, e, tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_values_are_scipys(method):
    times = np.linspace(0, 2, 7)
    for t_eval in (None, times):
        found = ng.solve_ivp(linear, (0, 2), Y0, method, t_eval, args=(A,))
        jac = {"jac": lambda t, y: A} if method in ("Radau", "BDF", "LSODA") else {}
        theirs = scipy.integrate.solve_ivp(lambda t, y: A @ y, (0, 2), Y0, method, t_eval, **jac)
        assert isinstance(found.y, ng.Tensor)
        np.testing.assert_allclose(found.y.numpy(), theirs.y, rtol=1e-10)
        np.testing.assert_allclose(found.t, theirs.t, rtol=1e-10)
        assert set(theirs) == set(found)
        assert (found.nfev, found.njev, found.success) == (theirs.nfev, theirs.njev, True)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", ["reverse", "forward"])
def test_gradients_follow_the_tolerance(adjoint):
    """Lotka-Volterra at ten times: the error falls with the tolerance, and stays below it."""
    times = np.linspace(1, 10, 10)

    def loss(p, y0, rtol, how):
        y = ng.solve_ivp(
            lotka_volterra, (0, 10), y0, "DOP853", times, args=(p,), adjoint=how, rtol=rtol,
            atol=1e-3 * rtol,
        ).y  # fmt: skip
        return np.sum(y**2 * times)

    y0 = np.array([10.0, 5.0])

    def whole(z):  # truth: central differences at tight tolerance
        y = scipy.integrate.solve_ivp(
            lambda t, y: np.array(lotka_volterra(t, y, z[:4])), (0, 10), z[4:], "DOP853", times,
            rtol=1e-13, atol=1e-14,
        ).y  # fmt: skip
        return np.sum(y**2 * times)

    z = np.concatenate([RATES, y0])
    expected = np.zeros(6)
    for k in range(6):
        h = np.zeros(6)
        h[k] = 1e-4 * z[k]
        expected[k] = (
            8 * (whole(z + h) - whole(z - h)) - (whole(z + 2 * h) - whole(z - 2 * h))
        ) / (12 * h[k])
    errors = []
    for rtol in (1e-5, 1e-8):
        found = np.concatenate(ng.grad(loss, argnums=(0, 1))(RATES, y0, rtol, adjoint))
        errors.append(np.max(np.abs(found - expected) / np.max(np.abs(expected))))
        assert errors[-1] < 30 * rtol
    assert errors[1] < 0.02 * errors[0] or errors[1] < 1e-9


def robertson(t, y, k):
    flows = k[0] * y[0], k[1] * y[1] * y[1], k[2] * y[1] * y[2]
    return [flows[2] - flows[0], flows[0] - flows[1] - flows[2], flows[1]]


K = np.array([0.04, 3e7, 1e4])
ROBERTSON_AT_40 = np.array([0.7158270687193941, 9.185534764558e-06, 0.2841637457458413])
"""Known to many digits: the stiff test set of Mazzia, Magherini."""


ROBERTSON_BY_K = np.array([-2.12380234, -1.14412064e-9, 6.86552185e-6])
"""Of ``y[0] + y[2] / 2`` by K: the system with all sensitivities by Radau, rtol 1e-11."""


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("adjoint", ["reverse", "forward"])
@pytest.mark.parametrize("method", ["BDF", "Radau", "LSODA"])
def test_robertson(method, adjoint):
    """Stiff: gradients agree with those of the exact sensitivities at tight tolerance."""

    def end(k, w):
        found = ng.solve_ivp(
            robertson, (0, 40), [1.0, 0.0, 0.0], method, args=(k,), adjoint=adjoint, rtol=1e-5,
            atol=1e-9,
        )  # fmt: skip
        return found.y[:, -1] @ w

    w = np.array([1.0, 0.0, 0.5])
    value, found = ng.value_and_grad(end)(K, w)
    np.testing.assert_allclose(value, ROBERTSON_AT_40 @ w, rtol=2e-4)
    np.testing.assert_allclose(found, ROBERTSON_BY_K, rtol=2e-3)


@pytest.mark.slow(cases=0)
def test_van_der_pol():
    """Stiff, mu = 100: both adjoints agree with differences."""

    def f(t, y, mu):
        return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]

    def end(mu, how):
        return ng.solve_ivp(
            f, (0, 70), [2.0, 0.0], "Radau", args=(mu,), adjoint=how, rtol=1e-7, atol=1e-9
        ).y[0, -1]

    expected = (end(100.1, "auto") - end(99.9, "auto")).item() / 0.2
    for how in ("forward", "reverse"):
        np.testing.assert_allclose(ng.grad(end)(100.0, how), expected, rtol=1e-3)


class State(NamedTuple):
    place: Any
    speed: Any


def test_containers_of_states_and_arguments():
    def f(t, y, p, scale):
        return State(y.speed, {"a": -p["k"] * y.place * scale})

    def nested(t, y, p, scale):
        return State(y.speed["a"], {"a": -p["k"] * y.place * scale})

    y0 = State(np.ones((2, 2)), {"a": np.zeros((2, 2))})

    def end(p, y0):
        found = ng.solve_ivp(nested, (0, 1), y0, args=(p, 2.0), rtol=1e-9, atol=1e-11)
        assert found.y.place.shape == (2, 2, len(found.t))
        return np.sum(found.y.place[..., -1])

    by_p, by_y0 = ng.grad(end, argnums=(0, 1))({"k": 2.0}, y0)
    np.testing.assert_allclose(by_p["k"], 4 * -np.sin(2) / 2, rtol=1e-7)  # cos(sqrt(2 k))
    np.testing.assert_allclose(by_y0.place, np.full((2, 2), np.cos(2)), rtol=1e-7)
    np.testing.assert_allclose(by_y0.speed["a"], np.full((2, 2), np.sin(2) / 2), rtol=1e-7)
    with pytest.raises(ng.errors.NumgradValueError, match="nested otherwise than y0"):
        ng.solve_ivp(f, (0, 1), y0, args=({"k": 2.0}, 2.0))


def decay(t, y, rate):
    return -rate * y


TIGHT: Any = {"rtol": 1e-9, "atol": 1e-11}


def _end(rate, y0=2.0, **more):
    return ng.solve_ivp(decay, (0, 1.5), [y0], args=(rate,), **TIGHT, **more).y[0, -1]


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", ["forward", "reverse"])
def test_derivatives_of_any_order_and_mode(adjoint):
    def end(rate):
        return _end(rate, adjoint=adjoint, method="DOP853")

    exact = [2 * np.exp(-0.75) * (-1.5) ** k for k in range(4)]
    np.testing.assert_allclose(ng.grad(end)(0.5), exact[1], rtol=1e-7)
    np.testing.assert_allclose(ng.jvp(end, (0.5,), (2.0,))[1], 2 * exact[1], rtol=1e-7)
    np.testing.assert_allclose(ng.hessian(end)(0.5), exact[2], rtol=1e-6)
    np.testing.assert_allclose(ng.grad(ng.grad(end))(0.5), exact[2], rtol=1e-6)
    np.testing.assert_allclose(ng.grad(ng.grad(ng.grad(end)))(0.5), exact[3], rtol=1e-5)
    np.testing.assert_allclose(ng.jacfwd(ng.jacrev(end))(0.5), exact[2], rtol=1e-6)
    found = ng.vmap(ng.grad(end))(np.array([0.5, 1.0]))
    np.testing.assert_allclose(found, [exact[1], 2 * np.exp(-1.5) * -1.5], rtol=1e-6)


def test_what_the_function_closes_over():
    rate = ng.tensor(0.5, requires_grad=True)
    twice = rate * 2
    found = ng.solve_ivp(lambda t, y: -twice * y, (0, 1), [2.0], **TIGHT).y[0, -1]
    found.backward()
    np.testing.assert_allclose(rate.grad.item(), -4 * np.exp(-1), rtol=1e-7)

    def end(rate):
        return ng.solve_ivp(lambda t, y: -rate * y, (0, 1), [2.0], **TIGHT).y[0, -1]

    np.testing.assert_allclose(ng.grad(end)(0.5), -2 * np.exp(-0.5), rtol=1e-7)
    with pytest.raises(ng.errors.NumgradRuntimeError, match="pass the Tensor in args"):
        ng.vmap(end)(np.ones(2))


def test_times_have_gradients():
    def at(t, start):
        found = ng.solve_ivp(decay, (start, 3.0), [2.0], "DOP853", t, args=(0.5,), **TIGHT)
        return found.y[0] @ np.array([1.0, 10.0])

    t = np.array([0.5, 2.0])
    by_t, by_start = ng.grad(at, argnums=(0, 1))(t, 0.0)
    np.testing.assert_allclose(by_t, [-np.exp(-0.25), -10 * np.exp(-1)], rtol=1e-7)
    np.testing.assert_allclose(by_start, np.exp(-0.25) + 10 * np.exp(-1), rtol=1e-7)

    def dense(t, rate):
        return ng.solve_ivp(decay, (0, 3), [2.0], dense_output=True, args=(rate,), **TIGHT).sol(t)[
            0
        ]

    by_t, by_rate = ng.grad(dense, argnums=(0, 1))(0.7, 0.5)
    np.testing.assert_allclose([by_t, by_rate], [-np.exp(-0.35), -1.4 * np.exp(-0.35)], rtol=1e-5)

    def back(start):  # backwards in time
        return ng.solve_ivp(decay, (start, 0.0), [2.0], args=(0.5,), **TIGHT).y[0, -1]

    np.testing.assert_allclose(ng.grad(back)(1.0), np.exp(0.5), rtol=1e-7)


def test_a_span_of_no_length_and_numbers_of_all_kinds():
    assert ng.solve_ivp(decay, (1, 1), [2.0], args=(0.5,)).y[0, -1].item() == 2.0
    gradient = ng.grad(lambda y0: ng.solve_ivp(decay, (1.0, 1.0), y0, args=(0.5,)).y[0, -1])(
        np.array([2.0])
    )
    np.testing.assert_array_equal(gradient, [1.0])
    found = ng.solve_ivp(decay, (0, 1), np.array([2, 3], np.float32), args=(1,), **TIGHT)
    assert found.y.dtype == np.float64
    np.testing.assert_allclose(found.y[:, -1].numpy(), np.array([2, 3]) * np.exp(-1), rtol=1e-7)
    gradient = ng.grad(lambda y: np.sum(ng.solve_ivp(decay, (0, 1), y, args=(1,)).y[:, -1]))(
        np.ones(2, np.float32)
    )
    assert gradient.dtype == np.float32

    def turning(omega):
        y = ng.solve_ivp(lambda t, y, w: 1j * w * y, (0, 1), [1.0 + 0j], args=(omega,), **TIGHT)
        return np.real(y.y[0, -1])

    np.testing.assert_allclose(ng.grad(turning)(2.0), -np.sin(2), rtol=1e-6)


def test_events_are_scipys_and_have_no_gradients():
    def falling(t, y):
        return [y[1], -9.81 + 0 * y[1]]

    def ground(t, y):
        return y[0]

    ground.terminal = True
    found = ng.solve_ivp(falling, (0, 10), [1.0, 0.0], events=ground, rtol=1e-8)
    np.testing.assert_allclose(found.t_events[0], [np.sqrt(2 / 9.81)], rtol=1e-7)
    assert found.status == 1
    with pytest.raises(ng.errors.NumgradNotImplementedError, match="events have no gradients"):
        ng.grad(lambda h: ng.solve_ivp(falling, (0, 10), [h, 0.0], events=ground).y[0, -1])(1.0)


def test_compiled_matrices_of_what_is_not_linear():
    def last(k):
        system = lambda t, y, k: -k * y**2  # noqa: E731
        options = {"args": (k,), "jit": True, "rtol": 1e-8, "atol": 1e-10}
        return ng.solve_ivp(system, (0, 1), [1.0], "Radau", **options).y[0, -1]

    np.testing.assert_allclose(ng.grad(last)(1.0), -0.25, rtol=1e-6)  # of 1 / (1 + k)


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_compiled(method):
    def end(rate, jit):
        return ng.solve_ivp(decay, (0, 1), [2.0], method, args=(rate,), jit=jit).y[0, -1]

    found = ng.value_and_grad(end)
    np.testing.assert_allclose(found(0.5, True), found(0.5, False), rtol=1e-10)


def test_threads_do_not_disturb_each_other():
    found: dict[int, Any] = {}

    def work(k):
        found[k] = ng.grad(_end)(0.1 * k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_allclose(found[k], -3 * np.exp(-0.15 * k), rtol=1e-7)


def _wrong_shape(t, y):
    return y[:1]


BAD = {
    "no method": (lambda: ng.solve_ivp(decay, (0, 1), [1.0], "RK4"), "there is no method 'RK4'"),
    "no adjoint": (
        lambda: ng.solve_ivp(decay, (0, 1), [1.0], args=(1.0,), adjoint="both"), "adjoint is",
    ),
    "no tuple": (lambda: ng.solve_ivp(decay, (0, 1), [1.0], args=0.5), "args is a float"),
    "span": (lambda: ng.solve_ivp(decay, (0, 1, 2), [1.0], args=(1.0,)), "t_span is a pair"),
    "endless": (lambda: ng.solve_ivp(decay, (0, np.inf), [1.0], args=(1.0,)), "not finite"),
    "order": (
        lambda: ng.solve_ivp(decay, (0, 1), [1.0], t_eval=[0.5, 0.2], args=(1.0,)), "sort it",
    ),
    "outside": (
        lambda: ng.solve_ivp(decay, (0, 1), [1.0], t_eval=[2.0], args=(1.0,)), "outside of t_span",
    ),
    "shape": (lambda: ng.solve_ivp(_wrong_shape, (0, 1), [1.0, 2.0]), r"shape \(1,\) for y"),
    "None": (lambda: ng.solve_ivp(lambda t, y: None, (0, 1), [1.0]), "returned a NoneType"),
    "nan": (lambda: ng.solve_ivp(decay, (0, 1), [np.nan], args=(1.0,)), "not finite at the start"),
    "empty": (lambda: ng.solve_ivp(decay, (0, 1), [], args=(1.0,)), "no array in it"),
    "text": (lambda: ng.solve_ivp(decay, (0, 1), "ab", args=(1.0,)), "y0 is a str"),
    "complex": (lambda: ng.solve_ivp(lambda t, y: 1j * y, (0, 1), [1.0]), "complex y0"),
    "traced": (
        lambda: ng.jit(lambda y: ng.solve_ivp(decay, (0, 1), y, args=(1.0,)).y)(np.ones(1)),
        "outside of ng.jit",
    ),
    "no function": (lambda: ng.solve_ivp(3, (0, 1), [1.0]), "solve_ivp"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    call, said = BAD[case]
    with pytest.raises(ng.errors.NumgradError, match=said):
        call()


def test_an_error_of_the_function_comes_through():
    def broken(t, y):
        if t > 0.5:
            raise KeyError("mine")
        return -y

    with pytest.raises(KeyError, match="mine"):
        ng.solve_ivp(broken, (0, 1), [1.0])


def test_parameters_of_lotka_volterra_are_recovered():
    times = np.linspace(0.5, 10, 20)

    def states(p):
        return ng.solve_ivp(
            lotka_volterra, (0, 10), [10.0, 5.0], "DOP853", times, args=(p,), rtol=1e-7, atol=1e-8
        ).y

    seen = states(RATES).numpy()

    def residuals(p):
        return (states(p) - seen).ravel()

    fit = scipy.optimize.least_squares(
        lambda p: residuals(p).numpy(), RATES * [1.1, 0.9, 1.1, 0.95], jac=ng.jacobian(residuals),
        x_scale="jac",
    )  # fmt: skip
    np.testing.assert_allclose(fit.x, RATES, rtol=1e-6)


@pytest.mark.parametrize("adjoint", ["forward", "reverse"])
@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_implicit_methods_of_a_function_that_closes_over_what_is_differentiated(method, adjoint):
    def end(a):
        found = ng.solve_ivp(
            lambda t, y: a @ y, (0, 1.5), Y0, method, adjoint=adjoint, rtol=1e-5, atol=1e-7
        )
        return W @ found.y[:, -1]

    value, found = ng.value_and_grad(end)(A)
    expected, gradients = linear_truth(1.5)
    np.testing.assert_allclose(value, expected, rtol=1e-3)
    close(found, gradients[0], 1e-3)


@pytest.mark.parametrize("place", ["arguments", "one closed over", "both closed over"])
def test_second_derivatives_by_arguments_and_what_is_closed_over(place):
    def end(p):  # exp(a k)
        a, k = p[0], p[1]
        functions = {
            "arguments": (lambda t, y, a, k: a * k * y, (a, k)),
            "one closed over": (lambda t, y, a: a * k * y, (a,)),
            "both closed over": (lambda t, y: a * k * y, ()),
        }
        function, args = functions[place]
        out = ng.solve_ivp(function, (0, 1.0), np.ones(1), args=args, rtol=1e-8, atol=1e-10)
        return out.y[0, -1]

    a, k = p = np.array([0.7, 0.6])
    e = np.exp(a * k)
    expected = np.array([[k * k, 1 + a * k], [1 + a * k, a * a]]) * e
    np.testing.assert_allclose(ng.jacobian(ng.grad(end))(p), expected, rtol=1e-6)


def test_second_derivatives_where_an_argument_is_closed_over_too():
    def end(k):  # exp(k k)
        out = ng.solve_ivp(
            lambda t, y, a: a * k * y, (0, 1.0), np.ones(1), args=(k,), rtol=1e-8, atol=1e-10
        )
        return out.y[0, -1]

    k = 0.7
    expected = (2 + 4 * k * k) * np.exp(k * k)
    np.testing.assert_allclose(ng.grad(ng.grad(end))(k), expected, rtol=1e-6)
