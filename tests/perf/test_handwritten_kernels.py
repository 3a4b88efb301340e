"""The kernels of ``perf/handwritten`` are right, and compute what the benchmarks differentiate."""

import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numgrad as ng

pytestmark = pytest.mark.slow
STEP = 1e-30

Formula = Callable[..., Any]


def _chain(a: Any, b: Any) -> Any:
    return np.sum(np.exp(np.tanh(a * b) + a))


def _logistic(w: Any, x: Any, y: Any) -> Any:
    z = np.sum(x * w, axis=1)
    return np.sum(np.log(1 + np.exp(z)) - y * z) / len(y)


def _cross_entropy(x: Any, labels: Any) -> Any:
    p = np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)
    return -sum(np.log(p[i, label]) for i, label in enumerate(labels)) / len(labels)


def _mixture(alphas: Any, means: Any, icf: Any, x: Any) -> Any:
    """ADBench's objective, sample by sample, with gamma = 1 and m = 0."""
    d = x.shape[1]
    weights = np.exp(alphas) / np.sum(np.exp(alphas))
    total = 0.0
    factors = []
    for row in icf:
        factor, at = np.diag(np.exp(row[:d])), d
        for j in range(d):
            for i in range(j + 1, d):
                factor[i, j] = row[at]
                at += 1
        factors.append(factor)
    for sample in x:
        density = 0.0
        for weight, mean, factor in zip(weights, means, factors, strict=True):
            u = factor @ (sample - mean)
            volume = np.prod(np.diag(factor)) / (2 * np.pi) ** (d / 2)
            density = density + weight * volume * np.exp(-0.5 * np.sum(u * u))
        total = total + np.log(density)
    log_gamma = sum(math.lgamma(0.5 * (d + 1 - i)) for i in range(d))
    log_gamma += 0.25 * d * (d - 1) * math.log(math.pi)
    constant = (d + 1) * d * np.log(np.sqrt(0.5)) - log_gamma
    return total + sum(0.5 * np.sum(f * f) - constant for f in factors)


def _gaussians(p: Any, x: Any, y: Any) -> Any:
    return sum(a * np.exp(-(((x - c) / w) ** 2)) for a, c, w in (p[:3], p[3:])) - y


CASES: dict[str, tuple[Formula, tuple[int, ...], list[dict[str, int]]]] = {
    "chain": (_chain, (0, 1), [{"n": 1}, {"n": 9001}]),
    "logistic": (
        _logistic,
        (0,),
        [{"samples": 1, "features": 3}, {"samples": 1031, "features": 50}],
    ),
    "cross_entropy": (
        _cross_entropy,
        (0,),
        [{"samples": 1, "classes": 1}, {"samples": 7, "classes": 33}],
    ),
    "mixture": (
        _mixture,
        (0, 1, 2),
        [
            {"n": n, "d": d, "components": 3}
            for n, d in ((1, 1), (129, 2), (5, 7), (300, 10), (3, 16))
        ],
    ),
    "gaussians": (_gaussians, (0,), [{"points": 1}, {"points": 300}]),
}


@pytest.fixture
def perf(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a module of ``perf``."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "perf"))
    return import_module


def flat(result: Any) -> list[np.ndarray]:
    """The arrays of nested tuples."""
    if isinstance(result, tuple):
        return [array for part in result for array in flat(part)]
    return [np.asarray(result)]


@pytest.mark.parametrize("name", CASES)
def test_handwritten_kernels_equal_formula_and_its_complex_step(
    name: str, perf: Callable[[str], Any]
) -> None:
    formula, argnums, several = CASES[name]
    module, draw = perf(f"handwritten.{name}"), np.random.default_rng(3)
    for sizes in several:
        args = perf("problems").PROBLEMS[name].arguments(**sizes)
        for kernel in (module.serial, module.parallel):
            found = flat(kernel(*args))
            if name != "gaussians":  # whose result is the Jacobian alone
                np.testing.assert_allclose(found.pop(0), formula(*args), rtol=1e-12)
            for number, gradient in zip(argnums, found, strict=True):
                v = draw.normal(size=args[number].shape)
                moved = [a + 1j * STEP * v if k == number else a for k, a in enumerate(args)]
                expected = formula(*moved).imag / STEP
                axes = gradient.ndim if name != "gaussians" else 1
                error = np.abs(np.tensordot(gradient, v, axes) - expected)
                assert np.all(error <= 1e-14 * np.max(np.abs(gradient)) * np.sum(np.abs(v)))


@pytest.mark.parametrize("name", CASES)
def test_function_that_is_compiled_has_the_gradient_of_the_handwritten_kernel(
    name: str, perf: Callable[[str], Any]
) -> None:
    problem, sizes = perf("problems").PROBLEMS[name], CASES[name][2][1]
    args = problem.arguments(**sizes)
    f = problem.written(np, ng.logsumexp, **sizes)
    found = flat(getattr(ng, problem.transform)(f, problem.argnums)(*args))
    expected = flat(perf(f"handwritten.{name}").serial(*args))
    for given, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-9, atol=1e-11)
