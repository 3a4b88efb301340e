"""Progress of what takes long: drawn in place where somebody watches, else a line now and then.

A line ends with its text on it, or cleared, however the work ends: what is printed next, as the
traceback of an interrupted loop, begins on a line of its own.
"""

import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Self, TextIO, TypeVar

T = TypeVar("T")

BAR_WIDTH = 24
DRAWN_EVERY, WRITTEN_EVERY = 0.1, 5.0  # seconds


def in_notebook() -> bool:
    """Whether what is written to stdout appears in a notebook."""
    return type(sys.stdout).__module__.startswith("ipykernel")


class ProgressLine:
    """A line of text that changes: on stderr, in a notebook on stdout, since stderr is red there.

    Parameters
    ----------
    stream
        Where to write, if elsewhere.
    every
        Seconds between lines where they are not drawn in place, as in a log.
    """

    def __init__(self, stream: TextIO | None = None, every: float = WRITTEN_EVERY) -> None:
        notebook = stream is None and in_notebook()
        self.stream = stream or (sys.stdout if notebook else sys.stderr)  # None without a console
        self.drawn = notebook or (self.stream is not None and self.stream.isatty())
        self._every = DRAWN_EVERY if self.drawn else every
        self._clears = not notebook  # notebooks know carriage returns, and no other codes
        self._due, self._length = 0.0, 0

    def show(self, text: str, now: bool = False) -> None:
        """Show the text, if it is time to, or ``now``."""
        if self.stream is None or not (now or time.monotonic() >= self._due):
            return
        self._due = time.monotonic() + self._every
        if self.drawn:
            text = text[: shutil.get_terminal_size().columns - 1]
            rest = "\x1b[K" if self._clears else " " * (self._length - len(text))
            self._length = len(text)
            self.stream.write(f"\r{text}{rest}")
        else:
            self.stream.write(f"{text}\n")
        self.stream.flush()

    def end(self, text: str = "") -> None:
        """Leave the line to what is printed next, and the text above it if there is one."""
        if self.stream is None or not (self.drawn or text):
            return
        self.show(text, now=True)
        if self.drawn:
            self.stream.write("\n" if text else "" if self._clears else "\r")
            self.stream.flush()


class Progress:
    """Progress through steps, used as a context manager.

    Parameters
    ----------
    total
        Number of steps, if it is known.
    label
        Text in front of the bar.
    stream, every
        As for ``ProgressLine``; by default each step is a line where none is drawn in place.
    stays
        Whether the line stays where it was drawn.

    Examples
    --------
    >>> import sys
    >>> with Progress(2, "fits", sys.stdout) as progress:
    ...     for problem in ("Misra1a", "ENSO"):
    ...         progress.step(problem)
    fits 1/2 Misra1a
    fits 2/2 ENSO
    """

    def __init__(
        self,
        total: int | None,
        label: str,
        stream: TextIO | None = None,
        every: float = 0.0,
        stays: bool = False,
    ) -> None:
        self.total, self.label, self.done, self.note = total, label, 0, ""
        self._line, self._stays = ProgressLine(stream, every), stays
        self._began = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.end(self.text() if self._stays else "")

    def step(self, note: str) -> None:
        """Say that one more step, described by ``note``, is about to run or has run."""
        self.done, self.note = self.done + 1, note
        self._line.show(self.text(), now=not self._stays)

    def text(self) -> str:
        """The line."""
        count = f"{self.done}" if self.total is None else f"{self.done}/{self.total}"
        if not self._line.drawn:
            return f"{self.label} {count} {self.note}".rstrip()
        elapsed = f"{time.perf_counter() - self._began:5.1f} s"
        if self.total is not None:
            filled = BAR_WIDTH * min(self.done, self.total) // max(self.total, 1)
            count = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {count}"
        return f"{self.label} {count} {elapsed} {self.note}".rstrip()


class progress(Generic[T]):
    """Iterate over items and show how far that is: a bar on a terminal and in notebooks.

    Elsewhere, as in a log, it is a line every five seconds. The line ends as well where the loop is
    left by ``break``, an error or Ctrl-C.

    Parameters
    ----------
    items
        An iterable, such as a ``DataLoader`` or a ``range`` of epochs.
    label
        Text in front of the bar.
    total
        Number of items, by default ``len(items)`` if that has one.
    stream
        A file to write to, by default stderr, in notebooks stdout.

    Examples
    --------
    >>> import sys, numgrad as ng
    >>> bar = ng.data.progress(range(3), "training", stream=sys.stdout)
    >>> for epoch in bar:
    ...     bar.note(loss=0.5 / (epoch + 1))
    training 1/3 loss 0.5
    training 3/3 loss 0.1667
    """

    def __init__(
        self,
        items: Iterable[T],
        label: str = "",
        *,
        total: int | None = None,
        stream: TextIO | None = None,
    ) -> None:
        count = getattr(items, "__len__", None)
        self._total = count() if total is None and count is not None else total
        self._items, self._label, self._stream, self._note = items, label, stream, ""

    def __iter__(self) -> Iterator[T]:
        with Progress(self._total, self._label, self._stream, WRITTEN_EVERY, stays=True) as bar:
            for item in self._items:
                yield item
                bar.step(self._note)

    def note(self, **values: Any) -> None:
        """Show numbers, by their names, behind the bar from the next item on."""
        shown = {name: f"{value:.4g}" if hasattr(value, "__float__") else str(value)
                 for name, value in values.items()}  # fmt: skip
        self._note = ", ".join(f"{name} {text}" for name, text in shown.items())
