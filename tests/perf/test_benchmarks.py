"""The functions whose first calls are timed are what they are called; times are judged rightly."""

from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import numgrad as ng

STEP = 1e-30

Formula = Callable[..., Any]


@pytest.fixture
def perf(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a module of ``perf``."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "perf"))
    return import_module


def _long_chain(x: Any, w: Any) -> Any:
    total = 0.0
    for number, weight in zip(x, w, strict=True):
        for _ in range(3):
            number = number + 0.01 * np.sin(weight * number)
        total = total + number
    return total


def _lorenz(state: Any, parameters: Any) -> Any:
    """The classical method by its tableau."""
    sigma, rho, beta = parameters
    nodes, weights = (0.0, 0.005, 0.005, 0.01), (1 / 6, 1 / 3, 1 / 3, 1 / 6)
    for _ in range(2):
        slopes: list[Any] = [np.zeros(3)]
        for node in nodes:
            x, y, z = state + node * slopes[-1]
            slopes.append(np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z]))
        state = state + 0.01 * sum(b * k for b, k in zip(weights, slopes[1:], strict=True))
    return np.sum(state * state)


def _lstm(gates: Any, ends: Any, memory: Any, text: Any) -> Any:
    """Letter by letter: every cell has its own four gates."""
    hidden, cells, loss = memory[:, 0].astype(complex), memory[:, 1].astype(complex), 0.0
    for now, after in pairwise(text):
        scores = []
        for k in range(text.shape[1]):
            x = now[k] * ends[0, k]
            for layer, (weights, biases) in enumerate(gates[..., k].transpose(0, 2, 1)):
                seen = np.array([x, hidden[layer, k], x, hidden[layer, k]])
                z = weights * seen + biases
                keep, take, give = 1 / (1 + np.exp(-z[:3]))
                cells[layer, k] = keep * cells[layer, k] + take * np.tanh(z[3])
                x = hidden[layer, k] = give * np.tanh(cells[layer, k])
            scores.append(x * ends[1, k] + ends[2, k])
        normal = np.log(2 + sum(np.exp(score) for score in scores))
        loss = loss - (scores[int(np.argmax(after))] - normal)
    return loss / (len(text) - 1) / text.shape[1]


def _bundle(poses: Any, world: Any, weights: Any, seen_by: Any, seen: Any, features: Any) -> Any:
    """Observation by observation, the rotation as a matrix exponential."""
    total = 0.0
    for weight, camera, point, feature in zip(weights, seen_by, seen, features, strict=True):
        (a, b, c), centre, focal = poses[camera, :3], poses[camera, 3:6], poses[camera, 6]
        turn = expm(np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]]))
        x, y, z = turn @ (world[point] - centre)
        u, v = x / z, y / z
        square = u * u + v * v
        bend = 1 + poses[camera, 9] * square + poses[camera, 10] * square * square
        for place, middle, wanted in zip((u, v), poses[camera, 7:9], feature, strict=True):
            total = total + 0.5 * (weight * (focal * bend * place + middle - wanted)) ** 2
    return total


def _log_sum(a: Any, b: Any) -> Any:
    return np.log(sum(np.exp(x) for x in a * b))


FORMULAS: dict[str, tuple[Formula, dict[str, int]]] = {
    "log sum": (_log_sum, {"n": 9}),
    "long chain": (_long_chain, {"n": 5, "operations": 12}),
    "lorenz": (_lorenz, {"steps": 2}),
    "lstm": (_lstm, {"steps": 3, "letters": 4}),
    "bundle": (_bundle, {"cameras": 3, "points": 4, "observations": 7}),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_functions_to_compile_equal_formula_and_its_complex_step(
    name: str, perf: Callable[[str], Any]
) -> None:
    formula, sizes = FORMULAS[name]
    problem = perf("problems").PROBLEMS[name]
    args = problem.arguments(**sizes)
    f = problem.written(np, ng.logsumexp, **sizes)
    value, gradients = ng.value_and_grad(f, problem.argnums)(*args)
    np.testing.assert_allclose(value, formula(*args), rtol=1e-12)
    draw = np.random.default_rng(1)
    for number, gradient in zip(problem.argnums, gradients, strict=True):
        v = draw.normal(size=args[number].shape)
        moved = [a + 1j * STEP * v if k == number else a for k, a in enumerate(args)]
        scale = np.max(np.abs(gradient)) * np.sum(np.abs(v))
        assert abs(np.sum(gradient * v) - formula(*moved).imag / STEP) <= 1e-13 * scale


def _instead(times: dict[str, Any]) -> Callable[..., tuple[float, float]]:
    """A first call that takes the next of ``times`` of a library, or fails as they say."""
    left = {library: iter(found) for library, found in times.items()}

    def first_call(case: Any, library: str, *_: Any) -> tuple[float, float]:
        found = next(left[library])
        if isinstance(found, Exception):
            raise found
        return found

    return first_call


def test_first_call_is_judged_by_the_smallest_ratio_to_jax(
    perf: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first_calls = perf("first_calls")
    times = {"numgrad": [(3.0, 2.0), (1.0, 1.5)], "jax": [(2.0, 4.0), (2.5, 3.0)]}
    monkeypatch.setattr(first_calls, "first_call", _instead(times))
    (found,) = first_calls.MEASURES["first call/chain"](2, 6)
    assert (found.value, found.limit, found.met) == (0.5, 1.0, True)
    assert "ratio 0.50 (0.50)" in found.text


def test_first_call_that_jax_does_not_finish_is_judged_in_seconds(
    perf: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first_calls = perf("first_calls")
    times = {"numgrad": [(3.0, 2.0), (2.5, 1.5)], "jax": [TimeoutError()]}
    monkeypatch.setattr(first_calls, "first_call", _instead(times))
    (found,) = first_calls.MEASURES["first call/Lorenz, 50 steps"](2, 6)
    assert (found.value, found.limit, found.met) == (2.5, 2.0, False)
    assert "jax over" in found.text


def test_first_call_without_jax_has_no_verdict(
    perf: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first_calls = perf("first_calls")
    times = {"numgrad": [(1.0, 2.0)], "jax": [RuntimeError("ModuleNotFoundError: jax")]}
    monkeypatch.setattr(first_calls, "first_call", _instead(times))
    (found,) = first_calls.MEASURES["first call/chain"](2, 1)
    assert (found.value, found.met) == (1.0, None)


def test_time_is_taken_without_what_makes_ready(perf: Callable[[str], Any]) -> None:
    seconds = perf("processes").seconds
    clock = """
from itertools import count
time.perf_counter, time.process_time = (lambda t=count(): next(t) for _ in range(2))
[time.perf_counter() for _ in range(5)]
"""
    assert seconds("pass", {}, 1, clock) == (1.0, 1.0)  # ticks of clocks that count their readings
    with pytest.raises(TimeoutError, match="not done after 0 s"):
        seconds("import time; time.sleep(9)", {}, 1, patience=0.2)


@pytest.mark.slow(cases=0)
def test_first_call_compiles_in_a_cache_of_its_own(
    perf: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path))
    first_calls = perf("first_calls")
    case = first_calls.FirstCall("gradient", {"problem": "chain", "n": 10})
    wall, cpu = first_calls.first_call(case, "numgrad", 1, 200.0)
    assert wall > 0
    assert cpu > 0
    assert not any(tmp_path.iterdir())
