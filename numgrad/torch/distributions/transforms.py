"""Invertible functions with the logarithm of their derivative: ``torch.distributions.transforms``.

Note [Rows of transforms]
-------------------------
``Name(parameter, ...) sign domain codomain: forward | inverse | log of the derivative`` are classes
of functions, expressions of ``x`` and of ``y``, its value; those with a derivative are bijective.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from numgrad.errors import NumgradNotImplementedError, NumgradValueError
from numgrad.torch.distributions import constraints
from numgrad.torch.distributions.constraints import torch
from numgrad.torch.distributions.distribution import inside_unit, lacking
from numgrad.torch.nn.functional import pad, softplus


def sum_rightmost(value: Any, dim: int) -> Any:
    """Sum over the last axes."""
    return value.reshape((*value.shape[: value.dim() - dim], -1)).sum(-1) if dim else value


class Transform:
    """A function from ``domain`` to ``codomain``; ``inv`` is its inverse.

    Subclasses have ``_call``, ``_inverse`` and ``log_abs_det_jacobian``. A cache of size 1 keeps
    the last argument and its value, which go back without a loss.
    """

    bijective: Any = False
    domain: Any = constraints.real
    codomain: Any = constraints.real
    _parameters: tuple[str, ...] = ()
    _call: Any = lacking("_call")
    _inverse: Any = lacking("_inverse")
    log_abs_det_jacobian: Any = lacking("log_abs_det_jacobian")
    sign: Any = property(lacking("sign"))
    inv: Any = property(lambda self: _InverseTransform(self), doc="The inverse.")

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise NumgradValueError("cache_size must be 0 or 1")
        self._cache_size, self._cached = cache_size, (None, None)

    @property
    def event_dim(self) -> int:
        """Number of axes of an event, on both sides."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise NumgradValueError("Please use either .domain.event_dim or .codomain.event_dim")

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same function with a cache, or without one."""
        if self._cache_size == cache_size:
            return self
        new = type(self).__new__(type(self))
        vars(new).update(vars(self), _cache_size=cache_size, _cached=(None, None))
        return new

    def _at(self, side: int, given: Any, function: Callable[..., Any]) -> Any:
        """The argument or value that goes with the other one, ``given``."""
        if self._cache_size and given is self._cached[side]:
            return self._cached[1 - side]
        other = function(given)
        if self._cache_size:
            self._cached = (other, given) if side else (given, other)
        return other

    def __call__(self, x: Any) -> Any:
        """The value."""
        return self._at(0, x, self._call)

    def _inv_call(self, y: Any) -> Any:
        return self._at(1, y, self._inverse)

    def forward_shape(self, shape: Any) -> Any:
        """Shape of the value."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Shape of the argument."""
        return shape

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        values = [[getattr(t, p) for p in self._parameters] for t in (self, other)]
        return all(bool(torch.as_tensor(a == b).all()) for a, b in zip(*values, strict=True))

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        shown = ", ".join(f"{p}={getattr(self, p)}" for p in self._parameters)
        return f"{type(self).__name__}({shown})"


class _InverseTransform(Transform):
    """The inverse of a transform."""

    _parameters = ("_inv",)

    def __init__(self, transform: Any) -> None:
        super().__init__(transform._cache_size)
        self._inv, self._inv_call = transform, transform
        self.forward_shape, self.inverse_shape = transform.inverse_shape, transform.forward_shape

    domain = property(lambda self: self._inv.codomain, doc="Set of arguments.")
    codomain = property(lambda self: self._inv.domain, doc="Set of values.")
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same function with a cache, or without one."""
        return self._inv.with_cache(cache_size).inv

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """That of the function, with the other sign."""
        return -self._inv.log_abs_det_jacobian(y, x)


class ComposeTransform(Transform):
    """Functions one after the other."""

    _parameters = ("parts",)

    def __init__(self, parts: Sequence[Any], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def _side(self, parts: Any, near: str, far: str) -> Any:
        """The set at one end, of as many axes as the parts need."""
        dim, result = 0, constraints.real
        for part in parts:
            inner, result = getattr(part, near), getattr(part, far)
            dim = max(dim, inner.event_dim) + result.event_dim - inner.event_dim
        extra = dim - result.event_dim
        return constraints.independent(result, extra) if extra > 0 else result

    domain = property(lambda self: self._side(self.parts[::-1], "codomain", "domain"))
    codomain = property(lambda self: self._side(self.parts, "domain", "codomain"))
    bijective = property(lambda self: all(p.bijective for p in self.parts))
    sign = property(lambda self: math.prod(p.sign for p in self.parts))

    def _call(self, x: Any) -> Any:
        return reduce(lambda x, part: part(x), self.parts, x)

    def _inverse(self, y: Any) -> Any:
        return reduce(lambda y, part: part._inv_call(y), self.parts[::-1], y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Sum of those of the parts."""
        if not self.parts:
            return torch.zeros_like(x)
        total, dim = 0, self.domain.event_dim
        for k, part in enumerate(self.parts):
            after = y if k == len(self.parts) - 1 else part(x)
            log = part.log_abs_det_jacobian(x, after)
            total = total + sum_rightmost(log, dim - part.domain.event_dim)
            dim += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape: Any) -> Any:
        """Shape of the value."""
        return reduce(lambda shape, part: part.forward_shape(shape), self.parts, shape)

    def inverse_shape(self, shape: Any) -> Any:
        """Shape of the argument."""
        return reduce(lambda shape, part: part.inverse_shape(shape), self.parts[::-1], shape)


class IndependentTransform(Transform):
    """A function whose last axes of a batch are ones of an event."""

    _parameters = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(
        self, base_transform: Any, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = n = reinterpreted_batch_ndims
        self.domain = constraints.independent(base.domain, n)
        self.codomain = constraints.independent(base.codomain, n)
        self.bijective, self._call, self._inverse = base.bijective, base, base._inv_call
        self.forward_shape, self.inverse_shape = base.forward_shape, base.inverse_shape

    sign = property(lambda self: self.base_transform.sign)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Sum over these axes."""
        log = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(log, self.reinterpreted_batch_ndims)


class ReshapeTransform(Transform):
    """Events in another shape."""

    bijective, _parameters = True, ("in_shape", "out_shape")

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = torch.Size(in_shape), torch.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise NumgradValueError("in_shape, out_shape have different numbers of elements")
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))
        self.forward_shape = partial(_replaced, self.in_shape, self.out_shape)
        self.inverse_shape = partial(_replaced, self.out_shape, self.in_shape)

    def _call(self, x: Any) -> Any:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Any) -> Any:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Zeros."""
        return torch.zeros(x.shape[: x.dim() - len(self.in_shape)], dtype=x.dtype)


def _replaced(old: Any, new: Any, shape: Any) -> Any:
    cut = len(shape) - len(old)
    if cut < 0 or tuple(shape[cut:]) != tuple(old):
        raise NumgradValueError(f"Shape mismatch: expected {tuple(shape)[cut:]} but got {old}")
    return torch.Size(shape[:cut]) + new


TABLE = """
ExpTransform() 1 real positive: x.exp() | y.log() | x
SigmoidTransform() 1 real unit_interval: inside_unit(torch.sigmoid(x)) | torch.logit(inside_unit(y))
    | -softplus(-x) - softplus(x)
TanhTransform() 1 real interval(-1.0,1.0): x.tanh() | torch.atanh(y)
    | 2 * (math.log(2.0) - x - softplus(-2 * x))
SoftplusTransform() 1 real positive: softplus(x) | torch.log(-torch.expm1(-y)) + y | -softplus(-x)
PowerTransform(exponent) exponent.sign() positive positive: x.pow(exponent)
    | y.pow(1 / exponent) | (exponent * y / x).abs().log()
AbsTransform() None real positive: x.abs() | y | None
SoftmaxTransform() None real_vector simplex: torch.softmax(x, -1) | y.log() | None
LowerCholeskyTransform() None independent(real,2) lower_cholesky: _on_diagonal(torch.exp, x)
    | _on_diagonal(torch.log, y) | None
PositiveDefiniteTransform() None independent(real,2) positive_definite: _square(_on_diagonal(
    torch.exp, x)) | _on_diagonal(torch.log, torch.linalg.cholesky(y)) | None
AffineTransform(loc, scale) torch.as_tensor(scale).sign() real real: loc + scale * x
    | (y - loc) / scale | torch.as_tensor(scale).abs().log().to(x.dtype).expand(x.shape)
"""


def _on_diagonal(function: Any, x: Any) -> Any:
    """A lower triangle with a function of its diagonal."""
    return x.tril(-1) + torch.diag_embed(function(x.diagonal(dim1=-2, dim2=-1)))


def _square(root: Any) -> Any:
    return root @ root.mT


def _of_row(line: str) -> type:
    """A class of a row: Note [Rows of transforms]."""
    head, rest = re.sub(r"\s+", " ", line).split(": ", 1)
    match = re.fullmatch(r"(\w+)\((.*?)\) (\S+) (\S+) (\S+)", head)
    assert match is not None, line
    name, given, sign, domain, codomain = match.groups()
    names = tuple(part for part in given.split(", ") if part)

    def member(text: str, *operands: str) -> Callable[..., Any]:
        made = eval(f"lambda {', '.join([*operands, *names])}: {text}", globals())
        return lambda self, *given: made(*given, *[getattr(self, p) for p in names])

    def __init__(self: Any, *args: Any, cache_size: int = 0, **named: Any) -> None:
        Transform.__init__(self, named.pop("cache_size", cache_size))
        dim = named.pop("event_dim", args[len(names)] if len(args) > len(names) else 0)
        vars(self).update(zip(names, args, strict=False), **named)
        if dim:
            self.domain = self.codomain = constraints.independent(constraints.real, dim)
            self._dim = dim

    forward, inverse, log = rest.split(" | ")
    log_of = member(log, "x", "y")
    members = {
        "__init__": __init__, "__doc__": f"The function ``{forward}``.", "__module__": __name__,
        "_parameters": names, "bijective": sign != "None", "_call": member(forward, "x"),
        "_inverse": member(inverse, "y"), "domain": eval(domain, dict(vars(constraints))),
        "codomain": eval(codomain, dict(vars(constraints))), "_dim": 0,
        "log_abs_det_jacobian": lambda self, x, y: sum_rightmost(log_of(self, x, y), self._dim),
        "forward_shape": _broadcast, "inverse_shape": _broadcast,
    }  # fmt: skip
    if sign == "None":
        del members["log_abs_det_jacobian"]
    else:
        members["sign"] = property(member(sign))
    return type(name, (Transform,), members)


def _broadcast(self: Any, shape: Any) -> Any:
    return torch.broadcast_shapes(
        shape, *[getattr(getattr(self, p), "shape", ()) for p in self._parameters]
    )


for _line in re.split(r"\n(?=\w)", TABLE.strip()):
    _class = _of_row(_line)
    globals()[_class.__name__] = _class
_table: Any = globals()
identity_transform = ComposeTransform([])


class StickBreakingTransform(Transform):
    """Vectors to points of the simplex of one dimension more, by breaking off shares of a stick."""

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def _offset(self, x: Any) -> Any:
        return torch.arange(x.shape[-1], 0, -1, dtype=x.dtype).log()

    def _call(self, x: Any) -> Any:
        z = inside_unit(torch.sigmoid(x - self._offset(x)))
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        rest = (1 - y.cumsum(-1))[..., :-1].clamp(min=torch.finfo(y.dtype).tiny)
        return y[..., :-1].log() - rest.log() + self._offset(rest)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Sum of the logarithms of the shares' derivatives."""
        x = x - self._offset(x)
        return (-x - softplus(-x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """Shape of the value."""
        return torch.Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        """Shape of the argument."""
        return torch.Size((*shape[:-1], shape[-1] - 1))


class ConstraintRegistry:
    """Transforms from unconstrained Tensors onto a set, by the set's class."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[..., Any]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Say which transform a set has; without a factory it is a decorator."""
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, constraints.Constraint)):
            raise TypeError(f"register: takes a Constraint or a class of them, got {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform onto a set."""
        if type(constraint) not in self._registry:
            raise NumgradNotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints"
            )
        return self._registry[type(constraint)](constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()
_EXP, _AFFINE = _table["ExpTransform"], _table["AffineTransform"]


def _onto_interval(c: Any) -> Any:
    if (c.lower_bound, c.upper_bound) == (0, 1):
        return _table["SigmoidTransform"]()
    scale = c.upper_bound - c.lower_bound
    return ComposeTransform([_table["SigmoidTransform"](), _AFFINE(c.lower_bound, scale)])


def _onto_half_line(c: Any) -> Any:
    if hasattr(c, "upper_bound"):
        return ComposeTransform([_EXP(), _AFFINE(c.upper_bound, -1)])
    return _EXP() if c.lower_bound == 0 else ComposeTransform([_EXP(), _AFFINE(c.lower_bound, 1)])


for _registry in (biject_to, transform_to):
    _set: Any = vars(constraints)
    _registry.register(_set["real"], lambda c: identity_transform)
    _registry.register(constraints.independent, lambda c, r=_registry: IndependentTransform(
        r(c.base_constraint), c.reinterpreted_batch_ndims))  # fmt: skip
    for _name in ("greater_than", "greater_than_eq", "less_than"):
        _registry.register(_set[_name], _onto_half_line)
    for _name in ("interval", "half_open_interval"):
        _registry.register(_set[_name], _onto_interval)
    _simplex = StickBreakingTransform if _registry is biject_to else _table["SoftmaxTransform"]
    _registry.register(_set["simplex"], lambda c, made=_simplex: made())
    _registry.register(_set["lower_cholesky"], lambda c: _table["LowerCholeskyTransform"]())
    for _name in ("positive_definite", "positive_semidefinite"):
        _registry.register(_set[_name], lambda c: _table["PositiveDefiniteTransform"]())
