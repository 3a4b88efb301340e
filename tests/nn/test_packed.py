"""Packed sequences, and recurrent layers of them, against PyTorch's."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError
from tests.nn.peers import close, compare, copy_parameters

rnn = ng.nn.utils.rnn
LENGTHS = {"sorted": [5, 5, 3, 1], "unsorted": [3, 5, 1, 5]}
X = np.random.default_rng(0).normal(size=(5, 4, 3))


def both(torch, order, x=X, batch_first=False):
    options = {"batch_first": batch_first, "enforce_sorted": order == "sorted"}
    x = np.swapaxes(x, 0, 1) if batch_first else x
    ours = rnn.pack_padded_sequence(x, LENGTHS[order], **options)
    lengths = torch.tensor(LENGTHS[order])
    theirs = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor(x), lengths, **options)
    return ours, theirs


@pytest.mark.parametrize("order", LENGTHS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_and_padding(order, batch_first):
    torch = pytest.importorskip("torch")
    ours, theirs = both(torch, order, batch_first=batch_first)
    close(ours.data, theirs.data, 0)
    assert ours.batch_sizes.tolist() == theirs.batch_sizes.tolist()
    for name in ("sorted_indices", "unsorted_indices"):
        assert (getattr(ours, name) is None) == (order == "sorted")
    options = {"batch_first": batch_first, "padding_value": -1.0, "total_length": 6}
    padded, lengths = rnn.pad_packed_sequence(ours, **options)
    wanted, counts = torch.nn.utils.rnn.pad_packed_sequence(theirs, **options)
    close(padded, wanted, 0)
    assert lengths.tolist() == counts.tolist() == LENGTHS[order]
    parts = rnn.unpack_sequence(ours)
    assert [part.shape[0] for part in parts] == LENGTHS[order]
    again = rnn.pack_sequence(parts, enforce_sorted=False)
    np.testing.assert_array_equal(again.data, ours.data)


def test_padding_on_either_side():
    sequences = [ng.ones((2, 3)), ng.zeros((4, 3), requires_grad=True)]
    left = rnn.pad_sequence(sequences, True, -1.0, "left")
    assert left[0, :, 0].tolist() == [-1.0, -1.0, 1.0, 1.0]
    right = rnn.pad_sequence(sequences)
    assert right.shape == (4, 2, 3)
    right.sum().backward()
    assert sequences[1].grad.tolist() == [[1.0] * 3] * 4


LAYERS = [
    ("LSTM", {"bidirectional": True, "num_layers": 2}),
    ("GRU", {"bidirectional": True}),
    ("RNN", {"nonlinearity": "relu"}),
    ("LSTM", {"proj_size": 2, "bidirectional": True}),
]


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("order", ["unsorted", "sorted"])
@pytest.mark.parametrize(("name", "options"), LAYERS)
def test_recurrent_layers(name, options, order):
    torch = pytest.importorskip("torch")
    ours = getattr(ng.nn, name)(3, 4, **options)
    theirs = getattr(torch.nn, name)(3, 4, dtype=torch.float64, **options)
    copy_parameters(ours, theirs)
    directions = 2 if options.get("bidirectional") else 1
    layers = options.get("num_layers", 1) * directions
    rng = np.random.default_rng(1)
    sizes = [options.get("proj_size", 4), 4] if name == "LSTM" else [4]
    first = [rng.normal(size=(layers, 4, size)) for size in sizes]

    def call(module, x, *states):
        here = isinstance(module, ng.nn.Module)
        lengths = LENGTHS[order] if here else torch.tensor(LENGTHS[order])
        pack = rnn.pack_padded_sequence if here else torch.nn.utils.rnn.pack_padded_sequence
        packed = pack(x, lengths, enforce_sorted=order == "sorted")
        y, last = module(packed, states[0] if len(states) == 1 else states)
        assert y.batch_sizes.tolist() == packed.batch_sizes.tolist()
        return y.data, last

    compare(torch, ours, theirs, [X, *first], call=call)
    without = ours(both(torch, order)[0])[0].data
    close(without, theirs(both(torch, order)[1])[0].data, 1e-11)


def test_a_packed_sequence_gives_what_each_sequence_gives_alone():
    layer = ng.nn.GRU(3, 2, bidirectional=True)
    lengths = LENGTHS["unsorted"]
    y, last = layer(rnn.pack_padded_sequence(X, lengths, enforce_sorted=False))
    for k, part in enumerate(rnn.unpack_sequence(y)):
        alone, end = layer(X[: lengths[k], k])
        np.testing.assert_allclose(part.detach(), alone.detach(), atol=1e-14)
        np.testing.assert_allclose(last[:, k].detach(), end.detach(), atol=1e-14)


@pytest.mark.slow
def test_compiled():
    layer = ng.nn.RNN(3, 2)

    def total(x):
        y, h = layer(rnn.pack_padded_sequence(x, [1, 2], enforce_sorted=False))
        return (y.data * y.data).sum() + h.sum()

    value, g = ng.value_and_grad(total)(X[:2, :2])
    again, compiled = ng.jit(ng.value_and_grad(total))(X[:2, :2])
    np.testing.assert_allclose(again.item(), value.item(), rtol=1e-12)
    np.testing.assert_allclose(compiled.detach(), g.detach(), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rnn.pack_padded_sequence(X, [1, 5, 3, 1]), "do not go down; sort"),
        (lambda: rnn.pack_padded_sequence(X, [5, 5, 3, 0]), "length from 1 to 5"),
        (lambda: rnn.pack_padded_sequence(X, [6, 5, 3, 1]), "length from 1 to 5"),
        (lambda: rnn.pack_padded_sequence(X, [5, 5]), "each of 4 sequences"),
        (lambda: rnn.pack_padded_sequence(X, [5.0, 5.0, 3.0, 1.0]), "lengths are integers"),
        (lambda: rnn.pack_padded_sequence(X[0, 0], [3]), r"\(time, batch, ...\), got shape \(3,\)"),
        (lambda: rnn.pad_sequence([]), "at least one sequence"),
        (lambda: rnn.pad_sequence([np.ones((2, 3)), np.ones((2, 4))]), "agree but for the length"),
        (lambda: rnn.pad_sequence([X], padding_side="top"), "'left' or 'right'"),
        (
            lambda: rnn.pad_packed_sequence(rnn.pack_sequence([X[:, 0]]), total_length=3),
            "total_length 3 is below the length 5",
        ),
        (
            lambda: ng.nn.RNN(2, 2)(rnn.pack_sequence([X[:, 0]])),
            r"RNN: packed data of shape \(5, 3\)",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(NumgradError, match=message):
        call()
