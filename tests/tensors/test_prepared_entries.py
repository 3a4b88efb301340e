"""Prepared operations and composed ones are called as the interpreter calls them."""

import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.declare import prepared
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS
from numgrad.profiler import profile
from numgrad.tensors.entries import ComposedTemplate, PreparedTemplate
from tests.tensors.test_entries import kinds

R = np.random.default_rng(0)


@pytest.fixture
def scaled(monkeypatch):
    """An operation of two results, two notes, one of which no formula needs, and what it did."""
    prepared_for, ran = [], []
    monkeypatch.delitem(OPS, "scaled", raising=False)  # another test's, which gets it back

    @prepared(method=False, outputs=True, auxiliaries=("unread", "sign"), materializes=False)
    def scaled(x, c, *, power=1):
        """Powers times a constant, and where they are positive."""
        prepared_for.append((x, c, power))

        def compute(x, c):
            ran.append(x)
            y = x**power * c
            return (y, y > 0), (np.zeros(3), np.sign(x))

        return compute

    scaled.vjp(x=lambda g, x, c, sign, power: g[0] * power * sign * np.abs(x) ** (power - 1) * c)
    yield scaled, prepared_for, ran
    del OPS["scaled"]


def gradient(outs, x):
    """Of the last result, by an operand."""
    last = outs[-1] if isinstance(outs, tuple) else outs
    return ng.autograd.grad(ng.sum(last * last), x, retain_graph=True)[0]


def same(op, args, **params):
    """Compare the second call, whose plan exists, with one by way of the interpreter."""
    op(*args, **params)
    hot, usual = op(*args, **params), bind(op, args, params)
    results = [out if isinstance(out, tuple) else (out,) for out in (hot, usual)]
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one.numpy(force=True), other.numpy(force=True))
        assert (one.dtype, one.requires_grad, one._slot) == (
            other.dtype, other.requires_grad, other._slot,
        )  # fmt: skip
    nodes = [outs[0]._grad_fn for outs in results]
    if nodes[0] is None:
        assert nodes[1] is None
        return
    assert nodes[0].mask == nodes[1].mask
    assert list(map(type, nodes[0].saved)) == list(map(type, nodes[1].saved))
    for one, other in zip(nodes[0].edges, nodes[1].edges, strict=True):
        assert one == other if isinstance(one, tuple) else one is other
    for x in args:
        if isinstance(x, ng.Tensor) and x.requires_grad:
            one, other = gradient(hot, x), gradient(usual, x)
            np.testing.assert_array_equal(one.numpy(force=True), other.numpy(force=True))


@pytest.mark.parametrize("name", ["symmetric_eigen", "singular", "inv", "sign_and_logarithm"])
def test_one_operand(name):
    for shape in ((2, 2), (3, 2, 2)):
        for x in kinds(*shape).values():
            if np.ndim(x):
                same(OPS[name], (x,))


def test_two_operands():
    for shapes in (((2, 2), (2,)), ((3, 2, 2), (2, 1))):
        for pair in itertools.product(*(kinds(*shape).values() for shape in shapes)):
            if all(map(np.ndim, pair)):
                same(OPS["solve"], pair)


def test_parameters_as_they_are_written():
    a, b = ng.tensor(R.random((3, 3)) + 3, requires_grad=True), ng.ones((3, 2))
    for params in ({}, {"lower": True}, {"lower": 1, "unit": True}, {"of_adjoint": True}):
        same(OPS["solve_triangle"], (a, b), **params)
    spd = a.detach() @ a.detach().mT + np.eye(3)
    for upper in (False, True):  # what is no part of a key
        found = ng.linalg.cholesky(spd, upper=np.array(upper))
        np.testing.assert_array_equal(found, ng.linalg.cholesky(spd, upper=upper))
    with pytest.raises(ng.NumgradTypeError, match="no parameter is called 'below'"):
        ng.linalg.cholesky(spd, below=True)
    np.testing.assert_array_equal(ng.linalg.cholesky(a=spd), ng.linalg.cholesky(spd))


def test_is_prepared_once_for_a_shape(scaled):
    op, prepared_for, ran = scaled
    x = ng.tensor([1.0, -2.0], requires_grad=True)
    for _ in range(3):
        y, positive = op(x, np.array([3.0, 3.0]), power=2)
        assert y.tolist() == [3.0, 12.0]
        assert (positive.dtype, positive.requires_grad) == (bool, False)
        y.sum().backward()
    assert (len(prepared_for), len(ran)) == (1, 3)
    assert x.grad.tolist() == [18.0, -36.0]
    op(x, np.ones((2, 1)))
    assert prepared_for[-1][1].shape == (2, 1)


def test_a_new_formula_counts_from_now_on(scaled):
    op, *_ = scaled
    x = ng.tensor([2.0], requires_grad=True)
    for factor in (1.0, 10.0):
        op.vjp(x=_times(factor))
        assert ng.autograd.grad(op(x, 1.0 * np.ones(1))[0].sum(), x)[0].item() == factor


def _times(factor):
    return lambda g: g[0] * factor


def test_what_is_noted_goes_with_the_node():
    a = ng.tensor(np.eye(2), requires_grad=True)
    ng.linalg.solve(a, np.ones(2))
    x = ng.linalg.solve(a, np.ones(2))
    node = x._grad_fn
    assert not node.call.aux
    x.sum().backward()
    assert node.saved is None
    with pytest.raises(ng.NumgradRuntimeError, match="freed"):
        x.sum().backward()


def test_changes_in_place_are_noticed():
    a = ng.tensor(np.eye(2), requires_grad=True)
    for name in ("inv", "eigh", "svd"):
        out = getattr(ng.linalg, name)(a)
        first = out if isinstance(out, ng.Tensor) else out[0]
        first += 1
        with pytest.raises(ng.NumgradRuntimeError, match="its own result"):
            first.sum().backward()


def test_gradients_have_the_dtypes_of_operands():
    a = ng.tensor(np.eye(2, dtype=np.float32), requires_grad=True)
    b = ng.tensor(np.ones(2), requires_grad=True)
    for _ in range(2):
        x = ng.linalg.solve(a, b)
        found = ng.autograd.grad(x.sum(), (a, b))
        assert [x.dtype, *(g.dtype for g in found)] == [np.float64, np.float32, np.float64]
        complex_right = b.detach() * 1j
        (ga,) = ng.autograd.grad(ng.real(ng.linalg.solve(a, complex_right) * 1j).sum(), a)
        assert ga.dtype == np.float32


def test_modes():
    a = ng.tensor(np.eye(2), requires_grad=True)
    for _ in range(2):
        with ng.no_grad():
            assert not any(y.requires_grad for y in ng.linalg.eigh(a))
        with ng.inference_mode():
            assert all(y.is_inference() for y in (*ng.linalg.eigh(a), ng.linalg.solve(a, a)))
        assert ng.linalg.inv(a).requires_grad


def test_an_error_leaves_things_as_they_were():
    good, bad = ng.tensor(np.eye(2), requires_grad=True), ng.zeros((2, 2))
    for _ in range(2):
        with pytest.raises(ng.NumgradLinAlgError, match="solve: the matrix is singular"):
            ng.linalg.solve(bad, np.ones(2))
        assert ng.linalg.solve(good, np.ones(2)).tolist() == [1.0, 1.0]
        with pytest.raises(ng.NumgradLinAlgError, match="inv: the matrix is singular"):
            ng.linalg.inv(bad)
        with pytest.raises(ng.NumgradLinAlgError, match="the matrix is not positive definite"):
            ng.linalg.cholesky(bad)
        for function in (ng.linalg.eigh, ng.linalg.svd, ng.linalg.eigvalsh):
            with pytest.raises(ng.NumgradLinAlgError, match="did not converge for the matrix"):
                function(np.full((3, 3), np.nan))
            stack = np.broadcast_to(np.eye(3), (2, 3, 3)).copy()
            stack[1] = np.nan
            with pytest.raises(ng.NumgradLinAlgError, match=r"did not converge for matrix \(1,\)"):
                function(stack)
        for batch in ((2,), (1, 2)):
            stack = np.broadcast_to(np.eye(2), (*batch, 2, 2)).copy()
            stack[..., 1, :, :] = 0
            place = r"\(1,\)" if batch == (2,) else r"\(0, 1\)"
            with pytest.raises(ng.NumgradLinAlgError, match=f"matrix {place} of a stack"):
                ng.linalg.solve(stack, np.ones((*batch, 2, 1)))
            with pytest.raises(ng.NumgradLinAlgError, match=f"matrix {place} of a stack"):
                ng.linalg.cholesky(stack)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (1, 1, 2), (2, 0)])
def test_batches_of_any_rank_are_those_of_each(batch):
    a = R.normal(size=(*batch, 3, 3)) + 5 * np.eye(3)
    b = R.normal(size=(*batch, 3, 2))
    for function, operands in (
        (ng.linalg.solve, (a, b)),
        (lambda x: ng.linalg.cholesky(x @ x.mT), (a,)),
        (lambda x: ng.linalg.eigh(x + x.mT)[1] ** 2, (a,)),
        (lambda x: ng.linalg.svd(x)[0] ** 2, (a,)),
        (ng.linalg.inv, (a,)),
        (lambda x: ng.linalg.slogdet(x)[1], (a,)),
        (lambda x, y: ng.linalg.solve_triangular(x, y, lower=True), (a, b)),
    ):
        whole = [ng.tensor(x, requires_grad=True) for x in operands]
        out = function(*whole)
        (out * out).sum().backward()
        for place in np.ndindex(*batch):
            each = [ng.tensor(x[place], requires_grad=True) for x in operands]
            one = function(*each)
            (one * one).sum().backward()
            np.testing.assert_allclose(out[place].detach(), one.detach(), rtol=1e-13)
            for x, y in zip(whole, each, strict=True):
                np.testing.assert_allclose(x.grad[place], y.grad, rtol=1e-9, atol=1e-12)


def test_composed_operations_look_at_their_operands_first():
    a = [[2.0, 0.0], [0.0, 3.0]]
    np.testing.assert_array_equal(ng.linalg.eigh(a=ng.tensor(a))[0], [2.0, 3.0])
    np.testing.assert_array_equal(ng.linalg.eigh(a)[0], [2.0, 3.0])
    with pytest.raises(ng.NumgradTypeError, match=r"eigh: .*'uplo'"):
        ng.linalg.eigh(ng.tensor(a), uplo="U")
    found = ng.vmap(lambda x: ng.linalg.eigh(x).eigenvalues)(np.array([a, a]))
    np.testing.assert_array_equal(found, [[2.0, 3.0], [2.0, 3.0]])


def test_every_template_can_be_compiled():
    for count, notes, outputs, watched in itertools.product((1, 2, 4), *[(False, True)] * 3):
        template = PreparedTemplate(count, notes, outputs, watched, ("pass",))
        compile(template.source(), "template", "exec")
    for watched in (False, True):
        compile(ComposedTemplate(watched).source(), "template", "exec")


def test_calls_are_seen_by_the_profiler():
    a = ng.tensor(np.eye(2), requires_grad=True)
    ng.linalg.solve(a, np.ones(2))
    with profile() as seen:
        for _ in range(3):
            ng.linalg.solve(a, np.ones(2)).sum().backward()
            ng.linalg.eigh(a)
    names = [event.name for event in seen.events() if event.kind == "operation"]
    assert names.count("solve") == names.count("eigh") == names.count("symmetric_eigen") == 3
    nodes = [event.name for event in seen.events() if event.kind == "backward node"]
    assert nodes == ["SumBackward", "SolveBackward"] * 3
