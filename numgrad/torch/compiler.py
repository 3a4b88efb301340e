"""Marks by which functions steer their compilation: ``torch.compiler``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from numgrad.core.interpreter import state
from numgrad.errors import NumgradTraceError, NumgradTypeError
from numgrad.torch.compilation import BACKENDS, compile as compile
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.module import Module
from numgrad.torch.settings import install


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


is_dynamo_compiling = is_compiling
install(
    "compiler: reset()=None cudagraph_mark_step_begin()=None is_exporting()=False "
    f"list_backends()={BACKENDS!r}".replace(", ", ",")
)


def allow_in_graph(fn: Any) -> Any:
    """Return the function: what can be traced is in the program anyway."""
    return fn


__getattr__ = _refuse(globals())
