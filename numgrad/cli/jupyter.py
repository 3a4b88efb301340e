"""Magics of IPython, by ``%load_ext numgrad``: ``%%ngprofile`` and ``%ngreport``."""

import argparse
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.markup import Report
from numgrad.profiler.session import profile


class _Options(argparse.ArgumentParser):
    """Options of a magic; a wrong one raises, where ``argparse`` would end the session."""

    def error(self, message: str) -> NoReturn:
        """Raise the message."""
        raise NumgradValueError(f"{self.prog}: {message}; {self.format_usage().strip()}")


class CellProfile(Report):
    """Where the time of a cell went: a table as text, with a picture as HTML."""

    __slots__ = ("_html",)

    def __new__(cls, text: str, html: str) -> "CellProfile":
        """Make it of both forms."""
        made = super().__new__(cls, text)
        made._html = html
        return made

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self._html


def load(ipython: Any) -> None:
    """Register the magics in a session of IPython."""
    for kind, function in (("cell", profiled_cell), ("line", report_of)):
        name = f"ng{'profile' if kind == 'cell' else 'report'}"
        magic = _with_session(function, ipython)
        magic.__doc__ = function.__doc__
        ipython.register_magic_function(magic, kind, name)


def _with_session(function: Callable[..., Any], ipython: Any) -> Callable[..., Any]:
    return lambda *texts: function(ipython, *texts)


def profiled_cell(ipython: Any, line: str, cell: str) -> CellProfile | None:
    """Run a cell and show where its time went: ``%%ngprofile [--by-name] [--trace FILE]``.

    A row is an operation in a line of the cell; with ``--by-name`` one for all lines. ``--trace``
    writes what Perfetto (ui.perfetto.dev) draws.
    """
    options = _Options("%%ngprofile", add_help=False)
    options.add_argument("--by-name", action="store_true")
    options.add_argument("--trace", metavar="FILE")
    chosen = options.parse_args(shlex.split(line))
    begin = time.perf_counter()
    with profile() as recorded:
        ran = ipython.run_cell(cell)
    seconds = time.perf_counter() - begin
    if not ran.success:  # the session has shown the error
        return None
    if chosen.trace:
        recorded.export_chrome_trace(Path(chosen.trace))
    rows = recorded.averages(by_line=not chosen.by_name)
    inside = sum(row.self_ns for row in rows) / 1e9
    head = f"{seconds:.3g} s, of which {inside:.3g} s in numgrad (all threads)"
    from numgrad.profiler.exports import to_html, to_text

    return CellProfile(
        f"{head}\n{to_text(rows, 'self', 30)}", f"<p>{head}</p>{to_html(recorded.events(), rows)}"
    )


def report_of(ipython: Any, line: str) -> Report:
    """Show what a compiled function became: ``%ngreport f``, an expression."""
    value = ipython.ev(line)
    report = getattr(value, "report", None)
    if report is None:
        raise NumgradTypeError(
            f"%ngreport: {line.strip()} is a {type(value).__name__}, which nothing compiled; make "
            "it by ng.jit or ng.kernel, and call it once"
        )
    return Report(report())
