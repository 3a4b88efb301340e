"""Transformers against PyTorch's with the same parameters."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError
from tests.nn.peers import close, compare, copy_parameters

SMALL = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0}
LATER = np.triu(np.ones((5, 5), bool), 1)
PADDED = np.array([[False] * 5, [False, False, False, True, True], [False] * 4 + [True]])
ENCODERS = [
    ({}, {}),
    ({"norm_first": True, "activation": "gelu"}, {"src_mask": LATER, "is_causal": True}),
    ({"batch_first": True, "bias": False}, {"src_key_padding_mask": PADDED}),
    ({"layer_norm_eps": 0.1}, {"src_mask": np.where(LATER, -np.inf, 0.5)}),
    ({"batch_first": True}, {"src_mask": LATER, "src_key_padding_mask": PADDED}),
]


pytestmark = pytest.mark.filterwarnings("ignore:.*(mask|nested):UserWarning")  # PyTorch's


def drawn(*shape):
    return np.random.default_rng(3).normal(size=shape)


def pair(torch, name, *args, **options):
    ours = getattr(ng.nn, name)(*args, **options)
    theirs = getattr(torch.nn, name)(*args, **options, dtype=torch.float64)
    # all parameters drawn: biases and normalizations start with zeros and ones
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for p in theirs.parameters():
            p.copy_(torch.tensor(rng.normal(size=tuple(p.shape)) / 3))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    copy_parameters(ours, theirs)
    return ours, theirs


def calling(torch, masks):
    def call(module, *inputs):
        lib = ng if isinstance(module, ng.nn.Module) else torch
        return module(*inputs, **{
            k: v if isinstance(v, bool) else lib.tensor(v) for k, v in masks.items()
        })  # fmt: skip

    return call


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize(("options", "masks"), ENCODERS)
def test_encoder_layer(options, masks):
    torch = pytest.importorskip("torch")
    ours, theirs = pair(torch, "TransformerEncoderLayer", **SMALL, **options)
    shape = (3, 5, 8) if options.get("batch_first") else (5, 3, 8)
    compare(torch, ours, theirs, [drawn(*shape)], call=calling(torch, masks))


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("options", [{}, {"norm_first": True, "batch_first": True, "bias": False}])
def test_decoder_layer(options):
    torch = pytest.importorskip("torch")
    ours, theirs = pair(torch, "TransformerDecoderLayer", **SMALL, **options)
    first = options.get("batch_first")
    shapes = ((3, 5, 8), (3, 7, 8)) if first else ((5, 3, 8), (7, 3, 8))
    masks = {
        "tgt_mask": LATER, "memory_mask": drawn(5, 7), "tgt_key_padding_mask": PADDED,
        "memory_key_padding_mask": np.arange(7) > np.array([[6], [4], [2]]),
    }  # fmt: skip
    compare(torch, ours, theirs, [drawn(*s) for s in shapes], 1e-10, calling(torch, masks))


@pytest.mark.slow
def test_without_a_batch():
    torch = pytest.importorskip("torch")
    ours, theirs = pair(torch, "TransformerEncoderLayer", **SMALL)
    compare(torch, ours, theirs, [drawn(5, 8)])


@pytest.mark.slow
@pytest.mark.parametrize("norm_first", [False, True])
def test_whole_model(norm_first):
    torch = pytest.importorskip("torch")
    options = SMALL | {"num_encoder_layers": 2, "num_decoder_layers": 2, "norm_first": norm_first}
    ours, theirs = pair(torch, "Transformer", **options)
    mask = ours.generate_square_subsequent_mask(5)
    close(mask, theirs.generate_square_subsequent_mask(5, dtype=torch.float64), 0)
    call = calling(torch, {"tgt_mask": mask.numpy(), "src_key_padding_mask": PADDED})
    compare(torch, ours, theirs, [drawn(5, 3, 8), drawn(5, 3, 8) / 2], 1e-9, call)


def test_causal_without_a_mask_sees_nothing_behind():
    layer = ng.nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True)
    x = drawn(1, 4, 4)
    other = x.copy()
    other[:, 3] += 1.0
    a, b = layer(x, is_causal=True), layer(other, is_causal=True)
    np.testing.assert_array_equal(a[:, :3].detach(), b[:, :3].detach())
    assert not np.allclose(a[:, 3].detach(), b[:, 3].detach())


@pytest.mark.slow
def test_compiled():
    encoder = ng.nn.TransformerEncoder(ng.nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0), 1)
    x, factors = drawn(3, 2, 4), ng.arange(4.0)

    def loss(x):
        return (encoder(x, is_causal=True) ** 2 * factors).sum()

    wanted, expected = ng.value_and_grad(loss)(x)
    value, g = ng.jit(ng.value_and_grad(loss))(x)
    np.testing.assert_allclose(value.item(), wanted.item(), rtol=1e-12)
    np.testing.assert_allclose(g.detach(), expected.detach(), rtol=1e-9, atol=1e-12)


def test_copies_of_the_layer_have_parameters_of_their_own():
    activation = ng.nn.GELU()
    layer = ng.nn.TransformerEncoderLayer(4, 2, 6, activation=activation)
    assert "activation" in dict(layer.named_children())
    encoder = ng.nn.TransformerEncoder(layer, 2, norm=ng.nn.LayerNorm(4))
    assert encoder.layers[0].linear1.weight is not encoder.layers[1].linear1.weight
    assert encoder.layers[0].linear1.weight.tolist() == layer.linear1.weight.tolist()
    assert encoder.eval()(drawn(2, 3, 4)).shape == (2, 3, 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ng.nn.TransformerEncoderLayer(5, 2), "embed_dim=5 cannot be split equally"),
        (lambda: ng.nn.TransformerEncoderLayer(4, 2, activation="tanh"), "'relu', 'gelu'"),
        (lambda: ng.nn.TransformerDecoderLayer(4, 2, activation=3), "activation is 3"),
        (lambda: ng.nn.TransformerEncoderLayer(4, 2, dropout=2.0), r"dropout is 2.0; .*\[0, 1\]"),
        (lambda: ng.nn.Transformer("4"), "Transformer: d_model is '4'; it must be an integer"),
        (
            lambda: ng.nn.Transformer(4, 2, 1, 1, 4)(np.ones((2, 3, 4)), np.ones((2, 2, 4))),
            r"src of shape \(2, 3, 4\) and tgt of shape \(2, 2, 4\)",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(NumgradError, match=message):
        make()


def test_a_transformer_is_an_encoder_and_a_decoder():
    model = ng.nn.Transformer(**SMALL, num_encoder_layers=1, num_decoder_layers=1, batch_first=True)
    src, tgt = drawn(2, 5, 8), drawn(2, 3, 8)
    masks = {"src_mask": LATER, "tgt_mask": LATER[:3, :3], "memory_mask": LATER[:3]}
    for one in (lambda x: x, lambda x: x[0]):
        memory = model.encoder(one(src), LATER)
        expected = model.decoder(one(tgt), memory, LATER[:3, :3], LATER[:3])
        np.testing.assert_array_equal(
            model(one(src), one(tgt), **masks).detach(), expected.detach()
        )
    for wrong in ((src[..., :7], tgt), (src, tgt[..., :7]), (src[..., :7], tgt[..., :7]),
                  (src[:1], tgt), (src[0], tgt), (src[None], tgt[None])):  # fmt: skip
        with pytest.raises(ValueError, match="Transformer: src of shape"):
            model(*wrong)
