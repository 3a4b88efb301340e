"""Marks by which functions steer their compilation: ``torch.compiler``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from numgrad.core.interpreter import state
from numgrad.errors import NumgradTraceError, NumgradTypeError
from numgrad.torch.compilation import BACKENDS, compile
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.module import Module

__all__ = [
    "allow_in_graph", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "reset",
]  # fmt: skip


def disable(
    fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None
) -> Callable[..., Any]:
    """Leave a function out of compilation; without one it is a decorator.

    A compiled function that calls it runs as it is, with a warning: there are no programs of parts.

    Parameters
    ----------
    fn
        A function.
    recursive
        Accepted for PyTorch's sake: what the function calls is not compiled either way.
    reason
        Why, for the warning.

    Raises
    ------
    NumgradTypeError
        If it is a module.
    NumgradRuntimeError
        In calls of a function that was compiled with ``fullgraph=True`` and calls this one.
    """
    if fn is None:
        return lambda f: disable(f, recursive, reason=reason)
    if isinstance(fn, Module) or not callable(fn):
        raise NumgradTypeError(
            f"disable: takes a function, got {type(fn).__name__}; decorate the forward of a module"
        )
    name = getattr(fn, "__name__", type(fn).__name__)

    @wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        if state.ground.deferred:
            why = "" if reason is None else f" ({reason})"
            raise NumgradTraceError(f"{name} is left out of compilation by compiler.disable{why}")
        return fn(*args, **kwargs)

    vars(called)["_left_out"] = True  # ``compile`` gives it back
    return called


def is_compiling() -> bool:
    """Whether a function is being traced, whose numbers are known only when it runs."""
    return state.ground.deferred


def allow_in_graph(fn: Any) -> Any:
    """Return the function: what can be traced is in the program anyway."""
    return fn


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names that ``compile`` takes as ``backend``."""
    return list(BACKENDS)


def reset() -> None:
    """Return: compiled functions keep their programs, which are traced again where these change."""


def is_exporting() -> bool:
    """Whether ``torch.export`` runs, which does not exist here."""
    return False


is_dynamo_compiling, cudagraph_mark_step_begin = is_compiling, reset
__getattr__ = _refuse(globals())
