"""Dropout: shares, scale, gradients, and the same random numbers again."""

import re

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd import forward_ad
from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.codegen.native.signature import parse
from numgrad.codegen.native.translation import translate
from numgrad.core.op import OPS
from numgrad.nn import functional as F
from numgrad.nn.dropout import dropped
from numgrad.random.generator import draw_seed

LAYERS = pytest.mark.parametrize("name", ["Dropout", "Dropout1d", "Dropout2d"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_share_and_scale(p, dtype):
    ng.random.manual_seed(1)
    x = np.ones(20000, dtype)
    y = F.dropout(x, p).numpy()
    assert y.dtype == dtype
    kept = y != 0
    np.testing.assert_allclose(y[kept], 1 / (1 - p), rtol=1e-6)
    # four standard deviations
    assert abs(kept.mean() - (1 - p)) < 4 * np.sqrt(p * (1 - p) / x.size)


def test_elements_and_calls_are_independent():
    ng.random.manual_seed(2)
    masks = np.stack([F.dropout(np.ones(40)).numpy() != 0 for _ in range(2000)])
    assert abs(masks.mean(axis=0) - 0.5).max() < 0.06
    correlation = np.corrcoef(masks.T) - np.eye(40)
    assert abs(correlation).max() < 0.12


def test_gradient_has_the_same_zeros():
    x = ng.tensor(np.arange(1.0, 61.0).reshape(3, 20), requires_grad=True)
    y = F.dropout(x, 0.4)
    g = np.random.default_rng(0).standard_normal((3, 20))
    (first,) = ng.autograd.grad(y, x, ng.tensor(g, requires_grad=True), create_graph=True)
    expected = np.where(y.numpy(force=True) == 0, 0, g / 0.6)
    np.testing.assert_allclose(first.numpy(force=True), expected, rtol=1e-15)
    y.backward(g)
    np.testing.assert_array_equal(x.grad.numpy(), first.numpy(force=True))


def test_nothing_happens_in_evaluation_or_without_probability():
    x = ng.tensor(np.ones(100), requires_grad=True)
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 0.0) is x
    layer = ng.nn.Dropout(0.5).eval()
    assert layer(x) is x
    assert (layer.train()(x) == 0).any()


def test_certain_zero():
    x = ng.tensor([1.0, np.inf, np.nan], requires_grad=True)
    y = F.dropout(x, 1.0)
    y.sum().backward()
    assert y.tolist() == x.grad.tolist() == [0, 0, 0]


@LAYERS
def test_probability_is_checked_when_made_and_when_called(name):
    function = getattr(F, name.lower())
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=f"{name}: p is"):
            getattr(ng.nn, name)(p)
        with pytest.raises(ValueError, match=f"{name.lower()}: p is"):
            function(np.ones((2, 2, 2, 2)[: 3 if name == "Dropout1d" else 4]), p)


@LAYERS
def test_repr_is_that_of_torch(name):
    torch = pytest.importorskip("torch")
    assert repr(getattr(ng.nn, name)(0.3, True)) == repr(getattr(torch.nn, name)(0.3, True))


@pytest.mark.parametrize(("axes", "shape"), [(1, (40, 10, 3)), (1, (400, 3)), (2, (40, 10, 3, 2)),
                                             (2, (400, 3, 2))])  # fmt: skip
def test_channels_are_dropped_as_a_whole(axes, shape):
    function = F.dropout1d if axes == 1 else F.dropout2d
    y = function(np.ones(shape), 0.5).numpy().reshape(400, -1)
    assert np.all(y == y[:, :1])
    assert 0.4 < (y[:, 0] == 0).mean() < 0.6


def test_channels_need_axes():
    with pytest.raises(ValueError, match=r"dropout2d.*\(3, 4\)"):
        F.dropout2d(np.ones((3, 4)))
    with pytest.raises(TypeError, match="int64"):
        F.dropout(np.ones(3, int))


def test_inplace():
    x = ng.tensor(np.ones(50), requires_grad=True)
    between = x * 2
    y = ng.nn.Dropout(inplace=True)(between)
    assert y is between
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy(force=True))


def test_seed_and_checkpoint_repeat_the_numbers():
    ng.random.manual_seed(3)
    first = F.dropout(np.ones(50)).tolist()
    second = F.dropout(np.ones(50)).tolist()
    ng.random.manual_seed(3)
    assert F.dropout(np.ones(50)).tolist() == first
    assert second != first
    x = ng.tensor(np.ones(50), requires_grad=True)
    y = ng.checkpoint(lambda v: F.dropout(v * 1.0), x)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy(force=True))


def test_forward_mode_and_batches_share_the_zeros():
    x = ng.tensor(np.arange(1.0, 31.0))
    before = np.random.get_state()
    y, t = forward_ad.jvp(F.dropout, [x], [x * 3])
    np.testing.assert_array_equal(t.numpy(), 3 * y.numpy())
    np.random.set_state(before)
    with BatchingInterpreter(2) as level:
        batch = level.unwrap(F.dropout(level.wrap(ng.tensor(np.stack([x.numpy()] * 2)))))
    np.testing.assert_array_equal(batch.numpy(), np.stack([y.numpy()] * 2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_drawn_in_vectors(dtype):
    """A function of the text in the loop's body would keep it from being written in vectors."""
    units, absent = [False, True], [False] * 4
    _, text, signature, *_ = dropped._text(np.dtype(dtype), units, absent, {}, False)
    assert re.search(r"mul <\d+ x i64>", translate(text, parse(signature)))


@pytest.mark.parametrize("group", [1, 3])
def test_numbers_are_those_of_splitmix64(group):
    """In Python's integers: https://prng.di.unimi.it/splitmix64.c gives the first for a seed."""

    def mixed(z):
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    assert mixed(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF
    x = np.arange(1.0, 61.0)
    states = [(mixed(7) + k // group * 0x9E3779B97F4A7C15) % 2**64 for k in range(60)]
    drawn = np.array([(mixed(z) >> 11) / 2**53 for z in states])
    expected = np.where(drawn >= 0.3, x / 0.7, 0)
    np.testing.assert_allclose(OPS["dropout"](x, p=0.3, seed=7, group=group).numpy(), expected)


def test_seed_fills_53_bits():
    seeds = [draw_seed() for _ in range(100)]
    assert max(seeds) > 2**52
    assert all(0 <= s < 2**53 for s in seeds)


@pytest.mark.slow
@pytest.mark.parametrize("group", [1, 100])
def test_same_bits_for_any_number_of_threads(group):
    x = np.random.default_rng(0).standard_normal(300_000)
    before = ng.get_num_threads()
    found = []
    for threads in (1, 2):
        ng.set_num_threads(threads)
        found.append(OPS["dropout"](x, p=0.3, seed=7, group=group).numpy())
    ng.set_num_threads(before)
    np.testing.assert_array_equal(*found)
