"""Bases of distributions of one number: location and scale, support, checks of parameters.

Note [Outside of the support]
-----------------------------
Results there are SciPy's: a density of 0, a distribution function of 0 or 1. Formulas see an inner
point in place of what is outside, and ``where`` chooses before and after them, so that gradients
are 0 there and never NaN.

A density that a power makes 0 has derivatives where its logarithm is endless: ``by_powers`` gives
those, and at an end of a support they are those from inside.

A probability that underflows has a logarithm that does not: families with a formula for it in
``_far_below`` or ``_far_above`` give that, and its derivatives. Without one the logarithm of 0 is
``-inf``, and its gradient NaN where the derivative of the probability underflowed as well.

Where a parameter is not one, formulas see a valid one, and ``where_valid`` puts NaN in place of
the result and of all its gradients, by the argument and by parameters.
"""

import math
from collections.abc import Callable
from functools import reduce
from inspect import Parameter, Signature, cleandoc, signature
from operator import and_
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numgrad.core.interpreter import state
from numgrad.errors import NumgradAttributeError, NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_operand
from numgrad.random.generator import at_once, checked_parameter, drawn_shape, generator_from
from numgrad.stats import estimation
from numgrad.stats.frozen import Frozen

if TYPE_CHECKING:
    from numgrad.autograd.variable import Tensor

F = TypeVar("F", bound="Distribution")


_PARAMETERS = {
    "loc": "Location, by default 0.", "scale": "Scale, by default 1.",
    "mean": "Mean, by default 0.",
    "cov": "Covariance: a matrix, a diagonal or a number.", "df": "Degrees of freedom.",
    "shape": "Matrix of the scale.", "alpha": "Concentrations, all positive.",
    "p": "Probability, or those of classes along the last axis.", "n": "Number of draws.",
    "mu": "Mean.", "kappa": "Concentration.",
}  # fmt: skip
"""Roles of parameters, by name; others are shapes."""


class Family:
    """Distributions whose methods take the parameters each time, or that keep them if called."""

    name: str

    def __init__(self, name: str) -> None:
        self.name = name
        parameters = self._parameters()
        self.__signature__ = Signature(parameters)
        self.__doc__ = self._described([p.name for p in parameters])

    def _parameters(self) -> list[Parameter]:
        """The parameters, as a signature has them."""
        given = signature(getattr(self, "logpdf", None) or self.logpmf).parameters  # pyright: ignore
        plain = [p.replace(annotation=p.empty) for p in given.values()]
        return [p for p in plain if type(p.default) is not bool][1:]

    def _described(self, names: list[str]) -> str:
        """Documentation of the family: its parameters and functions."""
        lines = [cleandoc(type(self).__doc__ or ""), "", "Parameters", "----------"]
        for key in names:
            lines += [f"{key} : array_like", f"    {_PARAMETERS.get(key, 'Shape.')}"]
        given, public = ", ".join(names), [key for key in dir(type(self)) if key[0] != "_"]
        functions = [f"``{key}``" for key in public
                     if key != "freeze" and callable(getattr(type(self), key))]  # fmt: skip
        lines += [
            "",
            "Returns",
            "-------",
            "Frozen",
            "    The distribution with these parameters.",
            "",
            "Notes",
            "-----",
            f"Functions take the parameters each time, after their operand, as ``{self.name}.rvs"
            f"({given})``, or are those of ``{self.name}({given})``: {', '.join(functions)}.",
        ]
        return "\n".join(lines)  # fmt: skip

    def __call__(self, *args: Any, **named: Any) -> Frozen:
        """The distribution with its parameters, as ``ng.stats.norm(mu, sigma)``."""
        return Frozen(self, args, named)

    freeze = __call__


def _operands(*values: Any) -> list[Any]:
    """Arrays and Tensors as they are, Python's numbers in the floating dtype of these."""
    plain = [isinstance(v, int | float) for v in values]
    arrays = [None if p else as_operand(v) for v, p in zip(values, plain, strict=True)]
    dtypes = [a.dtype for a in arrays if a is not None]
    single = bool(dtypes) and all(dtype == np.float32 for dtype in dtypes)
    dtype = np.float32 if single else np.float64
    return [np.asarray(v, dtype) if a is None else a for v, a in zip(values, arrays, strict=True)]


def met(condition: Any) -> Any:
    """A condition; False if it is met nowhere, which eager calls look at to leave choices out."""
    if state.ground.deferred or state.interpreters:
        return condition
    known = condition if isinstance(condition, np.ndarray | np.generic) else condition.numpy()
    return condition if known.any() else False


def choose(mask: Any, value: Any, other: Any) -> Any:
    """``other``, but ``value``, or what it returns, where there is a mask."""
    if mask is False:
        return other
    instead: Any = value() if callable(value) else value
    return np.where(mask, instead, other)


def where_valid(ok: Any, values: Any, *arguments: Any) -> Any:
    """``values`` where parameters are valid, else NaN, as is the derivative by ``arguments``."""
    # the factors keep a derivative of NaN from what is valid; plain arrays and integers have none
    nothing: Any = math.nan
    for a in arguments:
        if not isinstance(a, np.ndarray) and a.dtype.kind == "f":
            number = a.dtype.type
            nothing = nothing + np.where(ok, number(0), number(math.nan)) * a
    return np.where(ok, values, nothing)


def by_powers(zero: Any, base: Any, log: Callable[..., Any], powers: Callable[..., Any]) -> Any:
    """``exp(log(base))``; where the base of a power is ``zero``, by powers of it.

    Each formula sees 0.5 where the other one counts.
    """
    return np.where(zero, powers(np.where(zero, base, 0.5)), np.exp(log(np.where(zero, 0.5, base))))


def above(limit: float, a: Any, formula: Callable[..., Any]) -> Any:
    """A moment that is infinite unless the parameter ``a`` is above a limit."""
    finite = a > limit
    return np.where(finite, formula(np.where(finite, a, limit + 1)), math.inf)


def log_of(scale: Any) -> Any:
    """Logarithm of a scale; of a Python number one that promotes nothing."""
    return math.log(scale) if isinstance(scale, int | float) else np.log(scale)


PLACED: dict[str, Callable[..., Any]] = {
    "mean": lambda m, loc, scale: m * scale + loc,
    "var": lambda v, loc, scale: v * (scale * scale),
    "entropy": lambda h, loc, scale: h + log_of(scale),
    "logpdf": lambda log, loc, scale: log - log_of(scale),
    "cdf": lambda p, loc, scale: p,
    "ppf": lambda x, loc, scale: x * scale + loc,
    "sample": lambda x, loc, scale: x * scale + loc,
}
"""Functions of location and scale of what formulas give for 0 and 1."""

_INSTEAD = {
    "fit": "minimize the negative sum of logpmf by ng.minimize, which has its gradient",
    "pdf": "a distribution of integers has pmf",
    "logpdf": "a distribution of integers has logpmf",
    "pmf": "a distribution with a density has pdf",
    "logpmf": "a distribution with a density has logpdf",
}
"""Remedies for functions of SciPy's distributions that are absent."""


class Distribution(Family):
    """A family of distributions; formulas of subclasses are for location 0 and scale 1.

    Attributes
    ----------
    shapes
        Names of parameters besides location and scale.
    inside
        A number inside of every support, which formulas see in place of those outside.
    reach
        How far from the location means are integrated, where that is less than the support.
    """

    shapes: tuple[str, ...] = ()
    common: tuple[tuple[str, float], ...] = ()
    inside = 0.5
    reach = math.inf
    _powers: Any = None
    """Formula of the density or probability by powers, for where one of these is 0."""

    def _parameters(self) -> list[Parameter]:
        kind, given = Parameter.POSITIONAL_OR_KEYWORD, dict(self.common)
        names = (*self.shapes, *given)
        return [Parameter(key, kind, default=given.get(key, Parameter.empty)) for key in names]

    def __repr__(self) -> str:
        return f"<distribution {self.name}({', '.join((*self.shapes, *dict(self.common)))})>"

    # What subclasses define, for location 0 and scale 1.

    def _valid(self, *shapes: Any, **_: Any) -> Any:
        """Where the parameters are ones of the family; all are positive by default."""
        return [a > 0 for a in shapes]

    def _support(self, *shapes: Any, **_: Any) -> tuple[Any, Any]:
        """The ends of the support."""
        return -math.inf, math.inf

    def _cdf(self, *arguments: Any, **_: Any) -> Any:
        raise self._lacking("cdf")

    def _sf(self, *arguments: Any, **_: Any) -> Any:
        return 1 - self._cdf(*arguments)

    def _logcdf(self, *arguments: Any, **_: Any) -> Any:
        return _log(self._cdf(*arguments), self._sf(*arguments), self._far_below, arguments)

    def _logsf(self, *arguments: Any, **_: Any) -> Any:
        return _log(self._sf(*arguments), self._cdf(*arguments), self._far_above, arguments)

    def _far_below(self, tiny: Any, *arguments: Any, **_: Any) -> Any:
        """Logarithm of the distribution function where it is ``tiny``, finite elsewhere.

        None if there is no formula.
        """
        return None

    def _far_above(self, tiny: Any, *arguments: Any, **_: Any) -> Any:
        """The same of the survival function."""
        return None

    def _mean(self, *shapes: Any, **_: Any) -> Any:
        raise self._lacking("mean")

    def _var(self, *shapes: Any, **_: Any) -> Any:
        raise self._lacking("var")

    def _entropy(self, *shapes: Any, **_: Any) -> Any:
        raise self._lacking("entropy")

    def _sample(self, *arguments: Any, **_: Any) -> Any:
        """Random numbers of location 0 and scale 1, by default quantiles of uniform ones."""
        rng, size, *shapes = arguments
        return self._ppf(rng.random(size), *shapes)

    def _ppf(self, *arguments: Any, **_: Any) -> Any:
        raise self._lacking("ppf")

    def _lacking(self, what: str) -> Exception:
        return NumgradTypeError(
            f"{self.name}.{what}: has no formula here; scipy.stats.{self.name}.{what} has values "
            "without gradients"
        )

    # What is the same for all.

    def _check_arguments(
        self, what: str, args: tuple, named: dict[str, Any], x: Any = 0.0
    ) -> tuple[Any, list[Any], list[Any]]:
        """``x``, shapes, location and scale; these as SciPy takes them, by position or by name."""
        names = (*self.shapes, *dict(self.common))
        if len(args) > len(names):
            raise NumgradTypeError(f"{self.name}.{what}: takes {', '.join(names)}, got {len(args)}")
        arguments = dict(self.common) | dict(zip(names, args, strict=False))
        for key, value in named.items():
            if key not in names or names.index(key) < len(args):
                raise NumgradTypeError(
                    f"{self.name}.{what}: {key!r} is given twice or is no parameter; these are "
                    f"{', '.join(names)}"
                )
            arguments[key] = value
        missing = [name for name in names if name not in arguments]
        if missing:
            raise NumgradTypeError(f"{self.name}.{what}: {', '.join(missing)} must be given")
        x, *values = _operands(x, *[arguments[name] for name in names])
        for name, value in zip(("its argument", *names), (x, *values), strict=True):
            if value.dtype.kind == "c":
                raise NumgradTypeError(f"{self.name}.{what}: {name} must be real")
        return x, values[: len(self.shapes)], values[len(self.shapes) :]

    def _safe(self, shapes: list[Any], scale: Any = None) -> tuple[Any, list[Any], Any]:
        """Whether parameters are valid, and ones that are where they are not."""
        checks = [*self._valid(*shapes), *([scale > 0] if scale is not None else [])]
        ok: Any = reduce(and_, checks) if checks else as_operand(True)
        stand_in, wrong = self._stand_in(), met(~ok)
        shapes = [choose(wrong, s, a) for a, s in zip(shapes, stand_in, strict=True)]
        return ok, shapes, None if scale is None else choose(wrong, 1.0, scale)

    def rvs(self, *args: Any, size: Any = None, random_state: Any = None, **named: Any) -> "Tensor":
        """Random numbers, with gradients in the parameters where the numbers are continuous.

        Parameters
        ----------
        *args, **named
            Shape parameters and location, of continuous ones scale as well.
        size : int or tuple of ints
            Shape of the result; by default that to which the parameters broadcast.
        random_state
            A generator of ``ng.random`` or NumPy, a seed, or None for NumPy's global one.

        Returns
        -------
        Tensor
            Of float64; of int64 where the distribution is one of integers.

        Raises
        ------
        NumgradValueError
            If a parameter is outside of the family; in compiled functions and batches numbers
            are NaN there.
        """
        _, shapes, (loc, *rest) = self._check_arguments("rvs", args, named)
        ok, *_ = self._safe(shapes)
        for scale in rest:  # 0 is none of a density
            ok = ok & (scale >= 0)
        if at_once() and not np.all(ok):
            names = ", ".join((*self.shapes, *dict(self.common)))
            values = ", ".join(map(str, (*shapes, loc, *rest)))
            raise NumgradValueError(f"{self.name}.rvs: no distribution has {names} = {values}")
        name = f"{self.name}.rvs"
        size = drawn_shape(name, size, *[a.shape for a in (*shapes, loc, *rest)])
        result = self._sample(generator_from(name, random_state), size, *shapes)
        return self._placed(result, loc, *rest, ok=ok, arguments=shapes)

    def _placed(self, result: Any, loc: Any, *scale: Any, ok: Any, arguments: list[Any]) -> Any:
        """Numbers that were drawn, at their location and in their scale."""
        raise NotImplementedError

    def _at(self, what: str, x: Any, args: tuple, named: dict[str, Any]) -> Any:
        """Standardised ``x`` moved inside, where it was outside, ``where_valid``, parameters."""
        x, arguments, (loc, *deviation) = self._check_arguments(what, args, named, x)
        ok, shapes, scale = self._safe(arguments, *deviation)
        y = x - loc if scale is None else (x - loc) / scale
        low, high = self._support(*shapes)
        below = False if isinstance(low, float) and low == -math.inf else met(y < low)
        above = False if isinstance(high, float) and high == math.inf else met(y > high)

        def valid(result: Any) -> Any:
            if met(~ok) is False:
                return result
            return where_valid(ok, result, x, *arguments, loc, *deviation)

        inner = choose(below | above, lambda: self._inner(low, high), y)
        return inner, below, above, valid, shapes, scale

    def _inner(self, *ends: Any, **_: Any) -> Any:
        """A number between the ends of a support."""
        return self.inside

    def _at_standard(self, formula: Callable[..., Any], y: Any, shapes: list[Any]) -> Any:
        """A formula at a standardised number of the support."""
        return formula(y, *shapes)

    def _chosen(
        self, what: str, formula: Callable[..., Any], first: float, last: float, arguments: tuple
    ) -> Any:
        y, below, above, valid, shapes, _ = self._at(what, *arguments)
        result = self._at_standard(formula, y, shapes)
        return valid(choose(below, first, choose(above, last, result)))

    def cdf(self, x: Any, *args: Any, **named: Any) -> Any:
        """Probability of a number not above ``x``."""
        return self._chosen("cdf", self._cdf, 0.0, 1.0, (x, args, named))

    def sf(self, x: Any, *args: Any, **named: Any) -> Any:
        """Probability of a number above ``x``."""
        return self._chosen("sf", self._sf, 1.0, 0.0, (x, args, named))

    def logcdf(self, x: Any, *args: Any, **named: Any) -> Any:
        """Logarithm of ``cdf``."""
        return self._chosen("logcdf", self._logcdf, -math.inf, 0.0, (x, args, named))

    def logsf(self, x: Any, *args: Any, **named: Any) -> Any:
        """Logarithm of ``sf``."""
        return self._chosen("logsf", self._logsf, 0.0, -math.inf, (x, args, named))

    def _moment(self, what: str, args: tuple, named: dict[str, Any]) -> Any:
        """A moment of location 0 and scale 1, moved to those given."""
        _, arguments, (loc, *deviation) = self._check_arguments(what, args, named)
        ok, shapes, scale = self._safe(arguments, *deviation)
        standard = getattr(self, f"_{what}")(*shapes)
        result = PLACED[what](standard, loc, 1.0 if scale is None else scale)
        return where_valid(ok, result, *arguments, loc, *deviation)

    def mean(self, *args: Any, **named: Any) -> Any:
        """Mean."""
        return self._moment("mean", args, named)

    def var(self, *args: Any, **named: Any) -> Any:
        """Variance."""
        return self._moment("var", args, named)

    def std(self, *args: Any, **named: Any) -> Any:
        """Standard deviation."""
        return np.sqrt(self.var(*args, **named))

    def entropy(self, *args: Any, **named: Any) -> Any:
        """Entropy; the differential one of a distribution with a density."""
        return self._moment("entropy", args, named)

    def median(self, *args: Any, **named: Any) -> Any:
        """Median."""
        return self.ppf(0.5, *args, **named)

    def interval(self, confidence: Any, *args: Any, **named: Any) -> tuple[Any, Any]:
        """The ends of the interval around the median with this probability."""
        tail = 0.5 * (1 - as_operand(confidence))
        return self.ppf(tail, *args, **named), self.ppf(1 - tail, *args, **named)

    def support(self, *args: Any, **named: Any) -> tuple[Any, Any]:
        """The least and the greatest number."""
        _, arguments, (loc, *rest) = self._check_arguments("support", args, named)
        ok, shapes, *_ = self._safe(arguments, *rest)
        scale = rest[0] if rest else 1.0

        def placed(end: Any) -> Any:
            endless = np.isinf(as_operand(end))
            inner = np.where(endless, 0.0, end) * scale + loc
            return where_valid(ok, np.where(endless, end, inner), *arguments, loc, *rest)

        low, high = self._support(*shapes)
        return placed(low), placed(high)

    def moment(self, order: int, *args: Any, **named: Any) -> Any:
        """Mean of the numbers to the power of ``order``, which is 0, 1 or 2.

        Raises
        ------
        NumgradTypeError
            If the order is another one, of which there is no formula here.
        """
        if order not in (0, 1, 2):
            raise NumgradTypeError(
                f"{self.name}.moment: has formulas of order 0, 1 and 2, got {order!r}; ng.quad of "
                "x ** order * pdf(x) has gradients"
            )
        mean = self.mean(*args, **named)
        if order < 2:
            return mean if order else 0.0 * mean + 1.0
        return self.var(*args, **named) + mean * mean

    def stats(self, *args: Any, moments: str = "mv", **named: Any) -> Any:
        """Mean ``m`` and variance ``v``, of which ``moments`` names those that are returned.

        Raises
        ------
        NumgradTypeError
            If it names skewness or kurtosis, which have no formula here.
        """
        methods = {"m": self.mean, "v": self.var}
        if not moments or set(moments) - methods.keys():
            raise NumgradTypeError(
                f"{self.name}.stats: moments is 'm', 'v' or 'mv', got {moments!r}; skewness and "
                "kurtosis have no formula here"
            )
        several = [methods[m](*args, **named) for m in "mv" if m in moments]
        return tuple(several) if len(several) > 1 else several[0]

    def expect(
        self, func: Any = None, args: Any = (), loc: Any = 0, scale: Any = 1, lb: Any = None,
        ub: Any = None, conditional: bool = False, **kwds: Any,
    ) -> Any:  # fmt: skip
        """Mean of a function of the number, an integral or a sum, with gradients in parameters.

        Parameters
        ----------
        func
            Function of a number, for integers of an array of them; by default the number itself.
        args
            Shape parameters, a tuple.
        loc, scale
            Location, and scale where there is one.
        lb, ub
            Ends of the numbers that count, by default those of the support.
        conditional : bool
            Whether to divide by the probability of these.
        **kwds
            Options of ``ng.quad``.

        Returns
        -------
        float or Tensor
            The mean; a Tensor if a parameter is one.

        Raises
        ------
        NumgradTraceError
            In a compiled function or a batch.
        """
        named = {"loc": loc, "scale": scale}
        named = {key: named[key] for key in dict(self.common)}
        args = args if isinstance(args, tuple) else (args,)
        return self._expect(func, args, named, lb=lb, ub=ub, conditional=conditional, **kwds)

    def _expect(
        self, func: Any, args: tuple, named: dict[str, Any], *, lb: Any, ub: Any,
        conditional: bool, **options: Any,
    ) -> Any:  # fmt: skip
        ends = (lb, ub)
        if "scale" in dict(self.common):
            mean = estimation.expected_of_density(self, func, args, named, *ends, options)
        else:
            mean = estimation.expected_of_mass(self, func, args, named, *ends)
        if not conditional:
            return mean
        counts = "scale" not in dict(self.common)  # numbers at the lower end too
        before = 1.0 if lb is None else self.sf(lb - 1 if counts else lb, *args, **named)
        return mean / (before - (0.0 if ub is None else self.sf(ub, *args, **named)))

    def __getattr__(self, name: str) -> Any:
        instead = _INSTEAD.get(name)
        raise NumgradAttributeError(
            f"ng.stats.{self.__dict__.get('name', 'distribution')} has no {name!r}"
            + (f": {instead}" if instead else ""),
            name=name,
        )

    def _stand_in(self) -> tuple[float, ...]:
        """Shape parameters that formulas see in place of invalid ones."""
        return (1.0,) * len(self.shapes)


def _log(p: Any, complement: Any, far: Callable[..., Any], arguments: tuple) -> Any:
    """Logarithm of a probability, by its complement where that is smaller, ``far`` if it is tiny.

    It is ``-inf``, with a gradient of 0, at ends that are endless.
    """
    near, end = complement < 0.5, (p == 0) & np.isinf(arguments[0])
    small = np.log1p(-np.where(near, complement, 0.0))
    tiny = (p < (1e-25 if p.dtype == np.float32 else 1e-200)) & ~end
    tail = far(tiny, *arguments)
    separate = near | end if tail is None else near | end | tiny
    result = np.where(end, -math.inf, np.log(np.where(separate, 1.0, p)))
    return np.where(near, small, result if tail is None else np.where(tiny, tail, result))


def formulas(**functions: Callable[..., Any]) -> Callable[[type[F]], type[F]]:
    """Give a family formulas that need nothing but their arguments: ``cdf`` becomes ``_cdf``."""

    def give(family: type[F]) -> type[F]:
        for name, function in functions.items():
            setattr(family, f"_{name}", staticmethod(function))
        return family

    return give


class Continuous(Distribution):
    """A family of distributions with a density."""

    common = (("loc", 0.0), ("scale", 1.0))
    not_fitted: tuple[str, ...] = ()
    """Parameters that ``fit`` leaves as they are, as SciPy's does."""

    def _logpdf(self, *arguments: Any, **_: Any) -> Any:
        raise NotImplementedError

    def _placed(self, result: Any, loc: Any, *scale: Any, ok: Any, arguments: list[Any]) -> Any:
        return where_valid(ok, result * scale[0] + loc, *arguments, loc, *scale)

    def _isf(self, *arguments: Any, **_: Any) -> Any:
        q, *shapes = arguments
        return self._ppf(1 - q, *shapes)

    def _pdf(self, *arguments: Any, **_: Any) -> Any:
        """The density divided by the scale; at ends of the support by ``_powers``."""
        y, log_scale, *shapes = arguments

        def by_log(y: Any) -> Any:
            return self._logpdf(y, *shapes) - log_scale

        if self._powers is None:
            return np.exp(by_log(y))
        low, high = self._support(*shapes)
        end = (y == low) | (y == high)
        return by_powers(end, y, by_log, lambda y: self._powers(y, *shapes) * np.exp(-log_scale))

    def logpdf(self, x: Any, *args: Any, **named: Any) -> Any:
        """Logarithm of the density at ``x``."""
        y, below, above, valid, shapes, scale = self._at("logpdf", x, args, named)
        endless = met(np.isinf(y))
        y = choose(endless, lambda: self._inner(*self._support(*shapes)), y)
        result = self._logpdf(y, *shapes) - np.log(scale)
        return valid(choose(below | above | endless, -math.inf, result))

    def pdf(self, x: Any, *args: Any, **named: Any) -> Any:
        """Density at ``x``."""
        y, below, above, valid, shapes, scale = self._at("pdf", x, args, named)
        endless = met(np.isinf(y))
        y = choose(endless, lambda: self._inner(*self._support(*shapes)), y)
        result = self._pdf(y, np.log(scale), *shapes)
        return valid(choose(below | above | endless, 0.0, result))

    def fit(self, data: Any, *starts: Any, **options: Any) -> tuple[Any, ...]:
        """Parameters of the largest likelihood, with gradients in the data.

        Parameters
        ----------
        data : array_like
            Numbers that were drawn.
        *starts, **options
            Starting values and held parameters as SciPy takes them: ``floc=0``, ``fscale=1``,
            ``f0=2`` or ``fa=2`` of shapes, ``loc=``, ``scale=``.

        Returns
        -------
        tuple
            Shape parameters, location and scale; Tensors if the data are one.

        Raises
        ------
        NumgradValueError
            If SciPy cannot fit the data.
        NumgradRuntimeError
            If data require grad and the likelihood is largest at an end of its domain.
        NumgradTraceError
            In a compiled function or a batch.
        """
        return estimation.fitted(self, data, starts, options)

    def nnlf(self, theta: Any, x: Any) -> Any:
        """Negative sum of ``logpdf`` at ``x`` for ``theta``: shape parameters, location, scale.

        Infinite where a number is outside of the support.
        """
        return -np.sum(self.logpdf(x, *theta))

    def _quantile(
        self, what: str, formula: Callable[..., Any], q: Any, reverse: bool, call: tuple
    ) -> Any:
        args, named = call
        q, arguments, (loc, deviation) = self._check_arguments(what, args, named, q)
        ok, shapes, scale = self._safe(arguments, deviation)
        inside = (q > 0) & (q < 1)
        ends = self._support(*shapes)
        first, last = ends[::-1] if reverse else ends
        result = np.where(inside, formula(np.where(inside, q, 0.5), *shapes), 0.0)
        result = np.where(q == 0, first, np.where(q == 1, last, result))
        ok = ok & (q >= 0) & (q <= 1)
        return where_valid(ok, result * scale + loc, q, *arguments, loc, deviation)

    def ppf(self, q: Any, *args: Any, **named: Any) -> Any:
        """Quantile: where ``cdf`` is ``q``."""
        return self._quantile("ppf", self._ppf, q, False, (args, named))

    def isf(self, q: Any, *args: Any, **named: Any) -> Any:
        """Where ``sf`` is ``q``."""
        return self._quantile("isf", self._isf, q, True, (args, named))


class Discrete(Distribution):
    """A family of distributions on integers."""

    common = (("loc", 0.0),)

    def _placed(self, result: Any, loc: Any, *_: Any, ok: Any, arguments: list[Any]) -> Any:
        return result + np.floor(checked_parameter(loc)).astype(np.int64)

    def _logpmf(self, *arguments: Any, **_: Any) -> Any:
        raise NotImplementedError

    def _inner(self, *ends: Any, **_: Any) -> Any:
        return ends[0]

    def _at_standard(self, formula: Callable[..., Any], y: Any, shapes: list[Any]) -> Any:
        return np.where(y == y, formula(np.floor(y), *shapes), y)  # NaN, as a formula may compare

    def _pmf(self, *arguments: Any, **_: Any) -> Any:
        """The probability; where the last parameter is 0 or 1 by ``_powers`` of it."""
        *others, base = arguments
        if self._powers is None:
            return np.exp(self._logpmf(*arguments))
        return by_powers(
            (base == 0) | (base == 1), base,
            lambda base: self._logpmf(*others, base), lambda base: self._powers(*others, base),
        )  # fmt: skip

    def _massed(self, what: str, formula: Any, outside: float, arguments: tuple) -> Any:
        k, below, above, valid, shapes, _ = self._at(what, *arguments)
        whole = (k == np.floor(k)) | (k != k)
        k = np.where(whole, k, np.floor(k))
        return valid(np.where(below | above | ~whole, outside, formula(k, *shapes)))

    def logpmf(self, k: Any, *args: Any, **named: Any) -> Any:
        """Logarithm of the probability of ``k``."""
        return self._massed("logpmf", self._logpmf, -math.inf, (k, args, named))

    def pmf(self, k: Any, *args: Any, **named: Any) -> Any:
        """Probability of ``k``."""
        return self._massed("pmf", self._pmf, 0.0, (k, args, named))

    def _quantile(self, what: str, q: Any, reverse: bool, call: tuple) -> Any:
        q, arguments, (loc,) = self._check_arguments(what, *call, x=q)
        ok, shapes, _ = self._safe(arguments)
        # steps: there are no gradients but by the location
        q, *shapes = [a if isinstance(a, np.ndarray) else a.detach() for a in (q, *shapes)]
        q = 1 - q if reverse else q
        low, high = self._support(*shapes)
        inside = (q > 0) & (q < 1)
        p = np.where(inside, q, 0.5)
        k = np.maximum(np.ceil(self._ppf(p, *shapes)), low)
        before = np.maximum(k - 1, low)
        for less in (before, low):  # rounded up too far, or all of one number
            k = np.where(self._cdf(less, *shapes) >= p, less, k)
        k = np.where(self._cdf(k, *shapes) < p, k + 1, k)
        k = np.where(inside, k, np.where(q == 0, low - 1, high))
        return where_valid(ok & (q >= 0) & (q <= 1), k + loc, *arguments, loc)

    def ppf(self, q: Any, *args: Any, **named: Any) -> Any:
        """Quantile: the least number of which ``cdf`` is at least ``q``."""
        return self._quantile("ppf", q, False, (args, named))

    def isf(self, q: Any, *args: Any, **named: Any) -> Any:
        """The least number of which ``sf`` is at most ``q``."""
        return self._quantile("isf", q, True, (args, named))
