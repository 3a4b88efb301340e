"""Forward mode: every operation against differences and reverse mode, levels, errors, threads."""

import threading

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd import forward_ad as fw
from numgrad.core.axis import AxisOp
from numgrad.core.declare import primitive
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.testing import gradcheck
from numgrad.testing.samples import draw
from tests.operations.cases import EVERY_LAYOUT, TABLE, cases, turn
from tests.operations.reference import by_name


def inner(a, b):
    """The real inner product."""
    return float(np.real(np.vdot(a, b)))


def direction(x, rng):
    """A random tangent of an array; None for what has none."""
    if x.dtype.kind not in "fc":
        return None
    t = rng.standard_normal(x.shape)
    return np.asarray(t + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else t, x.dtype)


def as_tuple(y):
    return y if isinstance(y, tuple) else (y,)


def check(f, arrays, moving=None, h=1e-6, rtol=1e-6):
    """``J t`` against central differences, and ``<g, J t>`` against ``<J^T g, t>``."""
    rng = np.random.default_rng(7)
    tangents = [
        direction(x, rng) if moving is None or k in moving else None for k, x in enumerate(arrays)
    ]
    leaves = [ng.tensor(x, requires_grad=t is not None) for x, t in zip(arrays, tangents)]  # noqa: B905
    # with and without a graph besides: the record of a call comes from elsewhere then
    _, recorded = fw.jvp(f, leaves, tangents)
    with ng.no_grad():
        _, found = fw.jvp(f, [x.detach() for x in leaves], tangents)

    def moved(step):
        given = [
            ng.tensor(x if t is None else x + step * t)
            for x, t in zip(arrays, tangents, strict=True)
        ]
        return [y.numpy() for y in as_tuple(f(*given))]

    outs = as_tuple(f(*leaves))
    for out, t, same, up, down in zip(
        outs, as_tuple(found), as_tuple(recorded), moved(h), moved(-h), strict=True
    ):
        assert t.shape == out.shape
        assert t.dtype == out.dtype
        np.testing.assert_allclose(t.numpy(), same.numpy(force=True), rtol=1e-12, atol=1e-14)
        scale = max(1.0, float(np.abs(t.numpy()).max(initial=0)))
        np.testing.assert_allclose(t.numpy(), (up - down) / (2 * h), rtol=rtol, atol=1e-7 * scale)
        if not out.requires_grad:
            assert not t.numpy().any()
            continue
        g = direction(out.numpy(force=True), rng)
        pairs = [(x, s) for x, s in zip(leaves, tangents, strict=True) if s is not None]
        gradients = ng.autograd.grad(
            out, [x for x, _ in pairs], g, retain_graph=True, materialize_grads=True
        )
        pulled = sum(inner(v.numpy(), s) for v, (_, s) in zip(gradients, pairs, strict=True))
        assert inner(g, t.numpy()) == pytest.approx(pulled, rel=1e-9, abs=1e-11)


# ------------------------------------------------------------------------------------ the table


def one_of(op, moving):
    """Numbers of operands; of an elementwise operation, with a formula for each, one in turn."""
    if not isinstance(op, Elementwise) or op.name in EVERY_LAYOUT:
        return moving
    return [sorted(moving)[turn(op) % len(moving)]]


ROUGH = {"itairy": 2e-5}
"""What differences differ more from: SciPy ends the series where a term is 1e-5 of the sum."""


@pytest.mark.slow
@pytest.mark.parametrize("op", **by_name(TABLE))
def test_every_operation(op):
    """All operands move, then each alone; of elementwise operations one alone, in turn."""
    for number, case in enumerate(cases(op)):
        moving = {k for k, smooth in enumerate(case.differentiable) if smooth}
        check(case.function, case.operands, moving, rtol=ROUGH.get(op.name, 1e-6))
        alone = len(moving) > 1 and not (isinstance(op, Elementwise) and number)
        for k in one_of(op, moving) if alone else ():  # the other operands are constants
            check(case.function, case.operands, {k})


OF_ONE_KIND = {"divmod", "ediff1d"}
"""What refuses real operands beside complex ones, or the other way about."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "op", **by_name([op for op in TABLE if not op.real_only and op.name not in OF_ONE_KIND])
)
def test_every_operation_on_complex_operands(op):
    """All operands complex, then each real in turn; of elementwise operations one of them.

    Of operations along axes half of the ways: all are tried on real operands.
    """
    step = 2 if isinstance(op, AxisOp) else 1
    for number, case in enumerate(list(cases(op, np.complex128))[::step]):
        moving = {k for k, smooth in enumerate(case.differentiable) if smooth}
        check(case.function, case.operands, moving)
        beside_real = len(moving) > 1 and not op.keeps_dtype
        beside_real &= not (isinstance(op, Elementwise) and number)  # shapes do not matter to it
        for k in one_of(op, moving) if beside_real else ():
            mixed = [a.real.copy() if j == k else a for j, a in enumerate(case.operands)]
            check(case.function, mixed, moving)
            if not isinstance(op, Elementwise) or op.name in EVERY_LAYOUT:
                check(case.function, mixed, {k})


@pytest.mark.slow
@pytest.mark.parametrize("op", **by_name([op for op in TABLE if isinstance(op, AxisOp)]))
def test_reduced_axes_that_are_kept(op):
    if "keepdims" in op.params:
        for case in cases(op):
            axis = -1 if case.operands[0].ndim else None
            check(lambda x, a=axis: op(x, axis=a, keepdims=True), case.operands)


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[[0, 0, 2], 1:],
        lambda x: x[x.detach().real > 0],
        lambda x: ng.pad(x, 1, constant_values=3.0),
        lambda x: ng.cumulative_prod(x, axis=1, include_initial=True),
        lambda x: ng.einsum("ij,kj->ik", x, x),
        lambda x: np.linalg.norm(x),
        lambda x: np.concatenate([x, np.ones((1, 4)), x * x]),
        lambda x: ng.add([x[0], x[1]], 2.0),
        lambda x: 2.0 - x,
        lambda x: x + np.ones((2, 3, 4)),
        lambda x: ng.split(x, 2, axis=1),
        lambda x: ng.clip(x.real, -0.5, None),
        lambda x: x.T.reshape(-1) * 2,
        lambda x: np.conj(x) * x,
        lambda x: x.clone().mT,
        lambda x: ng.nan_to_num(x),
        lambda x: np.mean(x, axis=1, dtype=np.complex128),
        lambda x: np.prod(x, axis=1, dtype=np.complex128),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.complex128, marks=pytest.mark.slow)])
def test_composed(f, dtype):
    check(f, [draw(OPS["sin"], (3, 4), dtype)])


def test_derivative_at_a_tie_is_that_of_reverse_mode():
    x, t = ng.tensor([2.0, 2.0, 1.0]), ng.tensor([1.0, 3.0, 5.0])
    _, of_max = fw.jvp(lambda x: x.max(), [x], [t])
    assert of_max.item() == 2.0
    _, of_maximum = fw.jvp(lambda x: np.maximum(x, 2.0), [x], [t])
    np.testing.assert_array_equal(of_maximum.numpy(), [0.5, 1.5, 0.0])


def test_single_precision_and_conversions():
    x, t = ng.tensor([1.0, 2.0], dtype=ng.float32), ng.tensor([1.0, 1.0], dtype=ng.float32)
    for f, dtype in (
        (lambda x: np.exp(x) * np.float32(2), ng.float32),
        (lambda x: x * np.array([1.0, 2.0]), ng.float64),
        (lambda x: x.astype(ng.float64), ng.float64),
        (lambda x: x * 1j, ng.complex64),
    ):
        value, tangent = fw.jvp(f, [x], [t])
        assert value.dtype == tangent.dtype == dtype
    with fw.dual_level():
        dual = fw.make_dual(x, np.ones(2))
        assert fw.unpack_dual(dual).tangent.dtype == ng.float32
        assert fw.unpack_dual(dual.astype(int)).tangent is None
        assert fw.unpack_dual(dual > 1).tangent is None
        assert fw.unpack_dual(np.argmax(dual)).tangent is None
        assert fw.unpack_dual(np.floor(dual)).tangent is None


# --------------------------------------------------------------------- with reverse mode, nested


def rosenbrock(x, m):
    return m.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


FUNCTIONS = {
    "rosenbrock": (lambda x: rosenbrock(x, np), lambda x, torch: rosenbrock(x, torch)),
    "exp and tanh, which save their results": (
        lambda x: (np.exp(x) * np.tanh(x)).sum(),
        lambda x, torch: (torch.exp(x) * torch.tanh(x)).sum(),
    ),
    "logsumexp": (
        lambda x: ng.logsumexp(x * x) + np.sqrt(x).sum(),
        lambda x, torch: torch.logsumexp(x * x, 0) + torch.sqrt(x).sum(),
    ),
    "softmax": (
        lambda x: (ng.softmax(x) * x).sum(),
        lambda x, torch: (torch.softmax(x, 0) * x).sum(),
    ),
    "matmul": (
        lambda x: np.sin(x.reshape(2, 2) @ x.reshape(2, 2)).sum(),
        lambda x, torch: torch.sin(x.reshape(2, 2) @ x.reshape(2, 2)).sum(),
    ),
    "cumprod": (lambda x: (x.cumprod() ** 2).sum(), lambda x, torch: (x.cumprod(0) ** 2).sum()),
    "prod and division": (
        lambda x: x.prod() / (1 + x).sum(),
        lambda x, torch: x.prod() / (1 + x).sum(),
    ),
}
POINT, VECTOR = np.array([0.7, 1.3, 0.4, 2.1]), np.array([1.0, -0.5, 2.0, 0.25])


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessian_vector_products(name):
    torch = pytest.importorskip("torch")
    f, f_torch = FUNCTIONS[name]
    x = torch.tensor(POINT, requires_grad=True)
    (g,) = torch.autograd.grad(f_torch(x, torch), x, create_graph=True)
    (expected,) = torch.autograd.grad(g, x, torch.tensor(VECTOR))

    def gradient(values):
        x = ng.tensor(values, requires_grad=True)
        return ng.autograd.grad(f(x), x)[0].numpy()

    h = 1e-6
    differences = (gradient(POINT + h * VECTOR) - gradient(POINT - h * VECTOR)) / (2 * h)
    np.testing.assert_allclose(differences, expected, rtol=1e-6, atol=1e-7)

    for create_graph in (False, True):  # forward over reverse
        with fw.dual_level():
            x = fw.make_dual(ng.tensor(POINT, requires_grad=True), VECTOR)
            (g,) = ng.autograd.grad(f(x), x, create_graph=create_graph)
            hvp = fw.unpack_dual(g).tangent
        assert hvp.requires_grad == create_graph
        np.testing.assert_allclose(hvp.numpy(force=True), expected, rtol=1e-10)

    x = ng.tensor(POINT, requires_grad=True)  # reverse over forward
    _, slope = fw.jvp(f, [x], [VECTOR])
    (hvp,) = ng.autograd.grad(slope, x)
    np.testing.assert_allclose(hvp.numpy(), expected, rtol=1e-10)

    def slope_along(x):  # forward over forward: v . H v
        return fw.jvp(f, [x], [VECTOR])[1]

    _, second = fw.jvp(slope_along, [ng.tensor(POINT)], [VECTOR])
    np.testing.assert_allclose(second.item(), VECTOR @ expected.numpy(), rtol=1e-10)


def test_gradient_with_respect_to_the_tangent():
    x, t = ng.tensor([0.3, 0.4]), ng.tensor([1.0, 2.0], requires_grad=True)
    _, slope = fw.jvp(lambda x: ng.softmax(np.sin(x)), [x], [t])
    (g,) = ng.autograd.grad(slope, t, np.array([1.0, 0.0]))
    leaf = ng.tensor([0.3, 0.4], requires_grad=True)
    (row,) = ng.autograd.grad(ng.softmax(np.sin(leaf)), leaf, np.array([1.0, 0.0]))
    np.testing.assert_allclose(g.numpy(), row.numpy(), rtol=1e-12)


def test_derivatives_of_sine_up_to_order_four():
    derivatives = [np.sin]
    for _ in range(4):
        f = derivatives[-1]
        derivatives.append(lambda x, f=f: fw.jvp(f, [x], [ng.tensor(1.0)])[1])
    expected = [np.sin(0.6), np.cos(0.6), -np.sin(0.6), -np.cos(0.6), np.sin(0.6)]
    np.testing.assert_allclose([f(ng.tensor(0.6)).item() for f in derivatives], expected)


def test_forward_over_reverse_with_packed_values():
    x = np.array([0.1, 0.5])
    packing = ng.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), ng.tensor)
    with packing, fw.dual_level():
        dual = fw.make_dual(ng.tensor(x, requires_grad=True), np.ones(2))
        (g,) = ng.autograd.grad((np.exp(dual) * dual).sum(), dual)
        found = fw.unpack_dual(g).tangent
    np.testing.assert_allclose(found.numpy(), np.exp(x) * (2 + x), rtol=1e-12)


def test_reverse_over_forward_through_a_write():
    def f(x):
        y = x * 1.0
        y += x * x
        return y * y

    x, t = np.array([0.7, 1.3]), np.array([1.0, -2.0])
    leaf = ng.tensor(x, requires_grad=True)
    (g,) = ng.autograd.grad(fw.jvp(f, [leaf], [t])[1].sum(), leaf)
    np.testing.assert_allclose(g.numpy(), t * (2 + 12 * x + 12 * x * x), rtol=1e-12)


def test_levels_do_not_confuse_their_tangents():
    # d/dx (x * d/dy (x + y)) is 1 at y = 1, 2 if the tangents were mixed up
    def f(x):
        return x * fw.jvp(lambda y: x + y, [ng.tensor(1.0)], [ng.tensor(1.0)])[1]

    assert fw.jvp(f, [ng.tensor(5.0)], [ng.tensor(1.0)])[1].item() == 1.0


def test_nested_levels_by_hand():
    with fw.dual_level() as outer:
        x = fw.make_dual(ng.tensor(2.0), ng.tensor(1.0))
        with fw.dual_level() as inner_level:
            assert (outer, inner_level) == (0, 1)
            y = fw.make_dual(x, ng.tensor(1.0)) ** 3
            with pytest.raises(ng.NumgradRuntimeError, match="inside level 0"):
                fw.unpack_dual(y, level=0)
            first = fw.unpack_dual(y).tangent
            with pytest.raises(ng.NumgradRuntimeError, match="not the innermost"):
                fw.make_dual(x, ng.tensor(1.0), level=0)
        assert first.item() == 12.0
        assert fw.unpack_dual(first).tangent.item() == 12.0
        assert fw.unpack_dual(y).tangent.item() == 12.0
        assert fw.unpack_dual(y, level=outer).tangent.item() == 12.0


def test_reverse_mode_is_undisturbed():
    x = ng.tensor([0.5, 1.5], requires_grad=True)
    with fw.dual_level():
        y = fw.make_dual(x, np.ones(2))
        (y * y).sum().backward()
        np.testing.assert_array_equal(x.grad.detach().numpy(), [1.0, 3.0])
        primal = fw.unpack_dual(y * 2).primal
        assert ng.autograd.grad(primal.sum(), x)[0].tolist() == [2.0, 2.0]
    assert not x.grad.requires_grad
    with fw.dual_level(), ng.no_grad():  # no_grad is about reverse mode alone
        z = fw.make_dual(x, np.ones(2)) * 3
        assert not z.requires_grad
        assert fw.unpack_dual(z).tangent.tolist() == [3.0, 3.0]


# -------------------------------------------------------------------------------- duals and views


def test_make_and_unpack():
    primal, tangent = ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0])
    with fw.dual_level():
        dual = fw.make_dual(primal, tangent)
        assert dual is not primal
        assert np.shares_memory(dual.detach().numpy(), primal.numpy())
        unpacked = fw.unpack_dual(dual)
        assert isinstance(unpacked, fw.UnpackedDualTensor)
        assert unpacked.tangent is tangent
        assert np.shares_memory(unpacked.primal.numpy(), primal.numpy())
        assert fw.unpack_dual(unpacked.primal).tangent is None
        assert fw.unpack_dual(unpacked.primal[:1]).tangent is None
        assert fw.unpack_dual(primal).tangent is None
        assert fw.unpack_dual(dual.detach()).tangent is None
        copy = fw.unpack_dual(dual.clone()).tangent
        assert copy.tolist() == [3.0, 4.0]
        assert not np.shares_memory(copy.numpy(), tangent.numpy())
        assert fw.unpack_dual(dual.requires_grad_(False)).tangent is tangent
    assert fw.unpack_dual(dual) == (dual, None)
    with fw.dual_level():
        assert fw.unpack_dual(dual * 2).tangent is None


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1:, ::-1],
        lambda x: x.T,
        lambda x: x.reshape(-1),
        lambda x: x.real,
        lambda x: ng.diagonal(x),
        lambda x: ng.broadcast_to(x, (2, 3, 4)),
        lambda x: ng.unstack(x)[1],
    ],
)
def test_tangent_of_a_view_is_a_view_of_the_tangent(view):
    t = ng.tensor(np.arange(12.0).reshape(3, 4) * (1 + 1j))
    with fw.dual_level():
        x = fw.make_dual(ng.tensor(np.ones((3, 4), complex)), t)
        part = fw.unpack_dual(view(x)).tangent
        assert np.shares_memory(part.numpy(), t.numpy())
        np.testing.assert_array_equal(part.numpy(), view(t).numpy())


@pytest.mark.parametrize(
    "f", [lambda x: +x, lambda x: x + 1, lambda x: np.fmod(x, 9.0), lambda x: x.T.reshape(-1)]
)
def test_results_with_own_memory_have_tangents_with_own_memory(f):
    t = ng.tensor(np.arange(12.0).reshape(3, 4).T)
    with fw.dual_level():
        x = fw.make_dual(ng.tensor(np.ones((4, 3))), t)
        y = f(x)
        assert not np.shares_memory(fw.unpack_dual(y).tangent.numpy(), t.numpy())


def test_view_made_before_its_root_got_a_tangent():
    root = ng.tensor(np.zeros((3, 4)))
    view = root[1]
    with fw.dual_level():
        level = state.interpreters[-1]
        tangent = ng.tensor(np.arange(12.0).reshape(3, 4))
        level.set_tangent(root, tangent)
        assert fw.unpack_dual(view).tangent.tolist() == [4.0, 5.0, 6.0, 7.0]
        assert fw.unpack_dual(view * 2).tangent.tolist() == [8.0, 10.0, 12.0, 14.0]
        assert np.shares_memory(fw.unpack_dual(view).tangent.numpy(), tangent.numpy())


def fill_pieces(x):
    y = ng.zeros(3)
    y[0] = x[0] * x[1]
    y[1:] = np.sin(x)
    y *= x[0]
    return y


def write_through_views(x):
    y = ng.zeros((2, 2))
    before = y.T[0]
    row = y[1]
    row += x
    y[0, 1] = x[0] ** 2
    y.mul_(2.0)
    return before * y[:, 1]


def overwrite(x):
    y = x * x
    part = y[:1]
    y[0] = 5.0
    y.exp_()
    return y * part


def write_to_columns(x):
    y = ng.asarray(np.zeros((2, 2), order="F"))
    column = y[:, 1]
    y[:, 1] = x
    y[0] += 1.0
    return column * x + y[0]


@pytest.mark.parametrize(
    "f", [fill_pieces, write_through_views, overwrite, write_to_columns], ids=lambda f: f.__name__
)
def test_inplace(f):
    x, t = np.array([0.7, 1.3]), np.array([1.0, -2.0])
    with ng.no_grad():
        _, found = fw.jvp(f, [ng.tensor(x)], [t])
        h = 1e-6
        up, down = (f(ng.tensor(x + step * t)).numpy() for step in (h, -h))
    np.testing.assert_allclose(found.numpy(), (up - down) / (2 * h), rtol=1e-8, atol=1e-9)


def test_duplicate_copies_the_tangent():
    with fw.dual_level():
        level = state.interpreters[-1]
        x, y = fw.make_dual(ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0])), ng.zeros(2)
        level.duplicate(x, y)
        assert fw.unpack_dual(y).tangent.tolist() == [3.0, 4.0]
        x *= 0.0
        assert fw.unpack_dual(y).tangent.tolist() == [3.0, 4.0]
        level.duplicate(ng.ones(2), x)
        assert fw.unpack_dual(x).tangent.tolist() == [0.0, 0.0]


def test_inplace_writes_to_the_tangent_that_is_there():
    with fw.dual_level():
        x = fw.make_dual(ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0])) * 1.0
        tangent = fw.unpack_dual(x).tangent
        x[0] = 7.0
        assert fw.unpack_dual(x).tangent is tangent
        assert tangent.tolist() == [0.0, 4.0]
        numbers = ng.tensor([1, 2])
        numbers[:] = x
        assert fw.unpack_dual(numbers).tangent is None


# ------------------------------------------------------------------------------ declared formulas


def test_declared_formula():
    @primitive(method=False, register=False)
    def cube_and_scale(a, b, *, factor=1.0):
        return a**3 * factor + b

    seen = []

    def formula(t_a, t_b, a, y, factor):
        seen.append(type(y))
        return 3 * a * a * t_a * factor + t_b

    cube_and_scale.jvp(formula)
    a, b = ng.tensor([1.0, 2.0]), np.array([1.0, 1.0])
    _, t = fw.jvp(lambda a: cube_and_scale(a, b, factor=2.0), [a], [np.ones(2)])
    assert t.tolist() == [6.0, 24.0]
    assert seen == [ng.Tensor]
    cube_and_scale.jvp(lambda t_a, nothing: t_a)
    with pytest.raises(ng.NumgradTypeError, match=r"cube_and_scale.*'nothing'"):
        fw.jvp(lambda a: cube_and_scale(a, b), [a], [np.ones(2)])


def test_auxiliaries_several_outputs_and_a_body_that_runs_once():
    calls = []

    def body(x):
        calls.append(1)
        doubled = x * 2
        return (doubled, np.sin(x), np.arange(3)), (np.cos(x),)

    body.__name__ = "several"
    op = primitive(auxiliaries=("slope",), outputs=True, method=False, register=False)(body)
    op.vjp(x=lambda g, slope: 2 * g[0] + g[1] * slope)
    x, t = np.array([0.1, 0.2]), np.array([1.0, 2.0])
    with fw.dual_level():
        a, b, c = op(fw.make_dual(ng.tensor(x), t))
        np.testing.assert_allclose(fw.unpack_dual(a).tangent.numpy(), 2 * t)
        np.testing.assert_allclose(fw.unpack_dual(b).tangent.numpy(), np.cos(x) * t)
        assert fw.unpack_dual(c).tangent is None
    assert len(calls) == 1


# ------------------------------------------------------------------------------------- gradcheck


def test_gradcheck_in_forward_mode():
    x = ng.tensor([0.5, 1.5], requires_grad=True)
    z = ng.tensor([0.5 + 1j, 1.5], requires_grad=True)
    assert gradcheck(lambda x, z: (np.sin(x) * z, ng.softmax(x)), (x, z), check_forward_ad=True)
    assert gradcheck(lambda x: np.exp(x) > 1, x, check_forward_ad=True)
    assert gradcheck(np.exp, ng.tensor(np.zeros((0, 2)), requires_grad=True), check_forward_ad=True)

    @primitive(method=False, register=False)
    def double(x):
        return x * 2

    double.vjp(x=lambda g: g * 2).jvp(lambda t_x: t_x * 3)
    assert gradcheck(double, x)
    with pytest.raises(ng.GradcheckError, match=r"(?s)forward mode.*output 0 for input 0"):
        gradcheck(double, x, check_forward_ad=True)


# ------------------------------------------------------------------------------- errors, threads


def test_what_cannot_be_dual_is_refused():
    """Promise 111."""
    x, t = ng.tensor([1.0, 2.0]), ng.tensor([1.0, 0.5])
    assert fw.unpack_dual(x) == (x, None)
    with pytest.raises(RuntimeError, match="make_dual: no dual level"):
        fw.make_dual(x, t)
    with pytest.raises(RuntimeError, match="exit_dual_level: no dual level"):
        fw.exit_dual_level()
    with pytest.raises(RuntimeError, match="unpack_dual: no dual level"):
        fw.unpack_dual(x, level=0)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        with pytest.raises(RuntimeError, match=r"shape \(1,\), the primal \(2,\)"):
            fw.make_dual(x, t[:1])
        with pytest.raises(ValueError, match="primal is int64"):
            fw.make_dual(ng.tensor([1, 2]), t)
        with pytest.raises(ValueError, match="tangent is int64"):
            fw.make_dual(x, ng.tensor([1, 2]))
        with pytest.raises(RuntimeError, match="complex128, the primal float64"):
            fw.make_dual(x, t * 1j)
        with pytest.raises(RuntimeError, match="primal has a tangent"):
            fw.make_dual(dual, t)
        with pytest.raises(RuntimeError, match="tangent has a tangent"):
            fw.make_dual(x, dual)
        with pytest.raises(TypeError, match="make_dual: a str"):
            fw.make_dual("x", t)
        with pytest.raises(RuntimeError, match="level 3 is not active"):
            fw.exit_dual_level(level=3)
        assert fw.enter_dual_level() == 1
        with pytest.raises(RuntimeError, match="level 0 is not the innermost"):
            fw.exit_dual_level(level=0)
        fw.exit_dual_level(level=1)
        assert fw.unpack_dual(dual).tangent is t


def test_exceptions_leave_no_level_behind():
    def fail():
        with fw.dual_level():
            fw.enter_dual_level()
            raise KeyError("inside")

    with pytest.raises(KeyError):
        fail()
    assert state.interpreters == ()
    with fw.dual_level():
        x = fw.make_dual(ng.tensor([1.0, 2.0]), np.ones(2))
        with pytest.raises(ValueError, match="add"):
            x + np.ones(3)
        assert len(state.interpreters) == 1
        assert fw.unpack_dual(x * 2).tangent.tolist() == [2.0, 2.0]


def test_as_a_decorator():
    @fw.dual_level()
    def slope(x):
        return fw.unpack_dual(np.sin(fw.make_dual(x, np.ones(())))).tangent.item()

    assert slope(ng.tensor(0.0)) == 1.0
    assert state.interpreters == ()


def test_levels_are_per_thread():
    failures, barrier = [], threading.Barrier(2)

    def work(k):
        try:
            assert state.interpreters == ()
            with fw.dual_level() as level:
                assert level == 0
                x = fw.make_dual(ng.tensor(float(k)), np.array(1.0 + k))
                barrier.wait(60)
                for _ in range(50):
                    y = np.sin(x) * x
                    expected = (np.cos(k) * k + np.sin(k)) * (1.0 + k)
                    assert fw.unpack_dual(y).tangent.item() == pytest.approx(expected)
                barrier.wait(60)
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    with fw.dual_level():
        mine = fw.make_dual(ng.tensor(1.0), np.array(1.0))
        threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert fw.unpack_dual(mine).tangent.item() == 1.0
    assert not failures


def test_tangents_are_freed_with_their_level():
    import weakref

    x = ng.tensor([1.0, 2.0], requires_grad=True)
    with fw.dual_level():
        y = np.exp(fw.make_dual(x, np.ones(2)))
        tangent = weakref.ref(fw.unpack_dual(y).tangent)
        assert tangent() is not None
    assert tangent() is None
    assert y.requires_grad
