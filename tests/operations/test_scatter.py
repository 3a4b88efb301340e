"""Writing along an axis: the same indices for all, or one for each element."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import threads as threads_of_kernels
from numgrad.kernels.index import AHEAD, NEAR_BYTES
from numgrad.testing import gradcheck, gradgradcheck
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

ALONG = [(0, [0, 2, 0, -1]), (1, [3, -1, 1]), (-1, []), (-3, [1]), (2, 2), (2, [0, 1, 2, 3, 4, 0])]


def source_for(axis, index, dtype="float64"):
    shape = list(X.shape)
    shape[axis] = np.size(index)
    return values(tuple(shape), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("axis", "index"), ALONG, ids=str)
def test_writes_along_an_axis(axis, index, layout, dtype):
    x = X.astype(dtype)
    source = source_for(axis, index, dtype)
    added, copied, filled = (np.moveaxis(x.copy(), axis, 0) for _ in range(3))
    for k, part in zip(np.ravel(index).astype(int), np.moveaxis(source, axis, 0), strict=True):
        added[k] += part
        copied[k] = part
        filled[k] = 7
    x, source = (ng.from_numpy(LAYOUTS[layout](a)) for a in (x, source))
    got = ng.index_add(x, index, source, axis=axis)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_allclose(got.numpy(), np.moveaxis(added, 0, axis), rtol=1e-4)
    same(ng.index_copy(x, index, source, axis=axis), np.moveaxis(copied, 0, axis))
    same(ng.index_fill(x, index, 7, axis=axis), np.moveaxis(filled, 0, axis))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "dtype"),
    [*[(place, "float64") for place in ALONG], *[(place, "complex128") for place in ALONG[::2]]],
    ids=str,
)
def test_derivatives_along_an_axis(place, dtype):
    axis, index = place
    index = np.asarray(index, int)
    x, source = leaf(X.astype(dtype)), leaf(source_for(axis, index, dtype))
    check(lambda x, s: ng.index_add(x, index, s, axis=axis, alpha=-2.5), x, source)
    check(lambda x, s: ng.index_copy(x, index, s, axis=axis), x, source)
    check(lambda x, v: ng.index_fill(x, index, v, axis=axis), x, leaf(np.array(3, dtype)))


@pytest.mark.parametrize(("axis", "index"), [a for a in ALONG if a[1] != []], ids=str)
def test_along_an_axis_as_in_torch(axis, index):
    torch = pytest.importorskip("torch")
    index = np.asarray(index) % X.shape[axis]
    there, source = torch.tensor(index), source_for(axis, index)
    as_in_torch(
        lambda x, s: ng.index_add(x, index, s, axis=axis, alpha=1.5),
        lambda x, s: x.index_add(axis, there, s, alpha=1.5),
        X,
        source,
    )
    as_in_torch(
        lambda x: ng.index_fill(x, index, 2.5, axis=axis),
        lambda x: x.index_fill(axis, there, 2.5),
        X,
    )
    if len(set(np.ravel(index))) == np.size(index):
        as_in_torch(
            lambda x, s: ng.index_copy(x, index, s, axis=axis),
            lambda x, s: x.index_copy(axis, there, s),
            X,
            source,
        )


def test_alpha_is_conjugated():
    x, s = leaf(np.zeros(3, complex)), leaf(values((2,), "complex128"))
    check(lambda x, s: ng.index_add(x, [1, 1], s, axis=0, alpha=1 + 2j), x, s)


# ------------------------------------------------------------------------------------- scatter


def by_hand(x, index, source, axis, combine):
    out = np.array(x)
    source = np.broadcast_to(source, index.shape) if np.ndim(source) == 0 else source
    for place in np.ndindex(index.shape):
        target = (*place[:axis], index[place], *place[axis + 1 :])
        out[target] = combine(out[target], source[place])
    return out


COMBINE = {None: lambda a, b: b, "add": np.add, "multiply": np.multiply}
# shape of the index, axis, shape of the source
SCATTERS = [
    ((3, 4, 5), 1, (3, 4, 5)),
    ((3, 4, 7), 2, (3, 4, 7)),
    ((2, 3, 4), 0, (2, 3, 4)),
    ((2, 3, 4), 1, (4, 3, 6)),
    ((5, 1, 2), 0, (5, 3, 2)),
    ((3, 0, 5), 1, (3, 4, 5)),
    ((2, 6, 1), 1, ()),
]


@pytest.mark.parametrize("reduce", COMBINE)
@pytest.mark.parametrize(("shape", "axis", "given"), SCATTERS, ids=str)
def test_scatter(shape, axis, given, reduce):
    n = X.shape[axis]
    index = np.random.default_rng(1).integers(-n, n, shape)
    for dtype in DTYPES:
        x, source = X.astype(dtype), values(given, dtype)
        expected = by_hand(x, index, source, axis, COMBINE[reduce])
        for layout in LAYOUTS.values():
            laid = ng.from_numpy(layout(x)), ng.from_numpy(layout(index))
            got = ng.scatter(*laid, source, axis=axis - 3, reduce=reduce)
            assert got.dtype == x.dtype
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)
            if reduce == "add":
                same(ng.scatter_add(*laid, source, axis=axis), got.numpy())


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize(
    ("place", "reduce", "dtype"),
    [
        *[(place, reduce, "float64") for place in SCATTERS for reduce in COMBINE],
        *[(place, reduce, "complex128") for place in SCATTERS[::3] for reduce in COMBINE],
    ],
    ids=str,
)
def test_scatter_derivatives(place, reduce, dtype):
    shape, axis, given = place
    index = np.random.default_rng(1).integers(0, X.shape[axis], shape)
    x, source = leaf(X.astype(dtype)), leaf(values(given, dtype) / 4)
    assert gradcheck(lambda x, s: ng.scatter(x, index, s, axis=axis, reduce=reduce), (x, source))
    assert gradgradcheck(
        lambda x, s: ng.scatter(x, index, s, axis=axis, reduce=reduce), (x, source), atol=1e-4
    )


@pytest.mark.parametrize(("shape", "axis", "given"), SCATTERS[:-1], ids=str)
def test_scatter_as_in_torch(shape, axis, given):
    torch = pytest.importorskip("torch")
    index = np.random.default_rng(1).integers(0, X.shape[axis], shape)
    there = torch.tensor(index)
    part = tuple(slice(n) for n in shape)  # torch has no gradient of a larger source
    as_in_torch(
        lambda x, s: ng.scatter_add(x, index, s, axis=axis),
        lambda x, s: x.scatter_add(axis, there, s[part]),
        X,
        values(given),
    )
    as_in_torch(
        lambda x, s: ng.scatter(x, index, s, axis=axis, reduce="multiply"),
        lambda x, s: x.scatter_reduce(axis, there, s[part], "prod"),
        X,
        values(given),
    )
    if shape[axis] <= X.shape[axis]:  # an index for each element without duplicates
        index = np.argsort(np.random.default_rng(2).normal(size=shape), axis=axis)
        there = torch.tensor(index)
        as_in_torch(
            lambda x, s: ng.scatter(x, index, s, axis=axis),
            lambda x, s: x.scatter(axis, there, s[part]),
            X,
            values(given),
        )


@pytest.mark.parametrize("zeros", [[], [1], [0, 1], [0, 1, 4], range(6)])
def test_factors_that_are_zero(zeros):
    factors = values((6,))
    factors[list(zeros)] = 0
    for x in (X[0, 0], np.zeros(5)):
        index = np.array([2, 2, 0, 2, 0, 2])
        check(lambda x, f, i=index: ng.scatter(x, i, f, axis=0, reduce="multiply"), x, factors)


def test_infinite_factor_concerns_its_own_element_only():
    x, f = leaf([2.0, 3.0]), leaf([np.inf, 5.0, 7.0, 1.0])
    out = ng.scatter(x, [0, 1, 1, 0], f, axis=0, reduce="multiply")
    same(out, np.array([np.inf, 105.0]))
    out.sum().backward()
    same(gradient(x), np.array([np.inf, 35.0]))
    same(gradient(f), np.array([2.0, 21.0, 15.0, np.inf]))


# --------------------------------------------------------------------------------- many elements


@pytest.mark.parametrize("shape", [(50_000,), (3, 20_000), (400, 90, 2)], ids=str)
def test_many_indices_with_any_number_of_threads(shape, monkeypatch):
    """Sums in NumPy's order; the first index out of range is named."""
    monkeypatch.setattr(threads_of_kernels, "worth", lambda _: ng.get_num_threads())
    rng = np.random.default_rng(1)
    axis = min(len(shape) - 1, 1)
    n = shape[axis]
    index = rng.integers(-n, n, shape)
    x, w = rng.normal(size=shape), rng.normal(size=shape)
    along = np.indices(shape)
    along[axis] = index
    expected = x.copy()
    np.add.at(expected, tuple(along), w)
    before = ng.get_num_threads()
    try:
        for threads in (1, 2):
            ng.set_num_threads(threads)
            t, source = leaf(x), leaf(w)
            found = ng.scatter_add(t, index, source, axis=axis)
            np.testing.assert_array_equal(found.detach().numpy(), expected)
            (found * x).sum().backward()
            np.testing.assert_array_equal(np.asarray(t.grad), x)
            picked = np.take_along_axis(x, index, axis)
            np.testing.assert_array_equal(np.asarray(source.grad), picked)
            np.testing.assert_array_equal(ng.take_along_axis(x, index, axis).numpy(), picked)
            row = index.ravel()[: 2 * n]
            taken = ng.take(x, row, axis=axis).numpy()
            np.testing.assert_array_equal(taken, np.take(x, row, axis))
            for bad in (n, -n - 1):
                wrong = index.copy()
                wrong.flat[[-2, -1]] = bad, 3 * n
                for function in (
                    lambda i: ng.scatter_add(x, i, w, axis=axis),
                    lambda i: ng.take_along_axis(x, i, axis),
                    lambda i: ng.take(x, i.ravel()[-5:], axis=axis),
                ):
                    with pytest.raises(ng.NumgradIndexError, match=f"index {bad} is out of range"):
                        function(wrong)
    finally:
        ng.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_sums_in_long_rows_are_in_the_order_of_numpy(dtype):
    """Of rows that are fetched ahead; fewer additions than are ahead, wrong indices anywhere."""
    rng = np.random.default_rng(2)
    n = NEAR_BYTES // 4 + 1
    x = rng.normal(size=n).astype(dtype)
    for count in (0, 1, AHEAD, AHEAD + 1, 5000):
        index = np.append(rng.integers(-n, n, count // 2), rng.integers(5, 9, count - count // 2))
        w = (rng.normal(size=count) * 100).astype(dtype)
        expected = x.copy()
        np.add.at(expected, index, w)
        for function in (ng.scatter_add, ng.index_add):
            np.testing.assert_array_equal(function(x, index, w, axis=0).numpy(), expected)
            for k in (0, count // 2, count - 1) if count else ():
                for bad in (n, -n - 1, 2**62, -(2**62)):
                    wrong = index.copy()
                    wrong[k] = bad
                    with pytest.raises(ng.NumgradIndexError, match=f"index {bad} is out of range"):
                        function(x, wrong, w, axis=0)


def test_indices_of_nothing_are_checked():
    for x in (np.zeros((0, 3)), np.zeros((0, 3, 2)), np.zeros((2, 3, 0))):
        assert ng.take(x, [2, -3], axis=1).shape == (x.shape[0], 2, *x.shape[2:])
        with pytest.raises(ng.NumgradIndexError, match="take: index 3"):
            ng.take(x, [0, 3], axis=1)
    with pytest.raises(ng.NumgradIndexError, match=r"scatter_add: index 3 .* axis 0 of shape"):
        ng.scatter_add(ng.zeros(3), [0, 3], [1.0, 2.0], axis=0)


def test_sums_along_an_axis_when_compiled_and_mapped():
    rng = np.random.default_rng(2)
    x, w, index = rng.normal(size=(4, 3)), rng.normal(size=(6, 3)), rng.integers(0, 4, (6, 3))

    def function(x, w):
        return ng.sin(ng.scatter_add(x, index, w, axis=0)).sum()

    assert gradcheck(function, (leaf(x), leaf(w)))
    assert gradgradcheck(function, (leaf(x), leaf(w)))
    plain = ng.grad(function, argnums=(0, 1))(x, w)
    for one, other in zip(ng.jit(ng.grad(function, argnums=(0, 1)))(x, w), plain, strict=True):
        np.testing.assert_allclose(one, other)
    xs = rng.normal(size=(5, 4, 3))
    mapped = ng.vmap(lambda x: ng.scatter_add(x, index, w, axis=0))(xs)
    for k, one in enumerate(xs):
        expected = ng.scatter_add(one, index, w, axis=0).numpy()
        np.testing.assert_allclose(np.asarray(mapped)[k], expected)
