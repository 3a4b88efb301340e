"""A new head on a frozen base: nothing before the head is recorded or kept."""

import gc
import weakref

import numpy as np
import pytest

import numgrad as ng

RNG = np.random.default_rng(11)
BASE = [RNG.normal(size=shape) / 2 for shape in ((5, 8), (8, 8), (8, 6))]
HEAD = RNG.normal(size=(6, 3)) / 2
INPUT, TARGET = RNG.normal(size=(4, 5)), RNG.normal(size=(4, 3))


class Model:
    """Layers of ``tanh(x @ w)``, then a linear head; remembers what it made, weakly."""

    def __init__(self, lib):
        self.lib = lib
        self.base = [lib.tensor(w, requires_grad=True) for w in BASE]
        self.head = lib.tensor(HEAD, requires_grad=True)
        self.made = []

    def freeze(self):
        for w in self.base:
            w.requires_grad_(False)

    def features(self, x):
        for w in self.base:
            product = x @ w
            x = self.lib.tanh(product)
            self.note(product, x)
        return x

    def note(self, *tensors):
        if self.lib is ng:
            self.made += [weakref.ref(o) for t in tensors for o in (t, t._array)]

    def loss(self):
        difference = self.features(self.lib.tensor(INPUT)) @ self.head - self.lib.tensor(TARGET)
        return (difference * difference).mean()

    def alive(self):
        gc.collect()
        return [found for reference in self.made if (found := reference()) is not None]


def nodes_behind(node):
    """Names of the nodes that a backward from ``node`` runs."""
    found, stack, names = set(), [node], []
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found.add(node)
            names.append(node.name())
            stack += [child for child, _ in node.next_functions]
    return sorted(names)


def test_nothing_before_the_head_is_recorded():
    model = Model(ng)
    model.freeze()
    features = model.features(ng.tensor(INPUT))
    assert features.grad_fn is None
    assert features.is_leaf
    loss = model.loss()
    assert nodes_behind(loss.grad_fn) == [
        "AccumulateGrad", "MatmulBackward", "MeanBackward", "MultiplyBackward", "SubtractBackward",
    ]  # fmt: skip
    product = loss.grad_fn
    while product.name() != "MatmulBackward":
        product = product.next_functions[0][0]
    (features, _), (head, _) = product.next_functions
    assert features is None
    assert head.variable is model.head


def test_nothing_before_the_head_is_kept():
    model = Model(ng)
    model.freeze()
    loss = model.loss()
    kept = model.alive()
    assert [type(o).__name__ for o in kept] == ["Tensor", "ndarray"]  # what the head multiplies
    assert kept[0].shape == (4, 6)
    assert kept[1] is kept[0]._array
    del kept
    loss.backward()
    assert model.alive() == []


def test_without_freezing_everything_is_kept():
    model = Model(ng)
    loss = model.loss()
    arrays = [o for o in model.alive() if type(o) is np.ndarray]
    assert len(arrays) >= len(BASE)  # of each layer what tanh returned
    del arrays
    loss.backward()
    del loss
    assert model.alive() == []


@pytest.mark.parametrize("freeze", [True, False])
def test_frozen_weights_stay_and_the_head_learns(lib, freeze):
    model = Model(lib)
    if freeze:
        model.freeze()
    before = model.loss().item()
    for _ in range(20):
        model.head.grad = None
        model.loss().backward()
        with lib.no_grad():
            model.head -= 0.2 * model.head.grad
    assert model.loss().item() < 0.9 * before
    for w, start in zip(model.base, BASE, strict=True):
        assert (w.grad is None) == freeze
        np.testing.assert_array_equal(w.detach().numpy(), start)


def test_the_gradient_of_the_head_is_the_closed_form(lib):
    model = Model(lib)
    model.freeze()
    model.loss().backward()
    x = INPUT
    for w in BASE:
        x = np.tanh(x @ w)
    expected = 2 * x.T @ (x @ HEAD - TARGET) / TARGET.size
    np.testing.assert_allclose(model.head.grad.numpy(), expected, rtol=1e-12)


def test_thawing_records_again(lib):
    model = Model(lib)
    model.freeze()
    model.loss().backward()
    model.base[-1].requires_grad_()
    model.loss().backward()
    assert model.base[0].grad is None
    assert model.base[-1].grad is not None


def test_no_grad_around_the_base_does_the_same():
    frozen, plain = Model(ng), Model(ng)
    frozen.freeze()
    frozen.loss().backward()
    with ng.no_grad():
        features = plain.features(ng.tensor(INPUT))
    difference = features @ plain.head - ng.tensor(TARGET)
    (difference * difference).mean().backward()
    np.testing.assert_array_equal(plain.head.grad.numpy(), frozen.head.grad.numpy())
    assert all(w.grad is None for w in plain.base)
