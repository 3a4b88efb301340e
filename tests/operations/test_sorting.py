"""Sorting, searching, sets: what gradients do at ties and NaN, what ``ng.jit`` does, bad input."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import threads as threads_of_kernels
from numgrad.errors import NumgradError
from numgrad.kernels.sorting import LEAST
from numgrad.operations.sorting import stable_order
from numgrad.testing import gradcheck, gradgradcheck

rng = np.random.default_rng(5)
X = rng.normal(size=(3, 4))


def leaf(x):
    return ng.tensor(x, requires_grad=True)


def gradient(function, x):
    t = leaf(x)
    y = function(t)
    weights = np.arange(1.0, y.size + 1).reshape(y.shape)
    return ng.autograd.grad((y * weights).real.sum(), t)[0].numpy()


# ------------------------------------------------------------------------------------------- order


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16", "bool", "complex128"])
def test_stable_orders_are_those_of_numpy(dtype):
    for shape in ((70, 90), (6000,), (3,), (0, 4)):
        x = (rng.normal(size=shape) * 30).astype(dtype)
        if x.dtype.kind == "f":
            x[rng.random(shape) < 0.1] = np.nan
        for axis in range(x.ndim):
            expected = np.argsort(x, axis=axis, kind="stable")
            np.testing.assert_array_equal(stable_order(x, axis), expected)
            np.testing.assert_array_equal(ng.argsort(x, axis=axis, stable=True).numpy(), expected)


@pytest.fixture
def use_threads():
    """What sets the number of threads until the end of the test."""
    before = ng.get_num_threads()
    yield ng.set_num_threads
    ng.set_num_threads(before)


WINDOWS = {
    "digits apart": lambda n: rng.normal(size=n),
    "ties, both zeros": lambda n: rng.integers(-3, 3, n) * rng.choice([-1.0, 1.0], n),
    "an outlier": lambda n: np.where(np.arange(n) == 7, -1e30, 1 + rng.random(n) * 1e-9),
    "NaN and infinity": lambda n: rng.choice([np.nan, -np.nan, np.inf, -np.inf, 0.0], n),
    "subnormal": lambda n: rng.normal(size=n) * 1e-310,
    "in order": lambda n: np.sort(rng.normal(size=n)),
    "all the same": np.ones,
}


@pytest.mark.parametrize("numbers", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("threads", [1, 2])
def test_orders_of_floats_by_bytes_are_those_of_numpy(numbers, threads, use_threads, monkeypatch):
    monkeypatch.setattr(threads_of_kernels, "worth", lambda _: ng.get_num_threads())
    use_threads(threads)
    for dtype in (np.float64, np.float32):
        x = numbers(40_000).astype(dtype)
        expected = np.argsort(x, kind="stable")
        np.testing.assert_array_equal(ng.argsort(x).numpy(), expected)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint64", "uint32"])
def test_orders_of_integers_by_bytes_are_those_of_numpy(dtype):
    limits = np.iinfo(dtype)
    for lowest, highest in ((limits.min, limits.max), (0, 9), (limits.max - 3, limits.max)):
        x = rng.integers(lowest, highest, 20_000, dtype, endpoint=True)
        np.testing.assert_array_equal(ng.argsort(x).numpy(), np.argsort(x, kind="stable"))
    x = np.where(rng.random(20_000) < 0.01, limits.max, rng.integers(0, 1 << 20, 20_000, dtype))
    np.testing.assert_array_equal(ng.argsort(x).numpy(), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint32"])
def test_rows_sorted_by_several_threads_are_those_of_one(dtype, use_threads):
    n = 4 * LEAST + 3
    x = (rng.normal(size=n) * 1000).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(n) < 0.2] = np.nan
        zeros = rng.random(n) < 0.3
        x[zeros] = rng.choice([0.0, -0.0], zeros.sum())
    expected = np.sort(x)
    found = []
    for threads in (1, 2, 3):
        use_threads(threads)
        found.append(ng.sort(x).numpy())
        np.testing.assert_array_equal(found[-1], expected)
        assert found[-1].tobytes() == found[0].tobytes()
        rows = x[: n // 4 * 4].reshape(4, -1)
        np.testing.assert_array_equal(ng.sort(rows).numpy(), np.sort(rows))
    if x.dtype.kind == "f":
        signs = np.signbit(found[0][found[0] == 0])
        assert signs.sum() == np.signbit(x[x == 0]).sum()
        assert (np.diff(signs.astype(int)) <= 0).all()


def test_kinds_of_long_orders_are_checked():
    for function in (ng.sort, ng.argsort):
        with pytest.raises(NumgradError, match=f"{function.__name__}: .*kind"):
            function(np.zeros(2 * LEAST), kind="bogus")


def test_of_equal_elements_the_first_is_in_front():
    x = [2.0, 1.0, 2.0, np.nan, 1.0, np.nan]
    np.testing.assert_array_equal(gradient(ng.sort, x), [3, 1, 4, 5, 2, 6])
    descending = gradient(lambda t: ng.sort(t, descending=True), x)
    np.testing.assert_array_equal(descending, [3, 5, 4, 1, 6, 2])
    order = ng.argsort(x, descending=True).numpy()
    np.testing.assert_array_equal(order, [3, 5, 0, 2, 1, 4])
    np.testing.assert_array_equal(ng.sort(x, descending=True).numpy(), np.array(x)[order])
    many = np.repeat([3.0, 1.0, 2.0], 2000)
    np.testing.assert_array_equal(
        gradient(ng.sort, many), 1 + np.argsort(np.argsort(many, kind="stable"))
    )


def test_complex_numbers_are_sorted_as_pairs():
    x = np.array([1 + 2j, 1 - 1j, 0.5, 1 + 0j])
    np.testing.assert_array_equal(ng.sort(x).numpy(), np.sort(x))
    np.testing.assert_array_equal(gradient(ng.sort, x), [4, 2, 1, 3])


def test_layouts_and_lengths():
    for x in (X.T, X[::-1, ::2], X[:0], X[:, :0], X[:1, :1], np.asfortranarray(X)):
        for axis in (0, 1, None):
            np.testing.assert_array_equal(
                ng.sort(ng.asarray(x), axis=axis).numpy(), np.sort(x, axis)
            )
            t = leaf(np.copy(x))
            ng.sort(t, axis=axis).sum().backward()
            np.testing.assert_array_equal(t.grad.numpy(), np.ones(x.shape))


def test_methods_give_copies():
    t = ng.tensor([3.0, 1.0, 2.0])
    assert t.sort().tolist() == [1.0, 2.0, 3.0]
    assert t.partition(0)[0] == 1.0
    assert t.tolist() == [3.0, 1.0, 2.0]


def test_derivatives():
    t = leaf(X)
    assert gradgradcheck(lambda t: ng.sin(ng.sort(t, axis=0)), (t,))
    assert gradgradcheck(lambda t: ng.sin(ng.topk(t, 2)[0]), (t,))
    hessian = ng.hessian(lambda x: (ng.sort(x) ** 3 * ng.arange(3.0)).sum())(np.array([3.0, 1, 2]))
    np.testing.assert_allclose(hessian, np.diag([36.0, 0, 12]))
    for transform in (ng.jacrev, ng.jacfwd):
        found = transform(lambda x: ng.sort(x, descending=True))(np.array([3.0, 1, 2]))
        np.testing.assert_array_equal(found, [[1, 0, 0], [0, 0, 1], [0, 1, 0]])


def test_topk():
    for n, k in ((40, 3), (6, 4), (5, 5), (5, 0)):
        x = rng.permutation(n).astype(float)
        for largest in (True, False):
            values, indices = ng.topk(x, k, largest=largest)
            expected = np.sort(x)[::-1][:k] if largest else np.sort(x)[:k]
            np.testing.assert_array_equal(values.numpy(), expected)
            np.testing.assert_array_equal(x[indices.numpy()], expected)
            loose = ng.topk(x, k, largest=largest, sorted=False).values.numpy()
            np.testing.assert_array_equal(np.sort(loose), np.sort(expected))
    assert np.isnan(ng.topk([1.0, np.nan, *range(50)], 1).values.item())
    np.testing.assert_array_equal(gradient(lambda t: ng.topk(t, 1, axis=0)[0], X),
                                  (X.max(axis=0) == X) * np.arange(1, 5))  # fmt: skip


def test_partition_is_of_the_same_elements():
    x = rng.normal(size=(4, 30))
    t = leaf(x)
    y = ng.partition(t, (3, 20), axis=1)
    np.testing.assert_array_equal(np.sort(y.detach().numpy()), np.sort(x))
    np.testing.assert_array_equal(y.detach().numpy()[:, [3, 20]], np.sort(x)[:, [3, 20]])
    (y * y.detach()).sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), x)


def test_compiled_functions_sort():
    def f(x):
        values, indices = ng.topk(x, 2)
        return (ng.sort(x * 2, axis=0) * x).sum() + (values * indices).sum()

    fast = ng.jit(ng.value_and_grad(f))
    for x in (X, rng.normal(size=(5, 4))):
        value, g = fast(x)
        expected, wanted = ng.value_and_grad(f)(x)
        np.testing.assert_allclose(value, expected)
        np.testing.assert_allclose(g, wanted)


# ------------------------------------------------------------------------------------- searching


def test_sums_by_place():
    x, w = rng.integers(0, 5, 20), rng.normal(size=20)
    t = leaf(w)
    assert gradcheck(lambda w: ng.bincount(x, w, minlength=7), (t,))
    assert gradgradcheck(lambda w: ng.bincount(x, ng.sin(w)), (t,))
    np.testing.assert_array_equal(
        ng.jacfwd(lambda w: ng.bincount(x, w))(w), np.arange(x.max() + 1)[:, None] == x
    )
    places = ng.tensor(x)
    fast = ng.jit(ng.grad(lambda w: (ng.bincount(places, w, length=6) ** 2).sum()))
    np.testing.assert_allclose(fast(w), 2 * np.bincount(x, w)[x])
    assert ng.bincount([]).tolist() == []


def test_many_sums_by_place_are_added_in_order():
    for count, dtype in ((5000, "int64"), (5000, "uint8"), (1024, "uint64")):
        x = rng.integers(0, 200, count).astype(dtype)
        for w in (rng.normal(size=count), rng.normal(size=2 * count)[::2], x, x > 3):
            for least in (0, 1000, np.int64(3)):
                found = ng.bincount(x[::-1], w, minlength=least).numpy()
                expected = np.bincount(x[::-1].astype(np.int64), w, least)
                np.testing.assert_array_equal(found, expected)
    x = np.arange(5000)
    x[77] = -1
    for bad, least, kind, text in (
        (x, 0, ValueError, "negative"),
        (x.reshape(50, 100), 0, ValueError, "depth|deep"),
        (abs(x), -1, ValueError, "negative"),
        (abs(x), 2.5, TypeError, "integer"),
    ):
        with pytest.raises(kind, match=f"bincount: .*({text})"):
            ng.bincount(bad, np.ones(bad.shape), minlength=least)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "int8", "bool"])
def test_many_places_are_those_of_numpy(dtype, monkeypatch):
    monkeypatch.setattr(threads_of_kernels, "worth", lambda _: ng.get_num_threads())
    before = ng.get_num_threads()
    for count in (0, 1, 2, 63, 1000):
        a = np.sort((rng.normal(size=count) * 50).astype(dtype))
        v = (rng.normal(size=(12, 100)) * 60).astype(dtype)
        if a.dtype.kind == "f":
            v[3, 4:70], v[5, 5], v[6, 6], v[0] = np.nan, np.inf, -np.inf, -0.0
            a[a.size - a.size // 3 :] = np.nan
        for values in (v, np.sort(v, axis=None), v.T, v.astype("float64"), v[0, :3]):
            for side in ("left", "right"):
                expected = np.searchsorted(a, values, side)
                for threads in (1, 2):
                    ng.set_num_threads(threads)
                    found = ng.searchsorted(a, values, side).numpy()
                    np.testing.assert_array_equal(found, expected)
                ng.set_num_threads(before)
                if a.dtype.kind != "f" or not np.isnan(a).any():
                    for bins in (
                        a,
                        a[::-1],
                        *([[0.5, 2.0, np.nan]] if a.dtype.kind == "f" else []),
                    ):
                        expected = np.digitize(values, bins, side == "left")
                        found = ng.digitize(values, bins, right=side == "left").numpy()
                        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match=r"digitize: .*monotonic"):
        ng.digitize(rng.normal(size=1000), [1, 3, 2])


def test_places_are_indices():
    t = leaf(X)
    np.testing.assert_array_equal(t[ng.nonzero(t > 0)].detach().numpy(), X[X > 0])
    assert t[ng.nonzero(t > 0)].requires_grad
    edges = np.sort(rng.normal(size=5))
    compiled = ng.jit(lambda a, v: ng.searchsorted(ng.sort(a), v))
    np.testing.assert_array_equal(compiled(edges[::-1].copy(), X), np.searchsorted(edges, X))


WITH_UNKNOWN_SHAPE = {
    "nonzero": ng.nonzero, "flatnonzero": ng.flatnonzero, "argwhere": ng.argwhere,
    "unique": ng.unique, "unique_all": ng.unique_all,
    "histogram": lambda x: ng.histogram(x, "auto"),
    "bincount": lambda x: ng.bincount(x.astype(int)), "intersect1d": lambda x: ng.intersect1d(x, x),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_UNKNOWN_SHAPE)
def test_shapes_that_numbers_decide_are_refused_by_the_compiler(name):
    with pytest.raises(ng.NumgradTraceError, match="depends on the numbers"):
        ng.jit(WITH_UNKNOWN_SHAPE[name])(X)


# ------------------------------------------------------------------------------------------- sets


def test_distinct_elements_carry_the_gradient_of_their_first_occurrence():
    x = [3.0, 1.0, 3.0, np.nan, 1.0, np.nan]
    np.testing.assert_array_equal(gradient(ng.unique, x), [2, 1, 0, 3, 0, 0])
    np.testing.assert_array_equal(gradient(ng.unique_values, x), [2, 1, 0, 3, 0, 4])
    assert ng.unique_counts(x).counts.tolist() == [2, 2, 1, 1]
    rows = np.array([[1.0, 2], [0, 5], [1, 2]])
    for function in (lambda t: ng.unique(t, axis=0), lambda t: ng.unique(t, True, axis=0)[0]):
        np.testing.assert_array_equal(gradient(function, rows), [[3, 4], [1, 2], [0, 0]])
    assert gradgradcheck(lambda t: ng.sin(ng.unique(t)), (leaf(X),))
    np.testing.assert_array_equal(ng.jacfwd(ng.unique)(np.array([2.0, 1, 2])),
                                  [[0, 1, 0], [1, 0, 0]])  # fmt: skip


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse", "unique_values"])
@pytest.mark.parametrize("x", [X.round(), np.array([2, 0, 2]), np.array([np.nan, 1, np.nan])])
def test_distinct_elements_are_those_of_numpy(name, x):
    found, expected = getattr(ng, name)(ng.tensor(x)), getattr(np, name)(x)
    if name == "unique_values":
        found, expected = (found,), (np.sort(expected),)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)


def test_what_sets_pass_on_carries_gradients():
    a, b = leaf([3.0, 1.0, 2.0, 3.0]), leaf([2.0, 3.0, 5.0])
    expected = {
        ng.intersect1d: ([1, 0, 1, 0], [0, 0, 0]), ng.union1d: ([1, 1, 1, 0], [0, 0, 1]),
        ng.setdiff1d: ([0, 1, 0, 0], [0, 0, 0]), ng.setxor1d: ([0, 1, 0, 0], [0, 0, 1]),
    }  # fmt: skip
    for function, (ga, gb) in expected.items():
        found = ng.autograd.grad(function(a, b).sum(), (a, b), allow_unused=True,
                                 materialize_grads=True)  # fmt: skip
        assert [g.tolist() for g in found] == [ga, gb], function


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ng.sort(3.0), IndexError, "sort: axis -1"),
        (lambda: ng.sort(X, axis=(0, 1)), TypeError, "sort: axis"),
        (lambda: ng.sort(X, kind="x"), ValueError, "sort: sort kind"),
        (lambda: ng.argsort(["a"]), TypeError, "numeric"),
        (lambda: ng.partition(X, 9), ValueError, "argpartition: kth"),
        (lambda: ng.topk(X, 5), ValueError, r"topk: k=5 of an axis of length 4 of shape \(3, 4\)"),
        (
            lambda: ng.lexsort([[1], [1, 2]]),
            ValueError,
            r"lexsort: keys have shapes \(1,\), \(2,\)",
        ),
        (lambda: ng.nonzero(1.0), ValueError, "nonzero: a 0-d operand"),
        (lambda: ng.searchsorted(X, 1.0), ValueError, r"searchsorted: .* shape \(3, 4\)"),
        (lambda: ng.digitize(X, [1, 3, 2]), ValueError, "digitize: .*monotonic"),
        (lambda: ng.digitize(X, [1j]), TypeError, "digitize: complex"),
        (lambda: ng.bincount(X), TypeError, "bincount: needs integers"),
        (lambda: ng.bincount([-1]), ValueError, "bincount: .*negative"),
        (lambda: ng.choose([0, -1], [[1.0], [2.0]]), ValueError, "choose: .*negative"),
        (lambda: ng.choose([0, 2], [[1.0], [2.0]]), ValueError, "choose: a number is not one"),
        (lambda: ng.bincount([1], [2j]), TypeError, "bincount: complex"),
        (lambda: ng.bincount([1, 2], [2.0]), ValueError, r"bincount: weights of shape \(1,\)"),
        (lambda: ng.bincount([3], length=2), IndexError, "bincount: the integer 3 .* length=2"),
        (lambda: ng.unique(X, axis=2), IndexError, "unique: axis 2"),
        (lambda: ng.histogram(X, 0), ValueError, "histogram: .*bins"),
        (lambda: ng.histogram(X, [2, 1, 3]), ValueError, "histogram: .*monotonic"),
        (lambda: ng.histogram(X, weights=[1.0]), ValueError, r"histogram: weights .* \(1,\)"),
        (lambda: ng.histogram2d(X[0], X[1, :2]), ValueError, "histogram2d: coordinates of shapes"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert isinstance(raised.value, ng.NumgradError)


@pytest.mark.parametrize("function", [np.argsort, lambda x, **k: np.argpartition(x, 0, **k)])
def test_places_in_a_number_are_those_in_a_row_of_one(function):
    x = ng.tensor(3.0)
    for given in ({}, {"axis": 0}, {"axis": None}):
        expected = function(np.array(3.0), **given)
        for found in (function(x, **given), ng.jit(lambda x: function(x, **given))(x)):  # noqa: B023
            np.testing.assert_array_equal(found, expected)
            assert found.shape == (1,)
        assert ng.vmap(lambda x: function(x, **given))(ng.tensor([1.0, 2.0])).shape == (2, 1)  # noqa: B023
    with pytest.raises(ng.NumgradIndexError):
        function(x, axis=1)


@pytest.mark.parametrize("order", [[0, 1], list(range(10)), [[0]]])
def test_a_sorter_of_another_size(order):
    a = np.arange(9.0)
    for form in (ng.searchsorted, np.searchsorted, ng.jit(ng.searchsorted)):
        with pytest.raises((NumgradError, ValueError), match="sorter"):
            form(ng.tensor(a), np.ones(2), sorter=np.array(order))
