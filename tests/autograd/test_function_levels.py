"""Functions in forward mode and in batches: promise 106 of SEMANTICS.md."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.autograd.function.function import Function, once_differentiable
from numgrad.core.interpreter import Interpreter, state
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from tests.autograd.functions import leaf, powers, scaling

forward_ad = ng.autograd.forward_ad
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


# -------------------------------------------------------------------- promise 106: forward mode


def forward_mode(lib):
    return lib.autograd.forward_ad


def with_jvp(lib, jvp, forward=None):
    return scaling(lib, forward, jvp=staticmethod(jvp))


def test_forward_mode_needs_a_jvp(lib, raises):
    """Promise 106."""
    fw = forward_mode(lib)
    with fw.dual_level():
        x = fw.make_dual(lib.ones(2), lib.ones(2))
        with raises(NotImplementedError, "F: has no jvp"):
            scaling(lib).apply(x)
        assert fw.unpack_dual(scaling(lib).apply(lib.ones(2))).tangent is None


def test_jvp_gives_the_tangent(lib):
    """Promise 106."""
    seen = []

    def forward(ctx, x, factor, z):
        ctx.save_for_forward(x)
        ctx.factor = factor
        return x * factor, x > 0, 3

    def jvp(ctx, *tangents):
        seen.append([None if t is None else t.tolist() for t in tangents])
        assert [t.tolist() for t in ctx.saved_tensors] == [[1.0, 2.0]]
        return tangents[0] * ctx.factor, None, None

    fw = forward_mode(lib)
    with fw.dual_level():
        x = fw.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([1.0, 10.0]))
        y, positive, number = with_jvp(lib, jvp, forward).apply(x, 3.0, lib.ones(1))
        assert fw.unpack_dual(y).tangent.tolist() == [3.0, 30.0]
        assert fw.unpack_dual(positive).tangent is None
        assert number == 3
    assert seen == [[[1.0, 10.0], None, [0.0]]]


def test_absent_tangents_that_are_not_materialized(lib):
    """Promise 106."""

    def forward(ctx, x, z):
        ctx.set_materialize_grads(False)
        return x + z

    seen = []
    fw = forward_mode(lib)
    with fw.dual_level():
        x = fw.make_dual(lib.ones(2), lib.ones(2))
        with_jvp(lib, lambda ctx, t, u: seen.append(u) or t * 1, forward).apply(x, lib.ones(2))
    assert seen == [None]


@pytest.mark.parametrize(
    ("jvp", "words"),
    [
        (lambda ctx, t: (t, t), "returned 2 tangents for 1 outputs"),
        (lambda ctx, t: t[:1], r"shape \(1,\)"),
        (lambda ctx, t: [t], "a list as the tangent"),
    ],
)
def test_tangents_that_do_not_fit_are_refused(lib, raises, jvp, words):
    """Promise 106."""
    fw = forward_mode(lib)
    with fw.dual_level():
        x = fw.make_dual(lib.ones(2), lib.ones(2))
        with raises((RuntimeError, TypeError), words):
            with_jvp(lib, jvp).apply(x)


def test_the_graph_of_a_tangent(lib):
    """Promise 106."""

    def forward(ctx, x):
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)
        return x**3

    def jvp(ctx, t):
        return 3 * ctx.saved_tensors[0] ** 2 * t

    f = scaling(
        lib, forward, lambda ctx, g: 3 * g * ctx.saved_tensors[0] ** 2, jvp=staticmethod(jvp)
    )
    fw = forward_mode(lib)
    x = leaf(lib)
    with fw.dual_level():
        y = fw.unpack_dual(f.apply(fw.make_dual(x, lib.ones(2))))
        (g,) = lib.autograd.grad(y.primal.sum(), x, retain_graph=True)
        (h,) = lib.autograd.grad(y.tangent.sum(), x)
    assert (g.tolist(), h.tolist()) == ([3.0, 12.0], [6.0, 12.0])


def test_a_tangent_of_a_gradient(lib):
    """Promise 106."""
    f = powers(lib)
    f.jvp = staticmethod(lambda ctx, t, _: ctx.exponent * t * ctx.x ** (ctx.exponent - 1))
    plain = f.forward

    def forward(ctx, x, exponent):
        ctx.x = x.detach()
        return plain(ctx, x, exponent)

    f.forward = staticmethod(forward)
    fw = forward_mode(lib)
    with fw.dual_level():
        x = fw.make_dual(leaf(lib, 2.0, 3.0), lib.ones(2))
        (g,) = lib.autograd.grad(f.apply(x, 4).sum(), x)
        found = fw.unpack_dual(g)
        assert found.primal.tolist() == [32.0, 108.0]
        assert found.tangent.tolist() == [48.0, 108.0]


def test_nested_levels():
    def forward(ctx, x):
        ctx.save_for_forward(x)
        return x**3

    f = with_jvp(ng, lambda ctx, t: 3 * ctx.saved_tensors[0] ** 2 * t, forward)

    def slope(x):
        return forward_ad.jvp(f.apply, (x,), (ng.ones(2),))[1]

    assert forward_ad.jvp(slope, (ng.tensor([1.0, 2.0]),), (ng.ones(2),))[1].tolist() == [6.0, 12.0]


def test_a_dirty_dual(lib):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    fw = forward_mode(lib)
    with fw.dual_level():
        x = fw.make_dual(lib.ones(2), lib.ones(2))
        y = with_jvp(lib, lambda ctx, t: t.mul_(2), forward).apply(x)
        assert y is x
        assert fw.unpack_dual(y).tangent.tolist() == [2.0, 2.0]


def test_no_tangent_means_zero():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(ng.ones(2), ng.ones(2)) * 1
        y = with_jvp(ng, lambda ctx, t: None, lambda ctx, x: x).apply(x)
        assert forward_ad.unpack_dual(y).tangent.tolist() == [0.0, 0.0]


def test_the_tangent_of_an_output_is_not_that_of_the_input():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(ng.ones(2), ng.ones(2))
        y = with_jvp(ng, lambda ctx, t: t, lambda ctx, x: x + 1).apply(x)
        y.mul_(5)
        assert forward_ad.unpack_dual(x).tangent.tolist() == [1.0, 1.0]
        assert forward_ad.unpack_dual(y).tangent.tolist() == [5.0, 5.0]


# ------------------------------------------------------------------------- promise 106: batches


class Weighted(Function):
    """``x * w`` and its sum, with operations only."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, w, scale):
        y = x * w * scale
        return y, y.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, ctx.scale = inputs
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w)

    @staticmethod
    def backward(ctx, g, h):
        x, w = ctx.saved_tensors
        g = (g + h) * ctx.scale
        return g * w, g * x, None

    @staticmethod
    def jvp(ctx, t_x, t_w, _):
        x, w = ctx.saved_tensors
        t = (t_x * w + x * t_w) * ctx.scale
        return t, t.sum()


def batch(function, xs, *rest):
    """Results of a function of one row of ``xs`` for all rows."""
    with BatchingInterpreter(len(xs)) as level:
        found = function(level.wrap(xs), *rest)
    if isinstance(found, tuple):
        return tuple(level.unwrap(y) for y in found)
    return level.unwrap(found)


def by_hand(function, xs, *rest):
    rows = [function(x, *rest) for x in xs]
    if isinstance(rows[0], tuple):
        return tuple(np.stack(column) for column in zip(*rows, strict=True))
    return np.stack(rows)


def test_a_rule_gets_arguments_without_batches_as_they_are():
    notes, given = [], {}

    class Scaled(Function):
        @staticmethod
        def forward(x, parts, notes):
            notes.append(x.shape)
            return x * parts[0]

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, parts, notes):
            given.update(in_dims=in_dims, notes=notes)
            return Scaled.apply(x, [p[:, None] for p in parts], notes), 0

    mapped = ng.vmap(lambda x, y: Scaled.apply(x, [y], notes))
    assert mapped(np.ones((2, 3)), np.array([2.0, 5.0])).tolist() == [[2.0] * 3, [5.0] * 3]
    assert given["in_dims"] == (0, [0], [])
    assert given["notes"] is notes
    assert notes == [(2, 3)]


def test_a_generated_rule():
    """Promise 106."""
    xs, w = ng.tensor(np.arange(6.0).reshape(3, 2), requires_grad=True), leaf(ng)
    found, expected = batch(Weighted.apply, xs, w, 2.0), by_hand(Weighted.apply, xs, w, 2.0)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert a.tolist() == b.tolist()
    assert found[0].grad_fn.name() == "WeightedBackward"
    weights = ng.tensor([1.0, 10.0, 100.0])
    losses = [(y.sum(axis=1) * weights).sum() + (z * weights).sum() for y, z in (found, expected)]
    for a, b in zip(*[ng.autograd.grad(loss, (xs, w)) for loss in losses], strict=True):
        assert a.shape == b.shape
        assert a.tolist() == b.tolist()


def test_a_generated_rule_differentiated_twice():
    """Promise 106."""
    xs, w = ng.tensor(np.arange(6.0).reshape(3, 2), requires_grad=True), leaf(ng)

    def second(apply):
        y, z = apply(Weighted.apply, xs, w, 2.0)
        gx, gw = ng.autograd.grad((y**2).sum() + z.sum(), (xs, w), create_graph=True)
        return ng.autograd.grad((gx**2).sum() + gw.sum(), (xs, w))

    for a, b in zip(second(batch), second(by_hand), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-14)


def test_batches_of_batches():
    """Promise 106."""
    xs = ng.tensor(np.arange(12.0).reshape(2, 3, 2), requires_grad=True)
    w = ng.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def inner(x, w):
        with BatchingInterpreter(3) as level:
            y, z = Weighted.apply(level.wrap(x), w, 2.0)
        return level.unwrap(y), level.unwrap(z)

    with BatchingInterpreter(2) as level:
        y, z = inner(level.wrap(xs), level.wrap(w))
    y, z = level.unwrap(y), level.unwrap(z)
    expected = 2 * xs.detach().numpy() * w.detach().numpy()[:, None, :]
    assert y.tolist() == expected.tolist()
    assert z.tolist() == expected.sum(axis=-1).tolist()
    gx, gw = ng.autograd.grad((y * y).sum(), (xs, w))
    np.testing.assert_allclose(gx.numpy(), 4 * expected * w.detach().numpy()[:, None, :])
    np.testing.assert_allclose(gw.numpy(), (4 * expected * xs.detach().numpy()).sum(axis=1))


@pytest.mark.parametrize("outer", ["batch", "forward"])
def test_batches_in_forward_mode(outer):
    """Promise 106."""
    xs, ts = np.arange(6.0).reshape(3, 2), np.ones((3, 2))
    w, v = np.array([1.0, 2.0]), np.array([0.5, 0.0])
    expected = 2 * (ts * w + xs * v)
    if outer == "batch":
        with BatchingInterpreter(3) as level:
            _, (y, z) = forward_ad.jvp(
                lambda x, w: Weighted.apply(x, w, 2.0),
                (level.wrap(xs), ng.tensor(w)),
                (level.wrap(ts), ng.tensor(v)),
            )
        y, z = level.unwrap(y), level.unwrap(z)
    else:
        _, (y, z) = forward_ad.jvp(
            lambda xs, w: batch(Weighted.apply, xs, w, 2.0),
            (ng.tensor(xs), ng.tensor(w)),
            (ng.tensor(ts), ng.tensor(v)),
        )
    assert y.tolist() == expected.tolist()
    assert z.tolist() == expected.sum(axis=1).tolist()


def test_marks_within_a_batch():
    """Promise 106."""

    class Split(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2, x * 3, ng.ones(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(*output[1:])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, g, h, k):
            assert h is None
            assert k is None
            return g * 2

    xs = ng.tensor(np.arange(6.0).reshape(3, 2), requires_grad=True)
    a, b, c = batch(Split.apply, xs)
    assert a.requires_grad
    assert not b.requires_grad
    assert not c.requires_grad
    a.sum().backward()
    assert xs.grad.tolist() == np.full((3, 2), 2.0).tolist()


def test_once_differentiable_within_a_batch():
    """Promise 106."""

    class Square(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    xs = ng.tensor(np.arange(6.0).reshape(3, 2), requires_grad=True)
    (g,) = ng.autograd.grad(batch(Square.apply, xs).sum(), xs, create_graph=True)
    assert g.tolist() == (2 * np.arange(6.0).reshape(3, 2)).tolist()
    with pytest.raises(NumgradRuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_a_rule_written_by_the_user():
    """Promise 106."""
    seen = []

    class Total(Weighted):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x, w, scale):
            seen.append((info.batch_size, in_dims))
            y = (x * w * scale).T
            return (y, y.sum(axis=0)), (1, 0)

    xs, w = ng.tensor(np.arange(6.0).reshape(3, 2), requires_grad=True), leaf(ng)
    found, expected = batch(Total.apply, xs, w, 2.0), by_hand(Weighted.apply, xs, w, 2.0)
    assert seen == [(3, (0, None, None))]
    for a, b in zip(found, expected, strict=True):
        assert a.tolist() == b.tolist()
    found[0].sum().backward()
    assert w.grad.tolist() == [12.0, 18.0]


def test_a_rule_may_give_an_output_without_a_batch_axis():
    """Promise 106."""

    class One(Weighted):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x, w, scale):
            return w * scale, None

    assert batch(One.apply, ng.ones((3, 2)), ng.ones(2), 2.0).tolist() == [[2.0, 2.0]] * 3


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda x: x, "return a pair"),
        (lambda x: ((x, x), (0,)), "returned 2 outputs and .* batch axes"),
        (lambda x: (x, (None,)), "returned 1 outputs and .* batch axes"),
    ],
)
def test_rules_that_return_something_else_are_refused(returned, words):
    """Promise 106."""

    class Odd(Weighted):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x, w, scale):
            return returned(x)

    with pytest.raises((NumgradTypeError, NumgradRuntimeError), match=words):
        batch(Odd.apply, ng.ones((3, 2)), ng.ones(2), 2.0)


def test_batches_need_a_rule():
    """Promise 106."""

    class Without(Weighted):
        generate_vmap_rule = False

    with pytest.raises(NumgradRuntimeError, match="Without: does not say how"):
        batch(Without.apply, ng.ones((3, 2)), ng.ones(2), 1.0)
    with BatchingInterpreter(3):  # with nothing of the batch it is an ordinary call
        assert Without.apply(ng.ones(2), ng.ones(2), 1.0)[0].tolist() == [1.0, 1.0]


def test_two_rules_are_one_too_many():
    """Promise 106."""

    class Both(Weighted):
        @staticmethod
        def vmap(info, in_dims, *args):
            return args[0], 0

    with pytest.raises(NumgradRuntimeError, match="Both: has vmap and sets generate_vmap_rule"):
        batch(Both.apply, ng.ones((3, 2)), ng.ones(2), 1.0)


def test_batches_need_setup_context():
    """Promise 106."""
    with pytest.raises(NumgradRuntimeError, match=r"F: .*setup_context"):
        batch(scaling(ng, generate_vmap_rule=True).apply, ng.ones((3, 2)))


def test_nothing_in_a_batch_is_dirty():
    """Promise 106."""

    class Dirty(Weighted):
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

    with pytest.raises(NumgradRuntimeError, match="mark_dirty within a batch"):
        batch(Dirty.apply, ng.ones((3, 2)), ng.ones(2), 1.0)


def test_forward_mode_cannot_see_into_a_rule():
    """Promise 106."""

    class Ruled(Weighted):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x, w, scale):
            return x * w, 0

    def ruled(x):
        return Ruled.apply(x, ng.ones(2), 1.0)

    with BatchingInterpreter(2) as level:
        x = level.wrap(np.ones((2, 2)))
        with pytest.raises(NotImplementedError, match="vmap rule"):
            forward_ad.jvp(ruled, (x,), (x * 1,))


def test_other_interpreters_refuse():
    class Stranger(Interpreter):
        def bind(self, op, args, params):
            raise AssertionError

    before = state.set(interpreters=(Stranger(),))
    try:
        with pytest.raises(NumgradRuntimeError, match=r"F\.apply: .*operations"):
            scaling(ng).apply(leaf(ng))
    finally:
        state.set(**before)


def test_views_have_the_tangents_of_what_a_function_wrote():
    """Promise 106: a write to a part of x by 2 x has the tangent 2 t there, else t."""

    def forward(ctx, x):
        x *= 2
        ctx.mark_dirty(x)
        return x

    fw = forward_mode(ng)
    with fw.dual_level():
        base = fw.make_dual(ng.tensor([1.0, 2.0, 3.0]), ng.ones(3)) * 1
        part = base[:1]
        with_jvp(ng, lambda ctx, t: 2 * t, forward).apply(part)
        assert fw.unpack_dual(base).tangent.tolist() == [2.0, 1.0, 1.0]
        assert fw.unpack_dual(part).tangent.tolist() == [2.0]
        with_jvp(ng, lambda ctx, t: None, forward).apply(part)
        assert fw.unpack_dual(base).tangent.tolist() == [0.0, 1.0, 1.0]


def test_a_view_whose_tangent_is_none_of_the_inputs_is_refused():
    """Promise 106: a write to the view would not reach the tangent of what it shows."""
    fw = forward_mode(ng)
    with fw.dual_level():
        base = fw.make_dual(ng.tensor([1.0, 2.0, 3.0]), ng.ones(3)) * 1
        with pytest.raises(NumgradRuntimeError, match=r"F\.jvp: output 0 is a view of an input"):
            with_jvp(ng, lambda ctx, t: t[:2] * 1, lambda ctx, x: x[:2]).apply(base)
        part = with_jvp(ng, lambda ctx, t: t[:2], lambda ctx, x: x[:2]).apply(base)
        part *= 3
        assert fw.unpack_dual(base).tangent.tolist() == [3.0, 3.0, 1.0]
