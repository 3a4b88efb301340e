"""Distributions that tables declare.

Note [Rows of distributions]
----------------------------
``Name(parameter: constraint, ...) on support`` begins a class; the lines below it are its members,
each an expression of the parameters (``self`` among them), of ``value`` in densities and quantiles,
and of the ``shape`` of what is drawn in ``rsample`` and ``sample``. ``probs: unit_interval |
logits: real`` are two parameters of which one is given; the other follows from it. A parameter
without a constraint is kept as it is given. A row ``values`` lists the support that
``enumerate_support`` gives, ``inside`` says where the density is not 0, ``event`` is the shape of
an event where it is not that of the parameters' last axes.

``by family(loc, scale, shapes)`` behind the support says which family of ``ng.stats`` it is: rows
that are not there are its formulas for location 0 and scale 1, of the number ``(value - loc) /
scale``. With rows ``base_dist`` and ``transforms`` it is a TransformedDistribution, and so are
rows that neither have. ``as Base`` names a base, which takes the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from numgrad import stats
from numgrad.errors import NumgradValueError
from numgrad.random.generator import generator_from
from numgrad.stats.distribution import Distribution as Family
from numgrad.torch.distributions import constraints
from numgrad.torch.distributions.composed import TransformedDistribution
from numgrad.torch.distributions.distribution import Distribution
from numgrad.torch.distributions.utils import (
    Tensor,
    attribute_of,
    broadcast_all,
    groups,
    initializer,
    lazy_property,
    logits_to_probs,
    method_of,
    parameters_of,
    probs_to_logits,
    rows,
    torch,
)  # fmt: skip
from numgrad.torch.wrapping import unwrap, wrap


class TableDistribution(Distribution):
    """A distribution whose members are rows: Note [Rows of distributions]."""

    _event_dim = 0
    _param_dim: Any = property(lambda self: self._event_dim)
    _event: Any = None
    _check: Any = None
    _takes_numbers = False
    _unchecked: ClassVar[Any] = ()

    def _begin(self, given: dict[str, Any], validate_args: bool | None) -> None:
        """Take the parameters, which broadcast to the shape of the batch."""
        for name in self._unchecked:
            setattr(self, name, given.pop(name))
        plain = all(isinstance(v, int | float) for v in given.values())
        vars(self).update(zip(given, broadcast_all(*given.values()), strict=True))
        shape = torch.Size() if plain else vars(self)[next(iter(given))].size()
        cut = len(shape) - self._param_dim
        if cut < 0:
            raise NumgradValueError(
                f"`{next(iter(given))}` parameter must be at least one-dimensional."
            )
        event_shape = shape[cut:] if self._event is None else self._event
        Distribution.__init__(self, shape[:cut], event_shape, validate_args)
        if self._validate_args and self._check is not None and not self._check.all():
            raise NumgradValueError(f"{self!r}: parameters are not those of a distribution")

    def expand(self: Any, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution in a batch of another shape, to which parameters broadcast."""
        new = self._renewed(batch_shape, _instance)
        for name, value in vars(self).items():
            if name in self.arg_constraints and isinstance(value, Tensor):
                own = value.shape[len(self._batch_shape) :]
                setattr(new, name, value.expand(new._batch_shape + own))
            elif name not in ("base_dist", "transforms", *vars(new)):
                setattr(new, name, value)
        return new


class ProbabilityDistribution(TableDistribution):
    """Base of distributions of ``probs``, of one of two outcomes, or of ``logits`` of them."""

    _is_binary = True
    _alternative: str
    probs: Any = lazy_property(lambda self: logits_to_probs(self.logits, self._is_binary))
    logits: Any = lazy_property(lambda self: probs_to_logits(self.probs, self._is_binary))
    _param = property(lambda self: getattr(self, self._alternative))
    _given = property(lambda self: {self._alternative: self._param})
    param_shape = property(lambda self: self._param.size(), doc="Shape of the parameter.")

    def _begin(self, given: dict[str, Any], validate_args: bool | None) -> None:
        """Take the one of ``probs`` and ``logits`` that is given."""
        if (given["probs"] is None) == (given["logits"] is None):
            raise NumgradValueError("Either `probs` or `logits` must be specified, but not both.")
        self._alternative = "logits" if given["probs"] is None else "probs"
        del given["logits" if self._alternative == "probs" else "probs"]
        count: Any
        count, p = given.get("total_count"), given[self._alternative]
        if isinstance(count, Tensor) and isinstance(p, Tensor):
            given["total_count"] = count.type_as(p)
        super()._begin(given, validate_args)


def _member(name: str, formula: Callable[..., Any], inside: Any) -> Any:
    """A method or property that evaluates a row."""

    def of_value(self: Any, value: Any) -> Any:
        if self._takes_numbers:
            value = torch.as_tensor(value, dtype=self.rate.dtype)
        if self._validate_args and name != "icdf":
            self._validate_sample(value)
        result = formula(self, value)
        if inside is not None and name == "log_prob":
            return torch.where(inside(self, value), result, -math.inf)
        return result

    def rsample(self: Any, sample_shape: Any = ()) -> Any:
        return formula(self, None, self._extended_shape(sample_shape))

    def enumerate_support(self: Any, expand: bool = True) -> Any:
        values = formula(self)
        own = values.shape[values.dim() - self._event_dim :]
        values = values.reshape((-1,) + (1,) * len(self._batch_shape) + own)
        return values.expand((-1, *self._batch_shape, *own)) if expand else values

    if name in ("log_prob", "cdf", "icdf"):
        return of_value
    if name == "entropy":
        return formula
    methods = {"rsample": rsample, "sample": torch.no_grad()(rsample), "values": enumerate_support}
    return methods[name] if name in methods else property(formula)


def _log(scale: Any) -> Any:
    return scale.log() if isinstance(scale, Tensor) else math.log(scale)


_STANDARD: dict[str, tuple[str, Callable[..., Any]]] = {
    "mean": ("_mean", lambda m, loc, scale: m * scale + loc),
    "variance": ("_var", lambda v, loc, scale: v * (scale * scale)),
    "entropy": ("_entropy", lambda h, loc, scale: h + _log(scale)),
    "log_prob": ("_logpdf", lambda log, loc, scale: log - _log(scale)),
    "cdf": ("_cdf", lambda p, loc, scale: p),
    "icdf": ("_ppf", lambda x, loc, scale: x * scale + loc),
    "rsample": ("_sample", lambda x, loc, scale: x * scale + loc),
}
"""Formulas of families of ``ng.stats``, and what location and scale make of their values."""


def _of_family(family: Any, place: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Rows that follow from a family; ``place`` gives its location, scale and shapes."""

    def row(name: str) -> Callable[..., Any]:
        formula, finish = getattr(family, _STANDARD[name][0]), _STANDARD[name][1]

        def evaluate(self: Any, value: Any = None, shape: Any = None) -> Any:
            loc, scale, *shapes = place(self)
            if name == "rsample":
                like = next(p for p in (*shapes, scale, loc) if isinstance(p, Tensor))
                source = generator_from("rsample", None)
                result = formula(source, tuple(shape), *[s.double()._tensor for s in shapes])
                return finish(wrap(result).to(like.dtype), loc, scale)
            if value is not None:
                shapes.insert(0, value if name == "icdf" else (value - loc) / scale)
            return finish(wrap(formula(*map(unwrap, shapes))), loc, scale)

        return evaluate

    absent = vars(Family)
    return {n: row(n) for n, (key, _) in _STANDARD.items() if n == "rsample" or (
        getattr(type(family), key) is not absent.get(key))}  # fmt: skip


def _members(formulas: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """Members that are rows."""
    inside = formulas.pop("inside", None)
    own = {"values": "enumerate_support", "event": "_event"}
    members: dict[str, Any] = {
        own.get(key, key): lazy_property(formula) if key in ("base_dist", "transforms")
        else _member(key, formula, inside)
        for key, formula in formulas.items()
    }  # fmt: skip
    if members.keys() & {"sample", "rsample", "base_dist"}:
        members["has_rsample"] = "sample" not in members
    if "values" in formulas:
        members["has_enumerate_support"] = True
    return members


def declare(text: str, scope: dict[str, Any]) -> dict[str, type]:
    """Add classes of a table to the names of its module, and return them: the Note above."""
    classes = {}
    for head, *lines in rows(text):
        name, given, support, family, place, base = groups(
            r"(\w+)\((.*?)\) on (.*?)(?: by (\w+)\((.*)\))?(?: as (\w+))?", head
        )
        names = parameters_of(given)
        formulas = {
            key: method_of(text, names, scope, "value=None", "shape=None")
            for key, text in (line.split(": ", 1) for line in lines)
        }
        if family is not None:
            where = method_of(f"({place})", names, scope)
            formulas = _of_family(getattr(stats, family), where) | formulas
        default = ProbabilityDistribution if "probs" in names else TableDistribution
        bases: list[Any] = [scope[base] if base else default]
        if "base_dist" in formulas:
            bases.append(TransformedDistribution)
            formulas.pop("rsample", None)
        if "sample" in formulas:
            formulas.pop("rsample", None)
        scope[name] = classes[name] = type(name, (*bases,), {
            "__module__": scope["__name__"], "__init__": initializer(names, "validate_args=None"),
            "__doc__": f"The distribution ``{name}``, with parameters ``{', '.join(names)}``.",
            **_sets(names, support), **_members(formulas),
        })  # fmt: skip
    return classes


def _sets(names: dict[str, tuple[str, str]], support: str) -> dict[str, Any]:
    """Members that say where parameters and values are."""
    sets: Any = vars(constraints)
    kind = sets[support.partition("(")[0]]
    told: Any = partial(
        constraints.dependent_property, is_discrete=kind.is_discrete, event_dim=kind.event_dim
    )
    limits = {key: limit for key, (limit, _) in names.items() if limit}
    text = f"dict(zip(keys, [{', '.join(limits.values())}]))"
    return {
        "support": attribute_of(support, names, sets, told), "_event_dim": kind.event_dim,
        "arg_constraints": attribute_of(text, names, sets | {"keys": [*limits]}),
        "_unchecked": [key for key in names if key not in limits],
    }  # fmt: skip
