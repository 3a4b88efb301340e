"""The hot path of eager calls does what the interpreter does: Note [Hot path]."""

import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS
from numgrad.tensors.entries import Template

R = np.random.default_rng(0)
linear = ng.nn.functional.linear  # which loads the operation


def kinds(*shape):
    """Operands of one shape: constants, leaves, results, outputs of several, views, arrays."""
    data = R.uniform(0.5, 2, (*shape, 2))[..., 0].copy()
    leaf = ng.tensor(data.copy(), requires_grad=True)
    return {
        "constant": ng.tensor(data.copy()),
        "leaf": leaf,
        "parameter": ng.nn.Parameter(data.copy()),
        "result": leaf * 2.0,
        "one of several": ng.split(ng.stack([leaf, leaf]), 2)[1][0],
        "part": ng.unstack(ng.stack([leaf, leaf]))[1],
        "view": leaf[...],
        "of an array": ng.asarray(data),
        "array": data,
        "strided": ng.tensor(R.uniform(0.5, 2, (*shape, 2)), requires_grad=True)[..., 0],
        "number": 1.5,
        "integer": 2,
    }


def same(op, args):
    """Compare the second call, whose plan exists, with one by way of the interpreter."""
    op(*args)
    hot, usual = op(*args), bind(op, args, {})
    np.testing.assert_array_equal(hot.numpy(force=True), usual.numpy(force=True))
    assert (hot.dtype, hot.requires_grad) == (usual.dtype, usual.requires_grad)
    a, b = hot._grad_fn, usual._grad_fn
    assert type(a) is type(b)
    if a is None:
        return
    assert (a.mask, len(a.edges), len(a.saved)) == (b.mask, len(b.edges), len(b.saved))
    for one, other in zip(a.edges, b.edges, strict=True):
        assert one == other if isinstance(one, tuple) else one is other
    for one, other in zip(a.saved, b.saved, strict=True):
        if one is not other:  # each its own result, or its own guard of an array
            assert type(one) is type(other)
            arrays = [getattr(v, "array", v) for v in (one, other)]
            np.testing.assert_array_equal(*arrays)


@pytest.mark.parametrize("name", ["tanh", "sin", "isnan", "sum"])
def test_one_operand(name):
    for shape in ((3,), (2, 3)):
        for x in kinds(*shape).values():
            same(OPS[name], (x,))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("multiply", ((3,), (3,))), ("multiply", ((2, 3), (3,))), ("divide", ((2, 3), (2, 3)))],
)
def test_two_operands(name, shapes):
    for pair in itertools.product(*(kinds(*shape).values() for shape in shapes)):
        same(OPS[name], pair)


def test_products():
    for pair in itertools.product(*(kinds(*shape).values() for shape in ((2, 3), (3, 2)))):
        if all(map(np.ndim, pair)):
            same(OPS["matmul"], pair)


def test_three_operands():
    condition = R.random((2, 3)) > 0.5
    for first in (condition, ng.tensor(condition)):
        for pair in itertools.product(*(kinds(*shape).values() for shape in ((2, 3), (3,)))):
            same(OPS["where"], (first, *pair))


def test_an_operand_that_may_be_left_out():
    op = OPS["linear"]
    layers = (kinds(2, 3), kinds(4, 3), kinds(4))
    for args in itertools.product(*(layer.values() for layer in layers)):
        if all(map(np.ndim, args)):
            same(op, args)
            same(op, args[:2])
            same(op, (*args[:2], None))
    x, w = layers[0]["leaf"], ng.ones((4, 3), dtype=np.float32, requires_grad=True)
    same(op, (x, w))  # converted
    assert ng.autograd.grad(ng.sum(op(x, w)), w)[0].dtype == np.float32


def test_operands_have_their_names():
    x, y = ng.ones(2), ng.ones(2)
    assert OPS["subtract"](b=x, a=y * 3).tolist() == [2.0, 2.0]
    assert OPS["tanh"](x=x * 0).tolist() == [0.0, 0.0]
    with pytest.raises(ng.errors.NumgradTypeError, match="subtract: input 'a' is missing"):
        OPS["subtract"](b=x)
    with pytest.raises(ng.errors.NumgradTypeError, match="tanh: input 'x' is missing"):
        OPS["tanh"]()


def test_integers_are_looked_at_in_every_call():
    base, exponent = ng.tensor([2, 3]), ng.tensor([-1, 2])
    for _ in range(3):
        with pytest.raises(ng.errors.NumgradValueError, match="negative integer power"):
            ng.power(base, exponent)


def test_without_recording_and_in_inference_mode():
    x = ng.ones((2, 2), requires_grad=True)
    for op, args in (("tanh", (x,)), ("multiply", (x, x)), ("where", (x, x, x)), ("sum", (x,))):
        OPS[op](*args)
        with ng.no_grad():
            assert not OPS[op](*args).requires_grad
        with ng.inference_mode():
            assert OPS[op](*args).is_inference()


def test_every_template_can_be_compiled():
    for count, *flags in itertools.product((1, 2, 3), *[(False, True)] * 3):
        if count > 1 or not flags[0]:
            compile(Template(count, *flags).source(), "template", "exec")
