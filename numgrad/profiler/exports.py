"""A profile as a table, a page for Jupyter, and a trace in JSON.

Traces are in the trace-event format, which Perfetto and chrome://tracing show;
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU describes it:
complete events ``X`` with time stamps and durations in microseconds, flows ``s`` and ``f``,
counters ``C``, names of processes and threads ``M``.

Time stamps are of a clock that the processes of a machine have in common. With the name of the
process goes how far the clock on the wall is ahead of it, by which ``merge`` puts traces of several
machines on one clock. As time stamps that would be too large for nanoseconds.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.profiler.events import Event, Summary
from numgrad.profiler.notes import NODE, OPERATION

LONGEST = 48
"""Characters of a name; what is longer is cut."""

SORTS: dict[str, Callable[[Summary], Any]] = {
    "self": lambda row: -row.self_ns,
    "total": lambda row: -row.total_ns,
    "mean": lambda row: -row.mean_ns,
    "calls": lambda row: -row.calls,
    "bytes": lambda row: -row.bytes,
    "threads": lambda row: -row.threads,
    "peak": lambda row: -(row.peak or 0),
    "name": lambda row: row.name,
    "line": lambda row: row.line,
}


def arranged(rows: Sequence[Summary], sort: str, most: int | None) -> list[Summary]:
    """Rows in order, as many as are wanted."""
    if sort not in SORTS:
        raise NumgradValueError(
            f"table: sort={sort!r} is no column; choose one of {', '.join(SORTS)}"
        )
    if most is not None and not hasattr(most, "__index__"):
        raise NumgradTypeError(f"table: rows is a number or None; got {type(most).__name__}")
    if most is not None and most < 0:
        raise NumgradValueError(f"table: rows={most}; give 0 or more, or None for all")
    return sorted(rows, key=SORTS[sort])[:most]


def columns(rows: Sequence[Summary], whole: int) -> list[tuple[str, bool, list[str]]]:
    """Heads, whether text stands on the left, and cells; ``whole`` is the time of all rows."""
    table = [
        ("name", True, [_cut(row.name) for row in rows]),
        ("kind", True, [row.kind + " (estimated)" * row.estimated for row in rows]),
        ("calls", False, [f"{row.calls:,}" for row in rows]),
        ("self ms", False, [f"{row.self_ns / 1e6:,.3f}" for row in rows]),
        ("self %", False, [f"{100 * row.self_ns / max(whole, 1):.1f}" for row in rows]),
        ("total ms", False, [f"{row.total_ns / 1e6:,.3f}" for row in rows]),
        ("mean us", False, [f"{row.mean_ns / 1e3:,.2f}" for row in rows]),
        ("bytes", False, [amount(row.bytes) for row in rows]),
        ("threads", False, [str(row.threads) for row in rows]),
    ]
    if any(row.peak is not None for row in rows):
        table.append(("peak", False, [amount(row.peak or 0) for row in rows]))
        table.append(("stayed", False, [amount(row.allocated or 0) for row in rows]))
    return [*table, ("line", True, [short(row.line) for row in rows])]


def to_text(rows: Sequence[Summary], sort: str, most: int | None) -> str:
    """A table."""
    shown = arranged(rows, sort, most)
    whole = sum(row.self_ns for row in rows)
    cells = columns(shown, whole)
    widths = [max(map(len, (head, *texts))) for head, _, texts in cells]

    def line(texts: Sequence[str]) -> str:
        cells_of_row = [
            text.ljust(width) if left else text.rjust(width)
            for text, width, (_, left, _) in zip(texts, widths, cells, strict=True)
        ]
        return "  ".join(cells_of_row).rstrip()

    lines = [line([head for head, _, _ in cells])]
    lines += [line(texts) for texts in zip(*(texts for _, _, texts in cells), strict=True)]
    left = len(rows) - len(shown)
    lines += [f"... and {left} rows more"] if left else []
    return "\n".join([*lines, f"{whole / 1e6:,.3f} ms recorded"])


def amount(count: int) -> str:
    """Bytes in a unit that suits."""
    size = abs(count)
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count} B"


def short(line: str) -> str:
    """A line of the user's with the file's name only."""
    return line.replace("\\", "/").rpartition("/")[2]


def _cut(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."


WIDTH, HEIGHT = 960.0, 18.0
"""Width of the picture, and height of a level of it."""
NARROWEST = 0.4
"""Boxes that are narrower are left out."""
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
        flame = self.parts.get(key)
        if flame is None:
            flame = self.parts[key] = Flame(*key, line=event.line)
        flame.calls += 1
        flame.total_ns += event.total_ns
        flame.bytes += event.bytes
        for child in event.children:
            flame.add(child)


def flames(events: Iterable[Event]) -> Flame:
    """The calls of all threads, from the outermost inwards."""
    root = Flame("", "all")
    for event in events:
        if event.parent is None:
            root.add(event)
    root.total_ns = sum(child.total_ns for child in root.parts.values())
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
        for child in sorted(flame.parts.values(), key=lambda child: -child.total_ns):
            stack.append((child, x, level + 1))
            x += child.total_ns * scale
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
    pieces = ["<div>", to_svg(flames(events)), "<table><thead><tr>"]
    pieces += [f"<th>{_text(head)}</th>" for head, _, _ in cells]
    pieces.append("</tr></thead><tbody>")
    for number in range(len(shown)):
        pieces.append("<tr>")
        for _, left, texts in cells:
            side = "left" if left else "right"
            pieces.append(f'<td style="text-align:{side}">{_text(texts[number])}</td>')
        pieces.append("</tr>")
    left = len(rows) - len(shown)
    remark = f"<p>and {left} rows more: <code>print(p.table(rows=None))</code></p>" if left else ""
    return "".join([*pieces, "</tbody></table>", remark, "</div>"])


def _text(text: str) -> str:
    """Text as XML has it, which knows no control characters."""
    return escape("".join(c if c.isprintable() else "?" for c in text))


_AHEAD = "wall clock ahead, ns"
_SAME = 50_000_000
"""Nanoseconds below which two differences to the clock on the wall are those of one machine."""


def write(path: str | os.PathLike[str], events: Sequence[Event]) -> None:
    """Write a file."""
    _write(path, list(trace_events(events)))


def _write(path: str | os.PathLike[str], events: list[dict[str, Any]]) -> None:
    content = {"traceEvents": events, "displayTimeUnit": "ms"}
    text = json.dumps(content, separators=(",", ":"))
    data = text.encode()
    target = Path(path)
    target.write_bytes(gzip.compress(data) if target.suffix == ".gz" else data)


def merge(paths: Sequence[str | os.PathLike[str]], target: str | os.PathLike[str]) -> None:
    """Put traces of several processes, such as the ranks of a program, into one file.

    Each process keeps its name, and all have one clock, that of the machine.

    Parameters
    ----------
    paths
        Files that ``export_chrome_trace`` wrote.
    target
        The new file; compressed if its name ends in ``.gz``.

    Raises
    ------
    NumgradValueError
        If a file holds no trace, or there is none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numgrad as ng
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with ng.profiler.profile() as p:
    ...     x = ng.ones(3) * 2
    >>> p.export_chrome_trace(folder / "rank0.json")
    >>> ng.profiler.merge_traces(sorted(folder.glob("rank*.json")), folder / "all.json")
    """
    if not paths:
        raise NumgradValueError("merge_traces: there is no file")
    together: list[dict[str, Any]] = []
    first = None
    for number, path in enumerate(map(Path, paths)):
        data = path.read_bytes()
        try:
            text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            events = json.loads(text)["traceEvents"]
            ahead = events[0]["args"][_AHEAD]
            first = ahead if first is None else first
            # on one machine the clock is the same, and this is how far it was set meanwhile
            shift = 0.0 if abs(ahead - first) < _SAME else (ahead - first) / 1e3
            for event in events:  # numbers of processes of other machines may be the same
                together.append(event | {"pid": number})
                if "ts" in event:
                    together[-1]["ts"] += shift
                if "id" in event:
                    together[-1]["id"] = f"{number}-{event['id']}"
        except (ValueError, LookupError, TypeError, OSError) as error:
            raise NumgradValueError(f"merge_traces: {path} holds no trace ({error})") from error
    _write(target, together)


def trace_events(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    """Entries of the file: names of threads, events, arrows to backwards, memory."""
    process = os.getpid()
    numbers: dict[tuple[int, str], int] = {}
    for event in events:
        numbers.setdefault(event.thread, len(numbers) + 1)
    named = _meta("process_name", process, 0, _process_name())
    named["args"][_AHEAD] = time.time_ns() - time.perf_counter_ns()
    yield named
    for (_, name), number in numbers.items():
        yield _meta("thread_name", process, number, name)
    recorded: dict[int, Event] = {}
    for event in events:
        thread = {"pid": process, "tid": numbers[event.thread]}
        yield {
            "ph": "X", "name": event.name, "cat": event.kind, "ts": event.begin / 1e3,
            "dur": event.total_ns / 1e3, **thread, "args": _arguments(event),
        }  # fmt: skip
        if event.kind == OPERATION and event.sequence >= 0:
            recorded[event.sequence] = event
    nodes = (e for e in events if e.kind == NODE and e.sequence in recorded)
    for number, node in enumerate(nodes, 1):
        for phase, event in (("s", recorded[node.sequence]), ("f", node)):
            yield {
                "ph": phase, "name": "backward", "cat": "backward", "id": number, "bp": "e",
                "ts": event.begin / 1e3, "pid": process, "tid": numbers[event.thread],
            }  # fmt: skip
    for event in events:
        if event.peak is not None:
            yield {
                "ph": "C", "name": "memory", "ts": event.end / 1e3, "pid": process, "tid": 0,
                "args": {"peak bytes": event.peak},
            }  # fmt: skip


def _process_name() -> str:
    """The rank of this process, if it is one of several."""
    group = getattr(sys.modules.get("numgrad.distributed.group"), "_default", None)
    return "numgrad" if group is None or group.size == 1 else f"numgrad, rank {group.rank}"


def _meta(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _arguments(event: Event) -> dict[str, Any]:
    """Fields shown of an event when it is clicked on."""
    fields: dict[str, Any] = {}
    if event.line:
        fields["line"] = event.line
    if event.bytes:
        fields |= {"bytes read": event.read, "bytes written": event.written}
    if event.threads > 1:
        fields["threads"] = event.threads
    if event.sequence >= 0:
        fields["sequence"] = event.sequence
    if event.peak is not None:
        fields |= {"peak bytes": event.peak, "allocated bytes": event.allocated}
    if event.estimated:
        fields["estimated"] = True
    return fields
