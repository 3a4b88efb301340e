"""A diagram before its layout, boxes of text and links, and its text in Graphviz' DOT."""

from __future__ import annotations

from dataclasses import dataclass, field


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
