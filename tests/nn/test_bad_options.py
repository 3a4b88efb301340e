"""Arguments of layers that cannot be used: an error that names the argument and what it must be."""

import collections
import inspect

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError, NumgradTypeError, NumgradValueError
from numgrad.nn.applied import RANGES

nn = ng.nn
LAYERS = {
    nn.Linear: (3, 2), nn.Bilinear: (3, 4, 2), nn.Conv1d: (2, 4, 3), nn.Conv2d: (2, 4, 3),
    nn.ConvTranspose2d: (2, 4, 3), nn.BatchNorm1d: (3,), nn.BatchNorm2d: (3,), nn.LayerNorm: (3,),
    nn.GroupNorm: (2, 4), nn.Embedding: (5, 2), nn.RNN: (3, 2), nn.LSTM: (3, 2), nn.GRU: (3, 2),
    nn.LSTMCell: (3, 2), nn.GRUCell: (3, 2), nn.MultiheadAttention: (4, 2), nn.PReLU: (),
    nn.Conv3d: (2, 4, 3), nn.InstanceNorm1d: (3,), nn.EmbeddingBag: (5, 2),
    nn.TransformerEncoderLayer: (4, 2, 8), nn.Transformer: (4, 2, 1, 1, 8),
}  # fmt: skip
SIZES = [
    (layer, needed, name)
    for layer, needed in LAYERS.items()
    for name, parameter in inspect.signature(layer).parameters.items()
    if parameter.annotation == "int"
]


def call(layer, needed, name, value):
    """The layer with ``value`` for one of its arguments."""
    names = list(inspect.signature(layer).parameters)
    return layer(**(dict(zip(names, needed, strict=False)) | {name: value}))


@pytest.mark.parametrize(("layer", "needed", "name"), SIZES)
def test_sizes_are_integers_in_their_range(layer, needed, name):
    where = f"^{layer.__name__}: {name} is "
    for value in ("3", 2.5, 2.0, None, True, [3]):
        with pytest.raises(NumgradTypeError, match=where + r".*; it must be an integer, "):
            call(layer, needed, name, value)
    with pytest.raises(NumgradValueError, match=where + "-1; it must be (at least 0|positive)$"):
        call(layer, needed, name, -1)


def test_every_size_has_a_range():
    assert {name for *_, name in SIZES} <= set(RANGES)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Dropout(1.5), r"Dropout: p is 1.5; it must be in \[0, 1\]"),
        (lambda: nn.Dropout("0.5"), r"Dropout: p is '0.5'; it must be a number, in \[0, 1\]"),
        (lambda: nn.Dropout2d(None), "Dropout2d: p is None; it must be a number"),
        (lambda: nn.functional.dropout(ng.ones(2), "a"), "dropout: p is 'a'; it must be a number"),
        (lambda: nn.functional.dropout(ng.ones(2), -0.1), "dropout: p is -0.1"),
        (lambda: nn.LSTM(2, 2, 2, dropout=2), r"LSTM: dropout is 2; .* \[0, 1\]"),
        (lambda: nn.MultiheadAttention(4, 2, "x"), "MultiheadAttention: dropout is 'x'"),
        (lambda: nn.BatchNorm1d(3, eps=-1.0), "BatchNorm1d: eps is -1.0; it must be at least 0"),
        (lambda: nn.BatchNorm1d(3, momentum="a"), "momentum is 'a'; it must be a number"),
        (lambda: nn.Linear(3, 2, bias="no"), "Linear: bias is 'no'; it must be True or False"),
        (lambda: nn.Linear(3, 2, 5), "Linear: bias is 5; it must be True or False"),
        (lambda: nn.MaxPool1d("3"), "MaxPool1d: kernel_size must be an integer.*'3'"),
        (lambda: nn.MaxPool2d(2, dilation=0), "MaxPool2d: dilation must be .* at least 1; got 0"),
        (lambda: nn.AvgPool2d(-1), "AvgPool2d: kernel_size must be .* at least 1; got -1"),
        (lambda: nn.LayerNorm((2, -1)), r"LayerNorm: normalized_shape is \(2, -1\)"),
        (lambda: nn.ELU("a"), "ELU: alpha is 'a'; it must be a number"),
        (lambda: nn.Softmax("x"), "Softmax: dim is 'x'; it must be an integer"),
        (lambda: nn.Flatten("x"), "Flatten: start_dim is 'x'; it must be an integer"),
        (lambda: nn.Softplus(beta=0), "Softplus: beta is 0; it must be another number"),
        (lambda: nn.Softplus(beta="a"), "Softplus: beta is 'a'; it must be a number"),
        (lambda: nn.functional.softplus(ng.ones(2), 0.0), "softplus: beta is 0.0; it must be"),
        (lambda: nn.functional.softplus(ng.ones(2), "a"), "softplus: beta is 'a'; it must be a n"),
        (lambda: nn.GELU("foo"), "GELU: approximate is 'foo'; it must be 'none' or 'tanh'"),
        (lambda: nn.AdaptiveAvgPool2d("a"), "AdaptiveAvgPool2d: output_size must be .*'a'"),
        (lambda: nn.AdaptiveAvgPool2d(-1), "AdaptiveAvgPool2d: output_size .* at least 0; got"),
        (lambda: nn.AdaptiveAvgPool1d((1, 2)), "AdaptiveAvgPool1d: output_size .* tuple of 1"),
        (lambda: nn.MaxPool2d(2, padding=2), r"MaxPool2d: padding \(2, 2\) is more than half"),
        (lambda: nn.AvgPool1d(3, padding=2), r"AvgPool1d: padding \(2,\) is more than half"),
        (lambda: nn.AvgPool2d(2, divisor_override=0), "AvgPool2d: divisor_override must not be 0"),
        (
            lambda: nn.AvgPool2d(2, divisor_override="a"),
            "divisor_override is .a.; it must be an int",
        ),
        (lambda: nn.CrossEntropyLoss(label_smoothing=2), "label_smoothing is 2; .* in .0, 1"),
        (lambda: nn.HuberLoss(delta=-1), "HuberLoss: delta is -1; it must be positive"),
        (lambda: nn.SmoothL1Loss(beta=-1), "SmoothL1Loss: beta is -1; it must be at least 0"),
        (
            lambda: nn.ConvTranspose2d(3, 4, 3, output_padding=5),
            "ConvTranspose2d: output_padding .5, 5. must be less than stride",
        ),
        (lambda: nn.Conv2d(3, 4, np.array([3.0, 3])), "Conv2d: kernel_size must be an integer"),
        (lambda: nn.Conv2d(3, 4, np.array([[3, 3]])), "Conv2d: kernel_size must be an integer"),
        (lambda: nn.Linear(2**70, 4), "a parameter of shape .4, 1180591620717411303424. has more"),
        (lambda: nn.Unflatten(1, 5), "Unflatten: lengths are integers, got 5"),
        (lambda: nn.init.uniform_(ng.ones(2), 2, 1), "uniform_: a is 2 and b is 1; b must be at l"),
        (lambda: nn.init.uniform_(ng.ones(2), "a"), "uniform_: a is 'a'; it must be a number"),
    ],
)
def test_options_are_of_their_kind_and_in_their_range(make, message):
    with pytest.raises(NumgradError, match=message) as found:
        make()
    assert isinstance(found.value, TypeError | ValueError)


def test_what_numpy_counts_with_is_a_size():
    layer = nn.Linear(np.int64(3), np.array(2), bias=np.True_)
    assert layer.weight.shape == (2, 3)
    assert layer.bias is not None
    assert nn.Conv2d(3, 4, np.array([3, 2]), stride=np.array(2)).weight.shape == (4, 3, 3, 2)
    assert nn.Unflatten(np.int64(1), (np.int64(2), -1))(ng.ones((5, 6))).shape == (5, 2, 3)
    assert nn.AdaptiveAvgPool2d(np.array([1, 2]))(ng.ones((1, 4, 4))).shape == (1, 1, 2)
    assert nn.MaxPool2d(3, padding=np.int8(1), dilation=np.array([1, 2])).kernel_size == 3
    with pytest.warns(UserWarning, match="no elements to fill"):
        assert nn.Linear(0, 2)(np.ones((4, 0))).shape == (4, 2)
    assert nn.BatchNorm1d(3, momentum=None).momentum is None
    assert list(inspect.signature(nn.Linear).parameters) == [
        *("in_features", "out_features", "bias", "device", "dtype")
    ]


class Named(nn.Linear):
    """A subclass, whose name errors have."""


def test_a_subclass_is_named():
    with pytest.raises(NumgradTypeError, match=r"^Named: in_features is 'x'"):
        Named("x", 2)


def test_gradients_of_an_ordered_dict_are_one():
    given = collections.OrderedDict(b=2.0, a=3.0)
    found = ng.grad(lambda d: d["a"] * d["a"] * d["b"])(given)
    assert type(found) is collections.OrderedDict
    assert list(found.items()) == [("b", 9.0), ("a", 12.0)]
