"""Warnings of what becomes part of a compiled function though plain Python code made it anew."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.compiler.call.place import Place
from numgrad.errors import warn


def warn_of_frozen(function: str, source: np.ndarray) -> None:
    """Warn of an array that was made during a trace."""
    warn(
        f"jit: {function} uses an array of shape {source.shape} and dtype {source.dtype} that "
        "plain NumPy made while it was traced, or that was found in no variable; its present "
        "content becomes part of the compiled function; make it with numgrad functions "
        "(ng.arange, ng.zeros), or outside of the function"
    )


def generator_states(generators: Sequence[Place]) -> dict[str, Any]:
    """What Python's, NumPy's and the given generators of random numbers are about to draw."""
    found: dict[str, Any] = {"np.random": np.random.get_state(), "random": random.getstate()}
    for place in generators:
        source = place.value
        is_legacy = isinstance(source, np.random.RandomState)
        found[place.name] = source.get_state() if is_legacy else source.bit_generator.state
    return found


def warn_of_draws(function: str, before: dict[str, Any], generators: Sequence[Place]) -> None:
    """Warn of generators from which a function drew while it was traced."""
    for name, state in generator_states(generators).items():
        if not _same(state, before[name]):
            warn(
                f"jit: {function} drew random numbers from {name} while it was traced, and what it "
                "drew becomes part of the compiled function: each call has the same numbers; draw "
                "from a generator of ng.random.default_rng, or pass them as an argument"
            )


def _same(a: Any, b: Any) -> bool:
    """Whether two states of a generator are equal."""
    if isinstance(a, dict):
        return all(_same(part, b[key]) for key, part in a.items())
    if isinstance(a, tuple):
        return all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(np.all(a == b))
