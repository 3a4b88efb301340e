"""Third step of the layout: where on its layer each vertex is.

Vertices are tied to a neighbour in long vertical *blocks* as far as the order allows, the blocks
are packed, to the left and to the right, tied upwards and tied downwards, and each vertex is put at
the mean of the two middle ones of these four places: U. Brandes, B. Koepf, Fast and simple
horizontal coordinate assignment, Graph Drawing 2001, LNCS 2265, 31. Bends of one trunk are tied to
each other before all else, so trunks are straight. Two things differ from the paper. The packing is
by longest paths between blocks. And the neighbour is the median of those with the longest path
behind them, not of all: a graph is mostly a long path with small things at its side (a weight, a
saved tensor), and with the median of all it runs down a staircase.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from numgrad.diagrams.layering import Layered


def place(
    graph: Layered, layers: list[list[int]], widths: Sequence[float], gap: float
) -> list[float]:
    """Middle of each vertex, with at least ``gap`` between neighbours; the least left edge is 0."""
    crossed = _crossed_trunks(graph, layers)
    found = []
    for downwards in (True, False):
        neighbours = _longest(graph, layers, downwards)
        for mirrored in (False, True):
            rows = layers if downwards else layers[::-1]
            rows = [row[::-1] for row in rows] if mirrored else rows
            root = _tie(rows, neighbours, crossed)
            packed = _pack(rows, root, widths, gap)
            found.append([-x for x in packed] if mirrored else packed)
    _align(found, widths)
    middles = [sum(sorted(four)[1:3]) / 2 for four in zip(*found, strict=True)]
    left = min((x - w / 2 for x, w in zip(middles, widths, strict=True)), default=0.0)
    return [x - left for x in middles]


def _longest(graph: Layered, layers: list[list[int]], downwards: bool) -> list[list[int]]:
    """For each vertex the neighbours on the layer before that end the longest paths of boxes.

    For a bend it is the one before on its trunk.
    """
    neighbours = graph.up if downwards else graph.down
    length = [0] * len(neighbours)
    found: list[list[int]] = [[] for _ in neighbours]
    for layer in layers if downwards else layers[::-1]:
        for v in layer:
            most = max([length[u] for u in neighbours[v]], default=0)
            length[v] = most + (v < graph.boxes)
            trunk = [u for u in neighbours[v] if u >= graph.boxes] if v >= graph.boxes else []
            found[v] = trunk or [u for u in neighbours[v] if length[u] == most]
    return found


def _crossed_trunks(graph: Layered, layers: list[list[int]]) -> set[tuple[int, int]]:
    """Segments, written in both directions, that cross a segment within a trunk."""
    boxes = graph.boxes
    found = set()
    for above, layer in pairwise(layers):
        at = {u: k for k, u in enumerate(above)}
        # between two neighbouring trunks, segments may only lead to what is between them above
        left, waiting = 0, 0
        for k, v in enumerate(layer):
            bends = [u for u in graph.up[v] if u >= boxes] if v >= boxes else []
            if not bends and k < len(layer) - 1:
                continue
            right = at[bends[0]] if bends else len(above) - 1
            for w in layer[waiting : k + 1]:
                for u in graph.up[w]:
                    if not left <= at[u] <= right and (u < boxes or w < boxes):
                        found |= {(u, w), (w, u)}
            left, waiting = right, k + 1
    return found


def _tie(
    rows: list[list[int]], neighbours: list[list[int]], crossed: set[tuple[int, int]]
) -> list[int]:
    """The block of each vertex, named by its first: it goes on with the median neighbour."""
    count = len(neighbours)
    at = [0] * count
    for row in rows:
        for k, v in enumerate(row):
            at[v] = k
    root, taken = list(range(count)), [False] * count
    for row in rows:
        last = -1  # ties do not cross: the next must be right of this
        for v in row:
            near = sorted(neighbours[v], key=at.__getitem__)
            for u in near[(len(near) - 1) // 2 : len(near) // 2 + 1]:
                if not taken[u] and at[u] > last and (u, v) not in crossed:
                    taken[u] = True
                    root[v] = root[u]
                    last = at[u]
                    break
    return root


def _pack(
    rows: list[list[int]], root: list[int], widths: Sequence[float], gap: float
) -> list[float]:
    """Places with every block as far left as possible, then those with room moved right again."""
    apart: dict[int, dict[int, float]] = {block: {} for block in root}
    before = dict.fromkeys(apart, 0)
    for row in rows:
        for v, w in pairwise(row):
            a, b = root[v], root[w]
            if b not in apart[a]:
                before[b] += 1
                apart[a][b] = 0.0
            apart[a][b] = max(apart[a][b], (widths[v] + widths[w]) / 2 + gap)
    x = dict.fromkeys(apart, 0.0)
    sequence = [block for block, count in before.items() if not count]
    for block in sequence:  # grows while we go through it
        for other, distance in apart[block].items():
            x[other] = max(x[other], x[block] + distance)
            before[other] -= 1
            if not before[other]:
                sequence.append(other)
    for block in reversed(sequence):
        if apart[block]:
            x[block] = min(x[other] - distance for other, distance in apart[block].items())
    return [x[block] for block in root]


def _align(found: list[list[float]], widths: Sequence[float]) -> None:
    """Shift the four packings to the edges of the narrowest: two to its left, two to its right."""
    edges = [
        (
            min((x - w / 2 for x, w in zip(xs, widths, strict=True)), default=0.0),
            max((x + w / 2 for x, w in zip(xs, widths, strict=True)), default=0.0),
        )
        for xs in found
    ]
    left, right = min(edges, key=lambda pair: pair[1] - pair[0])
    for k, (low, high) in enumerate(edges):
        shift = right - high if k % 2 else left - low
        found[k] = [x + shift for x in found[k]]
