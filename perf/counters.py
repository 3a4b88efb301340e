"""What fixed programs do, in numbers that do not jitter: ``python perf/counters.py``.

Times tell a change of a twentieth from noise at best; these numbers are the same in every run on
every machine. ``counters.json`` holds them, and ``--check`` fails where they differ from it, up or
down, until somebody accepts that: ``--accept``, or NUMGRAD_UPDATE_GOLDEN=1.

===============  ===================================================================================
counter          of one run, all kernels being there
===============  ===================================================================================
kernels made     compiled or loaded from disk, up to the third run
launches         calls of kernels from Python
operations       calls of operations
nodes            that backwards went through
bytes read       by operations, nodes, kernels of compiled functions, and steps of optimizers
bytes written    by the same
allocations      of memory for arrays, by NumPy
calls            of numgrad's own Python functions, generated ones included
instructions     of the processor, with ``--instructions``, by callgrind; it takes minutes a program
===============  ===================================================================================

Each is counted twice, in processes of the program's own and with one thread; one that is not the
same then is an error. Counting launches keeps kernels from machine code that would call them
(``codegen.cpython.hot_paths``), so allocations and calls are counted in a process in which it does.
Instructions depend on the processor and on libraries: they are only shown.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from counted import PROGRAMS, Run
from harness import environment

FILE = Path(__file__).with_name("counters.json")
WARM = 3
"""Runs before anything is counted."""
REPEATS = 200
"""Runs over which callgrind's count is averaged: two starts of Python differ a little."""
TIMEOUT = 600

Counters = dict[str, int]
# ------------------------------------------------------------------------------------ counting


class Kernels:
    """Counts kernels that are made, and calls of them."""

    def __init__(self) -> None:
        from numgrad.codegen import compile as door

        self.made = self.launches = 0
        make = door._load_or_compile

        def counted(kernel: Any, *args: Any) -> Any:
            found = make(kernel, *args)
            entry = found.entry

            def launch(*arguments: Any) -> Any:
                self.launches += 1
                return entry(*arguments)

            self.made += 1
            found.entry = launch
            return found

        door._load_or_compile = counted


def recorded(ng: Any, run: Run) -> Counters:
    """Counts of a profile; bytes of what has no parts that say it themselves."""
    with ng.profiler.profile(with_stack=False) as p:
        run()
    kinds = ("operation", "backward node", "kernel", "optimizer step")
    inner: set[int] = set()
    for event in p.events():
        around = event.parent
        while around is not None and event.kind in kinds and event.bytes:
            inner.add(id(around))
            around = around.parent
    found = [event for event in p.events() if event.kind in kinds]
    leaves = [event for event in found if id(event) not in inner]
    return {
        "operations": sum(event.kind == "operation" for event in found),
        "nodes": sum(event.kind == "backward node" for event in found),
        "bytes read": sum(event.read for event in leaves),
        "bytes written": sum(event.written for event in leaves),
    }


def calls(run: Run) -> int:
    """Calls of Python functions of the package."""
    from numgrad.errors import PACKAGE

    count = 0

    def note(frame: Any, what: str, argument: Any) -> None:
        nonlocal count
        count += what == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


_pointer, _size = ctypes.c_void_p, ctypes.c_size_t


class _Allocator(ctypes.Structure):
    """NumPy's ``PyDataMemAllocator``."""

    _fields_ = [
        ("context", _pointer),
        ("malloc", ctypes.CFUNCTYPE(_pointer, _pointer, _size)),
        ("calloc", ctypes.CFUNCTYPE(_pointer, _pointer, _size, _size)),
        ("realloc", ctypes.CFUNCTYPE(_pointer, _pointer, _pointer, _size)),
        ("free", ctypes.CFUNCTYPE(None, _pointer, _pointer, _size)),
    ]


class _Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("allocator", _Allocator),
    ]


_SET_HANDLER = 304
"""The place of ``PyDataMem_SetHandler`` in NumPy's C API, which never changes."""


_handlers: list[Allocations] = []
"""For ever: arrays outlive the counting, and are freed by the handler that they come from."""


class Allocations:
    """Counts memory that NumPy takes for arrays while it is in use."""

    def __init__(self) -> None:
        self.count = 0
        library = ctypes.CDLL(None)
        functions = {}
        for name, kind in _Allocator._fields_[1:]:
            function = getattr(library, name)
            arguments = kind._argtypes_  # pyright: ignore
            function.restype = kind._restype_  # pyright: ignore
            function.argtypes = arguments[1:2] if name == "free" else arguments[1:]
            functions[name] = kind(self._counted(function, name))
        self._handler = _Handler(b"counting", 1, _Allocator(None, **functions))
        api = ctypes.pythonapi
        api.PyCapsule_New.restype = ctypes.py_object
        api.PyCapsule_New.argtypes = [_pointer, ctypes.c_char_p, _pointer]
        api.PyCapsule_GetPointer.restype = _pointer
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        address = ctypes.cast(ctypes.pointer(self._handler), _pointer)
        self._capsule = api.PyCapsule_New(address, b"mem_handler", None)
        from numpy._core import _multiarray_umath

        table = api.PyCapsule_GetPointer(_multiarray_umath._ARRAY_API, None)
        setter = ctypes.cast(table, ctypes.POINTER(_pointer))[_SET_HANDLER]
        self._set = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(setter)
        _handlers.append(self)

    def _counted(self, function: Any, name: str) -> Callable[..., Any]:
        if name == "free":  # which needs no size
            return lambda context, pointer, size: function(pointer)

        def take(context: Any, *arguments: Any) -> Any:
            self.count += 1
            return function(*arguments)

        return take

    def of(self, run: Run) -> int:
        """How often memory is taken in a run."""
        self.count = 0
        before = self._set(self._capsule)
        try:
            run()
        finally:
            self._set(before)
        return self.count


def counted(name: str) -> Counters:
    """Counters of kernels and of what a profile sees of a program, in this process."""
    kernels = Kernels()
    run = warm(name)
    import numgrad as ng

    made = kernels.made

    def once() -> Counters:
        kernels.launches = 0
        run()
        return {"kernels made": made, "launches": kernels.launches, **recorded(ng, run)}

    found = settled(name, once)
    if kernels.made != made:
        raise RuntimeError(f"{name}: kernels were made late")
    return found


def counted_apart(name: str) -> Counters:
    """The other counters: nothing is in the way of hot_paths paths in machine code."""
    run = warm(name)
    allocations = Allocations()
    return settled(name, lambda: {"allocations": allocations.of(run), "calls": calls(run)})


def warm(name: str) -> Run:
    """A program that has run, with what it needs in use."""
    import numgrad as ng
    from numgrad.codegen.cpython import hot_paths

    ng.set_num_threads(1)
    run = PROGRAMS[name](ng)
    for number in range(WARM):
        run()
        if not number:
            hot_paths.install()
    return run


def settled(name: str, once: Callable[[], Counters]) -> Counters:
    """Count twice; raise where the counts differ."""
    gc.disable()
    for _ in range(2):  # the first profile imports what lets learned calls be forgotten
        once()
    gc.collect()
    found = once()
    gc.collect()
    again = once()
    if found != again:
        pairs = {k: (found[k], again[k]) for k in found if found[k] != again[k]}
        raise RuntimeError(f"{name}: counters jitter: {pairs}")
    return found


# ------------------------------------------------------------------------------------ callgrind


def instructions(name: str) -> int:
    """Instructions of a run: what two processes execute that differ in nothing but runs."""
    totals = []
    for runs in (WARM, WARM + REPEATS):
        command = [
            "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable,
            __file__, "--one", name, "--runs", str(runs),
        ]  # fmt: skip
        shown = _child(command, 10 * TIMEOUT).stderr.splitlines()
        (line,) = (line for line in shown if "Collected" in line)
        totals.append(int(line.rpartition(":")[2]))
    return round((totals[1] - totals[0]) / REPEATS)


def repeat(name: str, runs: int) -> None:
    """Run a program for callgrind."""
    import numgrad as ng

    gc.disable()
    ng.set_num_threads(1)
    run = PROGRAMS[name](ng)
    for _ in range(runs):
        run()


# ----------------------------------------------------------------------------------- the parent


def _child(command: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
    settings = environment(1, {"PYTHONHASHSEED": "0"})
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-1500:]}")
    return done


def measure(name: str) -> Counters:
    """Counters of a program, in two processes of its own."""
    command = [sys.executable, __file__, "--one", name]
    parts = [json.loads(_child([*command, *how], TIMEOUT).stdout) for how in ([], ["--apart"])]
    return parts[0] | parts[1]


def versions() -> dict[str, str]:
    """What counters may depend on besides numgrad."""
    return {"python": platform.python_version().rpartition(".")[0], "numpy": np.__version__}


def differences(old: Mapping[str, Counters], new: Mapping[str, Counters]) -> Iterator[str]:
    """Each counter that is another one, by how much."""
    for name in {**old, **new}:
        if name not in new or name not in old:
            yield f"{name}: {'not accepted yet' if name in new else 'is gone'}"
            continue
        for counter in {**old[name], **new[name]}:
            a, b = old[name].get(counter), new[name].get(counter)
            if a != b:
                share = f", {100 * (b / a - 1):+.1f} %" if a and b is not None else ""
                yield f"{name}: {counter} {a} -> {b}{share}"


def table(found: Mapping[str, Counters]) -> str:
    """Counters, a line a program."""
    heads = list(dict.fromkeys(counter for row in found.values() for counter in row))
    width = max(map(len, found), default=0)
    lines = [" " * width + "".join(f"{head:>15}" for head in heads)]
    for name, row in found.items():
        lines.append(f"{name:{width}}" + "".join(f"{row.get(head, '-'):>15}" for head in heads))
    return "\n".join(lines)


def accept(found: Mapping[str, Counters], whole: bool) -> None:
    """Write counters to the file; unless they are all, others in it stay."""
    before = {} if whole or not FILE.exists() else json.loads(FILE.read_text())["programs"]
    content = {"with": versions(), "programs": {**before, **found}}
    FILE.write_text(json.dumps(content, indent=1) + "\n")


def check(found: Mapping[str, Counters], whole: bool) -> int:
    """Print what differs from the file; the status of the process."""
    kept = json.loads(FILE.read_text()) if FILE.exists() else {"with": {}, "programs": {}}
    old = kept["programs"]
    lines = list(differences(old if whole else {k: old[k] for k in found if k in old}, found))
    if not lines:
        print("counters are as accepted")
        return 0
    print("\n".join(["counters changed:", *lines]))
    if kept["with"] != versions():
        print(f"they were accepted with {kept['with']}, this is {versions()}")
    print("if that is meant: python perf/counters.py --accept, or NUMGRAD_UPDATE_GOLDEN=1")
    return 1


def main(arguments: list[str] | None = None) -> int:
    """Count for the parent, or let all be counted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail where counters changed")
    parser.add_argument("--accept", action="store_true", help="write them to the file")
    parser.add_argument("--only", action="append", choices=PROGRAMS, help="this program")
    parser.add_argument("--instructions", action="store_true", help="count these by callgrind too")
    parser.add_argument("--one", choices=PROGRAMS, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.instructions and not shutil.which("valgrind"):
        parser.error("--instructions: valgrind, which counts them, is not installed")
    if given.one:
        if given.runs:
            repeat(given.one, given.runs)
        else:
            print(json.dumps((counted_apart if given.apart else counted)(given.one)))
        return 0
    found: dict[str, Counters] = {}
    shown: dict[str, Counters] = {}
    failed = False
    for name in given.only or PROGRAMS:
        try:
            found[name] = measure(name)
            more = instructions(name) if given.instructions else None
            shown[name] = found[name] | ({} if more is None else {"instructions": more})
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            failed = True
            print(f"{name} could not be counted: {error}", file=sys.stderr)
    print(table(shown))
    whole = not (given.only or failed)
    if given.accept or os.environ.get("NUMGRAD_UPDATE_GOLDEN"):
        accept(found, whole)
        return int(failed)
    return check(found, whole) or int(failed) if given.check else int(failed)


if __name__ == "__main__":
    sys.exit(main())
