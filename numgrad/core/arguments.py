"""The arguments of a call, completed from how a caller wrote them."""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradTypeError

REQUIRED: Any = object()
"""Default of a parameter that has none."""


def complete(op: Any, args: tuple, params: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Inputs in positional order and all parameters, from how a caller wrote them.

    Parameters may be given by position after the inputs, as in ``np.sum(x, 0)``.
    """
    if op.inputs == ("inputs",):
        if len(args) == 1 and isinstance(args[0], list | tuple):
            args = tuple(args[0])
    else:
        count = len(op.inputs)
        if len(args) > count:
            extra = args[count:]
            names = op.positional
            if len(extra) > len(names):
                raise NumgradTypeError(
                    f"{op.name}: takes {count} inputs and parameters {', '.join(names) or 'none'} "
                    f"by position; got {len(args)} positional arguments"
                    + (f"; give {', '.join(op.params)} by name" if op.params else "")
                )
            params = {**dict(zip(names, extra, strict=False)), **params}
            args = args[:count]
        elif len(args) < count:
            missing = op.inputs[len(args) :]
            given = []
            for position, name in enumerate(missing, start=len(args)):
                if name not in params:
                    name = op.spellings.get(name, name)
                if name in params:
                    params = dict(params)
                    given.append(params.pop(name))
                elif position >= count - len(op.defaults):
                    given.append(op.defaults[position - count])
                else:
                    raise NumgradTypeError(f"{op.name}: input {name!r} is missing")
            args = (*args, *given)
    if params:
        if not params.keys() <= op.params.keys():
            params = _as_ours(op, params)
        params = {**op.params, **params}
    else:
        params = dict(op.params)
    for name, value in params.items():
        if value is REQUIRED:
            raise NumgradTypeError(f"{op.name}: parameter {name!r} is missing")
    return args, params


def _as_ours(op: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters by the names they have here, of which some are given by NumPy's."""
    ours = {theirs: name for name, theirs in op.spellings.items()}
    renamed = {ours.get(name, name): value for name, value in params.items()}
    for name in renamed:
        if name not in op.params or len(renamed) < len(params):
            unknown = next(n for n in params if n not in op.params)
            raise NumgradTypeError(
                f"{op.name}: no parameter is called {unknown!r}; it has "
                f"{', '.join(op.params) or 'none'}"
            )
    return renamed
