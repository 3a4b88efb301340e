"""Products of vectors, matrices, stacks and tensors."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.testing import gradcheck, gradgradcheck

rng = np.random.default_rng(4)

SHAPES = [
    ((3, 4), (4, 5)),
    ((7, 9), (9, 6)),
    ((1, 1), (1, 1)),
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 3)),
    ((9,), (9, 7)),
    ((2, 3, 4), (2, 4, 2)),
    ((2, 1, 3, 4), (3, 4, 2)),
    ((2, 3, 4), (4, 2)),
    ((2, 3, 4), (1, 4, 2)),
    ((3, 4), (2, 4, 3)),
    ((1, 3, 4), (2, 4, 3)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 3)),
    ((4,), (1, 4, 3)),
    ((2, 5, 6, 7), (2, 1, 7, 5)),
]
EMPTY = [((0, 4), (4, 3)), ((3, 0), (0, 2)), ((0,), (0,)), ((2, 0, 3), (3, 4)), ((0, 2, 3), (3,))]


def array(shape, dtype="float64"):
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return (x * 3).astype(dtype)


def layouts(x):
    yield x
    if x.ndim > 1:
        yield np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
        yield np.asfortranarray(x)
    yield np.repeat(x, 2, axis=-1)[..., ::2]
    yield x[::-1].copy()[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("shapes", SHAPES + EMPTY, ids=str)
@pytest.mark.parametrize("dtype", ["int32", "float64", "complex64"])
def test_values_and_gradients_in_all_layouts(shapes, dtype):
    """All pairs of layouts in float64; otherwise each beside C and beside one like it."""
    a, b = (array(s, dtype) for s in shapes)
    expected = np.asarray(np.matmul(a, b))
    tolerance = 1e-5 if expected.dtype.itemsize // (1 + (expected.dtype.kind == "c")) < 8 else 1e-12
    differentiable = expected.dtype.kind in "fc"
    g = array(expected.shape, dtype)
    by_formula = None
    for i, x in enumerate(layouts(a)):
        for j, y in enumerate(layouts(b)):
            if dtype != "float64" and i != j and (i or j):
                continue
            out, call = OPS["matmul"].run((x, y), {})
            assert out.dtype == expected.dtype
            np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
            if not differentiable:
                continue
            if by_formula is None:
                by_formula = gradients_by_formula(call, g, a, b)
            for mask in (1, 2, 3) if dtype == "float64" and (i == j or not i or not j) else (3,):
                values = {"a": x, "b": y}
                saved = [values[name] for name in call.saves(mask)]
                found, owned = call.backward(mask, g, saved)
                assert owned == mask
                for k in (0, 1):
                    if not mask >> k & 1:
                        assert found[k] is None
                        continue
                    assert found[k].dtype == np.dtype(dtype)
                    np.testing.assert_allclose(
                        found[k], by_formula[k], rtol=10 * tolerance, atol=10 * tolerance
                    )


def gradients_by_formula(call, g, a, b):
    """Gradients through einsum of NumPy's."""
    a2 = a[None] if a.ndim == 1 else a
    b2 = b[:, None] if b.ndim == 1 else b
    g2 = g if b.ndim > 1 else g[..., None]
    g2 = g2 if a.ndim > 1 else g2[..., None, :]
    ga = np.matmul(g2, np.conj(b2.swapaxes(-1, -2)))
    gb = np.matmul(np.conj(a2.swapaxes(-1, -2)), g2)
    return summed(ga, a2.shape).reshape(a.shape), summed(gb, b2.shape).reshape(b.shape)


def summed(x, shape):
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    axes = tuple(k for k, n in enumerate(shape) if n == 1 and x.shape[k] != 1)
    return x.sum(axis=axes, keepdims=True)


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", pytest.param("complex128", marks=pytest.mark.slow)])
def test_second_derivatives(shapes, dtype):
    small = [tuple(min(n, 3) if n > 4 else n for n in s) for s in shapes]
    if shapes[0][-1] > 4:
        small = [tuple(2 if n > 4 else n for n in s) for s in shapes]
    a, b = (ng.tensor(array(s, dtype), requires_grad=True) for s in small)
    assert gradcheck(ng.matmul, (a, b))
    assert gradgradcheck(ng.matmul, (a, b))


def test_mixed_dtypes():
    a, b = array((3, 4), "float32"), array((4, 2), "complex128")
    x, y = ng.tensor(a, requires_grad=True), ng.tensor(b, requires_grad=True)
    z = x @ y
    assert z.dtype == np.complex128
    ng.sum(ng.real(z)).backward()
    assert x.grad.dtype == np.float32
    np.testing.assert_allclose(x.grad.numpy(), np.tile(b.real.sum(1), (3, 1)), rtol=1e-6)
    z = ng.tensor(a, requires_grad=True) @ np.arange(4)
    assert z.dtype == np.float64


def test_operators():
    a, b = array((3, 4)), array((4, 2))
    t = ng.tensor(a, requires_grad=True)
    for product in (t @ b, t @ ng.asarray(b), t @ b.tolist()):
        np.testing.assert_allclose(product.detach().numpy(), a @ b)
    np.testing.assert_allclose((b.T @ t.mT).detach().numpy(), b.T @ a.T)
    for _ in range(2):  # the second call finds the plan
        u, v = ng.tensor(a, requires_grad=True), ng.tensor(b, requires_grad=True)
        ng.sum(u @ v).backward()
        np.testing.assert_allclose(u.grad.numpy(), np.ones((3, 2)) @ b.T)
        np.testing.assert_allclose(v.grad.numpy(), a.T @ np.ones((3, 2)))


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("size", [5, 1500, 40_000])
def test_products_with_vectors_do_not_depend_on_the_number_of_threads(size):
    before = ng.get_num_threads()
    m = max(3, 300_000 // size)
    a, x, g = array((m, size)), array((size,)), array((m,))
    found = []
    try:
        for threads in (1, 2):
            ng.set_num_threads(threads)
            t, v = ng.tensor(a, requires_grad=True), ng.tensor(x, requires_grad=True)
            y = t @ v
            (y @ g).backward()
            z = ng.tensor(g) @ ng.tensor(a)
            found.append([r.detach().numpy() for r in (y, t.grad, v.grad, z, v @ v)])
    finally:
        ng.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(found[0][0], a @ x, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[0][2], g @ a, rtol=1e-10, atol=1e-10)


def test_products_without_blas_do_not_depend_on_the_number_of_threads():
    before = ng.get_num_threads()
    a, b = array((150, 70)), array((120, 70))
    found = []
    try:
        for threads in (1, 2):
            ng.set_num_threads(threads)
            x, y = ng.tensor(a, requires_grad=True), ng.tensor(b, requires_grad=True)
            product = x @ y.T
            (product * product).sum().backward()
            found.append([v.detach().numpy() for v in (product, x.grad, y.grad)])
    finally:
        ng.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(found[0][0], a @ b.T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[0][1], 2 * (a @ b.T) @ b, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[0][2], 2 * (a @ b.T).T @ a, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(ng.jit(lambda p, q: p @ q.T)(a, b), found[0][0])


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((3, 4), (3, 4)), r"\(3, 4\) and \(3, 4\).*\(4\).*\(3\)"),
        (((3,), (4,)), r"\(3,\) and \(4,\)"),
        (((), (3, 4)), "0-d.*multiply"),
        (((2, 3, 4), (3, 4, 2)), "leading axes"),
    ],
)
def test_matmul_errors(shapes, text):
    a, b = (ng.tensor(array(s)) for s in shapes)
    with pytest.raises(ng.NumgradValueError, match=text):
        a @ b


# ------------------------------------------------------------------------- made of matmul

PRODUCTS = {
    "dot": (ng.dot, np.dot, ((3, 4), (4, 2)), {}),
    "dot vectors": (ng.dot, np.dot, ((4,), (4,)), {}),
    "dot 0-d": (ng.dot, np.dot, ((), (4,)), {}),
    "dot 3-d": (ng.dot, np.dot, ((2, 3, 4), (2, 4, 3)), {}),
    "dot 3-d vector": (ng.dot, np.dot, ((2, 3, 4), (4,)), {}),
    "dot vector 3-d": (ng.dot, np.dot, ((4,), (2, 4, 3)), {}),
    "inner": (ng.inner, np.inner, ((2, 4), (3, 4)), {}),
    "inner vectors": (ng.inner, np.inner, ((4,), (4,)), {}),
    "inner 0-d": (ng.inner, np.inner, ((), (4,)), {}),
    "outer": (ng.outer, np.outer, ((2, 2), (3,)), {}),
    "vdot": (ng.vdot, np.vdot, ((2, 3), (2, 3)), {}),
    "vecdot": (ng.vecdot, np.vecdot, ((2, 3, 4), (3, 4)), {}),
    "vecdot of a vector": (ng.vecdot, np.vecdot, ((3,), (3, 3)), {}),
    "vecdot with a vector": (ng.vecdot, np.vecdot, ((3, 3), (3,)), {}),
    "vecdot axis": (ng.vecdot, np.vecdot, ((4, 3), (4, 3)), {"axis": 0}),
    "tensordot": (ng.tensordot, np.tensordot, ((2, 3, 4), (3, 4, 2)), {}),
    "tensordot 0": (ng.tensordot, np.tensordot, ((2, 3), (4,)), {"axes": 0}),
    "tensordot pairs": (
        ng.tensordot, np.tensordot, ((2, 3, 4), (4, 5, 2)), {"axes": ((0, -1), (2, 0))},
    ),
    "tensordot axis": (ng.tensordot, np.tensordot, ((2, 3), (3, 2)), {"axes": (1, 0)}),
    "kron": (ng.kron, np.kron, ((2, 3), (2, 2)), {}),
    "kron ranks": (ng.kron, np.kron, ((2,), (2, 1, 2)), {}),
}  # fmt: skip


@pytest.mark.slow(cases=5)
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(
    "dtype",
    [
        "float64",
        *(pytest.param(d, marks=pytest.mark.slow) for d in ("int64", "float32", "complex128")),
    ],
)
def test_products(name, dtype):
    ours, theirs, shapes, params = PRODUCTS[name]
    arrays = [array(s, dtype) for s in shapes]
    got = ours(*map(ng.asarray, arrays), **params)
    expected = np.asarray(theirs(*arrays, **params))
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, atol=1e-5)
    if expected.dtype.itemsize >= 8 and expected.dtype.kind in "fc":
        leaves = [ng.tensor(a, requires_grad=True) for a in arrays]
        assert gradcheck(lambda *t: ours(*t, **params), leaves)
        assert gradgradcheck(lambda *t: ours(*t, **params), leaves)


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ba,cb", (2, 3), (4, 2)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iij->j", (3, 3, 2)),
    ("iii->i", (2, 2, 2)),
    ("i,i", (4,), (4,)),
    ("i,j->ij", (2,), (3,)),
    ("i,j->ji", (2,), (3,)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)),
    ("bij,bkj->bki", (2, 3, 4), (2, 2, 4)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (3, 4, 2)),
    ("...ij,jk", (2, 3, 4), (4, 2)),
    ("i...,i...->...", (3, 2), (3, 2)),
    ("...,...", (2, 3), (3,)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("ij,j->i", (2, 3), (3,)),
    ("ijk,k->", (2, 3, 2), (2,)),
    ("ii,ij->j", (3, 3), (3, 2)),
    ("ij,kl->", (2, 2), (3, 2)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("ij,ij,ij->i", (2, 3), (2, 3), (2, 3)),
    ("a,ab,b,->", (2,), (2, 3), (3,), ()),
    (",ij->ij", (), (2, 3)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("i i j -> j", (2, 2, 3)),
]


@pytest.mark.slow(cases=5)
@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param("int32", marks=pytest.mark.slow),
        "float64",
        pytest.param("complex128", marks=pytest.mark.slow),
    ],
)
def test_einsum(case, dtype):
    text, *shapes = case
    arrays = [array(s, dtype) for s in shapes]
    expected = np.asarray(np.einsum(text, *arrays))
    for optimize in (True, False):
        got = ng.einsum(text, *map(ng.asarray, arrays), optimize=optimize)
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12, atol=1e-11)
    if dtype == "int32":
        return
    leaves = [ng.tensor(a, requires_grad=True) for a in arrays]
    assert gradcheck(lambda *t: ng.einsum(text, *t), leaves)
    assert gradgradcheck(lambda *t: ng.einsum(text, *t), leaves)


def test_einsum_with_lists_of_axes():
    a, b = array((2, 3)), array((3, 4))
    for rest in ([[0, 2]], [[2, 0]], []):
        got = ng.einsum(ng.asarray(a), [0, 1], ng.asarray(b), [1, 2], *rest)
        np.testing.assert_allclose(got.numpy(), np.einsum(a, [0, 1], b, [1, 2], *rest))
    got = ng.einsum(ng.asarray(a), [Ellipsis, 1], ng.asarray(b), [1, 5], [Ellipsis, 5])
    np.testing.assert_allclose(got.numpy(), a @ b)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ij,jk", [(2, 3)]),
        ("ijk", [(2, 3)]),
        ("i", [(2, 3)]),
        ("ij->ijk", [(2, 3)]),
        ("ij->ii", [(2, 3)]),
        ("i-,j", [(2,), (3,)]),
        ("ij,jk->ik", [(2, 3), (4, 2)]),
        ("ii", [(2, 3)]),
        ("...i->i", [(2, 3)]),
        ("..i", [(2, 3)]),
    ],
)
def test_einsum_errors(text, shapes):
    with pytest.raises(ng.NumgradValueError, match="einsum"):
        ng.einsum(text, *[ng.tensor(array(s)) for s in shapes])


@pytest.mark.parametrize(
    "call",
    [
        lambda a: ng.tensordot(a, a, 1),
        lambda a: ng.tensordot(a, a, 3),
        lambda a: ng.tensordot(a, a, ((0, 1), (0,))),
        lambda a: ng.dot(a, a),
        lambda a: ng.inner(a, a[:, :2]),
        lambda a: ng.vdot(a, a[0]),
        lambda a: ng.vecdot(a, a[:, :2]),
    ],
)
def test_errors(call):
    with pytest.raises(ng.NumgradValueError, match=r"\("):
        call(ng.tensor(array((2, 3))))


@pytest.mark.slow(cases=0)
def test_gradients_agree_with_torch():
    torch = pytest.importorskip("torch")
    arrays = [array(s, "complex128") for s in ((2, 3, 4), (4, 5), (5,))]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    torch.abs(torch.einsum("bij,jk,k->bi", *theirs) @ theirs[0].mean(2).mT).sum().backward()
    ours = [ng.tensor(a, requires_grad=True) for a in arrays]
    ng.sum(ng.abs(ng.einsum("bij,jk,k->bi", *ours) @ ng.mean(ours[0], axis=2).mT)).backward()
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-10)


@pytest.mark.parametrize("names", ["ijk", "ijkl", "i", "", "...ijk", "...ijkl"])
def test_einsum_of_an_operand_with_other_axes(names):
    """As NumPy, it refuses letters that are one too many or few as well as several."""
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"einstein|operand|subscripts"):
        np.einsum(f"{names},ij->", x, x)
    bare = names.removeprefix("...")
    with pytest.raises(ng.NumgradValueError, match=f"names {len(bare)} axes .* has 2"):
        ng.einsum(f"{names},ij->", ng.tensor(x), x)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("repeated", [0, 1])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_one_matrix_for_a_whole_stack(dtype, repeated, transposed):
    def drawn(*shape):
        return rng.normal(size=(*shape, np.dtype(dtype).itemsize // 8)).view(dtype)[..., 0]

    lead, shapes = (2, 3), [(4, 5), (5, 6)]
    factors = [drawn(*lead, *shape) for shape in shapes]
    one = drawn(*shapes[repeated])
    one = np.ascontiguousarray(one.T).T if transposed else one
    factors[repeated] = np.broadcast_to(one, factors[repeated].shape)
    a, b = factors
    g = drawn(*lead, 4, 6)
    expected = g @ b.conj().swapaxes(-1, -2), a.conj().swapaxes(-1, -2) @ g
    for wanted in ((0,), (1,), (0, 1)):
        operands = [ng.tensor(x, requires_grad=k in wanted) for k, x in enumerate(factors)]
        leaf = ng.tensor(one, requires_grad=repeated in wanted)
        operands[repeated] = np.broadcast_to(leaf, factors[repeated].shape)
        assert not any(operands[repeated].numpy(force=True).strides[:2])
        product = operands[0] @ operands[1]
        np.testing.assert_allclose(product.numpy(force=True), a @ b)
        gradients = ng.autograd.grad(product, [operands[k] for k in wanted], g)
        for k, gradient in zip(wanted, gradients, strict=True):
            np.testing.assert_allclose(gradient.numpy(), expected[k])
