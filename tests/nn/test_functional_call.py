"""Modules with other parameters than their own."""

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn


def call(lib, *args, **kwargs):
    return (nn if lib is ng else lib.func).functional_call(*args, **kwargs)


def toy(lib):
    class Toy(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = lib.nn.Linear(2, 2, bias=False)
            self.tied = lib.nn.Linear(2, 2, bias=False)
            self.tied.weight = self.inner.weight
            self.register_buffer("offset", lib.zeros(2))
            self.nothing = None
            self.register_parameter("none", None)

        def forward(self, x, factor=1.0):
            self.offset = self.offset + 1
            return (self.inner(x) + self.tied(x)) * factor + self.offset

    return Toy()


def test_values_take_the_place_of_members(lib):
    model = toy(lib)
    weight, offset = model.inner.weight, model.offset
    x = lib.tensor([1.0, 2.0])
    given = {"inner.weight": lib.ones((2, 2)), "offset": lib.ones(2)}
    np.testing.assert_array_equal(call(lib, model, dict(given), x), [8.0, 8.0])
    np.testing.assert_array_equal(call(lib, model, dict(given), (x, 2.0)), [14.0, 14.0])
    y = call(lib, model, dict(given), (x,), {"factor": 2.0})
    np.testing.assert_array_equal(y, [14.0, 14.0])
    parts = [{name: value} for name, value in given.items()]
    np.testing.assert_array_equal(call(lib, model, parts, x), [8.0, 8.0])
    if lib is ng:
        assert parts[1]["offset"].tolist() == [2.0, 2.0]
    call(lib, model, given, x)
    assert given["offset"].tolist() == [2.0, 2.0]  # what the module set anew
    assert given["inner.weight"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert model.inner.weight is weight
    assert model.inner._parameters["weight"] is weight
    assert model.offset is offset
    assert list(model._buffers) == ["offset"]


def test_ties(lib, raises):
    model, x = toy(lib), lib.tensor([1.0, 2.0])
    ones = lib.ones((2, 2))
    tied = call(lib, model, {"tied.weight": ones}, x) - call(lib, model, {"inner.weight": ones}, x)
    np.testing.assert_array_equal(tied.detach(), [-1.0, -1.0])  # the offset counts calls
    with raises(ValueError, "another name"):
        call(lib, model, {"inner.weight": ones, "tied.weight": ones + 1}, x)


def test_a_module_with_two_names_gets_its_own_back():
    model = nn.Sequential(nn.Linear(2, 2))
    model.append(model[0])
    before = model[0].weight
    nn.functional_call(model, {"1.weight": ng.ones((2, 2))}, ng.ones(2))
    assert model[0].weight is before


def test_after_an_error_all_is_as_it_was():
    model = toy(ng)
    weight, offset = model.inner.weight, model.offset
    given = {"inner.weight": ng.ones((2, 3)), "offset": ng.ones(2)}
    before = dict(given)
    with pytest.raises(ValueError, match="linear"):
        nn.functional_call(model, given, ng.ones(2))
    assert model.inner.weight is model.tied.weight is weight
    assert model.offset is offset
    assert given["offset"] is before["offset"]
    assert list(dict(model.named_parameters())) == ["inner.weight"]


def test_strict(lib, raises):
    model, x = toy(lib), lib.ones(2)
    weight, offset = lib.ones((2, 2)), lib.ones(2)
    with raises(RuntimeError, "missing for offset"):
        call(lib, model, {"inner.weight": weight}, x, strict=True)
    with raises(RuntimeError, "no parameter or buffer more"):
        call(lib, model, {"tied.weight": weight, "offset": offset, "more": x}, x, strict=True)
    call(lib, model, {"tied.weight": weight, "offset": offset}, x, strict=True)


def test_gradients_flow_to_what_is_given(lib):
    model = lib.nn.Linear(2, 1)
    given = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    call(lib, model, given, lib.tensor([1.0, 2.0])).sum().backward()
    np.testing.assert_array_equal(given["weight"].grad, [[1.0, 2.0]])
    assert model.weight.grad is None


def test_wrong_arguments():
    model = toy(ng)
    with pytest.raises(RuntimeError, match="more"):
        nn.functional_call(model, {"more": ng.ones(1)}, ng.ones(2))
    with pytest.raises(TypeError, match="float"):
        nn.functional_call(model, {"offset": 1.0}, ng.ones(2))
    with pytest.raises(TypeError, match="dictionary"):
        nn.functional_call(model, [3], ng.ones(2))
    with pytest.raises(ValueError, match="several dictionaries"):
        nn.functional_call(model, [{"offset": ng.ones(2)}] * 2, ng.ones(2))
    with pytest.raises(ValueError, match="another name"):
        nn.functional_call(
            model, {"inner.weight": ng.ones((2, 2)), "tied.weight": ng.ones((2, 2))}, ng.ones(2)
        )


def test_transforms():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    x = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters):
        return (nn.functional_call(model, parameters, x) ** 2).sum()

    found = ng.grad(loss)(parameters)
    loss_of_own = (model(x) ** 2).sum()
    loss_of_own.backward()
    for name, p in model.named_parameters():
        np.testing.assert_allclose(found[name].detach(), p.grad)
    hessian = ng.hessian(lambda w: loss(parameters | {"1.weight": w}))(parameters["1.weight"])
    hidden = model[0](x).detach().numpy()
    np.testing.assert_allclose(hessian[0, :, 0].detach(), 2 * hidden.T @ hidden)


# --------------------------------------------------------------------------------------- stacking


def stack(lib, models):
    return (nn if lib is ng else lib.func).stack_module_state(models)


def test_stack_module_state(lib):
    models = [lib.nn.Linear(2, 3) for _ in range(4)]
    for model in models:
        model.register_buffer("count", lib.tensor(1))
        model.bias.requires_grad_(False)
    parameters, buffers = stack(lib, models)
    assert list(parameters) == ["weight", "bias"]
    assert parameters["weight"].shape == (4, 3, 2)
    assert parameters["weight"].requires_grad
    assert parameters["weight"].is_leaf
    assert not parameters["bias"].requires_grad
    assert buffers["count"].tolist() == [1, 1, 1, 1]
    np.testing.assert_array_equal(parameters["weight"].detach()[2], models[2].weight.detach())


def test_models_that_cannot_be_stacked(lib, raises):
    linear, other = lib.nn.Linear(2, 3), lib.nn.Linear(2, 3).eval()
    for models, words in (
        ([], "no models"),
        ([linear, lib.nn.Identity()], "Identity"),
        ([linear, other], "training"),
    ):
        with pytest.raises((ValueError, RuntimeError), match=words if lib is ng else None):
            stack(lib, models)
    other.train().bias.requires_grad_(False)
    with raises((ValueError, RuntimeError), "bias"):
        stack(lib, [linear, other])


def test_batch_normalizations_without_running_statistics_are_mapped():
    model = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.BatchNorm1d(2)))
    assert nn.replace_all_batch_norm_modules_(model) is model
    assert not list(model.buffers())
    x = np.random.default_rng(0).normal(size=(5, 4, 3))
    y = ng.vmap(model)(x)
    for found, batch in zip(y, x, strict=True):
        np.testing.assert_allclose(found.detach(), model(ng.tensor(batch)).detach(), atol=1e-12)
