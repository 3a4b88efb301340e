"""Operands of functions of images: dtypes, parameters for each axis, elements beyond the edges."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.core.declare import OPS, made
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.extend import pad_constant
from numgrad.operations.shape import as_operand
from numgrad.operations.take import take


def each(name: str, value: Any, count: int, what: str) -> list[Any]:
    """One value for each axis, from one for all or a sequence."""
    if isinstance(value, str) or not hasattr(value, "__len__") or np.ndim(value) == 0:
        return [value] * count
    if len(value) != count:
        raise NumgradValueError(
            f"{name}: {what}={value!r} has {len(value)} values for {count} axes"
        )
    return list(value)


def number(value: Any) -> float:
    """A parameter as a number, on which lengths depend that have no gradient."""
    return float(value.item() if hasattr(value, "item") else value)


def operands(x: Any, weights: Any) -> tuple[Any, Any, Any]:
    """The image and weights in the dtype to compute in, and that of the result."""
    x, weights = as_operand(x), as_operand(weights)
    dtype = x.dtype
    if x.dtype.kind not in "fc":
        x = OPS["astype"](x, dtype=np.float64)
    if weights.dtype.kind == "c" and x.dtype.kind != "c":
        dtype = np.result_type(x.dtype, np.complex64)
    if weights.dtype.kind != "c" or x.dtype.kind == "c":
        kind = x.dtype if weights.dtype.kind == "c" else _real(x.dtype)
        if weights.dtype != kind:
            weights = OPS["astype"](weights, dtype=kind)
    return x, weights, dtype


def image(input: Any, output: Any) -> Any:
    """The operand, in a wider dtype if the result has one."""
    x = as_operand(input)
    if output is None or x.dtype.kind not in "fc":
        return x
    wide = np.result_type(x.dtype, _as_dtype(output))
    return x if wide == x.dtype else OPS["astype"](x, dtype=wide)


def _as_dtype(output: Any) -> np.dtype:
    try:
        return np.dtype(output)
    except TypeError:
        raise NumgradTypeError(
            f"ndimage: output={type(output).__name__} is not taken; give a dtype, or None"
        ) from None


def _real(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32 if dtype in (np.float32, np.complex64) else np.float64)


def cast(x: Any, dtype: Any, output: Any) -> Any:
    """The result in the dtype asked for, by default that of the image."""
    dtype = dtype if output is None else _as_dtype(output)
    return x if x.dtype == dtype else OPS["astype"](x, dtype=dtype)


MODES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "constant": "constant",
    "grid-constant": "constant",
    "nearest": "edge",
    "mirror": "reflect",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}
"""SciPy's modes -> NumPy's."""


def extended(
    name: str, x: Any, widths: Sequence[tuple[int, int]], modes: Sequence[str], cval: Any = 0.0
) -> Any:
    """The array with elements added at the ends of its axes, along each in a mode of its own."""
    for mode in modes:
        if mode not in MODES:
            raise NumgradValueError(f"{name}: mode {mode!r} is none of {', '.join(MODES)}")
    empty = 0 in x.shape  # then anything beyond the edges will do, in the right number
    for axis, (width, mode) in enumerate(zip(widths, modes, strict=True)):
        if width == (0, 0):
            continue
        if empty or MODES[mode] == "constant":
            here = [(0, 0)] * len(x.shape)
            here[axis] = width
            x = pad_constant(x, widths=tuple(here), values=cval)
        else:
            indices = np.pad(np.arange(x.shape[axis]), width, mode=MODES[mode])  # pyright: ignore
            x = take(x, made(indices), axis=axis)
    return x
