"""Operations in one case; the other tests of the table have all cases, and are slow.

That each has a gradient which can be traced: ``tests/compiler/test_trace.py``.
"""

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.axis import AxisOp
from numgrad.testing import gradcheck
from numgrad.testing.samples import samples
from tests.operations.cases import TABLE, cases, prepare
from tests.operations.reference import ELEMENTWISE, by_name, reference
from tests.quiet import quiet

OTHERS = [op for op in TABLE if op not in ELEMENTWISE]


# elementwise ones share the loops around their formulas, which test_formulas.py goes through
CHOSEN = [*OTHERS, *[op for op in TABLE if op in ELEMENTWISE][::6]]


@pytest.mark.parametrize("op", **by_name(CHOSEN))
def test_gradient(op):
    case = next(cases(op), None)
    if case is None:
        pytest.skip("what it takes cannot be drawn: it has tests of its own")
    assert gradcheck(case.function, case.tensors(), check_grad_dtypes=True)


@pytest.mark.parametrize("op", **by_name(OTHERS))
def test_gradients_of_some_operands_and_recorded_ones(op):
    """Those that kernels compute of all operands at once: alone, and by formulas on Tensors."""
    case = next(cases(op), None)
    if case is None:
        pytest.skip("what it takes cannot be drawn: it has tests of its own")
    wanted = [k for k, d in enumerate(case.differentiable) if d]
    expected, found = gradients(case, wanted), gradients(case, wanted, create_graph=True)
    if len(wanted) > 1:
        found += [gradients(case, [k])[0] for k in wanted]
    for a, b in zip(found, [*expected, *expected], strict=False):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def gradients(case, wanted, **options):
    tensors = [ng.tensor(a, requires_grad=k in wanted) for k, a in enumerate(case.operands)]
    outputs = case.function(*tensors)
    outputs = [y for y in (outputs if isinstance(outputs, tuple) else (outputs,)) if y.grad_fn]
    seeds = [np.cos(1.0 + np.arange(y.size)).reshape(y.shape).astype(y.dtype) for y in outputs]
    inputs = [tensors[k] for k in wanted]
    found = ng.autograd.grad(outputs, inputs, seeds, allow_unused=True, **options)
    return [np.zeros(()) if x is None else x.numpy(force=True) for x in found]


@pytest.mark.parametrize("op", **by_name([op for op in OTHERS if not op.real]))
def test_complex_gradient(op):
    case = next(cases(op, np.complex128), None)
    if case is None:
        pytest.skip("what it takes cannot be drawn, or is refused")
    assert gradcheck(case.function, case.tensors(), check_grad_dtypes=True)


VALUED = [o for o in TABLE if o in ELEMENTWISE or isinstance(o, AxisOp)]


@pytest.mark.parametrize("op", **by_name(VALUED))
def test_value(op):
    sample = next(samples(op))
    args = prepare(op, sample.args)
    expected = quiet(reference(op), *args, **sample.params)
    actual = op(*map(ng.tensor, args), **sample.params).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)
