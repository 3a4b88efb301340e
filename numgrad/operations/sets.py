"""Arrays as sets: distinct elements, membership, unions.

Note [Gradients of sets]
------------------------
Which elements are distinct has no derivative; those that are returned are elements of the operands,
so the gradient goes to the first occurrence of each.
"""

from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.declare import Meta, composite, one_axis, primitive
from numgrad.operations.join import concat
from numgrad.operations.shape import as_operand, reshape
from numgrad.operations.shared_rules import OUTSIDE, no_shape
from numgrad.operations.sorting import sort
from numgrad.operations.take import take, take_backward

_REMEDY = OUTSIDE


@primitive(internal=True, method=False, differentiable=False)
def distinct_places(x, *, axis, equal_nan):
    """Where each distinct element, or slice, is found first."""
    return np.unique(x, return_index=True, axis=axis, equal_nan=equal_nan)[1]


@primitive(internal=True, method=False, smooth=True)
def distinct(x, *, axis, equal_nan):
    """Distinct elements, or slices along an axis, in order."""
    check_dtype("unique", x.dtype)
    return np.unique(x, axis=axis, equal_nan=equal_nan)


def _distinct_vjp(g, x, axis, equal_nan):
    positions = distinct_places(x, axis=axis, equal_nan=equal_nan)
    return take_backward(g, positions, shape=tuple(x.shape), axis=axis)


def _distinct_jvp(t_x, x, axis, equal_nan):
    return take(t_x, distinct_places(x, axis=axis, equal_nan=equal_nan), axis=axis)


distinct.vjp(x=_distinct_vjp).jvp(_distinct_jvp)


@primitive(internal=True, method=False, differentiable=False, outputs=True)
def distinct_all(x, *, axis, equal_nan):
    """First places, places of each element among the distinct ones, and how often these occur."""
    check_dtype("unique", x.dtype)
    return np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis,
        equal_nan=equal_nan,
    )[1:]  # fmt: skip


for _op in (distinct, distinct_places, distinct_all):
    _op.shape(no_shape("unique", _REMEDY))


@composite(ref=np.unique, method=False, smooth=True)
def unique(
    x,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    *,
    equal_nan=True,
    sorted=True,
):
    """Distinct elements in order, or distinct slices along an axis; the gradient as in a choice.

    It goes to the first occurrence of each. The shape depends on numbers, so ``ng.jit`` refuses.

    Parameters
    ----------
    return_index : bool
        Whether to return where each is found first.
    return_inverse : bool
        Whether to return where each element of ``x`` is among them.
    return_counts : bool
        Whether to return how often each occurs.
    sorted : bool
        Results are in order in either case.

    Returns
    -------
    Tensor
        With one axis, or the shape of ``x`` but shorter along the axis; a tuple if more is asked
        for.

    Examples
    --------
    >>> x = ng.tensor([3.0, 1.0, 3.0], requires_grad=True)
    >>> values, counts = ng.unique(x, return_counts=True)
    >>> values.detach(), counts
    (tensor([1., 3.]), tensor([1, 2]))
    >>> values.sum().backward()
    >>> x.grad
    tensor([1., 1., 0.])
    """
    x = as_operand(x)
    if axis is not None:
        axis = one_axis("unique", axis, len(x.shape))
    requested = (return_index, return_inverse, return_counts)
    if not any(requested):
        return distinct(x, axis=axis, equal_nan=equal_nan)
    result = distinct_all(x, axis=axis, equal_nan=equal_nan)
    values = take(x, result[0], axis=axis)
    return (values, *[value for value, wanted in zip(result, requested, strict=True) if wanted])


@primitive(internal=True, method=False, differentiable=False, outputs=True)
def runs(x, *, axis):
    """Where each run of equal slices begins, the run of each slice, and how long these are."""
    check_dtype("unique_consecutive", x.dtype)
    first = np.moveaxis(x, axis, 0)
    others = tuple(range(1, x.ndim))
    starts = np.ones(len(first), bool)
    starts[1:] = (first[1:] != first[:-1]).any(others)
    heads = np.flatnonzero(starts)
    return heads, np.cumsum(starts) - 1, np.diff(heads, append=len(first))


runs.shape(no_shape("unique_consecutive", _REMEDY))


@composite(method=False, smooth=True)
def unique_consecutive(x, return_inverse=False, return_counts=False, axis=None):
    """Elements, or slices along an axis, without those that equal the one before.

    The gradient goes to the first of each run. The shape depends on numbers, so ``ng.jit`` refuses.

    Parameters
    ----------
    return_inverse : bool
        Whether to return the place of each element of ``x`` among them.
    return_counts : bool
        Whether to return how long the runs are.

    Returns
    -------
    Tensor
        With one axis, or the shape of ``x`` but shorter along the axis; a tuple if more is asked
        for.

    Examples
    --------
    >>> values, counts = ng.unique_consecutive(ng.tensor([1.0, 1.0, 2.0, 1.0]), return_counts=True)
    >>> values, counts
    (tensor([1., 2., 1.]), tensor([2, 1, 1]))
    """
    x = as_operand(x)
    shape = tuple(x.shape)
    if axis is None:
        x = reshape(x, (-1,))
    axis_ = 0 if axis is None else one_axis("unique_consecutive", axis, len(shape))
    heads, inverse, counts = runs(x, axis=axis_)
    values = take(x, heads, axis=axis_)
    results = []
    if return_inverse:
        results.append(reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        results.append(counts)
    return (values, *results) if results else values


class UniqueAll(NamedTuple):
    """Distinct elements, their first places, places of all among them, and counts."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """Distinct elements and how often they occur."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """Distinct elements and the place of every element among them."""

    values: Any
    inverse_indices: Any


@composite(ref="numpy.unique_all", method=False, smooth=True)
def unique_all(x):
    """Distinct elements, and all that ``unique`` can tell of them; every NaN is one of its own.

    Returns
    -------
    UniqueAll
        ``values``, ``indices``, ``inverse_indices`` and ``counts``.

    Examples
    --------
    >>> ng.unique_all(ng.tensor([2, 1, 2])).counts
    tensor([1, 2])
    """
    return UniqueAll(*unique(x, True, True, True, equal_nan=False))


@composite(ref="numpy.unique_counts", method=False, smooth=True)
def unique_counts(x):
    """Distinct elements and how often they occur; every NaN is one of its own.

    Returns
    -------
    UniqueCounts
        ``values`` and ``counts``.

    Examples
    --------
    >>> ng.unique_counts(ng.tensor([2, 1, 2]))
    UniqueCounts(values=tensor([1, 2]), counts=tensor([1, 2]))
    """
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False))


@composite(ref="numpy.unique_inverse", method=False, smooth=True)
def unique_inverse(x):
    """Distinct elements and where each element is among them; every NaN is one of its own.

    Returns
    -------
    UniqueInverse
        ``values`` and ``inverse_indices``.

    Examples
    --------
    >>> ng.unique_inverse(ng.tensor([2, 1, 2])).inverse_indices
    tensor([1, 0, 1])
    """
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False))


@composite(ref="numpy.unique_values", method=False, smooth=True)
def unique_values(x):
    """Distinct elements in order; every NaN is one of its own.

    Returns
    -------
    Tensor
        With one axis.

    Examples
    --------
    >>> ng.unique_values(ng.tensor([2, 1, 2]))
    tensor([1, 2])
    """
    return unique(x, equal_nan=False)


# ------------------------------------------------------------------------------ of two operands


@primitive(internal=True, method=False, differentiable=False)
def membership(a, b, *, assume_unique, invert, kind):
    """Whether elements are among others."""
    return np.isin(a, b, assume_unique=assume_unique, invert=invert, kind=kind)


membership.shape(lambda a, b, *, assume_unique, invert, kind: Meta(a.shape, np.dtype(bool)))


@composite(ref=np.isin, method=False, differentiable=False)
def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    """Whether each element is one of those of another array.

    Parameters
    ----------
    element : array_like
        Elements that are looked for.
    test_elements : array_like
        What they are looked for in.
    assume_unique : bool
        Whether elements of both are distinct, which is faster.
    invert : bool
        Whether to tell where they are not.
    kind : {None, 'sort', 'table'}
        NumPy's name of an algorithm.

    Returns
    -------
    Tensor
        Of dtype bool and the shape of ``element``.

    Examples
    --------
    >>> ng.isin(ng.tensor([1.0, 2.0, 3.0]), [3.0, 1.0])
    tensor([ True, False,  True])
    """
    return membership(
        as_operand(element), as_operand(test_elements), assume_unique=assume_unique, invert=invert,
        kind=kind,
    )  # fmt: skip


@primitive(internal=True, method=False, differentiable=False, outputs=True)
def common_places(a, b, *, assume_unique):
    """Where the elements that two operands have in common are in each."""
    return np.intersect1d(a, b, assume_unique=assume_unique, return_indices=True)[1:]


common_places.shape(no_shape("intersect1d", _REMEDY))


def _flat(x: Any) -> Any:
    x = as_operand(x)
    return reshape(x, (prod(x.shape),))


@composite(ref=np.intersect1d, method=False, smooth=True)
def intersect1d(a, b, assume_unique=False, return_indices=False):
    """Elements that are in both operands, in order; the gradient goes to the first operand.

    Parameters
    ----------
    assume_unique : bool
        Whether elements of both are distinct, which is faster.
    return_indices : bool
        Whether to return where they are found first in each operand.

    Returns
    -------
    Tensor
        With one axis; with ``return_indices`` a tuple of three.

    Examples
    --------
    >>> ng.intersect1d(ng.tensor([3.0, 1.0, 2.0]), [2.0, 3.0])
    tensor([2., 3.])
    """
    a, b = _flat(a), _flat(b)
    dtype = np.result_type(a.dtype, b.dtype)
    first, second = common_places(a, b, assume_unique=assume_unique)
    values = take(a, first).astype(dtype)
    return (values, first, second) if return_indices else values


@composite(ref=np.union1d, method=False, smooth=True)
def union1d(a, b):
    """Elements that are in one of two operands, in order.

    Returns
    -------
    Tensor
        With one axis.

    Examples
    --------
    >>> ng.union1d(ng.tensor([3.0, 1.0]), [2.0, 3.0])
    tensor([1., 2., 3.])
    """
    return unique(concat(_flat(a), _flat(b), axis=0))


@composite(ref=np.setdiff1d, method=False, smooth=True)
def setdiff1d(a, b, assume_unique=False):
    """Elements of the first operand that are not in the second, in order.

    Parameters
    ----------
    assume_unique : bool
        Whether elements of both are distinct; then they stay in the order of ``a``.

    Returns
    -------
    Tensor
        With one axis.

    Examples
    --------
    >>> ng.setdiff1d(ng.tensor([3.0, 1.0, 2.0]), [2.0])
    tensor([1., 3.])
    """
    a, b = _flat(a), _flat(b)
    if not assume_unique:
        a, b = unique(a), unique(b)
    return a[isin(a, b, assume_unique=True, invert=True)]


@composite(ref=np.setxor1d, method=False, smooth=True)
def setxor1d(a, b, assume_unique=False):
    """Elements that are in exactly one of two operands, in order.

    Parameters
    ----------
    assume_unique : bool
        Whether elements of both are distinct, which is faster.

    Returns
    -------
    Tensor
        With one axis.

    Examples
    --------
    >>> ng.setxor1d(ng.tensor([3.0, 1.0]), [2.0, 3.0])
    tensor([1., 2.])
    """
    a, b = _flat(a), _flat(b)
    if not assume_unique:
        a, b = unique(a), unique(b)
    joined = concat(a, b, axis=0)
    joined = sort(joined)
    if not joined.shape[0]:
        return joined
    edge = np.ones(1, bool)
    changes = concat(edge, joined[1:] != joined[:-1], edge, axis=0)
    return joined[changes[1:] & changes[:-1]]
