"""HTML that notebooks show: tables, and text as it stands."""

from collections.abc import Iterable, Sequence
from html import escape


def preformatted(text: str) -> str:
    """Text whose lines and blanks are kept."""
    return f'<pre style="line-height:1.3">{escape(text)}</pre>'


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = (), caption: str = "") -> str:
    """A table of texts, whose first column names the rows."""
    top = "".join(f"<th>{escape(text)}</th>" for text in head)
    lines = [f"<caption>{escape(caption)}</caption>"] if caption else []
    lines += [f"<thead><tr>{top}</tr></thead>"] if head else []
    for first, *others in rows:
        cells = "".join(f"<td>{escape(text)}</td>" for text in others)
        lines.append(f'<tr><th style="text-align:left">{escape(first)}</th>{cells}</tr>')
    return f"<table>{''.join(lines)}</table>"


class Report(str):
    """A text of several lines, which a notebook shows as such."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return preformatted(self)
