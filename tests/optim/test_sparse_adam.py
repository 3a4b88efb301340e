"""Optimizers on row-sparse gradients: SparseAdam, SGD, Adagrad, and those that refuse them."""

import copy

import numpy as np
import pytest

import numgrad as ng
from numgrad.nn.embedding import _embedding as embedding

RNG = np.random.default_rng(23)
WEIGHT = RNG.normal(size=(7, 3))
LOOKUPS = [RNG.integers(0, 7, 5) for _ in range(10)]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def loss(w, indices, sparse=True):
    return np.sum(embedding(w, indices, sparse=sparse) ** 2)


def gradient(w, indices):
    """Of ``loss`` in NumPy."""
    out = np.zeros_like(w)
    np.add.at(out, indices, 2 * w[indices])
    return out


def trajectory(optimizer, w, lookups=LOOKUPS, sparse=True):
    for indices in lookups:
        optimizer.zero_grad()
        loss(w, indices, sparse).backward()
        optimizer.step()
    return w.detach().numpy()


def leaf(start=WEIGHT):
    return ng.tensor(start, requires_grad=True)


def lazy_adam(w, lookups, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, sign=1):
    """SparseAdam in NumPy."""
    w, m, v = w.copy(), np.zeros_like(w), np.zeros_like(w)
    for t, indices in enumerate(lookups, 1):
        rows = np.unique(indices)
        g = sign * gradient(w, indices)[rows]
        m[rows] = betas[0] * m[rows] + (1 - betas[0]) * g
        v[rows] = betas[1] * v[rows] + (1 - betas[1]) * g * g
        size = lr * np.sqrt(1 - betas[1] ** t) / (1 - betas[0] ** t)
        w[rows] -= size * m[rows] / (np.sqrt(v[rows]) + eps)
    return w, m, v


OPTIONS = [{}, {"lr": 0.1, "betas": (0.8, 0.9), "eps": 0.01}, {"maximize": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sparse_adam(options):
    w = leaf()
    optimizer = ng.optim.SparseAdam([w], **options)
    found = trajectory(optimizer, w)
    options = dict(options)
    sign = -1 if options.pop("maximize", False) else 1
    expected, m, v = lazy_adam(WEIGHT, LOOKUPS, sign=sign, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    state = optimizer.state[w]
    assert sorted(state) == ["exp_avg", "exp_avg_sq", "step"]
    np.testing.assert_allclose(state["exp_avg"].numpy(), m, rtol=1e-11)
    np.testing.assert_allclose(state["exp_avg_sq"].numpy(), v, rtol=1e-11)
    assert state["step"] == 10


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sparse_adam_as_in_torch(torch, options):
    w, peer = leaf(), torch.tensor(WEIGHT, requires_grad=True)
    ours = trajectory(ng.optim.SparseAdam([w], **options), w)
    theirs = torch_trajectory(torch, torch.optim.SparseAdam([peer], **options), peer)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def torch_trajectory(torch, optimizer, w):
    for indices in LOOKUPS:
        optimizer.zero_grad()
        found = torch.nn.functional.embedding(torch.tensor(indices), w, sparse=True)
        (found**2).sum().backward()
        optimizer.step()
    return w.detach().numpy()


ROWWISE = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
]


@pytest.mark.parametrize(("name", "options"), ROWWISE, ids=str)
def test_steps_of_rows_are_those_of_dense_gradients(name, options):
    # rows without a gradient stay what they are in these optimizers, but for a momentum
    sparse, dense = leaf(), leaf()
    found = trajectory(getattr(ng.optim, name)([sparse], **options), sparse)
    expected = trajectory(getattr(ng.optim, name)([dense], **options), dense, sparse=False)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), ROWWISE, ids=str)
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_steps_of_rows_as_in_torch(torch, name, options):
    w, peer = leaf(), torch.tensor(WEIGHT, requires_grad=True)
    ours = trajectory(getattr(ng.optim, name)([w], **options), w)
    theirs = torch_trajectory(torch, getattr(torch.optim, name)([peer], **options), peer)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_sgd_and_adagrad_in_numpy():
    w, lr = WEIGHT.copy(), 0.05
    for indices in LOOKUPS:
        w -= lr * gradient(w, indices)
    x = leaf()
    np.testing.assert_allclose(trajectory(ng.optim.SGD([x], lr), x), w, rtol=1e-12)
    w, total = WEIGHT.copy(), np.zeros_like(WEIGHT)
    for indices in LOOKUPS:
        g = gradient(w, indices)
        total += g * g
        w -= lr * g / (np.sqrt(total) + 1e-10)
    x = leaf()
    np.testing.assert_allclose(trajectory(ng.optim.Adagrad([x], lr), x), w, rtol=1e-12)


def test_untouched_rows_keep_their_bits():
    w = leaf()
    optimizer = ng.optim.SparseAdam([w])
    trajectory(optimizer, w, [np.array([1, 3, 1]), np.array([3])])
    untouched = [0, 2, 4, 5, 6]
    np.testing.assert_array_equal(w.detach().numpy()[untouched], WEIGHT[untouched])
    for name in ("exp_avg", "exp_avg_sq"):
        assert not np.any(optimizer.state[w][name].numpy()[untouched])


@pytest.mark.parametrize("shape", [(7,), (7, 2, 2), (7, 0)])
def test_rows_of_any_shape(shape):
    start = RNG.normal(size=shape)
    w, whole = leaf(start), leaf(start)
    values = RNG.normal(size=(3, *shape[1:]))
    w.grad = ng.RowSparseTensor([4, 1, 4], values, shape)
    whole.grad = w.grad.to_dense()
    ng.optim.Adagrad([w]).step()
    ng.optim.Adagrad([whole]).step()
    np.testing.assert_allclose(w.detach().numpy(), whole.detach().numpy(), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes(dtype):
    start = WEIGHT.astype(dtype)
    values = RNG.normal(size=(2, 3)) + (1j * RNG.normal(size=(2, 3)) if dtype[0] == "c" else 0)
    w, whole = leaf(start), leaf(start)
    w.grad = ng.RowSparseTensor([4, 1], values.astype(dtype), (7, 3))
    whole.grad = w.grad.to_dense()
    for x in (w, whole):
        ng.optim.Adagrad([x], 0.1).step()
    np.testing.assert_allclose(w.detach().numpy(), whole.detach().numpy(), rtol=1e-6)
    assert w.dtype == dtype


def test_arrays_that_lie_apart():
    start = np.asfortranarray(WEIGHT)
    w = ng.asarray(start.copy(order="F")).requires_grad_()
    x = leaf()
    found = trajectory(ng.optim.SparseAdam([w]), w)
    assert w.detach().numpy().flags.f_contiguous
    np.testing.assert_array_equal(found, trajectory(ng.optim.SparseAdam([x]), x))


def test_a_gradient_without_rows_counts_as_a_step():
    w = leaf()
    optimizer = ng.optim.SparseAdam([w])
    w.grad = ng.RowSparseTensor([], np.zeros((0, 3)), (7, 3))
    optimizer.step()
    assert optimizer.state[w]["step"] == 1
    np.testing.assert_array_equal(w.detach().numpy(), WEIGHT)


@pytest.mark.slow(cases=0)
def test_threads_do_not_change_bits(monkeypatch):
    start, values = RNG.normal(size=(2000, 16)), RNG.normal(size=(3000, 16))
    rows = RNG.integers(0, 2000, 3000)
    serial, parallel = leaf(start), leaf(start)
    for w in (serial, parallel):
        w.grad = ng.RowSparseTensor(rows, values, start.shape)
        ng.optim.SparseAdam([w]).step()
        monkeypatch.setattr("numgrad.codegen.threads.WORK_PER_THREAD_NS", 10.0)
    np.testing.assert_array_equal(serial.detach().numpy(), parallel.detach().numpy())


def test_several_groups_tensors_and_missing_gradients():
    a, b, c, d = leaf(), leaf(), leaf(), leaf()
    optimizer = ng.optim.SparseAdam([{"params": [a, d]}, {"params": [b, c], "lr": 0.5}])
    (loss(a, [1]) + loss(b, [2])).backward()
    optimizer.step()
    np.testing.assert_allclose(a.detach().numpy(), lazy_adam(WEIGHT, [[1]])[0])
    np.testing.assert_allclose(b.detach().numpy(), lazy_adam(WEIGHT, [[2]], lr=0.5)[0])
    for untouched in (c, d):
        np.testing.assert_array_equal(untouched.detach().numpy(), WEIGHT)


def test_dense_and_sparse_gradients_in_one_group():
    a, b = leaf(), leaf()
    optimizer = ng.optim.SGD([a, b], 0.1)
    (loss(a, [1]) + np.sum(b * b)).backward()
    optimizer.step()
    np.testing.assert_allclose(b.detach().numpy(), 0.8 * WEIGHT)
    np.testing.assert_allclose(a.detach().numpy()[1], 0.8 * WEIGHT[1])


def test_state_dict_continues():
    w = leaf()
    optimizer = ng.optim.SparseAdam([w], 0.1)
    trajectory(optimizer, w, LOOKUPS[:5])
    x = leaf(w.detach().numpy().copy())
    other = ng.optim.SparseAdam([x])
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    np.testing.assert_array_equal(
        trajectory(other, x, LOOKUPS[5:]), trajectory(optimizer, w, LOOKUPS[5:])
    )


def test_a_tensor_as_learning_rate():
    w, x = leaf(), leaf()
    lr = ng.tensor(0.1)
    np.testing.assert_array_equal(
        trajectory(ng.optim.SparseAdam([w], lr), w), trajectory(ng.optim.SparseAdam([x], 0.1), x)
    )


def test_a_step_counts_as_a_write():
    w = leaf()
    y = np.sum(w * w)
    loss(w, [1]).backward()
    ng.optim.SparseAdam([w]).step()
    with pytest.raises(ng.NumgradRuntimeError, match="version 1"):
        y.backward()


CONSTRUCTORS = [
    ({"lr": 0.0}, "lr is 0.0"),
    ({"lr": -1.0}, "lr is -1.0"),
    ({"eps": 0.0}, "eps is 0.0"),
    ({"eps": -1.0}, "eps is -1.0"),
    ({"betas": (1.0, 0.9)}, r"betas\[0\]"),
    ({"betas": (-0.1, 0.9)}, r"betas\[0\]"),
    ({"betas": (0.9, 1.0)}, r"betas\[1\]"),
    ({"betas": (0.9, -0.1)}, r"betas\[1\]"),
]


@pytest.mark.parametrize(("options", "words"), CONSTRUCTORS, ids=str)
def test_constructor_errors(options, words):
    with pytest.raises(ng.NumgradValueError, match=words):
        ng.optim.SparseAdam([leaf()], **options)


def test_other_constructor_errors():
    with pytest.raises(ng.NumgradValueError, match="one element"):
        ng.optim.SparseAdam([leaf()], lr=ng.ones(2))
    with pytest.raises(ng.NumgradValueError, match=r"parameter 1 .* complex128"):
        ng.optim.SparseAdam([leaf(), leaf(WEIGHT + 1j)])
    with pytest.raises(ng.NumgradTypeError, match="RowSparseTensor"):
        ng.optim.SparseAdam([ng.RowSparseTensor([0], [1.0], (2,))])
    with pytest.raises(ng.NumgradTypeError, match="list"):
        ng.optim.SparseAdam(leaf())
    optimizer = ng.optim.SparseAdam([leaf()])
    with pytest.raises(ng.NumgradValueError, match="complex"):
        optimizer.add_param_group({"params": [leaf(WEIGHT + 1j)]})
    assert len(optimizer.param_groups) == 1


def test_constructor_errors_are_torchs(torch):
    for options, _ in CONSTRUCTORS:
        with pytest.raises(ValueError, match="Invalid"):
            torch.optim.SparseAdam([torch.tensor(WEIGHT)], **options)


def refused(optimizer, w, words):
    before = w.detach().numpy().copy()
    with pytest.raises(ng.NumgradRuntimeError, match=words):
        optimizer.step()
    np.testing.assert_array_equal(w.detach().numpy(), before)


def test_dense_gradients_are_refused():
    a, b = leaf(), leaf()
    (loss(a, [1]) + np.sum(b)).backward()
    refused(ng.optim.SparseAdam([a, b]), a, r"SparseAdam.step.*\(7, 3\) is dense")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("Adam", {}, "SparseAdam, SGD or Adagrad"),
        ("AdamW", {}, "SparseAdam"),
        ("RMSprop", {}, "SparseAdam"),
        ("SGD", {"weight_decay": 0.1}, "weight_decay"),
        ("Adagrad", {"weight_decay": 0.1}, "weight_decay"),
        ("SGD", {"differentiable": True}, "differentiable"),
    ],
)
def test_row_sparse_gradients_are_refused(name, options, words):
    a, b = leaf(), leaf()
    (loss(b, [1]) + np.sum(a)).backward()
    refused(getattr(ng.optim, name)([a, b], **options), a, words)


def test_gradients_of_another_shape_are_refused():
    w = leaf()
    loss(w, [1]).backward()
    w._array = np.zeros((3, 3))
    with pytest.raises(ng.NumgradRuntimeError, match="shape"):
        ng.optim.SparseAdam([w]).step()
