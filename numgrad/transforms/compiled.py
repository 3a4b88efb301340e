"""Transforms of compiled functions, which are compiled as a whole.

A compiled function is called as it was written where arrays stand for batches or have tangents. So
``vmap``, ``jvp`` and ``jacfwd`` of one, which call it so, become compiled functions themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numgrad.core.interpreter import state
from numgrad.core.wrappers import FunctionWrapper


def jitted_in(f: Any) -> Any:
    """The function made by ``ng.jit`` that ``f`` is, or is a partial or a transform of."""
    while True:
        if hasattr(type(f), "__numgrad_jit__"):
            return f
        if isinstance(f, functools.partial):
            f = f.func
        elif isinstance(f, FunctionWrapper) and f.made_of:
            f = f.made_of[0]
        else:
            return None


def compiled_whole(f: Any, transformed: Callable[..., Any]) -> Callable[..., Any]:
    """A transform of ``f``; compiled if ``f`` is, unless that has static or donated arguments."""
    jitted = jitted_in(f)
    if jitted is None or not jitted.is_plain:
        return transformed
    made: list[Any] = []

    @functools.wraps(transformed)
    def whole(*args: Any, **kwargs: Any) -> Any:
        if state.interpreters:
            return transformed(*args, **kwargs)
        if not made:
            made.append(jitted.like(transformed))
        return made[0](*args, **kwargs)

    return whole
