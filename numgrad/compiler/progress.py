"""A line while something takes long, for people who wait.

At a prompt or a terminal it is on stderr, in a notebook on stdout, since notebooks show stderr in
red; both learn when it is over. Elsewhere, as in a log, it is one line of stderr, after longer.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0
"""Seconds before the line is shown to somebody who watches."""
LONG = 5.0
"""Seconds before it is written where nobody may be watching."""

_open = threading.local()
"""``nested``: whether the thread is inside of something that is announced."""


def in_notebook() -> bool:
    """Whether what is written to stdout appears in a notebook."""
    return type(sys.stdout).__module__.startswith("ipykernel")


def is_interactive() -> bool:
    """Whether a person is likely to watch: a prompt, a notebook, a terminal."""
    if hasattr(sys, "ps1") or in_notebook():
        return True
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Say what is being done if it takes long: more than a second in an interactive session.

    Steps of something that is announced are not announced.
    """
    stream = sys.stdout if in_notebook() else sys.stderr
    if getattr(_open, "nested", False) or stream is None:
        yield
        return
    _open.nested = True
    begin = time.perf_counter()
    watched = is_interactive()
    shown = threading.Event()

    def show() -> None:
        if watched:
            shown.set()
            stream.write(f"numgrad: {what} ...")
        else:
            stream.write(f"numgrad: {what} takes more than {LONG:.2g} s\n")
        stream.flush()

    timer = threading.Timer(PATIENCE if watched else LONG, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        _open.nested = False
        timer.cancel()
        if shown.is_set():
            stream.write(f" {time.perf_counter() - begin:.1f} s\n")
            stream.flush()
