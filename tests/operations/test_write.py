"""Writing into new arrays: at an index, along an axis, under a mask, into a part."""

import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.testing import gradcheck, gradgradcheck
from tests.operations.test_index import INDICES

rng = np.random.default_rng(5)
X = rng.normal(size=(3, 4, 5))
DTYPES = ["float64", "float32", "complex128", "int16"]
RTOL = {"float64": 1e-13, "float32": 1e-5, "complex128": 1e-13, "int16": 0}
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": np.asfortranarray,
    "stepped": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
}


def leaf(array):
    return ng.tensor(array, requires_grad=True)


def gradient(x):
    assert x.grad is not None
    return x.grad


def values(shape, dtype="float64", seed=0):
    """Distinct numbers of a dtype."""
    found = np.random.default_rng([seed, *shape]).normal(size=shape) * 3 + 4
    return found.astype(dtype) + (1j * found if dtype.startswith("complex") else 0)


def check(function, *operands):
    """First and second derivatives with respect to floating operands."""
    given = [
        leaf(np.asarray(a, "float64")) if not isinstance(a, ng.Tensor) else a for a in operands
    ]
    assert gradcheck(function, given)
    assert gradgradcheck(lambda *args: ng.sin(function(*args)), given)


def same(actual, expected):
    np.testing.assert_array_equal(actual.detach().numpy(), expected, strict=True)


def gradients(function, arrays):
    """Gradients of a weighted sum of the result with numgrad."""
    given = [leaf(a) for a in arrays]
    out = function(*given)
    ng.sum(out * np.cos(np.arange(out.size)).reshape(out.shape)).backward()
    return out.detach().numpy(), [gradient(x).numpy() for x in given]


def torch_gradients(function, arrays):
    torch = pytest.importorskip("torch")
    given = [torch.tensor(a, requires_grad=True) for a in arrays]
    out = function(*given)
    weights = torch.tensor(np.cos(np.arange(out.numel())).reshape(out.shape))
    (out * weights).sum().backward()
    return out.detach().numpy(), [x.grad.numpy() for x in given]


def as_in_torch(ours, theirs, *arrays):
    out, found = gradients(ours, arrays)
    expected, wanted = torch_gradients(theirs, arrays)
    np.testing.assert_allclose(out, expected, rtol=1e-13)
    for g, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-13, atol=1e-14)


def operand_is_kept(function, *arrays):
    before = [np.array(a) for a in arrays]
    function(*arrays)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------------------------- index_put


@pytest.mark.parametrize("name", INDICES)
def test_index_put_is_an_assignment(name):
    index = INDICES[name]
    for layout, dtype in itertools.product(LAYOUTS.values(), DTYPES):
        x = layout(X.astype(dtype))
        v = values(x[index].shape, dtype)
        expected = np.array(x)
        # C order decides which of several values stays; NumPy promises it for one axis only
        places = np.arange(x.size).reshape(x.shape)[index].ravel()
        for place, value in zip(places, v.ravel(), strict=True):
            expected.flat[place] = value
        same(ng.index_put(ng.from_numpy(x), v, index=index), expected)
        expected = np.array(x)
        np.add.at(expected, index, v)
        got = ng.index_put(ng.from_numpy(x), v, index=index, accumulate=True)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(
            got.numpy(), expected, rtol=1e-5 if dtype == "float32" else 1e-13
        )


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("name", INDICES)
def test_index_put_gradients_by_hand(name, accumulate):
    index = INDICES[name]
    shape = X[index].shape
    _, (dx, dv) = gradients(
        lambda x, v: ng.index_put(x, v, index=index, accumulate=accumulate), (X, values(shape))
    )
    g = np.cos(np.arange(X.size)).reshape(X.shape)
    places = np.arange(X.size).reshape(X.shape)[index]
    if accumulate:
        np.testing.assert_array_equal(dx, g)
        np.testing.assert_array_equal(dv, g[index])
        return
    flat = places.ravel().tolist()
    stays = np.array([p not in flat[k + 1 :] for k, p in enumerate(flat)], bool).reshape(shape)
    np.testing.assert_array_equal(dv, np.where(stays, g[index], 0))
    expected = g.copy()
    expected[index] = 0
    np.testing.assert_array_equal(dx, expected)


BROADCAST = [
    (slice(1, None), (4, 1)),
    (slice(1, None), ()),
    (slice(1, None), (1, 1, 2, 4, 5)),  # NumPy drops leading axes of length 1
    ([0, 2, 0], (4, 1)),
    (([0, 2, 0], [1, 1, 1]), (5,)),
    (([0, 2, 0], [1, 1, 1]), (3, 1)),
    (X > 0.5, ()),
    ((slice(None), [1, 1], slice(2)), (1, 2)),
]


@pytest.mark.slow(cases=6)
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(("index", "shape"), BROADCAST, ids=str)
def test_values_are_broadcast(index, shape, accumulate):
    def written(x, v):
        return ng.index_put(x, v, index=index, accumulate=accumulate)

    v = values(shape)
    expected = X.copy()
    if accumulate:
        np.add.at(expected, index, v.reshape(v.shape[-3:]))
    else:
        expected[index] = v
    np.testing.assert_allclose(written(ng.tensor(X), v).numpy(), expected, rtol=1e-14)
    check(written, X, v)


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("name", ["slice", "apart", "mask of one axis", "list", "0-d", "false"])
def test_index_put_derivatives(name, accumulate, dtype):
    index = INDICES[name]
    given = leaf(values(X.shape, dtype, 1)), leaf(values(X[index].shape, dtype))
    check(lambda x, v: ng.index_put(x, v, index=index, accumulate=accumulate), *given)


@pytest.mark.parametrize(
    ("index", "torch_index"),
    [
        (([0, 2, 1], [1, 1, 1]), ([0, 2, 1], [1, 1, 1])),
        (([[0], [2]], [0, 3]), ([[0], [2]], [0, 3])),
        ([-1, 1], ([-1, 1],)),
        (X[..., 0] > 0, (X[..., 0] > 0,)),
    ],
)
@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_as_in_torch(index, torch_index, accumulate):
    torch = pytest.importorskip("torch")
    there = tuple(torch.tensor(part) for part in torch_index)
    as_in_torch(
        lambda x, v: ng.index_put(x, v, index=index, accumulate=accumulate),
        lambda x, v: x.index_put(there, v, accumulate=accumulate),
        X,
        values(X[index].shape),
    )


def test_only_the_last_write_has_a_gradient():
    v = leaf([1.0, 2.0, 3.0])
    out = ng.index_put(ng.zeros(4), v, index=[1, -3, 2])
    same(out, np.array([0.0, 2.0, 3.0, 0.0]))
    out.backward(np.array([1.0, 10.0, 100.0, 1000.0]))
    same(gradient(v), np.array([0.0, 10.0, 100.0]))


def test_numbers_0d_and_empty():
    same(ng.index_put(ng.tensor(1.0), 5.0, index=()), np.array(5.0))
    same(ng.index_put(ng.tensor(1.0), 5.0, index=True), np.array(5.0))
    same(ng.index_put(ng.tensor(1.0), 5.0, index=Ellipsis, accumulate=True), np.array(6.0))
    same(ng.index_put(ng.zeros((0, 3)), np.ones(3), index=slice(None)), np.zeros((0, 3)))
    same(ng.index_put(ng.zeros((2, 3)), np.ones((0, 3)), index=[]), np.zeros((2, 3)))
    same(ng.index_put(ng.zeros((0, 3)), 1.0, index=(slice(None), [1])), np.zeros((0, 3)))
    x = leaf(np.zeros((0, 3)))
    ng.sum(ng.index_put(x, 1.0, index=(slice(None), [1]))).backward()
    assert gradient(x).shape == (0, 3)


def test_index_may_be_a_tensor_and_may_change_afterwards():
    index = np.array([0, 2])
    v = leaf([1.0, 2.0])
    out = ng.index_put(ng.zeros(3), v, index=index)
    also = ng.index_put(ng.zeros(3), v, index=ng.tensor(index))
    index[:] = 1
    (out * np.arange(3.0) + also).sum().backward()
    same(gradient(v), np.array([1.0, 3.0]))


def test_operands_are_kept():
    operand_is_kept(lambda x, v: ng.index_put(x, v, index=0), X.copy(), values((4, 5)))
    operand_is_kept(lambda x, v: ng.put(x, [0, 1], v), X.copy(), values((2,)))
    operand_is_kept(lambda x, s: ng.index_add(x, [0], s, axis=1), X.copy(), values((3, 1, 5)))
    operand_is_kept(lambda x: ng.scatter(x, [[[0]]], 2, axis=0, reduce="multiply"), X.copy())


@pytest.mark.parametrize(
    ("dtype", "value", "allowed"),
    [
        ("float32", np.ones(1), True),
        ("float64", np.ones(1, np.int64), True),
        ("complex64", np.ones(1), True),
        ("int16", np.ones(1, np.int64), True),
        ("uint8", 255, True),
        ("uint8", 256, False),
        ("uint8", -1, False),
        ("uint8", np.ones(1, np.int64), False),
        ("int64", 1.0, False),
        ("float64", 1j, False),
        ("bool", 1, False),
        ("bool", True, True),
    ],
)
def test_conversion_of_values(dtype, value, allowed):
    x = np.zeros(2, dtype)
    writes = {
        "index_put": lambda: ng.index_put(x, value, index=slice(0, 1)),
        "put": lambda: ng.put(x, [0], value),
        "index_copy": lambda: ng.index_copy(x, [0], np.reshape(value, (1,)), axis=0),
        "masked_scatter": lambda: ng.masked_scatter(x, [True, False], value),
        "scatter": lambda: ng.scatter(x, [0], value, axis=0),
        "slice_scatter": lambda: ng.slice_scatter(x, np.reshape(value, (1,)), end=1),
    }
    if np.shape(value) == ():
        writes["index_fill"] = lambda: ng.index_fill(x, [0], value, axis=0)
        writes["masked_fill"] = lambda: ng.masked_fill(x, [True, False], value)
        if value == 256 or dtype == "uint8":  # as arrays these are int64
            del writes["index_copy"], writes["slice_scatter"]
    for name, write in writes.items():
        if allowed:
            expected = np.zeros(2, dtype)
            expected[0] = np.asarray(value).ravel()[0]
            same(write(), expected)
        else:
            with pytest.raises(ng.NumgradTypeError, match=f"{name}.*{dtype}.*astype"):
                write()


def test_gradients_have_the_dtypes_of_their_operands():
    x, v = leaf(np.zeros(3, np.float32)), leaf(np.ones(2))
    out = ng.index_put(x, v, index=[0, 1])
    assert out.dtype == np.float32
    out.sum().backward()
    assert (gradient(x).dtype, gradient(v).dtype) == (np.float32, np.float64)
    z, v = leaf(np.zeros(3, complex)), leaf(np.ones(2))
    ng.real(ng.index_put(z, v, index=[0, 1]) * (2 + 3j)).sum().backward()
    same(gradient(v), np.array([2.0, 2.0]))


# ---------------------------------------------------------------------------------------- put


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_put(dtype, layout):
    x = LAYOUTS[layout](X.astype(dtype))
    for indices in ([0, 5, -1], [[0, 7], [7, 0]], [], 3):
        for count in (None, 1, 2):
            check_put(x, np.asarray(indices, int), count, dtype)


def check_put(x, indices, count, dtype):
    v = values((min(count or indices.size, indices.size),), dtype)
    expected = np.array(x)
    np.put(expected, indices, v)
    same(ng.put(ng.from_numpy(x), indices, v), expected)
    expected = np.array(x, order="C")
    if v.size:
        np.add.at(expected.reshape(-1), indices.ravel(), np.resize(v, indices.size))
    got = ng.put(ng.from_numpy(x), indices, v, accumulate=True)
    np.testing.assert_allclose(got.numpy(), expected, rtol=RTOL[dtype])


@pytest.mark.slow(cases=6)
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (), (1, 1), (2,), (4,), (2, 2)])
def test_put_derivatives(shape, accumulate):
    indices = np.array([[0, 5, -1], [7, 0, 5]])
    check(lambda x, v: ng.put(x, indices, v, accumulate=accumulate), X[:2], values(shape))


def test_put_of_nothing():
    check(lambda x, v: ng.put(x, [], v), X[0], np.ones(0))


@pytest.mark.parametrize("accumulate", [False, True])
def test_put_as_in_torch(accumulate):
    torch = pytest.importorskip("torch")
    indices = np.array([[0, 5], [-1, 5 if accumulate else 6]])
    as_in_torch(
        lambda x, v: ng.put(x, indices, v, accumulate=accumulate),
        lambda x, v: x.put(torch.tensor(indices), v, accumulate=accumulate),
        X,
        values((2, 2)),
    )


def test_fill():
    for x in (X, np.float32(3), np.zeros((0, 2)), np.zeros(2, complex)):
        same(ng.fill(x, 2), np.full_like(x, 2))
    _, (dx, dv) = gradients(ng.fill, (X, np.array(3.0)))
    np.testing.assert_array_equal(dx, np.zeros(X.shape))
    np.testing.assert_allclose(dv, np.cos(np.arange(X.size)).sum())
    check(ng.fill, X[0], 3.0)


# --------------------------------------------------------------------------------------- errors

INDEX, TYPE, VALUE = ng.NumgradIndexError, ng.NumgradTypeError, ng.NumgradValueError
ONES = np.ones


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: ng.index_put(x, 1, index=3), INDEX, "index_put.*3"),
        (lambda x: ng.index_put(x, 1, index=[3]), INDEX, "index_put.*3"),
        (lambda x: ng.index_put(x, 1, index=1.5), INDEX, "index_put.*float64"),
        (lambda x: ng.index_put(x, 1, index=ONES((2, 4), bool)), INDEX, "index_put"),
        (lambda x: ng.index_put(x, 1, index=(0, 0, 0, 0)), INDEX, "index_put"),
        (lambda x: ng.index_put(x, ONES(3), index=0), VALUE, r"index_put.*\(3,\).*\(4, 5\)"),
        (lambda x: ng.index_put(x, ONES((2, 5)), index=(0, 0)), VALUE, "index_put.*broadcast"),
        (lambda x: ng.index_put(x, 1j, index=0), TYPE, "index_put.*complex128.*astype"),
        (lambda x: ng.put(x, [60], 1), INDEX, "put: index 60.*60 elements"),
        (lambda x: ng.put(x, [0, -61], 1), INDEX, "put: index -61"),
        (lambda x: ng.put(x, [0], [1, 2]), VALUE, "put: 2 values for 1 ind"),
        (lambda x: ng.put(x, [0], []), VALUE, "put: 0 values"),
        (lambda x: ng.put(x, [True], 1), INDEX, "put.*bool"),
        (lambda x: ng.fill(x, [1]), VALUE, r"fill.*0-d.*\(1,\)"),
        (lambda x: ng.index_add(x, [3], ONES((1, 4, 5)), axis=0), INDEX, "index_add: index 3"),
        (lambda x: ng.index_add(x, [0], ONES((2, 4, 5)), axis=0), VALUE, r"\(1, 4, 5\), got"),
        (lambda x: ng.index_add(x, [0], 1, axis=0), VALUE, r"index_add.*got \(\)"),
        (lambda x: ng.index_add(x, [[0]], x, axis=0), VALUE, "index_add.*one axis"),
        (lambda x: ng.index_add(x, [0], x, axis=3), INDEX, "index_add: axis 3"),
        (lambda x: ng.index_add(x, [0], x, axis=None), TYPE, "index_add: axis"),
        (lambda x: ng.index_add(2.0, [0], 1, axis=0), INDEX, "index_add: axis 0"),
        (lambda x: ng.index_add(x, [0], x[:1], axis=0, alpha=1j), TYPE, "index_add.*complex"),
        (lambda x: ng.index_copy(x, [-4], x[:1], axis=0), INDEX, "index_copy: index -4"),
        (lambda x: ng.index_copy(x, [0.5], x[:1], axis=0), INDEX, "index_copy.*float64"),
        (lambda x: ng.index_fill(x, [4], 1, axis=1), INDEX, "index_fill: index 4"),
        (lambda x: ng.index_fill(x, [1], [1], axis=1), VALUE, "index_fill.*0-d"),
        (lambda x: ng.scatter(x, [[[3]]], 1, axis=0), INDEX, "scatter: index 3"),
        (lambda x: ng.scatter(x, [[[0]]], 1, axis=0, reduce="mean"), VALUE, "scatter.*'mean'"),
        (lambda x: ng.scatter(x, [0], 1, axis=0), VALUE, r"scatter.*\(1,\).*\(3, 4, 5\)"),
        (lambda x: ng.scatter(x, ONES((3, 5, 1), int), 1, axis=0), VALUE, "longer but axis 0"),
        (lambda x: ng.scatter(x, ONES((3, 1, 1), int), ONES((2, 1, 1)), axis=0), VALUE, "shorter"),
        (lambda x: ng.scatter_add(x, [[[9]]], 1, axis=0), INDEX, "scatter_add: index 9"),
        (lambda x: ng.masked_fill(x, ONES(5), 1), TYPE, "masked_fill.*float64.*boolean"),
        (lambda x: ng.masked_fill(x, ONES(4, bool), 1), VALUE, r"masked_fill.*\(4,\)"),
        (lambda x: ng.masked_fill(x, ONES(5, bool), [1]), VALUE, "masked_fill.*0-d"),
        (lambda x: ng.masked_scatter(x, ONES(5, bool), ONES(59)), VALUE, "60 elements.*59"),
        (lambda x: ng.masked_scatter(x, ONES(4, bool), x), VALUE, "masked_scatter"),
        (lambda x: ng.slice_scatter(x, ONES((1, 4, 5)), end=2), VALUE, r"slice_scatter.*\(2, 4"),
        (lambda x: ng.slice_scatter(x, x, step=0), VALUE, "slice_scatter"),
        (lambda x: ng.slice_scatter(x, x, start=0.5), TYPE, "slice_scatter"),
        (lambda x: ng.select_scatter(x, x[0], axis=0, index=3), INDEX, "select_scatter: index 3"),
        (lambda x: ng.select_scatter(x, x[0], axis=0, index=0.5), TYPE, "select_scatter"),
        (lambda x: ng.select_scatter(x, x, axis=0, index=0), VALUE, "select_scatter"),
        (lambda x: ng.diagonal_scatter(x, ONES(3)), VALUE, r"diagonal_scatter.*\(5, 3\)"),
        (lambda x: ng.diagonal_scatter(x, ONES(3), axis1=1), VALUE, "diagonal_scatter"),
        (lambda x: ng.put(ONES(2, np.float16), [0], 1), TYPE, "put.*float16"),
    ],
)
def test_errors(call, kind, text):
    x = leaf(X)
    with pytest.raises(kind, match=text):
        call(x)
    same(x, X)


# ------------------------------------------------------- forward mode, and batches of examples

WRITES = {
    "index_put at slices": lambda x, v: ng.index_put(x, v[:2, :2], index=(slice(None), slice(2))),
    "index_put at arrays": lambda x, v: ng.index_put(x, v[0], index=([0, 1, 0], [0, 0, 0])),
    "index_put, added": lambda x, v: ng.index_put(x, v[0], index=([0, 1, 0], 0), accumulate=True),
    "put": lambda x, v: ng.put(x, [1, 1, 3], v[:, 0]),
    "put, repeated": lambda x, v: ng.put(x, [1, 5, 3], v[0, :2]),
    "index_add": lambda x, v: ng.index_add(x, [0, 0, 1], v[:2], axis=1, alpha=2),
    "index_copy": lambda x, v: ng.index_copy(x, [0, 0, 1], v[:2], axis=1),
    "index_fill": lambda x, v: ng.index_fill(x, [0, 0], v[0, 0], axis=1),
    "scatter": lambda x, v: ng.scatter(x, [[0, 0, 1]], v, axis=1),
    "scatter, multiplied": lambda x, v: ng.scatter(x, [[0, 0, 1]], v, axis=1, reduce="multiply"),
    "masked_fill": lambda x, v: ng.masked_fill(x, x > 0, v[0, 0]),
    "masked_scatter": lambda x, v: ng.masked_scatter(x, x > 0, v),
    "diagonal_scatter": lambda x, v: ng.diagonal_scatter(x, v[0, :2]),
    "fill": lambda x, v: ng.fill(x, v[0, 0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_forward_mode(name):
    given = leaf(X[0, :2, :3]), leaf(values((3, 3)))
    assert gradcheck(WRITES[name], given, check_forward_ad=True)


@pytest.mark.parametrize("name", WRITES)
def test_batches_are_their_examples(name):
    write = WRITES[name]
    x, v = leaf(X[:, :2, :3]), leaf(values((3, 3, 3)))
    weights = values((3, 2, 3), seed=1)
    with BatchingInterpreter(3) as level:
        out = level.unwrap(write(level.wrap(x), level.wrap(v)))
    examples = ng.stack([write(x[k], v[k]) for k in range(3)])
    same(out, examples.detach().numpy())
    for found, wanted in zip(
        ng.autograd.grad(ng.sum(out * weights), (x, v), allow_unused=True),
        ng.autograd.grad(ng.sum(examples * weights), (x, v), allow_unused=True),
        strict=True,
    ):
        same(found, wanted.numpy())


def test_booleans_are_added_as_in_numpy():
    x = np.array([True, False, False])
    expected = x.copy()
    np.add.at(expected, [1, 1, 0], [True, True, False])
    same(ng.put(x, [1, 1, 0], [True, True, False], accumulate=True), expected)
    same(ng.index_add(x, [1, 1, 0], [True, True, False], axis=0), expected)
