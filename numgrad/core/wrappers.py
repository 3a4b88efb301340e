"""Functions that transforms make of functions, which pickle can make again.

A function made inside of another is found in no module, so pickle cannot take it. Such a function
is therefore called through an object that knows how it was made.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

from numgrad.errors import NumgradTypeError


def found_by_name(value: Any, function: Any) -> str | None:
    """The name by which pickle finds what a decorator put in place of a function, if it does."""
    name = getattr(function, "__qualname__", "")
    holder: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for segment in name.split("."):
        holder = getattr(holder, segment, None)
    return name if holder is value else None


class FunctionWrapper:
    """A function made by a transform of a function; called as one, and as a method in classes.

    Attributes
    ----------
    __wrapped__
        The Python function that is called.
    """

    __slots__ = ("__call", "__dict__", "__made", "__weakref__")

    def __init__(
        self, function: Callable[..., Any], maker: Callable[..., Any] | str, arguments: tuple = ()
    ) -> None:
        functools.update_wrapper(self, function)
        self.__call, self.__made = function, (maker, arguments)

    @property
    def made_of(self) -> tuple:
        """The arguments of the transform, the function first."""
        return self.__made[1]

    @property
    def can_be_made_of_others(self) -> bool:
        """Whether the transform can be applied to other arguments."""
        return not isinstance(self.__made[0], str)

    def made_of_others(self, arguments: tuple) -> Any:
        """The function that the transform makes with other arguments."""
        return self.__made[0](*arguments)  # pyright: ignore

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The result of the function."""
        return self.__call(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The wrapper itself for a class, a method for an object."""
        return self if instance is None else MethodType(self, instance)

    def __set_name__(self, owner: type, name: str) -> None:
        # pickle asks for a method by its name
        self.__name__, self.__module__ = name, owner.__module__
        self.__qualname__ = f"{owner.__qualname__}.{name}"

    def __copy__(self) -> FunctionWrapper:
        return self  # as functions are

    def __deepcopy__(self, memo: dict[int, Any]) -> FunctionWrapper:
        return self

    def __reduce__(self) -> Any:
        maker, arguments = self.__made
        if isinstance(maker, str):
            raise NumgradTypeError(
                f"{maker}: what it returned has the values that were recorded, which cannot be "
                f"pickled or sent to other processes; send the function and its arguments, and "
                f"call {maker} there"
            )
        return found_by_name(self, self) or (maker, arguments)

    def __repr__(self) -> str:
        maker, arguments = self.__made
        if isinstance(maker, str) or not arguments:
            return f"<{getattr(maker, '__name__', maker)}>"
        return f"<{maker.__name__} of {arguments[0]!r}>"


def wrapper(made: Callable[..., Any], maker: Callable[..., Any], *arguments: Any) -> Any:
    """A function that ``maker(*arguments)`` made just now, in a form that pickle makes again."""
    return FunctionWrapper(made, maker, arguments)


def recorded_wrapper(made: Callable[..., Any], maker: str) -> Any:
    """A function over recorded values, which cannot be made again."""
    return FunctionWrapper(made, maker)
