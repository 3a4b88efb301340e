"""Operations along axes: reductions such as ``sum``, and maps such as ``softmax``.

Note [Axis formulas]
--------------------
The body is written for the axes it reduces, with ``axis=axis, keepdims=True``:
``np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)) + m``. Gradient formulas are too, on ``g``
and ``y`` that kept the reduced axes with length 1. ``n``, the number of elements reduced, may be
named like a parameter. Read on symbols, each ``np.sum`` is a pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, ClassVar

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import Kernel
from numgrad.codegen.dtypes import FLOAT32, FLOAT64, check_dtype, kernel_dtype
from numgrad.codegen.emitter import Emitter, price_ns
from numgrad.codegen.memory import allocator
from numgrad.codegen.symbols import AXIS, Reader, Symbol, in_order
from numgrad.codegen.threads import serial_ns
from numgrad.core.abstract import refuse_abstract
from numgrad.core.backward_source import axis_backward
from numgrad.core.elementwise import SMALL, ReadingInterpreter, convert
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, interpreter, state
from numgrad.core.op import OPS, Op
from numgrad.core.plan import LARGE, Call, Plan, remember
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError

_PASS_NS = 0.05  # an element added, or compared


class AxisOp(Op):
    """An operation along one or more axes of one operand.

    Parameters
    ----------
    keeps_shape
        The output has the operand's shape (softmax) instead of losing the axes.
    empty
        Whether no elements at all reduce to something (sum: 0) or are an error (max).
    """

    planned = True
    implied = ("n",)
    parameters: ClassVar = {
        "axis=None": ("int or tuple of ints", "Axes over which it works; by default all."),
        "axis": ("int or tuple of ints", "Axes over which it works; None means all."),
    }

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        keeps_shape: bool = False,
        empty: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(function, **options)
        self.params.pop("n", None)
        self.keeps_shape, self.empty = keeps_shape, empty
        self.result = "Of the shape of ``x``."
        if not keeps_shape:
            self.result = "Without the axes it works over, or with length 1 there if ``keepdims``."
            self.in_formulas = ", both with length 1 along the axes of ``n`` elements"
        self.takes_n = "n" in (function.__kwdefaults__ or {})
        self.plans: dict[tuple, AxisPlan] = {}
        self.quick: dict[tuple, AxisPlan] = {}
        """Plans by how a call was written, for the eager hot path."""
        self._kernels: dict[tuple, Kernel] = {}

    def forget(self) -> None:
        for known in (self.plans, self.quick, self._kernels):
            known.clear()
        super().forget()

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        return self.plan(np.ones(1, dtype), {**self.params}).dtype

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[np.ndarray, AxisPlan]:
        (x,) = args
        if not isinstance(x, np.ndarray):
            x = np.asarray(x)
        plan = self.plan(x, params)
        return plan.compute(x), plan

    def plan(self, x: np.ndarray, params: dict[str, Any]) -> AxisPlan:
        """The plan for an operand of this dtype and shape."""
        axis = params.get("axis")
        if isinstance(axis, list):
            params["axis"] = tuple(axis)
        elif isinstance(axis, np.ndarray):
            params["axis"] = normalize_axes(self.name, axis, x.ndim)
        if params.get("dtype") is not None:
            params["dtype"] = _as_dtype(self.name, params["dtype"])
            check_dtype(self.name, params["dtype"])
        for name, value in params.items():
            if isinstance(value, np.generic):  # would bring a dtype of its own into the formula
                params[name] = value.item()
        key = (x.dtype, x.shape, exact(params))
        plan = self.plans.get(key)
        if plan is None:
            plan = remember(self.plans, key, AxisPlan(self, x, dict(params)))
        return plan

    def warm(self, dtype: Any) -> Iterator[str]:
        """Compile the kernels along rows and columns for a dtype, naming each when ready."""
        x = np.linspace(*self.domain, 8).astype(dtype).reshape(4, 2)
        for axis in (1, 0):
            params = {**self.params, "axis": axis}
            try:
                out, plan = self.run((x,), params)
            except NumgradTypeError:  # not defined for the dtype
                return
            which = "rows" if axis else "columns"
            yield f"{self.name} forward, {which}"
            if self.formulas and plan.floating and x.dtype.kind in "fc":
                values = {"x": x, "y": out}
                plan.backward(1, out, [values[name] for name in plan.saves(1)])
                yield f"{self.name} backward, {which}"

    def kernels(self) -> list[Kernel]:
        """The kernels compiled so far, forward and backward."""
        return list(self._kernels.values())


def exact(params: dict[str, Any]) -> tuple:
    """Parameters as part of a key, in which 1, 1.0 and True are different: they hash alike."""
    return (*params.values(), *map(type, params.values()))


def _as_dtype(operation: str, dtype: Any) -> np.dtype:
    try:
        return np.dtype(dtype)
    except TypeError:
        raise NumgradTypeError(
            f"{operation}: {dtype!r} is no dtype; after the axis comes dtype, as in NumPy, so give "
            "keepdims by name"
        ) from None


_OF_TWO_ARRAYS = {"max": "np.maximum", "min": "np.minimum", "any": "np.logical_or",
                  "all": "np.logical_and", "sum": "np.add", "prod": "np.multiply"}  # fmt: skip


def normalize_axes(operation: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as a sorted tuple of non-negative integers; None means all."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    result = []
    for a in axes:
        try:
            a = int(a.__index__())
        except (AttributeError, TypeError):
            refuse_abstract(f"{operation}: axis", a)
            given, both = repr(axis), _OF_TWO_ARRAYS.get(operation)
            if hasattr(a, "shape"):
                given = f"an array of shape {a.shape}"
                given += f"; of two arrays, element by element, there is {both}" if both else ""
            raise NumgradValueError(
                f"{operation}: axis must be an integer, a tuple of them or None, got {given}"
            ) from None
        if not -ndim <= a < ndim:
            raise NumgradIndexError(
                f"{operation}: axis {a} is out of range for an operand of {ndim} dimensions"
            )
        result.append(a % ndim)
    if len(set(result)) != len(result):
        raise NumgradValueError(f"{operation}: axis {axis!r} names an axis twice")
    return tuple(sorted(result))


def one_axis(operation: str, axis: Any, ndim: int) -> int:
    """One axis as a non-negative integer; None is that of a vector."""
    if type(axis) is int and -ndim <= axis < ndim:
        return axis % ndim
    axes = normalize_axes(operation, axis, ndim)
    if len(axes) != 1:
        raise NumgradTypeError(
            f"{operation}: works along one axis, got axis={axis!r} for an operand of {ndim} "
            "dimensions"
        )
    return axes[0]


class AxisCall(Call):
    """A call of an operation along axes.

    ``axes`` are those, ``kept`` is the operand's shape with length 1 along them, ``count`` the
    number of elements that are reduced to one.
    """

    __slots__ = ("axes", "count", "kept")
    op: AxisOp

    def implied(self, name: str, k: int) -> Any:
        return self.count

    def gradient(self, k: int, g: Any, values: dict[str, Any]) -> Any:
        """The formula on Tensors or ndarrays: ``g`` and ``y`` get the reduced axes back."""
        shape = getattr(g, "shape", ())
        if not self.op.keeps_shape and len(shape):  # a number broadcasts as it is
            reshape = OPS["reshape"]
            g = bind(reshape, (g, self.kept), {})
            if "y" in values:
                values = {**values, "y": bind(reshape, (values["y"], self.kept), {})}
        formula = self.op.formulas["x"]
        arguments = self.arguments(formula, k, values)
        if "axis" in arguments:
            arguments["axis"] = self.axes
        if formula.uses_g:
            arguments["g"] = g
        value = formula.function(**arguments)
        target, shape = self.metas[0].shape, getattr(value, "shape", ())
        if len(shape) != len(target) or shape != target:
            value = _broadcast_gradient(value, target)
        return value


def _broadcast_gradient(value: Any, shape: tuple[int, ...]) -> Any:
    """A gradient in the shape of the operand; small ones in memory, which is read faster."""
    if isinstance(value, np.ndarray) or state.interpreters or state.ground.deferred:
        return bind(OPS["broadcast_to"], (value, shape), {})
    if prod(shape) > SMALL:
        return bind(OPS["broadcast_to"], (value, shape), {})
    return value * np.ones(shape, value.dtype)


class AxisPlan(AxisCall, Plan):
    """How an operation along axes is computed for an operand of given dtype and shape."""

    __slots__ = (
        "allocate",
        "columns",
        "counts",
        "dtype",
        "empty",
        "entry",
        "floating",
        "functions",
        "grad_mask",
        "inverse",
        "large",
        "order",
        "save_masks",
        "scalars",
        "shape",
        "simple",
        "sizes",
        "steps",
    )

    def __init__(self, op: AxisOp, x: np.ndarray, params: dict[str, Any]) -> None:
        check_dtype(op.name, x.dtype)
        super().__init__(op, (Meta(x.shape, x.dtype),), params)
        self.axes = normalize_axes(op.name, params.get("axis"), x.ndim)
        self.kept = tuple(1 if a in self.axes else n for a, n in enumerate(x.shape))
        if op.keeps_shape:
            self.shape = x.shape
        elif params.get("keepdims"):
            self.shape = self.kept
        else:
            self.shape = tuple(n for a, n in enumerate(x.shape) if a not in self.axes)
        # one block of reduced axes between kept ones, else they are moved to the end
        first, last = (self.axes[0], self.axes[-1] + 1) if self.axes else (x.ndim, x.ndim)
        self.order = self.inverse = None
        shape = x.shape
        if last - first != len(self.axes) and any(
            shape[a] != 1 for a in range(first, last) if a not in self.axes
        ):
            others = tuple(a for a in range(x.ndim) if a not in self.axes)
            self.order = (*others, *self.axes)
            self.inverse = tuple(np.argsort(self.order))
            shape = tuple(shape[a] for a in self.order)
            first, last = len(others), x.ndim
        count = prod(shape[first:last])
        self.counts = (prod(shape[:first]), count, prod(shape[last:]))
        self.count = float(count)
        self.columns = self.counts[2] != 1
        self.sizes = self.counts if self.columns else self.counts[:2]
        self.scalars = (self.count,) if op.takes_n else ()
        self.simple = self.order is None and prod(self.shape) > 0
        if not op.empty and count == 0 and prod(self.shape):
            raise NumgradValueError(
                f"{op.name}: the reduced axes of an operand of shape {x.shape} have no elements, "
                "and there is no value for that"
            )
        self.functions, self.steps = {}, {}
        self.allocate = self.shape[0] if len(self.shape) == 1 else self.shape
        reader = Reader()
        result = self._read(reader, {"x": self._input(reader)})
        self.dtype = kernel_dtype(result.dtype)
        self.empty = allocator(self.shape, self.dtype)
        self.floating = self.dtype.kind in "fc"
        self.grad_mask = op.differentiable and self.differentiable(0)
        self.large = self.order is None and prod(self.counts) > LARGE
        saved = sum({"x": 1, "y": 2}[n] for n in self.saves(1)) if op.formulas else 0
        self.save_masks = (0, saved)
        self.entry: Callable[..., Any] = self._compile_forward

    def _compile_forward(self, *arguments: Any) -> None:
        """The entry point until it is called: a plan may be asked for a dtype only."""
        self.entry = self._entry("forward", 0, False)
        self.entry(*arguments)

    def _input(self, reader: Reader) -> Symbol:
        return reader.input("x", self.metas[0].dtype)

    def _n(self, reader: Reader) -> Symbol:
        return reader.input("n", self._n_dtype)

    @property
    def _n_dtype(self) -> np.dtype:
        dtype = self.params.get("dtype") or self.metas[0].dtype
        return FLOAT32 if dtype in (FLOAT32, np.dtype("complex64")) else FLOAT64

    def _constants(self, n: Any) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            k: v for k, v in self.params.items() if k not in ("axis", "keepdims")
        }
        arguments["axis"] = AXIS
        if "keepdims" in self.params:
            arguments["keepdims"] = True
        if self.op.takes_n:
            arguments["n"] = n
        return arguments

    def _read(self, reader: Reader, values: dict[str, Symbol]) -> Symbol:
        x, dtype = values["x"], self.params.get("dtype")
        if dtype is not None:  # converted in the formula, so that its gradient is converted back
            x = reader.cast(x, dtype)
        with interpreter(ReadingInterpreter(reader)):
            result = reader.lift(self.op.function(x, **self._constants(self._n(reader))))
        if dtype is not None and dtype.kind in "iu" and result.dtype.kind in "iu":
            return reader.cast(result, dtype)
        return result

    def _entry(self, what: str, mask: int, accumulate: bool) -> Callable[..., Any]:
        from numgrad.codegen.reductions import ReductionOperand, axis_kernel

        meta = self.metas[0]
        reader = Reader()
        values = {"x": self._input(reader)}
        roles = {"x": "full", "n": "scalar"}
        dtypes = {"x": meta.dtype, "n": self._n_dtype}
        if what == "forward":
            result = reader.cast(self._read(reader, values), self.dtype)
            out_role = "full" if self.op.keeps_shape else "reduced"
        else:
            role = "full" if self.op.keeps_shape else "reduced"
            values["g"] = reader.input("g", self.dtype)
            values["y"] = reader.input("y", self.dtype)
            values["n"] = self._n(reader)
            roles |= {"g": role, "y": role}
            dtypes |= {"g": self.dtype, "y": self.dtype}
            with interpreter(ReadingInterpreter(reader)):
                value = reader.lift(self._gradient_symbol(values))
            result = convert(reader, value, meta.dtype)
            out_role = "full"
        names = self.names(what, mask)
        operands = tuple([ReductionOperand(n, roles[n], dtypes[n]) for n in names])
        key = (what, operands, meta.dtype, result.dtype, self.columns, accumulate, self._static())
        kernels = self.op._kernels

        def entry(parallel: bool, nogil: bool) -> Any:
            kernel = kernels.get((*key, parallel, nogil))
            if kernel is None:
                kernel = kernels[(*key, parallel, nogil)] = axis_kernel(
                    f"{self.op.name}_{what}",
                    reader,
                    result,
                    operands,
                    out_role=out_role,
                    columns=self.columns,
                    parallel=parallel,
                    nogil=nogil,
                    accumulate=accumulate,
                    emitter=Emitter(),
                )
            return kernel.entry

        cost = _PASS_NS + _element_ns(result, roles)
        size = prod(self.counts)
        moved = sum([dtypes[name].itemsize for name in names if roles[name] == "full"])
        if out_role == "full":
            moved += result.dtype.itemsize
        work = serial_ns(size * cost, size * moved)
        variants = [partial(entry, *v) for v in ((False, False), (True, True), (False, True))]
        return threads.choose(variants[0], variants[1], work, variants[2])

    def _static(self) -> tuple:
        return exact({k: v for k, v in self.params.items() if k not in ("axis", "keepdims")})

    def names(self, what: str, mask: int) -> tuple[str, ...]:
        """Operands of the forward or backward kernel, in order."""
        if what == "forward":
            return ("x", "n") if self.op.takes_n else ("x",)
        formula = self.op.formulas["x"]
        names = [n for n in ("g", *self.saves(mask)) if n != "g" or formula.uses_g]
        if "n" in formula.params:
            names.append("n")
        return tuple(names)

    def _arrange(self, array: np.ndarray, full: bool) -> np.ndarray:
        """The operand flat, reduced axes in the middle or at the end."""
        if full and self.order is not None:
            array = array.transpose(self.order)
        return (array if array.flags.c_contiguous else np.ascontiguousarray(array)).ravel()

    def compute(self, x: np.ndarray) -> np.ndarray:
        if self.op.keeps_shape and self.order is not None:
            moved = self.empty([x.shape[a] for a in self.order], self.dtype)
            out, result = moved, moved.transpose(self.inverse)
        else:
            out = result = self.empty(self.shape, self.dtype)
        if out.size:
            self.entry(self._arrange(x, True), *self.scalars, out.ravel(), *self.sizes)
        return result

    # ------------------------------------------------------------------------------ backward

    def differentiable(self, k: int) -> bool:
        return self.dtype.kind in "fc" and "x" in self.op.formulas

    def _gradient_symbol(self, values: dict[str, Symbol]) -> Any:
        formula = self.op.formulas["x"]
        arguments: dict[str, Any] = {name: values[name] for name in formula.needs}
        for name in formula.params:
            arguments[name] = AXIS if name == "axis" else self.params.get(name, values.get(name))
        if formula.uses_g:
            arguments["g"] = values["g"]
        return formula.function(**arguments)

    def _compile_backward(self, mask: int, *, accumulate: bool = False) -> Callable[..., Any]:
        entry = self._entry("backward", mask, accumulate)
        return axis_backward(self, mask, entry, accumulate)


def _element_ns(result: Symbol, roles: Mapping[str, str]) -> float:
    """Nanoseconds of a formula for one element, besides what is computed of whole rows."""
    full: set[Symbol] = set()
    total = 0.0
    for symbol in in_order([result]):
        if symbol.op == "input":
            whole = roles.get(symbol.detail) == "full"
        else:
            whole = symbol.op != "reduce" and not full.isdisjoint(symbol.args)
        if whole:
            full.add(symbol)
            total += price_ns(symbol)
    return total
