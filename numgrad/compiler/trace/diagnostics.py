"""Warnings of a trace: arrays and draws that become constant, Python loops that are unrolled."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from operator import length_hint
from sys import modules
from types import CodeType, FrameType, GeneratorType
from typing import Any

import numpy as np

from numgrad.codegen.cpython.c_api import is_unreferenced
from numgrad.compiler.call.captures import Captures
from numgrad.compiler.call.source import CONTENT, Source, blocks_of
from numgrad.compiler.graph.graph import Graph
from numgrad.compiler.messages import warn_at
from numgrad.core.bytecode import Sites, facts
from numgrad.errors import UnrolledLoopWarning, warn
from numgrad.libraries import is_users


def warn_of_frozen(
    function: str, array: np.ndarray, captures: Captures, stored: Collection[int], line: str | None
) -> None:
    """Warn of an array that was made during a trace if a later change of it would be missed.

    What the function computes again from constants and from what is compared at each call changes
    with these. Else somebody has the array, or it comes from a file or an object that hides what
    it has.
    """
    if id(array) in stored:
        return
    if is_unreferenced(array):
        if not _reads_more(captures) or _is_plain_constant(array, captures.codes):
            return
    elif _is_compared(array, captures):
        return
    warn_at(
        line,
        f"jit: {function} uses an array of shape {array.shape} and dtype {array.dtype} that "
        "plain NumPy made while it was traced, or that was found in no variable; its present "
        "content becomes part of the compiled function; make it with numgrad functions "
        "(ng.arange, ng.zeros), or outside of the function",
    )


def _reads_more(captures: Captures) -> bool:
    """Whether code reads files, or objects whose state is not compared."""
    return captures.opaque or any(facts(code).mentions(_READING) for code in captures.codes)


def _is_compared(array: np.ndarray, captures: Captures) -> bool:
    """Whether its memory is that of something whose content is compared at each call."""
    for source in captures.guards:
        if source.treatment == CONTENT:
            value = source.read()
            arrays = [value] if isinstance(value, np.ndarray) else blocks_of(value) or ()
            if any(np.may_share_memory(array, each) for each in arrays):
                return True
    return False


_READING = {
    "open", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "open_memmap", "read",
    "read_text", "read_bytes", "loadmat", "read_csv", "read_parquet", "read_excel", "read_hdf",
    "read_sql", "imread", "urlopen", "recv", "readline", "readlines", "input", "default_rng",
    "RandomState",
}  # fmt: skip
"""Names of what reads files and other processes, and of generators made by the function."""


def _is_plain_constant(array: np.ndarray, codes: Iterable[CodeType]) -> bool:
    """Whether the numbers of an array say no more than the code does.

    Those are equal, evenly spaced or a unit matrix, as ``np.ones``, ``np.linspace`` and ``np.eye``
    make them, or stand in the code.
    """
    if array.dtype.kind not in "biufc":
        return False
    if array.size < 2 or (array == array.flat[0]).all():
        return True
    if array.dtype.kind == "b":
        return False
    if array.ndim == 1:
        steps = np.diff(array)
        if np.allclose(steps, steps[0], rtol=1e-6, atol=0):
            return True
    if array.ndim == 2 and np.array_equal(array, np.eye(*array.shape, dtype=array.dtype)):
        return True
    if array.size > _FEW:
        return False
    written = {abs(n) for code in codes for n in facts(code).numbers}
    return all(abs(n) in written for n in array.ravel().tolist())


_FEW = 64


def generator_states(generators: Sequence[Source]) -> dict[str, Any]:
    """States of Python's, NumPy's and the given generators of random numbers.

    NumPy's global one is None before it is imported, which takes 20 ms.
    """
    known = np.random.get_state() if "numpy.random" in modules else None
    states: dict[str, Any] = {"np.random": known, "random": random.getstate()}
    for source in generators:
        states[source.name] = _position(source.value)
    return states


def _position(source: Any) -> Any:
    """How far a generator of random numbers, an iterator or a file has come, if that shows."""
    if isinstance(source, random.Random):
        return source.getstate()
    if isinstance(source, GeneratorType):
        frame = source.gi_frame
        return frame and (frame.f_lasti, *map(id, frame.f_locals.values()))
    if isinstance(source, Iterator):
        with suppress(AttributeError, OSError, ValueError):  # no file, or a closed one
            return source.tell()  # pyright: ignore
        if type(source).__module__ in ("builtins", "itertools"):  # no code of the user's runs
            return length_hint(source, -1), repr(source)
        return None
    is_legacy = isinstance(source, np.random.RandomState)
    return source.get_state() if is_legacy else source.bit_generator.state


def warn_of_draws(function: str, before: dict[str, Any], generators: Sequence[Source]) -> None:
    """Warn of generators from which a function drew while it was traced."""
    now = generator_states(generators)
    if before["np.random"] is None and now["np.random"] is not None:
        before = {**before, "np.random": _first_state()}
    iterators = {source.name for source in generators if isinstance(source.value, Iterator)}
    for name, state in now.items():
        if not _same(state, before[name]):
            if name in iterators:
                warn(
                    f"jit: {function} took what comes next from {name} while it was traced, and "
                    "that becomes part of the compiled function: each call has the same; take it "
                    "outside, and pass it as an argument"
                )
                continue
            warn(
                f"jit: {function} drew random numbers from {name} while it was traced, and what it "
                "drew becomes part of the compiled function: each call has the same numbers; draw "
                "from a generator of ng.random.default_rng, or pass them as an argument"
            )


def _first_state() -> Any:
    """State of NumPy's global generator when it has just been imported."""
    source: Any = np.random.get_bit_generator()  # pyright: ignore
    return np.random.RandomState(type(source)(source.seed_seq)).get_state()


def _same(a: Any, b: Any) -> bool:
    """Whether two states of a generator are equal."""
    if isinstance(a, dict):
        return all(_same(item, b[key]) for key, item in a.items())
    try:
        return bool(a == b)
    except ValueError:  # of arrays, or of a tuple that has some
        return all(map(_same, a, b)) if isinstance(a, tuple) else np.array_equal(a, b)


# ---------------------------------------------------------------------------------------- unrolled


MOST_UNROLLED = 2_000
"""Operations of unrolled loops up to which nothing is said."""
OFTEN = 16
"""How often a line calls at least that counts as one of a loop."""


class CallingLines:
    """The lines of the user's code that call operations.

    Attributes
    ----------
    calls
        How often each did, by ``file:line`` and the place in the line.
    sites
        The instructions that do, if anybody asks.
    """

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, int]] = Counter()
        self.sites: Sites | None = None
        self._entered: FrameType | None = None
        self._known: dict[tuple[CodeType, int], str] = {}

    def current(self) -> str | None:
        """The line that is being run; counts the call if it is a new one."""
        entered, frame = None, sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if is_users(name):
                offset = frame.f_lasti
                line = self._known.get((frame.f_code, offset))
                if line is None:
                    line = self._known[frame.f_code, offset] = f"{name}:{frame.f_lineno}"
                if entered is not self._entered:
                    self._entered = entered
                    self.calls[line, offset] += 1
                    if self.sites is not None:
                        self.sites.add(frame)
                return line
            entered, frame = frame, frame.f_back
        return None

    def end(self) -> None:
        """Let go of the last call."""
        self._entered = None


def warn_of_loops(function: str, graph: Graph, lines: CallingLines) -> bool:
    """Say if Python loops became very many operations; a gradient's count as those of its line."""
    ran: dict[str | None, int] = {}
    for (line, _), times in lines.calls.items():
        if times >= OFTEN:
            ran[line] = max(times, ran.get(line, 0))
    made = Counter(node.line for node in graph.nodes if node.line in ran)
    total = made.total()
    if total <= MOST_UNROLLED:
        return False
    line, count = made.most_common(1)[0]
    warn(
        f"jit: Python loops in {function} were unrolled into {total:,} operations, {count:,} of "
        f"them from {line}, which ran {ran[line]:,} times; compiling so many takes "
        "long. Write a loop as operations on arrays that have an axis for its iterations; where "
        "an iteration needs the one before, with ng.scan or ng.fori_loop, which stay loops, or "
        "compile what one iteration calls in place of the whole",
        UnrolledLoopWarning,
    )
    return True
