"""Forward mode over batches of tangents: no level may lose what another one follows."""

import numpy as np
import pytest

import numgrad as ng
import numgrad.nn.functional as F
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import OPS
from numgrad.core.tree import leaves
from numgrad.testing.samples import draw
from tests.operations.cases import TABLE, cases
from tests.operations.reference import by_name


def weighted(function):
    """One number of all results, whose first and second derivatives both enter the second ones."""

    def total(*args):
        found = function(*args)
        outputs = found if isinstance(found, tuple | list) else (found,)
        parts = [np.real(y) for y in outputs if y.dtype.kind in "fc"]
        weights = [np.cos(1.0 + np.arange(y.size)).reshape(y.shape) for y in parts]
        return sum(np.sum(w * y * (1.0 + y)) for w, y in zip(weights, parts, strict=True))

    return total


def same(found, expected):
    for actual, wanted in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-8, atol=1e-10)


def check(f, args, moving):
    """Second derivatives by two levels of tangents against those by reverse mode alone."""
    hessian = ng.hessian(f, moving)(*args)
    first = ng.jacfwd(f, moving)
    same(ng.jacfwd(first, moving)(*args), hessian)

    def of_moving(*given):
        whole = list(args)
        for k, x in zip(moving, given, strict=True):
            whole[k] = x
        return first(*whole)

    along = [draw(OPS["sin"], args[k].shape, np.float64, k + 5) for k in moving]
    _, moved = ng.jvp(of_moving, [args[k] for k in moving], along)
    products = [
        sum(np.tensordot(block, v, v.ndim) for block, v in zip(row, along, strict=True))
        for row in hessian
    ]
    same(moved, tuple(products))


# Every family has its rule; those that read the record of the call are all tried.
FEW = [
    op
    for op in TABLE
    if op.name
    in ("cumprod", "prod", "softmax", "log_softmax", "logsumexp", "multiply", "matmul", "concat")
]
REST = [op for op in TABLE if op not in FEW]


def sweep(op):
    for case in cases(op):
        moving = tuple(k for k, smooth in enumerate(case.differentiable) if smooth)
        if sum(case.operands[k].size for k in moving) > 60:  # each has a smaller case too
            continue
        check(weighted(case.function), case.operands, moving)
        if isinstance(op, Elementwise | AxisOp):
            return


@pytest.mark.parametrize("op", **by_name(FEW))
def test_forward_over_forward(op):
    sweep(op)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("op", **by_name(REST))
def test_forward_over_forward_of_the_others(op):
    sweep(op)


WEIGHTS = np.cos(np.arange(4.0))


def rows(x):
    return ng.reshape(x, (2, 2))


def written(x):
    y = ng.zeros(4)
    y[0] = x[0]
    y[1:] = np.cumprod(np.sin(x))[1:]
    return np.sum(y * x * WEIGHTS)


FUNCTIONS = {
    "cumprod": lambda x: np.sum(np.cumprod(x) * WEIGHTS),
    "prod over an axis": lambda x: np.sum(np.prod(rows(x), axis=1)),
    "softmax": lambda x: ng.softmax(x)[0],
    "layer_norm": lambda x: np.sum(F.layer_norm(x * x, (4,)) ** 3 * WEIGHTS),
    "writes": written,
    "attention": lambda x: np.sum(
        F.scaled_dot_product_attention(rows(x), rows(2 * x), rows(x * x)) ** 2
    ),
    "max_pool1d": lambda x: np.sum(F.max_pool1d((x * x)[None, None], 2) ** 2),
    "batch_norm": lambda x: np.sum(
        F.batch_norm(x[:, None], None, None, training=True)[:, 0] ** 3 * WEIGHTS
    ),
    "a jvp inside": lambda x: np.sum(ng.jvp(np.cumprod, (x,), (x * x,))[1] * WEIGHTS),
    "a jacfwd inside": lambda x: np.sum(ng.jacfwd(np.cumprod)(x) * np.outer(WEIGHTS, WEIGHTS)),
}
POINT = np.array([0.2, 0.3, 0.5, 0.7])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(FUNCTIONS[name], [POINT], (0,))


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_third_order(name):
    f = FUNCTIONS[name]
    expected = ng.jacrev(ng.jacrev(ng.jacfwd(f)))(POINT)
    for outer, inner in ((ng.jacfwd, ng.jacfwd), (ng.jacrev, ng.jacfwd), (ng.jacfwd, ng.jacrev)):
        same(outer(inner(ng.jacfwd(f)))(POINT), expected)
        same(outer(ng.jacfwd(inner(f)))(POINT), expected)


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("name", ["prod over an axis", "cumprod", "softmax", "layer_norm"])
def test_compiled(name):
    f = FUNCTIONS[name]
    second = ng.jit(ng.jacfwd(ng.jacfwd(f)))
    along = ng.jit(lambda x, v: ng.jvp(ng.jacfwd(f), (x,), (v,))[1])
    for point in (POINT, POINT[::-1].copy()):
        hessian = ng.hessian(f)(point)
        same(second(point), hessian)
        same(along(point, WEIGHTS), hessian @ WEIGHTS)


def test_columns_of_writes_into_shared_memory_come_of_one_batch():
    """The tangent of an array made inside differs by direction where its value does not."""
    calls = []

    def f(x):
        calls.append(None)
        y = ng.zeros((2, 3))
        y[0, [2, 0]] = x**2
        y[1] = x[0]
        return y * 2

    x = np.array([3.0, 5.0])
    expected = np.zeros((2, 3, 2))
    expected[0, 2, 0], expected[0, 0, 1], expected[1, :, 0] = 12.0, 20.0, 2.0
    np.testing.assert_array_equal(ng.jit(ng.jacfwd(f))(x), expected)
    assert len(calls) <= 3, "a call for each direction"
    np.testing.assert_array_equal(ng.jacfwd(f)(x), expected)
