"""Forwards that are computed again in the backward: ``torch.utils.checkpoint``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.errors import warn
from numgrad.tensors import checkpoint as base
from numgrad.torch.wrapping import unwrap, user_function, wrap

noop_context_fn = base.noop_context_fn
set_checkpoint_early_stop = base.set_checkpoint_early_stop
set_checkpoint_debug_enabled = base.set_checkpoint_debug_enabled


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call a function without keeping what its backward needs: that is computed again.

    ``use_reentrant`` is accepted: gradients are the same either way. Leaving it out warns.
    """
    _check_told(use_reentrant)
    return wrap(base.checkpoint(user_function(function), *map(unwrap, args), **unwrap(kwargs)))


def _check_told(use_reentrant: bool | None) -> None:
    if use_reentrant is None:
        warn(
            "checkpoint: the use_reentrant parameter should be passed explicitly, since PyTorch "
            "asks for it; here gradients are the same either way",
            UserWarning,
        )


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call functions one after the other, in segments that are computed again."""
    _check_told(use_reentrant)
    steps = [user_function(f) for f in functions]
    return wrap(base.checkpoint_sequential(steps, segments, unwrap(input), **kwargs))
