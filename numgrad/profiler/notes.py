"""Notes of a running profile, and blocks that anybody may have noted.

Note [Notes]
------------
A note is six values at the end of a list of the thread's own: begin and end in nanoseconds, what
it was, and three more. A list of plain values costs 0.3 us a call, an object for each call would
cost three times that and work for the garbage collector. ``events`` makes objects of them when
somebody looks.

===================  =================  ==========================================================
what                 of                 then
===================  =================  ==========================================================
``Call``             an operation       sequence number of its node or -1, the caller's code and
                                        position in it
``Call``             a backward node    sequence number; its mask; which gradients it owns
``Span``             anything else      sequence number of a node or -1, the caller's code and
                                        position
===================  =================  ==========================================================

Notes of a thread are in the order in which things ended.
"""

import sys
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from time import perf_counter_ns
from typing import Any, NamedTuple, Self

from numgrad.core.interpreter import state
from numgrad.errors import NumgradTypeError
from numgrad.libraries import PACKAGE

OPERATION, NODE, WALK = "operation", "backward node", "backward"
PROGRAM, KERNEL, NEST = "program", "kernel", "nest"
STEP, COMPILE, HIT, TRACE = "optimizer step", "compile", "cache hit", "trace"
COLLECTIVE, RANGE, THREADS = "collective", "range", "threads"
STRIDE = 6
"""Values of a note."""


class Span:
    """A span of time that is no call of an operation.

    Attributes
    ----------
    kind, name
        What it was.
    read, written
        Bytes.
    threads
        How many it used.
    detail
        Of a kernel, its step, its program, and lengths of axes by number.
    """

    __slots__ = ("detail", "kind", "name", "read", "threads", "written")

    def __init__(
        self, kind: str, name: str, read: int = 0, written: int = 0, threads: int = 1,
        detail: Any = None,
    ) -> None:  # fmt: skip
        self.kind, self.name, self.read, self.written = kind, name, read, written
        self.threads, self.detail = threads, detail


class Log(threading.local):
    """A list of notes for each thread, and all of them by thread."""

    def __init__(self, threads: list[tuple[int, str, list[Any]]]) -> None:
        self.notes: list[Any] = []
        self.add = self.notes.extend
        self.evaluations: dict[Any, Any] = {}
        """Function that evaluates nodes -> one that does the same with notes."""
        threads.append((threading.get_ident(), threading.current_thread().name, self.notes))


class RecordedNotes(NamedTuple):
    """Notes of a profile.

    Attributes
    ----------
    threads
        Number, name and notes of each Python thread.
    samples
        When memory was looked at, bytes then, and the most since the time before.
    begin
        When it began.
    """

    threads: list[tuple[int, str, list[Any]]]
    samples: list[tuple[int, int, int]] | None
    begin: int


class Recording:
    """Takes notes, from ``start`` to ``stop``.

    Parameters
    ----------
    memory
        Whether memory is looked at too, each time that the clock is.
    lines
        Whether callers are noted.
    """

    def __init__(self, memory: bool, lines: bool) -> None:
        self.threads: list[tuple[int, str, list[Any]]] = []
        self.log = Log(self.threads)
        self.samples: list[tuple[int, int, int]] = []
        """Times at which memory was looked at, bytes then, and the most since the time before."""
        self.memory = memory
        self.clock: Callable[[], int] = self._memory_clock() if memory else perf_counter_ns
        self.names: dict[str, Any] = {"getframe": sys._getframe, "log": self.log, "ours": _Ours()}
        self.note = self.names["note"] = _noting(self.log, self.clock, lines)
        self.noting = _WITH_LINE if lines else _WITHOUT_LINE
        self.begin = 0

    def recorded(self) -> RecordedNotes:
        """Notes so far."""
        threads = [(number, name, notes[:]) for number, name, notes in self.threads]
        return RecordedNotes(threads, self.samples[:] if self.memory else None, self.begin)

    def forget(self) -> None:
        """Drop what was noted: whoever was in the middle of a call may hold on to a recording."""
        for _, _, notes in self.threads:
            notes.clear()
        self.samples.clear()

    def timed(self, span: Span, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose calls are noted."""
        clock, note = self.clock, self.note

        def call(*args: Any, **keywords: Any) -> Any:
            begin = clock()
            try:
                return function(*args, **keywords)
            finally:
                note(begin, span)

        return call

    def _memory_clock(self) -> Callable[[], int]:
        import tracemalloc

        traced, reset, samples = (
            tracemalloc.get_traced_memory,
            tracemalloc.reset_peak,
            self.samples,
        )

        def clock() -> int:
            now = perf_counter_ns()
            samples.append((now, *traced()))
            reset()
            return now

        return clock


class _Ours(dict[str, bool]):
    """Whether code is of this package, by the name of its file."""

    def __missing__(self, file: str) -> bool:
        ours = self[file] = file.startswith(PACKAGE)
        return ours


def _noting(log: Log, clock: Callable[[], int], lines: bool) -> Callable[..., None]:
    """``note(begin, what, sequence=-1, depth=2)``, which notes what ends now and the user's line.

    That is looked for from ``depth`` frames above ``note`` on: to look at a frame costs 0.1 us.
    """
    getframe, ours = sys._getframe, _Ours()

    def note(begin: int, what: Any, sequence: int = -1, depth: int = 2) -> None:
        end = clock()
        frame: Any = getframe(depth)
        code = frame.f_code
        while ours[code.co_filename]:
            frame = frame.f_back
            if frame is None:
                log.add((begin, end, what, sequence, None, 0))
                return
            code = frame.f_code
        log.add((begin, end, what, sequence, code, frame.f_lasti))

    def note_without_line(begin: int, what: Any, sequence: int = -1, depth: int = 2) -> None:
        log.add((begin, clock(), what, sequence, None, 0))

    return note if lines else note_without_line


_WITH_LINE = (
    "frame = getframe(1)",
    "code = frame.f_code",
    "if ours[code.co_filename]:",
    "    note(begin, plan, number)",
    "else:",
    "    log.add((begin, clock(), plan, number, code, frame.f_lasti))",
)
"""Source of ``note(begin, plan, number)``, written out: a call of it costs 0.1 us."""
_WITHOUT_LINE = ("log.add((begin, clock(), plan, number, None, 0))",)

recording: Recording | None = None
"""The one that is taking notes."""


def use(active: Recording | None) -> None:
    """Let blocks be noted from now on, or no longer."""
    global recording
    recording = active


class record_function(ContextDecorator):
    """Give a block, or each call of a function, a name in profiles.

    Parameters
    ----------
    name
        What it is called.
    args
        Shown in brackets behind the name.

    Raises
    ------
    NumgradTypeError
        If ``name`` is no text, as where a decorator has none.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.profiler.profile() as p, ng.profiler.record_function("square"):
    ...     y = ng.multiply(ng.ones(3), 2.0)
    >>> [(event.kind, event.name) for event in p.events()[:2]]
    [('range', 'square'), ('operation', 'multiply')]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise NumgradTypeError(
                f"record_function: name is a text, got {type(name).__name__}; as a decorator it is "
                "written @record_function('name')"
            )
        self._span = Span(RANGE, name if args is None else f"{name} ({args})")

    def __enter__(self) -> Self:
        state.enter(self, (recording, 0 if recording is None else recording.clock()))
        return self

    def __exit__(self, *exception: object) -> None:
        active, begin = state.leave(self) or (None, 0)
        if active is not None and active is recording:
            active.note(begin, self._span)


class record_collective(record_function):
    """The same for what several processes do together, with the bytes that are sent and received.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.profiler.profile() as p, ng.profiler.record_collective("all_reduce", 800, 800):
    ...     pass
    >>> p.events()[0].kind, p.events()[0].bytes
    ('collective', 1600)
    """

    def __init__(self, name: str, received: int = 0, sent: int = 0) -> None:
        self._span = Span(COLLECTIVE, name, received, sent)
