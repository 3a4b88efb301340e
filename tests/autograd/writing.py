"""What tests of in-place operations have in common."""

import numpy as np
import pytest

import numgrad as ng


def leaf(*shape, seed=0, dtype=float):
    values = np.random.default_rng([seed, *shape]).uniform(0.5, 1.5, shape)
    if np.dtype(dtype).kind == "c":
        values = values * (1 + 0.5j)
    return ng.tensor(values.astype(dtype), requires_grad=True)


def weighted(t):
    """A scalar that tells the elements apart."""
    return (t * np.cos(1.0 + np.arange(t.size)).reshape(t.shape)).sum()


def gradients(function, arrays):
    """Value of the function and gradients of its weighted sum."""
    leaves = [ng.tensor(a, requires_grad=True) for a in arrays]
    out = function(*leaves)
    weighted(out).backward()
    return out.detach().numpy(), [x.grad.numpy() for x in leaves]


def same_gradients(written, functional, *arrays):
    """A function that writes gives what one that does not gives."""
    out, found = gradients(written, arrays)
    expected, wanted = gradients(functional, arrays)
    np.testing.assert_allclose(out, expected, rtol=1e-13, strict=True)
    for g, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-14, strict=True)


def raises_and_changes_nothing(error, words, target, function, *others):
    """``function`` fails, and the target, its root and the others are what they were."""
    watched = [t for t in (target, target._base, *others) if t is not None]

    def state():
        return [
            (t.numpy(force=True).copy(), t._version, t.grad_fn, t.requires_grad, t.is_leaf)
            for t in watched
        ]

    before = state()
    with pytest.raises(error, match=words) as caught:
        function()
    assert isinstance(caught.value, ng.NumgradError)
    for old, new in zip(before, state(), strict=True):
        np.testing.assert_array_equal(old[0], new[0], strict=True)
        assert old[1:] == new[1:]
