"""The source generated for representative functions, kept in ``golden``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.run.program import KernelProgram, Options
from numgrad.compiler.trace.interpreter import TraceInterpreter
from numgrad.compiler.trace.tracer import Tracer

GOLDEN = Path(__file__).parent / "golden"


def _gradient(function: Callable[..., Any], count: int = 1) -> Callable[..., Any]:
    both = ng.value_and_grad(function, argnums=tuple(range(count)))
    return lambda *given: both(*given)


def _mixture(a: Any, means: Any, scales: Any, x: Any) -> Any:
    distance = np.sum(((x[:, None, :] - means) * np.exp(scales)) ** 2, axis=2)
    return np.sum(ng.logsumexp(a + np.sum(scales, axis=1) - 0.5 * distance, axis=1))


def _normalize(x: Any) -> Any:
    centred = x - np.mean(x, axis=1, keepdims=True)
    return centred / np.sqrt(np.var(x, axis=1, keepdims=True) + 1e-5)


def _entropy(x: Any, target: Any) -> Any:
    return -np.mean(np.sum(ng.log_softmax(x, axis=1) * target, axis=1))


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "chain": (lambda x: np.exp(np.tanh(x) * 2) + x, ((100,),)),
    "broadcast": (lambda x, y: x * y + 1, ((30, 40), (40,))),
    "outer": (lambda x, y: np.exp(x[:, None] - y), ((30,), (40,))),
    "sum": (lambda x: np.sum(x * x), ((100,),)),
    "sum_of_rows": (lambda x: np.sum(np.exp(x), axis=1), ((30, 40),)),
    "sum_of_columns": (lambda x: np.sum(np.exp(x), axis=0), ((30, 40),)),
    "softmax": (lambda x: ng.softmax(x, axis=1), ((30, 40),)),
    "softmax_of_columns": (lambda x: ng.softmax(x, axis=0), ((30, 40),)),
    "normalization": (_normalize, ((30, 40),)),
    "short_axis": (lambda x: np.sum(np.sin(x), axis=1), ((400, 3),)),
    "views": (lambda x: x.T[::-1, 1:] * 2, ((30, 40),)),
    "concatenation": (lambda x, y: np.concatenate([x, y]) * 3, ((30,), (40,))),
    "differences": (lambda x: x[1:] - x[:-1], ((30,),)),
    "ring": (lambda x: np.roll(x, 1) - 2 * x + np.roll(x, -1), ((100,),)),
    "cumulative": (lambda x: np.cumsum(x * 2, axis=0), ((30,),)),
    "product": (lambda x, y: np.tanh(x @ y), ((30, 40), (40, 50))),
    "complex": (lambda x: np.abs(x * (1 + 2j)), ((30,),)),
    "gradient_of_a_chain": (
        _gradient(lambda a, b: np.sum(np.exp(np.tanh(a * b) + a)), 2),
        ((100,), (100,)),
    ),
    "gradient_of_entropy": (_gradient(_entropy), ((30, 10), (30, 10))),
    "gradient_of_regression": (
        _gradient(lambda w, x, y: np.mean(ng.softplus(-y * (x @ w)))),
        ((50,), (1000, 50), (1000,)),
    ),
    "gradient_of_a_mixture": (_gradient(_mixture, 3), ((5,), (5, 2), (5, 2), (300, 2))),
}


def source(name: str) -> str:
    """What is compiled for a function; nothing is compiled."""
    function, shapes = FUNCTIONS[name]
    tracer = Tracer()
    given = [tracer.array(shape, np.float64) for shape in shapes]
    with TraceInterpreter(tracer):
        out = function(*given)
    tracer.graph.outputs = [tracer.value(t) for t in _leaves(out)]
    tracer.graph.resolve_sizes()
    return KernelProgram(tracer.graph, Options(name)).source


def _leaves(out: Any) -> list[Any]:
    return [t for part in out for t in _leaves(part)] if isinstance(out, tuple) else [out]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_generated_source(name):
    """Refactoring leaves sources as they are; NUMGRAD_UPDATE_GOLDEN=1 accepts changes."""
    found = source(name)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("NUMGRAD_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(found)
    assert found == path.read_text(), f"{name} changed"


def test_every_golden_file_is_compared():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(FUNCTIONS)
