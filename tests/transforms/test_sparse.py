"""Sparse derivatives, constants of ``scipy.sparse`` in products, and ``ng.sparse``."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import numgrad as ng
from numgrad.autograd.structured_jacobians import parts_of
from numgrad.testing import gradcheck, gradgradcheck
from numgrad.transforms import sparse_derivatives
from numgrad.transforms.sparse_derivatives import as_pattern, by_rows, symmetric
from tests.operations.calls import calls_of
from tests.operations.cases import TABLE

rng = np.random.default_rng(3)
N = 12
X = rng.normal(size=N)
PLACES = rng.integers(0, N, 7)
DENSE = rng.normal(size=(5, N)) * (rng.uniform(size=(5, N)) < 0.4)
KEPT = sp.csr_array(DENSE)


# ---------------------------------------------------------------------------- patterns

FUNCTIONS = {
    "elementwise": (lambda x: np.where(x > 0, x**2, np.sin(x)), 12),
    "difference": (lambda x: np.diff(x, 2), 30),
    "reversed": (lambda x: x[::-1] * x, 24),
    "index": (lambda x: x[PLACES] ** 2, 7),
    "reduction": (lambda x: np.max(x.reshape(3, 4), axis=0), 12),
    "scan": (lambda x: np.cumsum(x), 78),
    "outer": (lambda x: np.outer(x, x), 276),
    "product": (lambda x: x.reshape(3, 4) @ x.reshape(4, 3), 60),
    "sparse constant": (lambda x: KEPT @ x**2, KEPT.nnz),
    "padding": (lambda x: np.pad(x, 2) ** 2, 12),
    "triangle": (lambda x: np.triu(x.reshape(3, 4)), 9),
    "join": (lambda x: np.concatenate([x[:3], x[5:] * x[0]]), 17),
    "write": (lambda x: ng.zeros(4).slice_scatter(x[3:5], start=1, end=3), 2),
    "stencil": (lambda x: np.convolve(x, [1.0, -2.0, 1.0], "same"), 34),
    "loop": (lambda x: ng.fori_loop(0, 2, lambda i, c: np.roll(c, 1) * x, x), 36),
    "steps": (lambda x: ng.scan(lambda c, a: (0.5 * c + a, c * a), 0.0, x)[1], 78),
    "computed index": (lambda x: x[np.argsort(x)], 144),
    "of no rule": (lambda x: np.sort(x), 144),
    "nothing": (lambda x: np.round(x).astype(int) * 1.0, 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_pattern_has_every_element_and_the_jacobian_is_the_dense_one(name):
    f, count = FUNCTIONS[name]
    pattern = ng.func.sparsity(f, X)
    dense = ng.jacobian(f)(X).reshape(-1, N)
    assert pattern.nnz == count
    assert not dense[~pattern.toarray()].any()
    found = ng.jacobian(f, sparsity=pattern)(X)
    assert isinstance(found, sp.csr_array)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12, atol=1e-14)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("op", [op for op in TABLE if calls_of(op)], ids=lambda op: op.name)
def test_patterns_of_the_table_miss_nothing(op):
    for shapes, function in calls_of(op)[:4]:
        if not shapes or not all(isinstance(shape, tuple) for shape in shapes):
            continue
        operands = [rng.uniform(*op.domain, size=shape) for shape in shapes]
        chosen = tuple(range(len(operands)))

        def floating(*operands, function=function):
            found = function(*operands)
            found = found if isinstance(found, tuple) else (found,)
            return [y for y in found if isinstance(y, ng.Tensor) and y.dtype.kind == "f"]

        try:
            rows = ng.jacobian(floating, chosen)(*operands)
            pattern = ng.func.sparsity(floating, *operands, argnums=chosen)
        except (ng.NumgradError, TypeError):  # for tests, of its own array kinds, or of no trace
            continue
        counts = [x.size for x in operands]
        if not (rows and all(counts)):
            continue
        parts = [[np.reshape(b, (-1, n)) for b, n in zip(r, counts, strict=True)] for r in rows]
        assert not np.block(parts)[~pattern.toarray()].any()


@pytest.mark.parametrize(
    ("f", "count"),
    [
        (lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), 34),
        (lambda x: np.sum(np.sin(x)), 12),
        (lambda x: np.sum(x) * 2.0, 0),
        (lambda x: np.sum(x[0] * x**2), 34),
    ],
)
def test_hessians(f, count):
    pattern = ng.func.sparsity(f, X, order=2)
    assert pattern.nnz == count
    found = ng.hessian(f, sparsity=pattern)(X)
    np.testing.assert_allclose(found.toarray(), ng.hessian(f)(X), rtol=1e-12, atol=1e-14)


def test_a_stencil_takes_as_many_products_as_it_has_points():
    def laplacian(u):
        u = np.pad(u.reshape(40, 40), 1)
        return 4 * u[1:-1, 1:-1] - u[2:, 1:-1] - u[:-2, 1:-1] - u[1:-1, 2:] - u[1:-1, :-2]

    u = rng.normal(size=1600)
    pattern = as_pattern("", ng.func.sparsity(laplacian, u))
    assert pattern.nnz == 5 * 1600 - 4 * 40
    assert by_rows(pattern).count <= 6
    found = ng.jacobian(ng.jit(laplacian), sparsity=pattern)(u)
    np.testing.assert_allclose(found @ u, ng.jvp(laplacian, (u,), (u,))[1].ravel())


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("steps", [2, 0])
def test_compiled_functions_take_columns_where_these_are_fewer(steps, monkeypatch):
    """All rows of an arrow have the first column, so that there are as many colours of rows."""

    def arrow(x):
        y = np.sin(x) * x[0] + np.cos(np.roll(x, 1))
        return ng.fori_loop(0, steps, lambda _, y: y * x, y) if steps else y

    x, products = rng.uniform(0.5, 1.5, 60), []
    pattern = ng.func.sparsity(arrow, x)
    product = sparse_derivatives._product

    def counted(linear, vectors, dtype):
        products.append(len(vectors[0]))
        return product(linear, vectors, dtype)

    monkeypatch.setattr(sparse_derivatives, "_product", counted)
    found = ng.jacobian(ng.jit(arrow), sparsity=pattern)(x)
    assert max(products) < 8, "rows"
    h = 1e-5
    differences = [(arrow(x + h * e) - arrow(x - h * e)) / (2 * h) for e in np.eye(60)]
    np.testing.assert_allclose(found.toarray(), np.transpose(differences), rtol=1e-8, atol=1e-8)


def test_compiled_functions_with_rules_of_users_take_rows():
    """A rule is asked for what it says it gives, once for each row, and not differentiated."""

    @ng.custom_vjp
    def doubled(x):
        return 2 * x

    doubled.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
    mask = np.eye(9) + np.eye(9, k=-1) + (np.arange(9) == 0) > 0
    fast = ng.jit(lambda x: doubled(x) * x[0] + np.concatenate([x[:1], x[:-1]]))
    x = np.arange(1.0, 10.0)
    expected = 2 * x[0] * np.eye(9) + np.eye(9, k=-1)
    expected[:, 0] += 2 * x
    expected[0, 0] += 1
    np.testing.assert_allclose(ng.jacobian(fast, sparsity=mask)(x).toarray(), expected)


STENCILS = {
    "five points": (
        lambda u: (
            u[1:-1, 1:-1] ** 2 * u[2:, 1:-1] - u[:-2, 1:-1] / u[1:-1, 2:] + np.exp(u[1:-1, :-2])
        ),
        True,
    ),
    "a part twice": (lambda u: np.sin(u[1:]) * u[1:] + u[:-1], True),
    "the whole": (lambda u: u * u[::-1] + 2.0, True),
    "views of views": (lambda u: np.tanh(u.T[:3, :3]) * u.reshape(-1)[:9].reshape(3, 3), True),
    "of what was computed": (lambda u: (lambda v: v[1:] * v[:-1])(np.exp(u)), False),
    "rolled": (lambda u: u - np.roll(u, 1, axis=0), False),
    "with a number of it": (lambda u: u[1:] * u[0, 0], False),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", STENCILS)
def test_stencils_take_one_backward(name, dtype):
    function, at_once = STENCILS[name]
    u = (np.random.default_rng(0).random((5, 5)) + 0.5).astype(dtype)
    leaf = ng.tensor(u, requires_grad=True)
    if at_once:
        assert all(part.entries.dtype == dtype for part in parts_of(function(leaf), [leaf]))
    pattern = ng.func.sparsity(function, u)
    wider = ((pattern + sp.eye_array(*pattern.shape)) != 0).astype(float)
    dense = ng.jacrev(function)(u).reshape(pattern.shape)
    for given in (pattern, wider):
        derived = ng.jacobian(function, sparsity=given)
        for _ in range(2):
            found = derived(u)
            assert found.dtype == dtype
            np.testing.assert_allclose(
                found.toarray(), dense, rtol=1e-6 if dtype == np.float32 else 1e-13
            )
    narrower = pattern.copy()
    narrower.data[0] = 0
    narrower.eliminate_zeros()
    with pytest.raises(ValueError, match="sparsity misses elements"):
        ng.jacobian(function, sparsity=narrower)(u)


def test_a_stencil_of_several_arrays():
    def function(a, b):
        return a[1:] * b[:-1] - a[:-1]

    a, b = np.arange(1.0, 6.0), np.arange(2.0, 7.0)
    pattern = ng.func.sparsity(lambda x: function(x[:5], x[5:]), np.concatenate([a, b]))
    found = ng.jacobian(function, (0, 1), sparsity=pattern)(a, b)
    expected = np.hstack(ng.jacobian(function, (0, 1))(a, b))
    np.testing.assert_allclose(found.toarray(), expected)
    assert ng.jacobian(lambda x: x[:0], sparsity=np.zeros((0, 3)))(a[:3]).shape == (0, 3)


def test_an_arrow_needs_few_colours_only_where_symmetry_is_used():
    arrow = sp.csr_array(np.eye(50) + np.eye(1, 50) + np.eye(1, 50).T)
    assert symmetric(as_pattern("", arrow)).count == 2


def test_containers_several_arguments_and_dtypes():
    def f(p, x):
        return {"a": p["k"] * x, "b": np.sum(x[:2])}

    p, x = {"k": np.float32(2.0)}, np.arange(3.0, dtype=np.float32)
    pattern = ng.func.sparsity(f, p, x, argnums=(0, 1))
    found = ng.jacobian(f, (0, 1), sparsity=pattern)(p, x)
    assert found.dtype == np.float32
    expected = [[0, 2, 0, 0], [1, 0, 2, 0], [2, 0, 0, 2], [0, 1, 1, 0]]
    np.testing.assert_array_equal(found.toarray(), expected)


def test_no_elements():
    x = np.zeros(0)
    assert ng.jacobian(np.sin, sparsity=ng.func.sparsity(np.sin, x))(x).shape == (0, 0)


def test_a_pattern_is_not_looked_for_in_a_trace_or_a_batch():
    def count(x):
        return x * ng.func.sparsity(np.diff, x).nnz

    for f, x in ((ng.jit(count), np.ones(4)), (ng.vmap(count), np.ones((2, 4)))):
        with pytest.raises(ng.NumgradRuntimeError, match="find the pattern before"):
            f(x)


def test_patterns_that_are_wrong():
    x = np.arange(4.0)
    with pytest.raises(ng.NumgradValueError, match="misses elements"):
        ng.jacobian(lambda x: np.diff(x**2), sparsity=np.eye(3, 4))(x)
    with pytest.raises(ng.NumgradValueError, match=r"shape \(3, 3\)"):
        ng.jacobian(np.diff, sparsity=np.eye(3))(x)
    with pytest.raises(ng.NumgradValueError, match="not symmetric"):
        ng.hessian(lambda x: np.sum(x**2), sparsity=np.eye(4, k=1))
    with pytest.raises(ng.NumgradTypeError, match="sparsity is a"):
        ng.jacobian(np.diff, sparsity="dense")
    with pytest.raises(ng.NumgradRuntimeError, match="any further"):
        ng.grad(lambda x: ng.jacobian(np.sin, sparsity=np.eye(4))(x).sum())(x)


# ---------------------------------------------------------------------------- constants

KINDS = [
    sp.csr_array, sp.csc_array, sp.coo_array, sp.dia_array, sp.lil_array, sp.csr_matrix,
    sp.dia_matrix,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_products_with_a_constant_of_any_format(kind):
    a, x, y = kind(DENSE), rng.normal(size=(N, 2)), rng.normal(size=(3, 5))
    for right in (x, x[:, 0], np.asfortranarray(x)[::-1]):
        t = ng.tensor(right, requires_grad=True)
        for out in (a @ t, ng.matmul(a, t), np.matmul(a, t)):
            assert isinstance(out, ng.Tensor)
            np.testing.assert_allclose(out.detach(), DENSE @ right)
        (a @ t).sum().backward()
        np.testing.assert_allclose(t.grad, np.broadcast_to(DENSE.sum(0), right.T.shape).T)
    for left in (y, y[0]):
        t = ng.tensor(left, requires_grad=True)
        for out in (t @ a, ng.matmul(t, a), np.matmul(t, a)):
            np.testing.assert_allclose(out.detach(), left @ DENSE)
        (t @ a).sum().backward()
        np.testing.assert_allclose(t.grad, np.broadcast_to(DENSE.sum(1), left.shape))
    assert isinstance(a @ ng.tensor(x), ng.Tensor)
    assert type(a @ x) is np.ndarray  # SciPy's own products are as before
    if sp.isspmatrix(a):
        np.testing.assert_allclose(a * ng.tensor(x), DENSE @ x)


def test_products_in_transforms():
    x = rng.normal(size=N)

    def f(x):
        return np.sum((KEPT @ x) ** 3)

    def dense(x):
        return np.sum((DENSE @ x) ** 3)

    np.testing.assert_allclose(ng.hessian(f)(x), ng.hessian(dense)(x))
    np.testing.assert_allclose(ng.jvp(f, (x,), (x,))[1], ng.jvp(dense, (x,), (x,))[1])
    both = np.stack([x, 2 * x])
    np.testing.assert_allclose(ng.vmap(lambda x: KEPT @ x)(both), both @ DENSE.T)
    np.testing.assert_allclose(ng.vmap(ng.grad(f))(both), ng.vmap(ng.grad(dense))(both))
    fast = ng.jit(ng.grad(f))
    for point in (x, 2 * x):
        np.testing.assert_allclose(fast(point), ng.grad(dense)(point))
    stack = rng.normal(size=(2, N, 3))
    np.testing.assert_allclose(KEPT @ ng.tensor(stack), DENSE @ stack)
    np.testing.assert_allclose(ng.tensor(stack.mT) @ KEPT.T, stack.mT @ DENSE.T)


def test_dtypes_of_products():
    x = np.ones(N, np.float32)
    for dtype in (np.float32, np.complex64, np.float64, bool, np.int64):
        a = sp.csr_array((DENSE != 0).astype(dtype))
        out = a @ ng.tensor(x)
        assert out.dtype == np.result_type(dtype, np.float32)
        np.testing.assert_allclose(out, (DENSE != 0) @ x)
    a = sp.csr_array(DENSE * (1 + 2j))
    for v, f in ((N, lambda t: a @ t), (5, lambda t: t @ a)):
        t = ng.tensor(rng.normal(size=v) + 1j * rng.normal(size=v), requires_grad=True)
        assert gradcheck(f, (t,))


def test_what_does_not_fit_in_a_product():
    t = ng.ones(3)
    for f in (lambda: KEPT @ t, lambda: t @ KEPT, lambda: KEPT @ ng.tensor(1.0)):
        with pytest.raises(ng.NumgradValueError, match="do not fit"):
            f()
    for f in (lambda: ng.matmul(KEPT, KEPT), lambda: ng.add(KEPT, t), lambda: ng.tensor(KEPT)):
        with pytest.raises(ng.NumgradTypeError, match="csr_array"):
            f()


# ---------------------------------------------------------------------------- ng.sparse

SQUARE = 5 * np.eye(6) + rng.normal(size=(6, 6)) * (rng.uniform(size=(6, 6)) < 0.4)


def solved(data, pattern, b):
    return ng.sparse.spsolve(data, pattern, b)


def densely(data, pattern, b):
    matrix = ng.zeros(pattern.shape, dtype=np.result_type(data.dtype, float))
    matrix[pattern.rows, pattern.columns] = data
    return np.linalg.solve(matrix, b)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_matrix])
@pytest.mark.parametrize("shape", [(6,), (6, 2)])
def test_solutions_and_their_derivatives(kind, shape):
    a, b = kind(SQUARE), rng.normal(size=shape)
    pattern, data = ng.sparse.pattern(a), a.tocoo().data
    np.testing.assert_allclose(solved(data, a, b), np.linalg.solve(SQUARE, b))
    for k in (0, 1):
        found, expected = (
            ng.hessian(lambda d, b, f=f: np.sum(f(d, pattern, b) ** 3), k)(data, b)
            for f in (solved, densely)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    move = (0.1 * data, 0.2 * b)
    found, expected = (
        ng.jvp(lambda d, b, f=f: f(d, pattern, b), (data, b), move)[1] for f in (solved, densely)
    )
    np.testing.assert_allclose(found, expected)
    both = ng.vmap(lambda b: solved(data, pattern, b))(np.stack([b, 2 * b]))
    np.testing.assert_allclose(both[1], 2 * both[0])
    fast = ng.jit(ng.grad(lambda d: np.sum(solved(d, pattern, b) ** 2)))
    slow = ng.grad(lambda d: np.sum(densely(d, pattern, b) ** 2))
    np.testing.assert_allclose(fast(data), slow(data))
    np.testing.assert_allclose(fast(2 * data), slow(2 * data))


def test_complex_systems_and_products():
    pattern = ng.sparse.pattern(sp.csc_array(SQUARE))
    data = sp.csc_array(SQUARE).data

    def leaf(x):
        return ng.tensor(x, requires_grad=True)

    for d in (data, data + 0.3j * rng.normal(size=data.shape)):
        given = leaf(d), leaf(rng.normal(size=(6, 2)) + 1j * rng.normal(size=(6, 2)))
        expected = densely(d, pattern, given[1].detach().numpy())
        np.testing.assert_allclose(solved(given[0], pattern, given[1]).detach(), expected)
        assert gradcheck(lambda d, b: solved(d, pattern, b), given)
        assert gradgradcheck(lambda d, b: solved(d, pattern, b), given)
        assert gradcheck(lambda d, x: ng.sparse.matmul(d, pattern, x), given)


def test_gradients_of_matrices_in_a_batch():
    """The outer product at the places of the pattern, which is a rule for whole batches."""
    pattern, x = ng.sparse.pattern(sp.csr_array(SQUARE)), rng.normal(size=6)
    data = sp.csr_array(SQUARE).data
    jacobian = ng.jacobian(lambda d: ng.sparse.matmul(d, pattern, x))(data)
    rows, columns = sp.csr_array(SQUARE).tocoo().coords
    np.testing.assert_allclose(jacobian, np.eye(6)[:, rows] * x[columns])


def test_one_factorisation_serves_the_adjoint_system(monkeypatch):
    import scipy.sparse.linalg as linalg

    calls = []
    splu = linalg.splu
    monkeypatch.setattr(linalg, "splu", lambda a: calls.append(1) or splu(a))
    pattern, data = ng.sparse.pattern(sp.csr_array(SQUARE)), sp.csr_array(SQUARE).data
    ng.hessian(lambda d: np.sum(solved(d, pattern, np.ones(6))))(data)
    assert len(calls) == 1
    solved(2 * data, pattern, np.ones(6))
    assert len(calls) == 2


def test_elements_at_one_place_are_added_up():
    places = np.array([0, 1, 0, 1]), np.array([0, 1, 0, 0])
    pattern = ng.sparse.pattern(sp.coo_array((np.ones(4), places), shape=(2, 2)))
    data = np.array([1.0, 4.0, 2.0, 3.0])
    for p in (pattern, pickle.loads(pickle.dumps(pattern))):
        np.testing.assert_allclose(solved(data, p, [3.0, 7.0]), [1.0, 1.0])
        np.testing.assert_allclose(ng.sparse.matmul(data, p, [1.0, 1.0]), [3.0, 7.0])
        gradient = ng.grad(lambda d, p=p: solved(d, p, [3.0, 7.0]).sum())(data)
        np.testing.assert_allclose(gradient, [-1 / 12, -1 / 4, -1 / 12, -1 / 4])


def test_systems_that_have_no_solution():
    pattern = ng.sparse.pattern(sp.csr_array(np.eye(3)))
    for data, match in ((np.zeros(3), "singular"), (np.full(3, np.nan), "not finite")):
        with pytest.raises(ng.NumgradLinAlgError, match=match):
            solved(data, pattern, np.ones(3))
    with pytest.raises(ng.NumgradLinAlgError, match=r"\(1, 2\)"):
        solved([1.0], sp.csr_array([[1.0, 0.0]]), [1.0])
    with pytest.raises(ng.NumgradValueError, match="3 elements"):
        solved(np.ones(2), pattern, np.ones(3))
    with pytest.raises(ng.NumgradValueError, match=r"b has shape \(2,\)"):
        solved(np.ones(3), pattern, np.ones(2))
    with pytest.raises(ng.NumgradTypeError, match="ndarray"):
        solved(np.ones(9), np.eye(3), np.ones(3))
    assert solved([], sp.csr_array((0, 0)), []).shape == (0,)


def test_a_poisson_problem_in_the_plane():
    """The gradient of a misfit by 4,096 coefficients, against differences along directions."""
    n = 64
    cell = np.arange(n * n).reshape(n, n)
    one = np.concatenate([cell[:, :-1].ravel(), cell[:-1].ravel()])
    two = np.concatenate([cell[:, 1:].ravel(), cell[1:].ravel()])
    rows, columns = (
        np.concatenate([a, b, c, d, cell.ravel()])
        for a, b, c, d in ((one, two, one, two), (two, one, one, two))
    )
    pattern = ng.sparse.pattern(sp.coo_array((np.ones(rows.size), (rows, columns))))
    inside = np.zeros((n, n))
    inside[1:-1, 1:-1] = 1
    edge, source = 1 - inside.ravel(), rng.normal(size=n * n)

    def potential(logarithm):
        k = np.exp(logarithm)
        flow = 2 / (1 / k[one] + 1 / k[two])  # between neighbours
        data = np.concatenate([-flow, -flow, flow, flow, edge * k])
        return ng.sparse.spsolve(data, pattern, source)

    seen = potential(0.3 * rng.normal(size=n * n))

    def misfit(logarithm):
        return np.sum((potential(logarithm) - seen) ** 2)

    at, h = np.zeros(n * n), 1e-4
    gradient = ng.grad(misfit)(at)
    for _ in range(2):
        d = rng.normal(size=n * n)
        difference = (misfit(at + h * d) - misfit(at - h * d)).item() / (2 * h)
        np.testing.assert_allclose(gradient @ d, difference, rtol=1e-4)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_compiled_functions_read_the_elements_of_a_matrix_at_each_call(kind):
    matrix = sp.csr_array(np.array([[1.0, 2.0j], [0.0, 3.0]])).asformat(kind)
    holder = {"matrix": matrix}
    x = np.array([1.0, 2.0])

    def left(x):
        return holder["matrix"] @ x

    def right(x):
        return x @ matrix

    def stepped(x):
        return ng.scan(lambda c, _: (matrix @ c, None), x + 0j, length=2)[0]

    for f in (left, right, stepped):
        fast = ng.jit(f)
        np.testing.assert_allclose(fast(x), f(x))
        matrix.data *= 2
        np.testing.assert_allclose(fast(x), f(x))
        matrix.data = matrix.data * 2
        np.testing.assert_allclose(fast(x), f(x))
    holder["matrix"] = matrix * 3
    fast = ng.jit(left)
    holder["matrix"] = matrix
    np.testing.assert_allclose(fast(x), left(x))


def test_compiled_functions_notice_where_elements_are():
    parts = np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 2, 3])
    matrix = sp.csr_array(parts, shape=(2, 2))
    x = np.array([1.0, 2.0])
    fast = ng.jit(lambda x: matrix @ x)
    np.testing.assert_allclose(fast(x), matrix @ x)
    matrix.sort_indices()
    np.testing.assert_allclose(fast(x), matrix @ x)
    matrix[0, 0] = 0.5
    np.testing.assert_allclose(fast(x), matrix @ x)


def test_elements_that_are_not_read_at_each_call_are_warned_of():
    matrix = sp.dia_array(np.eye(2))
    with pytest.warns(UserWarning, match=r"dia_array become part.*tocsr"):
        ng.jit(lambda x: matrix @ x)(np.ones(2))
    ng.jit(lambda x: sp.dia_array(np.eye(2)) @ x)(np.ones(2))
