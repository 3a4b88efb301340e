"""The loops that are timed have the gradients of plain Python loops, and those written by hand."""

from collections.abc import Callable
from importlib import import_module
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import logsumexp

import numgrad as ng

SIZES: dict[str, dict[str, Any]] = {
    "lorenz": {"steps": 7},
    "lstm": {"characters": 6, "letters": 3},
    "kalman": {"observations": 4},
    "heat": {"points": 6, "steps": 5},
    "wave": {"points": 6, "steps": 5},
    "hidden_markov": {"states": 3, "steps": 5},
}
HANDWRITTEN = ("lorenz", "lstm", "heat", "wave", "hidden_markov")


@pytest.fixture
def perf(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a module of ``perf``."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "perf"))
    return import_module


def scan(step: Any, carry: Any, xs: Any, length: Any = None) -> Any:
    rows = []
    count = length if xs is None else len(xs[0] if isinstance(xs, tuple) else xs)
    for k in range(count):
        x = tuple(a[k] for a in xs) if isinstance(xs, tuple) else None if xs is None else xs[k]
        carry, y = step(carry, x)
        rows.append(y)
    return carry, np.array(rows)


PLAIN = SimpleNamespace(
    scan=scan, logsumexp=logsumexp, value_and_grad=lambda f, argnums=0: (f, argnums)
)


@pytest.mark.parametrize("name", SIZES)
def test_loops_equal_python_loops_and_their_differences(
    name: str, perf: Callable[[str], Any]
) -> None:
    stated, sizes = perf("loops").LOOPS[name], SIZES[name]
    args = stated.arguments(**sizes)
    value, grads = stated.written(np, ng, **sizes)(*args)
    f, argnums = stated.written(np, PLAIN, **sizes)
    np.testing.assert_allclose(value, f(*args), rtol=1e-13)
    if isinstance(argnums, int):
        argnums, grads = (argnums,), (grads,)
    draw, h = np.random.default_rng(0), 1e-5
    for number, grad in zip(argnums, grads, strict=True):
        v = draw.normal(size=args[number].shape)

        def along(t: float, number: int = number, v: Any = v) -> Any:
            return f(*(a + t * v if k == number else a for k, a in enumerate(args)))

        expected = (along(h) - along(-h)) / (2 * h)
        scale = np.sqrt(np.sum(grad**2) * np.sum(v**2))
        assert abs(np.sum(grad * v) - expected) <= 1e-7 * scale


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("name", HANDWRITTEN)
def test_loops_by_hand_have_the_same_gradients(name: str, perf: Callable[[str], Any]) -> None:
    stated, sizes = perf("loops").LOOPS[name], SIZES[name]
    args = stated.arguments(**sizes)
    steps = [sizes["steps"]] if "steps" in sizes and name != "hidden_markov" else []
    value, grads = perf(f"handwritten.{name}").serial(*args, *steps)
    wanted, expected = stated.written(np, ng, **sizes)(*args)
    np.testing.assert_allclose(value, wanted, rtol=1e-13)
    if not isinstance(grads, tuple):
        grads, expected = (grads,), (expected,)
    for a, b in zip(grads, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_filter_is_the_likelihood_of_all_observations_together(perf: Callable[[str], Any]) -> None:
    stated = perf("loops").LOOPS["kalman"]
    p, seen = stated.arguments(observations=5)
    value, _ = stated.written(np, ng, observations=5)(p, seen)
    n, motion = len(seen), np.eye(4) + 0.1 * np.eye(4, k=2)
    powers = [np.linalg.matrix_power(motion, k) for k in range(n + 1)]
    mean = np.concatenate([(powers[k + 1] @ p[6:])[:2] for k in range(n)])
    joint = np.kron(np.eye(n), np.diag(np.exp(p[4:6])))
    for i, j in product(range(n), repeat=2):
        block = powers[i + 1] @ powers[j + 1].T
        for k in range(min(i, j) + 1):
            block = block + powers[i - k] @ np.diag(np.exp(p[:4])) @ powers[j - k].T
        joint[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] += block[:2, :2]
    miss = seen.ravel() - mean
    expected = np.linalg.slogdet(joint)[1] + miss @ np.linalg.solve(joint, miss)
    np.testing.assert_allclose(value, -0.5 * expected, rtol=1e-12)


def test_forward_algorithm_is_the_sum_over_all_paths(perf: Callable[[str], Any]) -> None:
    stated, sizes = perf("loops").LOOPS["hidden_markov"], SIZES["hidden_markov"]
    moves, emits, seen = stated.arguments(**sizes)
    value, _ = stated.written(np, ng, **sizes)(moves, emits, seen)
    moves, emits = (a / a.sum(1, keepdims=True) for a in (np.exp(moves), np.exp(emits)))
    total = 0.0
    for path in product(range(3), repeat=len(seen)):
        likelihood = emits[path[0], seen[0]] / 3
        for a, b, k in zip(path, path[1:], seen[1:], strict=False):
            likelihood *= moves[a, b] * emits[b, k]
        total += likelihood
    np.testing.assert_allclose(value, np.log(total), rtol=1e-12)


@pytest.mark.slow(cases=0)
def test_animals_are_those_of_scipy(perf: Callable[[str], Any]) -> None:
    def odeint(slope: Any, start: Any, times: Any, p: Any, rtol: float, atol: float) -> Any:
        options = {"t_eval": times, "args": (p,), "rtol": 1e-11, "atol": 1e-11}
        found = solve_ivp(lambda t, y, p: slope(y, t, p), times[[0, -1]], start, **options)
        return found.y.T

    library = SimpleNamespace(odeint=odeint, value_and_grad=lambda f: f)
    stated = perf("loops").LOOPS["lotka_volterra"]
    (p,) = stated.arguments(observations=3)
    expected = stated.written(np, library, observations=3)(p)
    value, slope = stated.written(np, ng, observations=3)(p)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert slope.shape == p.shape


@pytest.mark.parametrize("derivative", ["grad", "hessian"])
def test_likelihood_has_the_derivatives_of_the_textbook(
    derivative: str, perf: Callable[[str], Any]
) -> None:
    sizes = {"derivative": derivative, "samples": 9, "parameters": 3}
    stated = perf("loops").LOOPS["likelihood"]
    w, x, y = stated.arguments(**sizes)
    share = 1 / (1 + np.exp(-x @ w))
    known = {"grad": x.T @ (share - y), "hessian": (x.T * share * (1 - share)) @ x}
    found = stated.written(np, ng, **sizes)(w, x, y)
    np.testing.assert_allclose(found, known[derivative], rtol=1e-12, atol=1e-14)


def test_gradients_by_sample_are_those_of_single_samples(perf: Callable[[str], Any]) -> None:
    stated = perf("loops").LOOPS["examples"]
    (w, b, v, c), x, y = stated.arguments(samples=4)
    found = stated.written(np, ng)((w, b, v, c), x, y)
    for k in range(4):
        hidden = np.tanh(x[k] @ w + b)
        g = 2 * (hidden @ v + c - y[k])
        inner = g * v * (1 - hidden**2)
        expected = (np.outer(x[k], inner), inner, g * hidden, g)
        for a, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(a[k], e, rtol=1e-12)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ["distortion", "particles", "fluid", "in place", "squares"])
def test_programs_against_warp_have_the_derivatives_of_differences(name, perf):
    against_warp = perf("against_warp")
    example = against_warp.examples(60)[name]
    value, slope, along = against_warp.directional(example)
    given = [np.asarray(a, float) if np.size(a) > 1 and np.asarray(a).dtype.kind == "f" else a
             for a in example.arguments]  # fmt: skip
    kernel = ng.kernel(example.function)
    own, gradients = ng.value_and_grad(kernel, argnums=example.places)(*given)
    assert own == value
    total = sum(np.sum(g * d) for g, d in zip(gradients, along, strict=True))
    np.testing.assert_allclose(total, slope, rtol=1e-5)
