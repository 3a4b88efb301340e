"""Code that runs between the kernels of a compiled graph: operations, loops, graphs within it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numgrad.compiler.graph.evaluate import compute
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.graph.sizes import Sizes
from numgrad.compiler.lower.terms import Term
from numgrad.compiler.messages import name_line
from numgrad.errors import NumgradError


@dataclass
class Segment:
    """Other code that runs between kernels: a node computed by its operation."""

    node: TracedNode
    results: list[Term] = field(default_factory=list)


def run_of(node: TracedNode) -> Callable[..., tuple[Any, ...]]:
    """What computes a node, given it, the sizes of its graph, operands and lengths of axes."""
    return _RUNS.get(node.name, _run_operation)


def _run_body(
    node: TracedNode, sizes: Sizes, given: tuple, lengths: dict[int, int]
) -> tuple[Any, ...]:
    """The results of a graph within the graph, which are new arrays."""
    params = dict(node.params)
    params["lengths"] = [sizes.evaluate(n, lengths) for n in params["lengths"]]
    if "length" in params:
        params["length"] = sizes.evaluate(params["length"], lengths)
    try:
        results = node.op.function(*given, **params)  # pyright: ignore
    except NumgradError as error:
        name_line(error, node.line)
        raise
    return results if type(results) is tuple else (results,)


def _run_operation(
    node: TracedNode, sizes: Sizes, given: tuple, lengths: dict[int, int]
) -> tuple[Any, ...]:
    """The results of a node, contiguous."""
    found = compute(node, list(given), lambda n: sizes.evaluate(n, lengths))
    results = [np.asarray(f, order="C") for f in found]
    if node.params.get("writes"):
        return tuple(results)
    others = [a for a in given if isinstance(a, np.ndarray)]
    owners = {*map(id, others), *(id(a.base) for a in others)}
    for k, result in enumerate(results):  # it may have given back an operand, or a view of one
        if result.base is None and id(result) not in owners:
            owners.add(id(result))
        elif any(np.may_share_memory(result, a) for a in (*others, *results[:k])):
            results[k] = result.copy()
    return tuple(results)


_BODIES = ("adaptive_length", "adaptive_rows", "scan", "subgraph", "while_loop")
_RUNS = dict.fromkeys(_BODIES, _run_body)
