"""Sets that parameters and values of distributions are in: ``torch.distributions.constraints``.

Note [Rows of constraints]
--------------------------
``name(bounds) dim discrete: check`` in the table is a class of constraints with these attributes,
whose ``check`` is the expression for ``x``, over the last ``dim`` axes, which is an expression of
the bounds as well; ``discrete``, or ``discrete if`` and a condition, says that values are integers.
Rows without bounds are public as an instance ``name`` of a class ``_name``, others as the class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.errors import NumgradAttributeError, NumgradNotImplementedError
from numgrad.random.generator import at_once
from numgrad.torch.distributions.utils import (
    attribute_of,
    groups,
    method_of,
    parameters_of,
    rows,
    torch,
)


class Constraint:
    """A set of Tensors, of whose members ``check`` is True."""

    is_discrete: Any = False
    event_dim: Any = 0
    _bounds: tuple[str, ...] = ()
    _is_row = False

    def __init__(self, *values: Any, **named: Any) -> None:
        vars(self).update(zip(self._bounds, values, strict=False), **named)

    def check(self, value: Any) -> Any:
        """Whether each event of a Tensor is in the set."""
        raise NumgradNotImplementedError(f"{self!r}: a set of this kind has no check of its own")

    def __repr__(self) -> str:
        name = "".join(part.capitalize() for part in type(self).__name__.split("_") if part)
        return f"{name}({', '.join(f'{b}={getattr(self, b)}' for b in self._bounds)})"


def _is_triangular(x: Any) -> Any:
    return (x.tril() == x).flatten(-2).all(-1)


def _is_square(x: Any) -> Any:
    return torch.full(x.shape[:-2], x.shape[-2] == x.shape[-1], dtype=torch.bool)


def _is_symmetric(x: Any) -> Any:
    square = _is_square(x)
    return (
        square & torch.isclose(x, x.mT, atol=1e-6).flatten(-2).all(-1) if square.all() else square
    )


def _is_definite(x: Any, least: float) -> Any:
    symmetric = _is_symmetric(x)
    return symmetric & (torch.linalg.eigvalsh(x) > least).all(-1) if symmetric.all() else symmetric


def _all_rightmost(x: Any, dim: int) -> Any:
    return x.flatten(-dim).all(-1) if dim else x


def _has_rows_of_unit_norm(x: Any) -> Any:
    tolerance = torch.finfo(x.dtype).eps * x.size(-1) * 10
    return ((x.detach().norm(dim=-1) - 1).abs() <= tolerance).all(-1)


TABLE = """
boolean() 0 discrete: (x == 0) | (x == 1)
one_hot() 1 discrete: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1)
integer_greater_than(lower_bound) 0 discrete: (x % 1 == 0) & (x >= lower_bound)
integer_interval(lower_bound, upper_bound) 0 discrete:
    (x % 1 == 0) & (lower_bound <= x) & (x <= upper_bound)
multinomial(upper_bound) 1 discrete: (x >= 0).all(-1) & (x.sum(-1) <= upper_bound)
real() 0: x == x
greater_than(lower_bound) 0: lower_bound < x
greater_than_eq(lower_bound) 0: lower_bound <= x
less_than(upper_bound) 0: x < upper_bound
half_open_interval(lower_bound, upper_bound) 0: (lower_bound <= x) & (x < upper_bound)
interval(lower_bound, upper_bound) 0: (lower_bound <= x) & (x <= upper_bound)
simplex() 1: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)
lower_triangular() 2: _is_triangular(x)
lower_cholesky() 2: _is_triangular(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)
corr_cholesky() 2: lower_cholesky.check(x) & _has_rows_of_unit_norm(x)
square() 2: _is_square(x)
symmetric() 2: _is_symmetric(x)
positive_semidefinite() 2: _is_definite(x, -1e-6)
positive_definite() 2: _is_definite(x, 0)
independent(base_constraint, reinterpreted_batch_ndims)
    base_constraint.event_dim + reinterpreted_batch_ndims discrete if base_constraint.is_discrete:
    _all_rightmost(base_constraint.check(x), reinterpreted_batch_ndims)
MixtureSameFamilyConstraint(base_constraint) base_constraint.event_dim
    discrete if base_constraint.is_discrete:
    base_constraint.check(x.unsqueeze(-1 - base_constraint.event_dim)).all(-1)
cat(cseq, dim = 0, lengths = 1) max(c.event_dim for c in cseq)
    discrete if any(c.is_discrete for c in cseq):
    torch.cat([c.check(v) for c, v in zip(cseq, x.split(lengths, dim), strict=True)], dim)
stack(cseq, dim = 0) max(c.event_dim + (dim + c.event_dim < 0) for c in cseq)
    discrete if any(c.is_discrete for c in cseq):
    torch.stack([c.check(v) for c, v in zip(cseq, x.unbind(dim), strict=True)], dim)
"""
_table: Any = globals()
for (_row,) in rows(TABLE):
    _name, _given, _dim, _discrete, _is_discrete, _text = groups(
        r"(\w+)\((.*?)\) (.+?)( discrete)?(?: if (.*?))?: (.*)", _row
    )
    _bounds = parameters_of(_given)
    _class = type("_" * (not _bounds) + _name, (Constraint,), {
        "__doc__": f"Tensors with ``{_text}``.", "__module__": __name__, "_is_row": True,
        "event_dim": attribute_of(_dim, _bounds, _table),
        "is_discrete": attribute_of(_is_discrete or str(bool(_discrete)), _bounds, _table),
        "_bounds": (*_bounds,), "check": method_of(_text, _bounds, _table, "x"),
    } | {key: eval(default) for key, (_, default) in _bounds.items() if default})  # fmt: skip
    _table[_class.__name__] = _class
    if not _bounds:
        _table[_name] = _class()
greater_than, interval, real = _table["greater_than"], _table["interval"], _table["real"]
independent = _table["independent"]


def __getattr__(name: str) -> Any:
    raise NumgradAttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def reinterpreted(constraint: Any, dim: int) -> Any:
    """A set of events of ``dim`` axes more."""
    return independent(constraint, dim) if dim > 0 else constraint


def holds(constraint: Any, value: Any) -> bool:
    """Whether all events are in a set; True of traced and batched ones."""
    if not at_once():
        return True
    while type(constraint) is independent:  # of which all elements count here
        constraint = constraint.base_constraint
    numbers = all(isinstance(getattr(constraint, b), int | float) for b in constraint._bounds)
    if constraint.event_dim or not (constraint._is_row and numbers):
        return bool(constraint.check(value).all())
    # comparisons of small arrays take a fifth of the time of those of Tensors
    return bool(constraint.check(value.detach().numpy()).all())


class _dependent(Constraint):
    """A set that depends on other parameters: it has no check."""

    def __init__(self, *, is_discrete: Any = None, event_dim: Any = None) -> None:
        self._told = {"is_discrete": is_discrete, "event_dim": event_dim}

    def __call__(self, **told: Any) -> _dependent:
        return _dependent(**self._told | told)

    def _tell(self, name: str) -> Any:
        if self._told[name] is None:
            raise NumgradNotImplementedError(f"{name} of a dependent constraint is not known")
        return self._told[name]

    is_discrete = property(lambda self: self._tell("is_discrete"))
    event_dim = property(lambda self: self._tell("event_dim"))


class dependent_property(property, _dependent):  # type: ignore[misc]
    """A property whose value is a constraint; as an attribute of the class it is ``dependent``."""

    def __init__(self, fn: Any = None, **told: Any) -> None:
        property.__init__(self, fn)
        _dependent.__init__(self, **told)

    def __call__(self, fn: Callable[..., Any]) -> dependent_property:  # type: ignore[override]
        """Decorate a property."""
        return dependent_property(fn, **self._told)


def is_dependent(constraint: Any) -> bool:
    """Whether a set depends on other parameters."""
    return isinstance(constraint, _dependent)


dependent = _dependent()
positive, nonnegative = greater_than(0.0), _table["greater_than_eq"](0.0)
unit_interval, real_vector = interval(0.0, 1.0), independent(real, 1)
nonnegative_integer, positive_integer = map(_table["integer_greater_than"], (0, 1))
