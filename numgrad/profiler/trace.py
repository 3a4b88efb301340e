"""Events in the trace-event format, as JSON, which Perfetto and chrome://tracing show.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU describes it:
complete events ``X`` with time stamps and durations in microseconds, flows ``s`` and ``f``,
counters ``C``, names of threads ``M``.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from numgrad.profiler.events import Event
from numgrad.profiler.notes import NODE, OPERATION


def write(path: str | os.PathLike[str], events: Sequence[Event]) -> None:
    """Write a file."""
    found = {"traceEvents": list(trace_events(events)), "displayTimeUnit": "ms"}
    text = json.dumps(found, separators=(",", ":"))
    data = text.encode()
    target = Path(path)
    target.write_bytes(gzip.compress(data) if target.suffix == ".gz" else data)


def trace_events(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    """What stands in the file: names of threads, events, arrows to backwards, memory."""
    process = os.getpid()
    numbers: dict[tuple[int, str], int] = {}
    for event in events:
        numbers.setdefault(event.thread, len(numbers) + 1)
    yield _meta("process_name", process, 0, "numgrad")
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
