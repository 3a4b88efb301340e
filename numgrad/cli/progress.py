"""A progress bar on stderr: drawn in place on a terminal, one plain line per step elsewhere."""

import shutil
import sys
import time
from typing import Self, TextIO

BAR_WIDTH = 24


class Progress:
    """Progress through a known number of steps, used as a context manager.

    Parameters
    ----------
    total : int
        Number of steps.
    label : str
        What is going on, shown in front of the bar.
    stream : text file, optional
        Where to write, by default ``sys.stderr`` (stdout belongs to the results).

    Examples
    --------
    >>> import sys
    >>> with Progress(2, "fits", sys.stdout) as progress:
    ...     for problem in ("Misra1a", "ENSO"):
    ...         progress.step(problem)
    fits 1/2 Misra1a
    fits 2/2 ENSO
    """

    def __init__(self, total: int, label: str, stream: TextIO | None = None):
        self.total = total
        self.label = label
        self.stream = sys.stderr if stream is None else stream
        self.drawn = self.stream.isatty()
        self.done = 0
        self.began = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.drawn:
            self.stream.write("\r\x1b[K")  # leave the line to whatever is printed next
            self.stream.flush()

    def step(self, what: str) -> None:
        """Say that one more step, described by ``what``, is about to run or has run."""
        self.done = min(self.done + 1, self.total)
        count = f"{self.done}/{self.total}"
        if self.drawn:
            filled = BAR_WIDTH * self.done // max(self.total, 1)
            bar = "#" * filled + "." * (BAR_WIDTH - filled)
            elapsed = time.perf_counter() - self.began
            line = f"{self.label} [{bar}] {count} {elapsed:5.1f} s {what}"
            width = shutil.get_terminal_size().columns - 1
            self.stream.write(f"\r{line[:width]}\x1b[K")
        else:
            self.stream.write(f"{self.label} {count} {what}\n")
        self.stream.flush()
