"""C entries as functions that Numba's compiled code calls.

Note [Calls from Numba]
-----------------------
An intrinsic makes the call itself: it takes the addresses of arrays from their structures and gives
numbers that the entry writes a place on the stack, so a call costs what one between two C functions
does. The address goes into the code of the caller, which therefore cannot be kept on disk; Numba
says so of dynamic addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.c_library import MESSAGES, CParameter, ExportedFunction
from numgrad.codegen.dtypes import type_name
from numgrad.codegen.native.signature import llvm_type


def numba_function(
    function: ExportedFunction, leaves: Sequence[tuple[bool, Any]], *, into: bool
) -> Any:
    """A function for Numba around a C entry: Note [Calls from Numba].

    ``leaves`` says which leaves of the results are constants, and which. With ``into`` it takes the
    arrays of results, after the inputs.
    """
    from numba import njit

    name, address, arguments = function.name, function.address, function.arguments
    given = [a for a in arguments if a.role in ("array", "inout", "number")]
    results = [a for a in arguments if a.role == "result"]
    last = ["workspace"] if any(a.role == "workspace" for a in arguments) else []

    space: dict[str, Any] = {"_np": np, "_invoke": _invocation(name, address, arguments)}
    body = []
    for a in (*given, *(results if into else ())):
        if a.is_pointer and a.rank:
            space[f"_as_{a.name}"] = _as_argument(name, a)
            body.append(f"{a.name} = _as_{a.name}({a.name})")
        elif a.dtype.kind in "iu":
            space[f"_as_{a.name}"] = _as_integer(name, a)
            body.append(f"{a.name} = _as_{a.name}({a.name})")
    for length, (number, axis) in function.about["lengths"].items():
        body.append(f"{length} = {given[number].name}.shape[{axis}]")
    for argument, port in zip(given, function.inputs, strict=True):
        for axis, expected in enumerate(port.shape or ()):
            body += [
                f"if {argument.name}.shape[{axis}] != {expected}:",
                f"    raise ValueError('{name}: {argument.name} has another length along axis "
                f"{axis} than the example, or than other arrays')",
            ]
    own = []
    for result in results if into else ():
        for a in given:
            if result.rank and a.rank and (result.dtype == a.dtype):
                body += [
                    f"if {result.name}.size > 0 and {result.name}.ctypes.data == "
                    f"{a.name}.ctypes.data:",
                    f"    raise ValueError('{name}: {result.name} is the memory of {a.name}, which "
                    "only a donated argument of ng.jit (donate=...) may be')",
                ]
    for argument, port in zip(results, function.outputs, strict=True):
        extents = port.shape
        if extents is None:
            continue
        if into:
            own.append(argument.name)
            for axis, expected in enumerate(extents):
                body += [
                    f"if {argument.name}.shape[{axis}] != {expected}:",
                    f"    raise ValueError('{name}: {argument.name} has the wrong length along "
                    f"axis {axis}')",
                ]
        else:
            dtype = "bool_" if argument.dtype.kind == "b" else argument.dtype.name
            body.append(f"{argument.name} = _np.empty(({', '.join(extents)},), _np.{dtype})")
    passed = [a.name for a in arguments if a.role != "result" or a.rank]
    body.append(f"_out = _invoke({', '.join(passed)})")
    for status, message in MESSAGES.items():
        error = "ValueError" if status == 1 else "RuntimeError"  # of lengths
        body += [f"if _out[0] == {status}:", f"    raise {error}('{name}: {message}')"]
    numbers = iter(range(1, len(results) + 1))
    texts = iter([a.name if a.rank else f"_out[{next(numbers)}]" for a in results])
    returned = []
    for k, (is_constant, value) in enumerate(leaves):
        if is_constant:
            space[f"_c{k}"] = value
        text = f"_c{k}" if is_constant else next(texts)
        if not into or text.startswith("_out"):
            returned.append(text)
    whole = f"({', '.join(returned)})" if returned else "None"
    body.append(f"return {returned[0] if len(returned) == 1 else whole}")
    head = ", ".join([*(a.name for a in given), *own, *last])
    source = "\n".join([f"def {name}({head}):", *("    " + line for line in body)])
    exec(source, space)
    return njit(nogil=True)(space[name])


def _as_argument(name: str, argument: CParameter) -> Any:
    """A function of Numba that copies an array that is not contiguous, and refuses any other."""
    from numba import types
    from numba.core.errors import TypingError
    from numba.extending import overload

    kind = getattr(types, type_name(argument.dtype))

    def given(array):  # Numba compares these signatures with that of the lambdas
        return np.ascontiguousarray(array)

    @overload(given)
    def _of_layout(array):
        is_array = isinstance(array, types.Array)
        if not is_array or array.ndim != argument.rank or array.dtype != kind:
            raise TypingError(
                f"{name}: {argument.name} is {array}, expected an array of {kind} with "
                f"{argument.rank} axes"
            )
        if argument.role != "array" and (array.layout != "C" or not array.mutable):
            raise TypingError(f"{name}: {argument.name} is no contiguous array to write to")
        if array.layout != "C":
            return lambda array: np.ascontiguousarray(array)
        return lambda array: array

    return given


def _as_integer(name: str, argument: CParameter) -> Any:
    """A function of Numba that converts an integer, which has to fit."""
    from numba import types
    from numba.core.errors import TypingError
    from numba.extending import overload

    kind = getattr(types, type_name(argument.dtype))
    message = f"{name}: {argument.name} does not fit in {argument.dtype}"

    def given(number):
        return number

    @overload(given)
    def _of_type(number):
        if isinstance(number, types.Boolean):
            return lambda number: kind(number)
        if not isinstance(number, types.Integer):
            raise TypingError(f"{name}: {argument.name} is {number}, expected {kind}")
        if number == kind:
            return lambda number: number

        def converted(number):
            result = kind(number)
            if result != number:
                raise ValueError(message)
            return result

        return converted

    return given


def _invocation(name: str, address: int, arguments: Sequence[CParameter]) -> Any:
    """An intrinsic of Numba: the status of a call, and the numbers that it writes."""
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.core.errors import TypingError
    from numba.extending import intrinsic

    passed = [a for a in arguments if a.role != "result" or a.rank]
    numbers = [a for a in arguments if a.role == "result" and not a.rank]

    def check(argument: CParameter, given: Any) -> None:
        """Refuse what is no number that the argument holds."""
        if argument.role == "workspace":
            if given != types.none and not (
                isinstance(given, types.Array)
                and (given.ndim, given.layout, given.mutable) == (1, "C", True)
            ):
                raise TypingError(
                    f"{name}: workspace is {given}, expected a contiguous array of one axis to "
                    "take memory from, or None"
                )
            return
        if argument.is_pointer:
            return
        kind = getattr(types, type_name(argument.dtype))
        ranks = {types.Boolean: 0, types.Integer: 1, types.Float: 2, types.Complex: 3}
        rank = next((r for t, r in ranks.items() if isinstance(given, t)), 4)
        if rank > {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[argument.dtype.kind]:
            raise TypingError(f"{name}: {argument.name} is {given}, expected {kind}")

    def ir_type(argument: CParameter) -> Any:
        word = llvm_type(argument.dtype)
        if word in ("float", "double"):
            return ir.FloatType() if word == "float" else ir.DoubleType()
        return ir.IntType(int(word[1:]))

    def parts(
        context: Any, builder: Any, argument: CParameter, given: Any, value: Any
    ) -> list[Any]:
        """A number as it is passed to C."""
        kind = getattr(types, type_name(argument.dtype))
        value = context.cast(builder, value, given, kind)
        if argument.dtype.kind == "c":
            pair = context.make_complex(builder, kind, value=value)
            return [pair.real, pair.imag]
        return [builder.zext(value, ir.IntType(8))] if argument.dtype.kind == "b" else [value]

    def memory_of(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        """The address of a workspace of an array's memory; null for None."""
        if kind == types.none:
            return ir.Constant(cgutils.voidptr_t, None)
        array, wide = context.make_array(kind)(context, builder, value), ir.IntType(64)
        size = builder.mul(array.nitems, array.itemsize)
        place = cgutils.alloca_once(builder, wide, size=3)
        numbers = builder.ptrtoint(array.data, wide), size, ir.Constant(wide, 0)
        for k, number in enumerate(numbers):
            builder.store(number, cgutils.gep_inbounds(builder, place, k))
        return builder.bitcast(place, cgutils.voidptr_t)

    def call(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        given = iter(zip(passed, signature.args, values, strict=True))
        operands, places = [], []
        for argument in arguments:
            if argument.role == "result" and not argument.rank:
                count = 2 if argument.dtype.kind == "c" else 1
                place = cgutils.alloca_once(builder, ir_type(argument), size=count)
                places.append(place)
                operands.append(builder.bitcast(place, cgutils.voidptr_t))
                continue
            _, kind, value = next(given)
            if argument.role == "workspace":
                operands.append(memory_of(context, builder, kind, value))
            elif argument.is_pointer:
                array = context.make_array(kind)(context, builder, value)
                operands.append(builder.bitcast(array.data, cgutils.voidptr_t))
            else:
                operands += parts(context, builder, argument, kind, value)
        function = ir.FunctionType(ir.IntType(32), [o.type for o in operands])
        place = context.add_dynamic_addr(builder, address, info=f"numgrad_{name}")
        pointer = builder.bitcast(place, function.as_pointer())
        results = [builder.call(pointer, operands)]
        for argument, place in zip(numbers, places, strict=True):
            value = builder.load(place)
            if argument.dtype.kind == "c":
                kind = getattr(types, type_name(argument.dtype))
                pair = context.make_complex(builder, kind)
                pair.real = value
                pair.imag = builder.load(cgutils.gep_inbounds(builder, place, 1))
                value = pair._getvalue()
            elif argument.dtype.kind == "b":
                value = builder.icmp_unsigned("!=", value, ir.Constant(value.type, 0))
            results.append(value)
        return context.make_tuple(builder, signature.return_type, results)

    def typed(given: Sequence[Any]) -> Any:
        for argument, kind in zip(passed, given, strict=True):
            check(argument, kind)
        kinds = [types.int32, *(getattr(types, type_name(a.dtype)) for a in numbers)]
        return types.Tuple(kinds)(*given), call

    names = ", ".join(f"a{k}" for k in range(len(passed)))
    source = f"def invoke(typingctx, {names}):\n    return typed(({names},))\n"
    if not passed:
        source = "def invoke(typingctx):\n    return typed(())\n"
    space: dict[str, Any] = {"typed": typed}
    exec(source, space)
    return intrinsic(space["invoke"])
