"""The layered layout: where boxes are, and the lines between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numgrad.diagrams.layering import Edge, layer
from numgrad.diagrams.ordering import order
from numgrad.diagrams.placement import place

GAP_ACROSS = 18.0
GAP_DOWN = 30.0
BEND = 2.0
"""Room for a trunk among the boxes of a layer."""

SPREAD = 12.0
"""Most distance between arrows that end side by side on a box."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the way of an edge between two layers, or down along one where ``straight``.

    ``arrives`` says that it ends at a box.
    """

    edge: int
    start: tuple[float, float]
    end: tuple[float, float]
    arrives: bool = False
    straight: bool = False


@dataclass(frozen=True, slots=True)
class DiagramLayout:
    """Middles of the boxes, the pieces of all edges, and the size of the whole."""

    middles: list[tuple[float, float]]
    pieces: list[Piece]
    width: float
    height: float


def lay_out(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> DiagramLayout:
    """Lay out boxes of given widths and heights; equal arguments give equal layouts.

    Three steps, none of which recurses: layers, the order within them, places.

    Raises
    ------
    ValueError
        If the edges lead in a circle.
    """
    graph = layer(len(sizes), edges)
    layers = order(graph)
    bends = len(graph.rank) - len(sizes)
    x = place(graph, layers, [w for w, _ in sizes] + [BEND] * bends, GAP_ACROSS)
    heights = [max((sizes[v][1] for v in row if v < len(sizes)), default=0.0) for row in layers]
    tops, y = [], 0.0
    for height in heights:
        tops.append(y)
        y += height + GAP_DOWN
    middles = [
        (x[v], tops[rank] + heights[rank] / 2) for v, rank in enumerate(graph.rank[: len(sizes)])
    ]

    def leave(v: int) -> tuple[float, float]:
        if v < len(sizes):
            return x[v], middles[v][1] + sizes[v][1] / 2
        return x[v], tops[graph.rank[v]] + heights[graph.rank[v]]

    lines = [
        (upper, lower, edge) for (upper, lower), found in graph.segments.items() for edge in found
    ]
    lines += [(edges[edge][0], edges[edge][1], edge) for edge in graph.left_out]
    ports = _ports(lines, x, sizes)
    pieces = []
    for number, (upper, lower, edge) in enumerate(lines):
        if lower < len(sizes):
            end = (ports[number], middles[lower][1] - sizes[lower][1] / 2)
            pieces.append(Piece(edge, leave(upper), end, arrives=True))
        else:
            pieces.append(Piece(edge, leave(upper), (x[lower], tops[graph.rank[lower]])))
    for v in range(len(sizes), len(graph.rank)):
        edge = graph.segments[graph.up[v][0], v][0]
        pieces.append(Piece(edge, (x[v], tops[graph.rank[v]]), leave(v), straight=True))
    width = max((x[v] + w / 2 for v, (w, _) in enumerate(sizes)), default=0.0)
    width = max(width, max(x[len(sizes) :], default=0.0))
    return DiagramLayout(middles, pieces, width, max(y - GAP_DOWN, 0.0))


def _ports(
    lines: Sequence[tuple[int, int, int]], x: Sequence[float], sizes: Sequence[tuple[float, float]]
) -> dict[int, float]:
    """Where on the upper edge of its box each line ends: side by side, in the order of origins."""
    arriving: dict[int, list[int]] = {}
    for number, (_, lower, _) in enumerate(lines):
        if lower < len(sizes):
            arriving.setdefault(lower, []).append(number)
    ports = {}
    for box, numbers in arriving.items():
        numbers.sort(key=lambda number: x[lines[number][0]])
        step = min(SPREAD, 0.7 * sizes[box][0] / len(numbers))
        for k, number in enumerate(numbers):
            ports[number] = x[box] + (k - (len(numbers) - 1) / 2) * step
    return ports
