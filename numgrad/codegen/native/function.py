"""The body of a function, translated statement by statement."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.native import arithmetic as do, memory
from numgrad.codegen.native.block_pool import declare_memory
from numgrad.codegen.native.calls import CallWriter, flat
from numgrad.codegen.native.expressions import OPERATORS
from numgrad.codegen.native.ir import FunctionWriter, ModuleText, Unsupported
from numgrad.codegen.native.repetition import Repetition
from numgrad.codegen.native.signature import Signature, in_slot, narrow
from numgrad.codegen.native.source import SourceFunction
from numgrad.codegen.native.values import (
    FLOAT64,
    INT64,
    Array,
    GrowingVector,
    NotVector,
    Number,
    Value,
    in_lanes,
    integer,
    kind_of,
    scalar_type,
    vector_type,
)
from numgrad.codegen.native.workspace import CONTEXT_OF_SLOTS, OF_WORKSPACE

ON_STACK = 4096
"""Bytes up to which an array of fixed size lies on the stack."""

LoopWriter = Callable[["FunctionBody", ast.For], None]
"""Translates a loop over a range."""


class FunctionBody(CallWriter):
    """Translates statements.

    Attributes
    ----------
    write_loop
        Translates loops.
    inlined
        Whether this is a function written where it is called.
    parallel
        Whether ``prange`` shares its iterations out to threads.
    result_dtype
        Of a kernel that has a result, which is converted to it; else None.
    """

    def __init__(
        self,
        f: FunctionWriter,
        function: SourceFunction,
        write_loop: LoopWriter,
        *,
        has_fma: bool,
        parallel: bool = False,
    ) -> None:
        super().__init__(f, function, has_fma)
        self.write_loop, self.parallel = write_loop, parallel
        self.variables = function.variables
        self.inlined = False
        self.result: Any = None
        self.result_dtype: np.dtype | None = None
        self.returns: Any = None
        self.owned = 0
        self.loops: list[tuple[str, str]] = []
        self.repetition = Repetition()
        f.contract = " contract" if function.contract else f.contract

    def inlined_body(self, function: SourceFunction) -> FunctionBody:
        body = self.separate_body(self.f, function)
        body.inlined, body.lanes, body.variables = True, self.lanes, frozenset()
        return body

    def separate_body(self, f: FunctionWriter, function: SourceFunction) -> FunctionBody:
        return FunctionBody(f, function, self.write_loop, has_fma=self.has_fma)

    def translated(self, arguments: Sequence[Value]) -> Value:
        for argument, value in zip(self.function.tree.args.args, arguments, strict=True):
            self.set(argument.arg, value)
        self.run(self.function.statements)
        return self.result

    def run(self, statements: Sequence[ast.stmt]) -> None:
        """Translate statements."""
        for statement in statements:
            if self.f.ended:
                break
            form = statement.__dict__.get("form")
            if self.f.module.check_bounds:
                text = ast.unparse(ast.fix_missing_locations(statement))
                first_line = text.partition("\n")[0]
                self.f.statement = f"{self.function.name}: {first_line}"
                form = None
            if form is None or not self.repetition.translate(self, statement, form):
                self.do(statement)

    def do(self, statement: ast.stmt) -> None:
        """Translate a statement."""
        method = getattr(self, f"_do_{type(statement).__name__}", None)
        if method is None:
            raise Unsupported(type(statement).__name__)
        method(statement)

    def _do_Pass(self, node: ast.Pass) -> None:
        pass

    def _do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def _do_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def assign(self, target: ast.expr, value: Value) -> None:
        """Give a value to what stands left of an equals sign."""
        if isinstance(target, ast.Name):
            self.set(target.id, value)
        elif isinstance(target, ast.Tuple):
            if isinstance(value, Array) and len(value.shape) == 1:
                places = [[integer(k)] for k in range(len(target.elts))]
                each = [memory.element_of(self.f, value, position) for position in places]
                value = tuple(memory.read(self.f, element, self.lanes) for element in each)
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise Unsupported("an assignment to several names")
            for each, item in zip(target.elts, value, strict=True):
                self.assign(each, item)
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
            self._fill(target, self.as_number(value))
        elif isinstance(target, ast.Subscript):
            memory.write(self.f, self._element(target), self.as_number(value), self.lanes)
        else:
            raise Unsupported("an assignment to an attribute")

    def _fill(self, target: ast.Subscript, value: Number) -> None:
        """Set all elements of a part of a vector, by a loop."""
        element = self.value(target)
        if self.lanes is not None or self.inlined:
            raise NotVector("a loop")
        if not isinstance(element, Array) or len(element.shape) != 1 or value.lanes:
            raise Unsupported("an assignment to a part of an array")
        around = dict(self.names)
        self.names |= {"@part": element, "@value": value, "@count": element.shape[0]}
        (loop,) = ast.parse("for k in range(count): part[k] = value").body
        for name in (n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id != "range"):
            name.id = f"@{name.id}"
        assert isinstance(loop, ast.For)
        self.write_loop(self, loop)
        self.names = around

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        op = OPERATORS.get(type(node.op))
        if op is None:
            raise Unsupported(type(node.op).__name__)
        operand = self.number(node.value)
        if isinstance(node.target, ast.Name):
            self.set(node.target.id, self.combine(op, self.number(node.target, True), operand))
            return
        if not isinstance(node.target, ast.Subscript):
            raise Unsupported("an assignment to an attribute")
        element = self._element(node.target)
        before = memory.read(self.f, element, self.lanes)
        memory.write(self.f, element, self.combine(op, before, operand), self.lanes)

    def set(self, name: str, value: Value) -> None:
        """Assign to a local name."""
        if name not in self.variables:
            self.names[name] = value
            return
        number = self.as_number(value)
        if number.lanes:
            raise NotVector(f"{name} is read outside of its loop")
        if name not in self.slots:
            parts = tuple(self.f.slot(scalar_type(number.dtype)) for _ in number.parts)
            self.slots[name] = parts, number.dtype
        parts, dtype = self.slots[name]
        if number.dtype != dtype:
            if number.literal is None or do.common(number.dtype, dtype) != dtype:
                raise Unsupported(f"{name} changes from {dtype} to {number.dtype}")
            number = do.cast(self.f, number, dtype)
        kind = scalar_type(dtype)
        for slot, component in zip(parts, number.parts, strict=True):
            self.f.effect(f"store {kind} {component}, ptr {slot}")

    def _do_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.value(node.value)
        if self.inlined:
            self.result = value
            return
        self.leave(value)

    def _do_If(self, node: ast.If) -> None:
        condition = self.truth(self.value(node.test))
        if condition.literal is not None:
            self.run(node.body if condition.literal else node.orelse)
            return
        if condition.lanes or self.inlined:
            raise NotVector("a branch")
        f = self.f
        then, other, after = f.label("then"), f.label("else"), f.label("after")
        f.branch(condition.part, then, other if node.orelse else after)
        self._block(then, node.body, after)
        if node.orelse:
            self._block(other, node.orelse, after)
        f.begin(after)

    def _block(self, label: str, statements: Sequence[ast.stmt], after: str) -> None:
        f = self.f
        f.begin(label)
        names = dict(self.names)
        with f.inside():
            self.run(statements)
            f.jump(after)
        self.names = names

    def _do_While(self, node: ast.While) -> None:
        f = self.f
        if self.lanes is not None or self.inlined:
            raise NotVector("a loop")
        head, body, after = f.label("while"), f.label("body"), f.label("after")
        names = dict(self.names)
        with f.repeated(head):
            condition = self.truth(self.value(node.test))
            f.branch(condition.part, body, after)
            self.loops.append((head, after))
            f.begin(body)
            self.run(node.body)
            f.jump(head)
            self.loops.pop()
        self.names = names
        f.begin(after)

    def _do_Break(self, node: ast.Break) -> None:
        self.f.jump(self.loops[-1][1])

    def _do_Continue(self, node: ast.Continue) -> None:
        self.f.jump(self.loops[-1][0])

    def _do_For(self, node: ast.For) -> None:
        if self.lanes is not None or self.inlined:
            raise NotVector("a loop")
        self.write_loop(self, node)

    # ------------------------------------------------------------------------------------ memory

    def allocate(self, arguments: list[Value], *, zero: bool) -> Array:
        """An array that lives until the function returns."""
        if self.lanes is not None:
            raise NotVector("an array of its own")
        f = self.f
        if not f.failed:
            raise Unsupported("an array of its own")
        shape, *kind = arguments
        lengths = shape if isinstance(shape, tuple) else (shape,)
        numbers = tuple(do.cast(f, self.as_number(n), INT64) for n in lengths)
        dtype = self.dtype_of(kind[0]) if kind else FLOAT64
        total = integer(dtype.itemsize)
        for length in numbers:
            total = do.binary(f, "*", total, length)
        if not zero and total.literal is not None and total.literal <= ON_STACK:
            data = f.slot(f"[{max(total.literal, 1)} x i8], align 64")
            return Array(dtype, data, numbers, None, data)
        slot = f.value(f"getelementptr ptr, ptr %owned, i64 {self.owned}")
        self.owned += 1
        data = f.value(self._memory("ptr", "allocate", slot, total.part, str(int(zero))))
        there = f.label("there")
        f.branch(f.value(f"icmp eq ptr {data}, null"), "missing", there)
        f.fails = f.lacks = True
        f.begin(there)
        return Array(dtype, data, numbers, None, data)

    def _memory(self, result: str, name: str, slot: str, *numbers: str) -> str:
        """A call of the pool, or of the workspace by way of the context of failures."""
        module = self.f.module
        function = f"@{OF_WORKSPACE[name]}" if module.workspace else declare_memory(module, name)
        given = [f"ptr {slot}", *[f"i64 {number}" for number in numbers]]
        given += [f"ptr {self.f.failed}"] if module.workspace else []
        return f"call {result} {function}({', '.join(given)})"

    def growing_call(self, longer: bool, node: ast.Call) -> Value:
        """A growing vector is made, or gets room."""
        f = self.f
        if self.lanes is not None:
            raise NotVector("a growing vector")
        if not f.failed or self.inlined:
            raise Unsupported("a growing vector")
        first = node.args[0]
        if not longer:
            dtype = self.dtype_of(self.value(first))
            data, length = f.slot("ptr", "null"), f.slot("i64", "0")
            self.owned += 1
            return GrowingVector(dtype, data, length, f"{self.owned - 1}")
        vector = self.names.get(first.id) if isinstance(first, ast.Name) else None
        if not isinstance(vector, GrowingVector):
            raise Unsupported("room in what does not grow")
        wanted = do.cast(f, self.number(node.args[1]), INT64)
        now = Number(INT64, (f.value(f"load i64, ptr {vector.length}"),))
        more, there = f.label("more"), f.label("there")
        f.branch(do.compare(f, "<", now, wanted).part, more, there)
        f.begin(more)
        with f.inside():
            twice = do.binary(f, "*", now, integer(2))
            size = do.select(f, do.compare(f, "<", twice, wanted), wanted, twice)
            count, used = (
                do.binary(f, "*", n, integer(vector.dtype.itemsize)).part for n in (size, now)
            )
            owned = f.value(f"getelementptr ptr, ptr %owned, i64 {vector.owned}")
            new = f.value(self._memory("ptr", "grow", owned, count, used))
            enough = f.label("enough")
            f.branch(f.value(f"icmp eq ptr {new}, null"), "missing", enough)
            f.fails = f.lacks = True
            f.begin(enough)
            f.effect(f"store ptr {new}, ptr {vector.data}")
            f.effect(f"store i64 {size.part}, ptr {vector.length}")
            f.jump(there)
        f.begin(there)
        return None

    def leave(self, value: Value, *, nothing: bool = False) -> None:
        """Return from the function, giving back its memory."""
        f = self.f
        if nothing:  # every allocation may lead here, so the memory is given back in one place
            f.fails = True
            f.jump("nothing")
            return
        if self.result_dtype is not None and isinstance(value, Number):
            value = do.cast(f, value, self.result_dtype)
        parts = flat(value)
        kinds = tuple((x.dtype, x.lanes) for x in parts)
        shape = value if isinstance(value, tuple) else None
        if self.returns is None:
            self.returns = (kinds, shape is not None)
        elif self.returns != (kinds, shape is not None):
            raise Unsupported("a result of different types")
        parts = [in_lanes(x, x.lanes, f) for x in parts]
        texts = [(kind_of(x), p) for x in parts for p in x.parts]
        f.effect("@LEAVE@")
        if not texts:
            f.leave("ret void")
        elif len(texts) == 1:
            f.leave(f"ret {texts[0][0]} {texts[0][1]}")
        else:
            whole = "{" + ", ".join(kind for kind, _ in texts) + "}"
            built = "poison"
            for k, (kind, operand) in enumerate(texts):
                built = f.value(f"insertvalue {whole} {built}, {kind} {operand}, {k}")
            f.leave(f"ret {whole} {built}")

    def finish(self) -> tuple[str, Any]:
        """End the function: its result's type, and what it returns."""
        if not self.f.ended:
            self.leave(None)
        if self.f.lacks:  # every allocation may lead here
            self.f.begin("missing")
            self.f.effect(f"store i8 1, ptr {self.f.failed}")
            self.f.jump("nothing")
        if self.f.fails:
            self.f.begin("nothing")
            self.f.effect("@LEAVE@")
            self.f.leave("@NOTHING@")
        kinds, several = self.returns or ((), False)
        texts = [
            vector_type(scalar_type(dtype), lanes)
            for dtype, lanes in kinds
            for _ in range(2 if dtype.kind == "c" else 1)
        ]
        result = "void" if not texts else texts[0]
        if len(texts) > 1:
            result = "{" + ", ".join(texts) + "}"
        f = self.f
        free: list[str] = []
        if self.owned:
            kind = f"[{self.owned + f.module.workspace} x ptr]"
            own = [f"  %owned = alloca {kind}\n  store {kind} zeroinitializer, ptr %owned"]
            if f.module.workspace:
                own.append(
                    f"  call void @workspace.mark(ptr %owned, i64 {self.owned}, ptr {f.failed})"
                )
            f.slots = [*own, *f.slots] if f.failed != "%workspace" else [*f.slots, *own]
            free = [f"  {self._memory('void', 'release', '%owned', str(self.owned))}"]
        lines = []
        for line in f.lines:
            if line == "  @LEAVE@":
                lines += free
            elif line == "  @NOTHING@":
                lines.append("  ret void" if result == "void" else f"  ret {result} poison")
            else:
                lines.append(line)
        f.lines = lines
        return result, (kinds, several)


def write_body(
    module: ModuleText,
    function: SourceFunction,
    signature: Signature,
    write_loop: LoopWriter,
    *,
    has_fma: bool,
    parallel: bool,
) -> None:
    """Write a kernel's function with its arguments taken apart: Note [Flattened arguments]."""
    packed = signature.result is None and not signature.scalar
    kinds = [kind for kind, _, _ in signature.parameters()]
    parameters = [("ptr", "%slots")] if packed else [(k, f"%p{n}") for n, k in enumerate(kinds)]
    if module.workspace and not packed:
        parameters.append(("ptr", "%workspace"))
    f = FunctionWriter(module, "packed" if packed else "body", parameters)
    body = FunctionBody(f, function, write_loop, has_fma=has_fma, parallel=parallel)
    f.failed = "%workspace" if module.workspace else f.slot("i8", "0")
    if module.workspace and packed:
        f.slots.append(CONTEXT_OF_SLOTS)
    body.result_dtype = signature.result
    operands = _from_slots(f, kinds) if packed else [f"%p{n}" for n in range(len(kinds))]
    values: list[Value] = []
    for number, argument in enumerate(signature.arguments):
        if argument.rank is None:
            parts = tuple(operands.pop(0) for _ in range(2 if argument.dtype.kind == "c" else 1))
            if argument.dtype.kind == "b":
                parts = (f.pure(f"icmp ne i8 {parts[0]}, 0"),)
            values.append(Number(argument.dtype, parts))
            continue
        data = operands.pop(0)
        shape = tuple(Number(INT64, (operands.pop(0),)) for _ in range(argument.rank))
        strides = None
        if not argument.contiguous:
            strides = tuple(Number(INT64, (operands.pop(0),)) for _ in range(argument.rank))
        values.append(Array(argument.dtype, data, shape, strides, f"argument {number}"))
    body.translated(values)
    _end(body, signature, operands)
    module.functions.append(f.text("i32", linkage=""))


def _from_slots(f: FunctionWriter, kinds: Sequence[str]) -> list[str]:
    """Arguments of these types, which lie in slots."""
    operands = []
    for k, kind in enumerate(kinds):
        wide = in_slot(kind)
        pointer = f.pure(f"getelementptr inbounds i64, ptr %slots, i64 {k}")
        value = f.value(f"load {wide}, ptr {pointer}")
        operands.append(
            value if kind == wide else f.pure(f"{narrow(wide)} {wide} {value} to {kind}")
        )
    return operands


def _end(body: FunctionBody, signature: Signature, operands: list[str]) -> None:
    """Turn what the kernel returns into a status and a result in memory."""
    f = body.f
    result, (kinds, several) = body.finish()
    status = f"  %status@N@ = load i8, ptr {f.failed}\n  %code@N@ = zext i8 %status@N@ to i32\n"
    lines = []
    for number, line in enumerate(f.lines):
        if not line.startswith("  ret "):
            lines.append(line)
            continue
        text = status.replace("@N@", str(number)) + f"  ret i32 %code{number}"
        returned = line.removeprefix(f"  ret {result} ")
        if signature.result is not None and returned != "poison":
            if several or len(kinds) != 1 or signature.result.kind in "bc":
                raise Unsupported("a result that is no number")
            text = f"  store {scalar_type(signature.result)} {returned}, ptr {operands[0]}\n{text}"
        lines.append(text)
    f.lines = lines
