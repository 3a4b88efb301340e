"""Joining and splitting arrays."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

rng = np.random.default_rng(2)


def tensors(*shapes, dtype="float64"):
    return [ng.tensor(rng.normal(size=s).astype(dtype), requires_grad=True) for s in shapes]


JOINS = {
    "concat": (ng.concat, np.concatenate, ((2, 3), (4, 3)), {}),
    "concat axis": (ng.concat, np.concatenate, ((2, 3), (2, 1), (2, 0)), {"axis": -1}),
    "concat flat": (ng.concat, np.concatenate, ((2, 3), (2,), ()), {"axis": None}),
    "stack": (ng.stack, np.stack, ((2, 3), (2, 3)), {}),
    "stack axis": (ng.stack, np.stack, ((2, 3), (2, 3)), {"axis": -1}),
    "stack 0-d": (ng.stack, np.stack, ((), (), ()), {}),
    "hstack": (ng.hstack, np.hstack, ((2, 3), (2, 1)), {}),
    "hstack vectors": (ng.hstack, np.hstack, ((2,), (3,)), {}),
    "vstack": (ng.vstack, np.vstack, ((3,), (2, 3)), {}),
    "dstack": (ng.dstack, np.dstack, ((2, 3), (2, 3)), {}),
    "column_stack": (ng.column_stack, np.column_stack, ((3,), (3, 2)), {}),
}


@pytest.mark.slow(cases=12)
@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_joins(name, dtype):
    ours, theirs, shapes, params = JOINS[name]
    parts = tensors(*shapes, dtype=dtype)
    arrays = [p.detach().numpy() for p in parts]
    got = ours(parts, **params)
    np.testing.assert_array_equal(got.detach().numpy(), theirs(arrays, **params), strict=True)
    if dtype == "float32":
        return
    parts = [p for p in parts if p.size]

    def joined(*parts):
        return ours(parts, **params)

    assert gradcheck(joined, parts)
    assert gradgradcheck(lambda *parts: ng.sin(joined(*parts)), parts)


def test_strided_mixed_and_plain_operands():
    a, b = np.arange(12.0).reshape(3, 4).T, np.arange(4, dtype=np.int32).reshape(4, 1)
    t = ng.tensor(a.copy(), requires_grad=True).mT.mT
    got = ng.concat([t, b, [[1], [2], [3], [4]]], axis=1)
    expected = np.concatenate([a, b, [[1], [2], [3], [4]]], axis=1)
    np.testing.assert_array_equal(got.detach().numpy(), expected, strict=True)
    assert ng.concat([t, t], 1).shape == (4, 6)
    assert ng.concat((t, t), axis=0).shape == ng.concat(t, t).shape == (8, 3)
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    y = ng.asarray([3, 4])
    z = ng.concat([x, y])
    assert z.dtype == np.float64
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 1.0])


def test_gradients_have_the_dtype_of_their_operand():
    a, b = tensors((2,), dtype="float32")[0], tensors((3,))[0]
    ng.sum(ng.concat([a, b]) * 2.0).backward()
    assert a.grad.dtype == np.float32
    assert b.grad.dtype == np.float64


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda a: ng.concat([]), ng.NumgradValueError, "at least one"),
        (lambda a: ng.concat([a, a[:, :2]]), ng.NumgradValueError, r"\(2, 3\), \(2, 2\)"),
        (lambda a: ng.concat([a, a[0]]), ng.NumgradValueError, "concat"),
        (lambda a: ng.concat([a[0, 0], a[0, 0]]), ng.NumgradValueError, "0-d"),
        (lambda a: ng.concat([a, a], axis=2), ng.NumgradIndexError, "axis 2"),
        (lambda a: ng.stack([a, a[:1]]), ng.NumgradValueError, r"stack.*\(1, 3\)"),
        (lambda a: ng.stack([a, a], axis=3), ng.NumgradIndexError, "axis 3"),
        (lambda a: ng.split(a, 2, axis=1), ng.NumgradValueError, "equal parts"),
        (lambda a: ng.split(a, 0), ng.NumgradValueError, "positive"),
        (lambda a: ng.split(a, 1.5), ng.NumgradTypeError, "integer"),
        (lambda a: ng.split(a, 1, axis=2), ng.NumgradIndexError, "axis 2"),
        (lambda a: ng.unstack(a, axis=2), ng.NumgradIndexError, "unstack"),
        (lambda a: ng.meshgrid(a), ng.NumgradValueError, "vectors"),
    ],
)
def test_errors(call, error, text):
    (a,) = tensors((2, 3))
    with pytest.raises(error, match=text):
        call(a)


SPLITS = {
    "split": (ng.split, np.split, (4, 3), (2,)),
    "split at": (ng.split, np.split, (4, 3), ([1, 3],)),
    "split unordered": (ng.split, np.split, (4, 3), ([3, 1, 9],)),
    "split negative": (ng.split, np.split, (4, 3), ([-1],)),
    "split axis": (ng.split, np.split, (4, 3), (3, 1)),
    "array_split": (ng.array_split, np.array_split, (4, 3), (3,)),
    "hsplit": (ng.hsplit, np.hsplit, (4, 4), (2,)),
    "hsplit vector": (ng.hsplit, np.hsplit, (4,), (2,)),
    "vsplit": (ng.vsplit, np.vsplit, (4, 4), (2,)),
    "dsplit": (ng.dsplit, np.dsplit, (1, 2, 4), (2,)),
    "unstack": (ng.unstack, lambda x: list(x), (3, 4), ()),
}


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", SPLITS)
def test_splits(name):
    ours, theirs, shape, args = SPLITS[name]
    x = rng.normal(size=shape)
    t = ng.tensor(x, requires_grad=True)
    got, expected = ours(t, *args), theirs(x, *args)
    assert len(got) == len(expected)
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_array_equal(g.detach().numpy(), e, strict=True)
        assert not g.size or np.shares_memory(g.detach().numpy(), t.detach().numpy())
    assert gradcheck(lambda t: ours(t, *args), (t,))
    assert gradcheck(lambda t: ours(t, *args)[-1], (t,))  # the other parts get no gradient
    assert gradgradcheck(lambda t: ng.sin(ng.concat([p * p for p in ours(t, *args)], axis=-1))
                         if name == "unstack" else ng.sin(ours(t, *args)[0]), (t,))  # fmt: skip


def test_meshgrid():
    x, y = tensors((2,), (3,))
    for options in ({}, {"indexing": "ij"}, {"sparse": True}):
        arrays = [x.detach().numpy(), y.detach().numpy()]
        for g, e in zip(ng.meshgrid(x, y, **options), np.meshgrid(*arrays, **options), strict=True):
            np.testing.assert_array_equal(g.detach().numpy(), e, strict=True)
    assert gradcheck(lambda x, y: ng.meshgrid(x, y), (x, y))


def test_many_parts_agree_with_torch():
    torch = pytest.importorskip("torch")
    x = rng.normal(size=(3, 4))
    a = torch.tensor(x, requires_grad=True)
    parts = torch.unbind(a, 1)
    (torch.stack([p * k for k, p in enumerate(parts)]) ** 2).sum().backward()
    t = ng.tensor(x, requires_grad=True)
    parts = ng.unstack(t, axis=1)
    (ng.stack([p * k for k, p in enumerate(parts)]) ** 2).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), a.grad.numpy())


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 2)])
def test_a_sequence_of_one_array(name, shape):
    a = np.arange(np.prod(shape)) + 0.5
    a = a.reshape(shape)
    want = getattr(np, name)([a])
    assert np.array_equal(getattr(ng, name)([ng.tensor(a)]).numpy(), want)


def test_repeats_of_axes_of_length_one_are_a_copy():
    x = ng.tensor([[1.0], [2.0]])
    y = ng.tile(x, 3)
    x[...] = 5.0
    y[0, 0] = 7.0
    assert y.tolist() == [[7.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    assert x.tolist() == [[5.0], [5.0]]


def test_a_list_of_one_tensor_is_an_operand_with_one_axis_more():
    x = ng.tensor([1.0, 2.0])
    assert ng.sin([x]).shape == (1, 2)
    assert ng.delete(x, []).tolist() == [1.0, 2.0]


ALONE = {
    "hstack": lambda x: np.hstack([x]),
    "vstack": lambda x: np.vstack([x]),
    "dstack": lambda x: np.dstack([x]),
    "column_stack": lambda x: np.column_stack([x]),
    "stack": lambda x: np.stack([x], axis=1),
    "concatenate": lambda x: np.concatenate([x]),
    "lexsort": lambda x: np.lexsort((x,)),
    "choose": lambda x: np.choose(np.zeros(x.shape, int), [x]),
    "vander": lambda x: np.vander(x.ravel(), 1),
    "insert": lambda x: np.insert(x, [], []),
    "delete": lambda x: np.delete(x, [], axis=0),
}


@pytest.mark.parametrize("name", ALONE)
def test_one_array_alone_is_one_array(name):
    for shape in ((2,), (1,), (1, 2), (3, 2)):
        x = np.arange(float(np.prod(shape))).reshape(shape)
        expected, found = ALONE[name](x), ALONE[name](ng.tensor(x))
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found.numpy(), expected)
