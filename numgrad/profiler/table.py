"""Sums of events as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.profiler.events import Summary

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
    found = [
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
        found.append(("peak", False, [amount(row.peak or 0) for row in rows]))
        found.append(("stayed", False, [amount(row.allocated or 0) for row in rows]))
    return [*found, ("line", True, [short(row.line) for row in rows])]


def to_text(rows: Sequence[Summary], sort: str, most: int | None) -> str:
    """A table."""
    shown = arranged(rows, sort, most)
    whole = sum(row.self_ns for row in rows)
    cells = columns(shown, whole)
    widths = [max(map(len, (head, *texts))) for head, _, texts in cells]

    def line(texts: Sequence[str]) -> str:
        parts = [
            text.ljust(width) if left else text.rjust(width)
            for text, width, (_, left, _) in zip(texts, widths, cells, strict=True)
        ]
        return "  ".join(parts).rstrip()

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
