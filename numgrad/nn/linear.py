"""Linear and bilinear maps of the last axis.

As with products (``numgrad.operations.product_plan``) everything but the numbers is decided once
for given dtypes and shapes: leading axes of ``x`` are seen as the rows of one matrix, small and
large matrices take other kernels. One record stands for the product, the sum and both transposes.

Note [Linear maps by the generator]
-----------------------------------
A product is no loop over a formula: its kernels are tiles and BLAS, and the bias is added to what
is still in registers or cache. The terms of the lowering, a product and a sum, took 0.87 to 0.93 of
the time at 128 x 128, but 1.07 (float32) and 1.4 (float64) at 1000 x 512 by 512 x 512. An array
formula (Note [Array formulas] in ``codegen.array_formulas``), a sum over an axis of products, reads
both matrices again for each element: 1.7 to 3.1 from 16 x 16 on. So it keeps a plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.batching import BatchOperand, apply, broadcasting_rule
from numgrad.core.declare import composite
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op
from numgrad.core.plan import Plan, Planned, conform, remember
from numgrad.errors import NumgradValueError
from numgrad.kernels.products import dense
from numgrad.kernels.products.dense import linear_backward_kernel, linear_kernel
from numgrad.nn import init
from numgrad.nn.applied import checked
from numgrad.nn.module.members import empty_parameter
from numgrad.nn.module.module import Module
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.matmul import conjugated, matmul
from numgrad.operations.product_plan import ProductPlan
from numgrad.operations.shape import as_operand, expand_dims, reshape

_ABSENT = Meta((), np.dtype(np.int64))


class LinearMap(Planned):
    """The operation ``linear``."""

    whole = True

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self.plans: dict[tuple, LinearPlan] = {}

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[np.ndarray, LinearPlan]:
        x, w, b = (
            a if a is None or isinstance(a, np.ndarray) else np.asarray(a)
            for a in (*args, None)[:3]
        )
        plan = self.plan(x, w, b)  # pyright: ignore
        dtype = plan.dtype
        out = np.empty(plan.shape, dtype)
        operands = [np.ascontiguousarray(a, dtype) for a in (x, w, b) if a is not None]
        plan.entry(*operands, out)
        return out, plan

    def plan(self, x: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> LinearPlan:
        """The plan for operands of these dtypes and shapes."""
        key: tuple = (x.dtype, x.shape, w.dtype, w.shape)
        if b is not None:
            key = (*key, b.dtype, b.shape)
        plan = self.plans.get(key)
        if plan is None:
            plan = remember(self.plans, key, LinearPlan(self, x, w, b))
        return plan


class LinearPlan(ProductPlan):
    """How a product with a transposed matrix, and a bias, is computed.

    ``entry(x, w, [b,] out)`` takes contiguous arrays; ``direct`` says that operands are of the
    dtype of the result already.
    """

    __slots__ = ("direct",)

    def __init__(self, op: LinearMap, x: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> None:
        operands = [a for a in (x, w, b) if a is not None]
        for a in operands:
            check_dtype(op.name, a.dtype)
        metas = tuple(_ABSENT if a is None else Meta(a.shape, a.dtype) for a in (x, w, b))
        Plan.__init__(self, op, metas, {})
        check_shapes(x.shape, w.shape, None if b is None else b.shape)
        self.dtype = np.result_type(*[a.dtype for a in operands])
        self.direct = all(a.dtype == self.dtype for a in operands)
        n, inner = w.shape
        self.shape = (*x.shape[:-1], n)
        self.sizes = (prod(x.shape[:-1]), inner, n)
        self._read_by_eager_entry()
        self.entry = self._arrange_entry(b is not None)
        if not self.direct:
            self.entry = partial(_converted, self.entry, self.dtype)

    def _arrange_entry(self, bias: bool) -> Callable[..., Any]:
        m, inner, n = self.sizes
        if not m * n:
            return lambda *arrays: None
        if self.dtype.kind not in "fc" or not inner:

            def by_numpy(x: Any, w: Any, *rest: Any) -> None:
                *b, out = rest
                np.matmul(x, w.T, out=out)
                for value in b:
                    np.add(out, value, out=out)

            return by_numpy
        kernel = dense.choose_product(
            partial(linear_kernel, self.dtype, bias), self.dtype, self.sizes
        )
        if len(self.shape) == 2:
            return kernel
        if bias:
            return lambda x, w, b, out: kernel(x.reshape(m, inner), w, b, out.reshape(m, n))
        return lambda x, w, out: kernel(x.reshape(m, inner), w, out.reshape(m, n))

    # ------------------------------------------------------------------------------- backward

    def _compile_backward(self, mask: int, *, accumulate: bool = False) -> Callable[..., Any]:
        """Write the backward for one mask, called with g and what ``saves`` names."""
        m, inner, n = self.sizes
        metas, dtype, direct = self.metas, self.dtype, self.direct
        if not m * inner * n and mask & ~4:  # no product, though there may be a bias
            return lambda g, *saved: (self._empty(mask, g), mask)
        products = (mask & 1) + (mask >> 1 & 1)
        compute = dense.choose_product(
            partial(linear_backward_kernel, dtype, mask), dtype, self.sizes, products
        )
        flat = len(self.shape) == 2
        if flat and direct and mask in (6, 7):
            return _quick_backward(compute, self.sizes, dtype, mask)
        shape_x = metas[0].shape

        def matrix(a: np.ndarray, *shape: int) -> np.ndarray:
            return np.ascontiguousarray(a, dtype).reshape(shape)

        def backward(g: np.ndarray, *saved: np.ndarray) -> Any:
            gx = gw = gb = None
            arguments = [matrix(g, m, n)]
            if mask & 1:
                gx = np.empty((m, inner), dtype)
                arguments += (matrix(saved[-1], n, inner), gx)
            if mask & 2:
                gw = np.empty((n, inner), dtype)
                arguments += (matrix(saved[0], m, inner), gw)
            if mask & 4:
                gb = np.empty(n, dtype)
                arguments.append(gb)
            compute(*arguments)
            grads = [gx if gx is None or flat else gx.reshape(shape_x), gw, gb]
            if not direct:
                grads = [
                    value if value is None else conform(value, meta)
                    for value, meta in zip(grads, metas, strict=True)
                ]
            return grads, mask

        return backward

    def _empty(self, mask: int, g: np.ndarray) -> list[Any]:
        grads: list[Any] = [
            np.zeros(meta.shape, meta.dtype) if mask >> k & 1 else None
            for k, meta in enumerate(self.metas)
        ]
        if mask & 4:
            m, _, n = self.sizes
            grads[2] += conform(g.reshape(m, n).sum(0), self.metas[2])
        return grads


def _converted(entry: Callable[..., None], dtype: np.dtype, *arrays: np.ndarray) -> None:
    """Call the kernel with operands of its dtype."""
    *operands, out = arrays
    entry(*[a.astype(dtype, copy=False) for a in operands], out)


def _quick_backward(
    compute: Callable[..., None], sizes: tuple[int, int, int], dtype: np.dtype, mask: int
) -> Callable[..., Any]:
    """The backward of a layer with a bias, with or without a gradient of ``x``, written out."""
    m, inner, n = sizes
    empty, contiguous = np.empty, np.ascontiguousarray

    def of_parameters(g: np.ndarray, x: np.ndarray) -> Any:
        if not g.flags.c_contiguous:
            g = contiguous(g)
        if not x.flags.c_contiguous:
            x = contiguous(x)
        gw, gb = empty((n, inner), dtype), empty(n, dtype)
        compute(g, x, gw, gb)
        return [None, gw, gb], 6

    def of_all(g: np.ndarray, x: np.ndarray, w: np.ndarray) -> Any:
        if not g.flags.c_contiguous:
            g = contiguous(g)
        if not x.flags.c_contiguous:
            x = contiguous(x)
        if not w.flags.c_contiguous:
            w = contiguous(w)
        gx, gw, gb = empty((m, inner), dtype), empty((n, inner), dtype), empty(n, dtype)
        compute(g, w, gx, x, gw, gb)
        return [gx, gw, gb], 7

    return of_all if mask == 7 else of_parameters


def check_shapes(x: tuple[int, ...], w: tuple[int, ...], b: tuple[int, ...] | None) -> None:
    """Raise unless the shapes suit each other."""
    if len(w) != 2:
        raise NumgradValueError(
            f"linear: the weight has shape {w}; it must have two axes, (outputs, inputs)"
        )
    if not x or x[-1] != w[1]:
        raise NumgradValueError(
            f"linear: x of shape {x} and weight of shape {w}: the last axis of both must be the "
            "inputs, equally many"
        )
    if b is not None and b != w[:1]:
        raise NumgradValueError(
            f"linear: the bias has shape {b}; for a weight of shape {w} it must be {w[:1]}"
        )


def _declare(**options: Any) -> Any:
    return lambda function: LinearMap(function, **options)


@_declare(
    name="linear",
    method=False,
    ref=lambda x, weight, *bias: sum(bias, np.matmul(x, weight.T)),
    samples=[
        (((3, 4), (5, 4), (5,)), {}),
        (((3, 4), (5, 4)), {}),
        (((4,), (3, 4), (3,)), {}),
        (((2, 3, 4), (2, 4), (2,)), {}),
        (((9, 5), (8, 5), (8,)), {}),
    ],
    smooth=True,
    lowering="numgrad.nn.lowerings",
)
def _linear(x, weight, bias=None):
    """``x @ weight.T + bias``, one operation.

    ``x`` has shape (..., inputs), ``weight`` (outputs, inputs), ``bias`` (outputs,).

    Parameters
    ----------
    weight
        Array of shape (outputs, inputs).
    bias
        Array of shape (outputs,).

    Returns
    -------
    Tensor
        Of shape (..., outputs).

    Examples
    --------
    >>> weight = ng.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> F.linear(ng.tensor([[1.0, 2.0]]), weight, ng.tensor([0.0, 0.0, 10.0]))
    tensor([[ 1.,  2., 13.]])
    """
    out = np.matmul(x, np.transpose(weight))
    return out if bias is None else out + bias


def _rows(x: Any) -> Any:
    """The leading axes as one."""
    return reshape(x, (prod(x.shape[:-1]), x.shape[-1]))


@_linear.shape
def _linear_result(x, weight, bias):
    operands = [m for m in (x, weight, bias) if m is not None]
    check_shapes(x.shape, weight.shape, None if bias is None else bias.shape)
    shape = (*x.shape[:-1], weight.shape[0])
    return Meta(shape, np.result_type(*[m.dtype for m in operands]))


_linear.vjp(
    x=lambda g, weight: matmul(g, conjugated(weight)),
    weight=lambda g, x: matmul(matrix_transpose(_rows(g)), conjugated(_rows(x))),
    bias=lambda g: np.sum(_rows(g), axis=0),
)
_linear.materializes_tangents = False


def _linear_jvp(t_x, t_weight, t_bias, x, weight):
    terms = [] if t_x is None else [_linear(t_x, weight)]
    terms += [] if t_weight is None else [_linear(x, t_weight)]
    terms += [] if t_bias is None else [t_bias]
    return sum(terms[1:], terms[0])


_linear.jvp(_linear_jvp)


@composite(
    name="bilinear",
    method=False,
    ref=lambda a, b, weight, bias=None: (
        np.einsum("...i,kij,...j->...k", a, weight, b) + (0 if bias is None else bias)
    ),
    smooth=True,
)
def _bilinear(a, b, weight, bias=None):
    """``y[..., k] = sum over i, j of a[..., i] weight[k, i, j] b[..., j] + bias[k]``.

    ``a`` has shape (..., n), ``b`` (..., m), ``weight`` (outputs, n, m), ``bias`` (outputs,).

    Parameters
    ----------
    weight
        Array of shape (outputs, n, m).
    bias
        Array of shape (outputs,).

    Returns
    -------
    Tensor
        Of the shape of ``a`` with its last axis as long as there are outputs.

    Examples
    --------
    >>> F.bilinear(ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0]), np.eye(2)[None])
    tensor([11.])
    """
    a, b, weight = as_operand(a), as_operand(b), as_operand(weight)
    if (
        len(weight.shape) != 3
        or a.shape[-1:] != weight.shape[1:2]
        or b.shape[-1:] != weight.shape[2:]
        or a.shape[:-1] != b.shape[:-1]
    ):
        raise NumgradValueError(
            f"bilinear: shapes {a.shape}, {b.shape} and {weight.shape}: the weight must have shape "
            "(outputs, n, m) where n and m are the last axes of the first two, whose other axes "
            "must be equal"
        )
    products = expand_dims(a, -1) * expand_dims(b, -2)
    pairs = weight.shape[1] * weight.shape[2]
    flat = reshape(products, (*a.shape[:-1], pairs))
    return _linear(flat, reshape(weight, (weight.shape[0], pairs)), bias)


@_linear.batch
def _linear_of_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, weight, *bias = (o for o in operands if o.value is not None)
    if x.ndim == 0 or weight.ndim != 2:
        return NotImplemented  # an error, whose message one example gives
    if not any(o.batched for o in (weight, *bias)):
        return bind(op, tuple([o.value for o in (x, weight, *bias)]), {})
    transpose = BatchOperand(apply("matrix_transpose", weight.value), weight.batched)
    out = matmul.batching(matmul, (x, transpose), {}, size)
    product = BatchOperand(out, x.batched or weight.batched)
    return broadcasting_rule(OPS["add"], (product, *bias), {}, size) if bias else out


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """``input @ weight.T + bias`` as one operation.

    Parameters
    ----------
    input
        Of shape (..., inputs).
    weight
        Of shape (outputs, inputs), or (inputs,) for one output without an axis.
    bias
        Of shape (outputs,), or None.

    Returns
    -------
    Tensor
        Of shape (..., outputs).

    Raises
    ------
    NumgradValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.linear(ng.tensor([1.0, 2.0]), ng.tensor([[3.0, 4.0]]), ng.tensor([0.5]))
    tensor([11.5])
    """
    if len(getattr(weight, "shape", ())) == 1:
        product = matmul(input, weight)
        return product if bias is None else product + bias
    return _linear(input, weight, bias)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """``sum over i, j of input1[..., i] weight[:, i, j] input2[..., j] + bias``.

    Parameters
    ----------
    input1, input2
        Of shapes (..., n) and (..., m), other axes equal.
    weight
        Of shape (outputs, n, m).
    bias
        Of shape (outputs,), or None.

    Returns
    -------
    Tensor
        Of shape (..., outputs).

    Raises
    ------
    NumgradValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.bilinear(ng.ones(2), ng.tensor([1.0, 2.0]), ng.ones((1, 2, 2)))
    tensor([6.])
    """
    return _bilinear(input1, input2, weight, bias)


class Identity(Module):
    """Returns its argument; takes any arguments when it is made, so it can replace other layers.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Identity()(ng.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return the argument."""
        return input


class Linear(Module):
    """``y = x @ weight.T + bias`` on the last axis.

    Parameters
    ----------
    in_features, out_features
        Lengths of the last axis of ``x`` and ``y``.
    bias
        Whether there is one.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Attributes
    ----------
    weight
        Of shape (out_features, in_features); at first evenly spread between ``-k`` and ``k``,
        ``k = 1 / sqrt(in_features)``.
    bias
        Of shape (out_features,), or None; at first as the weight.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.Linear(3, 2)
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    >>> layer(ng.ones((5, 3))).shape
    (5, 2)
    """

    @checked
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in_features), dtype, device)
        self.register_parameter(
            "bias", empty_parameter((out_features,), dtype, device) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values of the parameters."""
        init.reset_weight_and_bias(self.weight, self.bias)

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return _linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """``y[k] = x1 @ weight[k] @ x2 + bias[k]`` on the last axes.

    Parameters
    ----------
    in1_features, in2_features, out_features
        Lengths of the last axes of ``x1``, ``x2`` and ``y``.
    bias
        Whether there is one.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Raises
    ------
    NumgradValueError
        If ``in1_features`` is not positive.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Bilinear(3, 4, 2)(ng.ones((5, 3)), ng.ones((5, 4))).shape
    (5, 2)
    """

    @checked
    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in1_features, in2_features), dtype, device)
        self.register_parameter(
            "bias", empty_parameter((out_features,), dtype, device) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values of the parameters."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Tensor:
        """Apply the layer."""
        return _bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
