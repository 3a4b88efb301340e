"""Elementwise operations: one formula, lifted to arrays of any layout by generated kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import Kernel
from numgrad.codegen.dtypes import BOOL, check_dtype, resolve
from numgrad.codegen.emitter import Emitter, has_scalar
from numgrad.codegen.loops import (
    LoopOperand,
    broadcast_shape,
    elementwise_kernel,
    layout,
    strided_view,
)
from numgrad.codegen.memory import allocator
from numgrad.codegen.symbols import Reader, Symbol, real_dtype
from numgrad.codegen.threads import serial_ns
from numgrad.core.asides import aside
from numgrad.core.backward_source import elementwise_backward
from numgrad.core.derived import DerivedFormula, with_present_names
from numgrad.core.formula import GradientFormula, Meta
from numgrad.core.interpreter import Interpreter, bind, interpreter
from numgrad.core.op import Op
from numgrad.core.plan import LARGE, Plan, Planned, remember
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels.vmath import library as _library  # noqa: F401 (what formulas may call)

SMALL = 4096
"""Elements of operands that are rather copied than read with their strides."""
_SMALL = 4096  # elements for which one thread is enough, whatever the formula


_IN_FORMULAS = (Symbol, int, float, complex, np.generic)
"""Types of the arguments of operations in a formula."""


class ReadingInterpreter(Interpreter):
    """Turns operations that a formula calls into symbols of the formula's reader."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def bind(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        if not all(isinstance(a, _IN_FORMULAS) for a in args):  # Note [Asides] in ``asides``
            with aside():
                return bind(op, args, params)
        if not isinstance(op, Elementwise):
            if not params and len(args) >= 1 and not isinstance(op, Elementwise):
                return op.function(*args)
            raise NumgradTypeError(f"a formula of scalars cannot call {op.name}")
        return op.read(self.reader, [self.reader.lift(a) for a in (*args, *op.rest(args))])


class Elementwise(Planned):
    """An operation applied to each element of its broadcast operands.

    Parameters
    ----------
    types
        The ufunc whose dtype rules hold, or ``(inputs, output)`` -> loop dtypes function; by
        default ``ref`` where that is a ufunc, else those of ``np.sqrt`` (floating results).
    scalar
        Name of the kernel-library function that computes one element; the body of the operation is
        then its formula for dtypes the library does not cover.
    kernel
        A user's own ``numba.njit`` function of one element.
    check
        Called with the operands of integer calls; raises for values that have no result.
    beyond
        Of a Python integer and the range that it does not fit, ``np.iinfo``: the number with which
        the operation computes in place of it, or None if the integer is refused, as without it.
    """

    by_elements = True

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        types: Any = None,
        scalar: str | None = None,
        kernel: Any = None,
        check: Callable[[Sequence[Any]], None] | None = None,
        beyond: Callable[[int, np.iinfo], Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(function, **options)
        if self.params:
            name = next(iter(self.params))
            raise NumgradTypeError(
                f"{self.name}: an elementwise operation has operands only, and {name!r} is a "
                f"keyword-only parameter; declare it before the '*': it may have a default and be "
                "given by keyword all the same"
            )
        self.check, self.beyond = check, beyond
        several = len(self.inputs) > 1
        self.result = f"Of the shape {'the operands broadcast to' if several else 'of ``x``'}."
        ref = options.get("ref")
        self.types = types or (ref if isinstance(ref, np.ufunc) else None)
        self.scalar, self.kernel = scalar, kernel
        if kernel is not None:
            USER_KERNELS[self.name] = kernel
        self.plans: dict[tuple, ElementwisePlan] = {}
        self._kernels: dict[tuple, Kernel] = {}
        self._results: dict[tuple, np.dtype] = {}
        self._in_use = False
        self._cost: dict[tuple, float] = {}
        self._reads_once: dict[tuple, bool] = {}

    def undeclared(self, name: str) -> GradientFormula:
        by_formula = self.kernel is None and self.scalar is None
        return DerivedFormula(self, name) if by_formula else super().undeclared(name)

    def forget(self) -> None:
        super().forget()
        self._kernels.clear()
        self._results.clear()
        self._in_use = False

    def complex_vjp(self, **formulas: Callable[..., Any]) -> Elementwise:
        """Declare gradient formulas that take the places of those of ``vjp`` for complex operands.

        It is for formulas by the result that hold of real operands alone: of a complex result near
        a limit one part may be lost beside the other.
        """
        for name, function in formulas.items():
            self.complex_formulas[name] = GradientFormula(self, function)
        self.forget()
        return self

    def rest(self, args: Sequence[Any]) -> tuple:
        """Defaults of the inputs that were not given."""
        missing = len(self.inputs) - len(args)
        return self.defaults[len(self.defaults) - missing :] if missing else ()

    def result_types(self, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype]:
        """Dtypes the operands are converted to, and of the result."""
        if self.is_users and not self._in_use:
            self._begin_use()
        self.check_real(operands)
        if self.types is not None:
            return resolve(self.types, operands)
        loop, out = resolve(np.sqrt if len(operands) == 1 else np.true_divide, operands)
        by_formula = self.kernel is None and self.scalar is None
        return loop, self._real_result(loop, out) if by_formula and out.kind == "c" else out

    def _begin_use(self) -> None:
        """Let names in the formulas keep what they stand for: Note [Names around formulas]."""
        self._in_use = True
        known: dict[int, Any] = {}
        self.function = with_present_names(self.function, known)
        for formula in (*self.declared.values(), *self.complex_formulas.values()):
            formula.function = with_present_names(formula.function, known)

    def _real_result(self, loop: list[np.dtype], out: np.dtype) -> np.dtype:
        """The real dtype beside a complex one, if what the formula makes of such is real."""
        known = self._results.get(tuple(loop))
        if known is None:
            reader = Reader()
            inputs = [reader.input(n, d) for n, d in zip(self.inputs, loop, strict=True)]
            with interpreter(ReadingInterpreter(reader)):
                result = reader.lift(self.function(*inputs))
            is_complex = np.dtype(result.dtype).kind == "c"
            known = self._results[tuple(loop)] = out if is_complex else real_dtype(out)
        return known

    def promote(self, operands: dict[str, Any], metas: Sequence[Meta]) -> None:
        """Convert real operands of a gradient formula that the operation computes with as complex.

        The logarithm of a negative base, beside a complex exponent, is no real number.
        """
        loop, _ = self.result_types([m.dtype for m in metas])
        for name, dtype in zip(self.inputs, loop, strict=True):
            value = operands.get(name)
            if value is None or dtype.kind != "c":
                continue
            if not hasattr(value, "dtype"):
                operands[name] = complex(value)
            elif np.dtype(value.dtype).kind != "c":
                operands[name] = value.astype(dtype)

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        reader = Reader()
        return self.read(reader, [reader.input(name, dtype) for name in self.inputs]).dtype

    def read(self, reader: Reader, symbols: Sequence[Symbol]) -> Symbol:
        """One element of the result, from one element of each operand."""
        loop, out = self.result_types([s.dtype for s in symbols])
        cast = [reader.cast(s, d) for s, d in zip(symbols, loop, strict=True)]
        if self.kernel is not None:
            return reader.make(f"user:{self.name}", tuple(cast), out)
        if self.scalar is not None and all(has_scalar(self.scalar, d.kind) for d in loop):
            # of some there is a form for complex128 only
            wide = loop[-1] if loop[-1].kind == out.kind == "c" else out
            return reader.cast(reader.call(self.scalar, cast, loop, wide), out)
        with interpreter(ReadingInterpreter(reader)):
            result = reader.lift(self.function(*cast))
        return reader.cast(result, out)

    # --------------------------------------------------------------------------------- calls

    def run(
        self, args: Sequence[Any], params: dict[str, Any]
    ) -> tuple[np.ndarray, ElementwisePlan]:
        plan = self.plan(args)
        if self.beyond is not None and int in map(type, args):
            within = self.within(args, plan.loop)
            if within is not args:
                return self.run(within, params)
        if self.check is not None and not plan.floating:
            self.check(args)
        return plan.compute(args), plan

    def within(self, args: Sequence[Any], loop: Sequence[np.dtype]) -> Sequence[Any]:
        """The operands, with others in place of Python integers that a loop's dtypes do not hold.

        Raises
        ------
        NumgradValueError
            If an integer has no such number.
        """
        operands = args
        for k, (a, dtype) in enumerate(zip(args, loop, strict=True)):
            if type(a) is not int or dtype.kind not in "iu":
                continue
            limits = _limits(dtype)
            if limits.min <= a <= limits.max:
                continue
            number = None if self.beyond is None else self.beyond(a, limits)
            checked_scalar(self.name, a if number is None else number, dtype)
            operands = [*operands[:k], number, *operands[k + 1 :]]
        return operands

    def plan(self, args: Sequence[Any]) -> ElementwisePlan:
        """The plan for these operands: ndarrays and Python numbers.

        Small operands of several axes are raveled rather than read with their strides.
        """
        key: list[Any] = []
        size, strided, several = 0, False, False
        for a in args:
            if isinstance(a, np.ndarray):
                key.append(a.dtype)
                key.append(a.shape)
                size += a.size
                if a.ndim > 1:
                    several = True
                if not a.flags.c_contiguous:
                    strided = True
            else:
                key.append(type(a))
        copied = strided and several and size <= SMALL
        if strided and not copied:
            key += [a.strides for a in args if isinstance(a, np.ndarray)]
        plan = self.plans.get(tuple(key))
        if plan is None:
            if copied:
                args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            plan = ElementwisePlan(self, args)
            remember(self.plans, tuple(key), plan)
        return plan

    def kernels(self) -> list[Kernel]:
        """The kernels compiled so far, forward and backward."""
        return list(self._kernels.values())

    def warm(self, dtype: Any) -> Iterator[str]:
        """Compile the flat forward and backward kernels for a dtype, naming each when ready."""
        low, high = self.domain
        x = np.linspace(low, high, 8).astype(dtype)
        try:
            out, plan = self.run((x,) * len(self.inputs), {})
        except NumgradTypeError:  # not defined for the dtype
            return
        yield f"{self.name} forward"
        mask = plan.grad_mask & ~self.refused_mask
        if mask:
            values = dict.fromkeys(self.inputs, x) | {"y": out}
            plan.backward(mask, out, [values[name] for name in plan.saves(mask)])
            yield f"{self.name} backward"


USER_KERNELS: dict[str, Any] = {}
"""Users' scalar functions by operation name."""


def formula_emitter() -> Emitter:
    """A writer of formulas, which knows users' scalar functions."""
    functions = {f"user:{name}": kernel for name, kernel in USER_KERNELS.items()}
    return Emitter(scalar_functions=functions)


class ElementwisePlan(Plan):
    """How an elementwise operation is computed for operands of given dtypes and shapes."""

    __slots__ = (
        "_consuming",
        "_saves",
        "allocate",
        "dims",
        "dtype",
        "empty",
        "entry",
        "flat",
        "floating",
        "functions",
        "grad_mask",
        "large",
        "layout",
        "loop",
        "save_masks",
        "scalars",
        "shape",
        "simple",
        "steps",
    )
    op: Elementwise

    def __init__(self, op: Elementwise, args: Sequence[Any]) -> None:
        operands: list[Any] = []
        for a in args:
            if isinstance(a, np.ndarray):
                check_dtype(op.name, a.dtype)
                operands.append(a.dtype)
            else:
                operands.append(type(a))
        self.loop, self.dtype = op.result_types(operands)
        check_dtype(op.name, self.dtype)
        metas = tuple(
            Meta(a.shape, a.dtype) if isinstance(a, np.ndarray) else Meta((), d)
            for a, d in zip(args, self.loop, strict=True)
        )
        super().__init__(op, metas, {})
        self.scalars = tuple(not isinstance(a, np.ndarray) for a in args)
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        self.shape = broadcast_shape(op.name, [a.shape for a in arrays])
        self.layout = layout(
            self.shape, [(self.shape, None), *((a.shape, _strides(a)) for a in arrays)]
        )
        self.large = self.layout.size > LARGE
        self.simple = not any(m.endswith("s") for m in self.layout.masks)
        # the hot path passes operands as they are when all have one axis, raveled otherwise
        self.flat = self.simple and all(a.ndim == 1 for a in arrays) and len(self.shape) == 1
        self.dims = self.layout.dims if len(self.layout.dims) > 1 else ()
        self.floating = all(d.kind in "fc" for d in self.loop)
        # which operands can receive a gradient, and per mask what is saved, as bits: operands in
        # order, then y
        self.grad_mask = sum(
            1 << k
            for k, meta in enumerate(metas)
            if op.differentiable
            and not self.scalars[k]
            and meta.dtype.kind in "fc"
            and self.differentiable(k)
        )
        self._saves: dict[int, tuple[str, ...]] = {}
        self.functions, self.steps = {}, {}
        self._consuming: dict[int, Callable[..., Any] | None] = {}
        # one length is read faster than a tuple of one
        self.allocate = self.shape[0] if len(self.shape) == 1 else self.shape
        self.empty = allocator(self.shape, self.dtype)
        self.entry = self._forward() if self.layout.size else _nothing
        self.save_masks = [self._keeps(mask) for mask in range(1 << len(metas))]

    def _operands(self) -> list[LoopOperand]:
        masks = iter(self.layout.masks[1:])
        return [
            LoopOperand(name, meta.dtype if not scalar else loop, "" if scalar else next(masks))
            for name, meta, loop, scalar in zip(
                self.op.inputs, self.metas, self.loop, self.scalars, strict=True
            )
        ]

    def _keeps(self, mask: int) -> int:
        if mask & ~self.grad_mask:
            return 0
        order = (*self.op.inputs, "y")
        return sum(1 << order.index(name) for name in self.saves(mask))

    def _forward(self) -> Callable[..., Any]:
        def read(reader: Reader) -> dict[str, Symbol]:
            values = {o.name: reader.input(o.name, o.dtype) for o in operands}
            return {**values, "y": self.op.read(reader, list(values.values()))}

        operands = self._operands()
        result = LoopOperand("y", self.dtype, self.layout.masks[0])
        return self._choose(self.op.name, operands, [result], read)

    def _choose(
        self,
        name: str,
        inputs: Sequence[LoopOperand],
        outputs: Sequence[LoopOperand],
        read: Callable[[Reader], dict[str, Symbol]],
        *,
        accumulate: bool = False,
    ) -> Any:
        """Serial or parallel entry point by the amount of work, compiled when needed.

        ``read`` gives the symbols of inputs and outputs: by the name, the dtypes of all operands
        and of the result, and the shapes of operands where a gradient formula names these.
        """
        operands = self._operands()
        formulas = (*self.op.formulas.values(), *self.op.complex_formulas.values())
        shapes = self.metas if any(f.metas for f in formulas) else ()
        dtypes = (*(o.dtype for o in operands), self.dtype)
        # all that the kernel is made from
        key = (name, tuple(inputs), tuple(outputs), accumulate, dtypes, shapes)
        kernels = self.op._kernels

        def entry(parallel: bool, nogil: bool) -> Any:
            compiled = kernels.get((*key, parallel, nogil))
            if compiled is None:
                symbols, emitter = read(Reader()), formula_emitter()
                kernel = elementwise_kernel(
                    name,
                    emitter,
                    [(o, symbols[o.name]) for o in inputs],
                    [(o, symbols[o.name]) for o in outputs],
                    parallel=parallel,
                    nogil=nogil,
                    accumulate=accumulate,
                )
                compiled = kernels[(*key, parallel, nogil)] = kernel
            return compiled.entry

        size = self.layout.size
        if size <= _SMALL:
            return entry(False, False)
        cost = self.op._cost.get(key)
        if cost is None:
            symbols, emitter = read(Reader()), formula_emitter()
            emitter.block(
                [symbols[o.name] for o in outputs], {symbols[o.name]: o.name for o in inputs}
            )
            cost = self.op._cost[key] = emitter.cost_ns
        moved = sum([self._extent(o.mask) * o.dtype.itemsize for o in (*inputs, *outputs)])
        work = serial_ns(size * cost, moved)
        variants = [partial(entry, *v) for v in ((False, False), (True, True), (False, True))]
        return threads.choose(variants[0], variants[1], work, variants[2])

    def _extent(self, mask: str) -> int:
        """How many elements an operand has."""
        lengths = self.layout.dims
        return prod([n for n, varies in zip(lengths, mask, strict=False) if varies == "1"])

    def compute(self, args: Sequence[Any], out: np.ndarray | None = None) -> np.ndarray:
        """The result for operands this plan was made for, in contiguous ``out`` if given."""
        if out is None:
            out = self.empty(self.shape, self.dtype)
        self.entry(*self._pass(args, self.layout.masks[1:]), out.ravel(), *self.dims)
        return out

    def reads_once(self) -> bool:
        """Whether the kernel has read an element for good when it writes that of the result.

        Functions with rare arguments look at their operands again: Note [Rare arguments].
        """
        key = (self.dtype, *self.loop)
        once = self.op._reads_once.get(key)
        if once is None:
            reader, emitter = Reader(), formula_emitter()
            inputs = [reader.input(o.name, o.dtype) for o in self._operands()]
            _, condition = emitter.rare([self.op.read(reader, inputs)], dict.fromkeys(inputs, "x"))
            once = self.op._reads_once[key] = not condition
        return once

    def _pass(self, args: Sequence[Any], masks: Sequence[str]) -> list[Any]:
        """Operands as the kernel takes them."""
        operands = []
        arrays = iter(masks)
        for a, loop in zip(args, self.loop, strict=True):
            if not isinstance(a, np.ndarray):
                operands.append(checked_scalar(self.op.name, a, loop))
                continue
            mask = next(arrays)
            operands.append(strided_view(a, self.layout, mask) if mask.endswith("s") else a.ravel())
        return operands

    # ------------------------------------------------------------------------------ backward

    def differentiable(self, k: int) -> bool:
        return self.dtype.kind in "fc" and self.op.inputs[k] in self.op.formulas

    def saves(self, mask: int) -> tuple[str, ...]:
        names = self._saves.get(mask)
        if names is None:
            names = self._saves[mask] = super().saves(mask)
        return names

    def symbols(self, reader: Reader, mask: int) -> tuple[dict[str, Symbol], dict[int, Symbol]]:
        """Symbols of ``g`` and everything saved, and the gradient of each operand in ``mask``."""
        values = {"g": reader.input("g", self.dtype), "y": reader.input("y", self.dtype)}
        for operand in self._operands():
            values[operand.name] = reader.input(operand.name, operand.dtype)
        gradients = {}
        with interpreter(ReadingInterpreter(reader)):
            for k in range(len(self.metas)):
                if mask >> k & 1:
                    value = reader.lift(self.gradient(k, values["g"], values))
                    gradients[k] = convert(reader, value, self.metas[k].dtype)
        return values, gradients

    def consuming(self, mask: int) -> Callable[..., Any] | None:
        if mask not in self._consuming:
            backward = (
                self._compile_backward(mask, over_g=True) if self._may_consume(mask) else None
            )
            self._consuming[mask] = backward
        return self._consuming[mask]

    def _may_consume(self, mask: int) -> bool:
        """Whether the one gradient is made of one element of ``g``, and may be written there."""
        if mask.bit_count() != 1 or self.dtype.kind != "f" or not self.layout.size:
            return False
        k = mask.bit_length() - 1
        if self.scalars[k] or self.metas[k] != Meta(self.shape, self.dtype):
            return False
        values, gradients = self.symbols(Reader(), mask)
        _, condition = formula_emitter().rare([gradients[k]], dict.fromkeys(values.values(), "x"))
        return gradients[k] is not values["g"] and not condition  # see ``reads_once``

    def _compile_backward(
        self, mask: int, *, accumulate: bool = False, over_g: bool = False
    ) -> Callable[..., Any]:
        values, gradients = self.symbols(Reader(), mask)
        full = self.layout.masks[0]
        operands = {o.name: o for o in self._operands()}
        operands["g"] = LoopOperand("g", self.dtype, full)
        operands["y"] = LoopOperand("y", self.dtype, full)
        arrays = [k for k, scalar in enumerate(self.scalars) if not scalar]
        masks = dict(zip(arrays, self.layout.masks[1:], strict=True))
        aliased = [
            k
            for k, symbol in gradients.items()
            if symbol is values["g"] and self.metas[k] == Meta(self.shape, self.dtype)
        ]
        outputs = {
            k: LoopOperand(f"g{k}", self.metas[k].dtype, masks[k].rstrip("s"))
            for k in gradients
            if k not in aliased
        }
        saved = self.saves(mask)

        def read(reader: Reader) -> dict[str, Symbol]:
            values, gradients = self.symbols(reader, mask)
            return values | {f"g{k}": symbol for k, symbol in gradients.items()}

        entry = None
        if outputs and self.layout.size:
            entry = self._choose(
                f"{self.op.name}_backward{mask}",
                [operands[name] for name in ("g", *saved)],
                list(outputs.values()),
                read,
                accumulate=accumulate,
            )
        return elementwise_backward(
            self, mask, saved, operands, outputs, aliased, entry, accumulate, over_g
        )


def convert(reader: Reader, value: Symbol, dtype: np.dtype) -> Symbol:
    """A value in another dtype."""
    if value.dtype == dtype:
        return value
    if isinstance(value.dtype, np.dtype) and value.dtype.kind == "c" and dtype.kind != "c":
        value = reader.real(value)
    return reader.cast(value, dtype)


def _strides(array: np.ndarray) -> tuple[int, ...] | None:
    return None if array.flags.c_contiguous else array.strides


def _nothing(*arguments: Any) -> None:
    """The kernel of an empty result."""


def checked_scalar(operation: str, value: Any, dtype: np.dtype) -> Any:
    """A Python number as a kernel of ``dtype`` takes it."""
    if dtype.kind in "iu" and isinstance(value, int) and dtype != BOOL:
        limits = _limits(dtype)
        if not limits.min <= value <= limits.max:
            raise NumgradValueError(
                f"{operation}: {value} does not fit {dtype}, whose range is {limits.min} to "
                f"{limits.max}; convert the array to a wider dtype first"
            )
    return value


@lru_cache
def _limits(dtype: np.dtype) -> np.iinfo:
    return np.iinfo(dtype)
