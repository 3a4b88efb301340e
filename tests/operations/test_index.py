"""Reading at basic and advanced indices, take, take_along_axis."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

rng = np.random.default_rng(1)
X = rng.normal(size=(3, 4, 5))
MASK = X > 0.3
ROWS, J = np.array([[0, 2], [-1, 1]]), np.array([1, 3])

INDICES = {
    "integer": 1,
    "negative": -1,
    "slice": slice(None, None, -2),
    "tuple": (slice(1, None), 2),
    "ellipsis": (Ellipsis, 1),
    "none": (None, 1, None),
    "0-d": (1, 2, 3),
    "numpy integer": np.int64(2),
    "list": [2, 0, 2],
    "array": ROWS,
    "second axis": (slice(None), J),
    "last axis": (Ellipsis, J),
    "two arrays": (ROWS, J),
    "arrays in the middle": (slice(None), ROWS, J),
    "apart": (J - 1, slice(None), J),
    "apart by none": (J - 1, None, J),
    "apart by nothing": (J - 1, J, Ellipsis, J),
    "apart by an Ellipsis of nothing": (slice(None), J, Ellipsis, 0),
    "arrays apart by an Ellipsis of nothing": (slice(None), J, Ellipsis, ROWS),
    "an Ellipsis of nothing first": (Ellipsis, slice(None), J, 0),
    "integer and array": (0, slice(None), J),
    "array and integer": (slice(None), J, 2),
    "integer beside array": (1, J),
    "slices and arrays": (slice(None, None, -1), J, slice(1, 4, 2)),
    "new axis and array": (None, J - 1, None),
    "three": (J - 1, J, J),
    "mask": MASK,
    "mask of first axes": MASK[:, :, 0],
    "mask of one axis": np.array([True, False, True]),
    "mask list": [True, False, True],
    "mask and integer": (MASK[:, :, 0], 1),
    "mask and array": (np.array([True, False, True]), J),
    "mask of last axes": (slice(None), MASK[0]),
    "empty list": [],
    "true": True,
    "false": False,
    "true and slice": (True, slice(None, 2)),
    "empty mask": np.zeros((3, 4), bool),
    "mask without elements": np.zeros((3, 0), bool),
    "unsigned": np.array([0, 2], np.uint8),
}


@pytest.mark.parametrize("name", INDICES)
def test_values_are_numpys(name):
    index = INDICES[name]
    for x in (X, X.astype(np.float32), (X * 10).astype(np.int16), MASK, X + 1j):
        for layout in (x, np.asfortranarray(x), x.transpose(0, 1, 2)[::1]):
            got = ng.from_numpy(layout)[index]
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got.numpy(), x[index], strict=True)


@pytest.mark.parametrize("name", INDICES)
def test_strided_operand(name):
    x = np.repeat(X, 2, axis=1)[:, ::-2]
    np.testing.assert_array_equal(ng.from_numpy(x)[INDICES[name]].numpy(), x[INDICES[name]])


@pytest.mark.parametrize("name", INDICES)
def test_gradients(name):
    index = INDICES[name]
    expected = np.zeros_like(X)
    weights = np.cos(np.arange(X[index].size)).reshape(X[index].shape)
    np.add.at(expected, index, weights)
    t = ng.tensor(X, requires_grad=True)
    ng.sum(t[index] * weights).backward()
    np.testing.assert_allclose(t.grad.numpy(), expected)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ["slice", "array", "apart", "mask", "integer beside array", "0-d"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_second_derivatives(name, dtype):
    t = ng.tensor(X[:, :, :4].astype(dtype), requires_grad=True)
    index = INDICES[name] if name != "mask" else MASK[:, :, :4]
    assert gradcheck(lambda t: t[index], (t,))
    assert gradgradcheck(lambda t: ng.sin(t[index]), (t,))


def test_repeated_indices_accumulate():
    t = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    t[[0, 0, 2]].sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), [2.0, 0.0, 1.0])


def test_tensor_as_index():
    t = ng.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(t[ng.tensor([2, 0])].detach().numpy(), X[[2, 0]])
    np.testing.assert_array_equal(t[t > 0.3].detach().numpy(), X[MASK])
    np.testing.assert_array_equal(t[ng.tensor(1), ng.tensor([1])].detach().numpy(), X[1, [1]])


def test_an_index_may_be_changed_afterwards():
    t = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    index = np.array([0, 0, 2])
    y = t[index]
    index[:] = 1
    y.sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), [2.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (3, "out of bounds|out of range"),
        ([0, 3], "index 3 is out of range"),
        ((slice(None), [-5]), "index -5 is out of range"),
        (([0], [4]), "index 4 is out of range"),
        (1.0, "float"),
        ([0.5], "float64"),
        ("a", "index"),
        ((0, 0, 0, 0), "indices"),
        (([0], 0, 0, 0), "4 indices"),
        (np.zeros((2, 4), bool), r"mask of shape \(2, 4\)"),
        (([0, 1], [0, 1, 2]), "do not broadcast"),
        ((Ellipsis, [0], Ellipsis), "Ellipsis"),
    ],
)
def test_errors(index, text):
    t = ng.tensor(X, requires_grad=True)
    with pytest.raises(ng.NumgradIndexError, match=text):
        t[index]
    np.testing.assert_array_equal(t.detach().numpy(), X)


# --------------------------------------------------------------------------------------- take


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("indices", [2, [0, 2, -1, 0], ROWS, []])
def test_take(axis, indices):
    indices = np.asarray(indices, dtype=int)
    for x in (X, X.astype(np.float32), (X * 10).astype(np.int8), X.T):
        got = ng.take(ng.from_numpy(x), indices, axis=axis)
        expected = np.asarray(np.take(x, indices, axis))
        np.testing.assert_array_equal(got.numpy(), expected, strict=True)
    t = ng.tensor(X[:, :, :3], requires_grad=True)
    assert gradcheck(lambda t: ng.take(t, indices, axis=axis), (t,))
    if indices.size:
        assert gradgradcheck(lambda t: ng.sin(ng.take(t, indices, axis=axis)), (t,))


def test_take_errors():
    t = ng.tensor(X)
    with pytest.raises(ng.NumgradIndexError, match="index 5 is out of range for axis 2"):
        ng.take(t, [0, 5], axis=2)
    with pytest.raises(ng.NumgradIndexError, match="60 elements"):
        ng.take(t, [60])
    with pytest.raises(ng.NumgradIndexError, match="integers"):
        ng.take(t, [0.5])
    with pytest.raises(ng.NumgradIndexError, match="axis 3"):
        ng.take(t, [0], axis=3)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_axis(axis):
    order = np.argsort(X, axis=axis)
    t = ng.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(
        ng.take_along_axis(t, order, axis).detach().numpy(), np.sort(X, axis)
    )
    short = np.take(order, [0, 0, 1], axis=axis)
    assert gradcheck(lambda t: ng.take_along_axis(t, short, axis), (t,))
    assert gradgradcheck(lambda t: ng.sin(ng.take_along_axis(t, short, axis)), (t,))


def test_take_along_axis_broadcasts():
    t = ng.tensor(X[:, :1], requires_grad=True)
    indices = rng.integers(0, 5, size=(1, 4, 2))
    y = ng.take_along_axis(t, indices, 2)
    expected = np.take_along_axis(
        np.broadcast_to(X[:, :1], (3, 4, 5)), np.broadcast_to(indices, (3, 4, 2)), 2
    )
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    assert gradcheck(lambda t: ng.take_along_axis(t, indices, 2), (t,))
    flat = ng.take_along_axis(t, np.array([3, 3, 0]), None)
    np.testing.assert_array_equal(flat.detach().numpy(), X[:, :1].ravel()[[3, 3, 0]])


def test_take_along_axis_errors():
    t = ng.tensor(X)
    with pytest.raises(ng.NumgradValueError, match="number of axes"):
        ng.take_along_axis(t, np.array([0]), 0)
    with pytest.raises(ng.NumgradValueError, match="broadcast"):
        ng.take_along_axis(t, np.zeros((2, 4, 1), int), 2)
    with pytest.raises(ng.NumgradIndexError, match="out of range"):
        ng.take_along_axis(t, np.full((3, 4, 1), 5), 2)


def test_gradient_agrees_with_torch():
    torch = pytest.importorskip("torch")
    x = torch.tensor(X, requires_grad=True)
    index = (torch.tensor([0, 0, 2]), slice(1, 3), torch.tensor([1, 1, -1]))
    (x[index] ** 2).sum().backward()
    t = ng.tensor(X, requires_grad=True)
    (t[[0, 0, 2], 1:3, [1, 1, -1]] ** 2).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), x.grad.numpy())


@pytest.mark.parametrize("index", [1, -1, True, False, np.int8(1), np.uint64(2)])
@pytest.mark.parametrize("wrap", [np.array, ng.tensor, lambda i: i], ids=["array", "tensor", "own"])
def test_an_index_without_axes(index, wrap):
    values = np.arange(12.0).reshape(3, 4)
    x = ng.tensor(values, requires_grad=True)
    y = x[wrap(index)]
    expected = values[index]
    assert y.shape == expected.shape
    assert np.array_equal(y.detach().numpy(), expected)
    assert np.array_equal((x * 1.0)[wrap(index), ...].detach().numpy(), values[index, ...])
    (y * y).sum().backward()
    slope = np.zeros((3, 4))
    slope[index] = 2 * values[index]
    assert np.array_equal(x.grad.numpy(), slope)
    rows = ng.tensor(values.copy())
    rows[wrap(index)].add_(1.0)
    if not isinstance(index, bool):  # a row as a view, as with an integer, not a copy
        values[index] += 1.0
    assert np.array_equal(rows.numpy(), values)
