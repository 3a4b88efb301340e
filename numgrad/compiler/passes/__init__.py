"""Passes: rewriting a graph so that less is computed, and what is left lies better in memory.

Each pass keeps what a graph means: elementwise results bit by bit (Note [Exact algebra]), sums
within their error bound. None looks at the length of an axis, so none adds a guard.
"""

from __future__ import annotations

from collections.abc import Callable

from numgrad.compiler.graph.graph import Graph
from numgrad.compiler.passes.algebra import move_broadcasts, simplify_algebra
from numgrad.compiler.passes.constants import fold_constants
from numgrad.compiler.passes.dead import drop_dead, trim_loops
from numgrad.compiler.passes.matrix_products import simplify_products, transposed as transposed
from numgrad.compiler.passes.parts import join_parts
from numgrad.compiler.passes.reduced_axes import simplify_reductions, simplify_sums_of_products
from numgrad.compiler.passes.rewriting import join_common
from numgrad.compiler.passes.views import simplify_views
from numgrad.dataclass import dataclass

VERIFY = False
"""Whether graphs are verified after every pass, as tests do."""

_ROUNDS = 8

PASSES: tuple[Callable[[Graph], int], ...] = (
    drop_dead,
    trim_loops,
    join_common,
    simplify_views,
    join_parts,
    move_broadcasts,
    fold_constants,
    simplify_algebra,
    simplify_reductions,
    simplify_products,
)


@dataclass(frozen=True)
class Record:
    """A run of a pass: nodes replaced or removed, and how many there were."""

    name: str
    changed: int
    before: int
    after: int


def optimize(graph: Graph, *, contract: bool = False) -> list[Record]:
    """Run the passes in turn until none changes anything; says what each run did.

    With ``contract`` products and sums may be rearranged further.
    """
    passes = (*PASSES, simplify_sums_of_products) if contract else PASSES
    graph.resolve_sizes()
    records: list[Record] = []
    idle = 0
    for number in range(_ROUNDS * len(passes)):
        run = passes[number % len(passes)]
        before = len(graph.nodes)
        changed = run(graph)
        if VERIFY:
            graph.verify()
        if changed:
            records.append(Record(run.__name__, changed, before, len(graph.nodes)))
        idle = 0 if changed else idle + 1
        if idle == len(passes):
            break
    drop_dead(graph)
    return records
