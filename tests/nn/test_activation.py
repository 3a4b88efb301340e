"""Activations against their formulas in NumPy and SciPy, and against PyTorch."""

import numpy as np
import pytest
from scipy import special

import numgrad as ng
from numgrad.nn import functional as F

nn = ng.nn
X = np.array([[-30.0, -6.0, -1.5, -0.5, 0.25], [0.75, 1.0, 3.0, 6.5, 25.0]])
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x))


CASES = [
    ("ReLU", {}, lambda x: np.maximum(x, 0)),
    ("ReLU6", {}, lambda x: np.clip(x, 0, 6)),
    ("LeakyReLU", {}, lambda x: np.where(x > 0, x, 0.01 * x)),
    ("LeakyReLU", {"negative_slope": -0.5}, lambda x: np.where(x > 0, x, -0.5 * x)),
    ("ELU", {"alpha": 1.5}, lambda x: elu(x, 1.5)),
    ("SELU", {}, lambda x: SELU_SCALE * elu(x, SELU_ALPHA)),
    ("CELU", {"alpha": 0.5}, lambda x: np.where(x > 0, x, 0.5 * np.expm1(x / 0.5))),
    ("GELU", {}, lambda x: x * special.ndtr(x)),
    ("GELU", {"approximate": "tanh"}, gelu_tanh),
    ("SiLU", {}, lambda x: x * special.expit(x)),
    ("Mish", {}, lambda x: x * np.tanh(np.logaddexp(0, x))),
    ("Sigmoid", {}, special.expit),
    ("LogSigmoid", {}, special.log_expit),
    ("Tanh", {}, np.tanh),
    ("Softplus", {}, lambda x: np.logaddexp(0, x)),
    ("Softplus", {"beta": 2.0, "threshold": 3.0},
     lambda x: np.where(2 * x > 3, x, np.logaddexp(0, 2 * x) / 2)),
    ("Softsign", {}, lambda x: x / (1 + np.abs(x))),
    ("Hardtanh", {"min_val": -2.0, "max_val": 0.5}, lambda x: np.clip(x, -2, 0.5)),
]  # fmt: skip
WRITING = ("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "SiLU", "Mish", "Hardtanh")


def all_cases(function):
    names = [name + "".join(f"-{k}={v}" for k, v in options.items()) for name, options, _ in CASES]
    return pytest.mark.parametrize(("name", "options", "formula"), CASES, ids=names)(function)


@all_cases
def test_formula(name, options, formula):
    layer = getattr(nn, name)(**options)
    y = layer(ng.tensor(X))
    # what cancels in the formula is what its last digits are about
    np.testing.assert_allclose(y.numpy(), formula(X), rtol=1e-12, atol=1e-15)
    assert layer(X).numpy().tolist() == y.tolist()  # an ndarray
    assert layer(ng.tensor(np.zeros((0, 3)))).shape == (0, 3)
    assert layer.eval()(ng.tensor(X)).tolist() == y.tolist()


@all_cases
def test_gradient_is_the_difference_quotient(name, options, formula):
    layer = getattr(nn, name)(**options)
    x = ng.tensor(X, requires_grad=True)
    layer(x).sum().backward()
    h = 1e-6
    slope = (formula(X + h) - formula(X - h)) / (2 * h)
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@all_cases
def test_torch(name, options, formula):
    torch = pytest.importorskip("torch")
    layer, peer = getattr(nn, name)(**options), getattr(torch.nn, name)(**options)
    assert repr(layer) == repr(peer)
    found = []
    for lib, module in ((ng, layer), (torch, peer)):
        x = lib.tensor(X, requires_grad=True)
        y = module(x)
        (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        values = [y, g]
        if g.requires_grad:
            (second,) = lib.autograd.grad(g.sum(), x, allow_unused=True)
            values.append(second)
        found.append([None if v is None else np.asarray(v.detach()) for v in values])
    for ours, theirs in zip(*found, strict=False):
        theirs = np.zeros(X.shape) if theirs is None else theirs
        ours = np.zeros(X.shape) if ours is None else ours
        # PyTorch's softplus is cut off at 20, its gelu loses the tail
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=3e-9)


@pytest.mark.parametrize("name", WRITING)
def test_inplace_writes_to_the_input_and_has_the_same_gradient(name):
    plain, writing = getattr(nn, name)(), getattr(nn, name)(inplace=True)
    assert "inplace=True" in repr(writing)
    assert "inplace" not in repr(plain)
    found = []
    for layer in (plain, writing):
        x = ng.tensor(X, requires_grad=True)
        between = x * 1.0
        y = layer(between)
        assert (y is between) is (layer is writing)
        y.backward(np.arange(10.0).reshape(2, 5))
        found.append((y.tolist(), x.grad.tolist()))
    assert found[0] == found[1]


def test_inplace_on_a_leaf_is_refused():
    with pytest.raises(RuntimeError, match="relu_"):
        F.relu(ng.tensor(X, requires_grad=True), inplace=True)


def test_relu_saves_its_result_only():
    x = ng.tensor(X, requires_grad=True) * 1.0
    y = nn.ReLU()(x)
    np.testing.assert_array_equal(y.grad_fn._saved_result.numpy(force=True), y.numpy(force=True))
    x.mul_(2.0)
    y.sum().backward()


def test_relu_of_special_values():
    x = ng.tensor([np.nan, -np.inf, np.inf, 0.0], requires_grad=True)
    y = F.relu(x)
    np.testing.assert_array_equal(y.numpy(force=True), [np.nan, 0, np.inf, 0])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 0, 1, 0])
    assert F.relu(ng.tensor([-1, 2])).dtype == np.int64
    with pytest.raises(TypeError, match=r"relu.*complex"):
        F.relu(ng.tensor([1j]))


def test_float32_stays_float32():
    x = ng.tensor(X.astype(np.float32), requires_grad=True)
    y = F.leaky_relu(F.hardtanh(x, -10, 10), 0.5)
    y.sum().backward()
    assert y.dtype == x.grad.dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize(("count", "shape"), [(1, (2, 3)), (3, (2, 3)), (3, (2, 3, 4)), (1, ())])
def test_prelu(count, shape):
    rng = np.random.default_rng(0)
    values, slopes = rng.standard_normal(shape), rng.uniform(0.1, 0.9, count)
    layer = nn.PReLU(count)
    assert layer.weight.tolist() == [0.25] * count
    layer.weight.detach().copy_(slopes)
    x = ng.tensor(values, requires_grad=True)
    y = layer(x)
    g = rng.standard_normal(shape)
    y.backward(g)
    spread = slopes if len(shape) < 2 else slopes.reshape(-1, *(1,) * (len(shape) - 2))
    spread = np.broadcast_to(spread.reshape(()) if count == 1 else spread, shape)
    negative = values < 0
    np.testing.assert_allclose(y.numpy(force=True), np.where(negative, spread * values, values))
    np.testing.assert_allclose(x.grad.numpy(), np.where(negative, spread * g, g))
    lost = np.where(negative, g * values, 0.0)
    expected = [lost.sum()] if count == 1 else lost.sum(axis=(0, *range(2, len(shape))))
    np.testing.assert_allclose(layer.weight.grad.numpy(), expected, rtol=1e-12)
    torch = pytest.importorskip("torch")
    w = torch.tensor(slopes, requires_grad=True)
    torch.nn.functional.prelu(torch.tensor(values), w).backward(torch.tensor(g))
    np.testing.assert_allclose(layer.weight.grad.numpy(), w.grad.numpy(), rtol=1e-12)


def test_prelu_module():
    layer = nn.PReLU(3, init=0.5, dtype=np.float32)
    assert repr(layer) == "PReLU(num_parameters=3)"
    assert list(layer.state_dict()) == ["weight"]
    assert layer.weight.dtype == np.float32
    with pytest.raises(ValueError, match=r"\(3,\).*\(2, 4\).*4 channels"):
        layer(ng.zeros((2, 4)))
    with pytest.raises(ValueError, match="vector"):
        F.prelu(ng.zeros((2, 4)), ng.zeros((1, 2)))


def test_bad_options():
    with pytest.raises(ValueError, match="min_val 2 is above max_val 1"):
        F.hardtanh(X, 2, 1)
    with pytest.raises(ValueError, match="Hardtanh"):
        nn.Hardtanh(1.0, 1.0)
    with pytest.raises(ValueError, match="alpha"):
        F.celu(X, 0.0)
    with pytest.raises(ValueError, match="'exact'"):
        F.gelu(X, "exact")


def test_a_learned_alpha_gets_its_gradient():
    alpha = ng.tensor(0.7, requires_grad=True)
    ng.testing.gradcheck(lambda a: F.elu(X, a) + F.celu(X, a), [alpha])


@pytest.mark.parametrize(
    ("function", "slope"),
    [(F.silu, 0.5), (F.mish, 0.64), (lambda x: F.gelu(x, "tanh"), np.sqrt(2 / np.pi))],
)
def test_second_derivatives_at_zero_where_formulas_of_both_halves_meet(function, slope):
    assert ng.hessian(function)(0.0) == pytest.approx(slope, rel=1e-14)


@pytest.mark.parametrize("beta", [0.5, 1, 2, 3])
@pytest.mark.parametrize("threshold", [20, 19, 5])
def test_softplus_of_any_steepness(beta, threshold):
    x = np.array([-4.0, -0.3, 0.0, 0.7, 2.2, 6.0, 11.0])
    expected = np.where(beta * x > threshold, x, np.log1p(np.exp(beta * x)) / beta)
    found = ng.nn.functional.softplus(ng.tensor(x), beta, threshold)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)
