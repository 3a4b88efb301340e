"""Events in the trace-event format, as JSON, which Perfetto and chrome://tracing show.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU describes it:
complete events ``X`` with time stamps and durations in microseconds, flows ``s`` and ``f``,
counters ``C``, names of processes and threads ``M``.

Time stamps are of a clock that the processes of a machine have in common. With the name of the
process goes how far the clock on the wall is ahead of it, by which ``merge`` puts traces of several
machines on one clock. As time stamps that would be too large for nanoseconds.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.profiler.events import Event
from numgrad.profiler.notes import NODE, OPERATION

_AHEAD = "wall clock ahead, ns"
_SAME = 50_000_000
"""Nanoseconds below which two differences to the clock on the wall are those of one machine."""


def write(path: str | os.PathLike[str], events: Sequence[Event]) -> None:
    """Write a file."""
    _write(path, list(trace_events(events)))


def _write(path: str | os.PathLike[str], events: list[dict[str, Any]]) -> None:
    found = {"traceEvents": events, "displayTimeUnit": "ms"}
    text = json.dumps(found, separators=(",", ":"))
    data = text.encode()
    target = Path(path)
    target.write_bytes(gzip.compress(data) if target.suffix == ".gz" else data)


def merge(paths: Sequence[str | os.PathLike[str]], target: str | os.PathLike[str]) -> None:
    """Put traces of several processes, such as the ranks of a program, into one file.

    Each process keeps its name, and all have one clock, that of the machine.

    Parameters
    ----------
    paths
        Files that ``export_chrome_trace`` wrote.
    target
        The new file; compressed if its name ends in ``.gz``.

    Raises
    ------
    NumgradValueError
        If a file holds no trace, or there is none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numgrad as ng
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with ng.profiler.profile() as p:
    ...     x = ng.ones(3) * 2
    >>> p.export_chrome_trace(folder / "rank0.json")
    >>> ng.profiler.merge_traces(sorted(folder.glob("rank*.json")), folder / "all.json")
    """
    if not paths:
        raise NumgradValueError("merge_traces: there is no file")
    together: list[dict[str, Any]] = []
    first = None
    for number, path in enumerate(map(Path, paths)):
        data = path.read_bytes()
        try:
            text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            events = json.loads(text)["traceEvents"]
            ahead = events[0]["args"][_AHEAD]
            first = ahead if first is None else first
            # on one machine the clock is the same, and this is how far it was set meanwhile
            shift = 0.0 if abs(ahead - first) < _SAME else (ahead - first) / 1e3
            for event in events:  # numbers of processes of other machines may be the same
                together.append(event | {"pid": number})
                if "ts" in event:
                    together[-1]["ts"] += shift
                if "id" in event:
                    together[-1]["id"] = f"{number}-{event['id']}"
        except (ValueError, LookupError, TypeError, OSError) as error:
            raise NumgradValueError(f"merge_traces: {path} holds no trace ({error})") from error
    _write(target, together)


def trace_events(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    """What stands in the file: names of threads, events, arrows to backwards, memory."""
    process = os.getpid()
    numbers: dict[tuple[int, str], int] = {}
    for event in events:
        numbers.setdefault(event.thread, len(numbers) + 1)
    named = _meta("process_name", process, 0, _process_name())
    named["args"][_AHEAD] = time.time_ns() - time.perf_counter_ns()
    yield named
    for (_, name), number in numbers.items():
        yield _meta("thread_name", process, number, name)
    recorded: dict[int, Event] = {}
    for event in events:
        place = {"pid": process, "tid": numbers[event.thread]}
        yield {
            "ph": "X", "name": event.name, "cat": event.kind, "ts": event.begin / 1e3,
            "dur": event.total_ns / 1e3, **place, "args": _arguments(event),
        }  # fmt: skip
        if event.kind == OPERATION and event.sequence >= 0:
            recorded[event.sequence] = event
    nodes = (e for e in events if e.kind == NODE and e.sequence in recorded)
    for number, node in enumerate(nodes, 1):
        for phase, event in (("s", recorded[node.sequence]), ("f", node)):
            yield {
                "ph": phase, "name": "backward", "cat": "backward", "id": number, "bp": "e",
                "ts": event.begin / 1e3, "pid": process, "tid": numbers[event.thread],
            }  # fmt: skip
    for event in events:
        if event.peak is not None:
            yield {
                "ph": "C", "name": "memory", "ts": event.end / 1e3, "pid": process, "tid": 0,
                "args": {"peak bytes": event.peak},
            }  # fmt: skip


def _process_name() -> str:
    """The rank of this process, if it is one of several."""
    group = getattr(sys.modules.get("numgrad.distributed.group"), "_default", None)
    return "numgrad" if group is None or group.size == 1 else f"numgrad, rank {group.rank}"


def _meta(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _arguments(event: Event) -> dict[str, Any]:
    """What is shown of an event when it is clicked on."""
    found: dict[str, Any] = {}
    if event.line:
        found["line"] = event.line
    if event.bytes:
        found |= {"bytes read": event.read, "bytes written": event.written}
    if event.threads > 1:
        found["threads"] = event.threads
    if event.sequence >= 0:
        found["sequence"] = event.sequence
    if event.peak is not None:
        found |= {"peak bytes": event.peak, "allocated bytes": event.allocated}
    if event.estimated:
        found["estimated"] = True
    return found
