"""Diagrams: boxes of text and links, their layered layout, and what they are in DOT and in SVG.

The first step gives each box a layer, and each link a stand-in where it crosses one.

Note [Trunks]
-------------
A link that crosses layers gets a *bend*, a vertex without a box, on each of them. One per link and
layer would be too many: a weight that a recurrent net uses 1000 times has links across all layers.
So links with one origin share a trunk of bends, from which they branch off, or those with one
destination a trunk that they join, whichever gathers more of them. Where even that would need more
than ``BENDS`` bends (the graph of a second derivative refers all along to that of the first), the
longest links are left out here and drawn straight, behind the boxes.

The second step finds an order of the vertices of each layer in which few links cross.

Every vertex goes to the mean place of its neighbours on the layer before (its *barycentre*), layer
by layer, down and up in turn: K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of
hierarchical system structures, IEEE Trans. SMC 11 (1981) 109. The best order of all rounds stays.

The third step finds where on its layer each vertex is.

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

import re
import unicodedata
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Box:
    """Lines of text on a colour of X11; a table's lines are aligned to the left."""

    lines: tuple[str, ...]
    fill: str
    table: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A line from one box, by its number, down to another."""

    tail: int
    head: int
    arrow: bool = True
    dotted: bool = False


@dataclass(slots=True)
class Diagram:
    """Boxes and the links between them, which must not lead in a circle."""

    boxes: list[Box] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def add(self, box: Box) -> int:
        """Append a box and return its number."""
        self.boxes.append(box)
        return len(self.boxes) - 1


_ESCAPES = {"\\": "\\\\", '"': '\\"', "&": "&amp;", "\r": "", "\0": "\N{REPLACEMENT CHARACTER}"}
"""Labels are *escStrings*, in which a backslash names the node or ends a line, and entities of
HTML stand for a character: https://graphviz.org/docs/attr-types/escString/."""

_HEAD = """\
digraph {
    node [align=left fontname=monospace fontsize=10 height=0.2 shape=box style=filled]
"""


def to_dot(diagram: Diagram) -> str:
    """The text of a digraph whose nodes are called ``n0``, ``n1``, ..."""
    lines = [f"    n{k} [{_box(box)}]\n" for k, box in enumerate(diagram.boxes)]
    lines += [f"    n{link.tail} -> n{link.head}{_link(link)}\n" for link in diagram.links]
    return "".join([_HEAD, *lines, "}\n"])


def quote(text: str, *, left: bool = False) -> str:
    """``text`` as a quoted label; with ``left`` its lines begin below each other."""
    end = "\\l" if left else "\\n"
    lines = [
        "".join(_ESCAPES.get(character, character) for character in line)
        for line in _encodable(text).split("\n")
    ]
    return '"' + end.join(lines) + end * left + '"'


def _encodable(text: str) -> str:
    """``text`` with a question mark for what UTF-8 cannot say: half of a surrogate pair."""
    return text.encode(errors="replace").decode()


def _box(box: Box) -> str:
    return f"label={quote(chr(10).join(box.lines), left=box.table)} fillcolor={box.fill}"


def _link(link: Link) -> str:
    attributes = ["dir=none"] * (not link.arrow) + ["style=dotted"] * link.dotted
    return f" [{' '.join(attributes)}]" if attributes else ""


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
        layers: list[list[int]] = [[] for _ in range(max(self.rank, default=-1) + 1)]
        for vertex, rank in enumerate(self.rank):
            layers[rank].append(vertex)
        return layers


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


ROUNDS = 8
"""Down and up again; more seldom improve anything."""

PATIENCE = 2
"""Rounds without improvement after which to stop."""


def order(graph: Layered) -> list[list[int]]:
    """The vertices of each layer from left to right."""
    layers = graph.layers()
    position = _places(layers, len(graph.rank))
    best, fewest, patience = [list(layer) for layer in layers], crossings(graph, layers), PATIENCE
    for _ in range(ROUNDS):
        if not fewest or not patience:
            break
        for layer in layers[1:]:
            _sort(layer, graph.up, position)
        for layer in layers[-2::-1]:
            _sort(layer, graph.down, position)
        number = crossings(graph, layers)
        patience -= 1
        if number < fewest:
            best, fewest, patience = [list(layer) for layer in layers], number, PATIENCE
    return best


def _sort(layer: list[int], neighbours: list[list[int]], position: list[int]) -> None:
    """Sort by barycentres; a vertex without neighbours on that side keeps its place."""
    centre = {}
    for v in layer:
        near = neighbours[v]
        centre[v] = sum([position[u] for u in near]) / len(near) if near else position[v]
    layer.sort(key=centre.__getitem__)
    for k, v in enumerate(layer):
        position[v] = k


def _places(layers: list[list[int]], count: int) -> list[int]:
    position = [0] * count
    for layer in layers:
        for k, v in enumerate(layer):
            position[v] = k
    return position


def crossings(graph: Layered, layers: list[list[int]]) -> int:
    """How many pairs of segments cross each other."""
    position = _places(layers, len(graph.rank))
    total = 0
    for layer in layers[:-1]:
        # With segments in the order of their upper ends, those cross that end left of an earlier.
        ends: list[int] = []
        for v in layer:
            below = sorted([position[w] for w in graph.down[v]])
            for end in below:
                total += len(ends) - bisect_right(ends, end)
            for end in below:
                insort(ends, end)
    return total


def place(
    graph: Layered, layers: list[list[int]], widths: Sequence[float], gap: float
) -> list[float]:
    """Middle of each vertex, with at least ``gap`` between neighbours; the least left edge is 0."""
    crossed = _crossed_trunks(graph, layers)
    packings = []
    for downwards in (True, False):
        neighbours = _longest(graph, layers, downwards)
        for mirrored in (False, True):
            rows = layers if downwards else layers[::-1]
            rows = [row[::-1] for row in rows] if mirrored else rows
            root = _tie(rows, neighbours, crossed)
            packed = _pack(rows, root, widths, gap)
            packings.append([-x for x in packed] if mirrored else packed)
    _align(packings, widths)
    middles = [sum(sorted(four)[1:3]) / 2 for four in zip(*packings, strict=True)]
    left = min((x - w / 2 for x, w in zip(middles, widths, strict=True)), default=0.0)
    return [x - left for x in middles]


def _longest(graph: Layered, layers: list[list[int]], downwards: bool) -> list[list[int]]:
    """For each vertex the neighbours on the layer before that end the longest paths of boxes.

    For a bend it is the one before on its trunk.
    """
    neighbours = graph.up if downwards else graph.down
    length = [0] * len(neighbours)
    trunks: list[list[int]] = [[] for _ in neighbours]
    for layer in layers if downwards else layers[::-1]:
        for v in layer:
            most = max([length[u] for u in neighbours[v]], default=0)
            length[v] = most + (v < graph.boxes)
            trunk = [u for u in neighbours[v] if u >= graph.boxes] if v >= graph.boxes else []
            trunks[v] = trunk or [u for u in neighbours[v] if length[u] == most]
    return trunks


def _crossed_trunks(graph: Layered, layers: list[list[int]]) -> set[tuple[int, int]]:
    """Segments, written in both directions, that cross a segment within a trunk."""
    boxes = graph.boxes
    pairs = set()
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
                        pairs |= {(u, w), (w, u)}
            left, waiting = right, k + 1
    return pairs


def _tie(
    rows: list[list[int]], neighbours: list[list[int]], crossed: set[tuple[int, int]]
) -> list[int]:
    """The block of each vertex, named by its first: it goes on with the median neighbour."""
    count = len(neighbours)
    at = [0] * count
    for row in rows:
        for k, v in enumerate(row):
            at[v] = k
    root, tied = list(range(count)), [False] * count
    for row in rows:
        last = -1  # ties do not cross: the next must be right of this
        for v in row:
            near = sorted(neighbours[v], key=at.__getitem__)
            for u in near[(len(near) - 1) // 2 : len(near) // 2 + 1]:
                if not tied[u] and at[u] > last and (u, v) not in crossed:
                    tied[u] = True
                    root[v] = root[u]
                    last = at[u]
                    break
    return root


def _pack(
    rows: list[list[int]], root: list[int], widths: Sequence[float], gap: float
) -> list[float]:
    """Places with every block as far left as possible, then those with room moved right again."""
    distances: dict[int, dict[int, float]] = {block: {} for block in root}
    before = dict.fromkeys(distances, 0)
    for row in rows:
        for v, w in pairwise(row):
            a, b = root[v], root[w]
            if b not in distances[a]:
                before[b] += 1
                distances[a][b] = 0.0
            distances[a][b] = max(distances[a][b], (widths[v] + widths[w]) / 2 + gap)
    x = dict.fromkeys(distances, 0.0)
    sequence = [block for block, count in before.items() if not count]
    for block in sequence:  # grows while we go through it
        for other, distance in distances[block].items():
            x[other] = max(x[other], x[block] + distance)
            before[other] -= 1
            if not before[other]:
                sequence.append(other)
    for block in reversed(sequence):
        if distances[block]:
            x[block] = min(x[other] - distance for other, distance in distances[block].items())
    return [x[block] for block in root]


def _align(packings: list[list[float]], widths: Sequence[float]) -> None:
    """Shift the four packings to the edges of the narrowest: two to its left, two to its right."""
    edges = [
        (
            min((x - w / 2 for x, w in zip(xs, widths, strict=True)), default=0.0),
            max((x + w / 2 for x, w in zip(xs, widths, strict=True)), default=0.0),
        )
        for xs in packings
    ]
    left, right = min(edges, key=lambda pair: pair[1] - pair[0])
    for k, (low, high) in enumerate(edges):
        shift = right - high if k % 2 else left - low
        packings[k] = [x + shift for x in packings[k]]


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
        (upper, lower, edge)
        for (upper, lower), numbers in graph.segments.items()
        for edge in numbers
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


FONT = 10.0
CHARACTER = 6.1
"""Width of a character of a monospaced font of that size, with a little to spare."""

LINE = 12.0
PADDING = 6.0
MARGIN = 8.0
HEAD = 6.0
"""Length of an arrow's head."""

_COLOURS = {"darkolivegreen1": "#caff70", "darkolivegreen3": "#a2cd5a"}
"""X11's names that SVG does not know."""

_XML_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, not even escaped."""


def to_svg(diagram: Diagram) -> str:
    """A complete SVG document; boxes are groups with a title, lines are paths behind them."""
    sizes = [_size(box) for box in diagram.boxes]
    kinds = {pair: k for k, pair in enumerate(((True, False), (False, False), (True, True)))}
    edges = [(a.tail, a.head, kinds[a.arrow, a.dotted]) for a in diagram.links]
    layout = lay_out(sizes, edges)
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-MARGIN:g} {-MARGIN:g} {width:.0f} {height:.0f}" font-family="monospace" '
        f'font-size="{FONT:g}" text-anchor="middle">\n',
        f'<rect x="{-MARGIN:g}" y="{-MARGIN:g}" width="100%" height="100%" fill="white"/>\n',
    ]
    parts += _lines(diagram, layout.pieces)
    for box, size, middle in zip(diagram.boxes, sizes, layout.middles, strict=True):
        parts += _box_shapes(box, size, middle)
    return "".join([*parts, "</svg>\n"])


def _size(box: Box) -> tuple[float, float]:
    columns = max(map(_columns, box.lines), default=0)
    return columns * CHARACTER + 2 * PADDING, len(box.lines) * LINE + PADDING


def _columns(line: str) -> int:
    """Width of a line in characters; those of East Asia take two."""
    if line.isascii():
        return len(line)
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in line)


def _lines(diagram: Diagram, pieces: list[Piece]) -> Iterator[str]:
    """The lines, by their looks, then the heads of the arrows."""
    plain, dotted, heads = [], [], []
    for piece in pieces:
        link = diagram.links[piece.edge]
        (x0, y0), (x1, y1) = piece.start, piece.end
        if link.arrow and piece.arrives:
            heads.append(f"M{x1:.1f} {y1:.1f}l-3 {-HEAD:g}h6z")
            y1 -= HEAD
        curve = f"V{y1:.1f}"
        if not piece.straight and abs(x1 - x0) > 0.05:
            half = (y0 + y1) / 2
            curve = f"C{x0:.1f} {half:.1f} {x1:.1f} {half:.1f} {x1:.1f} {y1:.1f}"
        (dotted if link.dotted else plain).append(f"M{x0:.1f} {y0:.1f}{curve}")
    if plain:
        yield f'<path class="lines" fill="none" stroke="black" d="{"".join(plain)}"/>\n'
    if dotted:
        yield (
            f'<path class="dotted" fill="none" stroke="black" stroke-dasharray="1 4" '
            f'd="{"".join(dotted)}"/>\n'
        )
    if heads:
        yield f'<path class="heads" d="{"".join(heads)}"/>\n'


def _box_shapes(box: Box, size: tuple[float, float], middle: tuple[float, float]) -> Iterator[str]:
    width, height = size
    left, top = middle[0] - width / 2, middle[1] - height / 2
    yield (
        f'<g class="box"><title>{_text(" ".join(box.lines[:1]))}</title>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{_COLOURS.get(box.fill, box.fill)}" stroke="black"/>'
    )
    x, look = (left + PADDING, ' text-anchor="start"') if box.table else (middle[0], "")
    for k, line in enumerate(box.lines):
        y = top + PADDING / 2 + (k + 0.8) * LINE
        yield f'<text x="{x:.1f}" y="{y:.1f}" xml:space="preserve"{look}>{_text(line)}</text>'
    yield "</g>\n"


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text).translate(_XML_ESCAPES)
