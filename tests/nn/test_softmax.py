"""Softmax, its logarithm and softmin: any axis, extreme logits, the guessed axis."""

import numpy as np
import pytest
from scipy import special

import numgrad as ng
from numgrad.nn import functional as F

inf, nan = np.inf, np.nan
PAIRS = [
    ("Softmax", F.softmax, special.softmax),
    ("LogSoftmax", F.log_softmax, special.log_softmax),
    ("Softmin", F.softmin, lambda x, axis: special.softmax(-x, axis)),
]
functions = pytest.mark.parametrize(("name", "function", "peer"), PAIRS, ids=[p[0] for p in PAIRS])
X = np.random.default_rng(0).standard_normal((2, 3, 4)) * 3


@functions
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_formula(name, function, peer, dim):
    expected = peer(X, dim)
    np.testing.assert_allclose(function(ng.tensor(X), dim).numpy(), expected, rtol=1e-12)
    layer = getattr(ng.nn, name)(dim)
    np.testing.assert_allclose(layer(X).numpy(), expected, rtol=1e-12)
    assert repr(layer) == f"{name}(dim={dim})"


@pytest.mark.slow(cases=0)
@functions
def test_torch(name, function, peer):
    torch = pytest.importorskip("torch")
    g, h = np.random.default_rng(1).standard_normal((2, *X.shape))
    found = []
    for lib, f in ((ng, function), (torch, getattr(torch.nn.functional, function.__name__))):
        x = lib.tensor(X, requires_grad=True)
        y = f(x, dim=1)
        (first,) = lib.autograd.grad(y, x, lib.asarray(g), create_graph=True)
        (second,) = lib.autograd.grad(first, x, lib.asarray(h))
        found.append([np.asarray(v.detach()) for v in (y, first, second)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13)


def test_extreme_logits():
    x = np.array([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [-inf, 0.0, 0.0], [-inf] * 3])
    np.testing.assert_allclose(
        F.softmax(x, 1).numpy(), [[1, 0, 0], [1 / 3] * 3, [0, 0.5, 0.5], [nan] * 3]
    )
    third, half = -np.log(3), -np.log(2)
    np.testing.assert_allclose(
        F.log_softmax(x, 1).numpy(),
        [[0, -2e4, -1e4], [third] * 3, [-inf, half, half], [nan] * 3],
    )
    assert np.isnan(F.softmax([inf, 0.0], 0).numpy()).any()


@functions
def test_guessed_axis(name, function, peer):
    for shape, axis in (((3,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((1, 2, 3, 4), 1)):
        x = np.arange(np.prod(shape), dtype=float).reshape(shape)
        with pytest.warns(UserWarning, match=f"axis {axis}"):
            y = function(x)
        np.testing.assert_allclose(y.numpy(), peer(x, axis))


def test_no_axes_empty_and_dtype():
    assert F.softmax(ng.tensor(3.0), 0).item() == 1.0
    assert F.softmax(np.zeros((0, 3)), 1).shape == (0, 3)
    x = ng.tensor(X, requires_grad=True)
    y = F.log_softmax(x, 1, dtype=np.float32)
    assert y.dtype == np.float32
    y[0, 0, 0].backward()
    assert x.grad.dtype == np.float64
    with pytest.raises(TypeError, match="dim"):
        F.softmax(X, (0, 1))
    with pytest.raises(IndexError, match="axis 3"):
        F.softmax(X, 3)
