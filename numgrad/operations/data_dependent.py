"""What has a shape that only numbers decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from numgrad.errors import NumgradTraceError


def no_shape(operation: str, remedy: str) -> Callable[..., Any]:
    """A shape rule that raises: ``ng.jit`` cannot know how many elements there will be."""

    def rule(*metas: Any, **params: Any) -> NoReturn:
        raise NumgradTraceError(
            f"{operation}: the shape of the result depends on the numbers of an operand, but "
            f"ng.jit traces the function, where arrays have none yet; {remedy}"
        )

    return rule


OUTSIDE = "call it outside of the compiled function and pass the result as an argument"
"""What can always be done."""


def numbers_of(operation: str, x: Any) -> np.ndarray:
    """The numbers of what decides on shapes or places, which a trace does not know."""
    array = getattr(x, "_array", x)
    if hasattr(array, "refuse"):
        array.refuse(
            f"{operation} by computed numbers",
            "compute them outside of the function, or pass them as a static argument "
            "(static_argnums)",
        )
    found = np.asarray(array)
    if not found.size and isinstance(x, list | tuple):
        return found.astype(np.intp)  # as NumPy takes what lists no place
    return found
