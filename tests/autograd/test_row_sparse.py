"""Row-sparse gradients: the type, and how the engine carries them to leaves."""

import copy
import pickle

import numpy as np
import pytest

import numgrad as ng
from numgrad.kernels import row_sparse as kernels
from numgrad.nn.embedding import _embedding as embedding

RNG = np.random.default_rng(5)
WEIGHT = RNG.normal(size=(6, 3))
TWICE = np.array([[1, 1], [3, 0]])
ONCE = np.array([4, 1])


def rows_of(weight, indices):
    return np.sum(embedding(weight, indices, sparse=True) ** 2)


def gradient(indices, weight=WEIGHT):
    """Of ``rows_of`` in NumPy."""
    out = np.zeros_like(weight)
    np.add.at(out, indices, 2 * weight[indices])
    return out


def leaf():
    return ng.tensor(WEIGHT, requires_grad=True)


def dense(found):
    return (found.to_dense() if found.is_sparse else found).numpy()


# ----------------------------------------------------------------------------------- the type


@pytest.fixture
def rows():
    return ng.RowSparseTensor([2, 0, 2], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (4, 2))


WHOLE = np.array([[3.0, 4.0], [0, 0], [6.0, 8.0], [0, 0]])


def test_attributes(rows):
    assert rows.is_sparse
    assert not ng.ones(2).is_sparse
    assert rows.shape == (4, 2)
    assert rows.dtype == np.float64
    assert (rows.ndim, rows.size, rows.nnz, len(rows)) == (2, 8, 3, 4)
    assert rows.indices.dtype == np.int64
    assert rows.indices.tolist() == [2, 0, 2]
    assert rows.values.shape == (3, 2)
    assert rows.is_leaf
    assert not rows.requires_grad
    assert rows.grad_fn is None


def test_coalesce_sums_repeated_rows_in_rising_order(rows):
    once = rows.coalesce()
    assert not rows.is_coalesced()
    assert once.is_coalesced()
    assert once.coalesce() is once
    assert once.indices.tolist() == [0, 2]
    np.testing.assert_array_equal(once.values.numpy(), [[3, 4], [6, 8]])
    np.testing.assert_array_equal(once.to_dense().numpy(), WHOLE)


def test_arithmetic(rows):
    for other in (ng.ones((4, 2)), np.ones((4, 2))):
        for total in (rows + other, other + rows):
            assert type(total) is ng.Tensor
            np.testing.assert_array_equal(total.numpy(), WHOLE + 1)
        np.testing.assert_array_equal((rows - other).numpy(), WHOLE - 1)
        np.testing.assert_array_equal((other - rows).numpy(), 1 - WHOLE)
    assert (rows + rows).nnz == 6
    assert not dense(rows - rows).any()
    np.testing.assert_array_equal(dense(rows + rows), 2 * WHOLE)
    for double in (rows * 2, 2.0 * rows, rows * ng.tensor(2.0), rows / 0.5, -(rows * -2)):
        assert double.is_sparse
        np.testing.assert_array_equal(dense(double), 2 * WHOLE)
    with pytest.raises(TypeError):
        rows * np.ones(2)
    for operator in (lambda: rows + "1", lambda: rows - 1, lambda: 1 - rows, lambda: rows / rows):
        with pytest.raises(TypeError):
            operator()
    with pytest.raises(ng.NumgradValueError, match="shapes"):
        rows + ng.RowSparseTensor([0], [[1.0]], (4, 1))
    with pytest.raises(ng.NumgradTypeError, match="dtypes"):
        rows + ng.RowSparseTensor([0], np.ones((1, 2), np.float32), (4, 2))


def test_copies_share_nothing_and_detached_ones_do(rows):
    for twin in (rows.clone(), copy.deepcopy(rows), pickle.loads(pickle.dumps(rows))):
        twin.values[0, 0] = 100.0
        twin.indices[0] = 1
    np.testing.assert_array_equal(dense(rows), WHOLE)
    rows.detach().values[1, 0] = 100.0
    assert dense(rows)[0, 0] == 100.0
    assert rows.detach_() is rows
    assert rows.requires_grad_(False) is rows
    with pytest.raises(ng.NumgradRuntimeError, match="to_dense"):
        rows.requires_grad_()


def test_in_place_changes(rows):
    assert rows.mul_(2) is rows
    np.testing.assert_array_equal(dense(rows), 2 * WHOLE)
    assert rows.zero_() is rows
    assert rows.nnz == 0
    np.testing.assert_array_equal(dense(rows), 0 * WHOLE)


def test_rows_are_added_to_a_tensor_in_place(rows):
    x = whole = ng.ones((4, 2))
    x += rows
    x -= 2 * rows
    assert x is whole
    np.testing.assert_array_equal(whole.numpy(), 1 - WHOLE)


def test_no_array_is_made_unasked(rows):
    with pytest.raises(ng.NumgradTypeError, match="to_dense"):
        rows.numpy()
    with pytest.raises(ng.NumgradTypeError, match="to_dense"):
        np.asarray(rows)


def test_repr(rows):
    shown = "row_sparse(indices=[0, 2],\n           values=[[3., 4.],\n                   [6., 8.]]"
    assert repr(rows.coalesce()) == shown + ", shape=(4, 2))"
    assert repr(ng.RowSparseTensor([], np.ones(0, np.float32), (2,))).endswith("dtype=float32)")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([2.0], [[1.0]], (3, 1)), ng.NumgradTypeError),
        (([2], [[1]], (3, 1)), ng.NumgradTypeError),
        (([2], [1.0], (3, 1)), ng.NumgradValueError),
        (([2], 1.0, ()), ng.NumgradValueError),
        (([3], [[1.0]], (3, 1)), ng.NumgradIndexError),
        (([-1], [[1.0]], (3, 1)), ng.NumgradIndexError),
    ],
)
def test_what_makes_no_row_sparse_tensor(arguments, error):
    with pytest.raises(error, match="RowSparseTensor"):
        ng.RowSparseTensor(*arguments)


# -------------------------------------------------------------------------------- the kernels


@pytest.mark.parametrize("shape", [(40, 8), (5_000_000, 2), (3000,)])
def test_sums_have_the_same_bits_for_any_number_of_threads(shape):
    count = max(1, 200_000 // int(np.prod(shape[1:])) // 8)
    indices = RNG.integers(0, shape[0], count)
    values = RNG.normal(size=(count, *shape[1:]))
    expected_rows = np.unique(indices)
    expected = np.zeros((expected_rows.size, *shape[1:]))
    np.add.at(expected, np.searchsorted(expected_rows, indices), values)
    before = ng.get_num_threads()
    try:
        for threads in (1, 2, 3):
            ng.set_num_threads(min(threads, before))
            rows, sums = kernels.sum_rows(values, indices)
            np.testing.assert_array_equal(rows, expected_rows)
            np.testing.assert_array_equal(sums, expected)
            if shape[0] < 10_000:
                whole = np.zeros(shape)
                kernels.scatter_rows(values, indices, whole)
                np.testing.assert_array_equal(whole[rows], expected)
                assert np.count_nonzero(whole) == np.count_nonzero(expected)
    finally:
        ng.set_num_threads(before)


@pytest.mark.slow(cases=0)
def test_parallel_kernels_give_the_bits_of_serial_ones(monkeypatch):
    indices, values = RNG.integers(0, 50, 400), RNG.normal(size=(400, 3))
    serial = kernels.sum_rows(values, indices)
    whole = np.zeros((60, 3))
    kernels.scatter_rows(values, indices, whole)
    gathered = np.empty((400, 3))
    assert kernels.gather_rows(whole, indices, gathered) == -1
    np.testing.assert_array_equal(gathered, whole[indices])
    monkeypatch.setattr(kernels, "_ELEMENT_NS", 1000.0)
    parallel = kernels.sum_rows(values, indices)
    for one, other in zip(serial, parallel, strict=True):
        np.testing.assert_array_equal(one, other)
    other = np.zeros((60, 3))
    kernels.scatter_rows(values, indices, other)
    np.testing.assert_array_equal(whole, other)
    again = np.empty((400, 3))
    assert kernels.gather_rows(whole, indices, again) == -1
    np.testing.assert_array_equal(again, gathered)
    again[:] = -1
    assert kernels.gather_rows(whole, np.array([3, 60, -1]), again[:3]) == 1
    assert np.all(again == -1)


# --------------------------------------------------------------------------------- the engine


def test_a_leaf_takes_rows():
    w = leaf()
    rows_of(w, TWICE).backward()
    assert type(w.grad) is ng.RowSparseTensor
    assert w.grad.nnz == 4
    np.testing.assert_allclose(dense(w.grad), gradient(TWICE))


def test_rows_meet_rows_and_arrays_in_grad():
    w = leaf()
    rows_of(w, TWICE).backward()
    first = w.grad
    rows_of(w, ONCE).backward()
    assert w.grad is first
    assert first.nnz == 6
    expected = gradient(TWICE) + gradient(ONCE)
    np.testing.assert_allclose(dense(first), expected)
    np.sum(w * 3.0).backward()
    whole = w.grad
    assert type(whole) is ng.Tensor
    np.testing.assert_allclose(whole.numpy(), expected + 3)
    np.testing.assert_allclose(dense(first), expected)
    rows_of(w, ONCE).backward()
    assert w.grad is whole
    np.testing.assert_allclose(whole.numpy(), expected + 3 + gradient(ONCE))


def test_a_grad_that_lies_apart_is_added_to():
    w = leaf()
    w.grad = ng.asarray(np.ones((3, 6)).T)
    rows_of(w, TWICE).backward()
    np.testing.assert_allclose(w.grad.numpy(), 1 + gradient(TWICE))


def test_a_grad_in_use_counts_the_addition():
    w, x = leaf(), ng.tensor(WEIGHT, requires_grad=True)
    w.grad = ng.ones((6, 3))
    y = np.sum(x * w.grad)
    rows_of(w, TWICE).backward()
    with pytest.raises(ng.NumgradRuntimeError, match="version 1"):
        y.backward()


USES = {
    "two lookups": (lambda w: rows_of(w, TWICE) + rows_of(w, ONCE), True),
    "three lookups": (lambda w: rows_of(w, TWICE) + rows_of(w, ONCE) + rows_of(w, ONCE), True),
    "lookup, array": (lambda w: rows_of(w, TWICE) + np.sum(w * w), False),
    "array, lookup": (lambda w: np.sum(w * w) + rows_of(w, TWICE), False),
    "lookup, view": (lambda w: rows_of(w, TWICE) + np.sum(w[1:] * 2.0), False),
    "lookup, product": (lambda w: np.sum(embedding(w, ONCE, sparse=True) @ w.T), False),
    "all": (
        lambda w: (
            rows_of(w, ONCE) + np.sum(w * w) + rows_of(w, TWICE) + np.sum(w) + np.sum(w @ w.T)
        ),
        False,
    ),
}


@pytest.mark.parametrize("use", USES)
def test_several_uses_in_one_forward(use):
    function, sparse = USES[use]
    w, x = leaf(), leaf()
    function(w).backward()
    assert w.grad.is_sparse == sparse
    expected = ng.grad(lambda w: function(w))(ng.tensor(WEIGHT))  # by the formulas
    np.testing.assert_allclose(dense(w.grad), expected.detach().numpy(), rtol=1e-12)
    (found,) = ng.autograd.grad(function(x), x)
    assert found.is_sparse == sparse
    np.testing.assert_array_equal(dense(found), dense(w.grad))
    assert x.grad is None


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("n", [7, 9000])
def test_large_tables_meet_rows(n, last):
    start = RNG.normal(size=(n, 3))
    w = ng.tensor(start, requires_grad=True)
    terms = [rows_of(w, TWICE), np.sum(np.exp(w)), rows_of(w, ONCE), np.sum(w * w)]
    if last:  # what is computed last is differentiated first
        terms.append(rows_of(w, ONCE) * 0.0)
    sum(terms).backward()
    expected = gradient(TWICE, start) + gradient(ONCE, start) + np.exp(start) + 2 * start
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-12, atol=1e-14)


def test_what_was_computed_gets_a_dense_gradient():
    w = leaf()
    scaled = w * 2.0
    scaled.retain_grad()
    rows_of(scaled, TWICE).backward()
    assert type(scaled.grad) is ng.Tensor
    assert type(w.grad) is ng.Tensor
    np.testing.assert_allclose(scaled.grad.numpy(), gradient(TWICE, 2 * WEIGHT))
    np.testing.assert_allclose(w.grad.numpy(), 2 * gradient(TWICE, 2 * WEIGHT))


def test_a_recorded_backward_is_dense_and_can_be_differentiated():
    w = leaf()
    looked_up = embedding(w, TWICE, sparse=True)
    (first,) = ng.autograd.grad(np.sum(looked_up * looked_up * looked_up), w, create_graph=True)
    assert type(first) is ng.Tensor
    (second,) = ng.autograd.grad(np.sum(first * first), w)
    expected = np.zeros_like(WEIGHT)
    np.add.at(expected, TWICE, 3 * WEIGHT[TWICE] ** 2)
    np.testing.assert_allclose(first.detach().numpy(), expected)
    counts = np.bincount(TWICE.ravel(), minlength=6)[:, None]
    np.testing.assert_allclose(dense(second), 2 * expected * counts * 6 * WEIGHT)


def test_a_recorded_gradient_meets_rows_in_grad():
    w = leaf()
    rows_of(w, TWICE).backward()
    with pytest.warns(UserWarning, match="cycle"):
        rows_of(w, ONCE).backward(create_graph=True)
    assert w.grad.requires_grad
    np.testing.assert_allclose(w.grad.detach().numpy(), gradient(TWICE) + gradient(ONCE))


def test_backward_into_chosen_inputs():
    w, x = leaf(), leaf()
    np.sum(embedding(w, TWICE, sparse=True) * embedding(x, TWICE)).backward(inputs=[w])
    assert w.grad.is_sparse
    assert x.grad is None


def test_frozen_leaves_get_nothing():
    w = leaf()
    loss = rows_of(w, TWICE)
    w.requires_grad_(False)
    loss.backward()
    assert w.grad is None


def test_gradients_of_the_caller_stay_his():
    w = leaf()
    cotangent = np.ones((2, 2, 3))
    embedding(w, TWICE, sparse=True).backward(ng.from_numpy(cotangent))
    w.grad.values[0, 0] = 5.0
    assert np.all(cotangent == 1)


def test_indices_may_change_after_the_backward():
    w, indices = leaf(), TWICE.copy()
    rows_of(w, indices).backward()
    indices[:] = 0
    np.testing.assert_allclose(dense(w.grad), gradient(TWICE))


def test_functional_transforms_give_arrays():
    loss = lambda w: rows_of(w, TWICE)  # noqa: E731
    np.testing.assert_allclose(ng.grad(loss)(WEIGHT), gradient(TWICE))
    np.testing.assert_allclose(ng.jacobian(loss)(WEIGHT), gradient(TWICE))
    w = ng.tensor(WEIGHT)
    np.testing.assert_allclose(ng.autograd.functional.vjp(loss, w)[1].numpy(), gradient(TWICE))
    np.testing.assert_allclose(ng.autograd.functional.jacobian(loss, w).numpy(), gradient(TWICE))
    assert ng.testing.gradcheck(loss, leaf())
    assert ng.testing.gradgradcheck(loss, leaf())


# ------------------------------------------------------------------------------ hooks, anomaly


def test_hooks_of_a_leaf_see_rows_and_may_replace_them():
    w, seen = leaf(), []
    handle = w.register_hook(lambda g: seen.append(g.is_sparse) or g * 2)
    w.register_post_accumulate_grad_hook(lambda w: seen.append(w.grad.is_sparse))
    (rows_of(w, TWICE) + rows_of(w, ONCE)).backward()
    assert seen == [True, True]
    assert w.grad.nnz == 6
    np.testing.assert_allclose(dense(w.grad), 2 * (gradient(TWICE) + gradient(ONCE)))
    handle.remove()
    w.grad = None
    w.register_hook(lambda g: g.to_dense() + 1)
    rows_of(w, TWICE).backward()
    assert not w.grad.is_sparse
    np.testing.assert_allclose(w.grad.numpy(), gradient(TWICE) + 1)


def test_rows_in_place_of_an_array_are_made_dense():
    w = leaf()
    y = w * 2.0
    rows = ng.RowSparseTensor([1], [[1.0, 2.0, 3.0]], (6, 3))
    y.register_hook(lambda g: rows)
    np.sum(y).backward()
    np.testing.assert_array_equal(w.grad.numpy(), 2 * rows.to_dense().numpy())
    w.register_hook(lambda g: ng.RowSparseTensor([1], [[1.0, 2.0]], (6, 2)))
    with pytest.raises(ng.NumgradRuntimeError, match="shape"):
        np.sum(w * 2.0).backward()


def test_hooks_of_the_node_see_rows():
    w, seen = leaf(), []
    y = embedding(w, TWICE, sparse=True)
    y.grad_fn.register_hook(lambda given, _: seen.append(given[0].is_sparse))
    np.sum(y).backward()
    assert seen == [True]
    y = embedding(w, TWICE, sparse=True)
    y.grad_fn.register_hook(lambda given, _: (given[0] * 3, None))
    w.grad = None
    np.sum(y).backward()
    np.testing.assert_array_equal(dense(w.grad)[:, 0], [3, 6, 0, 3, 0, 0])


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:EmbeddingBackward")
def test_anomaly_mode_finds_nan_in_rows():
    w = leaf()
    with ng.autograd.detect_anomaly():
        rows_of(w, TWICE).backward()
        assert w.grad.is_sparse
        y = embedding(w, TWICE, sparse=True)
        with pytest.raises(ng.NumgradRuntimeError, match=r"NaN.*operand 0, of shape \(6, 3\)"):
            y.backward(np.full((2, 2, 3), np.nan))


def test_setting_grad():
    w = leaf()
    w.grad = ng.RowSparseTensor([1], [[1.0, 2.0, 3.0]], (6, 3))
    assert w.grad.is_sparse
    assert copy.deepcopy(w).grad.is_sparse
    with pytest.raises(ng.NumgradRuntimeError, match="shape"):
        w.grad = ng.RowSparseTensor([1], [[1.0, 2.0]], (6, 2))
    with pytest.raises(ng.NumgradRuntimeError, match="dtype"):
        w.grad = ng.RowSparseTensor([1], np.ones((1, 3), np.float32), (6, 3))


def test_an_operation_of_the_users_may_return_rows():
    from numgrad.core.op import OPS
    from numgrad.core.row_gradients import RowSparseArray

    @ng.primitive(row_sparse=True, method=False)
    def first_row_for_test(x):
        """The first row of a matrix."""
        return x[0].copy()

    try:
        first_row_for_test.vjp(x=lambda g, meta_x: ng.getitem_backward(g, meta_x.shape, (0,)))
        first_row_for_test.vjp_kernel(
            lambda call, mask, g: [
                RowSparseArray(np.zeros(1, np.int64), g[None].copy(), call.metas[0].shape)
            ]
        )
        w = leaf()
        np.sum(first_row_for_test(w) * 2.0).backward()
        assert w.grad.indices.tolist() == [0]
        np.testing.assert_array_equal(w.grad.values.numpy(), [[2, 2, 2]])
    finally:
        del OPS["first_row_for_test"]


class Lookup(ng.autograd.Function):
    """Rows of a matrix, with a row-sparse gradient."""

    @staticmethod
    def forward(ctx, weight, indices):
        ctx.indices, ctx.shape = indices, weight.shape
        return ng.tensor(weight.numpy()[indices])

    @staticmethod
    def backward(ctx, g):
        return ng.RowSparseTensor(ctx.indices, g.detach(), ctx.shape), None


def test_a_function_of_the_users_may_return_rows():
    w = leaf()
    np.sum(Lookup.apply(w, ONCE) * 2.0).backward()
    assert w.grad.is_sparse
    np.testing.assert_array_equal(dense(w.grad)[:, 0], [0, 2, 0, 0, 2, 0])
    np.sum(Lookup.apply(w * 3.0, ONCE) + Lookup.apply(w, ONCE)).backward()
    assert not w.grad.is_sparse
    np.testing.assert_array_equal(dense(w.grad)[:, 0], [0, 6, 0, 0, 6, 0])
    (found,) = ng.autograd.grad(np.sum(Lookup.apply(w, ONCE)), w, create_graph=True)
    assert not found.is_sparse
    single = ng.RowSparseTensor([1], np.ones((1, 3), np.float32), (6, 3))
    Lookup.backward = staticmethod(lambda ctx, g: (single, None))
    w.grad = None
    np.sum(Lookup.apply(w, ONCE)).backward()
    np.testing.assert_array_equal(dense(w.grad), np.eye(6)[1][:, None] + np.zeros(3))


# -------------------------------------------------------------------------------- against torch


def test_accumulation_as_in_torch():
    torch = pytest.importorskip("torch")
    lookup = torch.nn.functional.embedding
    w = leaf()
    peer = torch.tensor(WEIGHT, requires_grad=True)

    def step(ours, theirs):
        ours(w).backward()
        theirs(peer).backward()
        assert w.grad.is_sparse == peer.grad.is_sparse
        if w.grad.is_sparse:
            once, peer_once = w.grad.coalesce(), peer.grad.coalesce()
            assert w.grad.is_coalesced() == peer.grad.is_coalesced()
            np.testing.assert_array_equal(once.indices.numpy(), peer_once.indices()[0].numpy())
            np.testing.assert_allclose(once.values.numpy(), peer_once.values().numpy(), 1e-14)
        whole = peer.grad.to_dense() if peer.grad.is_sparse else peer.grad
        np.testing.assert_allclose(dense(w.grad), whole.numpy(), rtol=1e-14)

    def rows(indices):
        return (
            lambda w: rows_of(w, indices),
            lambda p: (lookup(torch.tensor(indices), p, sparse=True) ** 2).sum(),
        )

    step(*rows(TWICE))
    step(*rows(ONCE))
    step(
        lambda w: rows_of(w, ONCE) + rows_of(w, TWICE),
        lambda p: rows(ONCE)[1](p) + rows(TWICE)[1](p),
    )
    step(lambda w: np.sum(w * w), lambda p: (p * p).sum())
    step(*rows(TWICE))
