"""The operation ``linear`` and the layers Linear, Bilinear, Identity."""

import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn
from numgrad.core.op import OPS
from numgrad.core.plan import Call
from numgrad.nn import functional as F
from tests.nn.peers import compare, copy_parameters

LINEAR = OPS["linear"]
SHAPES = {
    "tiny": (3, (2,), 4),
    "small": (16, (10,), 32),
    "one output": (7, (5,), 1),
    "many rows": (300, (2,), 3),  # more than a block of the column sums
    "leading axes": (2, (3, 4, 5), 6),
}


def operands(shape, dtype, bias=True):
    rows, rest, outputs = shape
    rng = np.random.default_rng(3)

    def draw(*sizes):
        x = rng.standard_normal((*sizes, 2))
        return (x[..., 0] + 1j * x[..., 1] if np.dtype(dtype).kind == "c" else x[..., 0]).astype(
            dtype
        )

    x = draw(rows, *rest)
    return [x, draw(outputs, x.shape[-1]), draw(outputs)][: 3 if bias else 2]


def expected(x, w, b=0.0):
    return np.einsum("...i,oi->...o", x, w) + b


# --------------------------------------------------------------------------------- the operation


@pytest.mark.parametrize(
    ("shape", "dtype", "bias"),
    [
        *itertools.product(SHAPES, ["float64"], [True, False]),
        *itertools.product(["small"], ["float32", "complex128"], [True]),
    ],
)
def test_values_and_the_kernels_gradients_against_the_formulas(shape, dtype, bias):
    args = operands(SHAPES[shape], dtype, bias)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    out, call = LINEAR.run(args, {})
    np.testing.assert_allclose(out, expected(*args), rtol=tolerance, atol=tolerance)
    assert out.dtype == dtype
    seed = np.ascontiguousarray(out[::-1])
    values = dict(zip(LINEAR.inputs, args, strict=False))
    masks = (7 if bias else 3,) if shape != "small" else (7, 1, 2, 4) if bias else (3,)
    # each gradient alone and all at once, as they are and broadcast
    if dtype != "float64":
        masks = masks[:1]
    for mask, g in itertools.product(masks, (seed, np.broadcast_to(seed[:1], seed.shape))):
        saved = [values[name] for name in call.saves(mask)]
        found, owned = call.backward(mask, g, saved)
        wanted, _ = Call.backward(call, mask, g, saved)
        assert owned == mask
        for k in range(len(args)):
            if mask >> k & 1:
                np.testing.assert_allclose(found[k], wanted[k], rtol=tolerance, atol=tolerance * 10)
                assert found[k].flags.c_contiguous
            else:
                assert found[k] is None


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("n", [1, 3, 33, 65])
def test_many_narrow_rows(n, dtype):
    draw = np.random.default_rng(n)
    x, w, b = (draw.integers(-9, 9, shape).astype(dtype) for shape in ((8259, 2), (n, 2), n))
    g = draw.integers(-9, 9, (8259, n)).astype(dtype)
    operands = [ng.tensor(a, requires_grad=True) for a in (x, w, b)]
    out = F.linear(*operands)
    out.backward(ng.tensor(g))
    np.testing.assert_array_equal(out.detach(), x @ w.T + b)  # integers: sums are exact
    np.testing.assert_array_equal(operands[1].grad, g.T @ x)
    np.testing.assert_array_equal(operands[2].grad, g.sum(axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("inner", [1, 2, 8, 9])
def test_a_matrix_of_short_rows_times_a_vector(inner, dtype):
    draw = np.random.default_rng(inner)
    a, x, y = (draw.integers(-9, 9, shape).astype(dtype) for shape in ((71, inner), inner, 71))
    if np.dtype(dtype).kind == "c":
        a, x, y = a + 1j * a[::-1], x - 2j * x, y * dtype(1 + 1j)
    operands = [ng.tensor(v, requires_grad=True) for v in (a, x)]
    out = operands[0] @ operands[1]
    out.backward(ng.tensor(y))
    np.testing.assert_array_equal(out.detach(), a @ x)
    np.testing.assert_array_equal(operands[1].grad, a.conj().T @ y)
    np.testing.assert_array_equal((ng.tensor(a.T.copy()).T @ x), a @ x)


def test_gradients_by_finite_differences():
    x, w, b = (ng.tensor(a, requires_grad=True) for a in operands((3, (4,), 2), "float64"))
    assert ng.testing.gradcheck(F.linear, (x, w, b))
    assert ng.testing.gradgradcheck(F.linear, (x, w, b))
    assert ng.testing.gradcheck(F.linear, (x[0].detach().requires_grad_(), w, b))
    assert ng.testing.gradcheck(F.linear, (x, w[0].detach().requires_grad_(), b[0].detach()))


def test_an_overlapping_gradient():
    args = [ng.tensor(a, requires_grad=True) for a in operands((4, (3,), 2), "float64")]
    F.linear(*args).sum().backward()
    np.testing.assert_allclose(args[2].grad, [4.0, 4.0])
    np.testing.assert_allclose(args[0].grad, np.tile(args[1].detach().numpy().sum(0), (4, 1)))


@pytest.mark.parametrize("bias", [True, False])
def test_the_formula_that_is_shown(bias):
    args = operands((4, (3,), 2), "float64", bias)
    found = ng.ops["linear"].op.function(*args)
    np.testing.assert_allclose(found, expected(*args), rtol=1e-12)


@pytest.mark.parametrize("shape", [(0, (3,), 2), (2, (0,), 2), (2, (3,), 0), (2, (0, 3), 2)])
@pytest.mark.parametrize("bias", [True, False])
def test_empty_operands(shape, bias):
    args = [ng.tensor(a, requires_grad=True) for a in operands(shape, "float64", bias)]
    y = F.linear(*args)
    np.testing.assert_array_equal(y.detach(), expected(*[a.detach().numpy() for a in args]))
    y.backward(ng.ones(y.shape))
    for a in args[:2]:
        np.testing.assert_array_equal(a.grad, np.zeros(a.shape))
    if bias:
        np.testing.assert_array_equal(
            args[2].grad, np.full(args[2].shape, y.size / max(shape[2], 1))
        )


def test_strided_and_mixed_operands():
    x, w, b = operands((6, (8,), 4), "float64")
    for given in (
        (x[::2], w, b),
        (x, w[:, ::-1], b),
        (np.asfortranarray(x), np.asfortranarray(w), b[::-1]),
        (x.astype("float32"), w, b),
        (x, w.astype("float32"), b.astype("float32")),
        (np.arange(16).reshape(2, 8), w, b),
    ):
        tensors = [ng.asarray(a) for a in given]
        for t in tensors:
            t.requires_grad_(t.dtype.kind == "f")
        for _ in range(2):  # the second time by the plan
            y = F.linear(*tensors)
        assert y.dtype == np.float64
        np.testing.assert_allclose(y.detach(), expected(*given), rtol=1e-12)
        y.backward(y.detach())
        g = expected(*given)
        wanted = (g @ given[1], g.T @ given[0], g.sum(0))
        for t, grad in zip(tensors, wanted, strict=True):
            if t.requires_grad:
                assert t.grad.dtype == t.dtype
                tolerance = 1e-5 if t.dtype == np.float32 else 1e-12
                np.testing.assert_allclose(t.grad, grad, rtol=tolerance, atol=1e-12)


def test_integers_and_plain_arrays():
    x, w, b = np.arange(6).reshape(2, 3), np.arange(12).reshape(4, 3), np.arange(4)
    y = F.linear(x, w, b)
    np.testing.assert_array_equal(y, x @ w.T + b)
    assert y.dtype == np.int64
    np.testing.assert_array_equal(F.linear(x, w), x @ w.T)
    np.testing.assert_array_equal(F.linear(ng.tensor(x), weight=w, bias=b), x @ w.T + b)
    np.testing.assert_array_equal(F.linear(x, w[0], 1), x @ w[0] + 1)


def test_what_is_saved_and_needed():
    x, w, b = (ng.tensor(a) for a in operands((2, (3,), 4), "float64"))
    F.linear(x, w, b)
    assert F.linear(x, w, b).grad_fn is None
    y = F.linear(x, w.clone().requires_grad_(), b)
    assert y.grad_fn.name() == "LinearBackward"
    assert y.grad_fn._saved_x is x
    with pytest.raises(AttributeError):
        y.grad_fn._saved_weight  # noqa: B018
    z = F.linear(x.clone().requires_grad_(), w, b)
    assert z.grad_fn._saved_weight is w
    with ng.no_grad():
        w += 1
    with pytest.raises(RuntimeError, match=r"(?s)linear.*version|Linear.*version"):
        z.sum().backward()
    with ng.no_grad():
        assert F.linear(x, w.requires_grad_(), b).grad_fn is None
    with ng.inference_mode():
        assert F.linear(x, w, b).is_inference()


def test_gradients_go_to_outputs_and_views():
    a = ng.tensor(np.arange(4.0).reshape(2, 2), requires_grad=True)
    first, second = ng.unstack(ng.stack([a, a * 2]))
    y = F.linear(first, second, a[0])
    y.sum().backward()
    x = a.detach().numpy()
    wanted = np.ones((2, 2)) @ (2 * x) + 2 * (np.ones((2, 2)) @ x) + [[2, 2], [0, 0]]
    np.testing.assert_allclose(a.grad, wanted)
    a.grad = None
    view = (a * 1)[:, :]
    view += 1  # its history is rewritten
    F.linear(view, view, view[0]).sum().backward()
    assert a.grad is not None


def test_forward_mode_and_hessian():
    x, w, b = (ng.tensor(a) for a in operands((2, (3,), 2), "float64"))
    found = ng.hessian(lambda w: (F.linear(x, w, b) ** 2).sum())(w)
    block = 2 * x.numpy().T @ x.numpy()
    np.testing.assert_allclose(found[0, :, 0], block)
    np.testing.assert_allclose(found[0, :, 1], 0 * block)
    _, tangent = ng.autograd.functional.jvp(F.linear, (x, w, b), (x, w, b))
    np.testing.assert_allclose(tangent, 2 * x.numpy() @ w.numpy().T + b.numpy())


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((2, 3), (4, 2), (4,)), "last axis"),
        (((), (4, 2)), "last axis"),
        (((2, 3), (4, 3), (3,)), "bias"),
        (((2, 3), (4, 3), ()), "bias"),
        (((2, 3), (1, 4, 3)), "two axes"),
    ],
)
def test_errors(shapes, words):
    for requires_grad in (False, True):
        args = [ng.ones(shape).requires_grad_(requires_grad) for shape in shapes]
        with pytest.raises(ValueError, match=f"linear.*{words}"):
            F.linear(*args)
    with pytest.raises(TypeError, match="linear"):
        F.linear(np.ones((2, 2), "float16"), np.ones((2, 2)))
    for call in (LINEAR, lambda: LINEAR(ng.ones(2)), lambda: LINEAR(1, 2, 3, 4)):
        with pytest.raises(TypeError, match="linear"):
            call()


# --------------------------------------------------------------------------------------- bilinear


def test_bilinear():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 5))
    w, bias = rng.standard_normal((6, 4, 5)), rng.standard_normal(6)
    wanted = np.einsum("abi,oij,abj->abo", a, w, b)
    np.testing.assert_allclose(F.bilinear(a, b, w, bias), wanted + bias)
    np.testing.assert_allclose(F.bilinear(a, b, w), wanted)
    np.testing.assert_allclose(F.bilinear(a[0, 0], b[0, 0], w), wanted[0, 0])
    assert F.bilinear(a[:0], b[:0], w, bias).shape == (0, 3, 6)
    for wrong in ((a, b[:1], w), (b, a, w), (a, b, w[0]), (1.0, b, w)):
        with pytest.raises(ValueError, match="bilinear"):
            F.bilinear(*wrong)
    args = [ng.tensor(x, requires_grad=True) for x in (a[0], b[0], w, bias)]
    assert ng.testing.gradcheck(F.bilinear, args)


# ----------------------------------------------------------------------------------------- layers


@pytest.mark.slow
@pytest.mark.parametrize("bias", [True, False])
def test_linear_against_torch(bias):
    torch = pytest.importorskip("torch")
    ours = nn.Linear(4, 3, bias=bias)
    theirs = torch.nn.Linear(4, 3, bias=bias, dtype=torch.float64)
    copy_parameters(ours, theirs)
    rng = np.random.default_rng(1)
    for shape in ((5, 4), (4,), (2, 3, 4), (0, 4)):
        compare(torch, ours, theirs, [rng.standard_normal(shape)])
    assert repr(ours) == repr(theirs)


@pytest.mark.slow
@pytest.mark.parametrize("bias", [True, False])
def test_bilinear_against_torch(bias):
    torch = pytest.importorskip("torch")
    ours = nn.Bilinear(4, 3, 2, bias=bias)
    theirs = torch.nn.Bilinear(4, 3, 2, bias=bias, dtype=torch.float64)
    copy_parameters(ours, theirs)
    rng = np.random.default_rng(1)
    compare(torch, ours, theirs, [rng.standard_normal((5, 4)), rng.standard_normal((5, 3))])
    assert repr(ours) == repr(theirs)


def test_first_values():
    np.random.seed(5)
    layer = nn.Linear(400, 50)
    for parameter in (layer.weight, layer.bias):
        assert np.abs(parameter.detach()).max() <= 1 / 20
        assert np.abs(parameter.detach()).max() > 0.9 / 20
        assert parameter.requires_grad
    np.random.seed(5)
    again = nn.Linear(400, 50)
    assert (again.weight == layer.weight).all()
    layer.reset_parameters()
    assert (again.weight != layer.weight).any()
    both = nn.Bilinear(16, 9, 20)
    assert 0.2 < np.abs(both.weight.detach()).max() <= 1 / 4
    assert 0.1 < np.abs(both.bias.detach()).max() <= 1 / 4
    assert nn.Linear(2, 3, dtype=ng.float32, device="cpu").bias.dtype == ng.float32
    assert nn.Linear(2, 3, dtype=ng.complex64).weight.dtype == ng.complex64
    with pytest.raises(ValueError, match="cuda"):
        nn.Linear(2, 3, device="cuda")
    with pytest.raises(ValueError, match="positive"):
        nn.Bilinear(0, 3, 2)
    assert nn.Linear(2, 3, bias=False).bias is None
    with pytest.warns(UserWarning, match="no elements"):
        assert nn.Linear(0, 3).bias.shape == (3,)


def test_identity():
    x = ng.ones(2)
    assert nn.Identity(3, some="thing")(x) is x


@pytest.mark.parametrize("dtype", ["float16", "foo", object])
def test_a_dtype_without_kernels_is_refused_at_once(dtype):
    with pytest.raises(ng.NumgradTypeError, match="dtype"):
        nn.Linear(2, 2, dtype=dtype)
