"""Gradient formulas of elementwise operations on ndarrays, against differences of NumPy's function.

No kernel is compiled, so that every formula is met, of complex numbers too; that kernels compute
the formulas is what ``test_table_gradients.py`` is about.
"""

import numpy as np
import pytest

from numgrad.core.formula import Meta
from numgrad.core.plan import Call
from numgrad.testing.samples import draw
from tests.operations.cases import followed, prepare
from tests.operations.reference import ELEMENTWISE, by_name, reference
from tests.quiet import quiet

SMOOTH = [
    op for op in ELEMENTWISE if op.differentiable and any(followed(op, name) for name in op.inputs)
]
STEP = 1e-3
CUT = {"gaussian_error"}
"""With a gradient that is not the slope where the variance is cut off: see ``test_loss.py``."""
STENCIL = ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12))


def slope(function, args, k, direction):
    """The derivative of ``function`` as operand ``k`` moves in a direction, to fourth order."""
    total = 0.0
    for steps, weight in STENCIL:
        moved = [*args]
        moved[k] = args[k] + steps * STEP * direction
        total = total + weight / STEP * quiet(function, *moved)
    return total


def check(op, dtype):
    complex_ = np.dtype(dtype).kind == "c"
    function = (op.complex_ref if complex_ else None) or reference(op)
    args = prepare(op, [draw(op, (5,), dtype, k) for k in range(len(op.inputs))])
    y = quiet(function, *args)
    g = draw(op, y.shape, y.dtype, 9) + (0.3 if y.dtype.kind == "f" else 0.3 - 0.7j)
    call = Call(op, tuple(Meta(a.shape, a.dtype) for a in args), dict(op.params))
    mask = sum(1 << k for k, name in enumerate(op.inputs) if followed(op, name))
    named = {**dict(zip(op.inputs, args, strict=True)), "y": y}
    with np.errstate(all="ignore"):
        actual, _ = call.backward(mask, g, [named[name] for name in call.saves(mask)])
    for k, a in enumerate(args):
        if not mask >> k & 1 or a.dtype.kind not in "fc":
            continue
        expected = np.real(np.conj(g) * slope(function, args, k, 1.0))
        if a.dtype.kind == "c":
            expected = expected + 1j * np.real(np.conj(g) * slope(function, args, k, 1j))
        scale = np.max(np.abs(expected))
        np.testing.assert_allclose(actual[k], expected, rtol=5e-6, atol=1e-7 * max(scale, 1e-3))


@pytest.mark.parametrize("op", **by_name([op for op in SMOOTH if op.name not in CUT]))
def test_real_formula(op):
    check(op, np.float64)


# SciPy's zeta of complex numbers has another name from version to version: test_special_functions
@pytest.mark.parametrize(
    "op", **by_name([op for op in SMOOTH if not op.real_only and op.name != "zeta"])
)
def test_complex_formula(op):
    check(op, np.complex128)
