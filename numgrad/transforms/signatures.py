"""Types of the functions that transforms return: read by type checkers alone, never imported.

A derivative is of the kind of what is differentiated, whatever the function's own annotations
say: ``grad(f)`` of an ndarray is an ndarray also where ``f`` takes and returns a Tensor. Hence
these types look at the argument of the call.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np

from numgrad.autograd.variable import Tensor

R_co = TypeVar("R_co", covariant=True)
X = TypeVar("X")

Array: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Any]]
Numeric: TypeAlias = Tensor | Array | np.generic | complex


class Transformed:
    """A function that a transform returned."""

    __wrapped__: Callable[..., Any]
    __name__: str


class GradientFunction(Transformed):
    """The gradient of a function by its first argument."""

    @overload
    def __call__(self, x: float, /, *args: Any, **kwargs: Any) -> np.float64: ...
    @overload
    def __call__(self, x: X, /, *args: Any, **kwargs: Any) -> X: ...
    @overload
    def __call__(self, **kwargs: Any) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""


class ValueAndGradientFunction(Transformed, Generic[R_co]):
    """The value of a function, which is a number, and its gradient by the first argument."""

    @overload
    def __call__(self, x: Tensor, /, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(
        self: "ValueAndGradientFunction[Tensor]", x: float, /, *args: Any, **kwargs: Any
    ) -> tuple[np.floating[Any], np.float64]: ...
    @overload
    def __call__(
        self: "ValueAndGradientFunction[Tensor]", x: X, /, *args: Any, **kwargs: Any
    ) -> tuple[np.floating[Any], X]: ...
    @overload
    def __call__(self, x: float, /, *args: Any, **kwargs: Any) -> tuple[R_co, np.float64]: ...
    @overload
    def __call__(self, x: X, /, *args: Any, **kwargs: Any) -> tuple[R_co, X]: ...
    @overload
    def __call__(self, **kwargs: Any) -> tuple[R_co, Any]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""


class DerivativeFunction(Transformed):
    """A Jacobian or Hessian of a function by its first argument."""

    @overload
    def __call__(self, x: Tensor, /, *args: Any, **kwargs: Any) -> Tensor: ...
    @overload
    def __call__(self, x: Array, /, *args: Any, **kwargs: Any) -> Array: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""


class MappedFunction(Transformed, Generic[R_co]):
    """A function of one example, for batches of them."""

    @overload
    def __call__(
        self: "MappedFunction[Numeric]", x: Tensor, /, *args: Any, **kwargs: Any
    ) -> Tensor: ...
    @overload
    def __call__(
        self: "MappedFunction[Numeric]", x: Array, /, *args: Any, **kwargs: Any
    ) -> Array: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
