"""``torch.compile`` gives what the function gives, and says where it cannot compile."""

import copy
import warnings

import numpy as np
import pytest

import numgrad.torch as torch
from numgrad.torch import nn

SCALE = 2.0


def test_a_module_follows_its_parameters_and_its_mode():
    net = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
    compiled, x = torch.compile(net), torch.ones(4, 3)
    compiled(x).sum().backward()
    assert net[0].weight.grad is not None
    compiled.eval()
    with torch.no_grad():
        net[0].weight.mul_(2)
    assert torch.allclose(compiled(x), net(x))
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight"
    twin = copy.deepcopy(compiled)
    with torch.no_grad():
        twin._orig_mod[0].weight.add_(1)
    assert torch.allclose(twin(x), twin._orig_mod(x))
    assert torch.allclose(compiled(x), net(x))


def test_a_global_number_may_change(monkeypatch):
    @torch.compile
    def scaled(x):
        return {"y": x * SCALE}

    assert scaled(torch.ones(2))["y"].tolist() == [2, 2]
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert scaled(torch.ones(2))["y"].tolist() == [3, 3]


@pytest.mark.parametrize("uses", ["values", "random numbers"])
def test_what_cannot_be_traced_runs_as_it_is_with_one_warning(uses):
    def function(x):
        if uses == "values":
            return x if x.sum() > 0 else -x
        return x.abs() + 0 * np.random.rand()

    compiled = torch.compile(function)
    with pytest.warns(UserWarning, match="function runs as it is"):
        assert compiled(torch.ones(2)).tolist() == [1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(-torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="cannot be traced"):
        torch.compile(function, fullgraph=True)(torch.ones(2))


def test_options_are_of_numgrads_compiler():
    for options in ({"backend": "cudagraphs"}, {"mode": "fast"}, {"options": {"trace": 1}}):
        with pytest.raises(ValueError, match="compile: takes"):
            torch.compile(abs, **options)
    assert torch.compile(abs, backend="eager") is abs
    assert torch.compile(abs, disable=True) is abs


def test_a_layer_s_members_and_options_may_be_replaced():
    net, x = nn.Sequential(nn.Linear(1, 1, bias=False), nn.LeakyReLU(0.1)), torch.ones(1, 1)
    compiled, results = torch.compile(net), []
    for weight in (1.0, -2.0):
        net[0].weight = nn.Parameter(torch.full((1, 1), weight))
        results.append(compiled(x).item())
    net[1].negative_slope = 0.5
    results.append(compiled(x).item())
    net[1] = nn.ReLU()
    results.append(compiled(x).item())
    assert results == pytest.approx([1, -0.2, -1, 0])
    compiled.note = 3
    assert net.note == 3


def test_random_numbers_are_drawn_at_each_call():
    noisy = torch.compile(lambda x: x + torch.rand(3))
    first, second = noisy(torch.zeros(3)), noisy(torch.zeros(3))
    assert not torch.equal(first, second)


def test_a_function_is_left_out_of_compilation():
    @torch.compiler.disable(reason="prints")
    def plain(x):
        assert not torch.compiler.is_compiling()
        return 2 * x

    def function(x):
        return plain(x) + 1

    compiled = torch.compile(function)
    with pytest.warns(UserWarning, match=r"plain is left out .* \(prints\)"):
        assert compiled(torch.ones(2)).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="plain is left out"):
        torch.compile(function, fullgraph=True)(torch.ones(2))
    assert torch.compile(plain) is plain
    assert plain(torch.ones(1)).item() == 2
    assert torch.compile(lambda x: x + torch.compiler.is_compiling())(torch.ones(1)).item() == 2
    with pytest.raises(TypeError, match="forward"):
        torch.compiler.disable(nn.Linear(1, 1))
