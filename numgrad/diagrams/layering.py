"""First step of the layout: a layer for each box, and what stands for a link in between.

Note [Trunks]
-------------
A link that crosses layers gets a *bend*, a vertex without a box, on each of them. One per link and
layer would be too many: a weight that a recurrent net uses 1000 times has links across all layers.
So links with one origin share a trunk of bends, from which they branch off, or those with one
destination a trunk that they join, whichever gathers more of them. Where even that would need more
than ``BENDS`` bends (the graph of a second derivative refers all along to that of the first), the
longest links are left out here and drawn straight, behind the boxes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

Edge: TypeAlias = tuple[int, int, int]
"""Origin, destination, and a number for its kind: only links of one kind share a trunk."""

BENDS = 8000
"""How many bends there may be: with so many a layout takes about as long as with 4000 boxes."""


@dataclass(slots=True)
class Layered:
    """A graph whose segments lead from a layer to the next; boxes come first, then bends.

    ``up`` and ``down`` are the neighbours of each vertex on the layers above and below, and
    ``left_out`` the numbers of edges without segments.
    """

    boxes: int
    rank: list[int]
    up: list[list[int]]
    down: list[list[int]]
    segments: dict[tuple[int, int], list[int]]
    """The edges, by number, that are drawn along a segment: of a trunk one stands for all."""
    left_out: list[int]

    def layers(self) -> list[list[int]]:
        """The vertices of each layer, in the order in which they came."""
        found: list[list[int]] = [[] for _ in range(max(self.rank, default=-1) + 1)]
        for vertex, rank in enumerate(self.rank):
            found[rank].append(vertex)
        return found


def layer(count: int, edges: Sequence[Edge]) -> Layered:
    """Put ``count`` boxes on layers such that every edge leads downwards, in few steps."""
    rank = ranks(count, edges)
    graph = Layered(count, rank, [[] for _ in rank], [[] for _ in rank], {}, [])
    for number, (a, b, _) in enumerate(edges):
        if rank[b] - rank[a] == 1:
            _connect(graph, a, b, number)
    left = BENDS
    for trunk in _trunks(edges, rank):
        left -= trunk.bottom - trunk.top - 1
        if left >= 0:
            _grow(graph, edges, trunk)
        else:  # and those that follow are longer
            graph.left_out += trunk.members
    return graph


def ranks(count: int, edges: Sequence[Edge]) -> list[int]:
    """The layer of each box: as high as its origins allow, then down to where it is used.

    A box moves down if that shortens the links in sum: if no more links come in than go out, or
    everything above serves this box alone and can move along.

    Raises
    ------
    ValueError
        If the edges lead in a circle.
    """
    up, down = _neighbours(count, edges)
    order = _topological(up, down)
    rank, free = [0] * count, [True] * count
    for v in order:
        if up[v]:
            rank[v] = 1 + max(rank[u] for u in up[v])
            free[v] = all(free[u] and len(down[u]) == 1 for u in up[v])
    for v in reversed(order):
        if down[v] and (free[v] or len(up[v]) <= len(down[v])):
            rank[v] = min(rank[w] for w in down[v]) - 1
    return rank


def _neighbours(count: int, edges: Sequence[Edge]) -> tuple[list[list[int]], list[list[int]]]:
    up: list[list[int]] = [[] for _ in range(count)]
    down: list[list[int]] = [[] for _ in range(count)]
    for a, b in dict.fromkeys((a, b) for a, b, _ in edges):
        up[b].append(a)
        down[a].append(b)
    return up, down


def _topological(up: list[list[int]], down: list[list[int]]) -> list[int]:
    waiting = [len(origins) for origins in up]
    order = [v for v, missing in enumerate(waiting) if not missing]
    for v in order:  # grows while we go through it
        for w in down[v]:
            waiting[w] -= 1
            if not waiting[w]:
                order.append(w)
    if len(order) < len(up):
        raise ValueError("the edges lead in a circle, so the boxes cannot be put on layers")
    return order


@dataclass(frozen=True, slots=True)
class _Trunk:
    """Edges, by number, with one origin, or if it ``joins`` them, with one destination."""

    joins: bool
    top: int
    bottom: int
    members: tuple[int, ...]


def _trunks(edges: Sequence[Edge], rank: list[int]) -> list[_Trunk]:
    """The edges that need bends, by the trunk they share; short trunks first."""
    long = [n for n, (a, b, _) in enumerate(edges) if rank[b] - rank[a] > 1]
    leaving = Counter((edges[n][0], edges[n][2]) for n in long)
    arriving = Counter((edges[n][1], edges[n][2]) for n in long)
    groups: dict[tuple[bool, int, int], list[int]] = {}
    for n in long:
        a, b, kind = edges[n]
        joins = arriving[b, kind] > leaving[a, kind]
        groups.setdefault((joins, b if joins else a, kind), []).append(n)
    trunks = [
        _Trunk(
            joins,
            min(rank[edges[n][0]] for n in members),
            max(rank[edges[n][1]] for n in members),
            tuple(members),
        )
        for (joins, _, _), members in groups.items()
    ]
    return sorted(trunks, key=lambda trunk: trunk.bottom - trunk.top)


def _grow(graph: Layered, edges: Sequence[Edge], trunk: _Trunk) -> None:
    """Add the bends of a trunk and its segments."""
    first = len(graph.rank)
    bends = range(first, first + trunk.bottom - trunk.top - 1)
    graph.rank += range(trunk.top + 1, trunk.bottom)
    graph.up += [[] for _ in bends]
    graph.down += [[] for _ in bends]
    one = trunk.members[0]
    for upper, lower in pairwise(bends):
        _connect(graph, upper, lower, one)
    if trunk.joins:
        for n in trunk.members:
            origin = edges[n][0]
            if (bend := bends[graph.rank[origin] - trunk.top]) not in graph.down[origin]:
                _connect(graph, origin, bend, n)
        _connect(graph, bends[-1], edges[one][1], one)
    else:
        _connect(graph, edges[one][0], bends[0], one)
        for n in trunk.members:
            destination = edges[n][1]
            _connect(graph, bends[graph.rank[destination] - trunk.top - 2], destination, n)


def _connect(graph: Layered, upper: int, lower: int, number: int) -> None:
    known = graph.segments.setdefault((upper, lower), [])
    if not known:
        graph.up[lower].append(upper)
        graph.down[upper].append(lower)
    known.append(number)
