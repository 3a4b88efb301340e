"""Writing under a mask and into a part, and what NumPy's writing functions need."""

import numpy as np
import pytest

import numgrad as ng
from tests.operations.test_write import (
    DTYPES,
    LAYOUTS,
    X,
    as_in_torch,
    check,
    gradient,
    leaf,
    same,
    values,
)

MASKS = [X > 0.3, X[0] > 0, X[:, :1, :1] > 0, np.array(True), np.zeros((4, 5), bool)]


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("mask", MASKS, ids=lambda m: str(m.shape))
def test_masked(mask):
    torch = pytest.importorskip("torch")
    there = torch.tensor(mask)
    for dtype in DTYPES:
        for layout in LAYOUTS.values():
            x, source = layout(X.astype(dtype)), values((3, 4, 7), dtype)
            expected = np.array(x)
            whole = np.broadcast_to(mask, X.shape)
            expected[whole] = source.ravel()[: whole.sum()]
            same(ng.masked_scatter(ng.from_numpy(x), mask, source), expected)
            same(ng.masked_fill(ng.from_numpy(x), mask, 3), np.where(mask, x.dtype.type(3), x))
    source = values((3, 4, 7))
    as_in_torch(
        lambda x, s: ng.masked_scatter(x, mask, s),
        lambda x, s: x.masked_scatter(there, s),
        X,
        source,
    )
    as_in_torch(
        lambda x, v: ng.masked_fill(x, mask, v),
        lambda x, v: x.masked_fill(there, v),
        X,
        np.array(2.5),
    )
    check(lambda x, s: ng.masked_scatter(x, mask, s), X, source)
    check(lambda x, v: ng.masked_fill(x, mask, v), X, 2.5)


def test_mask_larger_than_the_operand():
    mask = np.array([[True, False], [True, True]])
    same(ng.masked_fill(np.zeros(2), mask, 1), np.array([[1.0, 0.0], [1.0, 1.0]]))
    same(
        ng.masked_scatter(np.zeros(2), mask, [1.0, 2.0, 3.0, 4.0]), np.array([[1.0, 0.0], [2.0, 3]])
    )
    check(lambda x: ng.masked_fill(x, mask, 1), np.ones(2))


def test_masked_scatter_of_nothing():
    x, s = leaf(np.ones((2, 3))), leaf(np.ones(0))
    out = ng.masked_scatter(x, np.zeros((2, 3), bool), s)
    same(out, np.ones((2, 3)))
    out.sum().backward()
    assert gradient(s).shape == (0,)
    same(ng.masked_scatter(np.ones((0, 3)), np.zeros((0, 3), bool), [1.0]), np.ones((0, 3)))


def test_masked_fill_keeps_what_is_not_finite_apart():
    x = leaf([1.0, np.nan, -np.inf])
    out = ng.masked_fill(x, [False, True, True], 0.0)
    out.sum().backward()
    same(gradient(x), np.array([1.0, 0.0, 0.0]))


# ----------------------------------------------------------------------------------- into a part


@pytest.mark.parametrize(
    ("axis", "start", "end", "step"),
    [(0, None, None, 1), (1, 1, 3, 1), (-1, None, -1, 2), (2, -2, 100, 1), (1, 3, 1, 1)],
)
def test_slice_scatter(axis, start, end, step):
    torch = pytest.importorskip("torch")
    place = (*(slice(None),) * (axis % 3), slice(start, end, step))
    expected, source = X.copy(), values(X[place].shape)
    expected[place] = source
    same(ng.slice_scatter(X, source, axis=axis, start=start, end=end, step=step), expected)
    if X[place].size:
        end = end if end is None or end > 0 else end + X.shape[axis]
        as_in_torch(
            lambda x, s: ng.slice_scatter(x, s, axis=axis, start=start, end=end, step=step),
            lambda x, s: torch.slice_scatter(x, s, axis, start, end, step),
            X,
            source,
        )
    check(
        lambda x, s: ng.slice_scatter(x, s, axis=axis, start=start, end=end, step=step), X, source
    )


@pytest.mark.parametrize(("axis", "index"), [(0, 1), (1, -1), (-1, 4)])
def test_select_scatter(axis, index):
    torch = pytest.importorskip("torch")
    source = values(np.take(X, 0, axis).shape)
    as_in_torch(
        lambda x, s: ng.select_scatter(x, s, axis=axis, index=index),
        lambda x, s: torch.select_scatter(x, s, axis, index),
        X,
        source,
    )
    check(lambda x, s: ng.select_scatter(x, s, axis=axis, index=index), X, source)


@pytest.mark.parametrize(
    ("offset", "axis1", "axis2"), [(0, 0, 1), (1, 0, 1), (-2, 1, 2), (2, -1, 0), (-1, 2, 1)]
)
def test_diagonal_scatter(offset, axis1, axis2):
    torch = pytest.importorskip("torch")
    source = values(np.diagonal(X, offset, axis1, axis2).shape)
    as_in_torch(
        lambda x, s: ng.diagonal_scatter(x, s, offset=offset, axis1=axis1, axis2=axis2),
        lambda x, s: torch.diagonal_scatter(x, s, offset, axis1, axis2),
        X,
        source,
    )
    check(
        lambda x, s: ng.diagonal_scatter(x, s, offset=offset, axis1=axis1, axis2=axis2), X, source
    )


# -------------------------------------------------------------- NumPy's functions that mutate


def test_they_suffice_for_numpys_functions():
    """What ``np.put_along_axis``, ``np.place``, ... do is one write each."""
    x, mask, v = X[0], X[0] > 0, values((3,))
    expected = x.copy()
    np.place(expected, mask, v)
    same(ng.put(x, np.flatnonzero(mask), v[: mask.sum()]), expected)
    expected = x.copy()
    np.putmask(expected, mask, v)
    found = np.flatnonzero(mask)
    same(ng.put(x, found, v[found % v.size]), expected)
    expected = x.copy()
    np.copyto(expected, values((5,)), where=mask)
    same(ng.index_put(x, np.broadcast_to(values((5,)), x.shape)[mask], index=mask), expected)
    for wrap in (False, True):
        tall = np.zeros((7, 3))
        np.fill_diagonal(tall, v, wrap=wrap)
        stop = None if wrap else 3 * 3
        same(ng.put(np.zeros((7, 3)), np.arange(21)[:stop:4], v), tall)
    indices = np.array([[0, 2], [1, 1], [4, 0], [3, -1]])
    expected = x.copy()
    np.put_along_axis(expected, indices, values((4, 2)), 1)
    same(ng.scatter(x, indices, values((4, 2)), axis=1), expected)
