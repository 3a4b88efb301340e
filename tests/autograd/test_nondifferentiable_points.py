"""What the gradient is where there is no derivative: SEMANTICS.md, section 10.

The rule: the derivative if it exists; else the subgradient of smallest norm where the operation is
locally convex or concave; else the limit, which may be infinite. Every row is compared with PyTorch
where that has the operation, so the table does not rest on the code it tests.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.op import Composite
from numgrad.op.base import OPS

pytestmark = pytest.mark.slow

inf, nan, pi = math.inf, math.nan, math.pi


@dataclass
class Row:
    """Operands of one call and the gradient of the sum of its result for each of them."""

    name: str
    operands: tuple[Any, ...]
    gradients: tuple[Any, ...]
    peer: Any = None  # name in torch, or function of torch and the operands
    params: dict[str, Any] = field(default_factory=dict)
    differs: str = ""  # why PyTorch's gradient is another one

    def __str__(self) -> str:
        params = "".join(f"-{key}={value}" for key, value in self.params.items())
        return f"{self.name}-{'-'.join(map(str, self.operands))}{params}"


def unary(name: str, peer: Any, points: list, gradients: list, **options: Any) -> Row:
    return Row(name, (points,), (gradients,), peer, **options)


def binary(name: str, peer: Any, *cases: tuple, **options: Any) -> Row:
    """Cases are pairs: both operands, both gradients."""
    operands = tuple([list(column) for column in zip(*[c[0] for c in cases], strict=True)])
    gradients = tuple([list(column) for column in zip(*[c[1] for c in cases], strict=True)])
    return Row(name, operands, gradients, peer, **options)


def population(function: str) -> Callable[..., Any]:
    return lambda torch, x: getattr(torch, function)(x, correction=0)


def vector_norm(order: float) -> Callable[..., Any]:
    return lambda torch, x: torch.linalg.vector_norm(x, order)


def functional(torch: Any) -> Any:
    return torch.nn.functional


OF_CLASSES = {"ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0}

ELEMENTWISE = [
    unary("absolute", "abs", [0.0, -0.0, inf, -inf], [0, 0, 1, -1]),
    unary("absolute", "abs", [0j, 3 + 4j], [0, 0.6 + 0.8j]),
    unary("sign", "sgn", [0.0, -0.0, 2.0, -inf], [0, 0, 0, 0]),
    unary("sign", "sgn", [0j], [0]),
    unary("angle", "angle", [0.0, -1.0, 1.0], [0, 0, 0]),
    unary("angle", "angle", [0j, 2j], [0, -0.5]),
    unary("sqrt", "sqrt", [0.0, -1.0], [inf, nan]),
    unary("cbrt", None, [0.0, -0.0, -8.0], [inf, inf, 1 / 12]),
    unary("log", "log", [0.0, inf], [inf, 0]),
    unary("log2", "log2", [0.0, inf], [inf, 0]),
    unary("log10", "log10", [0.0, inf], [inf, 0]),
    unary("log1p", "log1p", [-1.0, inf], [inf, 0]),
    unary("arcsin", "asin", [1.0, -1.0, 2.0], [inf, inf, nan]),
    unary("arccos", "acos", [1.0, -1.0, 2.0], [-inf, -inf, nan]),
    unary("arccosh", "acosh", [1.0], [inf]),
    unary("arccosh", "acosh", [0.5, -2.0], [nan, nan],
          differs="PyTorch gives numbers where the function is not defined"),
    unary("arctanh", "atanh", [1.0, -1.0], [inf, inf]),
    unary("tan", "tan", [pi / 2, -pi / 2], [1 + math.tan(pi / 2) ** 2] * 2),
    unary("reciprocal", "reciprocal", [0.0, -0.0, inf], [-inf, -inf, 0]),
    unary("floor", "floor", [1.0, -0.5], [0, 0]),
    binary("heaviside", None, ((0.0, 3.0), (0, 1)), ((-0.0, 3.0), (0, 1)), ((2.0, 3.0), (0, 0)),
           ((-inf, 3.0), (0, 0))),
    unary("ceil", "ceil", [1.0, -0.5], [0, 0]),
    unary("trunc", "trunc", [1.0, -0.5], [0, 0]),
    unary("rint", "round", [0.5, 2.5, 1.0], [0, 0, 0]),
    unary("round", lambda torch, x: torch.round(x, decimals=1), [0.25, 1.0], [0, 0],
          params={"decimals": 1}),
    unary("nan_to_num", "nan_to_num", [nan, inf, -inf, 1.0], [0, 0, 0, 1]),
    unary("clip", lambda torch, x: torch.clip(x, -1, 1), [-1.0, 1.0, 0.0, 2.0, -2.0],
          [1, 1, 1, 0, 0], params={"min": -1.0, "max": 1.0}),
    unary("exp", "exp", [-inf, 800.0, -800.0], [0, inf, 0]),
    unary("exp2", "exp2", [-inf, 1100.0, -1100.0], [0, inf, 0]),
    unary("expm1", "expm1", [-inf, 800.0, -800.0], [0, inf, 0]),
    unary("sigmoid", "sigmoid", [800.0, -800.0, inf, -inf], [0, 0, 0, 0]),
    unary("softplus", lambda torch, x: torch.nn.functional.softplus(x),
          [800.0, -800.0, inf, -inf], [1, 0, 1, 0]),
    unary("relu", "relu", [0.0, -0.0, inf, -inf, nan], [0, 0, 1, 0, 1]),
    unary("selu", "selu", [0.0, -inf], [1.0507009873554805 * 1.6732632423543772, 0]),
    Row("leaky_relu", ([0.0, -0.0, 2.0], 0.01), ([0.01, 0.01, 1], None),
        lambda torch, x, a: functional(torch).leaky_relu(x, a.item())),
    binary("prelu", lambda torch, x, a: functional(torch).prelu(x[:1], a[:1]),
           ((0.0, 0.25), (0.25, 0))),
    Row("elu", ([0.0, -0.0, -inf], 1.0), ([1, 1, 0], None),
        lambda torch, x, a: functional(torch).elu(x, a.item())),
    Row("celu", ([0.0, -inf], 2.0), ([1, 0], None),
        lambda torch, x, a: functional(torch).celu(x, a.item())),
    Row("hardtanh", ([0.0, 6.0, 3.0, -1.0], 0.0, 6.0), ([0, 0, 1, 0], None, None),
        lambda torch, x, a, b: functional(torch).hardtanh(x, a.item(), b.item())),
    Row("softplus_scaled", ([10.0, 11.0, -inf], 2.0, 20.0), ([1 / (1 + math.exp(-20)), 1, 0],
        None, None), lambda torch, x, a, b: functional(torch).softplus(x, a.item(), b.item())),
    unary("log_sigmoid", lambda torch, x: functional(torch).logsigmoid(x),
          [800.0, -800.0, inf, -inf], [0, 1, 0, 1]),
    binary("absolute_error", lambda torch, x, t: functional(torch).l1_loss(x, t, reduction="sum"),
           ((2.0, 2.0), (0, 0)), ((3.0, 2.0), (1, -1))),
    Row("smooth_absolute_error", ([1.0, 0.0, -1.0], [0.0, 0.0, 0.0], 1.0),
        ([1, 0, -1], [-1, 0, 1], None), lambda torch, x, t, b: functional(torch).smooth_l1_loss(
            x, t, reduction="sum", beta=b.item())),
    Row("smooth_absolute_error", ([1.0, 0.0], [0.0, 0.0], 0.0), ([1, 0], [-1, 0], None),
        lambda torch, x, t, b: functional(torch).smooth_l1_loss(x, t, reduction="sum", beta=0.0)),
    Row("huber_error", ([2.0, 0.0, -5.0], [0.0, 0.0, 0.0], 2.0), ([2, 0, -2], [-2, 0, 2], None),
        lambda torch, x, t, d: functional(torch).huber_loss(
            x, t, reduction="sum", delta=d.item())),
    Row("bernoulli_error", ([0.0, 1.0, 0.5], [1.0, 0.0, 0.5]), ([-1e12, 1e12, 0], None),
        lambda torch, x, t: functional(torch).binary_cross_entropy(x, t, reduction="sum")),
    Row("bernoulli_error", ([0.0, 1.0], [1.0, 0.0]), (None, [100, -100]),
        lambda torch, x, t: functional(torch).binary_cross_entropy(x, t, reduction="sum"),
        differs="PyTorch's gradient does not limit the logarithms, as its loss does"),
    binary("bernoulli_logit_error",
           lambda torch, x, t: functional(torch).binary_cross_entropy_with_logits(
               x, t, reduction="sum"),
           ((800.0, 1.0), (0, -800)), ((-800.0, 1.0), (-1, 800)), ((-800.0, 0.0), (0, 800))),
    Row("divergence_error", ([-1.0, -2.0], [0.0, 0.0]), ([0, 0], None),
        lambda torch, x, t: functional(torch).kl_div(x, t, reduction="sum")),
    Row("divergence_error", ([-1.0], [0.0]), (None, [-inf]),
        lambda torch, x, t: functional(torch).kl_div(x, t, reduction="sum"),
        differs="PyTorch gives NaN, without the limit"),
    unary("stirling", None, [1.0, 0.0, 2.0], [0, 0, math.log(2) + 0.25]),
    Row("gaussian_error", ([1.0], [0.0], [0.0], 0.5), ([2], [-2], [-1], None),
        lambda torch, x, t, v, e: functional(torch).gaussian_nll_loss(
            x, t, v, eps=e.item(), reduction="sum")),
    Row("cross_entropy", ([[800.0, -800.0, -inf]], [1]), ([[1, -1, 0]], None),
        lambda torch, x, t: functional(torch).cross_entropy(x, t), params=OF_CLASSES),
    Row("cross_entropy", ([[inf, 0.0]], [1]), ([[nan, nan]], None),
        lambda torch, x, t: functional(torch).cross_entropy(x, t), params=OF_CLASSES),
    unary("tanh", "tanh", [800.0, -800.0, inf, -inf], [0, 0, 0, 0]),
    unary("arctan", "atan", [inf, -inf, 1e200], [0, 0, 0]),
    unary("arcsinh", "asinh", [inf, -inf], [0, 0]),
    unary("logit", "logit", [0.0, 1.0], [inf, inf]),
    unary("erf", "erf", [inf, -inf, 1e200], [0, 0, 0]),
    unary("erfc", "erfc", [inf, -inf, 1e200], [0, 0, 0]),
    unary("erfinv", "erfinv", [1.0, -1.0], [inf, inf]),
    unary("gammaln", "lgamma", [0.0, -1.0, -2.0], [-inf, nan, nan]),
    unary("gamma", None, [-1.0, -2.0], [nan, nan]),
    unary("digamma", "digamma", [0.0], [inf]),
    unary("digamma", "digamma", [-1.0, -2.0], [inf, inf],
          differs="PyTorch gives a large number at the poles"),
    Row("zeta", (2.0, [0.0]), (None, [-inf])),
    Row("polygamma", (1, [0.0]), (None, [-inf]), lambda torch, n, x: torch.polygamma(1, x)),
    binary("add", "add", ((inf, -inf), (1, 1))),
    binary("divide", "div", ((1.0, 0.0), (inf, -inf)), ((0.0, 0.0), (inf, nan))),
    binary("power", "pow", ((5e-324, 0.0), (0, -744.4400719213812)), ((-5e-324, 1.0), (1, nan)),
           ((5e-324, 2.0), (1e-323, 0)), ((5e-324, -1.0), (-inf, -inf)), ((inf, 0.0), (0, inf))),
    binary("power", None, ((inf, -1.0), (0, 0)), ((inf, -0.5), (0, 0)),
           differs="PyTorch's product of 0 and infinity is NaN"),
    binary("power", "pow", ((0.0, 0.0), (0, 0)), ((-2.0, 2.0), (-4, nan)), ((0.0, 2.0), (0, 0)),
           ((0.0, 1.0), (1, 0)), ((0.0, 0.5), (inf, 0)), ((0.0, -1.0), (-inf, -inf)),
           ((-2.0, 0.0), (0, nan)), ((inf, 0.0), (0, inf)), ((nan, 0.0), (0, nan))),
    binary("float_power", "float_power", ((0.0, 0.0), (0, 0)), ((-2.0, 2.0), (-4, nan)),
           ((0.0, -1.0), (-inf, -inf))),
    binary("maximum", "maximum", ((1.0, 1.0), (0.5, 0.5)), ((0.0, -0.0), (0.5, 0.5)),
           ((inf, inf), (0.5, 0.5)), ((nan, 1.0), (1, 1))),
    binary("minimum", "minimum", ((1.0, 1.0), (0.5, 0.5)), ((0.0, -0.0), (0.5, 0.5)),
           ((inf, inf), (0.5, 0.5)), ((nan, 1.0), (1, 1))),
    binary("fmax", "fmax", ((1.0, 1.0), (1, 0)), ((nan, 1.0), (0, 1)), ((1.0, nan), (1, 0))),
    binary("fmin", "fmin", ((1.0, 1.0), (1, 0)), ((nan, 1.0), (0, 1)), ((1.0, nan), (1, 0))),
    binary("clip_below", lambda torch, x, low: torch.clamp(x, min=low), ((1.0, 1.0), (1, 0))),
    binary("clip_above", lambda torch, x, high: torch.clamp(x, max=high), ((1.0, 1.0), (1, 0))),
    binary("hypot", "hypot", ((0.0, 0.0), (nan, nan)), ((0.0, 2.0), (0, 1))),
    binary("arctan2", "arctan2", ((0.0, 0.0), (0, 0)), ((0.0, -1.0), (-1, 0))),
    binary("copysign", "copysign", ((0.0, -1.0), (0, 0)), ((-0.0, 1.0), (0, 0)),
           ((2.0, 0.0), (1, 0)), ((2.0, -0.0), (-1, 0))),
    binary("fmod", "fmod", ((5.0, 3.0), (1, -1)), ((6.0, 3.0), (1, -2)), ((-5.0, 3.0), (1, 1))),
    binary("remainder", "remainder", ((-5.0, 3.0), (1, 2)), ((6.0, 3.0), (1, -2)),
           ((5.0, -3.0), (1, 2))),
    binary("floor_divide", None, ((5.0, 3.0), (0, 0)), ((6.0, 3.0), (0, 0))),
    binary("logaddexp", "logaddexp", ((-inf, -inf), (nan, nan)), ((inf, 0.0), (1, 0)),
           ((0.0, -inf), (1, 0)), ((-800.0, 800.0), (0, 1)), ((inf, inf), (nan, nan))),
    binary("logaddexp2", "logaddexp2", ((-inf, -inf), (nan, nan)), ((inf, 0.0), (1, 0)),
           ((0.0, -inf), (1, 0)), ((-2000.0, 2000.0), (0, 1))),
    Row("replace_nonfinite", ([nan, inf, -inf, 1.0], 0.0, 9.0, -9.0),
        ([0, 0, 0, 1], None, None, None)),
]  # fmt: skip

ALONG_AXES = [
    unary("max", "amax", [2.0, 2.0, 1.0, 2.0], [1 / 3, 1 / 3, 0, 1 / 3]),
    unary("max", "amax", [[1.0, 1.0], [3.0, 4.0]], [[0.5, 0.5], [0, 1]], params={"axis": 1}),
    unary("max", lambda torch, x: torch.max(x), [nan, 1.0], [1, 0]),
    unary("min", "amin", [1.0, 2.0, 1.0], [0.5, 0, 0.5]),
    unary("min", lambda torch, x: torch.min(x), [nan, 1.0], [1, 0]),
    unary("prod", "prod", [2.0, 0.0, 3.0], [0, 6, 0]),
    unary("prod", "prod", [0.0, 0.0, 3.0], [0, 0, 0]),
    unary("prod", "prod", [[0.0, 2.0], [3.0, 4.0]], [[2, 0], [4, 3]], params={"axis": 1}),
    unary("var", population("var"), [1.0, 1.0, 1.0], [0, 0, 0]),
    unary("std", population("std"), [1.0, 1.0, 1.0], [0, 0, 0]),
    unary("std", population("std"), [0.0, 0.0], [0, 0]),
    unary("logsumexp", lambda torch, x: torch.logsumexp(x, 0), [-inf, 0.0], [0, 1]),
    unary("logsumexp", lambda torch, x: torch.logsumexp(x, 0), [-inf, -inf], [nan, nan]),
    unary("logsumexp", lambda torch, x: torch.logsumexp(x, 0), [800.0, -800.0], [1, 0]),
    unary("max_pool", lambda torch, x: torch.nn.functional.max_pool1d(x, 2),
          [[1.0, 1.0, nan, 3.0, 2.0, nan]], [[1, 0, 1, 0, 0, 1]],
          params={"kernel": (2,), "stride": (2,), "padding": (0,), "dilation": (1,),
                  "ceil_mode": False}),
    unary("softmax", lambda torch, x: torch.softmax(x, 0), [-inf, 0.0], [0, 0]),
    unary("softmax", lambda torch, x: torch.softmax(x, 0), [-inf, -inf], [nan, nan]),
    unary("log_softmax", lambda torch, x: torch.log_softmax(x, 0), [800.0, -800.0], [-1, 1]),
    unary("log_softmax", lambda torch, x: torch.log_softmax(x, 0), [-inf, -inf], [nan, nan]),
    unary("norm2", vector_norm(2), [0.0, 0.0, -0.0], [0, 0, 0]),
    unary("norm2", vector_norm(2), [0j, 0j], [0, 0]),
    *[unary("norm", vector_norm(order), [0.0, 0.0], [0, 0], params={"ord": order})
      for order in (2, 1, 3, 2.5, 1.5, 0.5, inf, -inf, -1, -2)],
    unary("norm", vector_norm(3), [0j, 0j], [0, 0], params={"ord": 3}),
    unary("norm", lambda torch, x: torch.linalg.matrix_norm(x, 1), [[0.0, 2.0], [3.0, -1.0]],
          [[0, 0.5], [0.5, -0.5]], params={"ord": 1}),
    unary("norm", lambda torch, x: torch.linalg.matrix_norm(x, -inf), [[0.0, 2.0], [3.0, -1.0]],
          [[0, 1], [0, 0]], params={"ord": -inf}),
    unary("matrix_norm", vector_norm(2), [[0.0, 0.0], [0.0, 0.0]], [[0, 0], [0, 0]]),
    unary("vector_norm", vector_norm(2), [[0.0, 3.0], [0.0, 4.0]], [[0, 0.6], [0, 0.8]]),
    unary("norm", vector_norm(1), [0.0, -2.0], [0, -1], params={"ord": 1}),
    unary("norm", vector_norm(0.5), [0.0, 4.0], [0, 1], params={"ord": 0.5}),
    unary("norm", vector_norm(-1), [0.0, 4.0], [0, 0], params={"ord": -1}),
    unary("norm", vector_norm(inf), [2.0, -2.0, 1.0], [0.5, -0.5, 0], params={"ord": inf}),
    unary("cumprod", lambda torch, x: x.cumprod(0), [2.0, 0.0, 3.0], [1, 8, 0]),
    unary("cumprod", lambda torch, x: x.cumprod(0), [0.0, 0.0, 3.0], [1, 0, 0]),
    unary("cumulative_prod", lambda torch, x: x.cumprod(0), [2.0, 0.0, 3.0], [1, 8, 0]),
    Row("rnn_sequence", ([[[0.0, 2.0]]], [[0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]),
        ([[[0, 1]]], [[0, 1]], [[0, 0], [0, 0]]),
        lambda torch, a, h, w: torch.relu(a + h @ w.T), {"nonlinearity": "relu"}),
]  # fmt: skip

ROWS = ELEMENTWISE + ALONG_AXES

# Differentiable wherever they are defined, in every operand that has a gradient: polynomials,
# entire functions, and rearrangements of elements.
SMOOTH = {
    "subtract", "multiply", "negative", "positive", "square", "where", "conjugate", "real",
    "imag", "from_parts", "sin", "cos", "sinh", "cosh", "deg2rad", "rad2deg", "sum", "mean",
    "cumsum", "cumulative_sum", "diff", "linear_recurrence", "trace", "matmul", "dot", "inner",
    "outer", "vecdot", "vdot", "tensordot", "kron", "einsum", "reshape", "ravel", "flatten",
    "expand_dims", "squeeze", "broadcast_to", "broadcast_arrays", "atleast_1d", "atleast_2d",
    "atleast_3d", "permute_dims", "swapaxes", "moveaxis", "matrix_transpose", "flip", "fliplr",
    "flipud", "rot90", "roll", "copy", "astype", "getitem", "getitem_backward", "take",
    "take_backward", "take_along_axis", "gather_along", "gather_along_backward", "tile",
    "embedding", "embedding_backward",
    "repeat", "pad", "pad_constant", "concat", "stack", "hstack", "vstack", "dstack",
    "column_stack", "split_at", "unstack", "split", "array_split", "hsplit", "vsplit", "dsplit",
    "meshgrid", "diagonal", "diagonal_backward", "diag", "tril", "triu",
    "put", "fill", "index_put", "index_add", "index_copy", "index_fill", "scatter", "scatter_add",
    "multiply_at", "slice_scatter", "select_scatter", "diagonal_scatter", "copy_slices", "region",
    "normalize_groups", "layer_norm", "rms_norm", "group_norm", "batch_normalize", "normalize_by",
    "gru_sequence", "lstm_sequence",
    "region_backward", "masked_fill", "masked_scatter", "gelu", "gelu_tanh", "silu", "mish",
    "softsign", "squared_error", "weighted_bernoulli_logit_error", "log_divergence_error",
    "poisson_log_error", "poisson_error", "nll_loss", "dropout", "linear", "bilinear",
    "convolution", "convolution_input", "convolution_weight", "average_windows", "spread_windows",
}  # fmt: skip


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


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_second_derivative_does_not_raise(row):
    with np.errstate(invalid="ignore"):  # infinities of opposite sign that meet are no error here
        found = gradients(row, order=2)
    assert all(g is None or g.dtype.kind in "fc" for g in found)


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
    same = [
        np.allclose(actual.resolve_conj().numpy(force=True), g, rtol=1e-12, atol=0, equal_nan=True)
        for actual, g in zip(found, expected, strict=True)
    ]
    assert all(same) is not bool(row.differs)


def test_every_operation_has_rows_or_is_smooth():
    table = {
        op.name
        for op in OPS.values()
        if op.__module__.startswith("numgrad.")
        and op.differentiable
        and (op.formulas or isinstance(op, Composite))
    }
    listed = {row.name for row in ROWS}
    assert table - listed - SMOOTH == set(), "give these operations rows, or list them as smooth"
    assert listed & SMOOTH == set()
    assert (listed | SMOOTH) - table == set(), "these operations do not exist"


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
