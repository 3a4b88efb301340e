"""Parametrized modules, weight_norm and spectral_norm, against PyTorch's."""

import copy

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError
from tests.nn.peers import close, compare, copy_parameters

nn, parametrize = ng.nn, ng.nn.utils.parametrize
X = np.random.default_rng(0).normal(size=(4, 3))


class Symmetric(nn.Module):
    def forward(self, x):
        return ng.triu(x) + ng.triu(x, 1).T

    def right_inverse(self, value):
        return ng.triu(value)


class Doubled(nn.Module):
    def forward(self, x):
        return 2.0 * x

    def right_inverse(self, value):
        return value / 2.0


class Outer(nn.Module):
    """The outer product of two vectors."""

    def forward(self, a, b):
        return a[:, None] * b

    def right_inverse(self, value):
        return value[:, 0].clone(), value[0].clone()


class Alone(nn.Module):
    def forward(self, x):
        return ng.exp(x)


def names(module):
    return list(module.state_dict())


def test_a_weight_becomes_a_function_of_what_is_stored():
    layer = nn.Linear(3, 3)
    weight = layer.weight
    before = weight.detach().clone()
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert names(layer) == ["bias", "parametrizations.weight.original"]
    assert layer.parametrizations.weight.original is weight  # an optimizer may know it
    assert type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    np.testing.assert_array_equal(layer.weight.detach(), np.triu(before) + np.triu(before, 1).T)
    layer(X).sum().backward()
    assert weight.grad is not None
    assert np.tril(weight.grad.numpy(), -1).max() == 0
    layer.weight = 2.0 * layer.weight.detach()
    np.testing.assert_array_equal(np.triu(before) * 2, weight.detach())
    assert "(parametrizations)" in repr(layer)
    assert not parametrize.is_parametrized(layer, "bias")
    again = nn.Linear(3, 3)
    parametrize.register_parametrization(again, "weight", Symmetric())
    again.load_state_dict(layer.state_dict())
    np.testing.assert_array_equal(again(X).detach(), layer(X).detach())


def test_functions_on_top_of_each_other_and_their_removal():
    layer = nn.Linear(3, 3)
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    parametrize.register_parametrization(layer, "weight", Doubled())
    value = layer.weight.detach().numpy().copy()
    layer.weight = ng.tensor(value)
    np.testing.assert_allclose(layer.weight.detach(), value)
    assert len(layer.parametrizations["weight"]) == 2
    twin = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert layer.weight is weight
    assert names(layer) == ["bias", "weight"] or names(layer) == ["weight", "bias"]
    np.testing.assert_allclose(weight.detach(), value)
    assert parametrize.is_parametrized(twin)
    np.testing.assert_allclose(twin.weight.detach(), value)
    parametrize.remove_parametrizations(twin, "weight", leave_parametrized=False)
    assert not np.allclose(twin.weight.detach(), value)


def test_several_stored_tensors_and_buffers():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Outer(), unsafe=True)
    assert names(layer)[1:] == [f"parametrizations.weight.original{k}" for k in range(2)]
    layer(X).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    with pytest.raises(NumgradError, match="made of 2 tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    value = layer.weight.detach().numpy()
    parametrize.remove_parametrizations(layer, "weight")
    np.testing.assert_array_equal(layer.weight.detach(), value)
    module = nn.Module()
    module.register_buffer("mean", ng.ones(3))
    parametrize.register_parametrization(module, "mean", Doubled())
    assert module.mean.tolist() == [1.0] * 3
    assert [name for name, _ in module.named_buffers()] == ["parametrizations.mean.original"]
    parametrize.remove_parametrizations(module, "mean")
    assert dict(module.named_buffers())["mean"].tolist() == [1.0] * 3


def test_cached_computes_once():
    calls = []

    class Counting(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x + 0.0

    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Counting())
    calls.clear()
    with parametrize.cached():
        layer(X)
        layer(X)
        with parametrize.cached():
            layer(X)
        assert layer.weight is layer.weight
    assert len(calls) == 1
    layer(X)
    assert len(calls) == 2


def test_functional_calls_and_compiled_ones():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    params = {name: 1.5 * p.detach() for name, p in layer.named_parameters()}

    def total(params, x):
        return (nn.functional_call(layer, params, (x,)) ** 2).sum()

    expected = ng.grad(total)(params, X)
    found = ng.jit(ng.grad(total))(params, X)
    for name, g in expected.items():
        np.testing.assert_allclose(found[name].detach(), g.detach(), atol=1e-12)


LAYERS = [
    ("Linear", (3, 2), {}, (4, 3)),
    ("Linear", (3, 2), {"dim": None}, (4, 3)),
    ("Conv2d", (3, 2, 2), {"dim": 1}, (2, 3, 4, 4)),
    ("ConvTranspose1d", (3, 2, 2), {}, (2, 3, 4)),
]


@pytest.mark.slow(cases=2)
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS)
def test_weight_norm(name, args, options, shape, old):
    torch = pytest.importorskip("torch")
    made = []
    for lib in (ng, torch):
        where = lib.nn.utils if old else lib.nn.utils.parametrizations
        dtype = {} if lib is ng else {"dtype": torch.float64}
        made.append(where.weight_norm(getattr(lib.nn, name)(*args, **dtype), **options))
    ours, theirs = made
    assert names(ours) == names(theirs)
    copy_parameters(ours, theirs)
    compare(torch, ours, theirs, [np.random.default_rng(1).normal(size=shape)])
    if old:
        nn.utils.remove_weight_norm(ours)
        torch.nn.utils.remove_weight_norm(theirs)
        close(ours.weight, theirs.weight, 1e-12)
        assert sorted(names(ours)) == ["bias", "weight"]


@pytest.mark.slow(cases=2)
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(("name", "args", "options", "shape"), [LAYERS[0], *LAYERS[2:]])
def test_spectral_norm(name, args, options, shape, old):
    torch = pytest.importorskip("torch")
    made = []
    for lib in (ng, torch):
        where = lib.nn.utils if old else lib.nn.utils.parametrizations
        dtype = {} if lib is ng else {"dtype": torch.float64}
        made.append(where.spectral_norm(getattr(lib.nn, name)(*args, **dtype), **options))
    ours, theirs = made
    assert names(ours) == names(theirs)
    copy_parameters(ours, theirs)
    x = np.random.default_rng(1).normal(size=shape)
    compare(torch, ours, theirs, [x], 1e-10)  # a step of the iteration
    compare(torch, ours.eval(), theirs.eval(), [x], 1e-10)
    if old:
        nn.utils.remove_spectral_norm(ours)
        torch.nn.utils.remove_spectral_norm(theirs)
        close(ours.weight, theirs.weight, 1e-10)


def test_recurrent_weights_can_be_parametrized():
    layer = nn.LSTM(3, 2)
    expected = layer(X)[0].detach()
    nn.utils.parametrizations.weight_norm(layer, "weight_hh_l0")
    y = layer(X)[0]
    np.testing.assert_allclose(y.detach(), expected, atol=1e-14)
    y.sum().backward()
    assert layer.parametrizations.weight_hh_l0.original0.grad is not None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: parametrize.register_parametrization(m, "w", Doubled()), "no parameter .* 'w'"),
        (lambda m: parametrize.register_parametrization(m, "weight", nn.Flatten(0)), "shape"),
        (lambda m: parametrize.remove_parametrizations(m, "weight"), "no parametrized tensor"),
        (lambda m: nn.utils.weight_norm(nn.utils.weight_norm(m)), "has it already"),
        (lambda m: nn.utils.remove_weight_norm(m), "has none on 'weight'"),
        (lambda m: nn.utils.remove_spectral_norm(m), "has none on 'weight'"),
        (lambda m: nn.utils.parametrizations.spectral_norm(m, "w"), "no parameter 'w'"),
        (lambda m: nn.utils.parametrizations.spectral_norm(m, "weight", 0), "must be positive"),
    ],
)
def test_errors(call, message):
    with pytest.raises(NumgradError, match=message):
        call(nn.Linear(3, 2))


def test_what_cannot_be_inverted_or_pickled():
    import pickle

    layer = nn.Linear(3, 2)
    parametrize.register_parametrization(layer, "weight", Alone())
    with pytest.raises(NumgradError, match="Alone cannot be assigned"):
        layer.weight = ng.ones((2, 3))
    with pytest.raises(NumgradError, match="save its state_dict"):
        pickle.dumps(layer)


def test_plain_arrays_are_assigned():
    weight = np.array([[0.6, -0.8], [0.8, 0.6]])
    for parametrized in (
        nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)),
        nn.utils.parametrizations.orthogonal(nn.Linear(2, 2)),
    ):
        parametrized.weight = weight
        np.testing.assert_allclose(parametrized.weight.detach().numpy(), weight, rtol=1e-12)


def test_spectral_norm_of_complex_weights():
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(4, 3)) + 1j * rng.normal(size=(4, 3))
    layer = nn.Linear(3, 4, dtype=np.complex128)
    with ng.no_grad():
        layer.weight.copy_(weight)
    nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=50)
    expected = weight / np.linalg.norm(weight, 2)
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_states_of_the_older_weight_norm_are_loaded():
    old = nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 2)))
    new = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)))
    assert {"0.weight_g", "0.weight_v"} < set(old.state_dict())
    assert not any(new.load_state_dict(old.state_dict()))
    np.testing.assert_allclose(new(X).detach(), old(X).detach(), rtol=1e-14)
