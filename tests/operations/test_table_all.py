"""Everything in the table: declared samples, errors, kernels held to their formulas."""

import importlib

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.axis import AxisOp
from numgrad.core.documentation import summary
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import OPS
from numgrad.core.plan import Call
from numgrad.core.primitive import Composite
from numgrad.testing.samples import draw, samples
from tests.operations.calls.errors import ERRORS
from tests.operations.reference import by_name

pytestmark = pytest.mark.slow

OTHERS = [op for op in OPS.values() if not isinstance(op, Elementwise | AxisOp | Composite)]
SAMPLED = [op for op in OTHERS if op.samples]
SMOOTH = [op for op in SAMPLED if op.formulas and op.name != "astype"]


@pytest.mark.parametrize("op", **by_name([op for op in SMOOTH if hasattr(op, "backward_kernel")]))
def test_kernel_is_the_formula(op):
    if op.backward_kernel is None:
        return
    for sample in samples(op):
        params = {**op.params, **sample.params}
        out, call = op.run(sample.args, params)
        if op.outputs:
            g = tuple(draw(op, y.shape, y.dtype, 5 + k) for k, y in enumerate(out))
        else:
            g = draw(op, out.shape, out.dtype, 5)
        for mask in range(1, 1 << len(sample.args)):
            named = {**dict(zip(op.inputs, sample.args, strict=False)), "y": out}
            named |= dict(zip(op.auxiliaries, call.aux, strict=False))
            named["inputs"] = sample.args
            saved = [named[name] for name in call.saves(mask)]
            actual, _ = call.backward(mask, g, saved)
            expected, _ = Call.backward(call, mask, g, saved)
            for k in range(len(sample.args)):
                if mask >> k & 1:
                    np.testing.assert_allclose(actual[k], expected[k], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", list(ERRORS))
def test_calls_that_raise(name):
    for shapes, params, error in ERRORS[name]:
        args = [ng.tensor(np.ones(s)) for s in shapes]
        with pytest.raises(getattr(ng, error), match=name):
            OPS[name](*args, **params)


@pytest.mark.parametrize("op", **by_name([op for op in SAMPLED if callable(op.ref)]))
def test_values(op):
    for dtype in ("float64", "float32", "int64", "complex128", "bool"):
        for sample in samples(op, dtype):
            try:
                args = sample.args if op.inputs != ("inputs",) else (sample.args,)
                expected = op.ref(*args, **sample.params)
            except TypeError:
                continue
            if expected.dtype == np.float16:  # in which nothing is computed here
                continue
            actual = op(*map(ng.tensor, sample.args), **sample.params)
            # what cancels in a sum leaves the rounding errors of its terms
            atol = 1e-6 if dtype == "float32" else 1e-14
            np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6, atol=atol)
            assert actual.dtype == expected.dtype


@pytest.mark.parametrize("op", **by_name(list(OPS.values())))
def test_declaration(op):
    assert summary(op).endswith(".")
    assert ng.ops[op.name].op is op
    assert op.name in repr(ng.ops[op.name])
    if isinstance(op.ref, str):
        module, name = op.ref.rsplit(".", 1)
        assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("op", **by_name(SAMPLED))
def test_operands_stay_as_they_are(op):
    for sample in samples(op):
        before = [a.copy() for a in sample.args]
        op(*sample.args, **sample.params)
        for a, b in zip(sample.args, before, strict=True):
            np.testing.assert_array_equal(a, b)
