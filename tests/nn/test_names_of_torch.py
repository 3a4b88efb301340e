"""Layers and functions of few uses, also against PyTorch; what is not there says so."""

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn
from numgrad.nn import functional as F


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
        (ng.data, "get_worker_info", "threads"),
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
