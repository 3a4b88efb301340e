"""A line on stderr while something takes long, for people who wait."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0
"""Seconds before the line is shown."""

_open = threading.local()
"""``nested``: whether the thread is inside of something that is announced."""


def is_interactive() -> bool:
    """Whether a person is likely to watch: a prompt, a notebook, a terminal."""
    if hasattr(sys, "ps1") or "IPython" in sys.modules:
        return True
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Say what is being done if it takes longer than a second in an interactive session.

    Steps of something that is announced are not announced.
    """
    if getattr(_open, "nested", False) or not is_interactive():
        yield
        return
    _open.nested = True
    begin = time.perf_counter()
    shown = threading.Event()

    def show() -> None:
        shown.set()
        sys.stderr.write(f"numgrad: {what} ...")
        sys.stderr.flush()

    timer = threading.Timer(PATIENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        _open.nested = False
        timer.cancel()
        if shown.is_set():
            sys.stderr.write(f" {time.perf_counter() - begin:.1f} s\n")
            sys.stderr.flush()
