"""Warnings of what becomes part of a compiled function though plain Python code made it anew."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from operator import length_hint
from sys import getrefcount, modules
from types import CodeType, GeneratorType
from typing import Any

import numpy as np

from numgrad.compiler.call.closure import Captures
from numgrad.compiler.call.library_objects import blocks_of
from numgrad.compiler.call.source import CONTENT, Source
from numgrad.compiler.messages import warn_at
from numgrad.core.bytecode import facts
from numgrad.errors import warn


def warn_of_frozen(
    function: str,
    source: np.ndarray,
    around: Captures,
    stored: Collection[int],
    line: str | None,
) -> None:
    """Warn of an array that was made during a trace if a later change of it would be missed.

    What the function computes anew from constants and from what is compared at each call changes
    with these. Else somebody has the array, or it comes from a file or an object that hides what
    it has.
    """
    if id(source) in stored:
        return
    if _is_unreferenced(source):
        if not _reads_more(around) or _is_plain_constant(source, around.codes):
            return
    elif _is_compared(source, around):
        return
    warn_at(
        line,
        f"jit: {function} uses an array of shape {source.shape} and dtype {source.dtype} that "
        "plain NumPy made while it was traced, or that was found in no variable; its present "
        "content becomes part of the compiled function; make it with numgrad functions "
        "(ng.arange, ng.zeros), or outside of the function",
    )


def _reads_more(around: Captures) -> bool:
    """Whether code reads files, or objects whose state is not compared."""
    return around.opaque or any(facts(code).mentions(_READING) for code in around.codes)


def _is_compared(array: np.ndarray, around: Captures) -> bool:
    """Whether its memory is that of something whose content is compared at each call."""
    for place in around.guards:
        if place.treatment == CONTENT:
            found = place.read()
            arrays = [found] if isinstance(found, np.ndarray) else blocks_of(found) or ()
            if any(np.may_share_memory(array, each) for each in arrays):
                return True
    return False


_READING = {
    "open", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "open_memmap", "read",
    "read_text", "read_bytes", "loadmat", "read_csv", "read_parquet", "read_excel", "read_hdf",
    "read_sql", "imread", "urlopen", "recv", "readline", "readlines", "input", "default_rng",
    "RandomState",
}  # fmt: skip
"""Names of what reads files and other processes, and of generators made anew."""


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


def _is_unreferenced(array: np.ndarray) -> bool:
    """Whether nobody else has an array, or what its memory belongs to."""
    if getrefcount(array) > _OWN_REFERENCES:
        return False
    base = array.base
    while base is not None:
        if not isinstance(base, np.ndarray) or getrefcount(base) > _OF_BASE:
            return False
        base = base.base
    return True


_OWN_REFERENCES = 5
"""Of an array: the list of the trace, a variable there, two parameters here, and that of
``getrefcount``."""
_OF_BASE = 3
"""Of an array below it: the view, the variable, and the parameter of ``getrefcount``."""
_FEW = 64


def generator_states(generators: Sequence[Source]) -> dict[str, Any]:
    """What Python's, NumPy's and the given generators of random numbers are about to draw.

    NumPy's global one is None before it is imported, which takes 20 ms.
    """
    known = np.random.get_state() if "numpy.random" in modules else None
    found: dict[str, Any] = {"np.random": known, "random": random.getstate()}
    for place in generators:
        found[place.name] = _position(place.value)
    return found


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
        return length_hint(source, -1), repr(source)
    is_legacy = isinstance(source, np.random.RandomState)
    return source.get_state() if is_legacy else source.bit_generator.state


def warn_of_draws(function: str, before: dict[str, Any], generators: Sequence[Source]) -> None:
    """Warn of generators from which a function drew while it was traced."""
    now = generator_states(generators)
    if before["np.random"] is None and now["np.random"] is not None:
        before = {**before, "np.random": _first_state()}
    iterators = {place.name for place in generators if isinstance(place.value, Iterator)}
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
    """What NumPy's global generator is about to draw when it has just been imported."""
    source: Any = np.random.get_bit_generator()  # pyright: ignore
    return np.random.RandomState(type(source)(source.seed_seq)).get_state()


def _same(a: Any, b: Any) -> bool:
    """Whether two states of a generator are equal."""
    if isinstance(a, dict):
        return all(_same(part, b[key]) for key, part in a.items())
    try:
        return bool(a == b)
    except ValueError:  # of arrays, or of a tuple that has some
        return all(map(_same, a, b)) if isinstance(a, tuple) else np.array_equal(a, b)
