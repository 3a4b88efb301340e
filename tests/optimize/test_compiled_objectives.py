"""Compiled functions stay compiled in solvers and transforms: how often their Python code runs."""

import functools
import warnings

import numpy as np
import pytest

import numgrad as ng
from numgrad.optimize import watch
from tests.compiler.emulator import emulating

RUNS: list[int] = []
T = np.linspace(0, 1, 8)
Y = 2 * np.exp(-1.3 * T)
P = np.array([1.0, 1.5])
WEIGHTS = np.array([1.0, 3.0])
TARGET = np.array([1.0, 2.0])


def residuals(p):
    RUNS.append(1)
    return p[0] * np.exp(-p[1] * T) - Y


def distance(p):
    RUNS.append(1)
    return np.sum((p - TARGET) ** 4 * WEIGHTS)


def scaled_distance(p, scale):
    RUNS.append(1)
    return np.sum((p - TARGET) ** 2) * scale


def of_scale(scale, p):
    RUNS.append(1)
    return np.sum((p - TARGET) ** 2) * scale


def model(t, a, b):
    RUNS.append(1)
    return a * np.exp(-b * t)


def equations(p):
    RUNS.append(1)
    return np.stack([p[0] ** 2 + p[1] - 3.0, p[0] - p[1]])


def gauss(x):
    RUNS.append(1)
    return np.exp(-x * x)


def slope(t, y):
    RUNS.append(1)
    return -y * WEIGHTS


class Model:
    def __init__(self):
        self.target = TARGET

    @ng.jit
    def distance(self, p):
        RUNS.append(1)
        return np.sum((p - self.target) ** 4)


def points(f):
    """Its results at ten points."""
    return [f(P + 0.1 * k) for k in range(10)]


def rows(f):
    return [f(np.stack([P + 0.1 * k, P])) for k in range(10)]


def x_of(result):
    return result.x


CASES = {
    "least_squares": lambda jit: x_of(ng.least_squares(jit(residuals), P)),
    "least_squares trf": lambda jit: x_of(ng.least_squares(jit(residuals), P, method="trf")),
    "curve_fit": lambda jit: np.stack(list(ng.curve_fit(jit(model), T, Y).x)),
    "root": lambda jit: x_of(ng.root(jit(equations), P)),
    "minimize": lambda jit: x_of(ng.minimize(jit(distance), P)),
    "Newton-CG": lambda jit: x_of(ng.minimize(jit(distance), P, method="Newton-CG")),
    "trust-exact": lambda jit: x_of(ng.minimize(jit(distance), P, method="trust-exact")),
    "Nelder-Mead": lambda jit: x_of(ng.minimize(jit(distance), P, method="Nelder-Mead")),
    "minimize args": lambda jit: x_of(ng.minimize(jit(scaled_distance), P, args=(2.0,))),
    "partial": lambda jit: x_of(ng.minimize(functools.partial(jit(of_scale), 2.0), P)),
    "method": lambda jit: x_of(ng.minimize(Model().distance, P)),
    "quad": lambda jit: ng.quad(jit(gauss), 0.0, 1.0)[0],
    "solve_ivp": lambda jit: ng.solve_ivp(jit(slope), (0.0, 1.0), P).y[:, -1],
    "Radau": lambda jit: ng.solve_ivp(jit(slope), (0.0, 1.0), P, method="Radau").y[:, -1],
    "grad": lambda jit: points(ng.grad(jit(distance))),
    "value_and_grad": lambda jit: [g for _, g in points(ng.value_and_grad(jit(distance)))],
    "jacobian": lambda jit: points(ng.jacobian(jit(residuals))),
    "jacrev": lambda jit: points(ng.jacrev(jit(residuals))),
    "jacfwd": lambda jit: points(ng.jacfwd(jit(residuals))),
    "hessian": lambda jit: points(ng.hessian(jit(distance))),
    "hvp": lambda jit: points(functools.partial(lambda f, p: f(p, P), ng.hvp(jit(distance)))),
    "jvp": lambda jit: points(
        functools.partial(lambda f, p: ng.jvp(f, (p,), (WEIGHTS,))[1], jit(residuals))
    ),
    "vjp": lambda jit: points(
        functools.partial(lambda f, p: ng.vjp(f, p)[1](1.0)[0], jit(distance))
    ),
    "linearize": lambda jit: points(
        functools.partial(lambda f, p: ng.linearize(f, p)[1](P), jit(distance))
    ),
    "vmap": lambda jit: rows(ng.vmap(jit(distance))),
    "vmap of grad": lambda jit: rows(ng.vmap(ng.grad(jit(distance)))),
    "vmap of jacfwd": lambda jit: rows(ng.vmap(ng.jacfwd(jit(residuals)))),
    "jacfwd of grad": lambda jit: points(ng.jacfwd(ng.grad(jit(distance)))),
    "grad of grad": lambda jit: [
        f(1.0 + 0.1 * k) for f in [ng.grad(ng.grad(jit(gauss)))] for k in range(10)
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_compiled_functions_stay_compiled(case):
    run = CASES[case]
    expected = run(lambda f: f)
    RUNS.clear()
    with emulating():
        found = run(ng.jit)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert 1 <= len(RUNS) <= 4  # once for each of what is compiled
    for a, b in zip(ng.tree.leaves(found), ng.tree.leaves(expected), strict=True):
        assert type(a) is type(b)


def test_what_is_compiled_is_kept_for_the_next_solver():
    with emulating():
        fast = ng.jit(residuals)
        ng.least_squares(fast, P)
        count = len(RUNS)
        ng.least_squares(fast, P + 0.1)
    assert len(RUNS) == count


def test_static_arguments_are_left_to_the_function_itself():
    def power(x, n):
        return np.sum(x**n)

    fast = ng.jit(power, static_argnums=1)
    with emulating():
        found = ng.vmap(lambda x: fast(x, 3))(np.stack([P, P * 2]))
    np.testing.assert_allclose(found, [np.sum(P**3), 8 * np.sum(P**3)])


def test_slow_functions_name_jit_once(monkeypatch):
    monkeypatch.setattr(watch, "SLOW", -1.0)
    monkeypatch.setattr(watch._Told, "once", False)
    with pytest.warns(UserWarning, match="not compiled; jit=True compiles it") as met:
        ng.minimize(distance, P)
    assert [w.filename for w in met] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ng.least_squares(residuals, P)


def test_functions_that_cannot_be_compiled_do_not_name_jit(monkeypatch):
    monkeypatch.setattr(watch, "SLOW", -1.0)
    monkeypatch.setattr(watch._Told, "once", False)
    ng.minimize(
        lambda p: ng.solve_ivp(lambda t, y: -p * y, (0, 1), [1.0]).y[0, -1] ** 2 + p**2,
        1.0,
        options={"maxiter": 1},
    )
    assert not watch._Told.once
    with pytest.warns(UserWarning, match="jit=True"):  # the next one may be
        ng.minimize(distance, P)


def test_compiled_functions_do_not_name_jit(monkeypatch):
    monkeypatch.setattr(watch, "SLOW", -1.0)
    monkeypatch.setattr(watch._Told, "once", False)
    with emulating():
        ng.least_squares(ng.jit(residuals), P)
        ng.minimize(distance, P, jit=True)
    assert not watch._Told.once
