"""What the gradient is where there is no derivative: SEMANTICS.md, section 10.

The rule: the derivative if it exists; else the subgradient of smallest norm where the operation is
locally convex or concave; else the limit, which may be infinite. Operations declare their points;
each is compared with PyTorch where that has the operation.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.op import OPS
from tests.operations.cases import TABLE

inf, nan = math.inf, math.nan


def population(function: str) -> Callable[..., Any]:
    return lambda torch, x: getattr(torch, function)(x, correction=0)


def vector_norm(order: float) -> Callable[..., Any]:
    return lambda torch, x: torch.linalg.vector_norm(x, order)


def functional(torch: Any) -> Any:
    return torch.nn.functional


# For each kink that an operation declares: PyTorch's function of the same meaning, by name or
# as a function of torch and the operands; None where there is none.
PEERS: dict[str, list[Any]] = {
    "absolute": ["abs", "abs"],
    "sign": ["sgn", "sgn"],
    "angle": ["angle", "angle"],
    "sqrt": ["sqrt"],
    "cbrt": [None],
    "log": ["log"],
    "log2": ["log2"],
    "log10": ["log10"],
    "log1p": ["log1p"],
    "arcsin": ["asin"],
    "arccos": ["acos"],
    "arccosh": ["acosh", "acosh"],
    "arctanh": ["atanh"],
    "tan": ["tan"],
    "reciprocal": ["reciprocal"],
    "floor": ["floor"],
    "ceil": ["ceil"],
    "trunc": ["trunc"],
    "rint": ["round"],
    "round": [lambda torch, x: torch.round(x, decimals=1)],
    "nan_to_num": ["nan_to_num"],
    "clip": [lambda torch, x: torch.clip(x, -1, 1)],
    "exp": ["exp"],
    "exp2": ["exp2"],
    "expm1": ["expm1"],
    "sigmoid": ["sigmoid"],
    "softplus": [lambda torch, x: torch.nn.functional.softplus(x)],
    "relu": ["relu"],
    "selu": ["selu"],
    "leaky_relu": [lambda torch, x, a: functional(torch).leaky_relu(x, a.item())],
    "prelu": [lambda torch, x, a: functional(torch).prelu(x[:1], a[:1])],
    "elu": [lambda torch, x, a: functional(torch).elu(x, a.item())],
    "celu": [lambda torch, x, a: functional(torch).celu(x, a.item())],
    "hardtanh": [lambda torch, x, a, b: functional(torch).hardtanh(x, a.item(), b.item())],
    "softplus_scaled": [lambda torch, x, a, b: functional(torch).softplus(x, a.item(), b.item())],
    "log_sigmoid": [lambda torch, x: functional(torch).logsigmoid(x)],
    "absolute_error": [lambda torch, x, t: functional(torch).l1_loss(x, t, reduction="sum")],
    "smooth_absolute_error": [
        lambda torch, x, t, b: functional(torch).smooth_l1_loss(
            x, t, reduction="sum", beta=b.item()
        ),
        lambda torch, x, t, b: functional(torch).smooth_l1_loss(x, t, reduction="sum", beta=0.0),
    ],
    "huber_error": [
        lambda torch, x, t, d: functional(torch).huber_loss(x, t, reduction="sum", delta=d.item())
    ],
    "bernoulli_error": [
        lambda torch, x, t: functional(torch).binary_cross_entropy(x, t, reduction="sum"),
        lambda torch, x, t: functional(torch).binary_cross_entropy(x, t, reduction="sum"),
    ],
    "bernoulli_logit_error": [
        lambda torch, x, t: functional(torch).binary_cross_entropy_with_logits(
            x, t, reduction="sum"
        )
    ],
    "divergence_error": [
        lambda torch, x, t: functional(torch).kl_div(x, t, reduction="sum"),
        lambda torch, x, t: functional(torch).kl_div(x, t, reduction="sum"),
    ],
    "stirling": [None],
    "gaussian_error": [
        lambda torch, x, t, v, e: functional(torch).gaussian_nll_loss(
            x, t, v, eps=e.item(), reduction="sum"
        )
    ],
    "cross_entropy": [
        lambda torch, x, t: functional(torch).cross_entropy(x, t),
        lambda torch, x, t: functional(torch).cross_entropy(x, t),
    ],
    "tanh": ["tanh"],
    "arctan": ["atan"],
    "arcsinh": ["asinh"],
    "logit": ["logit"],
    "erf": ["erf"],
    "erfc": ["erfc"],
    "erfinv": ["erfinv"],
    "gammaln": ["lgamma"],
    "gamma": [None],
    "digamma": ["digamma", "digamma"],
    "zeta": [None],
    "polygamma": [lambda torch, n, x: torch.polygamma(1, x)],
    "add": ["add"],
    "divide": ["div"],
    "heaviside": [None],
    "power": ["pow", None, "pow"],
    "float_power": ["float_power"],
    "maximum": ["maximum"],
    "minimum": ["minimum"],
    "fmax": ["fmax"],
    "fmin": ["fmin"],
    "clip_below": [lambda torch, x, low: torch.clamp(x, min=low)],
    "clip_above": [lambda torch, x, high: torch.clamp(x, max=high)],
    "hypot": ["hypot"],
    "arctan2": ["arctan2"],
    "copysign": ["copysign"],
    "fmod": ["fmod"],
    "remainder": ["remainder"],
    "floor_divide": [None],
    "logaddexp": ["logaddexp"],
    "logaddexp2": ["logaddexp2"],
    "replace_nonfinite": [None],
    "max": ["amax", "amax", lambda torch, x: torch.max(x)],
    "min": ["amin", lambda torch, x: torch.min(x)],
    "prod": ["prod", "prod", "prod"],
    "var": [population("var")],
    "std": [population("std"), population("std")],
    "logsumexp": [
        lambda torch, x: torch.logsumexp(x, 0),
        lambda torch, x: torch.logsumexp(x, 0),
        lambda torch, x: torch.logsumexp(x, 0),
    ],
    "max_pool": [lambda torch, x: torch.nn.functional.max_pool1d(x, 2)],
    "softmax": [lambda torch, x: torch.softmax(x, 0), lambda torch, x: torch.softmax(x, 0)],
    "log_softmax": [
        lambda torch, x: torch.log_softmax(x, 0),
        lambda torch, x: torch.log_softmax(x, 0),
    ],
    "norm2": [vector_norm(2), vector_norm(2)],
    "norm": [
        vector_norm(2),
        vector_norm(1),
        vector_norm(3),
        vector_norm(2.5),
        vector_norm(1.5),
        vector_norm(0.5),
        vector_norm(inf),
        vector_norm(-inf),
        vector_norm(-1),
        vector_norm(-2),
        vector_norm(3),
        vector_norm(1),
        vector_norm(0.5),
        vector_norm(-1),
        vector_norm(inf),
        lambda torch, x: torch.linalg.matrix_norm(x, 1),
        lambda torch, x: torch.linalg.matrix_norm(x, -inf),
    ],
    "vector_norm": [vector_norm(2)],
    "matrix_norm": [vector_norm(2)],
    "cumprod": [lambda torch, x: x.cumprod(0), lambda torch, x: x.cumprod(0)],
    "cumulative_prod": [lambda torch, x: x.cumprod(0)],
    "rnn_sequence": [lambda torch, a, h, w: torch.relu(a + h @ w.T)],
}

# Why PyTorch's gradient is another one, by operation and number of the kink.
DIFFERS = {
    ("arccosh", 1): "PyTorch gives numbers where the function is not defined",
    ("bernoulli_error", 1): "PyTorch's gradient does not limit the logarithms, as its loss does",
    ("divergence_error", 1): "PyTorch gives NaN, without the limit",
    ("digamma", 1): "PyTorch gives a large number at the poles",
}


class Row(NamedTuple):
    """A declared kink: operands of one call, and the gradients of the sum of its result."""

    name: str
    operands: tuple[Any, ...]
    gradients: tuple[Any, ...]
    params: dict[str, Any]
    peer: Any
    differs: str | None

    def __str__(self) -> str:
        params = "".join(f"-{key}={value}" for key, value in self.params.items())
        return f"{self.name}-{'-'.join(map(str, self.operands))}{params}"


def rows() -> Iterator[Row]:
    for op in OPS.values():
        peers = PEERS.get(op.name, [])
        for number, (points, params) in enumerate(op.kinks):
            operands, found = zip(*points.values(), strict=True)
            peer = peers[number] if number < len(peers) else None
            differs = DIFFERS.get((op.name, number))
            yield Row(op.name, operands, found, params, peer, differs)


ROWS = list(rows())


def gradients(row: Row, *, order: int = 1) -> list[Any]:
    """Gradients of the operands; of the second order for the sum of those of the first."""
    given = [
        ng.tensor(a, requires_grad=True) if g is not None else a
        for a, g in zip(row.operands, row.gradients, strict=True)
    ]
    inputs = [x for x in given if isinstance(x, ng.Tensor)]
    found = ng.autograd.grad(
        _total(OPS[row.name](*given, **row.params)), inputs, create_graph=order == 2
    )
    if order == 1:
        return [g.numpy() for g in found]
    total = sum(_total(g) for g in found)
    if not total.requires_grad:
        return []
    return list(ng.autograd.grad(total, inputs, allow_unused=True))


def _total(y: Any) -> Any:
    return np.sum(np.real(y)) if y.dtype.kind == "c" else np.sum(y)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_gradient(row):
    expected = [g for g in row.gradients if g is not None]
    for actual, g in zip(gradients(row), expected, strict=True):
        np.testing.assert_allclose(actual, g, rtol=1e-14, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_second_derivative_does_not_raise(row):
    with np.errstate(invalid="ignore"):  # infinities of opposite sign that meet are no error here
        found = gradients(row, order=2)
    assert all(g is None or g.dtype.kind in "fc" for g in found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", [row for row in ROWS if row.peer is not None], ids=str)
def test_expected_gradient_is_that_of_torch(row):
    torch = pytest.importorskip("torch")
    function = getattr(torch, row.peer) if isinstance(row.peer, str) else None
    given = [torch.tensor(np.asarray(a)) for a in row.operands]
    inputs = [
        x.requires_grad_() for x, g in zip(given, row.gradients, strict=True) if g is not None
    ]
    if function is None:
        y = row.peer(torch, *given)
    elif "axis" in row.params:
        y = function(*given, row.params["axis"])
    else:
        y = function(*given)
    found = torch.autograd.grad(y.real.sum() if y.is_complex() else y.sum(), inputs)
    expected = [g for g in row.gradients if g is not None]
    # on some CPUs PyTorch's smallest variance of a Bernoulli loss is one of float32
    same = [
        np.allclose(actual.resolve_conj().numpy(force=True), g, rtol=1e-6, atol=0, equal_nan=True)
        for actual, g in zip(found, expected, strict=True)
    ]
    assert all(same) is not bool(row.differs)


def test_every_operation_says_where_it_has_no_derivative():
    for op in [o for o in TABLE if not o.name.startswith("emath_")]:  # as the functions they call
        assert op.smooth or op.kinks, f"{op.name}: declare kinks, or that it is smooth"
    assert all(len(OPS[name].kinks) == len(peers) for name, peers in PEERS.items())


def test_masked_branch_leaks():
    """A branch that ``where`` does not take gets the gradient zero, which times infinity is NaN."""
    x = ng.tensor([0.0, 2.0], requires_grad=True)
    np.where(x > 0, np.log(x), 0.0).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [nan, 0.5])


def test_count_of_nonzero_elements_has_a_gradient_of_zero():
    """The "norm" of order 0 counts, as PyTorch's: a constant wherever it has a derivative."""
    x = ng.tensor([0.0, 2.0, nan], requires_grad=True)
    count = np.linalg.norm(x, 0)
    assert count.item() == 2.0
    count.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 0.0, 0.0])


@pytest.mark.parametrize("base", [0.5, 2.0, -2.0])
def test_mixed_derivative_of_a_power_at_exponent_zero(base):
    """``d2/da db a**b`` is ``1 / a`` at ``b = 0``, where ``b`` is a factor of the gradient."""
    a, b = ng.tensor(base, requires_grad=True), ng.tensor(0.0, requires_grad=True)
    (first,) = ng.autograd.grad(np.power(a, b), [a], create_graph=True)
    (mixed,) = ng.autograd.grad(first, [b])
    assert first.item() == 0.0
    assert mixed.item() == 1 / base or (base < 0 and math.isnan(mixed.item()))


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_angle_of_a_point_near_the_ends_of_the_range(scale):
    """The gradient of ``arctan2`` is ``(b, -a) / (a*a + b*b)``, whose squares leave the range."""
    a, b = ng.tensor(3 * scale, requires_grad=True), ng.tensor(4 * scale, requires_grad=True)
    np.arctan2(a, b).backward()
    expected = np.array([4 / 25, -3 / 25]) / scale
    np.testing.assert_allclose([a.grad.item(), b.grad.item()], expected, rtol=1e-14)
