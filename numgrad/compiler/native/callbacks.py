"""``scipy.LowLevelCallable`` of native functions; ``native`` is a ``NativeFunction``."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.c_entry import adapter, load_entry, number_parts
from numgrad.codegen.c_library import length_of
from numgrad.compiler.native.program import lasting
from numgrad.errors import NumgradTypeError, NumgradValueError

_NAN = "0x7FF8000000000000"
_INTEGRANDS = {
    "double(double)": ("double %_t0", ("c_double",)),
    "double(double,void*)": ("double %_t0, ptr %_data", ("c_double", "c_void_p")),
    "double(int,double*)": ("i32 %_count, ptr %_t", ("c_int", "c_void_p")),
    "double(int,double*,void*)": (
        "i32 %_count, ptr %_t, ptr %_data",
        ("c_int", "c_void_p", "c_void_p"),
    ),
}
"""Signatures of integrands: parameters in LLVM's language and in those of `ctypes`."""
_FILTER = "int(double*,intptr_t,double*,void*)"


def low_level_function(native: Any, signature: str, rest: Sequence[Any]) -> Any:
    """The function as a ``scipy.LowLevelCallable`` of a signature."""
    from scipy import LowLevelCallable

    form = re.sub(r"\s+", "", signature)
    if form in _INTEGRANDS:
        text, kinds, result = *_integrand(native, form, rest), ctypes.c_double
    elif form == _FILTER:
        text, kinds, result = *_filter(native, rest), ctypes.c_int
    else:
        listed = ", ".join([*_INTEGRANDS, _FILTER])
        raise NumgradValueError(
            f"low_level_callable: no callback has the signature {signature!r}; one of {listed}"
        )
    address = load_entry(text)
    types = [getattr(ctypes, kind) for kind in kinds]
    function = ctypes.CFUNCTYPE(result, *types)(address)
    spelling = form.replace("*", " *").replace("(", " (", 1).replace(",", ", ")  # as SciPy has it
    return LowLevelCallable(function, signature=spelling)


def _refuse(reason: str) -> NumgradTypeError:
    return NumgradTypeError(f"low_level_callable: {reason}")


def _check_result(native: Any) -> None:
    (output, *more) = native.outputs or [None]
    if output is None or more or output.shape is not None or output.dtype != np.float64:
        listed = ", ".join(f"{o.path} of {o.dtype}" for o in native.outputs) or "nothing"
        raise _refuse(f"a callback returns one float64 number, the function {listed}")


def _integrand(native: Any, form: str, rest: Sequence[Any]) -> tuple[str, tuple[str, ...]]:
    """The text of an integrand, whose first inputs are what is integrated over."""
    _check_result(native)
    parameters, kinds = _INTEGRANDS[form]
    several = "count" in parameters
    free = len(native.inputs) - len(rest)
    if free < 1 or (free > 1 and not several):
        raise _refuse(
            f"{len(rest)} values for the {len(native.inputs)} inputs of the function, of which "
            f"{form} leaves {'all but some' if several else 'all but one'}"
        )
    lines = _memory(f"icmp eq i32 %_count, {free}" if several else None, f"ret double {_NAN}")
    for k, port in enumerate(native.inputs[:free]):
        if port.shape is not None or port.dtype != np.float64:
            raise _refuse(f"{port.path} is no float64 number, as {form} has")
        if several:
            lines += [
                f"  %_place{k} = getelementptr inbounds double, ptr %_t, i64 {k}",
                f"  %{port.name} = load double, ptr %_place{k}",
            ]
        else:
            lines.append(f"  %{port.name} = fadd double %_t0, -0.0")
    lines += _constants(native, free, rest, {})
    end = [
        "  %_made = load double, ptr %_value",
        f"  %_out = select i1 %_ok, double %_made, double {_NAN}",
        "  ret double %_out",
    ]
    return _adapter(native, lines, f"define double @native({parameters}) {{", end), kinds


def _filter(native: Any, rest: Sequence[Any]) -> tuple[str, tuple[str, ...]]:
    """The text of a filter, whose first input is the array of a window."""
    _check_result(native)
    port = native.inputs[0]
    if len(rest) != len(native.inputs) - 1 or len(port.shape or ()) != 1:
        raise _refuse("a filter has an array of one axis, and values for all other inputs")
    if port.dtype != np.float64:
        raise _refuse(f"{port.path} is of {port.dtype}, and windows are of float64")
    (extent,), places = port.shape, native.about["lengths"]
    own, lengths = [name for name, (number, _) in places.items() if number == 0], {}
    for other, array in zip(
        native.inputs[1:], native.checked(rest, native.inputs[1:]), strict=True
    ):
        for text, length in zip(other.shape or (), array.shape, strict=True):
            if text in own:  # which decides how large a window is
                lengths[own.pop()] = length
    size = None if own else length_of(extent, lengths)
    lines = _memory(None if size is None else f"icmp eq i64 %_size, {size}", "ret i32 0")
    lines.append(f"  %{port.name} = getelementptr i8, ptr %_window, i64 0")
    for name, (number, _) in places.items():
        if number == 0:
            lines.append(f"  %{name} = add i64 %_size, 0")
    lines += _constants(native, 1, rest, lengths)
    end = [
        "  %_made = load double, ptr %_value",
        "  store double %_made, ptr %_result",
        "  %_out = zext i1 %_ok to i32",
        "  ret i32 %_out",
    ]
    head = "define i32 @native(ptr %_window, i64 %_size, ptr %_result, ptr %_data) {"
    return _adapter(native, lines, head, end), ("c_void_p", "c_ssize_t", "c_void_p", "c_void_p")


def _memory(condition: str | None, otherwise: str) -> list[str]:
    """Memory for the result; before it, what is returned unless a condition holds."""
    lines = ["  %_value = alloca double"]
    if condition is not None:
        lines += [
            f"  %_fits = {condition}",
            "  br i1 %_fits, label %_go, label %_leave",
            "_leave:",
            f"  {otherwise}",
            "_go:",
        ]
    return lines


def _constants(native: Any, first: int, rest: Sequence[Any], lengths: dict[str, int]) -> list[str]:
    """Lines that make the arguments for inputs from ``first`` on, of given values."""
    lines = []
    ports = native.inputs[first:]
    arrays = native.checked(rest, ports)
    for name, (number, axis) in native.about["lengths"].items():
        if number >= first:
            lengths[name] = arrays[number - first].shape[axis]
            lines.append(f"  %{name} = add i64 {lengths[name]}, 0")
    for port, array in zip(ports, arrays, strict=True):
        expected = port.shape_for(lengths)
        if array.shape != expected:
            raise NumgradValueError(
                f"low_level_callable: {port.path} has shape {array.shape}, expected {expected}"
            )
        if port.shape is not None:
            lines.append(f"  %{port.name} = inttoptr i64 {lasting(array)} to ptr")
            continue
        parts = number_parts(array[()], port.dtype)
        ends = ("_real", "_imag") if len(parts) == 2 else ("",)
        for end, (kind, value) in zip(ends, parts, strict=True):
            place = f"%_c_{port.name}{end}"
            lines += [
                f"  {place} = alloca {kind}",
                f"  store {kind} {value}, ptr {place}",
                f"  %{port.name}{end} = load {kind}, ptr {place}",
            ]
    return lines


def _adapter(native: Any, lines: list[str], head: str, end: Sequence[str]) -> str:
    (output,) = native.outputs
    lines = [*lines, f"  %{output.name} = getelementptr i8, ptr %_value, i64 0"]
    return adapter(native.address, native.program.arguments, lines, head, end)
