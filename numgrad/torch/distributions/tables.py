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

``by family(loc, scale, shapes)`` behind the support says which family of ``ng.stats`` it is, of
vectors with a location of 0 and a scale of 1: rows that are not there are its formulas of the
number ``(value - loc) / scale``, and so are divergences. With rows ``base_dist`` and ``transforms``
it is a TransformedDistribution, and so are rows that neither have. ``as Base`` names a base, which
takes the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from numgrad import stats
from numgrad.errors import NumgradValueError
from numgrad.random.generator import generator_from
from numgrad.stats.distribution import PLACED, Discrete, Distribution as Family
from numgrad.torch.distributions import constraints, transforms, utils
from numgrad.torch.distributions.composed import TransformedDistribution
from numgrad.torch.distributions.distribution import Distribution
from numgrad.torch.distributions.utils import torch
from numgrad.torch.wrapping import unwrap, wrap


class TableDistribution(Distribution):
    """A distribution whose members are rows: Note [Rows of distributions]."""

    _event_dim = 0
    _param_dim: Any = property(lambda self: self._event_dim)
    _event: Any = None
    _check: Any = None
    _frozen: Any = None
    """The distribution of ``ng.stats`` that a row names, with its parameters."""
    _takes_numbers = False
    _unchecked: ClassVar[Any] = ()

    def _begin(self, given: dict[str, Any], validate_args: bool | None) -> None:
        """Take the parameters, which broadcast to the shape of the batch."""
        for name in self._unchecked:
            setattr(self, name, given.pop(name))
        plain = all(isinstance(v, int | float) for v in given.values())
        vars(self).update(zip(given, utils.broadcast_all(*given.values()), strict=True))
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


class ProbabilityDistribution(TableDistribution):
    """Base of distributions of ``probs``, of one of two outcomes, or of ``logits`` of them."""

    _is_binary = True
    _alternative: str
    probs: Any = utils.lazy_property(lambda d: utils.logits_to_probs(d.logits, d._is_binary))
    logits: Any = utils.lazy_property(lambda d: utils.probs_to_logits(d.probs, d._is_binary))
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
        if isinstance(count, utils.Tensor) and isinstance(p, utils.Tensor):
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

    methods = {"rsample": rsample, "sample": torch.no_grad()(rsample), "values": enumerate_support}
    methods |= dict.fromkeys(("log_prob", "cdf", "icdf"), of_value)
    methods |= dict.fromkeys(("entropy", "_frozen"), formula)
    lazy = name in ("base_dist", "transforms")
    return methods.get(name) or (utils.lazy_property if lazy else property)(formula)


_METHODS = {
    "mean": "mean", "variance": "var", "entropy": "entropy", "log_prob": "logpdf", "cdf": "cdf",
    "icdf": "ppf", "rsample": "sample",
}  # fmt: skip
"""Members, and the formulas of families of ``ng.stats`` that they are."""


def _of_family(family: Any, place: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Rows that follow from a family; ``place`` gives its location, scale and shapes."""
    common = len(getattr(family, "common", ()))

    def row(name: str, method: str) -> Callable[..., Any]:
        formula = getattr(family, f"_{method}")

        def finish(result: Any, loc: Any, scale: Any) -> Any:
            return wrap(PLACED[method](result, unwrap(loc), unwrap(scale)))

        def evaluate(self: Any, value: Any = None, shape: Any = None) -> Any:
            loc, scale, *shapes = place(self)
            if value is not None:
                shapes.insert(0, value if name == "icdf" else (value - loc) / scale)
            result = finish(formula(*map(unwrap, shapes)), loc, scale)
            if name not in ("mean", "variance", "entropy"):
                return result
            return result.expand(self._batch_shape + self._event_shape * (name != "entropy"))

        def rsample(self: Any, value: Any = None, shape: Any = None) -> Any:
            loc, scale, *shapes = place(self)
            like: Any = next(p for p in (*shapes, scale, loc) if isinstance(p, utils.Tensor))
            given = [s.double() for s in shapes] if common else shapes
            result = formula(generator_from("rsample", None), tuple(shape), *map(unwrap, given))
            return utils.inside(self.support, finish(result.astype(unwrap(like).dtype), loc, scale))

        return rsample if name == "rsample" else evaluate

    def frozen(self: Any) -> Any:
        """The distribution of ``ng.stats``."""
        loc, scale, *shapes = map(unwrap, place(self))
        return family(*shapes, *(loc, scale)[:common])

    formulas: dict[str, Any] = {"_frozen": frozen}
    for name, method in [*_METHODS.items()][: 3 if isinstance(family, Discrete) else None]:
        absent = None if name == "rsample" else vars(Family).get(f"_{method}")
        if getattr(type(family), f"_{method}", absent) is not absent:
            formulas[name] = row(name, method)
    return formulas


def declare(text: str, space: dict[str, Any]) -> dict[str, type]:
    """Classes of a table, by name, of a module with these names: the Note above."""
    classes: dict[str, type] = {}
    scope = vars(utils) | vars(transforms) | space
    for head, *lines in utils.rows(text):
        name, given, support, family, place, base = utils.groups(
            r"(\w+)\((.*?)\) on (.*?)(?: by (\w+)\((.*)\))?(?: as (\w+))?", head
        )
        names = utils.parameters_of(given)
        formulas = {
            key: utils.method_of(text, names, scope, "value=None", "shape=None")
            for key, text in (line.split(": ", 1) for line in lines)
        }
        if family is not None:
            where = utils.method_of(place, names, scope)
            formulas = _of_family(getattr(stats, family), where) | formulas
        default = ProbabilityDistribution if "probs" in names else TableDistribution
        bases: list[Any] = [scope[base] if base else default]
        drawn = formulas.keys() & {"sample", "base_dist"}
        if drawn:
            formulas.pop("rsample", None)
        if "base_dist" in drawn:
            bases.append(TransformedDistribution)
        members = {
            "__module__": space["__name__"], "__init__": utils.initializer(
                names, "validate_args=None"),
            "__doc__": f"The distribution ``{name}``, with parameters ``{', '.join(names)}``.",
        } | _sets(names, support)  # fmt: skip
        if drawn or "rsample" in formulas:
            members["has_rsample"] = "sample" not in drawn
        if "values" in formulas:
            members["has_enumerate_support"] = True
        inside = formulas.pop("inside", None)
        for key, formula in formulas.items():
            own = {"values": "enumerate_support", "event": "_event"}.get(key, key)
            members[own] = _member(key, formula, inside)
        scope[name] = classes[name] = type(name, (*bases,), members)
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
        "support": utils.attribute_of(support, names, sets, told), "_event_dim": kind.event_dim,
        "arg_constraints": utils.attribute_of(text, names, sets | {"keys": [*limits]}),
        "_unchecked": [key for key in names if key not in limits],
    }  # fmt: skip
