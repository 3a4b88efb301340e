"""The random state a function draws from: taken before a call, put back to repeat it.

NumPy has one global generator and any number of others, which no list names. A function usually
reaches these as arguments of a call or as its own variables, so these are searched.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any, Self

import numpy as np

from numgrad.core.bytecode import facts
from numgrad.core.interpreter import state
from numgrad.core.op import Op
from numgrad.core.referents import RECEIVER, referents
from numgrad.libraries import is_users_module

_CONTAINERS = (list, tuple, set, dict, deque)


class RandomState:
    """State of NumPy's global generator and of every generator found in ``values``.

    Objects of the user's own classes are searched, too.

    Examples
    --------
    >>> import numpy as np
    >>> from numgrad.tensors.random_state import RandomState
    >>> rng = np.random.default_rng(0)
    >>> before = RandomState(rng)
    >>> first = rng.random()
    >>> with before.restored():
    ...     rng.random() == first
    True
    """

    def __init__(self, *values: Any) -> None:
        self._sources: dict[int, Any] = {id(np.random): np.random}
        self._sources.update((id(generator), generator) for generator in _sources(values, set()))
        self._states = {key: _state(source) for key, source in self._sources.items()}

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Inside, every generator is in the state it was in when this was made."""
        before = {key: _state(source) for key, source in self._sources.items()}
        self._set(self._states)
        try:
            yield
        finally:
            self._set(before)

    def restore(self) -> None:
        """Let every generator go on from the state it was in when this was made."""
        self._set(self._states)

    def _set(self, states: dict[int, Any]) -> None:
        for key, source in self._sources.items():
            if isinstance(source, np.random.BitGenerator):
                source.state = states[key]
            else:
                source.set_state(states[key])


class RepeatedDraws:
    """A context in which a function is called several times and draws the same numbers each time.

    What is reached from ``values`` goes on as after one call, also in what is compiled.

    Examples
    --------
    >>> import numpy as np
    >>> from numgrad.tensors.random_state import RepeatedDraws
    >>> rng = np.random.default_rng(0)
    >>> again = RepeatedDraws(rng)
    >>> with again:
    ...     first = rng.random()
    >>> with again:
    ...     rng.random() == first
    True
    """

    def __init__(self, *values: Any) -> None:
        self._traced = state.ground.remember_draws()
        self._before = RandomState(*values) if self._traced is None else None
        self._first = True

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        if self._traced is not None:
            self._stack.enter_context(self._traced)
        elif self._before is not None and not self._first:
            self._stack.enter_context(self._before.restored())
        self._first = False
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)


def _state(source: Any) -> Any:
    return source.state if isinstance(source, np.random.BitGenerator) else source.get_state()


def _sources(value: Any, seen: set[int]) -> Iterator[Any]:
    """Objects that hold the state of the generators reached from ``value``."""
    for child in reached(value, seen):
        if _is_of_user(child) and id(child) not in seen:
            seen.add(id(child))
            yield from _sources(list(vars(child).values()), seen)
        own = sys.modules.get("numgrad.random.generator")  # else nobody has one
        source = child.generator if own and isinstance(child, own.Generator) else child
        if isinstance(source, np.random.Generator):
            yield source.bit_generator
        elif isinstance(source, np.random.BitGenerator | np.random.RandomState):
            yield source


def _is_of_user(value: Any) -> bool:
    """Whether a value is an object with attributes whose class is defined in the user's code."""
    return hasattr(value, "__dict__") and is_users_module(type(value).__module__)


def reached(value: Any, seen: set[int]) -> Iterator[Any]:
    """Walk the parts of a function or container, however deep; each of these once."""
    if not (isinstance(value, _CONTAINERS) or callable(value)):
        yield value
    elif id(value) not in seen:
        seen.add(id(value))
        for child in _parts(value):
            yield from reached(child, seen)


def _parts(value: Any) -> Iterator[Any]:
    """Elements of a container, or what a callable object has at hand when it is called."""
    held = referents(value)
    if held is not None:
        for child, kind, *_ in held:
            if kind == RECEIVER:
                yield from getattr(child, "__dict__", {}).values()
            else:
                yield child
        if isinstance(value, FunctionType):
            yield from _named_generators(value)
    elif not isinstance(value, type | Op):
        yield from getattr(value, "__dict__", {}).values()


def _named_generators(function: FunctionType) -> Iterator[Any]:
    """The generators among the globals that are named."""
    for name in facts(function.__code__).names:
        value = function.__globals__.get(name)
        if not (isinstance(value, _CONTAINERS) or callable(value)):
            yield value
