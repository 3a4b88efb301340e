"""How ``x @ weight.T + bias`` is computed for operands of each shape.

As with products (``numgrad.operations.product_plan``) everything but the numbers is decided once
for given dtypes and shapes: leading axes of ``x`` are seen as the rows of one matrix, small and
large matrices take other kernels. One record stands for the product, the sum and both transposes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.call import conform
from numgrad.core.formula import Meta
from numgrad.core.plan import Plan, Planned, remember
from numgrad.errors import NumgradValueError
from numgrad.kernels.products import linalg
from numgrad.kernels.products.linear import linear_backward_kernel, linear_kernel

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
        given = [np.ascontiguousarray(a, dtype) for a in (x, w, b) if a is not None]
        plan.entry(*given, out)
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


class LinearPlan(Plan):
    """How the operation is computed for operands of given dtypes and shapes.

    ``entry(x, w, [b,] out)`` takes contiguous arrays; ``direct`` says that operands are of the
    dtype of the result already.
    """

    __slots__ = (
        "_saves",
        "allocate",
        "direct",
        "dtype",
        "entry",
        "floating",
        "functions",
        "grad_mask",
        "save_masks",
        "shape",
        "sizes",
    )

    def __init__(self, op: LinearMap, x: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> None:
        given = [a for a in (x, w, b) if a is not None]
        for a in given:
            check_dtype(op.name, a.dtype)
        metas = tuple(_ABSENT if a is None else Meta(a.shape, a.dtype) for a in (x, w, b))
        super().__init__(op, metas, {})
        check_shapes(x.shape, w.shape, None if b is None else b.shape)
        self.dtype = np.result_type(*[a.dtype for a in given])
        self.direct = all(a.dtype == self.dtype for a in given)
        n, inner = w.shape
        self.shape = (*x.shape[:-1], n)
        self.sizes = (prod(x.shape[:-1]), inner, n)
        self.floating = self.dtype.kind in "fc"
        self.allocate = self.shape[0] if len(self.shape) == 1 else self.shape
        self.grad_mask = sum(
            1 << k
            for k, a in enumerate((x, w, b))
            if self.floating and a is not None and a.dtype.kind in "fc"
        )
        self._saves = [(), ("weight",), ("x",), ("x", "weight")]
        self.save_masks = [
            0 if mask & ~self.grad_mask else (0, 2, 1, 3)[mask & 3] for mask in range(8)
        ]
        self.functions = {}
        self.entry = self._forward(b is not None)
        if not self.direct:
            self.entry = partial(_converted, self.entry, self.dtype)

    def saves(self, mask: int) -> tuple[str, ...]:
        return self._saves[mask & 3]

    def differentiable(self, k: int) -> bool:
        return bool(self.grad_mask >> k & 1)

    def _forward(self, bias: bool) -> Callable[..., Any]:
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
        kernel = linalg.choose_product(
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
        compute = linalg.choose_product(
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
            found = [gx if gx is None or flat else gx.reshape(shape_x), gw, gb]
            if not direct:
                found = [
                    value if value is None else conform(value, meta)
                    for value, meta in zip(found, metas, strict=True)
                ]
            return found, mask

        return backward

    def _empty(self, mask: int, g: np.ndarray) -> list[Any]:
        found: list[Any] = [
            np.zeros(meta.shape, meta.dtype) if mask >> k & 1 else None
            for k, meta in enumerate(self.metas)
        ]
        if mask & 4:
            m, _, n = self.sizes
            found[2] += conform(g.reshape(m, n).sum(0), self.metas[2])
        return found


def _converted(entry: Callable[..., None], dtype: np.dtype, *arrays: np.ndarray) -> None:
    """Call the kernel with operands of its dtype."""
    *given, out = arrays
    entry(*[a.astype(dtype, copy=False) for a in given], out)


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
