"""Invertible functions with the logarithm of their derivative: ``torch.distributions.transforms``.

Note [Rows of transforms]
-------------------------
``Name(parameter, ...) sign domain codomain: forward | inverse | log of the derivative`` are classes
of functions, expressions of ``x`` and of ``y``, its value; those with a logarithm are bijective.
Two more expressions say how the shape of ``x`` becomes that of ``y``, and back. Parameters that are
transforms get the cache that the whole gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import cached_property, reduce  # noqa: F401 - names of rows
from itertools import accumulate  # noqa: F401
from typing import Any

from numgrad.errors import NumgradNotImplementedError, NumgradTypeError, NumgradValueError
from numgrad.torch.distributions import constraints, utils
from numgrad.torch.distributions.constraints import reinterpreted
from numgrad.torch.distributions.utils import torch
from numgrad.torch.nn.functional import pad, softplus


class Transform:
    """A function from ``domain`` to ``codomain``; ``inv`` is its inverse.

    Subclasses have ``_call``, ``_inverse`` and ``log_abs_det_jacobian``. A cache of size 1 keeps
    the last argument and its value, which go back without a loss.
    """

    bijective: Any = False
    domain: Any = constraints.real
    codomain: Any = constraints.real
    _parameters: tuple[str, ...] | None = None
    _call: Any = utils.lacking("_call")
    _inverse: Any = utils.lacking("_inverse")
    log_abs_det_jacobian: Any = utils.lacking("log_abs_det_jacobian")
    sign: Any = property(utils.lacking("sign"))
    inv: Any = cached_property(lambda self: _InverseTransform(self, self._cache_size))
    _inv: Any = property(lambda self: self.inv)

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise NumgradValueError("cache_size must be 0 or 1")
        self._cache_size, self._cached = cache_size, (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "inv"}

    def _begin(self, given: dict[str, Any], cache_size: int) -> None:
        """Take the parameters of a row."""
        Transform.__init__(self, cache_size)
        vars(self).update({key: _cached(value, cache_size) for key, value in given.items()})

    @cached_property
    def event_dim(self) -> int:
        """Number of axes of an event, on both sides."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise NumgradValueError("Please use either .domain.event_dim or .codomain.event_dim")

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same function with a cache, or without one."""
        if self._cache_size == cache_size:
            return self
        new = copy(self)
        new._begin({key: getattr(self, key) for key in self._parameters or ()}, cache_size)
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

    def _values(self) -> list[Any]:
        return [getattr(self, p) for p in self._parameters or ()]

    def __eq__(self, other: object) -> bool:
        if self._parameters is None or not isinstance(other, type(self)):
            return self is other
        pairs = zip(self._values(), other._values(), strict=True)
        return all(a is b or bool(torch.as_tensor(a == b).all()) for a, b in pairs)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        parts = [repr(v) for v in self._values() if isinstance(v, Transform | list)]
        return f"{type(self).__name__}({', '.join(parts)})"


def _cached(value: Any, cache_size: int) -> Any:
    """A parameter; transforms among them with a cache of their own."""
    if isinstance(value, list | tuple):
        return [_cached(each, cache_size) for each in value]
    return value.with_cache(cache_size) if isinstance(value, Transform) and cache_size else value


def _are_bijective(values: list[Any]) -> bool:
    """Whether the transforms among parameters are bijective."""
    parts = [t for v in values for t in (v if isinstance(v, list) else [v])]
    return all(t.bijective for t in parts if isinstance(t, Transform))


def _codomain(parts: list[Any]) -> Any:
    """Set of values of functions one after the other, of as many axes as these need."""
    dim, result = 0, constraints.real
    for part in parts:
        inner, result = part.domain, part.codomain
        dim = max(dim, inner.event_dim) + result.event_dim - inner.event_dim
    return reinterpreted(result, dim - result.event_dim)


def log_along(whole: Any, path: list[Any]) -> Any:
    """Sum of the logarithms of functions, by the argument and the values one after the other."""
    total, dim = torch.zeros_like(path[0]) if not whole.parts else 0.0, whole.domain.event_dim
    for part, x, y in zip(whole.parts, path, path[1:], strict=False):
        log = part.log_abs_det_jacobian(x, y)
        total = total + utils.sum_rightmost(log, dim - part.domain.event_dim)
        dim += part.codomain.event_dim - part.domain.event_dim
    return total


def _reshaped(shape: Any, before: Any, after: Any) -> Any:
    """A shape that ends in ``before``, with another end."""
    cut = len(shape) - len(before)
    if cut < 0 or shape[cut:] != tuple(before) or math.prod(before) != math.prod(after):
        raise NumgradValueError(
            f"ReshapeTransform: cannot reshape events of shape {tuple(before)} to {tuple(after)} "
            f"in {tuple(shape)}: too few axes, or another number of elements"
        )
    return shape[:cut] + torch.Size(after)


def _pieces(t: Any, *values: Any) -> Any:
    """Each transform with its piece of every value."""
    return zip(t.tseq, *[v.split(t.lengths, t.dim) for v in values], strict=True)


def _log_of_pieces(self: Any, x: Any, y: Any) -> Any:
    """Logarithms side by side; their sum where the axis is one of an event."""
    most = max(t.event_dim for t in self.tseq)
    logs = [
        utils.sum_rightmost(t.log_abs_det_jacobian(*parts), most - t.event_dim)
        for t, *parts in _pieces(self, x, y)
    ]
    dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + most
    return torch.cat(logs, dim) if dim < 0 else sum(logs)


def _shape(self: Any, shape: Any) -> Any:
    """A shape of enough axes, broadcast with those of the parameters."""
    if len(shape) < self.domain.event_dim:
        raise NumgradValueError("Too few dimensions on input")
    return torch.broadcast_shapes(shape, *[getattr(v, "shape", ()) for v in self._values()])


def _on_diagonal(function: Any, x: Any) -> Any:
    """A lower triangle with a function of its diagonal."""
    return x.tril(-1) + torch.diag_embed(function(x.diagonal(dim1=-2, dim2=-1)))


def _sign(scale: Any) -> Any:
    return scale.sign() if isinstance(scale, torch.Tensor) else (scale > 0) - (scale < 0)


def _log_size(scale: Any, x: Any) -> Any:
    """Logarithm of the size of a factor, in the shape of ``x``."""
    size = scale.abs() if isinstance(scale, torch.Tensor) else torch.full_like(x, abs(scale))
    return size.log().expand(x.shape)


def _sticks(x: Any) -> Any:
    """Logarithms of the odds at which parts of a stick are broken off, equal where ``x`` is 0."""
    return x - torch.arange(x.shape[-1], 0, -1, dtype=x.dtype).log()


def _broken(x: Any) -> Any:
    """Points of the simplex of one dimension more, by breaking off shares of a stick."""
    z = utils.inside_unit(torch.sigmoid(_sticks(x)))
    return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)


def _unbroken(y: Any) -> Any:
    """The vector that is broken to ``y``."""
    rest = (1 - y.cumsum(-1))[..., :-1].clamp(min=torch.finfo(y.dtype).tiny)
    return y[..., :-1].log() - rest.log() - _sticks(torch.zeros_like(rest))


def _correlations(x: Any) -> Any:
    """Cholesky factors of correlation matrices, by partial correlations ``tanh(x)``.

    Row by row they are the shares of a stick, as in Lewandowski, Kurowicka, Joe (2009).
    """
    eps = torch.finfo(x.dtype).eps
    partial = utils.vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), -1)
    rest = (1 - partial**2).sqrt().cumprod(-1)
    eye = torch.eye(partial.shape[-1], dtype=x.dtype)
    return (partial + eye) * pad(rest[..., :-1], [1, 0], value=1)


def _rest_of_rows(y: Any) -> Any:
    """Squares of the parts of rows of unit norm that lie behind each element."""
    return 1 - (y * y).cumsum(-1)


def _partial(y: Any) -> Any:
    """The vector of which Cholesky factors of correlations are made."""
    before = pad(_rest_of_rows(y)[..., :-1], [1, 0], value=1)
    values, rest = (utils.tril_matrix_to_vec(z, -1) for z in (y, before))
    return torch.atanh(values / rest.sqrt())


def _log_correlations(x: Any, y: Any) -> Any:
    rest = 0.5 * utils.tril_matrix_to_vec(_rest_of_rows(y), -2).log().sum(-1)
    return rest - 2 * (x + softplus(-2 * x) - math.log(2)).sum(-1)


def _triangle_shape(shape: Any) -> Any:
    n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
    if n * (n - 1) // 2 != shape[-1]:
        raise NumgradValueError("Input is not a flattened lower-diagonal number")
    return (*shape[:-1], n, n)


def _triangle_length(shape: Any) -> Any:
    if shape[-2] != shape[-1]:
        raise NumgradValueError("Input is not square")
    return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


TABLE = """
ComposeTransform(parts) math.prod([part.sign for part in parts])
    _codomain([part.inv for part in parts[::-1]]) _codomain(parts):
    reduce(lambda x, part: part(x), parts, x) | reduce(lambda y, part: part.inv(y), parts[::-1], y)
    | log_along(self, [*accumulate(parts[:-1], lambda x, part: part(x), initial=x), y])
    | reduce(lambda shape, part: part.forward_shape(shape), parts, x)
    | reduce(lambda shape, part: part.inverse_shape(shape), parts[::-1], y)
_InverseTransform(inv) inv.sign inv.codomain inv.domain: inv._inv_call(x) | inv(y)
    | -inv.log_abs_det_jacobian(y, x) | inv.inverse_shape(x) | inv.forward_shape(y)
IndependentTransform(base_transform, reinterpreted_batch_ndims) base_transform.sign
    reinterpreted(base_transform.domain, reinterpreted_batch_ndims)
    reinterpreted(base_transform.codomain, reinterpreted_batch_ndims):
    base_transform(x) | base_transform.inv(y)
    | sum_rightmost(base_transform.log_abs_det_jacobian(x, y), reinterpreted_batch_ndims)
    | base_transform.forward_shape(x) | base_transform.inverse_shape(y)
ReshapeTransform(in_shape, out_shape) None reinterpreted(real, len(in_shape))
    reinterpreted(real, len(out_shape)): x.reshape(_reshaped(x.shape, in_shape, out_shape))
    | y.reshape(_reshaped(y.shape, out_shape, in_shape))
    | torch.zeros(x.shape[: x.dim() - len(in_shape)], dtype=x.dtype)
    | _reshaped(x, in_shape, out_shape) | _reshaped(y, out_shape, in_shape)
CatTransform(tseq, dim = 0, lengths = 1) None cat([t.domain for t in tseq], dim, lengths)
    cat([t.codomain for t in tseq], dim, lengths):
    torch.cat([t(v) for t, v in _pieces(self, x)], dim)
    | torch.cat([t.inv(v) for t, v in _pieces(self, y)], dim) | _log_of_pieces(self, x, y) | x | y
StackTransform(tseq, dim = 0) None stack([t.domain for t in tseq], dim)
    stack([t.codomain for t in tseq], dim):
    torch.stack([t(v) for t, v in zip(tseq, x.unbind(dim), strict=True)], dim)
    | torch.stack([t.inv(v) for t, v in zip(tseq, y.unbind(dim), strict=True)], dim)
    | torch.stack([t.log_abs_det_jacobian(*v) for t, *v in zip(
    tseq, x.unbind(dim), y.unbind(dim), strict=True)], dim) | x | y
ExpTransform() 1 real positive: x.exp() | y.log() | x
SigmoidTransform() 1 real unit_interval: inside_unit(torch.sigmoid(x))
    | inside_unit(y).log() - torch.log1p(-inside_unit(y)) | -softplus(-x) - softplus(x)
TanhTransform() 1 real interval(-1.0, 1.0): x.tanh() | torch.atanh(y)
    | 2 * (math.log(2.0) - x - softplus(-2 * x))
SoftplusTransform() 1 real positive: softplus(x) | torch.log(-torch.expm1(-y)) + y | -softplus(-x)
PowerTransform(exponent) _sign(exponent) positive positive: x.pow(exponent) | y.pow(1 / exponent)
    | (exponent * y / x).abs().log()
AffineTransform(loc, scale, event_dim = 0) _sign(scale) reinterpreted(real, event_dim)
    reinterpreted(real, event_dim): loc + scale * x | (y - loc) / scale
    | sum_rightmost(_log_size(scale, x), event_dim)
CumulativeDistributionTransform(distribution) 1 distribution.support unit_interval:
    distribution.cdf(x) | distribution.icdf(y) | distribution.log_prob(x)
AbsTransform() None real positive: x.abs() | y
SoftmaxTransform() None real_vector simplex: torch.softmax(x, -1) | y.log()
LowerCholeskyTransform() None independent(real, 2) lower_cholesky: _on_diagonal(torch.exp, x)
    | _on_diagonal(torch.log, y)
PositiveDefiniteTransform() None independent(real, 2) positive_definite:
    (root := _on_diagonal(torch.exp, x)) @ root.mT
    | _on_diagonal(torch.log, torch.linalg.cholesky(y))
StickBreakingTransform() None real_vector simplex: _broken(x) | _unbroken(y)
    | (y[..., :-1].log() - softplus(_sticks(x))).sum(-1)
    | (*x[:-1], x[-1] + 1) | (*y[:-1], y[-1] - 1)
CorrCholeskyTransform() None real_vector corr_cholesky: _correlations(x) | _partial(y)
    | _log_correlations(x, y) | _triangle_shape(x) | _triangle_length(y)
"""
_table: Any = globals()
_SET = r"(\w[\w.]*(?:\((?:[^()]|\([^()]*\))*\))?)"


def _of_row(row: str) -> None:
    """Add a class: Note [Rows of transforms]."""
    head, text = row.split(": ", 1)
    name, given, *sets = utils.groups(rf"(\w+)\((.*?)\) {_SET} {_SET} {_SET}", head)
    names, scope = utils.parameters_of(given), vars(utils) | vars(constraints) | _table
    formulas = text.split(" | ")
    members: dict[str, Any] = {
        "__init__": utils.initializer(names, "cache_size=0"), "__module__": __name__,
        "__doc__": f"The function ``{formulas[0]}``.",
        "bijective": len(formulas) > 2 and property(lambda self: _are_bijective(self._values())),
        "_parameters": (*names,), "forward_shape": _shape, "inverse_shape": _shape,
    } | {
        key: utils.attribute_of(value, names, scope)
        for key, value in zip(("sign", "domain", "codomain"), sets, strict=True)
        if value != "None"
    } | {
        key: utils.method_of(formula, names, scope, *operands)
        for (key, operands), formula in zip(_METHODS.items(), formulas, strict=False)
    }  # fmt: skip
    _table[name] = type(name, (Transform,), members)


_METHODS = {
    "_call": "x", "_inverse": "y", "log_abs_det_jacobian": "xy", "forward_shape": "x",
    "inverse_shape": "y",
}  # fmt: skip
"""Methods that the expressions of a row are, and their operands."""
for (_row,) in utils.rows(TABLE):
    _of_row(_row)
_InverseTransform = _table["_InverseTransform"]
NAMES = [_name for _name in _table if _name.endswith("Transform") and _name[0] != "_"]
ComposeTransform = _table["ComposeTransform"]
identity_transform = ComposeTransform([])
identity_transform.inv = identity_transform
NAMES += ["identity_transform", "biject_to", "transform_to"]


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
            raise NumgradTypeError(
                f"register: takes a Constraint or a class of them, got {constraint!r}"
            )
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


def _is_unit(c: Any) -> bool:
    return isinstance(c.lower_bound, int | float) and (c.lower_bound, c.upper_bound) == (0, 1)


ONTO = """
real: identity_transform
independent: IndependentTransform(onto(c.base_constraint), c.reinterpreted_batch_ndims)
greater_than greater_than_eq: ComposeTransform([ExpTransform(), AffineTransform(c.lower_bound, 1)])
less_than: ComposeTransform([ExpTransform(), AffineTransform(c.upper_bound, -1)])
interval half_open_interval: SigmoidTransform() if _is_unit(c) else ComposeTransform(
    [SigmoidTransform(), AffineTransform(c.lower_bound, c.upper_bound - c.lower_bound)])
simplex: StickBreakingTransform() if onto is biject_to else SoftmaxTransform()
corr_cholesky: CorrCholeskyTransform()
cat: CatTransform([onto(part) for part in c.cseq], c.dim, c.lengths)
stack: StackTransform([onto(part) for part in c.cseq], c.dim)
lower_cholesky: LowerCholeskyTransform()
positive_definite positive_semidefinite: PositiveDefiniteTransform()
"""
"""Sets, and the transform ``onto`` a set ``c``; the last two rows are no bijections."""
for _number, (_row,) in enumerate(utils.rows(ONTO)):
    _sets, _text = _row.split(": ")
    for _registry in (biject_to, transform_to)[_number > 8 :]:
        _factory = eval(f"lambda onto: lambda c: {_text}", _table)(_registry)
        for _name in _sets.split():
            _registry.register(vars(constraints)[_name], _factory)
