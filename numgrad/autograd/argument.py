"""Tensors in place of what was given to a compiled function, whose ``__class__`` tells what it was.

Note [Kinds of arguments]
-------------------------
In a trace a Tensor stands for an array or a number that was given, and code that asks
``isinstance(x, np.ndarray)`` or ``isinstance(k, float)`` would take another branch than it does by
itself. Python believes an object's ``__class__`` there. So while such code is traced, arguments
are Tensors whose ``__class__`` names what was given. Libraries for arrays, NumPy and this one, see
a Tensor. Of what is computed nobody knows what it would be; it is a Tensor, as in transforms. So is
everything to ``type``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.libraries import is_of_arrays

_BETWEEN = ("abc", "functools")
"""Modules of Python's own that ask on behalf of others."""

_kinds: dict[int, type] = {}
"""Classes of what was given in place of each, by identity."""

_become: Any = object.__dict__["__class__"].__set__


class _Class:
    """The ``__class__`` of arguments."""

    def __get__(self, tensor: Any, owner: type | None = None) -> Any:
        kind = _kinds.get(id(tensor))
        return kind if kind is not None and _is_asked_by_user() else type(tensor)

    def __set__(self, tensor: Any, kind: type) -> None:
        _become(tensor, kind)


class GivenTensor(Tensor):
    """A Tensor in place of an array or a number that was given."""

    __slots__ = ()
    __class__ = _Class()  # pyright: ignore


def _is_asked_by_user() -> bool:
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") in _BETWEEN and frame.f_back is not None:
        frame = frame.f_back
    return not is_of_arrays(frame)


@contextmanager
def told(kinds: Iterable[tuple[Tensor, type]]) -> Iterator[None]:
    """Make Tensors say, inside the block, that they are of these kinds."""
    shown: list[Tensor] = []
    try:
        for tensor, kind in kinds:
            _kinds[id(tensor)] = kind
            _become(tensor, GivenTensor)
            shown.append(tensor)
        yield
    finally:
        for tensor in shown:
            _become(tensor, Tensor)
            del _kinds[id(tensor)]
