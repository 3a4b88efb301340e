"""Models ``model(x, parameters)`` of data: how they are called, and their residuals."""

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from numgrad.core.arguments import signature_of
from numgrad.core.tree import paths
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.optimize.derivatives import cached
from numgrad.optimize.unknowns import Unknowns
from numgrad.tensors.labels import unlabelled
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import jacobian

NUMBERS, KEYWORDS, WHOLE = "numbers", "keywords", "whole"


class Model:
    """A model with the way in which it takes parameters.

    Note [How a model is called]
    ----------------------------
    Parameters in one array are handed over one by one, ``model(x, a, b)``, as in SciPy: those with
    defaults too, except for the last ones if the start has fewer numbers. Those in a dict come by
    keyword, if the model has such; other containers as they are, ``model(x, parameters)``.
    """

    def __init__(self, name: str, function: Callable[..., Any], p0: Any) -> None:
        if not callable(function):
            raise NumgradTypeError(
                f"{name}: takes a function model(x, ...), got a {type(function).__name__}"
            )
        self.function = function
        self.listed = _listed(function)
        if p0 is None:
            if not self.listed:
                raise NumgradValueError(
                    f"{name}: how many parameters the model has is not to be seen; give p0"
                )
            p0 = np.ones(len(self.listed))
        self.unknowns = Unknowns(name, p0, "p0")
        self.form = WHOLE
        if self.unknowns.nesting is None:
            if len(self.unknowns.packing.shapes[0]) > 1:
                raise NumgradValueError(
                    f"{name}: p0 has shape {self.unknowns.packing.shapes[0]}; give a vector, or a "
                    "nesting of arrays such as a dict"
                )
            self.form = NUMBERS
            count = self.unknowns.x0.size
            if (
                self.listed
                and len(self.listed) != count
                and not _takes(function, (0,) * (1 + count))
            ):
                raise NumgradValueError(
                    f"{name}: p0 has {count} numbers, and the model takes "
                    f"{', '.join(self.listed)} after x; give a start for each"
                )
        elif self.unknowns.nesting[0] is dict and _takes(function, (None,), p0):
            self.form = KEYWORDS

    def names(self) -> list[str]:
        """Names of all numbers among the parameters."""
        unknowns = self.unknowns
        if self.form == NUMBERS:
            if self.listed and len(self.listed) >= unknowns.x0.size:
                return self.listed[: unknowns.x0.size]
            return [f"p[{k}]" for k in range(unknowns.x0.size)]
        shown = [path.lstrip(".") for path in paths(unknowns.nesting, "")]
        if self.form == KEYWORDS:
            shown = [path.replace("['", "", 1).replace("']", "", 1) for path in shown]
        return [unknowns.packing.name(k, shown) for k in range(unknowns.x0.size)]

    def residuals(self) -> Callable[..., Any]:
        """``(parameters, x, y, weights)`` to what the data differ by."""
        function, form = self.function, self.form

        def residuals(p: Any, x: Any, y: Any, weights: Any) -> Any:
            predicted = called(function, form, x, p)
            shape = np.shape(predicted)
            if shape != y.shape and shape != ():
                raise _shapes("curve_fit", shape, y.shape)
            left = predicted - y
            if weights is None:
                return left
            return weights @ left.reshape(-1) if weights.ndim == 2 else left * weights

        return cached(function, ("residuals", form), residuals)

    def prediction(self) -> Callable[..., Any]:
        """``(parameters, x)`` to what the model says."""
        function, form = self.function, self.form
        return cached(function, ("prediction", form), lambda p, x: called(function, form, x, p))


def called(function: Callable[..., Any], form: str, x: Any, p: Any) -> Any:
    """Call a model: Note [How a model is called]."""
    if form == NUMBERS:
        result = function(x, *(p[k] for k in range(p.shape[0]))) if p.shape else function(x, p)
    else:
        result = function(x, **p) if form == KEYWORDS else function(x, p)
    return unlabelled(result)


def _listed(function: Callable[..., Any]) -> list[str] | None:
    """Names of parameters after ``x``, those with defaults too, if all are listed."""
    if type(function) is FunctionType and not hasattr(function, "__wrapped__"):
        code = function.__code__  # all that is needed, in a tenth of the time
        listed = list(code.co_varnames[1 : code.co_argcount])
        return None if code.co_flags & inspect.CO_VARARGS else listed or None
    try:
        parameters = list(signature_of(function).parameters.values())
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in parameters if p.kind in kinds]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return None
    return [p.name for p in positional[1:]] or None


def _takes(function: Callable[..., Any], args: tuple, keywords: Any = None) -> bool:
    """Whether a model can be called so."""
    try:
        signature_of(function).bind(*args, **(keywords or {}))
    except (TypeError, ValueError):
        return False
    return True


def _shapes(name: str, shape: tuple, expected: tuple) -> NumgradValueError:
    if np.prod(shape) == np.prod(expected):
        remedy = f"take .reshape({expected}) of what the model returns"
    elif len(shape) == 2 and len(expected) == 1:
        remedy = "x and y may be a column and a row: take .ravel() of both"
    else:
        remedy = "return one value for each of y"
    return NumgradValueError(
        f"{name}: the model returned shape {shape}, y has shape {expected}; {remedy}"
    )


def curve_jac(model: Callable[..., Any], *, jit: bool = False) -> Callable[..., Any]:
    """The exact Jacobian of a model, for ``scipy.optimize.curve_fit(model, x, y, jac=...)``.

    Parameters
    ----------
    model
        ``model(x, a, b, ...)``, written with NumPy.
    jit
        Compile it.

    Returns
    -------
    callable
        ``jac(x, a, b, ...)`` is an ndarray with a row for each value and a column for each
        parameter.

    Raises
    ------
    NumgradTypeError
        If the model cannot be called.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> from scipy import optimize
    >>> def decay(x, amplitude, rate):
    ...     return amplitude * np.exp(-rate * x)
    >>> x = np.linspace(0, 4, 30)
    >>> popt, _ = optimize.curve_fit(
    ...     decay, x, 2 * np.exp(-0.7 * x), p0=[1, 1], jac=ng.curve_jac(decay)
    ... )
    >>> print(popt.round(6))
    [2.  0.7]
    """
    if not callable(model):
        raise NumgradTypeError(
            f"curve_jac: takes a function model(x, ...), got a {type(model).__name__}"
        )
    derived: Any = jacobian(lambda p, x: called(model, NUMBERS, x, p).reshape(-1))
    if jit:
        from numgrad.compiler.api import jit as compiled

        derived = compiled(derived)

    def jac(x: Any, *parameters: Any) -> np.ndarray:
        matrix = derived(np.array(parameters, np.float64), x)
        return matrix.numpy() if isinstance(matrix, Tensor) else matrix

    return jac
