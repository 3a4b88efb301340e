"""Looking up rows: the operation, its functions, the module."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.nn import functional as F
from numgrad.nn.embedding import _embedding as embedding

RNG = np.random.default_rng(11)
WEIGHT = RNG.normal(size=(6, 3))
INDICES = np.array([[1, 4, 1], [5, 0, 1]])
COTANGENT = RNG.normal(size=(2, 3, 3))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def scattered(g, indices, rows, padding_idx=None, scaled=False):
    """Gradient of the table, lookup by lookup."""
    out = np.zeros((rows, g.shape[-1]), g.dtype)
    flat = indices.ravel()
    for i, row in zip(flat, g.reshape(flat.size, g.shape[-1]), strict=True):
        if padding_idx is None or i != padding_idx % rows:
            out[i] += row / (np.sum(flat == i) if scaled else 1)
    return out


def dense(found):
    return (found.to_dense() if found.is_sparse else found).numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
@pytest.mark.parametrize("of", ["int64", "int32", "uint8"])
def test_rows_are_looked_up(dtype, of):
    weight = (10 * WEIGHT).astype(dtype)
    found = F.embedding(INDICES.astype(of), weight)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.numpy(), weight[INDICES])


def test_any_layout_and_shape():
    weight = np.asfortranarray(WEIGHT)
    for indices in (INDICES.T, INDICES[:, ::-1], INDICES[0, 0], np.zeros((0, 2), int), []):
        w = ng.tensor(WEIGHT, requires_grad=True)
        indices = np.asarray(indices)
        whole = indices.astype(int)
        np.testing.assert_array_equal(F.embedding(indices, weight).numpy(), weight[whole])
        np.testing.assert_array_equal(F.embedding(indices, weight[:, ::2]), WEIGHT[:, ::2][whole])
        for sparse in (False, True):
            w.grad = None
            y = F.embedding(indices, w, sparse=sparse)
            g = RNG.normal(size=y.shape)
            y.backward(np.asfortranarray(g))
            np.testing.assert_allclose(dense(w.grad), scattered(g, whole, 6), rtol=1e-12)
    for shape in ((6, 0), (0, 3)):
        assert F.embedding(np.zeros((2, 0), int), np.zeros(shape)).shape == (2, 0, shape[1])


OPTIONS = [
    {},
    {"padding_idx": 1},
    {"padding_idx": -1},
    {"scale_grad_by_freq": True},
    {"scale_grad_by_freq": True, "padding_idx": 1},
    {"sparse": True},
    {"sparse": True, "padding_idx": -5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_gradients(options):
    w = ng.tensor(WEIGHT, requires_grad=True)
    F.embedding(INDICES, w, **options).backward(COTANGENT)
    assert w.grad.is_sparse == options.get("sparse", False)
    expected = scattered(
        COTANGENT, INDICES, 6, options.get("padding_idx"), options.get("scale_grad_by_freq")
    )
    np.testing.assert_allclose(dense(w.grad), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_forward_and_gradients_as_in_torch(torch, options):
    w = ng.tensor(WEIGHT, requires_grad=True)
    peer = torch.tensor(WEIGHT, requires_grad=True)
    ours = F.embedding(INDICES, w, **options)
    theirs = torch.nn.functional.embedding(torch.tensor(INDICES), peer, **options)
    np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
    ours.backward(COTANGENT)
    theirs.backward(torch.tensor(COTANGENT))
    if options.get("sparse"):
        once, peer_once = w.grad.coalesce(), peer.grad.coalesce()
        assert w.grad.nnz == peer.grad._nnz()
        np.testing.assert_array_equal(once.indices.numpy(), peer_once.indices()[0].numpy())
        np.testing.assert_allclose(once.values.numpy(), peer_once.values().numpy(), rtol=1e-13)
    else:
        np.testing.assert_allclose(w.grad.numpy(), peer.grad.numpy(), rtol=1e-13)


def test_second_derivatives_agree_with_differences():
    w = ng.tensor(WEIGHT, requires_grad=True)
    for options in ({}, {"sparse": True}):
        function = lambda w, o=options: embedding(w, INDICES, **o) ** 3  # noqa: E731
        assert ng.testing.gradgradcheck(function, w)


def test_second_derivatives_leave_out_the_padding_and_divide_as_the_first():
    w = ng.tensor(WEIGHT, requires_grad=True)
    y = embedding(w, INDICES, padding_idx=0, scale_grad_by_freq=True)
    g = ng.tensor(COTANGENT, requires_grad=True)
    (first,) = ng.autograd.grad(y, w, g, create_graph=True)
    v = RNG.normal(size=(6, 3))
    (second,) = ng.autograd.grad(first, g, v)
    factor = np.where(INDICES == 0, 0, 1 / np.bincount(INDICES.ravel())[INDICES])
    np.testing.assert_allclose(second.numpy(), factor[..., None] * v[INDICES], rtol=1e-12)


def test_examples_of_weights_and_of_indices():
    weights, looked_up = np.stack([WEIGHT, WEIGHT**2]), np.stack([INDICES, INDICES[::-1]])
    cotangents = np.stack([COTANGENT, COTANGENT**2])
    for options in ({}, {"scale_grad_by_freq": True}):
        for in_axes in ((0, 0), (0, None), (None, 0)):
            w, i = (
                a if axis == 0 else a[0]
                for a, axis in zip((weights, looked_up), in_axes, strict=False)
            )
            found, gradients = ng.vmap(
                lambda w, i, g, options=options: (
                    F.embedding(i, w, **options),
                    ng.grad(lambda w: np.sum(F.embedding(i, w, **options) * g))(w),
                ),
                in_axes=(*in_axes, 0),
            )(w, i, cotangents)
            for k in range(2):
                rows, places = weights[k * (in_axes[0] == 0)], looked_up[k * (in_axes[1] == 0)]
                np.testing.assert_array_equal(found[k], rows[places])
                expected = scattered(cotangents[k], places, 6, None, bool(options))
                np.testing.assert_allclose(gradients[k], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("indices", "weight", "options", "error", "words"),
    [
        ([0, 6], WEIGHT, {}, IndexError, "index 6 in a table of 6 rows"),
        ([0, -1], WEIGHT, {}, IndexError, "index -1 in a table of 6 rows"),
        ([0.0], WEIGHT, {}, TypeError, "integers, got dtype float64"),
        ([True], WEIGHT, {}, TypeError, "integers, got dtype bool"),
        ([0], WEIGHT[0], {}, ValueError, r"two axes.*\(3,\)"),
        ([0], WEIGHT, {"padding_idx": 6}, ValueError, "padding_idx 6 .* table of 6"),
        ([0], WEIGHT, {"padding_idx": -7}, ValueError, "padding_idx -7"),
        ([0], WEIGHT, {"sparse": True, "scale_grad_by_freq": True}, ValueError, "dense gradient"),
        ([0], np.zeros((0, 3)), {}, IndexError, "index 0 in a table of 0 rows"),
    ],
)
def test_errors(indices, weight, options, error, words):
    with pytest.raises(error, match=words) as caught:
        F.embedding(indices, weight, **options)
    assert isinstance(caught.value, ng.NumgradError)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, np.inf])
def test_max_norm_scales_the_rows_that_are_looked_up(norm_type):
    weight = WEIGHT.copy()
    w = ng.tensor(weight, requires_grad=True)
    y = F.embedding(INDICES, w, max_norm=1.0, norm_type=norm_type)
    used = np.unique(INDICES)
    norms = np.linalg.norm(weight[used], norm_type, axis=1)
    assert (norms > 1).any()
    factor = np.where(norms > 1, 1 / (norms + 1e-7), 1)
    weight[used] *= factor[:, None]
    np.testing.assert_allclose(w.detach().numpy(), weight, rtol=1e-15)
    np.testing.assert_array_equal(y.detach().numpy(), w.detach().numpy()[INDICES])
    assert w.is_leaf
    assert w._version == 1
    y.backward(COTANGENT)
    np.testing.assert_allclose(w.grad.numpy(), scattered(COTANGENT, INDICES, 6), rtol=1e-12)


def test_max_norm_as_in_torch(torch):
    w = ng.tensor(WEIGHT, requires_grad=True)
    peer = torch.tensor(WEIGHT, requires_grad=True)
    F.embedding(INDICES, w, max_norm=0.7, norm_type=1.5)
    torch.nn.functional.embedding(torch.tensor(INDICES), peer, max_norm=0.7, norm_type=1.5)
    np.testing.assert_allclose(w.detach().numpy(), peer.detach().numpy(), rtol=1e-13)


def test_max_norm_changes_nothing_before_an_error():
    w = ng.tensor(WEIGHT)
    with pytest.raises(ng.NumgradIndexError, match="index -2"):
        F.embedding([1, -2], w, max_norm=0.1)
    np.testing.assert_array_equal(w.numpy(), WEIGHT)


# ------------------------------------------------------------------------------------ one_hot


def test_one_hot():
    found = F.one_hot(INDICES)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found.numpy(), np.eye(6)[INDICES])
    np.testing.assert_array_equal(F.one_hot(ng.tensor(2), 4).numpy(), [0, 0, 1, 0])
    assert F.one_hot([], 3).shape == (0, 3)


def test_one_hot_as_in_torch(torch):
    theirs = torch.nn.functional.one_hot(torch.tensor(INDICES), 7)
    np.testing.assert_array_equal(F.one_hot(INDICES, 7).numpy(), theirs.numpy())
    for arguments in (([-1],), ([3], 3), ([], -1), ([0], 0), ([], 0), ([0.5],)):
        with pytest.raises((RuntimeError, ValueError)):
            torch.nn.functional.one_hot(torch.tensor(arguments[0]), *arguments[1:])


@pytest.mark.parametrize("transform", [ng.vmap, ng.jit])
def test_one_hot_of_what_is_traced(transform):
    found = transform(lambda k: F.one_hot(k, 6))(ng.tensor(INDICES))
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found.numpy(), np.eye(6)[INDICES])
    with pytest.raises(RuntimeError, match="give a positive num_classes"):
        ng.vmap(F.one_hot)(ng.tensor(INDICES))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([-1],), ng.NumgradValueError, "indices from -1"),
        (([3], 3), ng.NumgradValueError, "to 3 with 3 classes"),
        (([],), ng.NumgradValueError, "give num_classes"),
        (([0], 0), ng.NumgradValueError, "num_classes"),
        (([0], -2), ng.NumgradValueError, "num_classes"),
        (([0.5],), ng.NumgradTypeError, "float64"),
    ],
)
def test_one_hot_errors(arguments, error, words):
    with pytest.raises(error, match=words):
        F.one_hot(*arguments)


# ----------------------------------------------------------------------------------- Embedding


def test_module():
    np.random.seed(0)
    table = ng.nn.Embedding(200, 100, padding_idx=-3)
    assert isinstance(table.weight, ng.nn.Parameter)
    assert table.weight.dtype == np.float64
    assert table.padding_idx == 197
    values = table.weight.detach().numpy()
    assert np.all(values[197] == 0)
    rest = np.delete(values, 197, axis=0)
    assert abs(rest.mean()) < 0.03
    assert abs(rest.std() - 1) < 0.03
    before = values.copy()
    table.reset_parameters()
    assert np.all(values[197] == 0)
    assert not np.any(rest == np.delete(table.weight.detach().numpy(), 197, axis=0))
    assert not np.array_equal(before, table.weight.detach().numpy())
    table([[1, 197, 1]]).sum().backward()
    assert table.weight.grad.numpy()[:, 0].nonzero()[0].tolist() == [1]
    assert list(table.state_dict()) == ["weight"]


def test_module_options():
    table = ng.nn.Embedding(5, 2, max_norm=0.1, norm_type=1.0, sparse=True, dtype=np.float32)
    assert table.weight.dtype == np.float32
    out = table(ng.tensor([0, 3]))
    assert np.all(np.abs(out.detach().numpy()).sum(1) <= 0.1 + 1e-6)
    out.sum().backward()
    assert table.weight.grad.is_sparse
    table.zero_grad()
    assert table.weight.grad is None
    table(ng.tensor([0, 3])).sum().backward()
    table.zero_grad(set_to_none=False)
    assert table.weight.grad.nnz == 0
    counted = ng.nn.Embedding(5, 2, scale_grad_by_freq=True)
    counted([1, 1]).sum().backward()
    assert counted.weight.grad.numpy()[1].tolist() == [1, 1]


def test_repr_as_in_torch(torch):
    for options in (
        {},
        {"padding_idx": 0},
        {"padding_idx": -1, "sparse": True},
        {"max_norm": 2.0, "norm_type": 1.0, "scale_grad_by_freq": True},
    ):
        assert repr(ng.nn.Embedding(4, 3, **options)) == repr(torch.nn.Embedding(4, 3, **options))


def test_from_pretrained():
    table = ng.nn.Embedding.from_pretrained(ng.asarray(WEIGHT), padding_idx=0)
    assert not table.weight.requires_grad
    assert (table.num_embeddings, table.embedding_dim) == (6, 3)
    np.testing.assert_array_equal(table(INDICES).numpy(), WEIGHT[INDICES])
    assert np.shares_memory(table.weight.numpy(), WEIGHT)
    tuned = ng.nn.Embedding.from_pretrained(WEIGHT, freeze=False, sparse=True)
    tuned(INDICES).backward(COTANGENT)
    np.testing.assert_allclose(dense(tuned.weight.grad), scattered(COTANGENT, INDICES, 6))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ng.nn.Embedding(3, 2, padding_idx=3), "padding_idx 3"),
        (lambda: ng.nn.Embedding(3, 2, padding_idx=-4), "padding_idx -4"),
        (lambda: ng.nn.Embedding(3, 2, _weight=np.zeros((2, 3))), r"\(2, 3\).*\(3, 2\)"),
        (lambda: ng.nn.Embedding.from_pretrained(np.zeros(3)), "two axes"),
        (lambda: ng.nn.Embedding(3, 2, device="cuda"), "cpu"),
    ],
)
def test_module_errors(make, words):
    with pytest.raises(ng.NumgradValueError, match=words):
        make()


def test_constructor_errors_are_torchs(torch):
    for options in ({"padding_idx": 3}, {"padding_idx": -4}, {"_weight": torch.zeros(2, 3)}):
        with pytest.raises(AssertionError):
            torch.nn.Embedding(3, 2, **options)
    with pytest.raises(AssertionError):
        torch.nn.Embedding.from_pretrained(torch.zeros(3))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_one_index_and_of_none(mode):
    table = np.arange(1.0, 9.0).reshape(4, 2)
    for indices, offsets in (([2], [0]), ([2], [0, 1]), ([2], [0, 0]), ([], [0]), ([], [0, 0])):
        ends = [*offsets[1:], len(indices)]
        bags = [table[indices[a:b]] for a, b in zip(offsets, ends, strict=True)]
        expected = [bag[0] if len(bag) else np.zeros(2) for bag in bags]
        given = [np.array(indices, np.int64), t := ng.tensor(table, requires_grad=True)]
        found = ng.nn.functional.embedding_bag(*given, np.array(offsets), mode=mode)
        np.testing.assert_array_equal(found.detach(), expected)
        found.sum().backward()
        np.testing.assert_array_equal(t.grad, [[row in indices] * 2 for row in range(4)])
