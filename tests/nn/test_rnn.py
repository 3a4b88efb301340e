"""Recurrent layers and cells: against PyTorch, against NumPy, and what they refuse."""

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn
from numgrad.codegen import threads
from numgrad.testing import gradcheck
from tests.nn.peers import compare, copy_parameters

rng = np.random.default_rng(0)


def draw(*shape, dtype=np.float64):
    return rng.standard_normal(shape).astype(dtype)


def pair(torch, name, *args, dtype="float64", **options):
    theirs = getattr(torch.nn, name)(*args, **options, dtype=getattr(torch, dtype))
    ours = getattr(nn, name)(*args, **options, dtype=dtype)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    copy_parameters(ours, theirs)
    return ours, theirs


OPTIONS = [
    {},
    {"num_layers": 2, "bias": False, "batch_first": True},
    {"num_layers": 2, "bidirectional": True},
]
LAYERS = [(name, options) for name in ("RNN", "GRU", "LSTM") for options in OPTIONS]
LAYERS += [("RNN", {"nonlinearity": "relu", "bidirectional": True})]
LAYERS += [("LSTM", {"proj_size": 2}), ("LSTM", {"proj_size": 2, "num_layers": 2, **OPTIONS[2]})]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), LAYERS)
def test_layer_is_that_of_torch(name, options):
    torch = pytest.importorskip("torch")
    ours, theirs = pair(torch, name, 3, 4, **options)
    places = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    size = options.get("proj_size", 4)
    states = [draw(places, 2, size), draw(places, 2, 4)][: 2 if name == "LSTM" else 1]
    compare(torch, ours, theirs, [draw(5, 2, 3)] if not options.get("batch_first") else
            [draw(2, 5, 3)])  # fmt: skip

    def with_states(module, x, *states):
        return module(x, states if name == "LSTM" else states[0])

    x = draw(2, 3, 3) if options.get("batch_first") else draw(3, 2, 3)
    compare(torch, ours, theirs, [x, *states], call=with_states)
    unbatched = [draw(3, 3), *(state[:, 0] for state in states)]
    compare(torch, ours, theirs, unbatched, call=with_states)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_float32(name):
    torch = pytest.importorskip("torch")
    ours, theirs = pair(torch, name, 3, 4, dtype="float32")
    compare(torch, ours, theirs, [draw(5, 2, 3, dtype=np.float32)], 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu", "bias": False}), ("GRUCell", {}),
     ("LSTMCell", {})],
)  # fmt: skip
def test_cell_is_that_of_torch(name, options):
    torch = pytest.importorskip("torch")
    ours, theirs = pair(torch, name, 3, 4, **options)
    states = [draw(2, 4), draw(2, 4)][: 2 if name == "LSTMCell" else 1]

    def with_states(module, x, *states):
        return module(x, states if name == "LSTMCell" else states[0])

    compare(torch, ours, theirs, [draw(2, 3)])
    compare(torch, ours, theirs, [draw(2, 3), *states], call=with_states)
    compare(torch, ours, theirs, [draw(3), *(s[0] for s in states)], call=with_states)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("rows", "size"), [(2, 4), (5, 45)])
def test_cells_by_numpy(rows, size):
    x, h, c = draw(rows, 3), draw(rows, size), draw(rows, size)

    def gates(cell, count):
        p = {name: value.detach().numpy() for name, value in cell.named_parameters()}
        a, b = x @ p["weight_ih"].T + p["bias_ih"], h @ p["weight_hh"].T + p["bias_hh"]
        return np.split(a, count, 1), np.split(b, count, 1)

    cell = nn.RNNCell(3, size)
    (a,), (b,) = gates(cell, 1)
    np.testing.assert_allclose(cell(x, h).detach(), np.tanh(a + b), rtol=1e-10, atol=1e-13)
    cell = nn.GRUCell(3, size)
    (a0, a1, a2), (b0, b1, b2) = gates(cell, 3)
    z = sigmoid(a1 + b1)
    expected = (1 - z) * np.tanh(a2 + sigmoid(a0 + b0) * b2) + z * h
    np.testing.assert_allclose(cell(x, h).detach(), expected, rtol=1e-10, atol=1e-13)
    cell = nn.LSTMCell(3, size)
    i, f, u, o = (a + b for a, b in zip(*gates(cell, 4), strict=True))
    new = sigmoid(f) * c + sigmoid(i) * np.tanh(u)
    found = cell(x, (h, c))
    np.testing.assert_allclose(found[1].detach(), new, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(found[0].detach(), sigmoid(o) * np.tanh(new), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_layer_repeats_its_cell(name):
    """Forwards and backwards in time, and gradients by differences."""
    layer, cell = getattr(nn, name)(3, 2, bidirectional=True), getattr(nn, f"{name}Cell")(3, 2)
    x = draw(4, 2, 3)
    y, _ = layer(x)
    for end, times in (("", range(4)), ("_reverse", range(3, -1, -1))):
        state = {key: layer.state_dict()[f"{key}_l0{end}"] for key in cell.state_dict()}
        cell.load_state_dict(state)
        hx = None
        for t in times:
            hx = cell(x[t], hx)
            h = hx[0] if name == "LSTM" else hx
            part = y[t, :, 2:] if end else y[t, :, :2]
            np.testing.assert_allclose(part.detach(), h.detach(), rtol=1e-10, atol=1e-13)
    given = ng.tensor(draw(2, 1, 3), requires_grad=True)
    gradcheck(lambda x, *_: layer(x)[0], (given, *layer.parameters()))


def test_first_values():
    layer = nn.LSTM(3, 16)
    for parameter in layer.parameters():
        assert 0 < np.abs(parameter.detach().numpy()).max() <= 0.25
    assert layer.flatten_parameters() is None
    assert [len(row) for row in layer.all_weights] == [4]


def test_dropout_between_layers():
    with pytest.warns(UserWarning, match="between layers"):
        nn.GRU(2, 2, dropout=0.5)
    layer = nn.GRU(2, 3, num_layers=2, dropout=0.5)
    x = draw(4, 2, 2)
    assert not np.array_equal(layer(x)[0].detach(), layer(x)[0].detach())
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].detach(), layer(x)[0].detach())
    layer = nn.GRU(2, 3, num_layers=2, dropout=1.0)
    y, _ = layer(x)
    layer.eval()
    bottom = nn.GRU(3, 3)
    bottom.load_state_dict(
        {key: layer.state_dict()[key.replace("l0", "l1")] for key in bottom.state_dict()}
    )
    np.testing.assert_allclose(
        y.detach(), bottom(np.zeros((4, 2, 3)))[0].detach(), rtol=1e-10, atol=1e-13
    )


def test_empty_batch():
    layer = nn.LSTM(3, 2)
    x = ng.zeros((4, 0, 3), requires_grad=True)
    y, (h, c) = layer(x)
    assert (y.shape, h.shape, c.shape) == ((4, 0, 2), (1, 0, 2), (1, 0, 2))
    y.sum().backward()
    assert x.grad.shape == (4, 0, 3)
    assert not layer.weight_hh_l0.grad.numpy().any()


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda: nn.RNN(3, 2, nonlinearity="sine"), ValueError, "sine"),
        (lambda: nn.RNNCell(3, 2, nonlinearity="sine"), ValueError, "sine"),
        (lambda: nn.LSTM(3, 0), ValueError, "hidden_size"),
        (lambda: nn.LSTM(3, 2, 0), ValueError, "num_layers"),
        (lambda: nn.LSTM(3, 2, proj_size=2), ValueError, "proj_size"),
        (lambda: nn.GRU(3, 2, dropout=2.0), ValueError, r"dropout is 2.0; it must be in \[0, 1\]"),
        (lambda: nn.GRU(3, 2)(draw(4, 2, 4)), ValueError, "input_size=3"),
        (lambda: nn.GRU(3, 2)(draw(0, 2, 3)), ValueError, "no time"),
        (lambda: nn.GRU(3, 2)(draw(3)), ValueError, r"\(3,\)"),
        (lambda: nn.GRU(3, 2)(draw(4, 2, 3), draw(1, 3, 2)), ValueError, r"\(1, 2, 2\)"),
        (lambda: nn.LSTM(3, 2)(draw(4, 2, 3), draw(1, 2, 2)), TypeError, "pair"),
        (lambda: nn.LSTMCell(3, 2)(draw(4, 2)), ValueError, r"\(4, 2\)"),
        (lambda: nn.GRUCell(3, 2)(draw(4, 3), draw(3, 2)), ValueError, r"\(4, 2\)"),
        (lambda: nn.GRUCell(3, -1), ValueError, "hidden_size"),
    ],
)
def test_errors(function, error, message):
    with pytest.raises(error, match=message) as caught:
        function()
    assert isinstance(caught.value, ng.NumgradError)


def test_gradients_of_a_cell_whose_states_are_projected():
    """The kernel may not look for a carried gradient of the width of its hidden units."""
    layer = nn.LSTM(2, 5, proj_size=1)
    given = (ng.tensor(draw(2, 2, 2), requires_grad=True), *layer.parameters())
    gradcheck(lambda x, *_: layer(x)[0], given)


@pytest.mark.slow(cases=0)
def test_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "WORK_PER_THREAD_NS", 1.0)
    layer, x = nn.LSTM(3, 5), draw(4, 37, 3)
    found = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "worth", lambda work, count=count: count)
        given = ng.tensor(x, requires_grad=True)
        y, (_, c) = layer(given)
        ng.autograd.backward([y, c], [np.ones(y.shape), np.ones(c.shape)])
        found.append([y.detach().numpy(), given.grad.numpy(), layer.weight_hh_l0.grad.numpy()])
        layer.zero_grad()
    for serial, parallel in zip(*found, strict=True):
        np.testing.assert_array_equal(serial, parallel)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_a_batch_goes_through_time_as_its_rows_do_alone(name):
    """Products of a batch read panels of the weight, those of a row the weight itself."""
    layer, x, g = getattr(nn, name)(3, 45), draw(4, 5, 3), draw(4, 5, 45)
    found = []
    for parts in ([slice(0, 5)], [slice(k, k + 1) for k in range(5)]):
        given = ng.tensor(x, requires_grad=True)
        ys = [layer(given[:, part])[0] for part in parts]
        ng.autograd.backward(ys, [g[:, part] for part in parts])
        states = np.concatenate([y.detach().numpy() for y in ys], axis=1)
        found.append([states, given.grad.numpy()])
        found[-1] += [p.grad.numpy() for p in layer.parameters()]
        layer.zero_grad()
    for whole, single in zip(*found, strict=True):
        np.testing.assert_allclose(whole, single, rtol=1e-9, atol=1e-12)


FITTING = {"a": (2, 3, 8), "h": (3, 2), "weight": (8, 2), "bias": (8,), "c": (3, 2)}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("a", (3, 8)), ("a", (0, 3, 8)), ("a", (2, 3, 7)), ("a", (2, 4, 8)), ("h", (3,)),
        ("h", (2, 2)), ("h", (3, 1)), ("weight", (8,)), ("weight", (7, 2)), ("weight", (8, 3)),
        ("bias", (7,)), ("bias", (1, 8)), ("c", (3,)), ("c", (2, 2)), ("c", (3, 1)),
    ],
)  # fmt: skip
def test_operands_of_a_sequence_that_do_not_fit_are_refused(name, shape):
    from numgrad.nn.recurrent_sequences import lstm_sequence

    lstm_sequence(*map(ng.ones, FITTING.values()))
    with pytest.raises(ng.NumgradValueError, match="lstm_sequence: operands of shapes"):
        lstm_sequence(*map(ng.ones, {**FITTING, name: shape}.values()))


def test_a_projected_state_is_for_one_time_of_an_lstm():
    from numgrad.nn.recurrent_sequences import gru_sequence, lstm_sequence

    shapes = [(1, 3, 8), (3, 5), (8, 5), (8,), (3, 2)]
    assert lstm_sequence(*map(ng.ones, shapes))[0].shape == (1, 3, 2)
    with pytest.raises(ng.NumgradValueError, match="do not fit"):
        lstm_sequence(*map(ng.ones, [(2, 3, 8), *shapes[1:]]))
    with pytest.raises(ng.NumgradValueError, match="do not fit"):
        gru_sequence(*map(ng.ones, [(1, 3, 6), (3, 5), (6, 5)]))


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_sequences_of_a_batch_are_those_of_its_examples(kind):
    layer = kind(3, 2, dtype=np.float64).requires_grad_(False)
    x = ng.random.default_rng(0).normal(size=(4, 5, 2, 3))

    def total(x):
        out, state = layer(x)
        return (out * out).sum() + (state[-1].sum() if kind is nn.LSTM else 0)

    for function in (lambda x: layer(x)[0], ng.grad(total)):
        expected = [np.asarray(function(one)) for one in x]
        assert np.allclose(ng.vmap(function)(x), expected)
