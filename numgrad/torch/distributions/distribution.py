"""Bases of distributions, and classes that tables declare.

Note [Rows of distributions]
----------------------------
``Name(parameter: constraint, ...) on support`` begins a class; the lines below it are its members,
each an expression of the parameters (``self`` among them), of ``value`` in densities and quantiles,
and of the ``shape`` of what is drawn in ``rsample`` and ``sample``. ``probs: unit_interval |
logits: real`` are two parameters of which one is given; the other follows from it. A row
``values`` lists the support that ``enumerate_support`` gives.

``by family(loc, scale, shapes)`` behind the support says which family of ``ng.stats`` it is: rows
that are not there are its formulas for location 0 and scale 1, of the number ``(value - loc) /
scale``. ``as Base`` names a base, which takes the parameters.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from numgrad import stats
from numgrad.errors import NumgradNotImplementedError, NumgradValueError
from numgrad.random.generator import generator_from
from numgrad.stats.distribution import Distribution as Family
from numgrad.tensors.reparameterised import PATHS
from numgrad.torch.distributions import constraints
from numgrad.torch.distributions.constraints import torch
from numgrad.torch.wrapping import unwrap, wrap

Tensor: Any = torch.Tensor


def broadcast_all(*values: Any) -> Any:
    """Numbers and Tensors as Tensors of one shape; numbers in the dtype of the first Tensor."""
    if not all(isinstance(v, Tensor | int | float) for v in values):
        raise NumgradValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = torch.get_default_dtype() if like is None else like.dtype
    given = [v if isinstance(v, Tensor) else torch.tensor(v, dtype=dtype) for v in values]
    torch.broadcast_shapes(*[v.shape for v in given])  # raises RuntimeError
    return torch.broadcast_tensors(*given)


def drawn(name: str, shape: Any, *parameters: Any) -> Any:
    """Numbers by a method of ``ng.random``, with gradients in the parameters and in their dtype."""
    given = [p.double() if p.is_floating_point() else p for p in parameters]
    method = getattr(generator_from("rsample", None), name)
    numbers = method(*[p._tensor for p in given], size=tuple(shape))
    return wrap(numbers).to(parameters[0].dtype) if parameters else wrap(numbers)


def above_zero(x: Any) -> Any:
    """Numbers that rounding to 0 has not taken out of the support."""
    return x.clamp(min=torch.finfo(x.dtype).tiny)


def inside_unit(p: Any) -> Any:
    """Numbers from 0 to 1, neither of them."""
    info = torch.finfo(p.dtype)
    return p.clamp(min=info.tiny, max=1 - info.eps)


def inner_uniform(shape: Any, like: Any) -> Any:
    """Uniform numbers between 0 and 1."""
    return inside_unit(torch.rand(torch.Size(shape), dtype=like.dtype))


def beta_path(x: Any, a: Any, b: Any) -> Any:
    """Beta numbers ``x``, with their implicit gradients in the parameters."""
    path = PATHS["beta"](x.double()._tensor, (), a.double()._tensor, b.double()._tensor)
    return wrap(path).to(a.dtype)


def beta_drawn(shape: Any, a: Any, b: Any) -> Any:
    """Beta numbers, away from 0 and 1, where rounding may have put them."""
    with torch.no_grad():
        x, info = drawn("beta", shape, a, b), torch.finfo(a.dtype)
        x = x.clamp(min=info.tiny, max=1 - info.eps / 2)
    return beta_path(x, a, b)


def inner_probs(probs: Any) -> Any:
    """Probabilities away from 0 and 1 by an epsilon, whose logarithms are finite."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def lacking(name: str) -> Callable[..., Any]:
    """Return a method that raises: a class has no formula for it."""

    def member(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NumgradNotImplementedError(f"{type(self).__name__}.{name}: has no formula")

    member.__name__, member.__doc__ = name, f"Raise: there is no ``{name}``."
    return member


class Distribution:
    """A distribution, or a batch of them: ``batch_shape``, of events of a shape ``event_shape``."""

    has_rsample = has_enumerate_support = False
    _validate_args = True
    rsample: Any = lacking("rsample")
    log_prob: Any = lacking("log_prob")
    entropy: Any = lacking("entropy")
    cdf: Any = lacking("cdf")
    icdf: Any = lacking("icdf")
    enumerate_support: Any = lacking("enumerate_support")
    arg_constraints: Any = property(lacking("arg_constraints"))
    support: Any = property(lacking("support"))
    mean: Any = property(lacking("mean"))
    mode: Any = property(lacking("mode"))
    variance: Any = property(lacking("variance"))

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = torch.Size(batch_shape), torch.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    batch_shape = property(lambda self: self._batch_shape, doc="Shape of the batch.")
    event_shape = property(lambda self: self._event_shape, doc="Shape of one event.")
    stddev = property(lambda self: self.variance.sqrt(), doc="Standard deviation.")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Say whether distributions check parameters and values unless told otherwise."""
        if value not in (True, False):
            raise NumgradValueError(f"set_default_validate_args: takes a bool, got {value!r}")
        Distribution._validate_args = value

    def _check_parameters(self) -> None:
        try:
            limits = self.arg_constraints
        except NotImplementedError:
            limits = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`; set arg_constraints = {{}} or "
                "pass validate_args=False to turn off validation",
                stacklevel=3,
            )
        for name, constraint in limits.items():
            if constraints.is_dependent(constraint) or name not in vars(self):
                continue
            value = getattr(self, name)
            if isinstance(value, Tensor) and not constraint.check(value).all():
                raise NumgradValueError(
                    f"Expected parameter {name} (Tensor of shape {tuple(value.shape)}) of "
                    f"distribution {self!r} to satisfy the constraint {constraint!r}, but found "
                    f"invalid values:\n{value}"
                )

    def _validate_sample(self, value: Any) -> None:
        """Raise where a value has another shape than events, or is outside of the support."""
        if not isinstance(value, Tensor):
            raise NumgradValueError("The value argument to log_prob must be a Tensor")
        n = len(self._event_shape)
        if value.shape[value.dim() - n :] != self._event_shape:
            raise NumgradValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs "
                f"{self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if 1 not in (i, j) and i != j:
                raise NumgradValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs "
                    f"{expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            return warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation; pass "
                "validate_args=False to turn it off",
                stacklevel=3,
            )
        if not constraints.is_dependent(support) and not support.check(value).all():
            raise NumgradValueError(
                f"Expected value argument (Tensor of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n"
                f"{value}"
            )

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        return torch.Size(sample_shape) + self._batch_shape + self._event_shape

    def _renewed(self, batch_shape: Any, instance: Any) -> Any:
        """A new distribution of this class, without parameters."""
        new = type(self).__new__(type(self)) if instance is None else instance
        if instance is None and type(self).__init__ is not type(self)._own_class().__init__:
            raise NumgradNotImplementedError(
                f"Subclass {type(self).__name__} of {type(self)._own_class().__name__} that "
                "defines a custom __init__ method must also define a custom .expand() method."
            )
        new._batch_shape, new._event_shape = torch.Size(batch_shape), self._event_shape
        new._validate_args = self._validate_args
        return new

    @classmethod
    def _own_class(cls) -> Any:
        """The nearest class of this module among the bases."""
        return next(c for c in cls.__mro__ if c.__module__.startswith("numgrad.torch"))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution in a batch of another shape, to which parameters broadcast."""
        new = self._renewed(batch_shape, _instance)
        for name, value in vars(self).items():
            if name in self.arg_constraints and isinstance(value, Tensor):
                dim = self.arg_constraints[name].event_dim
                kept = value.shape[value.dim() - dim :]
                setattr(new, name, value.expand(new._batch_shape + kept))
            elif name not in vars(new):
                setattr(new, name, value)
        return new

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw numbers without gradients."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def perplexity(self) -> Any:
        """Exponential of the entropy."""
        return torch.exp(self.entropy())

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in vars(self)]
        values = {name: getattr(self, name) for name in names}
        shown = [f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in values.items()
                 if isinstance(v, Tensor)]  # fmt: skip
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """Base of distributions whose density is the exponential of a linear function of statistics."""


def alternative(self: Any, probs: Any, logits: Any) -> str:
    """The one of ``probs`` and ``logits`` that is given."""
    if (probs is None) == (logits is None):
        raise NumgradValueError("Either `probs` or `logits` must be specified, but not both.")
    return "logits" if probs is None else "probs"


class lazy_property:
    """An attribute that a function of the instance gives, until it is assigned."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped, self.name, self.__doc__ = wrapped, wrapped.__name__, wrapped.__doc__

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        with torch.enable_grad():
            value = vars(instance)[self.name] = self.wrapped(instance)
        return value


def given_parameter(self: Any) -> Any:
    """The one of ``probs`` and ``logits`` that was given."""
    return self.probs if "probs" in vars(self) else self.logits


def expanded_support(self: Any, values: Any, expand: bool, own: int = 0) -> Any:
    """Values along the first axis, for each of the batch."""
    own_shape = values.shape[values.dim() - own :]
    values = values.reshape((-1,) + (1,) * len(self._batch_shape) + own_shape)
    return values.expand((-1, *self._batch_shape, *own_shape)) if expand else values


class TableDistribution(Distribution):
    """A distribution whose members are rows: Note [Rows of distributions]."""

    _formulas: ClassVar[dict[str, Callable[..., Any]]] = {}
    _event_dim = 0
    _check: Any = None

    def _begin(self, given: dict[str, Any], validate_args: bool | None) -> None:
        """Take the parameters, which broadcast to the shape of the batch."""
        if "logits" in given:
            keep = alternative(self, given["probs"], given["logits"])
            del given["logits" if keep == "probs" else "probs"]
        plain = all(isinstance(v, int | float) for v in given.values())
        vars(self).update(zip(given, broadcast_all(*given.values()), strict=True))
        shape = torch.Size() if plain else vars(self)[next(iter(given))].size()
        cut = len(shape) - self._event_dim
        if cut < 0:
            (name,) = given
            raise NumgradValueError(f"`{name}` parameter must be at least one-dimensional.")
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)
        if self._validate_args and self._check is not None and not self._formula("_check").all():
            raise NumgradValueError(f"{self!r}: expected {self._check[8:]}")

    def _formula(self, name: str, value: Any = None, shape: Any = None) -> Any:
        return self._formulas[name](self, value, shape)


def _member(name: str) -> Any:
    """A method or property that evaluates a row."""

    def of_value(self: Any, value: Any) -> Any:
        if type(self).__name__ in ("Gamma", "Chi2"):  # which take numbers as well
            value = torch.as_tensor(value, dtype=self.mean.dtype)
        if self._validate_args and name != "icdf":
            self._validate_sample(value)
        return self._formula(name, value)

    def of_shape(self: Any, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        if name == "rsample":
            return self._formula(name, shape=shape)
        with torch.no_grad():
            return self._formula(name, shape=shape).detach()

    if name in ("log_prob", "cdf", "icdf"):
        return of_value
    if name in ("sample", "rsample"):
        return of_shape
    if name == "values":
        return lambda self, expand=True: expanded_support(
            self, self._formula(name), expand, self._event_dim
        )
    get = lambda self: self._formula(name)  # noqa: E731
    return get if name == "entropy" else property(get)


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


def _log(scale: Any) -> Any:
    return scale.log() if isinstance(scale, Tensor) else math.log(scale)


def _of_family(family: Any, place: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Rows that follow from a family; ``place`` gives its location, scale and shapes."""

    def row(name: str) -> Callable[..., Any]:
        formula, finish = getattr(family, _STANDARD[name][0]), _STANDARD[name][1]

        def evaluate(self: Any, value: Any, shape: Any) -> Any:
            loc, scale, *shapes = place(self)
            if name == "rsample":
                source = generator_from("rsample", None)
                result = formula(source, tuple(shape), *[s.double()._tensor for s in shapes])
                like = next(p for p in (*shapes, scale, loc) if isinstance(p, Tensor))
                return finish(wrap(result).to(like.dtype), loc, scale)
            if name == "icdf":
                shapes.insert(0, value)
            elif value is not None:
                shapes.insert(0, (value - loc) / scale)
            return finish(wrap(formula(*map(unwrap, shapes))), loc, scale)

        return evaluate

    lacking = vars(Family)
    return {n: row(n) for n, (key, _) in _STANDARD.items() if n == "rsample" or (
        getattr(type(family), key) is not lacking.get(key))}  # fmt: skip


_HEAD = re.compile(r"(\w+)\((.*)\) on (.*?)(?: by (\w+)\((.*)\))?(?: as (\w+))?")


def declare(text: str, scope: dict[str, Any]) -> Iterable[type]:
    """Classes of a table: Note [Rows of distributions]."""
    for block in re.split(r"\n(?=\w)", text.strip()):
        head, *rows = re.split(r"\n  (?=\S)", block)
        match = _HEAD.fullmatch(re.sub(r"\s+", " ", head))
        assert match is not None, head
        name, given, support, family, place, base = match.groups()
        parameters, signature = {}, []
        for part in re.split(r", (?=\w+:)| \| ", given):
            key, _, rest = part.partition(": ")
            limit, _, default = rest.partition(" = ")
            parameters[key] = eval(limit, dict(vars(constraints)))
            default = default or ("None" if key in ("probs", "logits") else "")
            signature.append(key + f"={default}" * bool(default))
        pairs = [row.split(": ", 1) for row in rows]
        formulas = {key: _formula(expression, parameters, scope) for key, expression in pairs}
        if family is not None:
            made = _formula(f"({place})", parameters, scope)
            formulas = _of_family(getattr(stats, family), made) | formulas
        if "sample" in formulas:
            formulas.pop("rsample", None)
        check = next((row for row in rows if row.startswith("_check")), None)
        yield _declared(
            name, parameters, ", ".join(signature), support, formulas,
            (TableDistribution, ExponentialFamily) if base is None else (scope[base],), scope,
            _check=check,
        )  # fmt: skip


def _formula(text: str, parameters: Iterable[str], scope: dict[str, Any]) -> Callable[..., Any]:
    """A function of a distribution, a value and a shape that evaluates an expression."""
    used = [p for p in parameters if re.search(rf"\b{p}\b", text)]
    made = eval(f"lambda {', '.join(['self', 'value', 'shape', *used])}: ({text})", scope)
    return lambda self, value=None, shape=None: made(
        self, value, shape, *[getattr(self, p) for p in used]
    )


def _declared(
    name: str, parameters: dict[str, Any], signature: str, support: str,
    formulas: dict[str, Any], bases: tuple[type, ...], scope: dict[str, Any], **members: Any,
) -> type:  # fmt: skip
    begin = f"def __init__(self, {signature}, validate_args=None):\n    self._begin(dict("
    space: dict[str, Any] = {}
    exec(begin + ", ".join(f"{p}={p}" for p in parameters) + "), validate_args)", space)
    kind = vars(constraints)[support.partition("(")[0]]
    members |= {
        "__doc__": f"The distribution ``{name}``, with parameters ``{signature}``.",
        "__module__": scope["__name__"], "__init__": space["__init__"], "_formulas": formulas,
        "arg_constraints": parameters, "has_rsample": "rsample" in formulas,
        "has_enumerate_support": "values" in formulas, "_event_dim": kind.event_dim,
    }  # fmt: skip
    members |= {
        "enumerate_support" if k == "values" else k: _member(k) for k in formulas if k[0] != "_"
    }
    if any(re.search(rf"\b{p}\b", support) for p in (*parameters, "self")):
        made = _formula(support, parameters, dict(vars(constraints)))
        told = {"is_discrete": kind.is_discrete, "event_dim": kind.event_dim}
        members["support"] = constraints.dependent_property(made, **told)
    else:
        members["support"] = eval(support, dict(vars(constraints)))
    if "probs" in parameters and not hasattr(bases[0], "probs"):
        members["probs"] = lazy_property(lambda self: torch.sigmoid(self.logits))
        members["logits"] = lazy_property(lambda self: torch.logit(inner_probs(self.probs)))
        members["param_shape"] = property(lambda self: given_parameter(self).size())
    return type(name, bases, members)


HALF_LOG_2PI, EULER = 0.5 * math.log(2 * math.pi), 0.57721566490153286
