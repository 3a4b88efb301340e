"""Formulas with the values that names around them have when they are first used.

Note [Names around formulas]
----------------------------
A formula is read once for each kind of operands, its gradient formulas later, when a backward first
needs them. A global that changes in between would give a result and a gradient of two different
functions. So all of them are read with what names (globals, enclosed variables, those of helper
functions) stood for at the operation's first use; who wants another value declares it anew, or
makes it an operand.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from numgrad.libraries import is_users, is_users_module

_COPIED = (list, dict, set, np.ndarray, SimpleNamespace)


def with_present_names(function: Any, known: dict[int, Any] | None = None) -> Any:
    """A function whose names keep what they stand for now; what is no Python function is itself."""
    known = {} if known is None else known
    if type(function) is not FunctionType:
        return function
    if id(function) in known:
        return known[id(function)]
    around, names = function.__globals__, set(_names(function.__code__))
    scope = {"__builtins__": around.get("__builtins__"), "__name__": around.get("__name__")}
    cells = tuple([CellType() for _ in function.__closure__ or ()])
    found = FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, cells or None
    )
    found.__kwdefaults__, found.__qualname__ = function.__kwdefaults__, function.__qualname__
    found.__module__, found.__doc__ = function.__module__, function.__doc__
    known[id(function)] = found
    scope |= {name: _present(around[name], known) for name in names if name in around}
    for cell, own in zip(function.__closure__ or (), cells, strict=True):
        try:
            own.cell_contents = _present(cell.cell_contents, known)
        except ValueError:  # it is empty
            continue
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _present(value: Any, known: dict[int, Any]) -> Any:
    """What a name stands for, without later changes."""
    if type(value) is FunctionType and is_users(value.__code__.co_filename):
        return with_present_names(value, known)
    if type(value) is ModuleType and is_users_module(value.__name__):
        return SimpleNamespace(**vars(value))
    data = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return copy.copy(value) if type(value) in _COPIED or data else value
