"""Operations in one case; the other tests of the table have all cases, and are slow.

That each has a gradient which can be traced: ``tests/compiler/test_trace.py``.
"""

import numpy as np
import pytest
import scipy

import numgrad as ng
from numgrad.core.axis import AxisOp
from numgrad.core.op import OPS
from numgrad.core.plan import Call
from numgrad.operations.special_functions.declare import ParameterDerivative
from numgrad.testing import gradcheck
from numgrad.testing.samples import draw, samples
from tests.operations.calls import calls_of
from tests.operations.cases import TABLE, Case, cases, prepare
from tests.operations.directions import check_along_a_direction
from tests.operations.reference import ELEMENTWISE, by_name, reference, with_reference
from tests.quiet import quiet

OTHERS = [op for op in TABLE if op not in ELEMENTWISE]
ELSEWHERE = {"nextafter", "spacing", "histogram_sums", "histogramdd_sums", "bincount", "distinct"}
"""Whose gradients have tests of their own: operands decide the shape, or they are steps."""


# elementwise ones share the loops around their formulas, which test_formulas.py goes through
@pytest.mark.parametrize("op", **by_name([op for op in TABLE if op in ELEMENTWISE][::6]))
def test_gradient(op):
    case = next(cases(op))
    assert gradcheck(case.function, case.tensors(), check_grad_dtypes=True)


@pytest.mark.parametrize("op", **by_name(OTHERS))
def test_derivatives_along_a_direction(op, monkeypatch):
    """First and second ones, of every case: a wrong number anywhere changes them.

    Every gradient formula is met by some case; of elementwise ones ``test_formulas.py`` sees to it.
    """
    met, gradient = set(), Call.gradient

    def noted(call, k, *arguments):
        if call.op is op:
            met.add(call.input_name(k))
        return gradient(call, k, *arguments)

    monkeypatch.setattr(Call, "gradient", noted)
    for case in cases(op):
        check_along_a_direction(case)
    # those along axes have one, of which kernels are made; some have one for all operands
    if op.name not in ELSEWHERE and not isinstance(op, AxisOp) and op.joint_gradients is None:
        assert {name for name in op.formulas if name not in op.refused} <= met


FURTHER = [
    op
    for op in OPS.values()
    if isinstance(op, ParameterDerivative)
    and op.formulas
    and not op.name.endswith("_path")  # of what was drawn: as its probability stays, not it
]


@pytest.mark.parametrize("op", **by_name(FURTHER))
def test_derivatives_of_derivatives_by_parameters(op):
    case = next(cases(op))
    check_along_a_direction(Case(op, case.operands, case.differentiable))


@pytest.mark.parametrize("op", **by_name([op for op in OTHERS if not op.real_only]))
def test_complex_derivatives_along_a_direction(op):
    for case in cases(op, np.complex128):
        check_along_a_direction(case)


@pytest.mark.parametrize("op", **by_name(OTHERS))
def test_gradients_of_one_operand_of_several(op):
    """Those that kernels compute of all operands at once."""
    for case in cases(op):
        wanted = [k for k, d in enumerate(case.differentiable) if d]
        if len(wanted) > 1:
            alone = [gradients(case, [k])[0] for k in wanted]
            for a, b in zip(alone, gradients(case, wanted), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def gradients(case, wanted):
    tensors = [ng.tensor(a, requires_grad=k in wanted) for k, a in enumerate(case.operands)]
    outputs = case.function(*tensors)
    outputs = [y for y in (outputs if isinstance(outputs, tuple) else (outputs,)) if y.grad_fn]
    seeds = [np.cos(1.0 + np.arange(y.size)).reshape(y.shape).astype(y.dtype) for y in outputs]
    inputs = [tensors[k] for k in wanted]
    found = ng.autograd.grad(outputs, inputs, seeds, allow_unused=True)
    return [np.zeros(()) if x is None else x.numpy(force=True) for x in found]


@pytest.mark.parametrize("op", **by_name(OTHERS))
def test_gradients_are_owned_where_nobody_else_holds_them(op, monkeypatch):
    """What a backward calls its own may be written; what it does not is copied for ``.grad``."""
    by_formula, formula = [], Call.gradient
    monkeypatch.setattr(Call, "gradient", lambda *a: by_formula.append(a) or formula(*a))
    for case in cases(op):
        outputs = case.function(*case.tensors())
        for node in nodes_of(outputs if isinstance(outputs, tuple | list) else [outputs]):
            if not hasattr(node.call, "outs"):
                continue
            by_formula.clear()
            seeds = [np.ones(shape, dtype) for shape, dtype in node.call.outs]
            g = seeds if node.call.op.outputs else seeds[0]
            saved = node.unpack()
            gradients, owned = node.call.backward(node.mask, g, saved)
            for k, x in enumerate(gradients):
                if isinstance(x, np.ndarray):
                    others = [*gradients[:k], *gradients[k + 1 :], *seeds, *saved]
                    arrays = [a for a in others if isinstance(a, np.ndarray)]
                    alone = x.flags.writeable and not any(np.shares_memory(x, a) for a in arrays)
                    assert owned >> k & 1 == (alone and not by_formula), (node.call.op.name, k)


def nodes_of(outputs):
    """The nodes of all primitives that results come from, each once."""
    waiting = [y._grad_fn for y in outputs if isinstance(y, ng.Tensor)]
    met = {}
    while waiting:
        node = waiting.pop()
        node = node[0] if isinstance(node, tuple) else node
        if hasattr(node, "call") and id(node) not in met:
            met[id(node)] = node
            waiting.extend(node.edges)
    return met.values()


VALUED = [o for o in TABLE if o in ELEMENTWISE or isinstance(o, AxisOp)]


@pytest.mark.parametrize("op", **by_name(VALUED))
def test_value(op):
    sample = next(samples(op))
    args = prepare(op, sample.args)
    expected = quiet(reference(op), *args, **sample.params)
    actual = op(*map(ng.tensor, args), **sample.params).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


OTHER_FORMS = ("lu.2", "lstsq.2", "cross.3", "cross.4", "cross.5")
"""Calls of vectors, or that look at results, which NumPy's or SciPy's function has not."""


COMPARED = [
    op
    for op in OPS.values()
    if calls_of(op)
    and op.ref
    and op.__module__.startswith("numgrad.")
    # before it took no stacks of some matrices, and began splines less precisely
    and not (isinstance(op.ref, str) and np.lib.NumpyVersion(scipy.__version__) < "1.18.0")
]


@pytest.mark.parametrize("op", **by_name(COMPARED))
def test_values_of_declared_calls(op):
    """The same call, with the function of NumPy or SciPy in the place of the operation."""
    for k, (shapes, call) in enumerate(calls_of(op)):
        if f"{op.name}.{k}" in OTHER_FORMS:
            continue
        arrays = [draw(op, shape, np.float64, k) for k, shape in enumerate(shapes)]
        try:
            expected = quiet(with_reference(call, op), *arrays)
        except (TypeError, ValueError):  # what it does not have, or not in this version
            continue
        found = call(*map(ng.tensor, arrays))
        if not isinstance(expected, tuple | list):
            expected, found = (expected,), (found,)
        assert len(found) == len(expected)
        for a, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-11)
