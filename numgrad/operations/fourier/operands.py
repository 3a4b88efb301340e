"""Axes, lengths and norms as callers write them, checked, and operands of these lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.core.axis import normalize_axes
from numgrad.errors import NumgradValueError
from numgrad.operations.extend import pad_constant
from numgrad.operations.fourier.spectra import ADJOINT_NORM
from numgrad.operations.index import getitem
from numgrad.operations.shape import as_index, as_operand


def checked_norm(operation: str, norm: str | None) -> str:
    """The norm by its name."""
    norm = "backward" if norm is None else norm
    if norm not in ADJOINT_NORM:
        raise NumgradValueError(
            f"{operation}: norm is 'backward', 'ortho' or 'forward', got {norm!r}"
        )
    return norm


def axes_in_order(operation: str, axes: Any, s: Any, ndim: int) -> tuple[int, ...]:
    """Axes as they are written, not below 0; by default the last ones, as many as lengths."""
    if axes is None:
        count = ndim if s is None else len(_as_sequence(s))
        if count > ndim:
            raise NumgradValueError(
                f"{operation}: {count} lengths s={s!r} for an operand of {ndim} axes"
            )
        return tuple(range(ndim - count, ndim))
    given = [as_index(operation, a) for a in _as_sequence(axes)]
    found = tuple([normalize_axes(operation, a, ndim)[0] for a in given])
    if s is not None and len(_as_sequence(s)) != len(found):
        raise NumgradValueError(f"{operation}: s={s!r} and axes={axes!r} have different lengths")
    return found


def _as_sequence(values: Any) -> Sequence[Any]:
    return tuple(values) if hasattr(values, "__iter__") else (values,)


def lengths(operation: str, s: Any, x: Any, axes: Sequence[int]) -> list[Any]:
    """The length that each axis is to have; None and -1 leave it."""
    given = [None] * len(axes) if s is None else _as_sequence(s)
    found = []
    for n, axis in zip(given, axes, strict=True):
        found.append(x.shape[axis] if n is None or n == -1 else as_index(operation, n, "a length"))
        check_points(operation, found[-1], x)
    return found


def check_points(operation: str, n: Any, x: Any) -> None:
    """Raise if there is nothing to transform."""
    if n < 1:
        raise NumgradValueError(
            f"{operation}: {n} points along an axis of an operand of shape {tuple(x.shape)}; a "
            "transform needs at least one"
        )


def points(name: str, n: Any) -> tuple[Any]:
    """The number of points along one axis, as lengths of axes are given."""
    if n is not None and as_index(name, n, "n") < 1:
        raise NumgradValueError(f"{name}: n={n} points; a transform needs at least one")
    return (n,)


def resized(x: Any, axes: Sequence[int], sizes: Sequence[Any]) -> Any:
    """The operand cut, or filled up with zeros, to the given lengths."""
    wanted = dict(zip(axes, sizes, strict=True))
    cut = [slice(None)] * len(x.shape)
    widths = [(0, 0)] * len(x.shape)
    for axis, n in wanted.items():
        if n < x.shape[axis]:
            cut[axis] = slice(0, n)
        elif n > x.shape[axis]:
            widths[axis] = (0, n - x.shape[axis])
    if cut != [slice(None)] * len(cut):
        x = getitem(x, tuple(cut))
    return pad_constant(x, widths=tuple(widths)) if any(after for _, after in widths) else x


def operand(operation: str, x: Any) -> Any:
    """The operand, which must have an axis."""
    x = as_operand(x)
    if not len(x.shape):
        raise NumgradValueError(f"{operation}: the operand has no axis; use a 1-d array")
    return x
