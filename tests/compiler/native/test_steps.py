"""Native functions of several steps: loops, branches, operations that kernels of ours compute."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from scipy import special

import numgrad as ng
from numgrad.core.tree import leaves

RNG = np.random.default_rng(11)
X, V = RNG.normal(size=(4, 3)), RNG.normal(size=9)
S = X @ X.T + 4 * np.eye(4)


def _tanh(c: Any, a: Any) -> Any:
    return np.tanh(c + a), c * a


def _nested(x: Any) -> Any:
    def outer(c: Any, _: Any) -> Any:
        return ng.scan(lambda d, _: (np.sin(d) + c, None), c, None, 3)[0], c

    return ng.scan(outer, x, None, 4)


def _two_moments(reverse: bool) -> Any:
    """A gradient whose rows are those of another part of the carry, a step earlier."""

    def function(x: Any) -> Any:
        def step(c: Any, a: Any) -> Any:
            return (c[1], np.sin(c[1]) * np.cos(c[0]) * a), None

        (_, b), _ = ng.scan(step, (x, x * 2), X, reverse=reverse)
        return np.sum(b)

    return ng.value_and_grad(function)


def _sorted_rows(x: Any) -> Any:
    def step(c: Any, a: Any) -> Any:
        new = ng.scan(lambda d, _: (np.sin(d) + a, None), np.sort(c), None, 2)[0]
        return new, new * a

    return ng.scan(step, x, X, reverse=True)


def _grown(x: Any) -> Any:
    return ng.while_loop(lambda c: np.sum(c) < 10.0, lambda c: c * 1.5, x)


def _sorted_while(x: Any) -> Any:
    """A loop whose step is no kernel."""
    return ng.while_loop(
        lambda c: c[0] < 10.0, lambda c: ng.fori_loop(0, 3, lambda i, d: d * 1.5 + i, np.sort(c)), x
    )


def _flow(y: Any) -> Any:
    return ng.integrate.odeint(lambda y, t: -y * y, y, np.linspace(0.0, 1.0, 4))


def _branch(x: Any) -> Any:
    return ng.cond(x[0] > 0, lambda x: np.sum(np.sort(x) * x), lambda x: np.sum(x - 1), x)


LOOPS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "scan": (lambda x: ng.scan(_tanh, x, X), (X[0],)),
    "scan backwards": (lambda x, s: ng.scan(_tanh, x, s, reverse=True), (X[0], X)),
    "gradient of scan": (
        ng.value_and_grad(lambda x, s: np.sum(ng.scan(_tanh, x, s)[0] ** 2), argnums=(0, 1)),
        (X[0], X),
    ),
    "two moments": (_two_moments(False), (X[0],)),
    "two moments backwards": (_two_moments(True), (X[0],)),
    "steps that are no kernels backwards": (_sorted_rows, (X[0],)),
    "fori": (lambda x, n: ng.fori_loop(0, n, lambda i, c: c + np.sin(c) * i, x), (X[0], 5)),
    "while": (_grown, (np.abs(X[0]),)),
    "while, no step": (_grown, (X[0] + 100.0,)),
    "gradient of while": (ng.value_and_grad(lambda x: _grown(x)[0]), (np.abs(X[0]),)),
    "step that is no kernel": (_sorted_while, (X[0] + 3.0,)),
    "cond": (lambda x: ng.cond(x[0] > 0, np.exp, lambda x: x - 1, x), (X[0],)),
    "gradient of cond": (ng.value_and_grad(_branch), (V,)),
    "other branch": (ng.value_and_grad(_branch), (-np.abs(V),)),
    "switch": (
        lambda k, x: ng.switch(k, [np.sort, np.exp, lambda x: x * 2], x),
        (np.int64(7), RNG.normal(size=200)),
    ),
    "nested": (ng.value_and_grad(lambda x: np.sum(_nested(x)[0])), (X[0],)),
    "hvp": (
        lambda x, v: ng.hvp(
            lambda x: np.sum(ng.scan(lambda c, _: (np.sin(c) * c, None), x, None, 6)[0])
        )(x, v),
        (X[0], X[1]),
    ),
    "hessian": (
        ng.hessian(lambda x: np.sum(ng.scan(lambda c, _: (np.sin(c) * c, c), x, None, 3)[0])),
        (X[0],),
    ),
    "adaptive": (_flow, (X[0],)),
    "jacobian of adaptive": (ng.jacobian(_flow), (X[0],)),
    "sort": (ng.value_and_grad(lambda x: np.sum(np.sort(x) * np.arange(9))), (V,)),
    "argsort": (lambda x: (np.argsort(x), np.sort(x)[::-1]), (V,)),
    "median": (ng.value_and_grad(lambda x: np.median(np.exp(x))), (V,)),
    "quantile": (ng.grad(lambda x: np.quantile(x, 0.3)), (V,)),
    "searchsorted": (lambda a, v: np.searchsorted(np.sort(a), v) + 1, (V, X[1])),
    "interp": (
        ng.grad(lambda x: np.sum(np.interp(x, np.arange(5.0), np.arange(5.0) ** 2))),
        (X[0] + 1,),
    ),
    "products": (ng.value_and_grad(lambda a, b: np.sum(np.tanh(a @ b) @ a)), (S, S + 1)),
}
FIRST = ("gradient of while", "step that is no kernel", "gradient of cond")
CASES = [(name, "free") for name in FIRST]
CASES += [(n, s) for n in LOOPS for s in ("free", "fixed") if (n, s) not in CASES]

FACTORED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "solve": (ng.value_and_grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 3)), (S, X)),
    "fft": (ng.grad(lambda x: np.sum(np.abs(np.fft.fft(x)[1:]) ** 3)), (V,)),
    "irfft": (lambda x: np.fft.irfft(np.fft.rfft(x) * 2, n=12), (RNG.normal(size=12),)),
    "cholesky": (ng.value_and_grad(lambda a: np.sum(np.linalg.cholesky(a))), (S,)),
    "inverse": (ng.grad(lambda a: np.sum(np.linalg.inv(a) ** 3)), (S,)),
    "slogdet": (ng.value_and_grad(lambda a: np.linalg.slogdet(a)[1]), (S,)),
    "solve of 40": (
        ng.value_and_grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 3)),
        (np.eye(40) * 9 + RNG.normal(size=(40, 40)), RNG.normal(size=40)),
    ),
}
"""What ``ng.jit`` leaves to LAPACK and pocketfft: bits differ."""


def _results(name: str, shapes: Any) -> list[tuple[Any, Any]]:
    function, arguments = (LOOPS | FACTORED)[name]
    fast = ng.jit(function)
    native = fast.native(*arguments, shapes=shapes)
    return list(zip(leaves(native(*arguments)), leaves(fast(*arguments)), strict=True))


@pytest.mark.slow(cases=len(FIRST))
@pytest.mark.parametrize(("name", "shapes"), CASES)
def test_loops_have_the_bits_of_jit(name: str, shapes: Any) -> None:
    for a, b in _results(name, shapes):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("name", FACTORED)
def test_factors_and_transforms(name: str) -> None:
    for a, b in _results(name, "fixed"):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_lengths_of_loops_are_arguments() -> None:
    function = ng.value_and_grad(lambda x, s: np.sum(ng.scan(_tanh, x, s)[0] ** 2))
    fast = ng.jit(function)
    native = fast.native(X[0], X)
    for n, m in ((5, 2), (2, 7), (40, 300)):
        x, s = RNG.normal(size=n), RNG.normal(size=(m, n))
        for a, b in zip(native(x, s), fast(x, s), strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(ng.NumgradValueError, match="expected"):
        native(X[0], X[:, :2])


def test_lengths_of_systems_are_arguments() -> None:
    def both(a: Any, b: Any) -> Any:
        return ng.scan(lambda c, _: (np.linalg.solve(a, c), None), b, None, 2)[0]

    native = ng.jit(both).native(S, X[:, 0])
    for n in (2, 7, 40):
        a, b = RNG.normal(size=(n, n)) + 2 * n * np.eye(n), RNG.normal(size=n)
        expected = np.linalg.solve(a @ a, b)
        np.testing.assert_allclose(native(a, b), expected, rtol=1e-9, atol=1e-12)


def test_loops_are_reentrant() -> None:
    native = ng.jit(ng.value_and_grad(_branch)).native(V)
    points = RNG.normal(size=(4, 9))
    results: list[Any] = [None] * 4

    def work(k: int) -> None:
        value, gradient, x = np.empty(1), np.empty(9), points[k]
        for _ in range(300):
            function(x.ctypes.data, 9, value.ctypes.data, gradient.ctypes.data)
        results[k] = value[0], gradient

    function = native.ctypes
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, (value, gradient) in zip(points, results, strict=True):
        y = np.sort(x)
        assert value == pytest.approx(np.sum(y * x) if x[0] > 0 else np.sum(x - 1), rel=1e-12)
        expected = np.ones(9)
        if x[0] > 0:  # of sum_k y_k x_k: y_i, and x at the place of x_i in order
            expected = y + x[np.argsort(np.argsort(x))]
        np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_errors_within_loops_are_a_status() -> None:
    native = ng.jit(lambda x, i: ng.scan(lambda c, k: (c + np.take(x, k), None), 0.0, i)[0]).native(
        V, np.arange(3)
    )
    places, out = np.array([1, 20]), np.empty(1)
    assert native.ctypes(V.ctypes.data, 9, places.ctypes.data, 2, out.ctypes.data) == 3
    with pytest.raises(IndexError, match="index 20 is out of range"):
        native(V, places)


def _eigenvalues(a: Any) -> Any:
    return np.sum(np.linalg.eigvalsh(a)) * np.exp(a[0, 0])


def _singular(a: Any) -> Any:
    return ng.cond(a[0, 0] > 0, lambda a: np.linalg.svd(a)[1], lambda a: a[0], a)


def _in_steps(a: Any) -> Any:
    return ng.scan(lambda c, _: (np.linalg.pinv(c), None), a, None, 3)[0]


def _zeta(a: Any) -> Any:
    return special.zeta(a + 2.0)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (_eigenvalues, "np.linalg.eigvalsh"),
        (_singular, "np.linalg.svd"),
        (_in_steps, "np.linalg.pinv"),
        (_zeta, "special.zeta"),
        (lambda a: np.linalg.solve(a + 1j, a[0]), "solve"),
    ],
)
def test_what_needs_python_is_refused_by_name_and_line(function: Any, name: str) -> None:
    line = function.__code__.co_firstlineno
    line += function.__name__ != "<lambda>"
    with pytest.raises(ng.NumgradNotImplementedError, match=rf"Python: {name} at .*:{line} has"):
        ng.jit(function).native(S)
