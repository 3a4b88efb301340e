"""``scipy.LowLevelCallable`` of native functions, by NumPy and ctypes.

Note [Callbacks]
----------------
SciPy gives a callback numbers or a window, and a pointer to data. An adapter, in machine code,
calls the C entry with these and with what the data hold for its other arguments: a slot of eight
bytes says how many numbers are given, or how large a window is, one follows for each argument
of the entry that is no result. An exported library has adapters of its functions.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.c_library import ExportedFunction, length_of
from numgrad.errors import NumgradTypeError, NumgradValueError

_ONE = ("one", ctypes.c_double, (ctypes.c_double, ctypes.c_void_p))
_SEVERAL = ("several", ctypes.c_double, (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p))
_POINTER = ctypes.c_void_p
_FORMS: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "double(double)": _ONE,
    "double(double,void*)": _ONE,
    "double(int,double*)": _SEVERAL,
    "double(int,double*,void*)": _SEVERAL,
    "int(double*,intptr_t,double*,void*)": (
        "filter",
        ctypes.c_int,
        (_POINTER, ctypes.c_ssize_t, _POINTER, _POINTER),
    ),
}
"""Signatures of callbacks: adapters, and their types in ctypes."""


def forms(function: ExportedFunction) -> list[str]:
    """The adapters that suit a function."""
    if _misfit(function) or not function.inputs:
        return []
    first = function.inputs[0]
    if first.dtype != np.float64:
        return []
    if first.shape is None:
        return ["one", "several"]
    return ["filter"] if len(first.shape) == 1 else []


def low_level_function(
    function: ExportedFunction,
    signature: str,
    rest: Sequence[Any],
    address_of: Callable[[str], int],
) -> Any:
    """The function as a ``scipy.LowLevelCallable`` of a signature.

    ``address_of`` gives the address of an adapter.
    """
    from scipy import LowLevelCallable

    form = re.sub(r"\s+", "", signature) if isinstance(signature, str) else ""
    if form not in _FORMS:
        raise NumgradValueError(
            f"low_level_callable: no callback has the signature {signature!r}; one of "
            f"{', '.join(_FORMS)}"
        )
    misfit = _misfit(function)
    if misfit:
        raise _refuse(misfit)
    adapter, result, types = _FORMS[form]
    if adapter == "filter":
        given, arrays = _of_window(function, rest)
    else:
        given, arrays = _of_numbers(function, form, adapter, rest)
    data = _data(function, given, arrays)
    address = address_of(adapter)
    pointer = ctypes.c_void_p(data.ctypes.data)
    pointer.arrays = data, arrays  # pyright: ignore  # which live as long as the callback
    if "void*" not in form:
        form = form.replace(")", ",void*)")
    spelling = form.replace("*", " *").replace("(", " (", 1).replace(",", ", ")  # as SciPy has it
    code = ctypes.CFUNCTYPE(result, *types)(address)
    return LowLevelCallable(code, user_data=pointer, signature=spelling)


def _refuse(reason: str) -> NumgradTypeError:
    return NumgradTypeError(f"low_level_callable: {reason}")


def _misfit(function: ExportedFunction) -> str:
    """Why results are not those of a callback."""
    (output, *more) = function.outputs or [None]
    if output is None or more or output.shape is not None or output.dtype != np.float64:
        listed = ", ".join(f"{o.path} of {o.dtype}" for o in function.outputs) or "nothing"
        return f"a callback returns one float64 number, the function {listed}"
    if function.overwritten:
        return (
            f"{', '.join(function.overwritten)} is overwritten, and no callback has memory for it"
        )
    return ""


def _of_numbers(
    function: ExportedFunction, form: str, adapter: str, rest: Sequence[Any]
) -> tuple[int, list[Any]]:
    """How many numbers are given, and arrays for the inputs after them."""
    free = len(function.inputs) - len(rest)
    if free < 1 or (free > 1 and adapter == "one"):
        raise _refuse(
            f"{len(rest)} values for the {len(function.inputs)} inputs of the function, of which "
            f"{form} leaves {'all but one' if adapter == 'one' else 'all but some'}"
        )
    for port in function.inputs[:free]:
        if port.shape is not None or port.dtype != np.float64:
            raise _refuse(f"{port.path} is no float64 number, as {form} has")
    arrays = function.checked(rest, function.inputs[free:])
    return free, [*[np.zeros(())] * free, *arrays]


def _of_window(function: ExportedFunction, rest: Sequence[Any]) -> tuple[int, list[Any]]:
    """The size of a window, -1 if it may have any, and arrays for all inputs."""
    port = function.inputs[0] if function.inputs else None
    if port is None or len(rest) != len(function.inputs) - 1 or len(port.shape or ()) != 1:
        raise _refuse("a filter has an array of one axis, and values for all other inputs")
    if port.dtype != np.float64:
        raise _refuse(f"{port.path} is of {port.dtype}, and windows are of float64")
    arrays = function.checked(rest, function.inputs[1:])
    own = [name for name, (number, _) in function.about["lengths"].items() if number == 0]
    lengths: dict[str, int] = {}
    for other, array in zip(function.inputs[1:], arrays, strict=True):
        for text, length in zip(other.shape or (), array.shape, strict=True):
            if text in own:  # which decides how large a window is
                lengths[own.pop()] = length
    assert port.shape is not None
    size = -1 if own else length_of(port.shape[0], lengths)
    return size, [np.zeros(max(size, 2)), *arrays]


def _data(function: ExportedFunction, given: int, arrays: list[Any]) -> np.ndarray:
    """What an adapter reads: Note [Callbacks]. Arrays are copied in place."""
    arrays[:] = [array.copy() for array in arrays]
    lengths = {
        name: arrays[number].shape[axis]
        for name, (number, axis) in function.about["lengths"].items()
    }
    for port, array in zip(function.inputs, arrays, strict=True):
        if given >= 0 or port is not function.inputs[0]:
            expected = port.shape_for(lengths)
            if array.shape != expected:
                raise NumgradValueError(
                    f"low_level_callable: {port.path} has shape {array.shape}, expected {expected}"
                )
    slots, inputs = [np.int64(given)], iter(arrays)
    for argument in function.arguments:
        if argument.role == "length":
            slots.append(np.int64(lengths[argument.name]))
        elif argument.role == "array":
            slots.append(np.int64(next(inputs).ctypes.data))
        elif argument.role == "number":
            value = next(inputs)[()]
            slots += [value.real, value.imag] if argument.dtype.kind == "c" else [value]
    whole = b"".join([slot.tobytes().ljust(8, b"\0") for slot in slots])
    return np.frombuffer(whole, np.int64).copy()
