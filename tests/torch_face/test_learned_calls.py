"""Calls that machine code learns do what Python does: Note [Learning of calls]."""

import numpy as np
import pytest

import numgrad as ng
import numgrad.torch as torch
from numgrad.codegen.cpython import offsets
from numgrad.core.op import OPS
from numgrad.tensors import learned_calls
from numgrad.torch.calls import FUNCTIONS
from tests.python_paths import machine_code, python_paths

pytestmark = pytest.mark.skipif(not offsets.is_readable(), reason=offsets.obstacle())


@pytest.fixture(autouse=True)
def installed():
    machine_code()
    learned_calls.forget_calls()


def values(*shape):
    return np.linspace(0.5, 2.0, int(np.prod(shape))).reshape(shape)


def leaf():
    return torch.tensor(values(4, 6), requires_grad=True)


def part_of_leaf():
    return torch.tensor(values(2, 4, 6), requires_grad=True)[1]


def written():
    x = leaf() * 1.0
    x.view(-1)[2:5] *= 2.0
    return x


def without_history():
    with torch.no_grad():
        return leaf()[0:4]


OPERANDS = {
    "leaf": leaf,
    "float32": lambda: leaf().float(),
    "result": lambda: leaf().exp(),
    "part": part_of_leaf,
    "written": written,
    "strided": lambda: leaf().t().t()[:, ::2],
    "transposed": lambda: torch.tensor(values(6, 4), requires_grad=True).t(),
    "without history": without_history,
    "integers": lambda: torch.arange(24).view(4, 6),
    "a user's": lambda: torch.from_numpy(values(4, 6)),
    "parameter": lambda: torch.nn.Parameter(torch.tensor(values(4, 6))),
    "empty": lambda: torch.zeros(0, 6, requires_grad=True),
    "one": lambda: torch.tensor(1.5, requires_grad=True),
}
CALLS = {
    "sum of an axis": lambda x: x.sum(0),
    "by name": lambda x: x.sum(dim=1, keepdim=True),
    "of several": lambda x: torch.mean(x, (0, 1)),
    "in another dtype": lambda x: x.sum(1, dtype=torch.float64),
    "product": lambda x: x.mm(x.t()),
    "matrix": lambda x: torch.matmul(x, torch.ones(6, 2, dtype=x.dtype)),
    "view": lambda x: x.view(-1),
    "sizes": lambda x: x.view(x.size(1), x.size(0)),
    "like": lambda x: torch.reshape(x, torch.ones(6, 4).shape),
    "transposed": lambda x: x.t(),
    "diagonal": lambda x: x.diagonal(1),
    "expanded": lambda x: x.expand(3, -1, -1),
    "inserted": lambda x: x.unsqueeze(-1),
    "limits": lambda x: x.clamp(0.7, 1.5),
    "limit": lambda x: torch.clamp(x, max=1.0),
    "softmax": lambda x: x.softmax(1),
    "spread": lambda x: x.std(0),
    "index": lambda x: x.argmax(1),
    "compared": lambda x: x.isclose(x * 1.0),
    "wrong axis": lambda x: x.sum(3),
    "wrong sizes": lambda x: x.view(5, -1),
    "wrong product": lambda x: x.mm(x),
    "powers": lambda x: x.pow(2) + x.pow(3.0),
    "quotient": lambda x: x.div(0, rounding_mode="floor"),
    "other dtype": lambda x: x.float().view(-1),
}


def facts(x):
    """What a user sees of a result, and gradients of its sum."""
    own = x._tensor
    seen = [x.dtype, tuple(x.shape), x.stride(), own._array.tolist(), x.requires_grad, x.is_leaf,
            x._version, x._is_view(), own._array.flags.writeable, own._slot]  # fmt: skip
    if x.grad_fn is not None:
        seen.append(x.grad_fn.name())
    return seen


def several(make, call, recording):
    """Facts of three calls, each on an operand of its own."""
    found = []
    for _ in range(3):
        with torch.set_grad_enabled(recording):
            x = make()
            try:
                y = call(x)
            except Exception as error:
                found.append([type(error), str(error)])
                continue
        seen = facts(y)
        if y.requires_grad:
            leaves = [] if not x.is_leaf else [x]
            (y * y).sum().backward()
            seen += [each.grad.tolist() for each in leaves]
        with torch.no_grad():  # a view shows what is written, and is counted
            try:
                y.mul_(2)
            except Exception as error:
                seen.append(str(error))
            seen += [y.tolist(), x.tolist(), x._version]
        found.append(seen)
    return found


@pytest.mark.parametrize("operand", OPERANDS)
def test_learned_calls_are_those_of_python(operand):
    for name, call in CALLS.items():
        for recording in (True, False):
            args = OPERANDS[operand], call, recording
            with python_paths():
                expected = several(*args)
            assert str(several(*args)) == str(expected), (name, recording)


LEARNED = {"sum": "sum of an axis", "mm": "product", "view": "view", "t": "transposed",
           "clamp": "limits", "softmax": "softmax", "argmax": "index"}  # fmt: skip
"""Functions by name, and a call that machine code does."""


@pytest.mark.parametrize("name", LEARNED)
def test_python_is_called_no_more(name, monkeypatch):
    x, y, call = leaf(), leaf(), CALLS[LEARNED[name]]
    expected = [call(x).tolist() for _ in range(3)][-1]

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(FUNCTIONS[name].row, "base", fail)
    assert call(y).tolist() == expected
    with pytest.raises(AssertionError):
        call(y.float())


def test_arguments_are_compared_by_value():
    x = torch.tensor(values(3, 3))
    for _ in range(3):
        assert x.sum(0).tolist() == values(3, 3).sum(0).tolist()
        assert x.sum(1).tolist() == values(3, 3).sum(1).tolist()
        assert x.view(tuple([9, 1])).shape == (9, 1)
        assert x.view(tuple([1, 9])).shape == (1, 9)
        zeros = [torch.clamp(torch.tensor([-1.0]), min=low).item() for low in (0.0, -0.0)]
        assert [np.signbit(zero) for zero in zeros] == [False, True]
        with pytest.raises(RuntimeError):
            x.view((9.0, 1))
        assert x.sum(0, True).shape == (1, 3)
        assert x.sum(0, False).shape == (3,)
        assert x.sum(0, keepdim=True).shape == (1, 3)


def test_facts_are_those_of_each_dtype_and_shape():
    for _ in range(4):
        for shape in ((3, 2), (5,), (), (0, 4)):
            for d in (torch.float32, torch.int64, torch.complex64):
                x = torch.zeros(shape, dtype=d)
                assert x.numel() == torch.numel(x) == np.prod(shape)
                assert x.is_floating_point() is (d is torch.float32)
                assert x.is_complex() is (d is torch.complex64)
                assert x.element_size() == (4 if d is torch.float32 else 8)
                assert x.is_same_size(torch.zeros(5)) is (shape == (5,))
        assert torch.is_nonzero(torch.tensor(2.0))
        assert not torch.is_nonzero(torch.tensor(0.0))


def test_what_calls_mean_may_change():
    """The default dtype, and an operation that is declared anew."""
    x = torch.arange(4)
    before = torch.get_default_dtype()
    try:
        for d in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(d)
            for _ in range(3):
                assert torch.special.xlog1py(x, x).dtype is d
    finally:
        torch.set_default_dtype(before)
    y = torch.tensor(values(4, 6), requires_grad=True)
    for _ in range(3):
        y.mean(1)
    formula = OPS["mean"].declared["x"]
    try:
        OPS["mean"].vjp(x=lambda g, n: 7.0 * g / n)
        y.mean(1).sum().backward()
    finally:
        OPS["mean"].declared["x"] = formula
        OPS["mean"]._redeclared()
    assert np.allclose(y.grad.numpy(), 7.0 / 6)


def test_random_numbers_and_subclasses_are_left_alone():
    class Noted(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function.__name__

    x = torch.zeros(2, 3)
    noted = Noted(torch.zeros(2, 3))
    for _ in range(3):
        assert torch.sum(noted, 0) == "sum"
        assert torch.sum(x, 0).tolist() == [0.0] * 3
    assert ng.is_grad_enabled()


LAYERS = {
    "relu": (), "elu": (0.5,), "softplus": (2.0,), "log_softmax": (1,), "softmax": (0,),
    "gelu": ("tanh",), "linear": (torch.tensor(values(3, 6)), torch.tensor(values(3))),
    "mse_loss": (torch.tensor(values(4, 6)),), "layer_norm": ((6,),),
    "nll_loss": (torch.tensor([1, 0, 5, 2]),), "cross_entropy": (torch.tensor([1, 0, 5, 2]),),
    "leaky_relu": (0.2,), "hardtanh": (-0.5, 0.5), "silu": (), "sigmoid": (),
}  # fmt: skip
"""Arguments of functions of layers, besides an operand of four rows of six."""


@pytest.mark.parametrize("name", LAYERS)
def test_functions_of_layers(name):
    function, args = getattr(torch.nn.functional, name), LAYERS[name]
    for scale in (1.0, -0.5, 0.7, -2.0):
        given = scale * values(4, 6)
        results = []
        for f in (function, function.__wrapped__):  # which is Python
            x = torch.tensor(given, requires_grad=True)
            y = f(x, *args)
            y.sum().backward()
            results.append((y.detach().numpy(), x.grad.numpy()))
        for learned, computed in zip(*results, strict=True):
            assert np.array_equal(learned, computed)
            assert learned.dtype == computed.dtype


def test_functions_that_write_or_warn_are_not_learned():
    functional = torch.nn.functional
    for write in (functional.elu_, lambda x: functional.elu(x, 1.0, True)):
        x = torch.tensor([-1.0, 2.0])
        expected = -1.0
        for _ in range(4):
            assert write(x) is x
            expected = np.expm1(expected)
            assert x.tolist() == pytest.approx([expected, 2.0])
    for _ in range(3):
        with pytest.warns(UserWarning, match="broadcast"):
            functional.mse_loss(torch.ones(2, 1), torch.ones(2, 2))
        with pytest.raises(TypeError):
            functional.silu(torch.ones(2), False, 0)


def test_layers_read_their_attributes_at_each_call():
    layer, linear = torch.nn.LogSoftmax(1), torch.nn.Linear(3, 2)
    x = torch.tensor(values(2, 3), dtype=torch.float32)
    for dim in (1, 1, 1, 0, 0, 1):
        layer.dim = dim
        assert np.allclose(layer(x).exp().sum(dim).numpy(), 1.0)
    for scale in (1.0, 2.0, 3.0, 4.0):
        linear.weight = torch.nn.Parameter(torch.full((2, 3), scale))
        linear.bias = None if scale == 3 else torch.nn.Parameter(torch.full((2,), scale))
        expected = x.numpy().sum(1, keepdims=True) * scale + scale * (scale != 3)
        assert np.allclose(linear(x).detach().numpy(), expected, atol=1e-5)
