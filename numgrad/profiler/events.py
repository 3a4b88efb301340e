"""Events: what notes say, as objects in the order in which things began, and sums of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from types import CodeType
from typing import Any

from numgrad.autograd.node import Node
from numgrad.codegen.nests.account import account
from numgrad.codegen.nests.polynomial import evaluate
from numgrad.codegen.nests.statements import Statement
from numgrad.codegen.nests.terms import PRODUCT
from numgrad.codegen.threads import serial_ns
from numgrad.core.plan import Call
from numgrad.profiler import notes as kinds
from numgrad.profiler.notes import RecordedNotes, Span


@dataclass(eq=False)
class Event:
    """Something that happened while a profile ran.

    Attributes
    ----------
    kind
        ``operation``, ``backward`` (a whole one), ``backward node``, ``program`` (a compiled
        one), ``kernel``, ``nest``, ``optimizer step``, ``trace``, ``compile``, ``cache hit`` (a
        kernel loaded from disk), ``collective`` or ``range`` (named by ``record_function``).
    name
        What it was; nodes are called as ``grad_fn`` is.
    begin, end
        Nanoseconds since the profile began.
    read, written
        Bytes of the arrays that it got and made, as far as they are known.
    line
        The user's line that was running, as ``file:line``; of a node, the line that recorded it.
    threads
        The most threads that anything inside used.
    thread
        The Python thread: its number and its name.
    sequence
        Number of the node that was recorded or run; -1 if there is none.
    peak, allocated
        With ``profile_memory``: the most bytes that were in use meanwhile, and how many more at the
        end than at the beginning. Else None.
    estimated
        Whether the times are a share of a kernel's by the estimated work of its parts.
    parent, children
        What it was a part of, and its parts.
    """

    kind: str
    name: str
    begin: int
    end: int
    read: int = 0
    written: int = 0
    line: str = ""
    threads: int = 1
    thread: tuple[int, str] = (0, "")
    sequence: int = -1
    peak: int | None = None
    allocated: int | None = None
    estimated: bool = False
    parent: Event | None = field(default=None, repr=False)
    children: list[Event] = field(default_factory=list, repr=False)

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read + self.written

    @property
    def total_ns(self) -> int:
        """Nanoseconds from begin to end."""
        return self.end - self.begin

    @property
    def self_ns(self) -> int:
        """The same without those of its parts."""
        return self.total_ns - sum(child.total_ns for child in self.children)


def events_of(recording: RecordedNotes) -> list[Event]:
    """All events, by thread, and in each as they began."""
    events: list[Event] = []
    known = _Lookups()
    for number, name, notes in recording.threads:
        length = len(notes) - len(notes) % kinds.STRIDE  # another thread may be at it
        rows = [tuple(notes[k : k + kinds.STRIDE]) for k in range(0, length, kinds.STRIDE)]
        events += _of_thread(rows, recording.begin, (number, name), known)
    for event in events:
        if event.kind == kinds.NODE:
            event.line = known.recorded.get(event.sequence, "")
    if recording.samples is not None:
        _add_memory(events, sorted(recording.samples), recording.begin)
    return events


class _Lookups:
    """Cache of lookups: lines of code, lines that recorded nodes, and parts of kernels."""

    def __init__(self) -> None:
        self.recorded: dict[int, str] = {}
        self._lines: dict[tuple[int, int], str] = {}
        self._parts: dict[int, list[tuple[str, str, Any]]] = {}

    def line(self, code: CodeType | None, position: int) -> str:
        """A line of the user's as ``file:line``; notes keep its code."""
        if code is None:
            return ""
        line = self._lines.get((id(code), position))
        if line is None:
            numbers = (n for start, end, n in code.co_lines() if start <= position < end)
            number = next(numbers, None) or code.co_firstlineno
            line = self._lines[id(code), position] = f"{code.co_filename}:{number}"
        return line

    def parts(self, program: Any, step: Any) -> list[tuple[str, str, Any]]:
        """Names, lines and work of the nests and matrix products of a kernel."""
        nests = self._parts.get(id(step))
        if nests is None:
            nests = self._parts[id(step)] = _parts(program, step)
        return nests


def _of_thread(
    rows: Sequence[tuple], start: int, thread: tuple[int, str], known: _Lookups
) -> list[Event]:
    """Events of one thread; ``known`` gets the lines that recorded nodes."""
    # what ended later is around what began at the same time
    order = sorted(range(len(rows)), key=lambda k: (rows[k][0], -rows[k][1], -k))
    events: list[Event] = []
    kernels: list[tuple[Event, tuple]] = []
    stack: list[Event] = []
    for k in order:
        begin, end, what, *rest = rows[k]
        if begin < start:
            continue
        while stack and stack[-1].end <= begin - start:
            stack.pop()
        if type(what) is Span and what.kind == kinds.THREADS:
            for event in stack:
                event.threads = max(event.threads, what.threads)
            continue
        event = _event(known, what, begin - start, end - start, *rest)
        event.thread = thread
        if event.kind == kinds.OPERATION and event.sequence >= 0:
            known.recorded[event.sequence] = event.line
        if stack:
            event.parent = stack[-1]
            event.end = min(event.end, stack[-1].end)
            stack[-1].children.append(event)
        stack.append(event)
        events.append(event)
        if type(what) is Span and what.kind == kinds.KERNEL and what.detail is not None:
            kernels.append((event, what.detail))
    for event, detail in kernels:
        events += _nests(event, known, *detail)
    return events


def _event(
    known: _Lookups, what: Any, begin: int, end: int, number: int, code: Any, position: int
) -> Event:
    """The event of one note: Note [Notes]."""
    if type(what) is Span:
        return Event(
            what.kind, what.name, begin, end, what.read, what.written, known.line(code, position),
            what.threads, sequence=number,
        )  # fmt: skip
    if type(code) is int:  # a mask
        read, written = _bytes_backward(what, code, position)
        name = _node_name(what)
        return Event(kinds.NODE, name, begin, end, read, written, sequence=number)
    read, written = sum(map(_nbytes, what.metas)), sum(map(_nbytes, what.results))
    line = known.line(code, position)
    return Event(kinds.OPERATION, what.op.name, begin, end, read, written, line, sequence=number)


def _node_name(call: Call) -> str:
    return Node(call, 0, (), None).name()


def _nbytes(meta: Any) -> int:
    return prod(meta.shape) * meta.dtype.itemsize


def _bytes_backward(call: Call, mask: int, owned: int) -> tuple[int, int]:
    """Bytes of the gradients of the results and of what was saved, and of the gradients made."""
    if call.opaque:
        return 0, 0
    results = sum(map(_nbytes, call.results))
    sizes = {"y": results}
    for k, meta in enumerate(call.metas):
        name = call.input_name(k)
        sizes[name] = sizes.get(name, 0) + _nbytes(meta)
    read = results + sum(sizes.get(name, 0) for name in call.saves(mask))
    made = mask & owned
    return read, sum(_nbytes(meta) for k, meta in enumerate(call.metas) if made >> k & 1)


# --------------------------------------------------------------------------------- nests


def _nests(
    kernel: Event, known: _Lookups, program: Any, step: Any, lengths: dict[int, int]
) -> Iterator[Event]:
    """The parts of a kernel, its time divided among them by their estimated work.

    What was compiled for it comes before.
    """
    nests = known.parts(program, step)
    sizes = program.graph.sizes

    def amount(terms: Any) -> float:
        try:
            return evaluate(terms, lengths)
        except KeyError:  # an axis that no argument of the kernel has
            return sizes.hint_of(terms)

    moved = [amount(work.moved) for _, _, work in nests]
    shares = [
        serial_ns(amount(work.picoseconds) / 1000, bytes_)
        for (_, _, work), bytes_ in zip(nests, moved, strict=True)
    ]
    total = sum(shares) or 1.0
    start = max((child.end for child in kernel.children), default=kernel.begin)
    time, done = kernel.end - start, 0.0
    for (name, line, _), share, bytes_ in zip(nests, shares, moved, strict=True):
        begin = start + round(time * done / total)
        done += share
        event = Event(
            kinds.NEST, f"{step.name}: {name}", begin,
            start + round(time * done / total), int(bytes_), 0, line,
            kernel.threads, kernel.thread, estimated=True, parent=kernel,
        )  # fmt: skip
        kernel.children.append(event)
        yield event


def _parts(program: Any, step: Any) -> list[tuple[str, str, Any]]:
    """Names, lines and work of the nests and matrix products of a kernel."""
    written = step.written
    items = [
        item
        for item in written.writer.items
        if not isinstance(item, Statement) or item.term.op == PRODUCT
    ]
    described = []
    nests = iter(written.nests)
    for item, work in zip(items, written.works, strict=True):
        nodes = account(item, written.writer, program.expansion.origin).nodes
        names = ", ".join(dict.fromkeys(node.name for node in nodes))
        head = "matrix product" if isinstance(item, Statement) else f"nest {next(nests).number}"
        line = next((node.line for node in nodes if node.line), "")
        described.append((f"{head} ({names})" if names else head, line, work))
    return described


# -------------------------------------------------------------------------------------- memory


def _add_memory(
    events: Iterable[Event], samples: Sequence[tuple[int, int, int]], start: int
) -> None:
    """Peaks, and what stayed, from looks at memory at each begin and end."""
    times = [time - start for time, _, _ in samples]
    for event in events:
        first, last = bisect_left(times, event.begin), bisect_left(times, event.end)
        if event.estimated or last >= len(times):
            continue
        event.allocated = samples[last][1] - samples[first][1]
        event.peak = max([samples[first][1], *(s[2] for s in samples[first + 1 : last + 1])])


# ------------------------------------------------------------------------------------ averages


@dataclass
class Summary:
    """Events of one kind and name, summed up; times in nanoseconds."""

    kind: str
    name: str
    calls: int = 0
    self_ns: int = 0
    total_ns: int = 0
    read: int = 0
    written: int = 0
    threads: int = 1
    peak: int | None = None
    allocated: int | None = None
    line: str = ""
    estimated: bool = False
    """Whether times are shares by estimated work."""

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read + self.written

    @property
    def mean_ns(self) -> float:
        """Mean time of a call."""
        return self.total_ns / self.calls


def averages(events: Iterable[Event], by_line: bool = False) -> list[Summary]:
    """Sums for each kind and name, and for each line if that is asked for.

    ``line`` is the one that took most time. An event inside of another one of the same row counts
    for the total once.
    """
    rows: dict[tuple, Summary] = {}
    times: dict[tuple, dict[str, int]] = {}
    for event in events:
        key = _key(event, by_line)
        row = rows.get(key)
        if row is None:
            row = rows[key] = Summary(event.kind, event.name, estimated=event.estimated)
        self_ns = event.self_ns
        row.calls += 1
        row.self_ns += self_ns
        row.total_ns += 0 if _inside(event, key, by_line) else event.total_ns
        row.read, row.written = row.read + event.read, row.written + event.written
        row.threads = max(row.threads, event.threads)
        if event.peak is not None:
            row.peak = max(row.peak or 0, event.peak)
            row.allocated = (row.allocated or 0) + (event.allocated or 0)
        spent = times.setdefault(key, {})
        spent[event.line] = spent.get(event.line, 0) + event.total_ns
    for key, row in rows.items():
        row.line = max(times[key], key=times[key].__getitem__)
    return list(rows.values())


def _key(event: Event, by_line: bool) -> tuple:
    return (event.kind, event.name, *([event.line] if by_line else []))


def _inside(event: Event, key: tuple, by_line: bool) -> bool:
    around = event.parent
    while around is not None:
        if _key(around, by_line) == key:
            return True
        around = around.parent
    return False
