"""``ng.as_strided`` beside NumPy's, with derivatives by hand."""

from functools import partial

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradTypeError, NumgradValueError

PLACES = {
    "windows": ((3, 2), (8, 8), 0),
    "diagonal": ((2,), (24,), 0),
    "from behind": ((4,), (-8,), 24),
    "one element": ((5,), (0,), 16),
    "nothing": ((0, 2), (8, 8), 0),
    "a number": ((), (), 8),
}


@pytest.mark.parametrize("name", PLACES)
def test_elements_and_gradients(name):
    shape, strides, offset = PLACES[name]
    values = np.array([1.0, 2.0, 3.0, 4.0])
    expected = np.lib.stride_tricks.as_strided(values[offset // 8 :], shape, strides)
    x = ng.tensor(values, requires_grad=True)
    y = ng.as_strided(x, shape, strides, offset)
    assert np.array_equal(y.numpy(force=True), expected)
    weights = np.arange(1.0, expected.size + 1).reshape(expected.shape)
    (y * weights).sum().backward()
    gradient = np.zeros(4)
    np.add.at(gradient, (expected - 1).astype(int), weights)
    assert np.array_equal(x.grad, gradient)
    _, tangent = ng.jvp(lambda x: ng.as_strided(x, shape, strides, offset), (x.detach(),), (x,))
    assert np.array_equal(tangent.numpy(force=True), expected)


def test_writes_reach_the_memory_of_a_view():
    x = ng.tensor([1.0, 2.0, 3.0, 4.0])
    ng.as_strided(x[1:], (2,), (16,), -8).fill_(0.0)
    assert x.tolist() == [0.0, 2.0, 0.0, 4.0]
    examples = ng.vmap(lambda row: ng.as_strided(row, (2,), (8,), 8))(ng.tensor([[1.0, 2.0, 3.0]]))
    assert examples.tolist() == [[2.0, 3.0]]
    fast = ng.jit(lambda x: ng.as_strided(x, (2, 2), (8, 8)) * 2)
    assert np.array_equal(fast(x), [[0.0, 4.0], [4.0, 0.0]])


def test_what_is_refused():
    x = ng.tensor([1.0, 2.0, 3.0, 4.0])
    for shape, strides, offset in (((3,), (16,), 0), ((2,), (-8,), 0), ((1,), (8,), 32)):
        with pytest.raises(NumgradValueError, match="out of bounds of the memory of 32 bytes"):
            ng.as_strided(x, shape, strides, offset)
    with pytest.raises(NumgradValueError, match="one stride for each"):
        ng.as_strided(x, (2, 2), (8,))
    with pytest.raises(NumgradTypeError, match="as_strided"):
        ng.as_strided(x, (2.0,), (8,))
    for dtype in (np.int64, np.float32, np.complex64):
        with pytest.raises(NumgradTypeError, match="float64 cannot be seen as"):
            ng.as_strided(x, (1,), (8,), dtype=dtype)


@pytest.mark.parametrize("way", [ng.jit, ng.vmap])
def test_bounds_without_memory(way):
    x = np.array([[1.0, 2.0, 3.0, 4.0]] * 2)
    x = x if way is ng.vmap else x[0]
    for strides, offset, message in (
        ((16,), 16, "out of bounds"), ((-8,), 0, "out of bounds"), ((8,), -8, "out of bounds"),
        ((4,), 0, "multiples of 8"), ((8,), 4, "multiples of 8"),
    ):  # fmt: skip
        run = partial(ng.as_strided, shape=(2,), strides=strides, offset=offset)
        with pytest.raises(NumgradValueError, match=message):
            run(ng.tensor([1.0, 2.0, 3.0, 4.0]))
        with pytest.raises(NumgradValueError, match=message):
            way(run)(x)
    last = ng.jit(lambda row: ng.as_strided(row, (1,), (8,), 24))
    assert np.asarray(last(np.arange(4.0))).tolist() == [3.0]
    with pytest.raises(NumgradValueError, match="out of bounds"):
        last(np.arange(3.0))


@pytest.mark.parametrize("way", [lambda f: f, ng.jit, lambda f: lambda x: ng.vmap(f)(x[None])[0]])
def test_parts_of_numbers(way):
    z = np.array([1.0 + 2.0j, 3.0 + 4.0j])
    real = way(lambda z: ng.as_strided(z, (2, 2), (8, 16), dtype=np.float64))(ng.tensor(z))
    assert np.asarray(real).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    pairs = way(lambda x: ng.as_strided(x, (2,), (16,), dtype=np.complex128))
    assert np.asarray(pairs(ng.tensor([1.0, 2.0, 3.0, 4.0]))).tolist() == z.tolist()
