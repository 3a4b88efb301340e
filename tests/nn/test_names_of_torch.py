"""Layers and functions of few uses, also against PyTorch; what is not there says so."""

import itertools

import numpy as np
import pytest
import scipy.linalg

import numgrad as ng
from numgrad import nn
from numgrad.nn import functional as F
from numgrad.testing import gradcheck


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("shape", "kernel", "output"),
    [((2, 3, 9, 11), 2, (4, 5)), ((3, 9, 11), (2, 3), (1, 5)), ((2, 3, 9, 8, 7), 3, (1, 3, 3))],
)
def test_fractional_pools(torch, shape, kernel, output):
    rank = len(output)
    x, lead = rng().normal(size=shape), shape[:-rank] if len(shape) > rank + 1 else (1, shape[0])
    samples = rng().random((*lead, rank))
    theirs, ours = torch.tensor(x, requires_grad=True), ng.tensor(x, requires_grad=True)
    y, places = getattr(torch.nn.functional, f"fractional_max_pool{rank}d")(
        theirs, kernel, output, return_indices=True, _random_samples=torch.tensor(samples)
    )
    z, found = getattr(F, f"fractional_max_pool{rank}d")(
        ours, kernel, output, return_indices=True, _random_samples=samples
    )
    np.testing.assert_array_equal(z.detach().numpy(), y.detach().numpy())
    np.testing.assert_array_equal(found.numpy(), places.numpy())
    g = rng().normal(size=z.shape)
    (y * torch.tensor(g)).sum().backward()
    (z * g).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-13)


@pytest.mark.parametrize(
    ("shape", "kernel", "output"),
    [
        ((2, 3, 9, 11), (2, 3), (4, 5)),
        ((3, 9, 11), (2, 3), (1, 5)),
        ((1, 2, 7, 8, 6), (3, 2, 3), (1, 3, 2)),
    ],
)
def test_fractional_pools_by_definition(shape, kernel, output):
    """Windows begin at ``int((i + u) * step) - int(u * step)``, and the last one ends the axis."""
    rank = len(output)
    x = rng().normal(size=shape)
    images = x.reshape(-1, *shape[-rank:])
    lead = shape[:-rank] if len(shape) > rank + 1 else (1, shape[0])
    samples = rng().random((*lead, rank))
    values, places = [], []
    for image, u in zip(images, samples.reshape(-1, rank), strict=True):
        begins = []
        for axis in range(rank):
            n, k, m = image.shape[axis], kernel[axis], output[axis]
            step, first = (n - k) / max(m - 1, 1), u[rank - 1 - axis]
            inner = [int((i + first) * step) - int(first * step) for i in range(m - 1)]
            begins.append([*inner, n - k])
        for begin in itertools.product(*begins):
            window = tuple(slice(b, b + k) for b, k in zip(begin, kernel, strict=True))
            values.append(image[window].max())
            places.append(int(np.flatnonzero(image == values[-1])[0]))
    function = getattr(F, f"fractional_max_pool{rank}d")
    options = {"return_indices": True, "_random_samples": samples}
    found, where = function(ng.tensor(x), kernel, output, **options)
    np.testing.assert_array_equal(found.numpy().ravel(), values)
    np.testing.assert_array_equal(where.numpy().ravel(), places)
    leaf = ng.tensor(x, requires_grad=True)
    function(leaf, kernel, output, **options)[0].sum().backward()
    counts = np.zeros(images.shape)
    for k, place in enumerate(places):
        counts[k // int(np.prod(output))].flat[place] += 1
    np.testing.assert_array_equal(leaf.grad.numpy().ravel(), counts.ravel())


def test_fractional_pools_are_random_and_fit():
    x = ng.tensor(rng().normal(size=(1, 1, 50)).repeat(50, 1).reshape(1, 1, 50, 50))
    ng.random.manual_seed(0)
    pool = nn.FractionalMaxPool2d(2, output_ratio=0.45)
    assert pool(x).shape == (1, 1, 22, 22)
    assert not np.array_equal(pool(x).numpy(), pool(x).numpy())
    with pytest.raises(ValueError, match="one of output_size and output_ratio"):
        nn.FractionalMaxPool2d(2)(x)
    with pytest.raises(ValueError, match="do not begin at different places"):
        F.fractional_max_pool2d(x, 4, 48)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
def test_pdist(torch, p):
    x = rng().normal(size=(5, 3))
    x[1] = x[0]
    theirs, ours = torch.tensor(x, requires_grad=True), ng.tensor(x, requires_grad=True)
    y, z = torch.nn.functional.pdist(theirs, p), F.pdist(ours, p)
    g = rng().normal(size=z.shape)
    (y * torch.tensor(g)).sum().backward()
    (z * g).sum().backward()
    np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, np.inf])
def test_pdist_by_definition(p):
    x = rng().normal(size=(5, 3))
    a, b = (x[list(k)] for k in zip(*itertools.combinations(range(5), 2), strict=True))
    expected = np.linalg.norm(a - b, ord=p, axis=-1) if p in (0, 1, 2, np.inf) else None
    if expected is None:
        expected = np.sum(np.abs(a - b) ** p, axis=-1) ** (1 / p)
    np.testing.assert_allclose(F.pdist(ng.tensor(x), p), expected, rtol=1e-13)
    if p:
        assert gradcheck(lambda x: F.pdist(x, p), (ng.tensor(x, requires_grad=True),))


def log_softmax(scores):
    scores = scores - scores.max()
    return scores - np.log(np.sum(np.exp(scores)))


@pytest.mark.parametrize("head_bias", [True, False])
def test_adaptive_log_softmax_by_definition(head_bias):
    """A class of a cluster has the cluster's chance, times its own among those of the cluster."""
    ng.random.manual_seed(0)
    edges = [0, 5, 12, 30, 50]
    layer = nn.AdaptiveLogSoftmaxWithLoss(16, 50, edges[1:-1], 2.0, head_bias)
    state = {k: v.numpy() for k, v in layer.state_dict().items()}
    x, target = rng().normal(size=(12, 16)), np.array([0, 4, 5, 11, 12, 29, 30, 49, 7, 7, 2, 33])

    def truth(row):
        head = log_softmax(state["head.weight"] @ row + state.get("head.bias", 0.0))
        assert head.shape == (5 + 3,)
        parts = [head[:5]]
        for k in range(3):
            inner = state[f"tail.{k}.0.weight"] @ row
            assert inner.shape == (16 // 2 ** (k + 1),)
            parts.append(head[5 + k] + log_softmax(state[f"tail.{k}.1.weight"] @ inner))
        return np.concatenate(parts)

    table = np.stack([truth(row) for row in x])
    expected = table[range(12), target]
    found = layer(ng.tensor(x), target)
    np.testing.assert_allclose(found.output.detach(), expected, rtol=1e-12)
    np.testing.assert_allclose(found.loss.detach(), -expected.mean(), rtol=1e-12)
    np.testing.assert_allclose(layer.log_prob(x).detach(), table, rtol=1e-12)
    np.testing.assert_array_equal(layer.predict(x), table.argmax(axis=1))
    for row, entry, value in zip(x, target, expected, strict=True):
        single = layer(ng.tensor(row), entry)
        assert single.output.shape == single.loss.shape == ()
        np.testing.assert_allclose(single.output.detach(), value, rtol=1e-12)
        np.testing.assert_allclose(single.loss.detach(), -value, rtol=1e-12)
    assert gradcheck(lambda x: layer(x, target), (ng.tensor(x, requires_grad=True),))


def test_adaptive_log_softmax(torch):
    options = {"cutoffs": [5, 12, 30], "div_value": 2.0, "head_bias": True}
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 50, **options, dtype=torch.float64)
    ours = nn.AdaptiveLogSoftmaxWithLoss(16, 50, **options)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    x, target = rng().normal(size=(12, 16)), np.array([0, 4, 5, 11, 12, 29, 30, 49, 7, 7, 2, 33])
    a, b = torch.tensor(x, requires_grad=True), ng.tensor(x, requires_grad=True)
    y, z = theirs(a, torch.tensor(target)), ours(b, ng.tensor(target))
    y.loss.backward()
    z.loss.backward()
    np.testing.assert_allclose(z.output.detach().numpy(), y.output.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-11, atol=1e-15)
    for p, q in zip(theirs.parameters(), ours.parameters(), strict=True):
        np.testing.assert_allclose(q.grad.numpy(), p.grad.numpy(), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(
        ours.log_prob(b).detach().numpy(), theirs.log_prob(a).detach().numpy(), rtol=1e-12
    )
    np.testing.assert_array_equal(ours.predict(b).numpy(), theirs.predict(a).numpy())
    for bad in ([0, 5], [5, 5], [50], []):
        with pytest.raises(ValueError, match="cutoffs"):
            nn.AdaptiveLogSoftmaxWithLoss(16, 50, bad)
    with pytest.raises(ValueError, match="targets are from 0 to 49"):
        ours(b[:1], [50])


@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley"])
def test_orthogonal_by_definition(kind, shape, trivial):
    """An orthogonal matrix of a skew one, whose lower triangle is the parameter."""
    rows, columns = shape
    layer = nn.Linear(columns, rows)
    nn.utils.parametrizations.orthogonal(layer, "weight", kind, use_trivialization=trivial)
    home = layer.parametrizations.weight
    tall = (max(shape), min(shape))
    original = rng().normal(size=shape)
    state = dict(layer.state_dict())
    state["parametrizations.weight.original"] = original
    layer.load_state_dict(state)
    lower = np.tril(original if rows >= columns else original.T, -1)
    lower = np.concatenate([lower, np.zeros((tall[0], tall[0] - tall[1]))], axis=1)
    skew = lower - lower.T
    eye = np.eye(tall[0])
    q = (
        scipy.linalg.expm(skew)
        if kind == "matrix_exp"
        else np.linalg.solve(eye - skew / 2, eye + skew / 2)
    )[:, : tall[1]]
    if trivial:
        q = home[0].base.numpy() @ q
    np.testing.assert_allclose(layer.weight.detach(), q if rows >= columns else q.T, atol=1e-13)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_orthogonal_begins_with_a_weight_of_lower_rank(shape):
    layer = nn.Linear(shape[1], shape[0])
    with ng.no_grad():
        layer.weight.copy_(np.outer(np.arange(shape[0]), np.ones(shape[1])))
    nn.utils.parametrizations.orthogonal(layer)
    base = layer.parametrizations.weight[0].base.numpy()
    np.testing.assert_allclose(base.T @ base, np.eye(max(shape)), atol=1e-13)


@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_orthogonal(torch, shape, kind, trivial):
    rows, columns = shape
    theirs, ours = torch.nn.Linear(columns, rows, dtype=torch.float64), nn.Linear(columns, rows)
    for module, home in ((theirs, torch.nn), (ours, nn)):
        home.utils.parametrizations.orthogonal(module, "weight", kind, use_trivialization=trivial)
    weight = ours.weight.detach().numpy()
    small = weight.T @ weight if rows >= columns else weight @ weight.T
    np.testing.assert_allclose(small, np.eye(min(shape)), atol=1e-13)
    state = {k: v.numpy() for k, v in theirs.state_dict().items()}
    original = state["parametrizations.weight.original"]
    original += np.where(np.eye(*shape) > 0, 0, rng().normal(size=shape))
    theirs.load_state_dict({k: torch.tensor(v) for k, v in state.items()})
    ours.load_state_dict(state)
    g = rng().normal(size=shape)
    (theirs.weight * torch.tensor(g)).sum().backward()
    (ours.weight * g).sum().backward()
    np.testing.assert_allclose(
        ours.weight.detach().numpy(), theirs.weight.detach().numpy(), atol=1e-13
    )
    np.testing.assert_allclose(
        ours.parametrizations.weight.original.grad.numpy(),
        theirs.parametrizations.weight.original.grad.numpy(),
        atol=1e-12,
    )


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_keeps_the_dtype(kind):
    layer = nn.Linear(2, 3, dtype=np.float32)
    nn.utils.parametrizations.orthogonal(layer, "weight", kind)
    assert layer.weight.dtype == layer(np.ones((1, 2), np.float32)).dtype == np.float32


def test_assigning_to_an_orthogonal_weight():
    given = np.linalg.qr(rng().normal(size=(5, 3)))[0] * [1, -1, 1]
    for trivial in (True, False):
        layer = nn.Linear(3, 5)
        nn.utils.parametrizations.orthogonal(layer, use_trivialization=trivial)
        layer.weight = ng.tensor(given)
        np.testing.assert_allclose(layer.weight.detach().numpy(), given, atol=1e-14)


@pytest.mark.parametrize(("transpose", "affine"), [(False, True), (True, True), (True, False)])
def test_fused_normalization(transpose, affine):
    conv = (nn.ConvTranspose2d if transpose else nn.Conv2d)(2, 3, 3, bias=transpose)
    bn = nn.BatchNorm2d(3, affine=affine)
    if affine:
        given = {"weight": rng().normal(size=3), "bias": np.array([1.0, -2.0, 3.0])}
        bn.load_state_dict(given, strict=False)
    bn(ng.tensor(rng().normal(size=(4, 3, 5, 5)) * 3 + 1))
    with pytest.raises(ValueError, match="eval"):
        nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
    conv.eval()
    bn.eval()
    x = ng.tensor(rng().normal(size=(4, 2, 5, 5)))
    fused = nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
    np.testing.assert_allclose(fused(x).detach().numpy(), bn(conv(x)).detach().numpy(), rtol=1e-11)


@pytest.mark.parametrize(
    ("home", "name", "said"),
    [
        (nn, "Conv4d", "the nearest is Conv3d"),
        (nn, "quantized", "no quantized kernels"),
        (nn, "zzz", "nothing comes near it"),
        (F, "relu_", "the nearest is relu"),
        (nn.utils, "clip_grad_norm", "clip_grad_norm_"),
        (ng.optim, "Adm", "the nearest is Adam"),
        (ng.optim.lr_scheduler, "CosineAnealingLR", "the nearest is CosineAnnealingLR"),
        (ng.data, "get_worker_inf", "the nearest is get_worker_info"),
    ],
)
def test_what_is_absent_names_the_nearest(home, name, said):
    with pytest.raises(AttributeError, match=said):
        getattr(home, name)
    assert not hasattr(home, "__wrapped__")


def test_random_places_and_pairs_are_compiled():
    x, samples = rng().normal(size=(2, 2, 7, 6)), rng().uniform(size=(2, 2, 2))

    def pooled(x):
        return F.fractional_max_pool2d(x, 2, (4, 3), _random_samples=samples)

    np.testing.assert_array_equal(ng.jit(pooled)(x), pooled(ng.tensor(x)).numpy())
    pool = nn.FractionalMaxPool2d(2, output_size=(4, 3))
    compiled = ng.jit(lambda x: pool(x))
    found = []
    for call in (compiled, lambda x: pool(ng.tensor(x)).numpy()):
        ng.random.manual_seed(0)
        found.append([call(x), call(x)])
    np.testing.assert_array_equal(*found)
    assert not np.array_equal(*found[0])  # drawn anew by each call
    pairs = ng.jit(lambda x: F.pdist(x))
    for rows in (5, 2, 1):
        x = rng().normal(size=(rows, 3))
        np.testing.assert_allclose(pairs(x), F.pdist(ng.tensor(x)).numpy(), rtol=1e-15)


def test_nearest_samples_have_the_dtype_of_the_image():
    image = np.ones((1, 1, 3, 3), np.float32)
    y = F.grid_sample(image, np.zeros((1, 1, 2, 2), np.float32), "nearest", align_corners=False)
    assert y.dtype == np.float32
    with pytest.raises(ng.NumgradValueError, match="makes more than memory has"):
        F.interpolate(image, scale_factor=1e20)
