"""How a function that a transform made is made again, as in another process.

Such a function is found in no module, so pickle cannot take it. It keeps what it was made of, and
``ng.jit`` pickles that in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_NAME = "__numgrad_recipe__"


class FunctionRecipe(NamedTuple):
    """The transform that made a function, and what it was given.

    ``code`` is that of the function: ``functools.wraps`` gives its attributes to others.
    """

    code: CodeType
    maker: Callable[..., Any]
    arguments: tuple[Any, ...]


def noted(made: F, maker: Callable[..., Any], *arguments: Any) -> F:
    """A function that was made just now, with a note of how."""
    setattr(made, _NAME, FunctionRecipe(made.__code__, maker, arguments))
    return made


def recipe_of(function: Any) -> FunctionRecipe | None:
    """How a function was made, if a transform made it."""
    if not isinstance(function, FunctionType):
        return None
    found = vars(function).get(_NAME)
    return found if found is not None and found.code is function.__code__ else None


class PackedFunction:
    """A function that a transform made, in a form that may be copied and pickled."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedFunction:
        return self  # as functions are

    def __reduce__(self) -> Any:
        recipe = recipe_of(self.function)
        assert recipe is not None
        return recipe.maker, tuple(map(packed, recipe.arguments))


def packed(value: Any) -> Any:
    """Something, packed if it is such a function."""
    return value if recipe_of(value) is None else PackedFunction(value)
