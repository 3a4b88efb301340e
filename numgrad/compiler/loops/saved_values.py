"""Values of steps that a loop saves for its gradient, which computes all others again.

Note [Values saved of steps]
----------------------------
The step of a transposed loop computes the step of the first one again from the carry before it.
Most of that fuses with what the gradient computes; a product of matrices, or a sum along a long
axis, is dear by comparison with its result. So a loop offers such results, and the gradient takes
them from memory (checkpointing by operation: T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep
nets with sublinear memory cost", 2016, section 4). What is computed of an offered value alone,
element by element, is offered too, up to a few operations: a gradient takes the first of such a
chain that it needs, as the hyperbolic tangent of a sum of products. All together may take
``MOST_SAVED`` times the memory of the carry, which is saved in any case. What no gradient takes is
left out of the loop (``trim_loops``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

from numgrad.compiler.graph.graph import Graph, TracedNode, Value
from numgrad.compiler.graph.sizes import Size
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import Elementwise

MOST_SAVED = 8
"""How much larger than a carry all that is saved of a step besides may be."""
ROOM = {"carries": 0.0, "all": math.inf}
"""The same where users say what is saved."""
DEAR = 8
"""Terms of a sum from which on it is saved."""
CHAIN = 8
"""Operations on an offered value whose results are offered too."""


def elements(value: Value) -> int:
    """About how many elements a value has."""
    count = 1
    for n in value.shape:
        count *= n.hint if isinstance(n, Size) else n
    return count


def offered_values(graph: Graph, carries: int, varying: int, most: float) -> list[list[Value]]:
    """Chains of values of a step that its gradient may take from memory.

    The first ``varying`` inputs differ from step to step, of these the first are ``carries``, which
    all together may be ``most`` times as large as.
    """
    reached = set(graph.inputs[:varying])
    users = Counter(v for node in graph.nodes for v in node.inputs)
    users.update(graph.outputs)
    single: dict[Value, TracedNode] = {}
    for node in graph.nodes:
        if not reached.isdisjoint(node.inputs):
            reached.update(node.outputs)
        single.update((v, node) for v in node.inputs if users[v] == 1)
    carry = sum(map(elements, graph.inputs[:carries]))
    room = most * carry if carry else 0.0
    chains = []
    for node in graph.nodes:
        value = node.outputs[0] if node.outputs else None
        if value is None or value not in reached or _terms(node) < DEAR:
            continue
        size = elements(value)
        if size > room:
            continue
        room -= size
        chain = [value]
        while chain[-1] in single and len(chain) <= CHAIN:
            following = single[chain[-1]].outputs[0]
            if not isinstance(following.node.op, Elementwise):
                break
            if following.shape != value.shape or following.dtype != value.dtype:
                break
            chain.append(following)
        chains.append(chain)
    return chains


def _terms(node: TracedNode) -> int:
    """Terms that are added up for each element of a result; 0 of what is no sum."""
    if node.name == "matmul":
        (*_, n) = node.inputs[0].shape
        return n.hint if isinstance(n, Size) else n
    if isinstance(node.op, AxisOp) and not node.op.keeps_shape:
        return elements(node.inputs[0]) // max(elements(node.outputs[0]), 1)
    return 0


def needed_values(
    graph: Graph, chains: Sequence[Sequence[int]], values: Sequence[Value]
) -> list[int]:
    """The numbers of ``values`` that a gradient takes, the first of each chain that it needs.

    ``graph`` computes the gradient, ``chains`` are numbers of values in order.
    """
    offered, inputs = set(values), set(graph.inputs)
    needed = _reached(graph, offered)
    first = {values[k] for chain in chains for k in [k for k in chain if values[k] in needed][:1]}
    heads = {values[chain[0]] for chain in chains}
    if not _reached(graph, first | heads) <= first:  # what follows in a chain waits for another
        first = needed
    return [k for k, value in enumerate(values) if value in first and value not in inputs]


def _reached(graph: Graph, ends: Collection[Value]) -> set[Value]:
    """Those of some values that the results depend on not only by others of them."""
    reached: set[Value] = set()
    visited: set[Value] = set()
    stack = list(graph.outputs)
    while stack:
        value = stack.pop()
        if value in visited:
            continue
        visited.add(value)
        if value in ends:
            reached.add(value)
        else:
            stack.extend(value.node.inputs)
    return reached
