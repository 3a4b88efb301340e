"""Gradient formulas that nobody declared, derived from the body of an operation.

Note [Names around formulas]
----------------------------
A formula is read once for each kind of operands, its gradient formulas later, when a backward first
needs them. A global that changes in between would give a result and a gradient of two different
functions. So all of them are read with what names (globals, enclosed variables, those of helper
functions) stood for at the operation's first use; who wants another value declares it anew, or
makes it an operand.

Note [Derived formulas]
-----------------------
An operation declared by a formula has derivatives that follow from it, by reverse accumulation over
the calls in it (Griewank and Walther, "Evaluating Derivatives", chapter 3). Its body is called with
``TapedValue`` values, each of which holds one as gradient formulas take it (a symbol of a kernel, a
Tensor, a traced or batched one, an ndarray) and keeps which operation made it of which others. The
walk back asks each of those operations for its own gradient formula. So what is derived is a
gradient formula as any other: kernels, second derivatives, forward mode and compiled functions read
it. It names all inputs, which is what the tape saves.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from numgrad.codegen.symbols import NO_NUMBER
from numgrad.core.formula import DERIVED, GradientFormula, Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op
from numgrad.core.plan import Call
from numgrad.errors import NumgradNotImplementedError, NumgradTypeError
from numgrad.libraries import is_users, is_users_module

_COPIED = (list, dict, set, np.ndarray, SimpleNamespace)


def with_present_names(function: Any, known: dict[int, Any] | None = None) -> Any:
    """A function whose names keep what they stand for now; what is no Python function is itself."""
    known = {} if known is None else known
    if type(function) is not FunctionType:
        return function
    if id(function) in known:
        return known[id(function)]
    around, names = function.__globals__, set(_names(function.__code__))
    scope = {"__builtins__": around.get("__builtins__"), "__name__": around.get("__name__")}
    cells = tuple([CellType() for _ in function.__closure__ or ()])
    result = FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, cells or None
    )
    result.__kwdefaults__, result.__qualname__ = function.__kwdefaults__, function.__qualname__
    result.__module__, result.__doc__ = function.__module__, function.__doc__
    known[id(function)] = result
    scope |= {name: _present(around[name], known) for name in names if name in around}
    for cell, fresh in zip(function.__closure__ or (), cells, strict=True):
        try:
            fresh.cell_contents = _present(cell.cell_contents, known)
        except ValueError:  # it is empty
            continue
    return result


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _present(value: Any, known: dict[int, Any]) -> Any:
    """The value of a name, without later changes."""
    if type(value) is FunctionType and is_users(value.__code__.co_filename):
        return with_present_names(value, known)
    if type(value) is ModuleType and is_users_module(value.__name__):
        return SimpleNamespace(**vars(value))
    data = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return copy.copy(value) if type(value) in _COPIED or data else value


class DerivedFormula(GradientFormula):
    """The gradient formula of an input by the body of its operation: Note [Derived formulas]."""

    __slots__ = ("op", "place")

    def __init__(self, op: Any, name: str) -> None:
        self.op, self.place = op, op.inputs.index(name)
        self.function = self.derive
        self.kind = DERIVED
        self.names = ("g", *op.inputs)
        self.uses_g, self.needs, self.metas, self.params = True, op.inputs, (), ()

    def derive(self, g: Any, **inputs: Any) -> Any:
        """The gradient of the input, on whatever kind of values these are."""
        op = self.op
        values = [inputs[name] for name in op.inputs]
        loop, _ = op.result_types([_dtype_or_type(v) for v in values])
        tape: list[TapedValue] = []
        leaves = [
            TapedValue(tape, _as_dtype(v, d), needed=k == self.place)
            for k, (v, d) in enumerate(zip(values, loop, strict=True))
        ]
        result = op.function(*leaves)
        if not (isinstance(result, TapedValue) and result.needed):
            return 0
        holomorphic = op.holomorphic and any(_kind(v) == "c" for v in values)
        grad = _pull_back(tape, result, np.conj(g) if holomorphic else g, leaves[self.place])
        if grad is None:
            return 0
        return np.conj(grad) if holomorphic else grad


class TapedValue:
    """A value in the body of an operation, and the operation that made it.

    ``pull`` gives, of the gradient of the value, that of each of ``parents``, None for some.
    """

    __slots__ = ("needed", "parents", "pull", "tape", "value")
    _applies: ClassVar = True  # it says itself what an operation on it means
    __array_priority__: ClassVar = 1001.0

    def __init__(
        self,
        tape: list[TapedValue],
        value: Any,
        parents: Sequence[Any] = (),
        pull: Any = None,
        *,
        needed: bool = False,
    ) -> None:
        self.tape, self.value, self.parents, self.pull = tape, value, parents, pull
        self.needed = needed
        if needed:
            tape.append(self)

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def real(self) -> TapedValue:
        return self._part(np.real(self.value), lambda g: [g])

    @property
    def imag(self) -> TapedValue:
        return self._part(np.imag(self.value), lambda g: [1j * g])

    def astype(self, dtype: Any) -> TapedValue:
        target, before = np.dtype(dtype), _dtype(self.value)
        if target.kind not in "fc":
            return TapedValue(self.tape, self.value.astype(target))
        return self._part(self.value.astype(target), lambda g: [_as_dtype(g, before)])

    def _part(self, value: Any, pull: Any) -> TapedValue:
        return TapedValue(self.tape, value, (self,), pull, needed=self.needed)

    def apply(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        """The result of an operation on values of which some are on the tape."""
        if op.name in ("real", "imag") and isinstance(args[0], TapedValue):
            return getattr(args[0], op.name)
        if op.name == "astype" and isinstance(args[0], TapedValue):
            return args[0].astype(params.get("dtype", args[-1]))
        if not op.by_elements:
            if params:
                raise NumgradTypeError(f"a formula of scalars cannot call {op.name}")
            return op.function(*args)
        args = (*args, *op.rest(args))  # pyright: ignore[reportAttributeAccessIssue]
        raw = tuple([a.value if isinstance(a, TapedValue) else a for a in args])
        out = bind(op, raw, params)
        needed = _kind(out) in "fc" and any(
            isinstance(a, TapedValue) and a.needed and op.inputs[k] in op.formulas
            for k, a in enumerate(args)
        )

        def pull(g: Any) -> list[Any]:
            metas = tuple([Meta(getattr(v, "shape", ()), _dtype(v)) for v in raw])
            call = Call(op, metas, params)
            values = {**dict(zip(op.inputs, raw, strict=True)), "y": out}
            return [
                call.gradient(k, g, values)
                if isinstance(a, TapedValue) and a.needed and op.inputs[k] in op.formulas
                else None
                for k, a in enumerate(args)
            ]

        return TapedValue(self.tape, out, args, pull, needed=needed)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        op = OPS.get(ufunc.__name__)
        if op is None or not op.by_elements or method != "__call__" or kwargs:
            raise NumgradNotImplementedError(
                f"a formula that calls np.{ufunc.__name__} has no derivative by itself; declare "
                "its gradient formulas with .vjp()"
            )
        return self.apply(op, inputs, {})

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        if func in (np.real, np.imag):
            return getattr(args[0], func.__name__)
        if func is np.angle and len(args) == 1 and not kwargs:
            return self.apply(OPS["arctan2"], (args[0].imag, args[0].real), {})
        if func is np.where and len(args) == 3:
            return self.apply(OPS["where"], args, {})
        raise NumgradTypeError(f"a formula cannot call np.{func.__name__} this way")

    def __float__(self) -> float:
        raise NumgradTypeError(NO_NUMBER)

    __int__ = __index__ = __complex__ = __round__ = __float__  # pyright: ignore

    def __bool__(self) -> bool:
        raise NumgradTypeError("a formula has no branches: use np.where(condition, a, b)")


def _binary(name: str) -> tuple[Callable, Callable]:
    def forward(self: TapedValue, other: Any) -> Any:
        return self.apply(OPS[name], (self, other), {})

    def reflected(self: TapedValue, other: Any) -> Any:
        return self.apply(OPS[name], (other, self), {})

    return forward, reflected


for _name, _op in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal",
}.items():  # fmt: skip
    _forward, _reflected = _binary(_op)
    setattr(TapedValue, f"__{_name}__", _forward)
    setattr(TapedValue, f"__r{_name}__", _reflected)
TapedValue.__hash__ = object.__hash__
for _name, _op in {
    "neg": "negative", "pos": "positive", "invert": "invert", "abs": "absolute",
}.items():  # fmt: skip
    setattr(TapedValue, f"__{_name}__", lambda self, _op=_op: self.apply(OPS[_op], (self,), {}))


def _pull_back(tape: Sequence[TapedValue], result: TapedValue, g: Any, leaf: TapedValue) -> Any:
    """The gradient of ``leaf`` from that of ``result``; None if nothing leads there."""
    gradients: dict[TapedValue, Any] = {result: _fitted(g, result.value)}
    for taped in reversed(tape):
        g = gradients.get(taped)
        if g is None or taped.pull is None:
            continue
        for parent, cotangent in zip(taped.parents, taped.pull(g), strict=True):
            if cotangent is None:
                continue
            cotangent = _fitted(cotangent, parent.value)
            before = gradients.get(parent)
            gradients[parent] = cotangent if before is None else before + cotangent
    return gradients.get(leaf)


def _fitted(g: Any, like: Any) -> Any:
    """A gradient of a real value has no imaginary part."""
    return np.real(g) if _kind(g) == "c" and _kind(like) != "c" else g


def _as_dtype(value: Any, dtype: np.dtype) -> Any:
    """A value as the body gets it; Python numbers are weak."""
    if not hasattr(value, "dtype"):
        return value
    before = _dtype(value)
    if before == dtype:
        return value
    return np.real(value).astype(dtype) if before.kind == "c" != dtype.kind else value.astype(dtype)


def _dtype_or_type(value: Any) -> Any:
    return getattr(value, "dtype", type(value))


def _dtype(value: Any) -> np.dtype:
    return np.dtype(_dtype_or_type(value))


def _kind(value: Any) -> str:
    return _dtype(value).kind
