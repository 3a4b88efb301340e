"""Activity analysis: which values of a graph have derivatives that may be other than zero.

Note [Activity]
---------------
A derivative leads from inputs that move (*varied* are the values computed from these) to results
that have a cotangent (*useful* are the values these are computed from). What is not both adds
nothing, and is neither carried from step to step nor computed (L. Hascoet, U. Naumann, V. Pascual,
"To be recorded" analysis in reverse-mode automatic differentiation, 2005). Numbers without
derivatives end both ways: where a descent goes does not depend on what its condition compares.
A loop is gone through until no more of its carry is reached. That a cotangent is zero in one call
only is not used: zero times infinity is NaN, as it is in eager code.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from numgrad.compiler.graph.graph import Graph, TracedNode, Value, has_derivatives
from numgrad.compiler.loops.body import LoopBody


def useful(graph: Graph, results: Collection[Value]) -> set[Value]:
    """The values by which some values of a graph may have derivatives, and these."""
    known = {v for v in results if has_derivatives(v)}
    for node in reversed(graph.nodes):
        useful_results = [k for k, v in enumerate(node.outputs) if v in known]
        if not useful_results:
            continue
        inputs = node.inputs
        if _bodies(node):
            inputs = [node.inputs[k] for k in _useful_operands(node, useful_results)]
        known.update(v for v in inputs if has_derivatives(v))
    return known


def varied(graph: Graph, inputs: Collection[Value]) -> set[Value]:
    """The values that may have derivatives by some inputs of a graph, and these."""
    known = {v for v in inputs if has_derivatives(v)}
    for node in graph.nodes:
        moving = [k for k, v in enumerate(node.inputs) if v in known]
        if not moving:
            continue
        outputs = node.outputs
        if _bodies(node):
            outputs = [node.outputs[k] for k in _varied_results(node, moving)]
        known.update(v for v in outputs if has_derivatives(v))
    return known


def useful_operands(graph: Graph, numbers: Collection[int], carries: int = 0) -> list[int]:
    """The operands of a body by which results of these numbers may have derivatives.

    Of the step of a loop the first ``carries`` operands and results are the carry: results of the
    step before, and where there is no step the results themselves.
    """
    numbers = set(numbers)
    while True:
        known = useful(graph, [graph.outputs[k] for k in numbers])
        reached = {k for k, v in enumerate(graph.inputs) if v in known}
        more = numbers.union(k for k in reached if k < carries)
        if more == numbers:
            return sorted(reached.union(k for k in numbers if k < carries))
        numbers = more


def varied_results(graph: Graph, numbers: Collection[int], carries: int = 0) -> list[int]:
    """The results of a body that may have derivatives by operands of these numbers.

    ``carries`` are as in ``useful_operands``.
    """
    numbers = set(numbers)
    while True:
        known = varied(graph, [graph.inputs[k] for k in numbers])
        reached = {k for k, v in enumerate(graph.outputs) if v in known}
        more = numbers.union(k for k in reached if k < carries)
        if more == numbers:
            return sorted(reached.union(k for k in numbers if k < carries))
        numbers = more


def _bodies(node: TracedNode) -> Sequence[tuple[Graph, int, int]]:
    """The bodies of a node: each graph, its carries, how many first results the node has not.

    Empty where all results of the node may depend on all operands.
    """
    if "parts" in node.params:
        return [(part.graph, 0, 0) for part in node.params["parts"]]
    body = node.params.get("body")
    if not isinstance(body, LoopBody):
        return ()
    left_out = max(0, len(body.graph.outputs) - len(node.outputs))  # the last carry
    return [(body.graph, body.carries, left_out)]


def _useful_operands(node: TracedNode, numbers: Collection[int]) -> set[int]:
    return {
        k
        for graph, carries, before in _bodies(node)
        for k in useful_operands(graph, [before + n for n in numbers], carries)
    }


def _varied_results(node: TracedNode, numbers: Collection[int]) -> set[int]:
    count = len(node.outputs)
    results: set[int] = set()
    for graph, carries, before in _bodies(node):
        own = [k for k in numbers if k < len(graph.inputs)]
        results.update(k - before for k in varied_results(graph, own, carries))
    return {k for k in results if 0 <= k < count}
