"""Pruned parameters: masks by hand, gradients, states, several methods, errors."""

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn
from numgrad.nn.utils import prune

WEIGHT = np.array([[0.5, -2.0, 3.0], [-0.1, 1.0, 4.0]])


def layer():
    made = nn.Linear(3, 2)
    made.weight.data = ng.tensor(WEIGHT)
    return made


@pytest.mark.parametrize(
    ("pruned", "mask"),
    [
        (lambda m: prune.identity(m, "weight"), np.ones((2, 3))),
        (lambda m: prune.l1_unstructured(m, "weight", 2), np.abs(WEIGHT) > 0.5),
        (lambda m: prune.l1_unstructured(m, "weight", 0.5), np.abs(WEIGHT) > 1),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 1), [[0, 1, 1]] * 2),
        (lambda m: prune.ln_structured(m, "weight", 1, 1, 0), [[1, 1, 1], [0, 0, 0]]),
        (lambda m: prune.ln_structured(m, "weight", 1, np.inf, 0), [[0, 0, 0], [1, 1, 1]]),
        (lambda m: prune.l1_unstructured(m, "weight", 5, -(ng.tensor(WEIGHT) ** 2)), WEIGHT == 4),
        (lambda m: prune.custom_from_mask(m, "weight", ng.tensor(WEIGHT > 0)), WEIGHT > 0),
    ],
)
def test_masks(pruned, mask):
    module = pruned(layer())
    mask = np.asarray(mask, float)
    np.testing.assert_array_equal(module.weight_mask.numpy(), mask)
    np.testing.assert_array_equal(module.weight.detach().numpy(), WEIGHT * mask)
    assert sorted(dict(module.named_parameters())) == ["bias", "weight_orig"]
    x = ng.tensor([[1.0, 2.0, 3.0]])
    module(x).sum().backward()
    np.testing.assert_allclose(module.weight_orig.grad.numpy(), [1, 2, 3] * mask)
    module.weight_orig.data = 2 * module.weight_orig.detach()  # which the next call sees
    np.testing.assert_allclose(
        (module(x) - module.bias).detach().numpy(), x.numpy() @ (2 * WEIGHT * mask).T
    )


def test_several_methods_prune_what_is_left():
    module = prune.l1_unstructured(prune.l1_unstructured(layer(), "weight", 2), "weight", 2)
    np.testing.assert_array_equal(module.weight_mask.numpy(), np.abs(WEIGHT) > 2)
    module = prune.ln_structured(module, "weight", 1, 2, 1)  # of the columns that have any left
    assert module.weight_mask.numpy().sum() == 0
    (hook,) = prune._methods(module, "weight").values()
    assert [type(method) for method in hook] == [
        prune.L1Unstructured, prune.L1Unstructured, prune.LnStructured,
    ]  # fmt: skip


def test_random_masks():
    np.random.seed(0)
    counts = [
        prune.random_unstructured(layer(), "weight", 2).weight_mask.numpy().sum() for _ in range(9)
    ]
    assert counts == [4] * 9
    masks = [prune.random_structured(layer(), "weight", 1, dim=1).weight_mask for _ in range(20)]
    columns = {int(mask.numpy().sum(0).argmin()) for mask in masks}
    assert columns == {0, 1, 2}


def test_several_parameters_as_one():
    model = nn.Sequential(layer(), layer())
    model[1].weight.data = 0.1 * ng.tensor(WEIGHT)
    pairs = [(model[0], "weight"), (model[1], "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=6)
    both = np.concatenate([WEIGHT, 0.1 * WEIGHT])
    cut = np.sort(np.abs(both).ravel())[5]
    masks = [module.weight_mask.numpy() for module in model]
    np.testing.assert_array_equal(np.concatenate(masks), np.abs(both) > cut)


def test_removal_and_states():
    module = prune.l1_unstructured(layer(), "weight", 4)
    other = prune.identity(layer(), "weight")
    other.load_state_dict(module.state_dict())
    x = ng.tensor([[1.0, -1.0, 2.0]])
    assert other(x).tolist() == module(x).tolist()
    assert prune.is_pruned(nn.Sequential(module))
    prune.remove(module, "weight")
    assert not prune.is_pruned(module)
    assert sorted(module.state_dict()) == ["bias", "weight"]
    np.testing.assert_array_equal(module.weight.detach().numpy(), WEIGHT * (np.abs(WEIGHT) > 2))
    with pytest.raises(ng.NumgradValueError, match="has to be pruned"):
        prune.remove(module, "weight")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda m: prune.l1_unstructured(m, "weight", "a"), TypeError, "Invalid type for amount"),
        (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "share from 0 to 1"),
        (lambda m: prune.l1_unstructured(m, "weight", 7), ValueError, "smaller than the number"),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "2 axes"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 2), IndexError, "Invalid index 2"),
        (lambda m: prune.l1_unstructured(m, "weight", 1, ng.ones(2)), AssertionError, "same shape"),
    ],
)
def test_refusals_leave_the_module(call, kind, message):
    module = layer()
    with pytest.raises(kind, match=message) as raised:
        call(module)
    assert isinstance(raised.value, ng.NumgradError)
    assert sorted(dict(module.named_parameters())) == ["bias", "weight"]
    assert not prune.is_pruned(module)
