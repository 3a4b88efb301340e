"""Plans: all of a call that does not depend on the numbers.

Note [Plans]
------------
Everything about a call that does not depend on the numbers (result dtype, broadcasting, which
kernel, serial or parallel) is a ``Plan``, found by the dtypes and shapes of the operands. The eager
hot path is one look-up of the plan, one ``np.empty`` and one call of the kernel's entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from numgrad.core.call import Call
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op

MAX_PLANS = 4096
"""Plans kept per operation; shapes beyond that many start afresh."""

LARGE = 16384
"""Elements from which adding a gradient in the kernel that computes it saves time."""

_Any = TypeVar("_Any")


def remember(plans: dict[tuple, _Any], key: tuple, plan: _Any) -> _Any:
    """Keep a plan, and return it."""
    if len(plans) >= MAX_PLANS:
        plans.clear()
    plans[key] = plan
    return plan


class Planned(Op):
    """An operation whose calls are planned by dtypes and shapes: Note [Plans].

    A plan has what the eager hot path reads: ``entry``, ``allocate`` and ``dtype`` of the result,
    ``flat`` (operands are passed as they are), ``dims``, ``floating``, ``grad_mask`` (a bit for
    each operand that may get a gradient) and ``save_masks`` (for each mask of operands that require
    grad, a bit for each operand that is saved and one for the result).
    """

    plans: dict[tuple, Any]
    whole = False
    """Whether kernels take arrays as they are, none raveled, and backwards need at most two."""
    bind = staticmethod(bind)
    """What a call does that no plan is ready for."""
    check: Callable[[Sequence[Any]], None] | None = None
    """What raises for integers that it cannot compute with."""

    def forget(self) -> None:
        self.plans.clear()
        super().forget()


class Plan(Call):
    """How an operation of one result is computed for operands of given dtypes and shapes."""

    __slots__ = ()
    dtype: np.dtype
    functions: dict[int, Callable[..., Any]]
    """Compiled backwards by mask, and by its complement those that add to buffers."""
    shape: tuple[int, ...]
    steps: dict[int, Any]
    """By mask what machine code has to know of them, in some families: Note [Launches]."""

    @property
    def results(self) -> tuple[Meta, ...]:
        return (Meta(self.shape, self.dtype),)

    def backward(self, mask: int, g: np.ndarray, saved: Sequence[Any]) -> tuple[Any, int]:
        function = self.functions.get(mask)
        if function is None:
            function = self.functions[mask] = self._compile_backward(mask)
        return function(g, *saved)

    def backward_into(
        self, mask: int, g: np.ndarray, saved: Sequence[Any], buffers: Sequence[Any]
    ) -> tuple[Any, int]:
        function = self.functions.get(~mask)
        if function is None:
            function = self.functions[~mask] = self._compile_backward(mask, accumulate=True)
        return function(g, *saved, buffers)

    def _compile_backward(self, mask: int, *, accumulate: bool = False) -> Callable[..., Any]:
        """What gives gradients from ``g`` and what is saved, or adds them to a list of buffers."""
        raise NotImplementedError
