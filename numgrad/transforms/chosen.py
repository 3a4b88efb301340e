"""Which arguments of a function are differentiated."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, TypeAlias

from numgrad.errors import NumgradTypeError, NumgradValueError

Argnums: TypeAlias = int | Sequence[int] | None
Argnames: TypeAlias = str | Sequence[str] | None


@dataclass(frozen=True)
class Chosen:
    """Arguments by position, by name, or both; ``choose`` makes it when a function is transformed.

    Attributes
    ----------
    name
        Of the transform, for messages.
    positions
        Where the function takes the arguments of ``argnames``, if that is known.
    """

    name: str
    function: Callable[..., Any]
    argnums: int | tuple[int, ...] | None
    argnames: str | tuple[str, ...] | None = None
    holomorphic: bool = False
    positions: Mapping[str, int] = field(default_factory=dict)

    def keys(self, args: tuple, kwargs: dict[str, Any]) -> list[int | str]:
        """The places of the arguments in a call: positions and keywords."""
        keys: list[int | str] = []
        for number in _several(self.argnums):
            if not -len(args) <= number < len(args):
                raise NumgradValueError(
                    f"{self.name}: argnums names argument {number}, the call has {len(args)}"
                )
            keys.append(number % len(args))
        for argname in _several(self.argnames):
            place = self.positions.get(argname, len(args))
            if place >= len(args) and argname not in kwargs:
                raise NumgradValueError(
                    f"{self.name}: argnames names {argname!r}, which the call does not give; pass "
                    "it, a default is not differentiated"
                )
            keys.append(argname if argname in kwargs else place)
        if len(set(keys)) < len(keys):
            raise NumgradValueError(
                f"{self.name}: argnums {self.argnums} and argnames {self.argnames} name an "
                "argument twice"
            )
        return keys

    def arranged(self, parts: Sequence[Any]) -> Any:
        """What belongs to each argument, as the caller gets it.

        By position one or a tuple, by name one or a dict; a pair for both.
        """
        count = len(_several(self.argnums))
        by_number = parts[0] if isinstance(self.argnums, int) else tuple(parts[:count])
        if self.argnames is None:
            return by_number
        named = parts[count:]
        single = isinstance(self.argnames, str)
        by_name = named[0] if single else dict(zip(self.argnames, named, strict=True))
        return by_name if self.argnums is None else (by_number, by_name)


def choose(
    name: str,
    f: Callable[..., Any],
    argnums: Argnums = None,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Chosen:
    """Arguments that are checked; the first one if none is named."""
    check_function(name, f)
    numbers = 0 if argnums is None and argnames is None else _numbers(name, argnums)
    if argnames is None:
        return Chosen(name, f, numbers, None, holomorphic)
    names = argnames if isinstance(argnames, str) else _names(name, argnames)
    return Chosen(name, f, numbers, names, holomorphic, _positions(f))


def check_function(name: str, f: Any) -> None:
    """Raise if there is nothing to call."""
    if not callable(f):
        raise NumgradTypeError(
            f"{name}: differentiates a function, got a {type(f).__name__}; give the function and "
            f"call what is returned, as in ng.{name}(f)(x)"
        )


def _numbers(name: str, argnums: Argnums) -> int | tuple[int, ...] | None:
    given: tuple[Any, ...] = tuple(argnums) if isinstance(argnums, list | tuple) else (argnums,)
    if argnums is None:
        return None
    try:
        numbers = tuple([index(number) for number in given])
    except TypeError:
        raise NumgradTypeError(
            f"{name}: argnums is the position of an argument, or several in a tuple, as integers; "
            f"got {argnums!r}"
        ) from None
    return numbers if isinstance(argnums, list | tuple) else numbers[0]


def _names(name: str, argnames: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(argnames, list | tuple) or not all(isinstance(n, str) for n in argnames):
        raise NumgradTypeError(
            f"{name}: argnames is the name of an argument, or several in a tuple; got {argnames!r}"
        )
    return tuple(argnames)


def _positions(f: Callable[..., Any]) -> dict[str, int]:
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # of what is written in C
        return {}
    taken = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return {name: place for place, name in enumerate(taken)}


def _several(names: Any) -> tuple:
    """One or several in a tuple."""
    return () if names is None else names if isinstance(names, tuple) else (names,)
