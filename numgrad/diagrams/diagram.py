"""A diagram before it is laid out: boxes of text and links between them."""

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
