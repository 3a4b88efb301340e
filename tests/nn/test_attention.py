"""Attention: against PyTorch, against NumPy, and what it refuses."""

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn
from numgrad.nn import functional as F
from numgrad.testing import gradcheck
from tests.nn.peers import close, compare, copy_parameters

rng = np.random.default_rng(0)
BATCH, TARGETS, SOURCES, FEATURES, HEADS = 2, 3, 4, 6, 2


def draw(*shape):
    return rng.standard_normal(shape)


CAUSAL = ~np.tri(TARGETS, SOURCES, dtype=bool)
PADDING = np.array([[False, False, True, True], [False, True, False, False]])
EACH = draw(BATCH * HEADS, TARGETS, SOURCES)

LAYERS = [
    {},
    {"bias": False, "batch_first": True},
    {"kdim": 5, "vdim": 3},
    {"add_bias_kv": True},
    {"add_zero_attn": True, "add_bias_kv": True, "batch_first": True},
]
CALLS = [
    {},
    {"attn_mask": CAUSAL},
    {"attn_mask": EACH, "average_attn_weights": False},
    {"attn_mask": EACH > 0.5},
    {"key_padding_mask": PADDING},
    {"key_padding_mask": PADDING, "attn_mask": CAUSAL, "need_weights": False},
    {"key_padding_mask": np.where(PADDING, -np.inf, 0.5), "attn_mask": draw(TARGETS, SOURCES)},
]


def as_peer(torch, options):
    return {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_layer_is_that_of_torch(options):
    torch = pytest.importorskip("torch")
    theirs = torch.nn.MultiheadAttention(FEATURES, HEADS, **options, dtype=torch.float64)
    ours = nn.MultiheadAttention(FEATURES, HEADS, **options)
    assert set(ours.state_dict()) == set(theirs.state_dict())
    copy_parameters(ours, theirs)
    lead = [(BATCH, n) if options.get("batch_first") else (n, BATCH) for n in (TARGETS, SOURCES)]
    kdim, vdim = options.get("kdim", FEATURES), options.get("vdim", FEATURES)
    inputs = [draw(*lead[0], FEATURES), draw(*lead[1], kdim), draw(*lead[1], vdim)]
    for asked in CALLS:

        def call(module, *x, asked=asked):
            return module(*x, **(asked if module is ours else as_peer(torch, asked)))

        compare(torch, ours, theirs, inputs, call=call)
    single = [draw(TARGETS, FEATURES), draw(SOURCES, kdim), draw(SOURCES, vdim)]
    compare(torch, ours, theirs, single)
    ours.eval(), theirs.eval()
    if kdim == vdim == FEATURES:
        compare(torch, ours, theirs, [inputs[0]], call=lambda module, x: module(x, x, x))


QUERY, KEY, VALUE = draw(2, 4, 3, 5), draw(2, 4, 6, 5), draw(2, 4, 6, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True, "scale": 0.3},
        {"attn_mask": draw(3, 6)},
        {"attn_mask": draw(2, 1, 3, 6) > 0},
        {"attn_mask": np.array([[True] * 6, [False] * 6, [True, False] * 3])},
        {"attn_mask": np.where([[True] * 6, [False] * 6, [True, False] * 3], 0.0, -np.inf)},
    ],
)
def test_function_is_that_of_torch(options):
    torch = pytest.importorskip("torch")
    given = [ng.tensor(x, requires_grad=True) for x in (QUERY, KEY, VALUE)]
    peers = [torch.tensor(x, requires_grad=True) for x in (QUERY, KEY, VALUE)]
    y = F.scaled_dot_product_attention(*given, **options)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        peer = torch.nn.functional.scaled_dot_product_attention(*peers, **as_peer(torch, options))
    close(y, peer, 1e-12)
    seed = draw(*y.shape)
    y.backward(seed)
    peer.backward(torch.tensor(seed))
    for x, other in zip(given, peers, strict=True):
        close(x.grad, other.grad, 1e-12)


def attended(q, k, v, allowed=True):
    scores = np.where(allowed, q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def test_values_by_numpy():
    np.testing.assert_allclose(
        F.scaled_dot_product_attention(QUERY, KEY, VALUE),
        attended(QUERY, KEY, VALUE),
        rtol=1e-10,
        atol=1e-13,
    )
    np.testing.assert_allclose(
        F.scaled_dot_product_attention(QUERY, KEY, VALUE, is_causal=True),
        attended(QUERY, KEY, VALUE, np.tri(3, 6, dtype=bool)),
        rtol=1e-10,
        atol=1e-13,
    )
    few = F.scaled_dot_product_attention(QUERY, KEY[:, :2], VALUE[:, :2], enable_gqa=True)
    many = (np.repeat(x[:, :2], 2, axis=1) for x in (KEY, VALUE))
    np.testing.assert_allclose(few, attended(QUERY, *many), rtol=1e-10, atol=1e-13)


def test_heads_by_numpy():
    layer = nn.MultiheadAttention(FEATURES, HEADS, batch_first=True)
    x = draw(BATCH, TARGETS, FEATURES)
    y, weights = layer(x, x, x, is_causal=True)
    p = {name: value.detach().numpy() for name, value in layer.named_parameters()}
    q, k, v = (
        np.swapaxes((x @ w.T).reshape(BATCH, TARGETS, HEADS, -1), 1, 2)
        for w in np.split(p["in_proj_weight"], 3)
    )
    heads = np.swapaxes(attended(q, k, v, np.tri(TARGETS, dtype=bool)), 1, 2).reshape(x.shape)
    np.testing.assert_allclose(y.detach(), heads @ p["out_proj.weight"].T, rtol=1e-10, atol=1e-14)
    assert not np.triu(weights.detach().numpy(), 1).any()
    np.testing.assert_allclose(weights.detach().numpy().sum(-1), 1, rtol=1e-10, atol=1e-13)


def test_gradients_with_a_target_that_has_no_source():
    mask = np.array([[True, False], [False, False]])
    x = [ng.tensor(draw(2, 2), requires_grad=True) for _ in range(3)]
    gradcheck(lambda *x: F.scaled_dot_product_attention(*x, mask), x)
    y = F.scaled_dot_product_attention(*x, mask)
    assert y[1].tolist() == [0, 0]
    with pytest.warns(UserWarning, match="Anomaly"), ng.autograd.detect_anomaly():
        F.scaled_dot_product_attention(*x, mask).sum().backward()  # no NaN on the way either
    learnt = ng.tensor(draw(2, 2), requires_grad=True)
    gradcheck(F.scaled_dot_product_attention, (*x, learnt))


def test_dropout():
    layer = nn.MultiheadAttention(FEATURES, HEADS, dropout=0.5)
    x = draw(40, 1, FEATURES)
    _, weights = layer(x, x, x, average_attn_weights=False)
    assert 0.4 < np.mean(weights.detach().numpy() == 0) < 0.6
    layer.eval()
    np.testing.assert_array_equal(layer(x, x, x)[0].detach(), layer(x, x, x)[0].detach())
    y = F.scaled_dot_product_attention(QUERY, KEY, VALUE, dropout_p=1.0)
    assert not y.numpy().any()


def test_empty_batch():
    layer = nn.MultiheadAttention(FEATURES, HEADS)
    x = ng.zeros((TARGETS, 0, FEATURES), requires_grad=True)
    y, weights = layer(x, x, x)
    assert (y.shape, weights.shape) == ((TARGETS, 0, FEATURES), (0, TARGETS, TARGETS))
    y.sum().backward()


X = draw(TARGETS, BATCH, FEATURES)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda: nn.MultiheadAttention(5, 2), ValueError, "num_heads=2"),
        (lambda: nn.MultiheadAttention(4, 2)(X, X, X), ValueError, "embed_dim"),
        (lambda: nn.MultiheadAttention(6, 2)(X, X[:, 0], X), ValueError, "axes"),
        (lambda: nn.MultiheadAttention(6, 2)(X, X[:, :1], X[:, :1]), ValueError, "batch_first"),
        (lambda: nn.MultiheadAttention(6, 2)(X, X, X, attn_mask=draw(2, 2)), ValueError, "targets"),
        (lambda: nn.MultiheadAttention(6, 2)(X, X, X, draw(3, 2)), ValueError, "padding"),
        (
            lambda: nn.MultiheadAttention(6, 2)(X, X, X, attn_mask=np.ones((3, 3), int)),
            TypeError,
            "int64",
        ),
        (lambda: F.scaled_dot_product_attention(QUERY, VALUE, VALUE), ValueError, "last"),
        (
            lambda: F.scaled_dot_product_attention(QUERY, KEY, VALUE, CAUSAL, is_causal=True),
            ValueError,
            "not both",
        ),
        (
            lambda: F.scaled_dot_product_attention(
                QUERY, KEY[:, :3], VALUE[:, :3], enable_gqa=True
            ),
            ValueError,
            "heads",
        ),
        (
            lambda: F.scaled_dot_product_attention(QUERY, KEY, VALUE, np.ones((3, 6), int)),
            TypeError,
            "int64",
        ),
    ],
)
def test_errors(function, error, message):
    with pytest.raises(error, match=message) as caught:
        function()
    assert isinstance(caught.value, ng.NumgradError)
