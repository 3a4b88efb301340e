"""Models ``model(x, parameters)`` of data: how they are called, and their residuals."""

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from numgrad.core.arguments import signature_of
from numgrad.core.foreign import labelled_kind
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.optimize.constraints import put_inside
from numgrad.optimize.derivatives import cached
from numgrad.optimize.parameter_space import free_unknowns
from numgrad.optimize.unknowns import Unknowns
from numgrad.tensors.labels import unlabelled
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import jacobian

NUMBERS, POSITIONAL, KEYWORDS, WHOLE = "numbers", "positional", "keywords", "whole"


class Model:
    """A model with the way in which it takes parameters.

    Note [How a model is called]
    ----------------------------
    Parameters in one array are handed over one by one, ``model(x, a, b)``, as in SciPy: those with
    defaults too, except for the last ones if the start has fewer numbers. Those in a dict come by
    keyword, if the model has such; other containers as they are, ``model(x, parameters)``. By
    keyword, what has neither start nor default starts at 1, and what the model does not take is
    there for ties. Where numbers of an array are fixed or tied, they are a dict of scalars to the
    solver, so that what is fixed costs no derivative.

    Attributes
    ----------
    unknowns
        What the solver varies; its ``whole`` are all parameters.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        p0: Any,
        fixed: Any = None,
        ties: Any = None,
        bounds: Any = None,
    ) -> None:
        if not callable(function):
            raise NumgradTypeError(
                f"{name}: takes a function model(x, ...), got a {type(function).__name__}"
            )
        self.function = function
        self.listed = _listed(function)
        self.accepted: frozenset[str] | None = None
        self.labelled = labelled_kind(type(p0)) == "pandas.Series"
        if self.labelled:
            p0 = {str(key): value for key, value in p0.items()}
        given = p0
        if p0 is None:
            if not self.listed:
                raise NumgradValueError(
                    f"{name}: how many parameters the model has is not to be seen; give p0"
                )
            p0 = np.ones(len(self.listed))
        self.form, self._defaults = WHOLE, []
        if type(p0) is dict:
            p0 = self._by_keyword(name, p0, fixed, ties)
        whole = Unknowns(name, p0, "p0")
        if whole.nesting is None:
            self._check_count(name, whole)
            self.form = NUMBERS
            labels = self._labels_of_numbers(whole.x0.size)
            if fixed or ties:
                self._array = whole
                self.form = POSITIONAL
                scalars = whole.x0 if whole.single else whole.packing.unpack(whole.x0)[0]
                whole = Unknowns(name, dict(zip(labels, scalars, strict=True)), "p0")
            else:
                whole.element_labels = labels
        if bounds is not None and (given is None or self._defaults):
            labels = self._defaults or list(whole.places)
            free = [label for label in labels if label not in (fixed or ())]
            put_inside(name, whole, bounds, [k for label in free for k in whole.places[label]])
        self.unknowns = free_unknowns(name, whole, fixed, ties)
        self._check_extra(name)

    def _by_keyword(self, name: str, p0: dict[Any, Any], fixed: Any, ties: Any) -> dict[Any, Any]:
        """The start of all parameters of a model that takes them by keyword."""
        given = [*p0, *(fixed or ()), *(ties or ())]
        if not all(isinstance(label, str) for label in p0):
            return p0
        try:
            parameters = list(signature_of(self.function).parameters.values())[1:]
        except (TypeError, ValueError):
            return p0
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        accepted = {p.name: p.default for p in parameters if p.kind in named}
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            if given and not any(label in accepted for label in given):
                return p0
            self.accepted = frozenset(accepted)
        self.form = KEYWORDS
        start = dict(p0)
        for label, default in accepted.items():
            if default is inspect.Parameter.empty and label not in start:
                start[label] = 1.0
                self._defaults.append(label)
        values = fixed if isinstance(fixed, Mapping) else {}
        for label in given:
            if isinstance(label, str) and label.isidentifier():
                start.setdefault(label, values.get(label, 1.0))
        return start

    def _check_count(self, name: str, whole: Unknowns) -> None:
        shape, count = whole.packing.shapes[0], whole.x0.size
        if whole.packing.is_complex:
            raise NumgradTypeError(
                f"{name}: p0 has complex numbers, and parameters that a model takes one by one are "
                "real; fit real and imaginary parts, or give p0 as a dict"
            )
        if len(shape) > 1:
            raise NumgradValueError(
                f"{name}: p0 has shape {shape}; give a vector, or a nesting of arrays such as a "
                "dict"
            )
        listed = self.listed
        if listed and len(listed) != count and not _takes(self.function, (0,) * (1 + count)):
            raise NumgradValueError(
                f"{name}: p0 has {count} numbers, and the model takes {', '.join(listed)} after x; "
                "give a start for each"
            )

    def _labels_of_numbers(self, count: int) -> list[str]:
        if self.listed and len(self.listed) >= count:
            return self.listed[:count]
        return [f"p[{k}]" for k in range(count)]

    def _check_extra(self, name: str) -> None:
        """Raise if there are parameters that neither the model nor a tie has."""
        if self.accepted is None:
            return
        used = self.accepted | self.unknowns.referenced
        extra = [str(label) for label in self.unknowns.whole.nesting[1] if label not in used]  # pyright: ignore
        if extra:
            raise NumgradValueError(
                f"{name}: the model takes {', '.join(sorted(self.accepted))}, and neither it nor a "
                f"tie has {', '.join(extra)}"
            )

    def names(self) -> list[str]:
        """Names of all numbers among the parameters, those that are fixed or tied too."""
        return self.unknowns.whole.element_labels

    def shown(self, numbers: np.ndarray) -> Any:
        """Numbers for all parameters as the caller gave the start."""
        nested = self.unknowns.whole.shown(numbers)
        return self._array.shown(numbers) if self.form == POSITIONAL else nested

    def residuals(self, chosen: bool = False) -> Callable[..., Any]:
        """``(parameters, x, y, weights)`` to what the data differ by.

        With ``chosen`` also ``places``, those among the residuals that count, or None.
        """
        function, form, accepted = self.function, self.form, self.accepted

        def residuals(p: Any, x: Any, y: Any, weights: Any) -> Any:
            predicted = called(function, form, x, p, accepted)
            shape = np.shape(predicted)
            if shape != y.shape and shape != ():
                raise _shapes("curve_fit", shape, y.shape)
            left = predicted - y
            if weights is None:
                return left
            return weights @ left.reshape(-1) if weights.ndim == 2 else left * weights

        if chosen:
            whole = cached(function, ("residuals", form, accepted), residuals)

            def some(p: Any, x: Any, y: Any, weights: Any, places: Any) -> Any:
                left = whole(p, x, y, weights)
                return left if places is None else left.reshape(-1)[places]

            return cached(function, ("chosen residuals", form, accepted), some)
        return cached(function, ("residuals", form, accepted), residuals)

    def prediction(self) -> Callable[..., Any]:
        """``(parameters, x)`` to what the model says."""
        function, form, accepted = self.function, self.form, self.accepted

        def prediction(p: Any, x: Any) -> Any:
            return called(function, form, x, p, accepted)

        return cached(function, ("prediction", form, accepted), prediction)


def called(
    function: Callable[..., Any], form: str, x: Any, p: Any, accepted: frozenset[str] | None = None
) -> Any:
    """Call a model: Note [How a model is called]."""
    if form == NUMBERS:
        result = function(x, *(p[k] for k in range(p.shape[0]))) if p.shape else function(x, p)
    elif form == POSITIONAL:
        result = function(x, *p.values())
    elif form == KEYWORDS:
        result = function(x, **{k: v for k, v in p.items() if accepted is None or k in accepted})
    else:
        result = function(x, p)
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
