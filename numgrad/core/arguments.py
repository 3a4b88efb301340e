"""The arguments of a call, completed from how a caller wrote them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from numgrad.core.numpy_signatures import signature_of
from numgrad.errors import NumgradTypeError

REQUIRED: Any = object()
"""Default of a parameter that has none."""


_OF_UFUNCS = {"out", "where", "dtype", "casting", "order", "subok"}


_of_thread = threading.local()
"""``asked``: the operations whose NumPy functions are being called."""


class UnknownParameter(NumgradTypeError):
    """A call of an operation with a parameter that it has not.

    The NumPy function that it stands for may have it, ``where=`` of a sum for instance: called with
    a Tensor that says how the parameter is computed with operations.
    """

    def __init__(self, op: Any, message: str) -> None:
        super().__init__(message)
        self.op = op

    def as_numpy(self, op: Any, args: tuple, params: dict[str, Any]) -> Any:
        """The result of NumPy's function if it has the parameter; else raise."""
        function = op.ref
        asked = _of_thread.__dict__.setdefault("asked", [])
        if self.op is not op or not callable(function) or op in asked:
            raise self
        theirs = {} if isinstance(function, np.ufunc) else signature_of(function).parameters
        known = set(theirs)
        if not theirs or any(p.kind is p.VAR_KEYWORD for p in theirs.values()):
            known |= _OF_UFUNCS
        unknown = params.keys() - {*op.params, *op.inputs, *op.spellings.values()}
        of_tensors = any(hasattr(a, "grad_fn") for a in args)
        if not (of_tensors and unknown and unknown <= known):
            raise self
        if theirs and next(iter(theirs)) in ("arrays", "tup"):
            args = (list(args),)
        elif not hasattr(args[0], "grad_fn"):  # NumPy asks the first operand
            raise self
        asked.append(op)
        try:
            return function(*args, **params)
        except TypeError as error:
            if isinstance(error, NumgradTypeError):
                raise
            raise self from error
        finally:
            asked.pop()


def complete(op: Any, args: tuple, params: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Inputs in positional order and all parameters, from how a caller wrote them.

    Parameters may be given by position after the inputs, as in ``np.sum(x, 0)``.
    """
    if params and not op.stand_ins.keys().isdisjoint(params):
        params = translated(op, params)
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
            raise UnknownParameter(
                op,
                f"{op.name}: no parameter is called {unknown!r}; it has "
                f"{', '.join(op.params) or 'none'}",
            )
    return renamed


def translated(op: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with what stands for those that only another library's function has."""
    found = {name: value for name, value in params.items() if name not in op.stand_ins}
    for name in params.keys() & op.stand_ins.keys():
        for ours, value in op.stand_ins[name](params[name]).items():
            if ours in found:
                raise NumgradTypeError(f"{op.name}: {ours!r} and {name!r} mean the same; give one")
            found[ours] = value
    return found
