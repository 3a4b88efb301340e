"""Graphs of functions, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.compiler.graph.graph import Graph
from numgrad.compiler.trace.interpreter import TraceInterpreter
from numgrad.compiler.trace.tracer import Tracer


def trace(
    function: Callable[..., Any], *args: Any, captured: list[np.ndarray] | None = None
) -> Graph:
    """What ``function`` computes for arrays and numbers; it returns a Tensor or nested tuples.

    Arrays of the graph that are no arguments go to ``captured``, or there must be none.
    """
    tracer = Tracer()
    given = [
        tracer.array(a.shape, a.dtype) if isinstance(a, np.ndarray) else tracer.number(a)
        for a in args
    ]
    with TraceInterpreter(tracer):
        results = function(*given)
        tracer.graph.outputs = [tracer.value(x) for x in _flat(results)]
    if captured is None:
        assert not tracer.captured
    else:
        captured += [found.owner for found in tracer.captured]
    return tracer.graph


def _flat(results: Any) -> list[Any]:
    if isinstance(results, tuple | list):
        return [x for part in results for x in _flat(part)]
    return [results]


def record(function: Callable[..., Any], *args: Any, **options: Any) -> Tracer:
    """As ``trace``, with all that is known of the trace; what is around may be captured."""
    tracer = Tracer(**options)
    given = [
        tracer.array(a.shape, a.dtype) if isinstance(a, np.ndarray) else tracer.number(a)
        for a in args
    ]
    with TraceInterpreter(tracer):
        results = function(*given)
    tracer.graph.outputs = [tracer.value(x) for x in _flat(results)]
    tracer.graph.verify()
    return tracer


def operations(graph: Graph) -> list[str]:
    """Names of the operations, in order."""
    return [node.name for node in graph.nodes if not isinstance(node.op, str)]


def guards(tracer: Tracer) -> list[str]:
    """What was assumed about lengths, in order."""
    return [guard.text(lambda k: f"n{k}") for guard in tracer.sizes.guards]
