"""Normalization layers: against PyTorch, against NumPy, and what they refuse."""

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn
from numgrad.codegen import threads
from numgrad.nn import functional as F
from numgrad.testing import gradcheck
from tests.nn.peers import compare, copy_parameters

rng = np.random.default_rng(0)


def draw(*shape, dtype=np.float64):
    return rng.standard_normal(shape).astype(dtype)


LAYERS = [
    ("LayerNorm", (6,), {}, (4, 5, 6)),
    ("LayerNorm", ((5, 6),), {"bias": False, "eps": 0.1}, (4, 5, 6)),
    ("LayerNorm", (6,), {"elementwise_affine": False}, (6,)),
    ("RMSNorm", (6,), {}, (4, 6)),
    ("RMSNorm", ((5, 6),), {"eps": 0.1, "elementwise_affine": False}, (4, 5, 6)),
    ("GroupNorm", (2, 4), {}, (3, 4, 5, 2)),
    ("GroupNorm", (2, 4), {"affine": False, "eps": 0.1}, (3, 4)),
    ("BatchNorm1d", (4,), {}, (5, 4)),
    ("BatchNorm1d", (4,), {"momentum": None}, (5, 4, 3)),
    ("BatchNorm1d", (4,), {"track_running_stats": False, "bias": False}, (5, 4, 3)),
    ("BatchNorm2d", (4,), {"affine": False, "momentum": 0.3, "eps": 0.1}, (2, 4, 3, 2)),
]


def pair(torch, name, args, options, dtype="float64"):
    ours = getattr(nn, name)(*args, **options, dtype=dtype)
    theirs = getattr(torch.nn, name)(*args, **options, dtype=getattr(torch, dtype))
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.tensor(draw(*parameter.shape)))
    copy_parameters(ours, theirs)
    assert repr(ours) == repr(theirs)
    return ours, theirs


@pytest.mark.slow
@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS)
def test_layer_is_that_of_torch(name, args, options, shape):
    torch = pytest.importorskip("torch")
    ours, theirs = pair(torch, name, args, options)
    for _ in range(3):
        compare(torch, ours, theirs, [1 + 2 * draw(*shape)])
    ours.eval(), theirs.eval()
    compare(torch, ours, theirs, [draw(*shape)])


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS[3:9:2])
def test_float32(name, args, options, shape):
    torch = pytest.importorskip("torch")
    ours, theirs = pair(torch, name, args, options, "float32")
    compare(torch, ours, theirs, [draw(*shape, dtype=np.float32)], 1e-5)


def standardized(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def test_values_by_numpy():
    x, w, b = draw(4, 6, 5), draw(6), draw(6)
    column = (slice(None), None)
    np.testing.assert_allclose(
        F.layer_norm(x, (6, 5)), standardized(x, (1, 2)), rtol=1e-10, atol=1e-13
    )
    np.testing.assert_allclose(
        F.group_norm(x, 3, w, b),
        standardized(x.reshape(4, 3, 2, 5), (2, 3)).reshape(x.shape) * w[column] + b[column],
        rtol=1e-10,
        atol=1e-13,
    )
    np.testing.assert_allclose(
        F.rms_norm(x, 5, eps=0.1),
        x / np.sqrt((x**2).mean(2, keepdims=True) + 0.1),
        rtol=1e-10,
        atol=1e-13,
    )
    np.testing.assert_allclose(
        F.batch_norm(x, None, None, w, b, training=True),
        standardized(x, (0, 2)) * w[column] + b[column],
        rtol=1e-10,
        atol=1e-13,
    )
    m, v = draw(6), draw(6) ** 2
    np.testing.assert_allclose(
        F.batch_norm(x, ng.tensor(m), ng.tensor(v), w, b),
        (x - m[column]) / np.sqrt(v[column] + 1e-5) * w[column] + b[column],
        rtol=1e-10,
        atol=1e-13,
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_instance_norm_by_numpy(rank):
    """Each channel of each example by its own statistics, with and without a batch axis."""
    x, axes = draw(2, 3, *(4, 3, 2)[:rank]), tuple(range(2, 2 + rank))
    layer = getattr(nn, f"InstanceNorm{rank}d")(3, eps=0.1, affine=True, momentum=0.3,
                                                track_running_stats=True)  # fmt: skip
    layer.weight.detach()[:], layer.bias.detach()[:] = draw(3), draw(3)
    column = (slice(None), *(None,) * rank)
    w, b = (p.numpy(force=True)[column] for p in (layer.weight, layer.bias))
    expected = standardized(x, axes, 0.1) * w + b
    np.testing.assert_allclose(layer(x).detach(), expected, rtol=1e-5)
    mean = 0.3 * x.mean(axes).mean(0)
    var = 0.7 + 0.3 * x.var(axes, ddof=1).mean(0)
    np.testing.assert_allclose(layer.running_mean, mean, rtol=1e-5)
    np.testing.assert_allclose(layer.running_var, var, rtol=1e-5)
    layer.eval()
    m, v = layer.running_mean.numpy()[column], layer.running_var.numpy()[column]
    expected = (x - m) / np.sqrt(v + 0.1) * w + b
    np.testing.assert_allclose(layer(x[1]).detach(), expected[1], rtol=1e-5)


def test_eps_of_rms_norm_is_that_of_the_dtype():
    for dtype in (np.float32, np.float64):
        x = np.zeros(4, dtype)
        x[0] = np.finfo(dtype).eps ** 0.5
        expected = x / np.sqrt((x * x).mean() + np.finfo(dtype).eps)
        np.testing.assert_allclose(F.rms_norm(x, 4), expected, rtol=1e-6)


def test_statistics_far_from_zero():
    """The sum of squares would lose them all."""
    x = 1e8 + draw(3, 1500)
    np.testing.assert_allclose(F.layer_norm(x, 1500), standardized(x, 1), rtol=1e-6, atol=1e-7)
    y = F.batch_norm(x.T, None, None, training=True)
    np.testing.assert_allclose(y, standardized(x, 1).T, rtol=1e-6, atol=1e-7)


def test_running_statistics():
    layer = nn.BatchNorm1d(3, momentum=0.25)
    x = draw(8, 3)
    layer(x)
    np.testing.assert_allclose(layer.running_mean, 0.25 * x.mean(0), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(
        layer.running_var, 0.75 + 0.25 * x.var(0, ddof=1), rtol=1e-10, atol=1e-13
    )
    assert layer.num_batches_tracked.item() == 1
    assert not layer.running_mean.requires_grad
    assert list(layer.state_dict()) == [
        "weight", "bias", "running_mean", "running_var", "num_batches_tracked",
    ]  # fmt: skip
    before = {name: b.numpy().copy() for name, b in layer.named_buffers()}
    layer.eval()(x)
    for name, b in layer.named_buffers():
        np.testing.assert_array_equal(b, before[name])
    layer.reset_running_stats()
    assert layer.running_var.tolist() == [1, 1, 1]
    assert layer.num_batches_tracked.item() == 0


def test_cumulative_average():
    layer = nn.BatchNorm1d(2, momentum=None)
    batches = [draw(5, 2) for _ in range(3)]
    for x in batches:
        layer(x)
    mean = np.mean([x.mean(0) for x in batches], axis=0)
    np.testing.assert_allclose(layer.running_mean, mean, rtol=1e-10, atol=1e-13)


def test_statistics_stay_after_a_failed_call():
    layer = nn.BatchNorm1d(2)
    for x in (draw(1, 2), draw(3, 4), draw(3), draw(3, 2) + 1j, draw(1, 2, 1)):
        with pytest.raises((ng.NumgradValueError, ng.NumgradTypeError)):
            layer(x)
    assert layer.running_mean.tolist() == [0, 0]
    assert layer.num_batches_tracked.item() == 0
    layer.eval()(draw(1, 2))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: nn.BatchNorm2d(2)(draw(3, 2)), r"BatchNorm2d.*\(3, 2\).*height"),
        (lambda: nn.BatchNorm1d(2)(draw(3, 3)), "num_features=2"),
        (lambda: nn.BatchNorm1d(2)(draw(1, 2)), "one value for each channel"),
        (lambda: nn.GroupNorm(3, 4), "num_groups=3"),
        (lambda: F.group_norm(draw(2, 4), 3), "3 equal groups"),
        (lambda: F.group_norm(draw(4), 2), "no axis of channels"),
        (lambda: F.layer_norm(draw(2, 4), 3), "normalized_shape"),
        (lambda: F.layer_norm(draw(2, 4), 4, draw(3)), "weight has shape"),
        (lambda: F.batch_norm(draw(2, 4), None, None), "running_mean"),
        (lambda: F.batch_norm(draw(2, 4), ng.zeros(3), ng.ones(3), training=True), "running"),
        (lambda: F.batch_norm(draw(2, 4), None, None, draw(3), training=True), "4 channels"),
        (lambda: nn.LayerNorm("a"), "normalized_shape"),
        (lambda: F.layer_norm(draw(2, 4) + 1j, 4), "complex"),
    ],
)
def test_errors(function, message):
    with pytest.raises((ng.NumgradValueError, ng.NumgradTypeError), match=message):
        function()


def test_empty_batches():
    for layer in (nn.LayerNorm(3), nn.RMSNorm(3), nn.GroupNorm(1, 3), nn.BatchNorm1d(3)):
        x = ng.zeros((0, 3), requires_grad=True)
        layer(x).sum().backward()
        assert x.grad.shape == (0, 3)
        assert layer.weight.grad.tolist() == [0, 0, 0]


@pytest.mark.slow(cases=0)
def test_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "WORK_PER_THREAD_NS", 1.0)
    x, planes, w = draw(130, 6), draw(5, 6, 9), draw(6)
    found = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "worth", lambda work, count=count: count)
        results = []
        for given, function in (
            (x, lambda x, w: F.batch_norm(x, None, None, w, training=True)),
            (x, lambda x, w: F.layer_norm(x, 6, w)),
            (planes, lambda x, w: F.group_norm(x, 2, w)),
        ):
            operands = [ng.tensor(a, requires_grad=True) for a in (given, w)]
            y = function(*operands)
            y.backward(np.cos(given))
            results += [y.detach().numpy(), *(a.grad.numpy() for a in operands)]
        found.append(results)
    for serial, parallel in zip(*found, strict=True):
        np.testing.assert_array_equal(serial, parallel)


def test_normalize():
    x = draw(3, 4)
    np.testing.assert_allclose(
        F.normalize(x), x / np.linalg.norm(x, axis=1, keepdims=True), rtol=1e-10, atol=1e-13
    )
    np.testing.assert_allclose(F.normalize(x, 1, 0), x / np.abs(x).sum(0), rtol=1e-10, atol=1e-13)
    gradcheck(lambda x: F.normalize(x, 3.0), (ng.tensor(x, requires_grad=True),))
    torch = pytest.importorskip("torch")
    given, peer = ng.zeros((2, 3), requires_grad=True), torch.zeros(2, 3, requires_grad=True)
    F.normalize(given).sum().backward()
    torch.nn.functional.normalize(peer).sum().backward()
    np.testing.assert_allclose(given.grad, peer.grad.numpy())


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("BatchNorm1d", (3, 4)),
        ("BatchNorm1d", (0, 4)),
        ("BatchNorm1d", (2, 4, 5)),
        ("InstanceNorm1d", (2, 4, 5)),
    ],
)
def test_gradients_in_evaluation(name, shape, affine):
    layer = getattr(nn, name)(4, affine=affine, track_running_stats=True).eval()
    layer.running_mean.copy_(draw(4))
    layer.running_var.copy_(draw(4) ** 2 + 0.5)
    x = draw(*shape)
    g = draw(*shape)
    mean, variance = (
        np.reshape(a.numpy(), (4,) + (1,) * (len(shape) - 2))
        for a in (layer.running_mean, layer.running_var)
    )
    h = (x - mean) / np.sqrt(variance + layer.eps)
    given = ng.tensor(x, requires_grad=True)
    (layer(given) * g).sum().backward()
    np.testing.assert_allclose(given.grad.numpy(), g / np.sqrt(variance + layer.eps) + 0 * x)
    if affine:
        axes = (0, *range(2, len(shape)))
        np.testing.assert_allclose(layer.weight.grad.numpy(), (g * h).sum(axes), atol=1e-13)
        np.testing.assert_allclose(layer.bias.grad.numpy(), g.sum(axes), atol=1e-13)


def test_running_statistics_that_change_before_the_backward():
    layer = nn.BatchNorm1d(4).eval()
    x = ng.tensor(draw(3, 4), requires_grad=True)
    y = layer(x).sum()
    with ng.no_grad():
        layer.running_var.mul_(2.0)
    with pytest.raises(RuntimeError, match="in-place"):
        y.backward()


def test_a_result_that_is_written_to():
    # as nn.ReLU(inplace=True) after a normalization does; the backward needs x, not the result
    x = np.random.default_rng(3).normal(size=(5, 2))
    grads = []
    for inplace in (False, True):
        t = ng.tensor(x, requires_grad=True)
        (F.relu(F.batch_norm(t, None, None, training=True), inplace=inplace) * t).sum().backward()
        grads.append(t.grad)
    assert np.array_equal(*grads)


def test_second_derivatives_of_an_empty_batch():
    layer = nn.BatchNorm1d(4)
    x = ng.tensor(np.ones((0, 4)), requires_grad=True)
    for create_graph in (False, True):
        gradients = ng.autograd.grad(
            layer(x).sum(), list(layer.parameters()), create_graph=create_graph
        )
        assert all((g.detach().numpy() == 0).all() for g in gradients)
