"""Checkpointing of loops: saved is all that steps compute, or states to compute it from.

Note [States that are kept]
---------------------------
A loop that keeps its state every ``k`` steps is a loop over segments of ``k`` steps, each a loop of
its own: computing a segment again from its first state is what a loop does that keeps nothing but
its states. Steps that are left over are a segment more. This is checkpointing in two levels: with
``k`` near the square root of the length memory grows as that, for one more computation of each step
[1]_.

.. [1] A. Griewank, A. Walther, Evaluating Derivatives, 2nd edition, 2008, chapter 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import flatten, leaves, map_leaves, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_index
from numgrad.tensors.checkpoint import checkpoint

Save = str | int | Callable[[int], int] | None

STATES, ALL, ROOT = "carries", "all", "sqrt"

LONGER = 14
"""How many times as long compiled segments are: starting one takes as long as 100 steps."""


def steps_between(name: str, save: Save, count: Any) -> int | None:
    """How many steps lie between two states that are kept; None where all is kept.

    A loop of symbolic length gets a fixed one if that matters.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If ``save`` is nothing that says so.
    """
    if save == ALL:
        return None
    if save == STATES:
        return 1
    if save == ROOT:
        every = max(math.isqrt(int(count)) * (LONGER if state.ground.deferred else 1), 1)
        # evenly, as of steps that are left over all states are kept meanwhile
        return int(count) // (int(count) // every) if count >= every else every
    number = save
    if callable(save):
        number = save(int(count))
    elif isinstance(save, str):
        raise NumgradValueError(
            f"{name}: save is {save!r}; it is 'carries', 'all', 'sqrt', a number of steps, or a "
            "function that returns one for the length of the loop"
        )
    if isinstance(number, bool):
        raise NumgradTypeError(f"{name}: save is {number}; it is a number of steps")
    every = as_index(name, number, "save" if number is save else "what save returned")
    if every < 1:
        raise NumgradValueError(
            f"{name}: save is {every}; the steps between two states that are kept are one or more"
        )
    return every


def in_segments(
    scan: Callable[..., tuple[Any, Any]],
    step: Callable[[Any, Sequence[Any]], tuple[Any, Any]],
    init: Any,
    xs: list[Any],
    count: Any,
    every: int,
    reverse: bool,
) -> tuple[Any, Any]:
    """The loop of ``step`` as one of segments: Note [States that are kept]."""
    segments, rest = divmod(int(count), every)
    middle = segments * every

    def segment(carry: Any, rows: list[Any]) -> tuple[Any, Any]:
        return scan(step, carry, rows, length=every, reverse=reverse)

    def over_segments(carry: Any) -> tuple[Any, Any]:
        parts = [OPS["reshape"](x[:middle], (segments, every, *x.shape[1:])) for x in xs]
        carry, ys = scan(segment, carry, parts, segments, reverse, STATES)
        return carry, map_leaves(_in_a_row, ys)

    def over_rest(carry: Any) -> tuple[Any, Any]:
        return scan(step, carry, [x[middle:] for x in xs], rest, reverse)

    if not rest:
        return over_segments(init)
    if not segments:
        return over_rest(init)
    if reverse:
        carry, last = over_rest(init)
        carry, ys = over_segments(carry)
    else:
        carry, ys = over_segments(init)
        carry, last = over_rest(carry)
    first: list[Any] = []
    nesting = flatten(ys, first)
    pairs = zip(first, leaves(last), strict=True)
    return carry, unflatten(
        nesting, (None if a is None else OPS["concat"]([a, b]) for a, b in pairs)
    )


def _in_a_row(y: Any) -> Any:
    """The rows that were collected in segments."""
    return None if y is None else OPS["reshape"](y, (y.shape[0] * y.shape[1], *y.shape[2:]))


def recomputed(
    one: Callable[..., tuple[Any, Any]], carry: Any, arrays: Sequence[Any], k: int
) -> tuple[Any, Any]:
    """A step whose state is kept, and nothing that it computes."""
    parts: list[Any] = []
    nesting = flatten(carry, parts)

    def function(*values: Any) -> tuple[Any, Any]:
        return one(unflatten(nesting, iter(values[: len(parts)])), values[len(parts) :])

    return checkpoint(function, *parts, *(x[k : k + 1] for x in arrays))
