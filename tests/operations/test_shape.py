"""Reshaping, axes, diagonals, copies, repetition and padding: values, gradients, errors."""

import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

CASES = {
    "reshape": (ng.reshape, np.reshape, (3, 4), ((2, 6),)),
    "reshape -1": (ng.reshape, np.reshape, (3, 4), (-1,)),
    "reshape F": (
        lambda x: ng.reshape(x, (4, 3), order="F"),
        lambda x: np.reshape(x, (4, 3), order="F"),
        (3, 4),
        (),
    ),
    "ravel": (ng.ravel, np.ravel, (3, 4), ()),
    "flatten": (lambda x: x.flatten(), np.ravel, (3, 4), ()),
    "permute_dims": (ng.permute_dims, np.transpose, (2, 3, 4), ((2, 0, 1),)),
    "permute negative": (ng.permute_dims, np.transpose, (2, 3, 4), ((-1, 0, 1),)),
    "transpose": (ng.transpose, np.transpose, (2, 3, 4), ()),
    "swapaxes": (ng.swapaxes, np.swapaxes, (2, 3, 4), (0, -1)),
    "moveaxis": (ng.moveaxis, np.moveaxis, (2, 3, 4), (0, -1)),
    "moveaxis many": (ng.moveaxis, np.moveaxis, (2, 3, 4), ((0, 1), (-1, 0))),
    "expand_dims": (ng.expand_dims, np.expand_dims, (3, 4), (1,)),
    "expand_dims many": (ng.expand_dims, np.expand_dims, (3, 4), ((0, -1),)),
    "squeeze": (ng.squeeze, np.squeeze, (1, 3, 1), ()),
    "squeeze axis": (ng.squeeze, np.squeeze, (1, 3, 1), (-1,)),
    "broadcast_to": (ng.broadcast_to, np.broadcast_to, (3, 1), ((2, 3, 4),)),
    "broadcast_to 0-d": (ng.broadcast_to, np.broadcast_to, (), ((2, 3),)),
    "flip": (ng.flip, np.flip, (3, 4), ()),
    "flip axis": (ng.flip, np.flip, (3, 4), (1,)),
    "roll": (ng.roll, np.roll, (3, 4), (2,)),
    "roll axes": (ng.roll, np.roll, (3, 4), ((1, -2), (0, 1))),
    "tile": (ng.tile, np.tile, (2, 3), ((2, 1, 3),)),
    "tile number": (ng.tile, np.tile, (2, 3), (2,)),
    "repeat": (ng.repeat, np.repeat, (2, 3), (2,)),
    "repeat axis": (ng.repeat, np.repeat, (2, 3), (3, 1)),
    "repeat many": (ng.repeat, np.repeat, (2, 3), ([1, 0, 2], 1)),
    "rot90": (ng.rot90, np.rot90, (2, 3), ()),
    "rot90 3": (ng.rot90, np.rot90, (2, 3, 2), (3, (0, 2))),
    "rot90 2": (ng.rot90, np.rot90, (2, 3), (2,)),
    "rot90 0": (ng.rot90, np.rot90, (2, 3), (0,)),
    "tril": (ng.tril, np.tril, (3, 4), ()),
    "tril k": (ng.tril, np.tril, (2, 3, 4), (-1,)),
    "tril vector": (ng.tril, np.tril, (3,), ()),
    "triu": (ng.triu, np.triu, (3, 4), (1,)),
    "diagonal": (ng.diagonal, np.diagonal, (3, 4), ()),
    "diagonal offset": (ng.diagonal, np.diagonal, (2, 3, 4), (-1, 1, 2)),
    "trace": (ng.trace, np.trace, (3, 4), (1,)),
    "trace stack": (ng.trace, np.trace, (3, 4, 2), ()),
    "diag of vector": (ng.diag, np.diag, (3,), (-1,)),
    "diag of matrix": (ng.diag, np.diag, (3, 4), (1,)),
    "matrix_transpose": (ng.matrix_transpose, lambda x: np.swapaxes(x, -1, -2), (2, 3, 4), ()),
    "atleast_1d": (ng.atleast_1d, np.atleast_1d, (), ()),
    "atleast_2d": (ng.atleast_2d, np.atleast_2d, (3,), ()),
    "atleast_3d": (ng.atleast_3d, np.atleast_3d, (3,), ()),
    "atleast_3d of matrix": (ng.atleast_3d, np.atleast_3d, (3, 2), ()),
    "copy": (ng.copy, np.copy, (3, 4), ()),
    "pad": (ng.pad, np.pad, (2, 3), (1,)),
    "pad pair": (ng.pad, np.pad, (2, 3), ((1, 2),)),
    "pad axes": (ng.pad, np.pad, (2, 3), (((1, 2), (0, 3)),)),
    "pad edge": (ng.pad, np.pad, (2, 3), (((1, 2), (2, 3)), "edge")),
    "pad reflect": (ng.pad, np.pad, (2, 3), (((1, 2), (2, 3)), "reflect")),
    "pad symmetric": (ng.pad, np.pad, (2, 3), (((1, 2), (2, 3)), "symmetric")),
    "pad wrap": (ng.pad, np.pad, (2, 3), (((1, 2), (2, 3)), "wrap")),
}


def layouts(shape, dtype):
    """Arrays of one shape with different strides."""
    size = int(np.prod(shape))
    base = np.arange(1, size + 1).reshape(shape).astype(dtype)
    yield base
    yield np.asfortranarray(base)
    wide = np.repeat(base, 2, axis=-1) if shape else base
    yield wide[..., ::2] if shape else base
    yield base[::-1] if shape else base


@pytest.mark.parametrize("name", CASES)
def test_values_are_numpys(name):
    ours, theirs, shape, args = CASES[name]
    arrays = [layouts(shape, dtype) for dtype in ("bool", "int32", "float32", "complex128")]
    for x in itertools.chain(*arrays):
        expected = theirs(x, *args)
        got = ours(ng.from_numpy(x), *args)
        assert got.shape == expected.shape
        if "trace" not in name:
            assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.slow(cases=8)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", CASES)
def test_gradients(name, dtype):
    ours, _, shape, args = CASES[name]
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    if dtype == "complex128":
        x = x + 1j * x[..., ::-1] if shape else x + 1j
    t = ng.tensor(x, requires_grad=True)
    assert gradcheck(lambda t: ours(t, *args), (t,))
    assert gradgradcheck(lambda t: ng.sin(ours(t, *args)), (t,))


@pytest.mark.parametrize(
    "name", ["reshape", "flip", "permute_dims", "roll", "tril", "pad", "repeat", "diagonal", "copy"]
)
def test_empty(name):
    ours, theirs, shape, args = CASES[name]
    args = ((0, 5),) if name == "reshape" else args
    x = np.zeros((0, *shape[1:]))
    t = ng.tensor(x, requires_grad=True)
    y = ours(t, *args)
    assert y.shape == theirs(x, *args).shape
    ng.sum(y).backward()
    assert t.grad.shape == x.shape


def test_views_share_memory_and_copies_do_not():
    x = np.arange(12.0).reshape(3, 4)
    t = ng.from_numpy(x)
    for view in (
        t.reshape(4, 3), t.T, t.mT, ng.flip(t), ng.diagonal(t), ng.ravel(t), ng.squeeze(t),
        ng.broadcast_to(t, (2, 3, 4)), ng.astype(t, float, copy=False),
    ):  # fmt: skip
        assert np.shares_memory(view.numpy(), x)
    for copy in (ng.copy(t), t.flatten(), ng.astype(t, float), ng.roll(t, 1), ng.tile(t, 1)):
        assert not np.shares_memory(copy.numpy(), x)


def test_integers_may_be_given_one_by_one():
    t = ng.tensor(np.arange(6.0).reshape(2, 3))
    assert t.reshape(3, 2).shape == (3, 2)
    assert t.transpose(1, 0).shape == (3, 2)
    assert ng.tensor([1.0, 2.0]).broadcast_to(3, 2).shape == (3, 2)


def test_broadcast_arrays():
    a = ng.tensor(np.ones((3, 1)), requires_grad=True)
    x, y = ng.broadcast_arrays(a, [1.0, 2.0])
    assert x.shape == y.shape == (3, 2)
    ng.sum(x * y).backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.full((3, 1), 3.0))
    with pytest.raises(ng.NumgradValueError, match="do not broadcast"):
        ng.broadcast_arrays(a, np.ones((2, 3)))


def test_astype_casts_gradients_back():
    t = ng.tensor([1.0, 2.0], requires_grad=True)
    y = t.astype(np.float32)
    assert y.dtype == np.float32
    ng.sum(y * y).backward()
    assert t.grad.dtype == np.float64
    np.testing.assert_array_equal(t.grad.numpy(), [2.0, 4.0])
    z = ng.tensor([1 + 2j], requires_grad=True)
    y = z.astype(float)  # the real part, without a warning
    assert y.dtype == np.float64
    ng.sum(y).backward()
    np.testing.assert_array_equal(z.grad.numpy(), [1 + 0j])
    t = ng.tensor([1.5], requires_grad=True)
    ng.sum(ng.real(t.astype(complex) * (2 + 3j))).backward(retain_graph=True)
    np.testing.assert_array_equal(t.grad.numpy(), [2.0])
    assert not t.astype(int).requires_grad


@pytest.mark.parametrize("dtype", [np.float16, object, "U3"])
def test_astype_to_a_dtype_without_kernels(dtype):
    with pytest.raises(ng.NumgradTypeError, match="astype"):
        ng.astype(ng.tensor([1.0]), dtype)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: ng.reshape(x, (5, 2)), ng.NumgradValueError, r"reshape.*\(3, 4\)"),
        (lambda x: ng.reshape(x), ng.NumgradTypeError, "reshape.*shape"),
        (lambda x: ng.reshape(x, (2.0, 6)), ng.NumgradTypeError, "integer"),
        (lambda x: ng.permute_dims(x, (0, 0)), ng.NumgradValueError, "permute_dims"),
        (lambda x: ng.squeeze(x, 0), ng.NumgradValueError, "squeeze"),
        (lambda x: ng.flip(x, 3), ng.NumgradIndexError, "flip"),
        (lambda x: ng.broadcast_to(x, (3, 5)), ng.NumgradValueError, "broadcast_to"),
        (lambda x: ng.swapaxes(x, 0, 2), ng.NumgradIndexError, "swapaxes"),
        (lambda x: ng.diagonal(x[0]), ng.NumgradValueError, "diagonal"),
        (lambda x: ng.matrix_transpose(x[0]), ng.NumgradValueError, "matrix_transpose"),
        (lambda x: ng.repeat(x, [1, 2], 0), ng.NumgradValueError, "repeat"),
        (lambda x: ng.repeat(x, -1), ng.NumgradValueError, "negative"),
        (lambda x: ng.repeat(x, 1.5), ng.NumgradTypeError, "integers"),
        (lambda x: ng.pad(x, 1, mode="ramp"), ng.NumgradValueError, "ramp"),
        (lambda x: ng.pad(x, ((1, 1),) * 3), ng.NumgradValueError, "pad_width"),
        (lambda x: ng.pad(x, -1), ng.NumgradValueError, "negative"),
        (lambda x: ng.tril(x[0, 0]), ng.NumgradValueError, "tril"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(ng.tensor(np.ones((3, 4))))
