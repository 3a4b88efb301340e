"""Whatever lies in memory however, given as whatever: values and gradients are the same."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.saved import COPY_BYTES, keep
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import OPS
from tests.operations.arrangements import ARRANGED, arrangements, check
from tests.operations.cases import EVERY_LAYOUT, TABLE, cases, turn
from tests.operations.reference import by_name
from tests.quiet import quiet

FEW = ("C", "transposed", "stepped", "broadcast")
SAMPLED = ("multiply", "subtract", "matmul", "linear", "sum", "softmax", "take", "concat", "cumsum")


def try_arrangements(op, chosen_cases, layouts=tuple(ARRANGED)):
    for case in chosen_cases:
        known: dict = {}
        for chosen in arrangements(case, layouts):
            check(case, chosen, known)


OF_MATRICES = {
    "adjugate_derivative", "factored_solve", "matrix_power", "packed_lu", "tensorinv", "tensorsolve"
}  # fmt: skip
"""What takes regular matrices, of which no row may be repeated."""


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("op", **by_name([op for op in TABLE if op.name not in OF_MATRICES]))
def test_every_arrangement(op):
    """Every operand in turn as anything, in every layout.

    The loops around elementwise formulas are shared: a few operations go through all layouts, the
    others through C and one more, so that each layout is met with one, two and three operands.
    """
    if isinstance(op, Elementwise) and op.name not in EVERY_LAYOUT:
        try_arrangements(op, list(cases(op))[:1], ("C", FEW[1 + turn(op) % 3]))
    else:
        try_arrangements(op, cases(op))


@pytest.mark.slow
@pytest.mark.parametrize("op", **by_name([OPS[name] for name in SAMPLED]))
def test_some_arrangements(op):
    try_arrangements(op, list(cases(op))[:2], FEW)


# sizes on both sides of what decides on kernels, copies and threads
LENGTHS = (1, 508, 509, 510, COPY_BYTES // 8, COPY_BYTES // 8 + 1, 16384, 16385, 300_001)
PRODUCTS = (
    ((4, 4), (4, 4)), ((5, 4), (4, 4)), ((64, 64), (64, 65)), ((65, 70), (70, 64)),
    ((3, 4, 4), (4, 4)), ((3, 4, 5), (3, 5, 4)), ((33, 40, 40), (1, 40, 41)),
    ((70, 70), (70,)), ((70,), (70, 71)), ((600,), (600,)), ((300, 1100), (1100,)),
)  # fmt: skip

MANY = 20_000


def numbers(shape, seed):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


@pytest.mark.slow
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name", ["multiply", "tanh", "logsumexp", "cumsum"])
def test_lengths_around_every_threshold(name, n):
    """Vectors, rows and columns in every arrangement.

    Many elements are for threads, whose kernels take seconds to compile: each operation meets one
    of these shapes, in every third arrangement, which has all layouts and all kinds.
    """
    op = OPS[name]
    count = len(op.inputs)
    found = [[(n,)] * count, [(2, n), (n,)][:count], [(n, 2), (n, 1)][:count]]
    if n > MANY:
        k = {"multiply": 1, "tanh": 0, "logsumexp": 2, "cumsum": 1}[name]
        found = found[k : k + 1]
    for shapes in found:
        case = SimpleNamespace(
            function=lambda *x: op(*x) if hasattr(op, "scalar") else op(*x, axis=0),
            operands=[numbers(s, k) for k, s in enumerate(shapes)],
            differentiable=[True] * count,
        )
        known: dict = {}
        for chosen in list(arrangements(case, FEW))[:: 3 if n > MANY else 1]:
            check(case, chosen, known)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("shapes", PRODUCTS, ids=str)
def test_products_around_every_threshold(shapes):
    """Real products of small size in every arrangement, others in every third."""
    for factor in (1.0, 1.0 + 0.5j):
        operands = [numbers(s, k) * factor for k, s in enumerate(shapes)]
        case = SimpleNamespace(function=np.matmul, operands=operands, differentiable=[True] * 2)
        known: dict = {}
        sparse = factor != 1 or max(x.size for x in operands) > MANY
        for chosen in list(arrangements(case))[:: 3 if sparse else 1]:
            check(case, chosen, known)


# ------------------------------------------------------------------------- what the sweep found

A = np.array([[1.0, 2.0], [3.0, 4.0]])
W = np.array([[1.0, 10.0], [100.0, 1000.0]])


@pytest.mark.parametrize(
    "product",
    [
        lambda x, a: x @ a,
        lambda x, a: np.dot(x, a),
        lambda x, a: (x.reshape(1, 2, 2) @ a[None].swapaxes(-1, -2).copy().swapaxes(-1, -2))[0],
        lambda x, a: np.einsum("ij,jk->ik", x, a),
    ],
)
def test_gradients_beside_a_column_major_array(product):
    for a in (A.T, np.asfortranarray(A), A[::-1, ::-1].T):
        x = ng.tensor(A, requires_grad=True)
        np.sum(product(x, a) * W).backward()
        np.testing.assert_array_equal(x.grad.numpy(), W @ a.T)


def test_gradients_of_a_vector_beside_a_column_major_array():
    for a in (A.T, np.asfortranarray(A)):
        found = ng.grad(lambda v, a=a: np.sum((a @ v) * W[0]))(np.ones(2))
        np.testing.assert_array_equal(found, a.T @ W[0])
        np.testing.assert_array_equal(ng.jacobian(lambda v, a=a: v @ a)(np.ones(2)), a.T)


@pytest.mark.parametrize("op", [np.subtract, np.add])
def test_a_kernel_is_that_of_its_operands(op):
    """Broadcasting along axes of length 1 changes which gradients are computed at all."""
    for a, b in (((3,), (3,)), ((3,), (1, 3)), ((1, 3), (3,)), ((1, 1, 3), (3,))):
        x, y = (ng.tensor(np.ones(s), requires_grad=True) for s in (a, b))
        op(x, y).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.ones(a))
        np.testing.assert_array_equal(y.grad.numpy(), op(0.0, np.ones(b)))


def test_what_looks_at_an_array_is_kept_as_the_array_is():
    for size in (4, 10_000):
        a, x = np.ones(size), ng.tensor(np.ones((2, size // 2)), requires_grad=True)
        y = (x * ng.reshape(a, (2, -1))).sum()
        a[:] = 7
        if size == 4:
            y.backward()
            np.testing.assert_array_equal(x.grad.numpy(), np.ones((2, 2)))
        else:
            with pytest.raises(ng.NumgradRuntimeError, match="its owner changed it"):
                y.backward()


def test_an_array_that_gets_another_dtype_after_it_was_saved():
    a, x = np.full(10_000, 2.0), ng.tensor(np.ones(10_000), requires_grad=True)
    y = (x * a).sum()
    quiet(setattr, a, "shape", (100, 100))
    y.backward()
    assert x.grad.shape == (10_000,)


def test_a_copy_of_few_elements_far_apart_is_small():
    spread = np.empty((10, 1 << 17))[:, 0]
    kept = keep(spread)
    assert kept.base is None
    assert kept.nbytes == spread.nbytes


def test_formulas_declared_after_a_call_count():
    from numgrad.core.declare import elementwise

    @elementwise(ref=np.square, register=False)
    def late(x):
        """Square."""
        return x * x

    x = ng.tensor([1.0, 2.0], requires_grad=True)
    assert ng.grad(late)(3.0) == 6.0  # derived from the body
    late.no_derivative()
    assert not late(x).requires_grad
    late.vjp(x=lambda g, x: 5 * g * x)
    late(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [5.0, 10.0])


def test_numbers_that_hash_alike_are_told_apart():
    x = ng.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    for ddof in (np.float64(1), 1, True, np.int64(1)):
        assert ng.var(x, axis=1, ddof=ddof).dtype == np.float32
