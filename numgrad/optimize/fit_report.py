"""Reports of fits, as text and as HTML for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numgrad.optimize.estimates import Estimates


def text(fit: Estimates, correlations: float) -> str:
    """A report in columns."""
    facts = [("fit of", fit.title), *fit.facts()]
    wide = max(len(key) for key, _ in facts)
    lines = [f"{key:{wide}}  {value}" for key, value in facts]
    lines += ["", *_columns(list(fit.rows()))]
    pairs = fit.strongest_correlations(correlations)
    if pairs:
        rows = [(f"{a}, {b}", f"{value:+.4f}") for a, b, value in pairs]
        lines += ["", "correlations", *_columns(rows)]
    return "\n".join(lines)


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ends = (0, len(widths) - 1) if len(widths) > 2 else (0,)
    return [
        "  ".join(
            cell.ljust(width) if k in ends else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def html(fit: Estimates, correlations: float) -> str:
    """The same in tables."""
    facts = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in fit.facts())
    head, *rows = fit.rows()
    body = "".join(map(_row, rows))
    parts = [
        f"<table><caption>{escape(fit.title)}</caption><tbody>{facts}</tbody></table>",
        f"<table><thead>{_row(head, 'th')}</thead><tbody>{body}</tbody></table>",
    ]
    pairs = fit.strongest_correlations(correlations)
    if pairs:
        body = "".join(_row((f"{a}, {b}", f"{value:+.4f}")) for a, b, value in pairs)
        parts.append(f"<table><caption>correlations</caption><tbody>{body}</tbody></table>")
    return "".join(parts)


def _row(cells: tuple[str, ...], kind: str = "td") -> str:
    first, *others = cells
    rest = "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in others)
    return f"<tr><th>{escape(first)}</th>{rest}</tr>"
