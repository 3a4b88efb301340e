"""What solvers return: SciPy's result, with a solution that is nested as the start."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

import numpy as np
from scipy import optimize

from numgrad.errors import NumgradTypeError
from numgrad.markup import table

X = TypeVar("X")
F = TypeVar("F", bound=Callable[..., Any])


def refuses(**remedies: str) -> Callable[[F], F]:
    """Name the remedy where a solver is called with parameters of SciPy's that it has not."""

    def declare(solver: F) -> F:
        @wraps(solver)
        def call(*args: Any, **kwargs: Any) -> Any:
            for key in kwargs.keys() & remedies.keys():
                raise NumgradTypeError(
                    f"{solver.__name__}: there is no parameter {key!r}: {remedies[key]}"
                )
            return solver(*args, **kwargs)

        return cast(F, call)

    return declare


if TYPE_CHECKING:
    Base = dict[str, Any]  # SciPy has no types, and what has none is compatible with all others

    class _Solution:
        """The type of ``x``: that of the start, but arrays for lists, as SciPy has them."""

        @overload
        def __get__(self, result: "OptimizeResult[float]", owner: Any = None) -> np.float64: ...
        @overload
        def __get__(
            self,
            result: "OptimizeResult[list[float]] | OptimizeResult[tuple[float, ...]]",
            owner: Any = None,
        ) -> np.ndarray[tuple[Any, ...], np.dtype[np.float64]]: ...
        @overload
        def __get__(self, result: "OptimizeResult[X]", owner: Any = None) -> X: ...
        def __get__(self, result: Any, owner: Any = None) -> Any: ...
        def __set__(self, result: Any, value: Any) -> None: ...
else:
    Base = optimize.OptimizeResult


class OptimizeResult(Base, Generic[X]):
    """Result of a solver: ``scipy.optimize.OptimizeResult`` as SciPy made it, but for ``x``.

    Which of the attributes there are depends on the method.

    Attributes
    ----------
    x
        The solution, nested, shaped and of the dtypes of the start.
    success, status, message
        Whether and why the solver ended there.
    fun
        Value at the solution; residuals of ``least_squares``.
    covariance, standard_errors
        Of ``least_squares``: of the vector of all unknowns, and nested as ``x``.
    estimates
        Of ``least_squares``: intervals, contours, figures of merit and a report.
    """

    if TYPE_CHECKING:
        x: _Solution = _Solution()

        def __getattr__(self, name: str) -> Any: ...

    success: bool
    status: int
    message: str
    fun: Any
    jac: Any
    nfev: int
    njev: int
    nhev: int
    nit: int
    cost: float
    grad: np.ndarray
    optimality: float
    covariance: np.ndarray
    standard_errors: Any
    estimates: Any

    def _repr_html_(self) -> str:
        first = ("success", "message", "fun", "cost", "x")
        names = [*(name for name in first if name in self), *(n for n in self if n not in first)]
        report = self.estimates._repr_html_() if "estimates" in self else ""
        rows = [[name, _short(self[name])] for name in names if name != "estimates"]
        return table(rows) + report


def _short(value: Any) -> str:
    """A value of a result on few lines."""
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=20, precision=6)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
