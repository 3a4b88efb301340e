"""Events for Jupyter: a picture of the calls, and the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from numgrad.profiler.events import Event, Summary
from numgrad.profiler.table import amount, arranged, columns, short

WIDTH, HEIGHT = 960.0, 18.0
"""Of the picture, and of a level of it."""
NARROWEST = 0.4
"""What is narrower is left out."""
CHARACTER = 6.6
ROWS = 40

_COLOURS = {
    "operation": "#8ecae6", "backward node": "#ffb703", "backward": "#ffd97d",
    "program": "#b7e4c7", "kernel": "#74c69d", "nest": "#95d5b2", "optimizer step": "#cdb4db",
    "trace": "#e5989b", "compile": "#e76f51", "cache hit": "#f4a261", "collective": "#90be6d",
}  # fmt: skip


@dataclass
class Flame:
    """Events of one kind and name below the same ones, laid together."""

    kind: str
    name: str
    calls: int = 0
    total_ns: int = 0
    bytes: int = 0
    line: str = ""
    parts: dict[tuple[str, str], Flame] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Lay another event with its parts on top."""
        key = event.kind, event.name
        part = self.parts.get(key)
        if part is None:
            part = self.parts[key] = Flame(*key, line=event.line)
        part.calls += 1
        part.total_ns += event.total_ns
        part.bytes += event.bytes
        for child in event.children:
            part.add(child)


def flames(events: Iterable[Event]) -> Flame:
    """The calls of all threads, from the outermost inwards."""
    root = Flame("", "all")
    for event in events:
        if event.parent is None:
            root.add(event)
    root.total_ns = sum(part.total_ns for part in root.parts.values())
    return root


def to_svg(root: Flame) -> str:
    """A picture in which widths are times, parts stand below what they are parts of."""
    depth = 0
    drawn = []
    scale = WIDTH / max(root.total_ns, 1)
    stack = [(root, 0.0, 0)]
    while stack:
        flame, x, level = stack.pop()
        if flame.total_ns * scale < NARROWEST:
            continue
        depth = max(depth, level + 1)
        drawn += _box(flame, x, level, scale, root.total_ns)
        for part in sorted(flame.parts.values(), key=lambda part: -part.total_ns):
            stack.append((part, x, level + 1))
            x += part.total_ns * scale
    height = depth * HEIGHT
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{height:g}" '
        f'viewBox="0 0 {WIDTH:g} {height:g}" font-family="monospace" font-size="11">'
    )
    return "".join([head, *drawn, "</svg>"])


def _box(flame: Flame, x: float, level: int, scale: float, whole: int) -> Iterator[str]:
    width, y = flame.total_ns * scale, level * HEIGHT
    title = f"{flame.kind} {flame.name}".strip()
    title += f": {flame.total_ns / 1e6:,.3f} ms, {100 * flame.total_ns / max(whole, 1):.1f} %"
    title += f", {flame.calls:,} calls" if flame.calls else ""
    title += f", {amount(flame.bytes)}" if flame.bytes else ""
    title += f", {short(flame.line)}" if flame.line else ""
    yield f"<g><title>{_text(title)}</title>"
    yield (
        f'<rect x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{HEIGHT:g}" '
        f'fill="{_COLOURS.get(flame.kind, "#dee2e6")}" stroke="white" stroke-width="0.5"/>'
    )
    fits = int((width - 4) / CHARACTER)
    if fits >= 3:
        name = flame.name if len(flame.name) <= fits else flame.name[: fits - 1] + "…"
        yield f'<text x="{x + 2:.2f}" y="{y + HEIGHT - 5:g}" fill="black">{_text(name)}</text>'
    yield "</g>"


def to_html(events: Sequence[Event], rows: Sequence[Summary]) -> str:
    """A document's part with the picture and the table."""
    shown = arranged(rows, "self", ROWS)
    cells = columns(shown, sum(row.self_ns for row in rows))
    parts = ["<div>", to_svg(flames(events)), "<table><thead><tr>"]
    parts += [f"<th>{_text(head)}</th>" for head, _, _ in cells]
    parts.append("</tr></thead><tbody>")
    for number in range(len(shown)):
        parts.append("<tr>")
        for _, left, texts in cells:
            side = "left" if left else "right"
            parts.append(f'<td style="text-align:{side}">{_text(texts[number])}</td>')
        parts.append("</tr>")
    left = len(rows) - len(shown)
    more = f"<p>and {left} rows more: <code>print(p.table(rows=None))</code></p>" if left else ""
    return "".join([*parts, "</tbody></table>", more, "</div>"])


def _text(text: str) -> str:
    """Text as XML has it, which knows no control characters."""
    return escape("".join(c if c.isprintable() else "?" for c in text))
