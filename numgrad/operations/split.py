"""Taking arrays apart."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from numgrad.core.axis import one_axis
from numgrad.core.batching import with_parameters
from numgrad.core.declare import composite, view
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.index import getitem
from numgrad.operations.join import concat, stack
from numgrad.operations.shape import as_index, as_operand


def _cuts(operation: str, n: int, sections: Any, equal: bool) -> tuple[int, ...]:
    """Where the parts begin and end along an axis of length ``n``."""
    if sections is None:
        raise NumgradTypeError(f"{operation}: give the number of parts, or where to cut")
    if not isinstance(sections, tuple | list | np.ndarray):
        count = as_index(operation, sections, "the number of parts")
        if count <= 0:
            raise NumgradValueError(f"{operation}: the number of parts must be positive")
        if equal and n % count:
            raise NumgradValueError(
                f"{operation}: an axis of length {n} cannot be split into {count} equal parts; "
                "use array_split"
            )
        small, extra = divmod(n, count)
        lengths = [small + (k < extra) for k in range(count)]
        return (0, *np.cumsum(lengths).tolist())
    cuts = [as_index(operation, k, "a place to cut") for k in sections]
    return (0, *cuts, n)


def _split(x: np.ndarray, cuts: tuple[int, ...], axis: int) -> tuple[np.ndarray, ...]:
    lead = (slice(None),) * axis
    stops = cuts[1:]
    return tuple([x[(*lead, slice(a, b))] for a, b in zip(cuts, stops, strict=False)])


@view(
    internal=True,
    linear=True,
    method=False,
    samples=[(((3, 4),), {"cuts": (0, 1, 4), "axis": 1})],
)
def split_at(x, *, cuts, axis=0):
    """Adjacent parts of an axis, as views, that together are the whole of it."""
    return _split(x, cuts, axis)


split_at.vjp(x=lambda g, axis: concat(g, axis=axis))
split_at.batch(with_parameters(lambda x, size, cuts, axis: {"axis": x.axes(axis)}))


def _parts(operation: str, x: Any, sections: Any, axis: int, equal: bool) -> tuple:
    x = as_operand(x)
    axis = one_axis(operation, as_index(operation, axis), len(x.shape))
    n = x.shape[axis]
    cuts = _cuts(operation, n, sections, equal)
    if all(0 <= a <= b <= n for a, b in pairwise(cuts)):
        return split_at(x, cuts=cuts, axis=axis)
    # cuts that are negative, beyond the end or not in order: each part as NumPy slices it
    lead = (slice(None),) * axis
    pairs = pairwise(cuts)
    return tuple(getitem(x, (*lead, slice(a, b))) for a, b in pairs)


@composite(ref=np.split, smooth=True)
def split(x, indices_or_sections, axis=0):
    """Parts along an axis: a number of equal ones, or cut at the given indices.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> ng.split(ng.arange(4.0), 2), ng.split(ng.arange(4.0), [1])
    ((tensor([0., 1.]), tensor([2., 3.])), (tensor([0.]), tensor([1., 2., 3.])))
    """
    return _parts("split", x, indices_or_sections, axis, True)


split.calls = [
    (((4, 2),), lambda x: split(x, 2)),
    (((4,),), lambda x: split(x, [1, 3])),
]


@composite(ref=np.array_split, smooth=True)
def array_split(x, indices_or_sections, axis=0):
    """As ``split``, but the parts need not be equal: the first ones are longer by one.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> ng.array_split(ng.arange(5.0), 2)
    (tensor([0., 1., 2.]), tensor([3., 4.]))
    """
    return _parts("array_split", x, indices_or_sections, axis, False)


array_split.calls = [
    (((5,),), lambda x: array_split(x, 3)),
]


@composite(ref=np.hsplit, method=False, smooth=True)
def hsplit(x, indices_or_sections):
    """Parts along the second axis; of an array of one axis along that.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> ng.hsplit(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), 2)[0]
    tensor([[1.],
            [3.]])
    """
    x = as_operand(x)
    return _parts("hsplit", x, indices_or_sections, min(1, len(x.shape) - 1), True)


hsplit.calls = [
    (((2, 4),), lambda x: hsplit(x, 2)),
]


@composite(ref=np.vsplit, method=False, smooth=True)
def vsplit(x, indices_or_sections):
    """Parts along the first axis.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> ng.vsplit(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), 2)[1]
    tensor([[3., 4.]])
    """
    return _parts("vsplit", x, indices_or_sections, 0, True)


vsplit.calls = [
    (((4, 2),), lambda x: vsplit(x, 2)),
]


@composite(ref=np.dsplit, method=False, smooth=True)
def dsplit(x, indices_or_sections):
    """Parts along the third axis.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> [part.shape for part in ng.dsplit(ng.ones((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _parts("dsplit", x, indices_or_sections, 2, True)


dsplit.calls = [
    (((1, 2, 4),), lambda x: dsplit(x, 2)),
]


@view(
    ref="numpy.unstack",
    linear=True,
    aliases=("unbind",),
    samples=[(((3, 4),), {"axis": 1})],
    errors=[(((),), {}, "NumgradIndexError")],
)
def unstack(x, *, axis=0):
    """The slices along an axis, as a tuple of views.

    Returns
    -------
    tuple of Tensors

    Examples
    --------
    >>> ng.unstack(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    (tensor([1., 2.]), tensor([3., 4.]))
    """
    axis = one_axis("unstack", axis, x.ndim)
    lead = (slice(None),) * axis
    return tuple([x[(*lead, k, Ellipsis)] for k in range(x.shape[axis])])


unstack.vjp(x=lambda g, axis: stack(g, axis=axis))
unstack.batch(with_parameters(lambda x, size, axis: {"axis": x.axes(axis)}))
