"""A diagram as SVG."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from numgrad.diagrams.diagram import Box, Diagram
from numgrad.diagrams.layout import Piece, lay_out

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

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})

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
        parts += _box(box, size, middle)
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


def _box(box: Box, size: tuple[float, float], middle: tuple[float, float]) -> Iterator[str]:
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
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text).translate(_ESCAPES)
