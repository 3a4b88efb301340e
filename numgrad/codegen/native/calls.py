"""Calls: of types and built-in functions, of the library, of the text's own functions.

Note [Functions]
----------------
A function of the library is compiled once for each combination of types, alone or a lane each, and
called; small ones, and those that library functions call, are written where they are called. A
function with branches is never written in lanes: its vector form calls it for one lane after the
other.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from numgrad.codegen.intrinsics import grow, growing
from numgrad.codegen.linker import external_symbol
from numgrad.codegen.native import arithmetic as do, memory
from numgrad.codegen.native.expressions import ExpressionWriter
from numgrad.codegen.native.instructions import NUMPY, instruction
from numgrad.codegen.native.ir import FunctionWriter, Unsupported
from numgrad.codegen.native.source import THREADS, SourceFunction, library_function
from numgrad.codegen.native.values import (
    BOOL,
    FLOAT64,
    INT64,
    Array,
    Known,
    Lanes,
    NotVector,
    Number,
    Value,
    in_lanes,
    integer,
    kind_of,
    may_overlap,
    memory_type,
    scalar_type,
    vector_type,
)
from numgrad.codegen.native.workspace import WITH_WORKSPACE

SMALL = 60
"""Nodes of syntax up to which a function is written where it is called."""
LARGE = 330
"""The same with the functions that it calls."""
OFTEN = 8
"""Places of a module where one is written so; further ones call it."""

_PLAIN: dict[Any, Any] = {}
"""Functions that were found to be instructions, and what writes these."""


class CallWriter(ExpressionWriter):
    """Translates calls."""

    def inlined_body(self, function: SourceFunction) -> CallWriter:
        """A writer for a function that is written here."""
        raise NotImplementedError

    def separate_body(self, f: FunctionWriter, function: SourceFunction) -> CallWriter:
        """A writer for a function of the module."""
        raise NotImplementedError

    def do(self, statement: ast.stmt) -> None:
        """Translate a statement."""
        raise NotImplementedError

    def translated(self, arguments: list[Value]) -> Value:
        """Translate the function, given its arguments; the result of one that is inlined."""
        raise NotImplementedError

    def finish(self) -> tuple[str, Any]:
        """End the function: its result's type, and what it returns."""
        raise NotImplementedError

    def leave(self, value: Value, *, nothing: bool = False) -> None:
        """Return from the function, giving back its memory."""
        raise NotImplementedError

    def allocate(self, arguments: list[Value], *, zero: bool) -> Array:
        """An array that lives until the function returns."""
        raise NotImplementedError

    def growing_call(self, longer: bool, node: ast.Call) -> Value:
        """A growing vector is made, or gets room."""
        raise NotImplementedError

    def _of_Call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
            owner = self.value(node.func.value)
            if isinstance(owner, Array):
                return self._reshape(owner, [self.number(a) for a in node.args])
        called = self.value(node.func)
        if isinstance(called, Known) and (called.value is growing or called.value is grow):
            return self.growing_call(called.value is grow, node)
        if node.keywords or not isinstance(called, Known):
            raise Unsupported("a call of something else than a function by position")
        return self.call(called.value, [self.value(a) for a in node.args])

    def _reshape(self, array: Array, shape: list[Number]) -> Array:
        if array.strides is not None:
            raise Unsupported("reshape of an array with strides")
        lengths = tuple(do.cast(self.f, n, INT64) for n in shape)
        return Array(array.dtype, array.data, lengths, None, array.root)

    def call(self, function: Any, arguments: list[Value]) -> Value:
        """The result of a function."""
        plain = _PLAIN.get(function)
        if plain is not None:
            return plain(self, *arguments)
        if isinstance(function, np.dtype) or (
            isinstance(function, type) and issubclass(function, np.generic)
        ):
            return do.cast(self.f, self.as_number(*arguments), np.dtype(function))
        if isinstance(function, SourceFunction):
            return self.call_function(function, arguments)
        if function is THREADS:
            return self._thread_limit()
        if function in _BUILTINS:
            return _BUILTINS[function](self, *arguments)
        if function in (np.empty, np.zeros):
            return self.allocate(arguments, zero=function is np.zeros)
        if function is np.empty_like and isinstance(arguments[0], Array):
            return self.allocate([arguments[0].shape, Known(arguments[0].dtype)], zero=False)
        if isinstance(function, np.ufunc | type(np.sum)) and function.__name__ in NUMPY:
            return NUMPY[function.__name__](self, *map(self.as_number, arguments))
        return self._call_library(function, arguments)

    def _call_library(self, function: Any, arguments: list[Value]) -> Value:
        name = getattr(function, "__name__", "") or getattr(function, "_name", "")
        if hasattr(function, "py_func"):
            if name == "touch":
                return None
            if not self.has_fma:
                function = getattr(function, "without_fma", function)
            contract = getattr(function, "contract", False)
            return self.call_function(library_function(function.py_func, contract), arguments)
        if hasattr(function, "symbol"):
            return self._call_external(function, arguments)
        if getattr(function, "external", None) is not None:
            external = function.external(name, self.dtype_of(arguments[0]).name)
            return self._call_kernel(external, arguments[1:], checked=function.allocates)
        translate = instruction(function, name)
        if translate is None:
            raise Unsupported(f"a call of {name or type(function).__name__}")
        _PLAIN[function] = translate
        return translate(self, *arguments)

    def _thread_limit(self) -> Number:
        name = self.f.module.declare("numgrad_thread_limit", "i64", [])
        return Number(INT64, (self.f.value(f"call i64 {name}()"),))

    def _call_kernel(self, external: str, arguments: list[Value], *, checked: bool) -> None:
        """Call another kernel by Numba's calling convention, and fail with it if it is checked."""
        if self.lanes is not None:
            raise NotVector("a call of a kernel")
        numbers = [do.cast(self.f, self.as_number(x), INT64) for x in arguments]
        kinds = ["ptr", "ptr", *["i64"] * len(numbers)]
        symbol = external_symbol(external) + WITH_WORKSPACE * self.f.module.workspace
        name = self.f.module.declare(symbol, "i32", kinds)
        operands = "".join(f", i64 {x.part}" for x in numbers)
        nothing = self.f.slot("ptr")
        second = (self.f.module.workspace and self.f.failed) or nothing
        status = self.f.value(f"call i32 {name}(ptr {nothing}, ptr {second}{operands})")
        if checked:
            if not self.f.failed:
                raise Unsupported("a call of a kernel that allocates, in a function that does not")
            flag = self.f.pure(f"icmp ne i32 {status}, 0")
            self.f.effect(f"store i8 {self.f.pure(f'zext i1 {flag} to i8')}, ptr {self.f.failed}")
            leave_if_failed(self)

    def _call_external(self, function: Any, arguments: list[Value]) -> Value:
        """A native function, by C's calling convention."""
        if self.lanes is not None:
            raise NotVector("a native function")
        if function.symbol == "get_num_threads":
            return self._thread_limit()
        result, _, given = function.signature.partition("(")
        kinds = [np.dtype("int64" if k == "intp" else k) for k in _words(given.rstrip(")"))]
        numbers = [
            do.cast(self.f, self.as_number(x), d) for x, d in zip(arguments, kinds, strict=True)
        ]
        dtype = np.dtype("int64" if result.strip() == "intp" else result.strip())
        kind = scalar_type(dtype)
        # a complex number is passed as its parts are, and returned as a pair
        result = f"{{ {kind}, {kind} }}" if dtype.kind == "c" else kind
        taken = [scalar_type(x.dtype) for x in numbers for _ in x.parts]
        name = self.f.module.declare(function.symbol, result, taken)
        operands = ", ".join(f"{kind_of(x)} {operand}" for x in numbers for operand in x.parts)
        returned = self.f.value(f"call {result} {name}({operands})")
        if dtype.kind != "c":
            return Number(dtype, (returned,))
        parts = [self.f.value(f"extractvalue {result} {returned}, {k}") for k in (0, 1)]
        return Number(dtype, tuple(parts))

    def call_function(self, function: SourceFunction, arguments: list[Value]) -> Value:
        """Call a function of the library or of the text, or write it here."""
        vector = any(isinstance(a, Number) and a.lanes for a in arguments)
        arrays = any(isinstance(a, Array) for a in arguments)
        if self.lanes is not None and (arrays or not function.library):
            raise NotVector("a call with effects")
        straight = function.straight and not function.allocates
        if straight and function.library and (self.function.library or self._is_small(function)):
            return self._inline(function, arguments)
        if any(
            isinstance(a, tuple) or (isinstance(a, Known) and not is_type(a)) for a in arguments
        ):
            if straight and function.library:
                return self._inline(function, arguments)
            raise Unsupported("a function that takes a constant")
        return call(self, function, arguments, lanes=vector and straight)

    def _is_small(self, function: SourceFunction) -> bool:
        """Whether to write a function where the text calls it."""
        if function.size > SMALL or function.whole_size > LARGE:
            return False
        if function.whole_size > SMALL and self.f.module.long:
            return False
        if function.whole_size > SMALL:
            self.f.note_other()  # further places are not like this one
        written = self.f.module.written
        written[function] = written.get(function, 0) + 1
        return function.whole_size <= SMALL or written[function] <= OFTEN

    def _of_IfExp(self, node: ast.IfExp) -> Value:
        operands = _operands(node)
        if not operands or self.function.library or not self.f.module.long:
            return super()._of_IfExp(node)
        return self._outlined(node, operands)

    def _outlined(self, node: ast.IfExp, operands: list[ast.Name]) -> Value:
        """A choice between calls of the library, as a call of a function that makes it."""
        parameters = {name.id: 0 for name in operands}
        for number, name in enumerate(parameters):
            parameters[name] = number
        called = [expression.func.id for expression in (node.test, node.body, node.orelse)]  # pyright: ignore
        counts = [len(expression.args) for expression in (node.test, node.body, node.orelse)]  # pyright: ignore
        key = (*called, *counts, *[parameters[name.id] for name in operands])
        known = self.f.module.outlined
        function = known.get(key)
        if function is None:
            (tree,) = ast.parse(f"def choice({', '.join(parameters)}): pass").body
            assert isinstance(tree, ast.FunctionDef)
            tree.body = [ast.Return(node)]
            function = known[key] = SourceFunction(
                "choice", tree, self.function.look_up, True, self.function.contract
            )
        values = [self.value(ast.Name(name, ast.Load())) for name in parameters]
        vector = any(isinstance(v, Number) and v.lanes for v in values)
        return call(self, function, values, lanes=vector)

    def _inline(self, function: SourceFunction, arguments: list[Value]) -> Value:
        f = self.f
        around, f.contract = f.contract, ""
        try:
            return self.inlined_body(function).translated(arguments)
        finally:
            f.contract = around


def _operands(node: ast.IfExp) -> list[ast.Name]:
    """The operands of a choice between calls by name whose operands all are names, else none."""
    operands: list[ast.Name] = []
    for expr in (node.test, node.body, node.orelse):
        if not isinstance(expr, ast.Call) or not isinstance(expr.func, ast.Name) or expr.keywords:
            return []
        if not all(isinstance(a, ast.Name) for a in expr.args):
            return []
        operands += expr.args  # pyright: ignore
    return operands


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


# -------------------------------------------------------------------------------------- builtins


def _extreme(choose: Any) -> Any:
    def translate(body: CallWriter, *values: Value) -> Number:
        numbers = [body.as_number(v) for v in values]
        extreme = numbers[0]
        for x in numbers[1:]:
            if extreme.dtype.kind not in "iuf" or x.dtype.kind not in "iuf":
                raise Unsupported("an extreme of such numbers")
            dtype = do.common(extreme.dtype, x.dtype)
            extreme = choose(body.f, do.cast(body.f, extreme, dtype), do.cast(body.f, x, dtype))
        return extreme

    return translate


def _abs(body: CallWriter, x: Number) -> Number:
    if x.dtype.kind == "c":
        raise Unsupported("a magnitude")
    return do.absolute(body.f, x)


def _cast_to(dtype: np.dtype) -> Any:
    def translate(body: CallWriter, x: Number) -> Number:
        if dtype == FLOAT64 and x.dtype.kind == "c":
            raise Unsupported("float of a complex number")
        return do.cast(body.f, x, dtype)

    return translate


_BUILTINS: dict[Any, Any] = {
    min: _extreme(memory.smaller),
    max: _extreme(memory.larger),
    abs: _abs,
    bool: _cast_to(BOOL),
    int: _cast_to(INT64),
    float: _cast_to(FLOAT64),
    complex: lambda body, x, y: do.make_complex(body.f, x, y),
    len: lambda body, x: integer(len(x)) if isinstance(x, tuple) else x.shape[0],
}


# --------------------------------------------------------------------------- functions of a module


def is_type(value: Value) -> bool:
    """Whether a value is the type of numbers, of which functions of the module have forms."""
    return isinstance(value, Known) and isinstance(value.value, np.dtype | type)


def flatten(value: Value, f: FunctionWriter) -> list[tuple[str, str]]:
    """The operands, with types, that hand a value over."""
    if isinstance(value, Number):
        value = in_lanes(value, value.lanes, f)
        return [(kind_of(value), p) for p in value.parts]
    if isinstance(value, Array):
        lengths = [*value.shape, *(value.strides or ())]
        return [("ptr", value.data), *(("i64", n.part) for n in lengths)]
    if is_type(value):
        return []
    raise Unsupported("an argument that is no number and no array")


def rebuilt(value: Value, operands: list[str]) -> Value:
    """A value like another one, of other operands, which are taken from a list."""

    def take() -> str:
        return operands.pop(0)

    if isinstance(value, Number):
        return Number(value.dtype, tuple(take() for _ in value.parts), value.lanes)
    if isinstance(value, Known):
        return value
    assert isinstance(value, Array)
    data = take()
    shape = tuple(Number(INT64, (take(),)) for _ in value.shape)
    strides = None
    if value.strides is not None:
        strides = tuple(Number(INT64, (take(),)) for _ in value.strides)
    return Array(value.dtype, data, shape, strides, value.root)


def _key(value: Value) -> Any:
    if isinstance(value, Number):
        return value.dtype, value.lanes
    if isinstance(value, Known):
        return np.dtype(value.value)
    assert isinstance(value, Array)
    return value.dtype, len(value.shape), value.strides is None


def call(
    body: CallWriter, function: SourceFunction, arguments: list[Value], *, lanes: bool
) -> Value:
    """Call a function of the module, which is written when first called so."""
    f, module = body.f, body.f.module
    vector = max((a.lanes for a in arguments if isinstance(a, Number)), default=0)
    if vector and not lanes:
        return _call_each(body, function, arguments, vector)
    roots = [a.root for a in arguments if isinstance(a, Array)]
    shared = tuple(
        tuple((a == b) + may_overlap(a, b) for b in roots) for a in roots
    )  # which arrays may overlap
    key = (function, tuple(map(_key, arguments)), shared, body.has_fma)
    written = module.known_functions.get(key)
    if written is None:
        written = module.known_functions[key] = _write(body, function, arguments, vector)
    name, result, (kinds, several) = written
    if result == "void" and body.lanes is not None:
        raise NotVector("a call with effects")
    operands = [p for a in arguments for p in flatten(a, f)]
    failing = function.allocates or module.check_bounds
    if failing:
        if not f.failed:
            raise Unsupported("a function that allocates")
        operands.append(("ptr", f.failed))
    given = ", ".join(f"{kind} {text}" for kind, text in operands)
    if result == "void":
        f.effect(f"call void @{name}({given})")
        texts = []
    else:
        whole = f.value(f"call {result} @{name}({given})")
        count = sum(2 if dtype.kind == "c" else 1 for dtype, _ in kinds)
        texts = (
            [whole]
            if count == 1
            else [f.pure(f"extractvalue {result} {whole}, {k}") for k in range(count)]
        )
    if failing:
        leave_if_failed(body)
    values = tuple(
        Number(dtype, tuple(texts.pop(0) for _ in range(2 if dtype.kind == "c" else 1)), n)
        for dtype, n in kinds
    )
    if several:
        return values
    return values[0] if values else None


def leave_if_failed(body: CallWriter) -> None:
    """Return if a function that was called failed."""
    f = body.f
    failed, there = f.label("failed"), f.label("there")
    flag = f.value(f"load i8, ptr {f.failed}")
    f.branch(f.value(f"icmp ne i8 {flag}, 0"), failed, there)
    f.begin(failed)
    body.leave(None, nothing=True)
    f.begin(there)


def _write(
    body: CallWriter, function: SourceFunction, arguments: list[Value], vector: int
) -> tuple[str, str, Any]:
    """Write a function of the module."""
    module = body.f.module
    name = module.unique(function.name)
    kinds = [kind for a in arguments for kind, _ in flatten(a, body.f)]
    parameters = [(kind, f"%a{k}") for k, kind in enumerate(kinds)]
    failing = function.allocates or module.check_bounds
    if failing:
        parameters.append(("ptr", "%failed"))
    f = FunctionWriter(module, name, parameters)
    f.failed = "%failed" if failing else ""
    inner = body.separate_body(f, function)
    inner.lanes = Lanes(vector) if vector else None
    operands = [text for _, text in parameters]
    inner.translated([rebuilt(a, operands) for a in arguments])
    result, returned = inner.finish()
    if function.library:
        f.flags = "noinline "
    module.functions.append(f.text(result))
    return name, result, returned


def _call_each(
    body: CallWriter, function: SourceFunction, arguments: list[Value], lanes: int
) -> Value:
    """Call a function for one lane after the other."""
    f = body.f
    given = [in_lanes(a, lanes, f) if isinstance(a, Number) and a.lanes else a for a in arguments]
    places = []
    for a in given:
        if isinstance(a, Number) and a.lanes:
            slots = []
            for p in a.parts:
                wide = vector_type(memory_type(a.dtype), lanes)
                slots.append(f.slot(wide))
                text = f.pure(f"zext {kind_of(a)} {p} to {wide}") if a.dtype.kind == "b" else p
                f.effect(f"store {wide} {text}, ptr {slots[-1]}")
            places.append(slots)
        else:
            places.append(None)
    counter = f.slot("i64")
    f.effect(f"store i64 0, ptr {counter}")
    head, after = f.label("lane"), f.label("after")
    around, body.lanes = body.lanes, None
    with f.repeated(head):
        lane = f.value(f"load i64, ptr {counter}")
        one: list[Value] = []
        for a, slots in zip(given, places, strict=True):
            if slots is None:
                one.append(a)
                continue
            assert isinstance(a, Number)
            parts = []
            for slot in slots:
                kind = memory_type(a.dtype)
                pointer = f.pure(f"getelementptr {kind}, ptr {slot}, i64 {lane}")
                text = f.value(f"load {kind}, ptr {pointer}")
                parts.append(f.pure(f"trunc i8 {text} to i1") if a.dtype.kind == "b" else text)
            one.append(Number(a.dtype, tuple(parts)))
        result = call(body, function, one, lanes=False)
        numbers = flat(result)
        slots = []
        for x in numbers:
            for p in x.parts:
                kind = memory_type(x.dtype)
                slots.append(f.slot(vector_type(kind, lanes)))
                text = f.pure(f"zext i1 {p} to i8") if x.dtype.kind == "b" else p
                pointer = f.pure(f"getelementptr {kind}, ptr {slots[-1]}, i64 {lane}")
                f.effect(f"store {kind} {text}, ptr {pointer}")
        following = f.pure(f"add i64 {lane}, 1")
        f.effect(f"store i64 {following}, ptr {counter}")
        f.branch(f.pure(f"icmp slt i64 {following}, {lanes}"), head, after)
    f.begin(after)
    body.lanes = around
    values = []
    for x in numbers:
        parts = []
        for _ in x.parts:
            wide = vector_type(memory_type(x.dtype), lanes)
            text = f.value(f"load {wide}, ptr {slots.pop(0)}")
            parts.append(
                f.pure(f"trunc {wide} {text} to <{lanes} x i1>") if x.dtype.kind == "b" else text
            )
        values.append(Number(x.dtype, tuple(parts), lanes))
    if isinstance(result, tuple):
        return tuple(values)
    return values[0] if values else None


def flat(value: Value) -> list[Number]:
    """The numbers of a result."""
    if value is None:
        return []
    parts = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(p, Number) for p in parts):
        raise Unsupported("a result that is no number")
    return list(parts)  # pyright: ignore
