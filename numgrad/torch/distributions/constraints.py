"""Sets that parameters and values of distributions are in: ``torch.distributions.constraints``.

Note [Rows of constraints]
--------------------------
``name(bounds) dim: check`` in the table is a class of constraints with these attributes, whose
``check`` is the expression for ``x``, over the last ``dim`` axes; ``discrete`` before the colon
says that values are integers. Rows without bounds are public as an instance, others as the class.
"""

from __future__ import annotations

import re
from typing import Any

import numgrad.torch as face
from numgrad.errors import NumgradAttributeError, NumgradNotImplementedError, NumgradValueError

torch: Any = face
"""The face, whose names follow from tables."""


class Constraint:
    """A set of Tensors, of whose members ``check`` is True."""

    is_discrete, event_dim = False, 0
    _bounds: tuple[str, ...] = ()

    def check(self, value: Any) -> Any:
        """Whether each event of a Tensor is in the set."""
        raise NumgradNotImplementedError(f"{self!r}: a set of this kind has no check of its own")

    def __repr__(self) -> str:
        name = "".join(part.capitalize() for part in type(self).__name__.split("_") if part)
        return f"{name}({', '.join(f'{b}={getattr(self, b)}' for b in self._bounds)})"


def _bounded(name: str, bounds: tuple[str, ...], dim: int, is_discrete: bool, text: str) -> type:
    """A class of constraints: Note [Rows of constraints]."""
    check = eval(f"lambda {', '.join(['x', *bounds])}: {text}", globals())

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        vars(self).update(dict(zip(bounds, values, strict=False)), **named)

    members = {
        "__init__": __init__, "__doc__": f"Tensors with ``{text}``.", "event_dim": dim,
        "__module__": __name__, "is_discrete": is_discrete, "_bounds": bounds,
        "check": lambda self, value: check(value, *[getattr(self, b) for b in bounds]),
    }  # fmt: skip
    return type(name, (Constraint,), members)


def _is_triangular(x: Any) -> Any:
    return (x.tril() == x).flatten(-2).all(-1)


def _is_symmetric(x: Any) -> Any:
    return _is_square(x) & torch.isclose(x, x.mT, atol=1e-6).flatten(-2).all(-1)


def _is_square(x: Any) -> Any:
    return torch.full(x.shape[:-2], x.shape[-2] == x.shape[-1], dtype=torch.bool)


def _is_definite(x: Any, least: float) -> Any:
    symmetric = _is_symmetric(x)
    return symmetric & (torch.linalg.eigvalsh(x) > least).all(-1) if symmetric.all() else symmetric


def _rows_of_unit_norm(x: Any) -> Any:
    tolerance = torch.finfo(x.dtype).eps * x.size(-1) * 10
    return ((x.detach().norm(dim=-1) - 1).abs() <= tolerance).all(-1)


TABLE = """
boolean() 0 discrete: (x == 0) | (x == 1)
one_hot() 1 discrete: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1)
nonnegative_integer_() 0 discrete: (x % 1 == 0) & (x >= 0)
positive_integer_() 0 discrete: (x % 1 == 0) & (x >= 1)
integer_interval(lower_bound, upper_bound) 0 discrete: (
    x % 1 == 0) & (lower_bound <= x) & (x <= upper_bound)
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
corr_cholesky() 2: lower_cholesky.check(x) & _rows_of_unit_norm(x)
square() 2: _is_square(x)
symmetric() 2: _is_symmetric(x)
positive_semidefinite() 2: _is_definite(x, -1e-6)
positive_definite() 2: _is_definite(x, 0)
"""
_ROW = re.compile(r"(\w+)\((.*?)\) (\d)( discrete)?: (.*)", re.DOTALL)
for _line in re.split(r"\n(?=\w)", TABLE.strip()):
    _name, _given, _dim, _is_discrete, _text = _ROW.fullmatch(_line).groups()  # pyright: ignore
    _names = tuple(part for part in _given.split(", ") if part)
    _class = _bounded(_name, _names, int(_dim), bool(_is_discrete), _text)
    globals()["_" * (not _names) + _name] = _class
    if not _names:
        globals()[_name.rstrip("_")] = _class()
_table: Any = globals()
greater_than, interval, real = _table["greater_than"], _table["interval"], _table["real"]


def __getattr__(name: str) -> Any:
    raise NumgradAttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


class independent(Constraint):
    """Events of several axes, all of whose elements are in a set."""

    _bounds = ("base_constraint", "reinterpreted_batch_ndims")

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        """Whether all elements of each event are in the set."""
        result, n = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if result.dim() < n:
            raise NumgradValueError(
                f"Expected value.dim() >= {self.event_dim} but got {value.dim()}"
            )
        return result.reshape((*result.shape[: result.dim() - n], -1)).all(-1)


class _dependent(Constraint):
    """A set that depends on other parameters: it has no check."""

    def __init__(self, *, is_discrete: Any = None, event_dim: Any = None) -> None:
        self._told = {"is_discrete": is_discrete, "event_dim": event_dim}

    def __call__(self, **told: Any) -> _dependent:
        return _dependent(**told)

    def _tell(self, name: str) -> Any:
        if self._told[name] is None:
            raise NumgradNotImplementedError(f"{name} of a dependent constraint is not known")
        return self._told[name]

    is_discrete = property(lambda self: self._tell("is_discrete"))  # type: ignore[assignment]
    event_dim = property(lambda self: self._tell("event_dim"))  # type: ignore[assignment]


class dependent_property(property, _dependent):  # type: ignore[misc]
    """A property whose value is a constraint; as an attribute of the class it is ``dependent``."""

    def __init__(self, fn: Any = None, **told: Any) -> None:
        property.__init__(self, fn)
        _dependent.__init__(self, **told)

    def __call__(self, fn: Any = None, **told: Any) -> dependent_property:  # noqa: D102
        return dependent_property(fn, **self._told)


def is_dependent(constraint: Any) -> bool:
    """Whether a set depends on other parameters."""
    return isinstance(constraint, _dependent)


dependent = _dependent()
positive, nonnegative = greater_than(0.0), _table["greater_than_eq"](0.0)
unit_interval, real_vector = interval(0.0, 1.0), independent(real, 1)
