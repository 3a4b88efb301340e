"""What the table's operations are compared with: NumPy, SciPy, or a formula given here."""

import importlib
import itertools
from functools import partial
from types import CellType, FunctionType

import numpy as np

from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import OPS
from numgrad.nn import operations as _operations  # noqa: F401 (completes the table)
from numgrad.operations.special_functions.declare import ParameterDerivative
from numgrad.testing.samples import draw

SPECIAL_VALUES = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 1e-310, -1e-310)
"""Values every floating operation is tried on, subnormals included."""


def of_our_own(op):
    """Whether the reference is a formula in the declaration: one of floats, without dtype rules."""
    return isinstance(op.ref, FunctionType) and op.ref.__module__.startswith("numgrad.")


def _of_floats(function):
    """NumPy computes in float16 for 8-bit integers; we do not."""
    return lambda *args: function(
        *[a if np.asarray(a).dtype.kind in "fc" else np.asarray(a, np.float64) for a in args]
    )


# derivatives by differences have no reference: test_special_functions compares them with mpmath
ELEMENTWISE = [
    op
    for op in OPS.values()
    if isinstance(op, Elementwise)
    and not isinstance(op, ParameterDerivative)
    and op.name not in ("zeta_s", "zeta_ss")
]
UNARY = [op for op in ELEMENTWISE if len(op.inputs) == 1]
BINARY = [op for op in ELEMENTWISE if len(op.inputs) == 2]
ALONG_AXES = [op for op in OPS.values() if isinstance(op, AxisOp)]
TINY = {np.dtype(np.float32): 1e-41, np.dtype(np.float64): 1e-310}


def by_name(ops):
    return {"argvalues": ops, "ids": [op.name for op in ops]}


ENDLESS = {"pro_cv", "obl_cv"}
"""SciPy's bisection in float32 need not end: compared with what it finds in float64."""


def reference(op):
    """The function with the same meaning, which is not numgrad's."""
    if of_our_own(op) and isinstance(op, Elementwise) and op.real_only:
        return _of_floats(op.ref)
    if isinstance(op.ref, str):
        module, name = op.ref.rsplit(".", 1)
        function = getattr(importlib.import_module(module), name)
        if name in ENDLESS:
            return lambda *args: function(*[np.asarray(a, np.float64) for a in args])
        return function
    assert op.ref is not None, f"{op.name} has no reference: declare one with ref="
    return op.ref


def with_reference(function, op):
    """A declared call as one of the operation's reference, wherever it mentions the operation."""
    theirs = reference(op)

    def exchanged(value):
        return theirs if value is op else value

    if isinstance(function, partial):
        return partial(with_reference(function.func, op), *map(exchanged, function.args))
    return FunctionType(
        function.__code__,
        {name: exchanged(value) for name, value in function.__globals__.items()},
        function.__name__,
        tuple(map(exchanged, function.__defaults__ or ())),
        tuple(CellType(exchanged(cell.cell_contents)) for cell in function.__closure__ or ()),
    )


def special_values(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        return np.zeros(0, dtype)
    values = np.array(SPECIAL_VALUES)
    tiny = np.abs(values) == 1e-310
    values[tiny] = np.sign(values[tiny]) * TINY[dtype]
    return values.astype(dtype)


def operands(op, dtype, special=True):
    """One-dimensional operands: inside the domain, then special values in every combination."""
    count = len(op.inputs)
    inside = [draw(op, (9,), dtype, k) for k in range(count)]
    if not special or count > 2 or np.dtype(dtype).kind != "f":
        return inside
    extra = special_values(dtype)
    if count == 1:
        own = np.asarray(op.special, dtype)
        return [np.concatenate([inside[0], extra, own])]
    pairs = np.array(list(itertools.product(extra, extra)), dtype).T
    return [np.concatenate([x, p]) for x, p in zip(inside, pairs, strict=True)]


def result_dtype(dtype):
    """The dtype of NumPy's result, float16 (of 8-bit integers) replaced by float32."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def tolerance(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind not in "fc":
        return 0.0
    return 64 * np.finfo(dtype).eps


def assert_same(actual, expected, rtol, signs=True):
    """Shapes, dtypes (float16 as float32), values, NaNs, and signs of zeros."""
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == result_dtype(expected.dtype)
    if expected.dtype == np.float16:
        rtol, signs = 2e-3, False
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * 1e-3, equal_nan=True)
    if signs and expected.dtype.kind == "f":
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(expected[zero]))
