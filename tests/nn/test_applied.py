"""Modules made from their functions: signature, forward, repr, documentation, copies."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import numgrad as ng
from numgrad.nn.applied import Applied

APPLIED = sorted(
    (c for c in vars(ng.nn).values() if isinstance(c, type) and issubclass(c, Applied)),
    key=lambda c: c.__name__,
)


def made(cls):
    parameters = inspect.signature(cls).parameters.values()
    return cls(**{p.name: 2 for p in parameters if p.default is p.empty})


def test_all_families_are_there():
    assert len(APPLIED) == 26 + 6 + 15 + 23 + 5 + 3 + 1 + 2


def test_every_option_is_documented_and_an_attribute():
    for cls in APPLIED:
        module = made(cls)
        for name, option in inspect.signature(cls).parameters.items():
            assert cls._options[name].doc.endswith("."), (cls, name)
            assert f"\n{name}" in cls.__doc__ or f", {name}" in cls.__doc__, (cls, name)
            if option.default is not option.empty and name not in ("stride", "padding"):
                assert getattr(module, name) is option.default, (cls, name)


def test_copies_and_pickles_are_alike():
    for module in map(made, APPLIED):
        for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            assert repr(twin) == repr(module)
            assert set(vars(twin)) == set(vars(module)), repr(module)


def test_forward_hands_over_every_option_under_its_name():
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8))
    pool = ng.nn.MaxPool2d(3, 2, 1, 1, True, True)  # the function has these in another order
    y, indices = pool(x)
    wanted = ng.nn.functional.max_pool2d(x, 3, 2, 1, 1, ceil_mode=True, return_indices=True)
    np.testing.assert_array_equal(y, wanted[0])
    np.testing.assert_array_equal(indices, wanted[1])
    assert list(inspect.signature(pool.forward).parameters) == ["input"]
    loss = ng.nn.TripletMarginLoss(2.0, swap=True, reduction="none")
    assert list(inspect.signature(loss.forward).parameters) == ["anchor", "positive", "negative"]
    a, p, n = x[0, 0], x[0, 1], x[0, 2]
    np.testing.assert_array_equal(
        loss(a, p, n),
        ng.nn.functional.triplet_margin_loss(a, p, n, 2.0, swap=True, reduction="none"),
    )


def test_training_is_that_of_the_module():
    layer = ng.nn.Dropout(1.0)
    assert layer(ng.ones(3)).tolist() == [0.0] * 3
    assert layer.eval()(ng.ones(3)).tolist() == [1.0] * 3


def test_weights_are_buffers_that_are_saved_and_loaded():
    loss = ng.nn.CrossEntropyLoss(np.array([1.0, 2.0]))
    assert list(loss.state_dict()) == ["weight"]
    other = ng.nn.CrossEntropyLoss(np.array([3.0, 4.0]))
    other.load_state_dict(loss.state_dict())
    assert other.weight.tolist() == [1.0, 2.0]
    assert list(ng.nn.BCEWithLogitsLoss().state_dict()) == []


def test_a_subclass_may_have_a_constructor_and_annotations_of_its_own():
    class Steep(ng.nn.LeakyReLU):
        steepness: float = 0.25

        def __init__(self):
            super().__init__(self.steepness)
            self.scale = ng.nn.Parameter(ng.ones(()))

        def forward(self, x):
            return super().forward(x) * self.scale

    module = Steep()
    assert repr(module) == "Steep(negative_slope=0.25)"
    assert module(ng.tensor([-4.0])).tolist() == [-1.0]
    assert [name for name, _ in module.named_parameters()] == ["scale"]
    assert Steep.steepness == 0.25


def test_warnings_name_the_line_of_the_caller():
    with pytest.warns(UserWarning, match="dim") as found:
        ng.nn.Softmax()(ng.ones(3))
    assert found[0].filename == __file__
