"""The function and the arguments that a transform is given.

Note [Transforms of compiled functions]
---------------------------------------
A compiled function is called as it was written where arrays stand for batches or have tangents. So
``vmap``, ``jvp`` and ``jacfwd`` of one, which call it so, become compiled functions themselves.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

from numgrad.core.arguments import signature_of
from numgrad.core.interpreter import state
from numgrad.core.wrappers import FunctionWrapper
from numgrad.errors import NumgradTypeError, NumgradValueError

ArgnumsLike: TypeAlias = int | Sequence[int] | None
Argnames: TypeAlias = str | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Argnums:
    """Arguments by position, by name, or both; ``choose`` makes it when a function is transformed.

    Attributes
    ----------
    name
        Of the transform, for messages.
    numbers, names
        The positions, and the names; ``single`` and ``single_name`` if it is one, not in a tuple.
    positions
        The names of the arguments that the function takes by position, as far as they are known.
    """

    name: str
    function: Callable[..., Any]
    numbers: tuple[int, ...]
    single: bool
    names: tuple[str, ...] = ()
    single_name: bool = False
    holomorphic: bool = False
    positions: tuple[str, ...] = ()

    def keys(self, args: tuple, kwargs: dict[str, Any]) -> list[int | str]:
        """The places of the arguments in a call: positions and keywords."""
        count = len(args)
        keys: list[int | str] = []
        for number in self.numbers:
            if not -count <= number < count:
                raise NumgradValueError(
                    f"{self.name}: argnums names argument {number}, the call has {count}"
                )
            keys.append(number % count)
        for argname in self.names:
            known = argname in self.positions
            position = self.positions.index(argname) if known else count
            if position >= count and argname not in kwargs:
                raise NumgradValueError(
                    f"{self.name}: argnames names {argname!r}, which the call does not give; pass "
                    "it, a default is not differentiated"
                )
            keys.append(argname if argname in kwargs else position)
        if len(keys) > 1 and len(set(keys)) < len(keys):
            raise NumgradValueError(
                f"{self.name}: argnums {self.numbers} and argnames {self.names} name an argument "
                "twice"
            )
        return keys

    def arranged(self, parts: Sequence[Any]) -> Any:
        """Results, one for each argument, as the caller gets them.

        By position one or a tuple, by name one or a dict; a pair for both.
        """
        count = len(self.numbers)
        by_number = parts[0] if self.single else tuple(parts[:count])
        if not self.names:
            return by_number
        named = parts[count:]
        by_name = named[0] if self.single_name else dict(zip(self.names, named, strict=True))
        return (by_number, by_name) if self.numbers else by_name


def choose(
    name: str,
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Argnums:
    """Arguments that are checked; the first one if none is named."""
    check_function(name, f)
    if argnames is None:
        numbers, single = _numbers(name, 0 if argnums is None else argnums)
        return Argnums(name, f, numbers, single, holomorphic=holomorphic)
    numbers, single = ((), False) if argnums is None else _numbers(name, argnums)
    names = (argnames,) if isinstance(argnames, str) else _names(name, argnames)
    return Argnums(
        name, f, numbers, single, names, isinstance(argnames, str), holomorphic, _positions(f)
    )


def check_function(name: str, f: Any) -> None:
    """Raise if there is nothing to call."""
    if not callable(f):
        raise NumgradTypeError(
            f"{name}: takes a function, got a {type(f).__name__}; give the function and "
            f"call what is returned, as in ng.{name}(f)(x)"
        )


def _numbers(name: str, argnums: int | Sequence[int]) -> tuple[tuple[int, ...], bool]:
    positions: tuple[Any, ...] = tuple(argnums) if isinstance(argnums, list | tuple) else (argnums,)
    try:
        return tuple([index(number) for number in positions]), not isinstance(argnums, list | tuple)
    except TypeError:
        raise NumgradTypeError(
            f"{name}: argnums is the position of an argument, or several in a tuple, as integers; "
            f"got {argnums!r}"
        ) from None


def _names(name: str, argnames: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(argnames, list | tuple) or not all(isinstance(n, str) for n in argnames):
        raise NumgradTypeError(
            f"{name}: argnames is the name of an argument, or several in a tuple; got {argnames!r}"
        )
    return tuple(argnames)


def _positions(f: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = signature_of(f).parameters.values()
    except (TypeError, ValueError):  # of what is written in C
        return ()
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in parameters if p.kind in by_position)


def jitted_in(f: Any) -> Any:
    """The function made by ``ng.jit`` that ``f`` is, or is a partial or a transform of."""
    while True:
        if hasattr(type(f), "__numgrad_jit__"):
            return f
        if isinstance(f, functools.partial):
            f = f.func
        elif isinstance(f, FunctionWrapper) and f.made_of:
            f = f.made_of[0]
        else:
            return None


def compiled_whole(f: Any, transformed: Callable[..., Any]) -> Callable[..., Any]:
    """A transform of ``f``; compiled if ``f`` is, unless that has static or donated arguments."""
    jitted = jitted_in(f)
    if jitted is None or not jitted.is_plain:
        return transformed
    compiled: list[Any] = []

    @functools.wraps(transformed)
    def whole(*args: Any, **kwargs: Any) -> Any:
        if state.interpreters:
            return transformed(*args, **kwargs)
        if not compiled:
            compiled.append(jitted.like(transformed))
        return compiled[0](*args, **kwargs)

    return whole
