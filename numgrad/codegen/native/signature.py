"""Signatures: the arguments and the result of a kernel, read from a signature in Numba's words.

Note [Flattened arguments]
--------------------------
A kernel's body is ``define i32 @body(...)``: an array of rank ``r`` is a pointer to its data, ``r``
lengths and, unless it is contiguous, ``r`` strides in bytes; a bool is an ``i8``, a complex number
two floats. Where the kernel has a result, the last argument is the place for it. The body returns
0, or 1 when memory ran out. A kernel with arrays and without result, which most are, is
``define i32 @packed(ptr %slots)`` at once: its arguments lie in slots of eight bytes.
"""

import re
from functools import cache, cached_property

import numpy as np

from numgrad.codegen.dtypes import KERNEL_DTYPES, type_name
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradTypeError

_DTYPES = {type_name(dtype): dtype for dtype in KERNEL_DTYPES}
_FLOATS = {4: "float", 8: "double"}
_TYPE = re.compile(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*(,|$)")


def llvm_type(dtype: np.dtype) -> str:
    """LLVM's name of a number in memory; that of one half of a complex number."""
    if dtype.kind == "c":
        return _FLOATS[dtype.itemsize // 2]
    return _FLOATS[dtype.itemsize] if dtype.kind == "f" else f"i{8 * dtype.itemsize}"


def in_slot(kind: str) -> str:
    """LLVM's name of what a number or pointer is in a slot of eight bytes."""
    return kind if kind == "ptr" else "double" if kind in ("float", "double") else "i64"


def narrow(wide: str) -> str:
    """The instruction that takes a number from a slot to its own type."""
    return "fptrunc" if wide == "double" else "trunc"


@dataclass(frozen=True, slots=True)
class Argument:
    """An array, or a scalar if ``rank`` is None."""

    dtype: np.dtype
    rank: int | None
    contiguous: bool

    def __str__(self) -> str:
        if self.rank is None:
            return f"a {self.dtype} number"
        dimensions = "1 dimension" if self.rank == 1 else f"{self.rank} dimensions"
        contiguous = "contiguous " if self.contiguous else ""
        return f"a {contiguous}{self.dtype} array of {dimensions}"

    def parameters(self) -> list[tuple[str, str]]:
        """The LLVM type and the role of each argument of the body that this one becomes."""
        kind = llvm_type(self.dtype)
        if self.rank is None:
            if self.dtype.kind == "c":
                return [(kind, "real"), (kind, "imag")]
            return [(kind, "value")]
        lengths = [("i64", f"length{axis}") for axis in range(self.rank)]
        strides = [] if self.contiguous else [("i64", f"stride{a}") for a in range(self.rank)]
        return [("ptr", "data"), *lengths, *strides]


@dataclass(frozen=True)
class Signature:
    """The dtype of a kernel's result, if it has one, and its arguments."""

    result: np.dtype | None
    arguments: tuple[Argument, ...]

    @cached_property
    def scalar(self) -> bool:
        """Whether no argument is an array, so that other machine code may call the kernel."""
        return all(argument.rank is None for argument in self.arguments)

    def parameters(self) -> list[tuple[str, int, str]]:
        """The body's parameters: LLVM type, number of the kernel's argument, and role."""
        parameters = [
            (kind, number, role)
            for number, argument in enumerate(self.arguments)
            for kind, role in argument.parameters()
        ]
        if self.result is not None:
            parameters.append(("ptr", len(self.arguments), "result"))
        return parameters


@cache
def parse(text: str) -> Signature:
    """Read a signature such as ``void(float64[::1], float64[:,:], int64)``."""
    result, _, rest = text.strip().partition("(")
    result = result.strip()
    if not rest.endswith(")") or not (result == "void" or result in _DTYPES):
        raise _not_understood(text)
    arguments, rest, start = [], rest[:-1].strip(), 0
    while start < len(rest):
        match = _TYPE.match(rest, start)
        if match is None or match[1] not in _DTYPES:
            raise _not_understood(text)
        arguments.append(_argument(text, _DTYPES[match[1]], match[2]))
        start = match.end()
    return Signature(_DTYPES.get(result), tuple(arguments))


def _argument(text: str, dtype: np.dtype, axes: str | None) -> Argument:
    if axes is None:
        return Argument(dtype, None, True)
    steps = [axis.strip() for axis in axes.split(",")]
    if any(step != ":" for step in steps[:-1]) or steps[-1] not in (":", "::1"):
        raise _not_understood(text)
    return Argument(dtype, len(steps), steps[-1] == "::1")


def _not_understood(text: str) -> NumgradTypeError:
    return NumgradTypeError(
        f"signature {text!r} is not understood; write void or a dtype, then arguments such as "
        "float64, float64[::1] or float64[:,:] in parentheses"
    )
