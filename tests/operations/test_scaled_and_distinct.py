"""``renorm`` and ``unique_consecutive`` by their definitions in NumPy, and by PyTorch's."""

import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck
from tests.crossed import each_first

rng = np.random.default_rng(5)


def scaled(x, p, axis, maxnorm):
    out = x.copy()
    for k in range(x.shape[axis]):
        place = (slice(None),) * (axis % x.ndim) + (k,)
        norm = np.linalg.norm(np.abs(x[place]).ravel(), p)
        if norm > maxnorm:
            out[place] = x[place] * (maxnorm / (norm + 1e-7))
    return out


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize(("p", "axis"), each_first([1, 2, 2.5, np.inf], [0, 1, -1]))
def test_renorm(p, axis):
    x = rng.normal(size=(3, 4, 2))
    maxnorm = 0.8 * np.abs(x).sum() / 4 if p == 1 else 2.0
    expected = scaled(x, p, axis, maxnorm)
    np.testing.assert_allclose(ng.renorm(x, p, axis, maxnorm).numpy(), expected, rtol=1e-14)
    np.testing.assert_allclose(ng.jit(lambda x: ng.renorm(x, p, axis, maxnorm))(x), expected)
    batch = ng.vmap(lambda x: ng.renorm(x, p=p, axis=axis, maxnorm=maxnorm))(ng.tensor(x[None]))
    np.testing.assert_allclose(batch[0], expected)
    leaf = ng.tensor(x, requires_grad=True)
    assert gradcheck(lambda x: ng.renorm(x, p, axis, maxnorm), (leaf,))
    assert gradgradcheck(lambda x: ng.renorm(x, p, axis, maxnorm), (leaf,))


def test_renorm_of_zeros_and_its_errors():
    x = ng.tensor(np.zeros((2, 2)), requires_grad=True)
    ng.renorm(x, 2, 0, 1.0).sum().backward()
    np.testing.assert_array_equal(x.grad, np.ones((2, 2)))
    for p, axis, maxnorm in ((0, 0, 1.0), (2, 0, -1.0), (2, 5, 1.0)):
        with pytest.raises(ng.NumgradError, match="renorm"):
            ng.renorm(x, p, axis, maxnorm)


def consecutive(x, axis):
    """Slices by one another, as a loop finds them."""
    first = x.ravel() if axis is None else np.moveaxis(x, axis, 0)
    groups = [list(group) for _, group in itertools.groupby(first, key=lambda s: s.tolist())]
    values = np.array([group[0] for group in groups])
    counts = np.array([len(group) for group in groups])
    inverse = np.repeat(np.arange(len(groups)), counts)
    if axis is None:
        return values, inverse.reshape(x.shape), counts
    return np.moveaxis(values, 0, axis), inverse, counts


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_unique_consecutive(axis):
    x = np.array([[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0], [0.0, 0.0, 3.0, 3.0]])
    expected = consecutive(x, axis)
    found = ng.unique_consecutive(ng.tensor(x), True, True, axis)
    for actual, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(actual.numpy(), wanted)
    np.testing.assert_array_equal(ng.unique_consecutive(x, axis=axis).numpy(), expected[0])


def test_gradients_of_unique_consecutive_go_to_the_first_of_a_run():
    leaf = ng.tensor([1.0, 1.0, 2.0, 1.0], requires_grad=True)
    found = ng.unique_consecutive(leaf)
    (found * np.array([1.0, 2.0, 3.0])).sum().backward()
    np.testing.assert_array_equal(leaf.grad, [1.0, 0.0, 2.0, 3.0])
    _, tangent = ng.jvp(ng.unique_consecutive, (leaf.detach(),), (np.arange(4.0),))
    np.testing.assert_array_equal(tangent, [0.0, 2.0, 3.0])
    assert ng.unique_consecutive(np.zeros(0)).shape == (0,)
    assert ng.unique_consecutive([np.nan, np.nan]).shape == (2,)
    with pytest.raises(ng.NumgradTraceError, match="unique_consecutive"):
        ng.jit(ng.unique_consecutive)(np.ones(3))


def test_both_are_pytorchs():
    torch = pytest.importorskip("torch")
    x = rng.integers(0, 2, (6, 3)).astype(float)
    for axis in (None, 0, 1):
        found = ng.unique_consecutive(x, True, True, axis)
        wanted = torch.unique_consecutive(torch.tensor(x), True, True, axis)
        for actual, expected in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(actual.numpy(), expected)
    for axis in (0, 1):
        expected = torch.renorm(torch.tensor(x), 2, axis, 1.5)
        np.testing.assert_allclose(ng.renorm(x, 2, axis, 1.5).numpy(), expected, rtol=1e-12)
