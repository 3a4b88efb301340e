"""How a matrix product is computed for operands of each shape.

Note [Forms of a product]
-------------------------
Shapes decide the form: ``dot`` (two vectors), ``mv`` and ``vm`` (matrix and vector), ``mm`` (two
matrices) and ``batched``. A stack of matrices times one matrix or vector is ``mm`` or ``mv`` of the
stack seen as one tall matrix. As with elementwise operations (Note [Plans]) everything but the
numbers is decided once for given dtypes, shapes and layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.dtypes import check_dtype
from numgrad.codegen.memory import allocator
from numgrad.codegen.threads import serial_ns
from numgrad.core.declare import Meta, broadcast_lengths, interpret, is_sparse_kind
from numgrad.core.plan import Plan, Planned, conform, remember
from numgrad.errors import NumgradValueError
from numgrad.kernels.products import dense

_VECTOR_NS = 0.1  # the same in a product with a vector, besides reading the matrix


class MatMul(Planned):
    """The operation ``@``."""

    whole = True

    @staticmethod
    def bind(op: MatMul, args: tuple, params: dict[str, Any]) -> Any:
        """Call the interpreter, or multiply with a sparse matrix of SciPy's."""
        for a in args:
            if is_sparse_kind(type(a)) and len(args) == 2 and not params:
                return import_module("numgrad.operations.sparse_matrices").product(*args)
        return interpret(op, args, params)

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self.plans: dict[tuple, ProductPlan] = {}

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[np.ndarray, ProductPlan]:
        a, b = args
        a = a if isinstance(a, np.ndarray) else np.asarray(a)
        b = b if isinstance(b, np.ndarray) else np.asarray(b)
        plan = self.plan(a, b)
        out = plan.empty(plan.shape, plan.dtype)
        plan.entry(a, b, out)
        return out, plan

    def plan(self, a: np.ndarray, b: np.ndarray) -> ProductPlan:
        """How such arrays are multiplied."""
        key: tuple = (a.dtype, a.shape, b.dtype, b.shape)
        if not (a.flags.c_contiguous and b.flags.c_contiguous):
            key = (*key, _layout(a), _layout(b))
        plan = self.plans.get(key)
        return remember(self.plans, key, ProductPlan(self, a, b)) if plan is None else plan


def _layout(x: np.ndarray) -> str:
    """How matrices lie in memory: ``plain``, ``transposed``, or with gaps (``loose``).

    Where a stack is one matrix again and again, that is ``repeated``.
    """
    if x.flags.c_contiguous:
        return "plain"
    if _is_repeated(x):
        return f"repeated {_layout(_first(x))}"
    if x.ndim > 1 and (x.T if x.ndim == 2 else x.swapaxes(-1, -2)).flags.c_contiguous:
        return "transposed"
    return "loose"


def _is_repeated(x: np.ndarray) -> bool:
    return x.ndim > 2 and x.size > 0 and not any(x.strides[:-2]) and prod(x.shape[:-2]) > 1


def _first(x: np.ndarray) -> np.ndarray:
    """The first matrix of a stack."""
    return x[(0,) * (x.ndim - 2)]


def product_shape(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Shape of the product of operands of two shapes."""
    if not a or not b:
        raise NumgradValueError(
            f"matmul: shapes {a} and {b}: a 0-d operand has no axis to sum over; use multiply"
        )
    inner = b[-min(len(b), 2)]
    if a[-1] != inner:
        raise NumgradValueError(
            f"matmul: shapes {a} and {b}: the last axis of the first ({a[-1]}) must equal the "
            f"{'second to last' if len(b) > 1 else 'only'} axis of the second ({inner}); "
            "transpose or reshape one"
        )
    try:
        batch = broadcast_lengths(a[:-2], b[:-2])
    except ValueError:
        raise NumgradValueError(
            f"matmul: shapes {a} and {b}: the leading axes {a[:-2]} and {b[:-2]} do not broadcast"
        ) from None
    return batch + a[-2:-1] + (b[-1:] if len(b) > 1 else ())


class ProductPlan(Plan):
    """How a product is computed for operands of given dtypes, shapes and layouts."""

    __slots__ = (
        "_saves",
        "allocate",
        "batch",
        "dtype",
        "empty",
        "entry",
        "floating",
        "form",
        "functions",
        "grad_mask",
        "loose",
        "repeated",
        "save_masks",
        "shape",
        "sizes",
        "ta",
        "tb",
        "with_one",
        "work",
    )
    op: MatMul

    def __init__(self, op: MatMul, a: np.ndarray, b: np.ndarray) -> None:
        for x in (a, b):
            check_dtype(op.name, x.dtype)
        super().__init__(op, (Meta(a.shape, a.dtype), Meta(b.shape, b.dtype)), {})
        self.dtype = np.result_type(a.dtype, b.dtype)
        layouts = _layout(a), _layout(b)
        self.ta, self.tb = (layout == "transposed" for layout in layouts)
        # operands that must be copied or converted before a kernel takes them
        self.loose = tuple(
            x.dtype != self.dtype or layout not in ("plain", "transposed")
            for x, layout in zip((a, b), layouts, strict=True)
        )
        self._arrange_shapes(a.shape, b.shape)
        self.repeated, self.with_one = self._product_with_one(a, b)
        self._read_by_eager_entry()
        self.entry = self._forward()

    def _read_by_eager_entry(self) -> None:
        # what the hot path looks at, as in the plans of elementwise operations
        self.allocate = self.shape[0] if len(self.shape) == 1 else self.shape
        self.empty = allocator(self.shape, self.dtype)
        self.floating = self.dtype.kind in "fc"
        self.grad_mask = sum(
            1 << k for k, m in enumerate(self.metas) if self.floating and m.dtype.kind in "fc"
        )
        masks = range(1 << len(self.metas))
        # the gradient of either factor needs the other one, that of a bias needs none
        self.save_masks = [
            0 if mask & ~self.grad_mask else (0, 2, 1, 3)[mask & 3] for mask in masks
        ]
        self._saves = {mask: super(ProductPlan, self).saves(mask) for mask in masks}
        self.functions = {}

    def _product_with_one(self, a: np.ndarray, b: np.ndarray) -> tuple[int, ProductPlan | None]:
        """Which operand is one matrix for all of the other one's, and the plan with that alone."""
        if self.form == "batched" and prod(self.shape):
            if _is_repeated(b) and self.shape[:-2] == a.shape[:-2] and not _is_repeated(a):
                return 1, self.op.plan(a, _first(b))
            if _is_repeated(a) and self.shape[:-2] == b.shape[:-2] and not _is_repeated(b):
                return 0, self.op.plan(_first(a), b)
        return 0, None

    def _arrange_shapes(self, a: tuple[int, ...], b: tuple[int, ...]) -> None:
        """Find form, sizes (m, k, n) and the shape of the result."""
        self.shape = product_shape(a, b)
        m = a[-2] if len(a) > 1 else 1
        n = b[-1] if len(b) > 1 else 1
        batch = broadcast_lengths(a[:-2], b[:-2])
        self.batch: Any = None
        if len(a) == 1 and len(b) <= 2:
            self.form = "dot" if len(b) == 1 else "vm"
        elif prod(b[:-2]) == 1 and not (self.ta and len(a) > 2):
            # the stack of ``a`` as one tall matrix
            self.form = "mv" if len(b) == 1 else "mm"
            m *= prod(batch)
        else:
            self.form = "batched"
            count_a, count_b = prod(a[:-2]), prod(b[:-2])
            self.batch = (
                _which(a[:-2], batch),
                _which(b[:-2], batch),
                (1 if prod(batch) != count_a else 0) | (2 if prod(batch) != count_b else 0),
            )
        self.sizes = (m, a[-1], n)  # pyright: ignore
        self.work = float(m * a[-1] * n * (prod(batch) if self.batch else 1))  # pyright: ignore

    def saves(self, mask: int) -> tuple[str, ...]:
        return self._saves[mask]

    def differentiable(self, k: int) -> bool:
        return bool(self.grad_mask >> k & 1)

    # ------------------------------------------------------------------------------- operands

    def _operand_arranger(self, k: int) -> Callable[[np.ndarray], np.ndarray]:
        """Function from operand ``k`` to the array the kernel takes."""
        m, inner, n = self.sizes
        transposed = (self.ta, self.tb)[k]
        rank = len(self.metas[k].shape)
        loose, dtype = self.loose[k], self.dtype
        if rank == 1 and self.form in ("dot", "mv", "vm"):
            shape: tuple[int, ...] = (inner,)
        else:
            shape = (inner, n) if k else (m, inner)
            if transposed:
                shape = shape[::-1]
            if self.form == "batched":
                shape = (prod(self.metas[k].shape[:-2]), *shape)

        def arrange(x: np.ndarray) -> np.ndarray:
            if transposed:
                x = x.T if rank == 2 else x.swapaxes(-1, -2)
            # what was saved may lie otherwise: Note [Layouts of saved values] in autograd.saved
            if loose or (transposed and not x.flags.c_contiguous):
                x = np.ascontiguousarray(x, dtype)
            return x if x.shape == shape else x.reshape(shape)

        return arrange

    def _kernel(self, what: str, mask: int) -> Any:
        """Entry point of the forward or backward kernel."""
        m, inner, n = self.sizes
        dtype, ta, tb, complex_ = self.dtype, self.ta, self.tb, self.dtype.kind == "c"
        if self.form == "mm":
            forward = partial(dense.product_kernel, dtype, ta, tb)
            if what == "forward":
                return dense.choose_product(forward, dtype, self.sizes)
            backward = partial(dense.product_backward_kernel, dtype, mask, ta, tb)
            return dense.choose_product(backward, dtype, self.sizes, mask.bit_count())
        if self.form == "batched":
            how = "tiny" if m * inner * n <= dense.TINY else ""
            work_ns = self.work * dense.MULTIPLY_NS
            shared = self.batch[2] & mask
            # a large product uses several threads inside BLAS already
            small = m * inner * n <= 64**3 and not (what == "backward" and shared)
            if what == "forward":
                choice = partial(dense.batched_kernel, dtype, ta, tb, how, work_ns > dense.NOGIL_NS)
            else:
                choice = partial(dense.batched_backward_kernel, dtype, mask, ta, tb, shared, how)
            return _choose(choice, 2 * work_ns if small else 0.0)
        work = serial_ns(self.work * _VECTOR_NS, self.work * dtype.itemsize)
        if self.form == "dot":
            return dense.dot_kernel(dtype)
        rows = (self.form == "mv") != (ta or tb)
        if what == "forward":
            if rows:
                return _choose(partial(dense.matrix_vector_kernel, dtype, False), work)
            return _swap(_choose(partial(dense.vector_matrix_kernel, dtype, False), work))
        if what == "vector":  # the gradient of the vector: the other product, with the conjugate
            if rows:
                return _swap(_choose(partial(dense.vector_matrix_kernel, dtype, complex_), work))
            return _choose(partial(dense.matrix_vector_kernel, dtype, complex_), work)
        # "matrix": g and conj(vector), the first along the rows of what is stored
        if rows:
            return _choose(partial(dense.outer_kernel, dtype, False, complex_), work)
        return _swap(_choose(partial(dense.outer_kernel, dtype, complex_, False), work))

    def _forward(self) -> Callable[..., None]:
        if self.dtype.kind not in "fc":
            return lambda a, b, out: np.matmul(a, b, out=out)
        if not prod(self.shape):
            return lambda a, b, out: None
        if not self.sizes[1]:
            return lambda a, b, out: out.fill(0)
        if self.with_one is not None:
            entry = self.with_one.entry
            if self.repeated:
                return lambda a, b, out: entry(a, _first(b), out)
            return lambda a, b, out: entry(_first(a), b, out)
        kernel = self._kernel("forward", 0)
        plain = not any(self.loose) and not self.ta and not self.tb
        if plain and self.form == "mm" and all(len(m.shape) == 2 for m in self.metas):
            return kernel
        give_a, give_b = self._operand_arranger(0), self._operand_arranger(1)
        m, _, n = self.sizes
        form = self.form
        if form == "dot":
            return lambda a, b, out: kernel(give_a(a), give_b(b), out.reshape(1))
        if form == "mv":
            return lambda a, b, out: kernel(give_a(a), give_b(b), out.reshape(m))
        if form == "vm":
            return lambda a, b, out: kernel(give_b(b), give_a(a), out.reshape(n))
        if form == "mm":
            return lambda a, b, out: kernel(give_a(a), give_b(b), out.reshape(m, n))
        ia, ib, _ = self.batch
        shape = (len(ia), m, n)
        return lambda a, b, out: kernel(give_a(a), give_b(b), out.reshape(shape), ia, ib)

    # ------------------------------------------------------------------------------- backward

    def _compile_backward(self, mask: int, *, accumulate: bool = False) -> Callable[..., Any]:
        """Write the backward for one mask, called with g and what ``saves`` names."""
        meta_a, meta_b = self.metas
        dtype = self.dtype
        shapes = [meta.shape for meta in self.metas]
        if not (self.work and prod(self.shape)):

            def zeros(g: np.ndarray, *saved: np.ndarray) -> Any:
                results = [np.zeros(m.shape, m.dtype) for m in self.metas]
                return [x if mask >> k & 1 else None for k, x in enumerate(results)], mask

            return zeros
        if self.with_one is not None and mask & (2 >> self.repeated):
            return self._backward_with_one(mask, self.with_one)
        compute = self._gradients(mask)
        m, _, n = self.sizes
        g_shape = {"mm": (m, n), "mv": (m,), "vm": (n,), "dot": (1,)}.get(self.form)
        if g_shape is None:
            g_shape = (len(self.batch[0]), m, n)
        convert = any(meta.dtype != dtype for meta in self.metas)
        # a gradient is computed in the layout of what is stored: transposed like the operand
        flips = (self.ta, self.tb)

        def backward(g: np.ndarray, *saved: np.ndarray) -> Any:
            if not g.flags.c_contiguous:
                g = np.ascontiguousarray(g)
            if g.shape != g_shape:
                g = g.reshape(g_shape)
            a = saved[0] if mask & 2 else None
            b = saved[-1] if mask & 1 else None
            ga, gb = compute(g, a, b)
            results = [ga, gb]
            for k in (0, 1):
                value = results[k]
                if value is None:
                    continue
                if flips[k] and self.form in ("mv", "vm"):
                    value = value.T
                if value.shape != shapes[k]:
                    value = value.reshape(shapes[k])
                results[k] = conform(value, (meta_a, meta_b)[k]) if convert else value
            return results, mask

        return backward

    def _backward_with_one(self, mask: int, plan: ProductPlan) -> Callable[..., Any]:
        """The backward by one matrix for the operand that is not repeated."""
        repeated, own = self.repeated, 2 >> self.repeated  # the place of one, the bit of the other
        rest = self._compile_backward(mask & ~own) if mask & ~own else None

        def backward(g: np.ndarray, *saved: np.ndarray) -> Any:
            matrices = saved[-1] if repeated else saved[0]
            results = plan.backward(own, g, (_first(matrices),))[0]
            if rest is not None:
                other = saved[0] if repeated else saved[-1]
                results[repeated] = rest(g, other)[0][repeated]
            return results, mask

        return backward

    def _gradients(self, mask: int) -> Callable[..., Any]:
        """Function of (g, a, b) in the kernels' shapes that gives new arrays for ga and gb."""
        m, inner, n = self.sizes
        dtype, form = self.dtype, self.form
        give_a, give_b = self._operand_arranger(0), self._operand_arranger(1)
        empty = np.empty
        if form == "mm":
            kernel = self._kernel("backward", mask)
            if mask == 1:

                def left(g: Any, a: Any, b: Any) -> Any:
                    ga = empty((m, inner), dtype)
                    kernel(g, give_b(b), ga)
                    return ga, None

                return left
            if mask == 2:

                def right(g: Any, a: Any, b: Any) -> Any:
                    gb = empty((inner, n), dtype)
                    kernel(g, give_a(a), gb)
                    return None, gb

                return right

            def both(g: Any, a: Any, b: Any) -> Any:
                ga, gb = empty((m, inner), dtype), empty((inner, n), dtype)
                kernel(g, give_b(b), ga, give_a(a), gb)
                return ga, gb

            return both
        if form == "batched":
            return self._batched_gradients(mask)
        if form == "dot":
            scaled = dense.scaled_kernel(dtype, dtype.kind == "c")

            def scale(g: Any, x: Any) -> Any:
                out = empty(inner, dtype)
                scaled(g, x, out)
                return out

            return lambda g, a, b: (
                scale(g, give_b(b)) if mask & 1 else None,
                scale(g, give_a(a)) if mask & 2 else None,
            )
        # matrix and vector; the matrix is operand 0 of mv and 1 of vm
        bit = 0 if form == "mv" else 1
        matrix = self._kernel("matrix", mask) if mask >> bit & 1 else None
        vector = self._kernel("vector", mask) if mask >> (1 - bit) & 1 else None
        stored = (m, inner) if form == "mv" else (inner, n)
        if self.ta or self.tb:
            stored = stored[::-1]

        def gradients(g: Any, a: Any, b: Any) -> Any:
            results: list[Any] = [None, None]
            if matrix is not None:
                out = results[bit] = empty(stored, dtype)
                matrix(g, give_b(b) if bit == 0 else give_a(a), out)
            if vector is not None:
                out = results[1 - bit] = empty(inner, dtype)
                vector(give_a(a) if bit == 0 else give_b(b), g, out)
            return results

        return gradients

    def _batched_gradients(self, mask: int) -> Callable[..., Any]:
        m, inner, n = self.sizes
        kernel = self._kernel("backward", mask)
        ia, ib, shared = self.batch
        shape_a = (prod(self.metas[0].shape[:-2]), m, inner)
        shape_b = (prod(self.metas[1].shape[:-2]), inner, n)
        give_a, give_b = self._operand_arranger(0), self._operand_arranger(1)
        dtype = self.dtype

        def gradients(g: Any, a: Any, b: Any) -> Any:
            ga = gb = None
            arguments = [g]
            if mask & 1:
                ga = (np.zeros if shared & 1 else np.empty)(shape_a, dtype)
                arguments += [give_b(b), ga]
            if mask & 2:
                gb = (np.zeros if shared & 2 else np.empty)(shape_b, dtype)
                arguments += [give_a(a), gb]
            kernel(*arguments, ia, ib)
            return ga, gb

        return gradients


def _which(lead: tuple[int, ...], batch: tuple[int, ...]) -> np.ndarray:
    """For each matrix of the result, the place of the operand's matrix it is made of."""
    positions = np.arange(prod(lead), dtype=np.int64).reshape(lead)
    return np.ascontiguousarray(np.broadcast_to(positions, batch)).ravel()


def _choose(kernel: Callable[[bool], Any], work: float) -> Callable[..., Any]:
    return threads.choose(partial(kernel, False), partial(kernel, True), work)


def _swap(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, out: kernel(b, a, out)
