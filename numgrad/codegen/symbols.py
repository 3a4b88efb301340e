"""A formula read on symbols becomes a graph of typed scalar operations.

``Reader`` hands out symbols for the inputs of a formula. Calling the formula with them builds the
graph, with NumPy's promotion rules, Python numbers weak as in NEP 50. Reductions over an axis,
``np.sum(x, axis=axis, keepdims=True)`` and its like, become nodes too; the templates in
``reductions`` decide in which pass over the data each is computed. ``emitter`` writes the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.dtypes import BOOL, resolve
from numgrad.errors import NumgradTypeError

NO_NUMBER = (
    "a formula is read once, on elements that have no numbers yet, and Python's float(), int() and "
    "functions of math need one; call NumPy's functions, as np.sin for math.sin"
)


class Symbol:
    """One value of a formula under reading: an operation, its arguments and a dtype.

    ``dtype`` is a NumPy dtype, or ``int``, ``float``, ``complex`` for a Python number.
    """

    __slots__ = ("args", "detail", "dtype", "op", "reader")
    __array_priority__ = 1000.0

    def __init__(self, reader: Reader, op: str, args: tuple, dtype: Any, detail: Any) -> None:
        self.reader, self.op, self.args, self.dtype, self.detail = reader, op, args, dtype, detail

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Symbol:
        if method != "__call__" or kwargs:
            raise NumgradTypeError(f"a formula may call np.{ufunc.__name__} only plainly")
        return self.reader.ufunc(ufunc, *inputs)

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        return self.reader.function(func, args, kwargs)

    def __bool__(self) -> bool:
        raise NumgradTypeError("a formula has no branches: use np.where(condition, a, b)")

    def __float__(self) -> float:
        raise NumgradTypeError(NO_NUMBER)

    __int__ = __index__ = __complex__ = __round__ = __float__  # pyright: ignore

    @property
    def real(self) -> Symbol:
        return self.reader.real(self)

    @property
    def imag(self) -> Symbol:
        return self.reader.imag(self)

    def astype(self, dtype: Any) -> Symbol:
        return self.reader.cast(self, np.dtype(dtype))


def _binary(ufunc: np.ufunc) -> tuple[Callable, Callable]:
    def forward(self: Symbol, other: Any) -> Symbol:
        if getattr(type(other), "applies", False):  # it says itself what operations mean
            return NotImplemented
        return self.reader.ufunc(ufunc, self, other)

    def reflected(self: Symbol, other: Any) -> Symbol:
        return self.reader.ufunc(ufunc, other, self)

    return forward, reflected


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}.items():  # fmt: skip
    _forward, _reflected = _binary(_ufunc)
    setattr(Symbol, f"__{_name}__", _forward)
    setattr(Symbol, f"__r{_name}__", _reflected)
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(Symbol, f"__{_name}__", _binary(_ufunc)[0])
Symbol.__hash__ = object.__hash__
for _name, _ufunc in {
    "neg": np.negative, "pos": np.positive, "invert": np.invert, "abs": np.absolute,
}.items():  # fmt: skip
    setattr(Symbol, f"__{_name}__", lambda self, _ufunc=_ufunc: self.reader.ufunc(_ufunc, self))


AXIS = object()
"""Stands for the reduced axis while a formula is read."""

REDUCERS = {getattr(np, name): name for name in ("sum", "prod", "max", "min", "any", "all")}
REDUCERS |= {np.amax: "max", np.amin: "min"}


_PLACES = ("load", "index")
_POWERS = (1, 3, 4, -2, -3, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5)
"""Exponents whose powers of floats are written as products."""


class Reader:
    """Builds the graph of a formula; equal sub-expressions become one symbol."""

    def __init__(self) -> None:
        self._interned: dict[tuple, Symbol] = {}

    def make(self, op: str, args: tuple = (), dtype: Any = None, detail: Any = None) -> Symbol:
        # -0.0 equals 0.0 and nan does not equal itself; places in memory have no such numbers
        shown = detail if detail is None or op in _PLACES else repr(detail)
        key = (op, tuple(map(id, args)), dtype, type(detail), shown)
        symbol = self._interned.get(key)
        if symbol is None:
            symbol = self._interned[key] = Symbol(self, op, args, dtype, detail)
        return symbol

    def input(self, name: str, dtype: np.dtype) -> Symbol:
        """The current element of an operand."""
        return self.make("input", (), dtype, name)

    def lift(self, value: Any) -> Symbol:
        """A Python or NumPy number as a symbol."""
        if isinstance(value, Symbol):
            return value
        if isinstance(value, np.generic):
            return self.make("const", (), value.dtype, value.item())
        if isinstance(value, bool):
            return self.make("const", (), BOOL, value)
        if isinstance(value, int | float | complex):
            return self.make("const", (), type(value), value)
        raise NumgradTypeError(f"a formula cannot use {type(value).__name__} {value!r}")

    def cast(self, x: Symbol, dtype: np.dtype) -> Symbol:
        if isinstance(x.dtype, np.dtype) and x.dtype == dtype:  # ``float`` equals float64 too
            return x
        if x.op == "const":
            return self.make("const", (), dtype, x.detail)
        return self.make("cast", (x,), dtype)

    def ufunc(self, ufunc: np.ufunc, *inputs: Any) -> Symbol:
        symbols = [self.lift(x) for x in inputs]
        if all(s.op == "const" and isinstance(s.dtype, type) for s in symbols):
            return self.lift(ufunc(*(s.detail for s in symbols)).item())
        raised = ufunc is np.power and symbols[1].op == "const"
        loop, out = resolve(ufunc, [s.dtype for s in symbols])
        if raised and symbols[1].detail == 2:
            return self.ufunc(np.square, self.cast(symbols[0], out))
        if raised and out.kind == "f" and symbols[1].detail in _POWERS:
            return self._power(self.cast(symbols[0], out), symbols[1].detail)
        return self.call(ufunc.__name__, symbols, loop, out)

    def _power(self, x: Any, exponent: float) -> Symbol:
        """A power by products and a square root, right to 4 units in the last place.

        It has the special values of C99's ``pow``, and takes 0.05 of its time in loops that are
        not vectorised.
        """
        size, halves = abs(exponent), exponent % 1 != 0
        base = x + 0.0 if halves else x  # powers of -0.0 that are not whole are those of 0.0
        factor = 1 / base if exponent < 0 else base
        whole = factor * factor if size >= 2 else factor
        if not halves:
            return whole if size <= 2 else whole * (factor if size == 3 else whole)
        root: Any = self.ufunc(np.sqrt, base)
        if size == 0.5:
            result = root if exponent > 0 else 1 / root
        else:
            result = whole * root if exponent > 0 else whole / root
        return self.where(x == -np.inf, np.inf if exponent > 0 else 0.0, result)

    def call(
        self, name: str, inputs: Sequence[Any], loop: Sequence[np.dtype], out: np.dtype
    ) -> Symbol:
        """Apply the scalar function ``name`` to operands converted to the dtypes ``loop``."""
        symbols = [self.cast(self.lift(x), d) for x, d in zip(inputs, loop, strict=True)]
        if name in ("conjugate", "real") and out.kind != "c" and loop[0].kind != "c":
            return symbols[0]
        if name == "imag" and loop[0].kind != "c":
            return self.make("const", (), out, 0)
        return self.make(name, tuple(symbols), out)

    def real(self, x: Any) -> Symbol:
        x = self.lift(x)
        return self.call("real", [x], [x.dtype], real_dtype(x.dtype))

    def imag(self, x: Any) -> Symbol:
        x = self.lift(x)
        return self.call("imag", [x], [x.dtype], real_dtype(x.dtype))

    def where(self, condition: Any, a: Any, b: Any) -> Symbol:
        condition, a, b = (self.lift(v) for v in (condition, a, b))
        _, out = resolve(np.add, [v.dtype for v in (a, b)]) if a.dtype != b.dtype else ((), a.dtype)
        if isinstance(out, type):
            out = np.dtype(out)
        if isinstance(a.dtype, np.dtype) and a.dtype == b.dtype == BOOL:
            out = BOOL
        return self.make(
            "where", (self.cast(condition, BOOL), self.cast(a, out), self.cast(b, out)), out
        )

    def function(self, func: Callable, args: tuple, kwargs: dict) -> Symbol:
        if func is np.where:
            return self.where(*args)
        if func is np.real:
            return self.real(*args)
        if func is np.imag:
            return self.imag(*args)
        if func is np.angle and len(args) == 1 and not kwargs:
            return self.ufunc(np.arctan2, self.imag(*args), self.real(*args))
        if func in REDUCERS and kwargs.get("keepdims") is True and kwargs.get("axis") is AXIS:
            return self.reduce(REDUCERS[func], *args)
        raise NumgradTypeError(
            f"a formula cannot call np.{func.__name__} this way: it is read on one element; write "
            "it with ufuncs, np.where, np.real, np.imag, np.angle; reductions are written "
            "np.sum(x, axis=axis, keepdims=True)"
        )

    def reduce(self, kind: str, x: Any) -> Symbol:
        x = self.lift(x)
        dtype = x.dtype
        if kind in ("any", "all"):
            x, dtype = self.cast(x, BOOL), BOOL
        elif kind in ("sum", "prod") and dtype.kind in "biu":
            dtype = np.dtype("uint64" if dtype.kind == "u" else "int64")
            x = self.cast(x, dtype)
        return self.make("reduce", (x,), dtype, kind)


class Operand(NamedTuple):
    """An operand or a result of a formula of whole arrays.

    Attributes
    ----------
    axes
        Those that it has, by number; none of a number.
    dtype
        That of a number, where it is another than the arrays'.
    is_index
        Whether it is the index along its axes, which is not handed over.
    """

    axes: tuple[int, ...]
    dtype: str
    is_index: bool

    @classmethod
    def of(cls, text: str, axes: str) -> Operand:
        """The operand that a word of a signature describes."""
        name, _, dtype = text.partition("=")
        _, sign, own = name.partition("#" if "#" in name else ":")
        return cls(tuple([axes.index(a) for a in own]), dtype, sign == "#")


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a number."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def in_order(outputs: Sequence[Symbol], known: Container[Symbol] = ()) -> list[Symbol]:
    """Symbols needed for ``outputs`` that are not ``known``, arguments first."""
    if len(outputs) == 1:
        (symbol,) = outputs
        if symbol in known:
            return []
        if all(a in known for a in symbol.args):
            return [symbol]
    order: list[Symbol] = []
    seen: set[Symbol] = set()
    stack: list[Symbol | None] = [*reversed(outputs)]
    open_: list[Symbol] = []  # whose arguments are on the stack, above a None
    while stack:
        symbol = stack.pop()
        if symbol is None:
            order.append(open_.pop())
        elif symbol not in seen and symbol not in known:
            seen.add(symbol)
            if symbol.args:
                open_.append(symbol)
                stack.append(None)
                stack.extend(reversed(symbol.args))
            else:
                order.append(symbol)
    return order
