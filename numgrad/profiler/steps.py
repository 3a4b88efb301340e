"""What a profile does in each step."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from numgrad.errors import NumgradTypeError, NumgradValueError

Schedule = Callable[[int], "ProfilerAction"]


class ProfilerAction(Enum):
    """What a profile does in a step."""

    NONE = 0
    """Nothing."""
    WARMUP = 1
    """Takes notes and forgets them, so that the first step of interest finds all in place."""
    RECORD = 2
    """Takes notes."""
    RECORD_AND_SAVE = 3
    """Takes notes, and hands over those of all steps in a row when the step ends."""


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Schedule:
    """Cycles of steps: ``wait`` of them are left alone, ``warmup`` forgotten, ``active`` recorded.

    Parameters
    ----------
    wait, warmup, active
        Numbers of steps.
    repeat
        How many cycles; 0 for as many as there are steps.
    skip_first
        Steps before the first cycle.

    Returns
    -------
    callable
        The ``ProfilerAction`` of each step, for ``profile``.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If a number is no integer, is negative, or no step would be recorded.

    Examples
    --------
    >>> import numgrad as ng
    >>> plan = ng.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    given = {
        "wait": wait, "warmup": warmup, "active": active, "repeat": repeat,
        "skip_first": skip_first,
    }  # fmt: skip
    for name, value in given.items():
        if not hasattr(value, "__index__"):
            raise NumgradTypeError(
                f"schedule: {name} is a number of steps, an int; got {type(value).__name__}"
            )
        if value < (name == "active"):
            raise NumgradValueError(
                f"schedule: {name}={value}; there must be at least {int(name == 'active')}"
            )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        cycle, place = divmod(step - skip_first, length)
        if step < skip_first or (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == length - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def always(step: int) -> ProfilerAction:
    """Record every step, where none was asked for."""
    return ProfilerAction.RECORD
