"""Operations that move, look up and accumulate elements, inside of compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.intrinsics import HAS_FMA
from numgrad.compiler.graph import evaluate
from numgrad.compiler.passes import optimize
from numgrad.compiler.run.program import KernelProgram, Options, compile_graph
from numgrad.compiler.run.steps import Segment
from numgrad.compiler.trace.interpreter import TraceInterpreter
from numgrad.compiler.trace.tracer import Tracer
from tests.compiler.emulator import emulating

pytestmark = pytest.mark.slow  # kernels are the same for every Python

F = ng.nn.functional
OPS = ng.ops


def rarely(*values: Any) -> Any:
    """A case that runs where there is time for everything."""
    return pytest.param(*values, marks=pytest.mark.slow)


def programs(f: Callable[..., Any], *args: Any, dynamic: bool = True) -> tuple[KernelProgram, Any]:
    """A traced function as compiled and as evaluated, both ready to run."""
    tracer = Tracer(dynamic=dynamic)
    given = [tracer.array(a.shape, a.dtype) for a in args]
    with TraceInterpreter(tracer):
        out = f(*given)
    tracer.graph.outputs = [tracer.value(o) for o in _leaves(out)]
    tracer.graph.resolve_sizes()
    optimize(tracer.graph)
    captured = [getattr(c.owner, "_array", c.owner) for c in tracer.captured]
    program, reference = compile_graph(tracer.graph), evaluate.compile_graph(tracer.graph)
    return program, lambda p, *given: (program if p else reference).run(*given, *captured)


def _leaves(out: Any) -> list[Any]:
    return [x for part in out for x in _leaves(part)] if isinstance(out, tuple | list) else [out]


def check(f: Callable[..., Any], *several: tuple, dynamic: bool = True, rtol: float = 0) -> None:
    """Compile for the first arguments; compare with the operations one by one for all of them."""
    program, run = programs(f, *several[0], dynamic=dynamic)
    assert not [s for s in program.steps if isinstance(s, Segment)], "left to Python"
    for args in several:
        for found, expected in zip(run(True, *args), run(False, *args), strict=True):
            assert np.shape(found) == expected.shape
            assert np.asarray(found).dtype == expected.dtype
            single = expected.dtype.itemsize == (8 if expected.dtype.kind == "c" else 4)
            tolerance = rtol or (2e-5 if single else 1e-12)
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def normal(*shape: int, dtype: str = "float64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x * 3).astype(dtype)


def integers(low: int, high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(low, high, shape)


# ------------------------------------------------------------------------------- put together


def stencil(x):
    y = np.exp(x)
    inner = np.sum(y[1:] * y[:-1]) + np.sum(x[::-1][1:] * x[2::2].mean())
    return inner + np.sum(x[1:-1] ** 2) + x[0] * x[-2]


@pytest.mark.slow(cases=0)
def test_gradients_of_slices_are_one_loop_over_the_result():
    f = ng.value_and_grad(stencil)
    check(f, (normal(9),), (normal(4),), (normal(130),))
    check(f, (normal(5),), dynamic=False)
    program, _ = programs(ng.grad(lambda x: np.sum(x[1:] * x[:-1])), normal(9))
    assert program.source.count("for i") == 1


def rearranged(x, y):
    return (
        np.concatenate([x, y, x[:1]], axis=0),
        np.concatenate([x, y[0]], axis=None),
        np.stack([x, x + 1], axis=1),
        ng.roll(x, 2, 0),
        ng.roll(x, (-1, 7), (0, 1)),
        ng.roll(x, 3),
        np.tril(x, -1),
        np.triu(x),
        np.diagonal(x, 1),
        np.pad(x, ((1, 2), (0, 3)), constant_values=4),
        x[::-2, 1],
        ng.index_put(x, y[0], index=(slice(1, 3), slice(None))),
        ng.index_put(x, x[0, 0], index=(slice(None, None, 2), -1), accumulate=True),
    )


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("dtype", ["float64", rarely("complex64"), rarely("int64")])
def test_arrays_put_together(dtype):
    check(
        rearranged,
        (normal(5, 4, dtype=dtype), normal(2, 4, dtype=dtype)),
        (normal(7, 6, dtype=dtype), normal(3, 6, dtype=dtype)),
    )


def put_together(x, y):
    joined = np.concatenate([x, y * 2], axis=1)
    z = np.sum(joined[:, 1:] ** 2) + np.sum(np.stack([x, x * x]) ** 3)
    z = z + np.sum(ng.roll(x, 1, 1) * x) + np.sum(np.tril(x) ** 2) + np.sum(np.triu(y, 1) ** 2)
    z = z + np.sum(np.exp(np.diagonal(x, -1))) + np.sum(np.pad(y, 1) ** 3)
    return z + np.sum(ng.index_put(x, y[0, 0], index=(0, slice(1, None))) ** 2)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("dtype", ["float64", rarely("float32")])
def test_gradients_of_arrays_put_together(dtype):
    x, y = normal(4, 5, dtype=dtype), normal(4, 2, dtype=dtype)
    check(
        ng.value_and_grad(put_together, argnums=(0, 1)), (x, y), rtol=1e-4 if x.itemsize == 4 else 0
    )


@pytest.mark.slow(cases=0)
def test_short_axes():
    check(ng.value_and_grad(put_together, argnums=(0, 1)), (normal(2, 2), normal(2, 1)))


@pytest.mark.slow(cases=0)
def test_many_numbers_put_together():
    f = ng.value_and_grad(lambda x: np.sum(np.stack([x[k] ** 2 for k in range(20)]) * x))
    check(f, (normal(20),))


def test_counting():
    check(lambda x: (x * ng.arange(x.shape[0]), ng.arange(2, x.shape[0], 3)), (normal(17),))


# ------------------------------------------------------------------------------------ look-up


def looked_up(x, i):
    z = np.sum(np.exp(ng.take(x, i, axis=1)) * 2) + np.sum(ng.take(x, i) ** 2)
    return z + np.sum(np.take_along_axis(x, i, axis=1) ** 2) + np.sum(x[i[0], 1] ** 3)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("dtype", ["float64", rarely("float32")])
def test_look_up(dtype):
    check(
        ng.value_and_grad(looked_up),
        (normal(4, 6, dtype=dtype), integers(-4, 4, 4, 3)),
        rtol=1e-4 if dtype == "float32" else 0,
    )


@pytest.mark.slow(cases=0)
def test_gradients_at_many_indices_do_not_depend_on_threads():
    x, i = normal(50, 3), integers(-50, 50, 40_000)
    program, run = programs(ng.grad(lambda x, i: np.sum(np.sin(x[i]))), x, i)
    shared = compile_graph(program.graph, Options(parallel=True))
    (found,) = run(True, x, i)
    np.testing.assert_allclose(found, run(False, x, i)[0], rtol=1e-9)
    np.testing.assert_array_equal(found, shared.run(x, i)[0])


@pytest.mark.slow(cases=0)
def test_embedding():
    def f(table, i):
        return np.sum(F.embedding(i, table, padding_idx=1) ** 2) + np.sum(table[0] * 2)

    check(ng.value_and_grad(f), (normal(7, 3), integers(0, 7, 4, 3)))


@pytest.mark.slow(cases=0)
def test_additions_at_indices():
    def f(x, i, j, s):
        z = np.sum(ng.index_add(x, i, s, axis=1) ** 2)
        return z + np.sum(ng.scatter_add(x, j, s, axis=1) ** 2)  # pyright: ignore

    check(
        ng.value_and_grad(f, argnums=(0, 3)),
        (normal(4, 6), integers(-6, 6, 3), integers(-6, 6, 4, 3), normal(4, 3, seed=2)),
    )


@pytest.mark.slow(cases=0)
def test_exponentials_around_a_sum_are_computed_once():
    def f(x):
        largest = np.max(x)
        return np.log(np.sum(np.exp(x - largest))) + largest

    gradient, x = ng.jit(ng.grad(f)), normal(40)
    np.testing.assert_allclose(gradient(x), np.exp(x) / np.sum(np.exp(x)), rtol=1e-13)
    assert gradient.report().count("n0 = 40 exp") == 1


@pytest.mark.slow(cases=0)
def test_sums_by_place():
    def f(x, i):
        z = np.sum(ng.bincount(i, x, length=9) ** 2)
        return z + np.sum(ng.bincount(i, length=8) * x[0])

    check(
        ng.value_and_grad(f),
        (normal(5), integers(0, 8, 5)),
        (normal(3), integers(0, 8, 3)),
        (normal(1), np.array([7])),
    )
    for wrong in (-1, 9):
        with pytest.raises(ValueError if wrong < 0 else IndexError, match="bincount"):
            ng.jit(f)(normal(2), np.array([3, wrong]))


@pytest.mark.slow(cases=0)
def test_writes_at_indices():
    def f(x, i, j, s):
        z = np.sum(ng.index_copy(x, i, s, axis=1) ** 2) + np.sum(ng.put(x, j, s) ** 3)  # pyright: ignore
        z = z + np.sum(ng.index_fill(x, i, s[0, 0], axis=1) ** 2)
        return z + np.sum(ng.scatter(x, j, s, axis=1) ** 2) + np.sum(ng.put(x, i, s[0, 1]) ** 2)

    check(
        ng.value_and_grad(f, argnums=(0, 3)),
        (normal(4, 6), integers(-6, 6, 3), integers(-6, 6, 4, 3), normal(4, 3, seed=2)),
    )


@pytest.mark.slow(cases=0)
def test_an_index_out_of_range_raises_what_eager_code_raises():
    def f(x, i, j):
        return np.sum(ng.take(x, i, axis=1) * 2) + np.sum(np.take_along_axis(x, j, axis=0))

    x, i, j = normal(3, 5), integers(-5, 5, 4), integers(-3, 3, 2, 5)
    _, run = programs(f, x, i, j)
    run(True, x, i, j)
    for bad, at in ((5, (i, 2)), (-6, (i, 0)), (3, (j, (1, 4))), (2**62, (j, (0, 0)))):
        array, place = at
        kept = array[place]
        array[place] = bad
        with pytest.raises(ng.NumgradIndexError) as compiled:
            run(True, x, i, j)
        with pytest.raises(ng.NumgradIndexError) as eager:
            f(ng.tensor(x), i, j)
        line, _, message = str(compiled.value).partition(": ")
        assert message == str(eager.value)
        assert line.startswith(__file__)
        array[place] = kept


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize(
    "dtype", ["float64", rarely("complex128"), rarely("int32"), rarely("bool")]
)
def test_places_of_extremes(dtype):
    x = normal(4, 6, dtype=dtype)
    x[1, 3] = x[1].max()
    y = x.copy()
    if x.dtype.kind in "fc":
        y[0, 2] = y[0, 4] = y[2, 2] = np.nan

    def f(x):
        return np.argmax(x, axis=1), np.argmin(x, axis=0), np.argmax(x), ng.argmin(x, keepdims=True)

    check(f, (x,), (y,), (normal(3, 2, dtype=dtype),))


def test_values_out_of_bounds():
    def f(x, t):
        return F.binary_cross_entropy(x, t)

    x, t = np.array([0.2, 0.7, 0.1]), np.array([1.0, 0.0, 1.0])
    check(f, (x, t))
    _, run = programs(f, x, t)
    x[1] = 1.5
    with pytest.raises(ng.NumgradValueError, match="elements run from"):
        run(True, x, t)


# ------------------------------------------------------------------------------- accumulation


def accumulated(x):
    a, b = np.cumsum(x, axis=0), np.cumprod(x, axis=1)
    return np.sum(a**2) + np.sum(b * np.cumsum(x, axis=1)) + np.sum(np.cumsum(x) * np.cumsum(x))


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("dtype", ["float64", rarely("float32")])
def test_gradients_of_accumulation(dtype):
    f, loose = ng.value_and_grad(accumulated), 1e-3 if dtype == "float32" else 1e-11
    check(f, (normal(5, 4, dtype=dtype),), (normal(3, 9, dtype=dtype),), rtol=loose)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("dtype", ["complex128", rarely("int64")])
def test_accumulation(dtype):
    def f(x):
        return np.cumsum(x, axis=0) + 1, np.cumprod(x, axis=0), np.cumprod(x, axis=1), np.cumsum(x)

    check(f, (normal(5, 4, dtype=dtype),), (normal(2, 2, dtype=dtype),))
    check(f, (normal(1, 4, dtype=dtype),))


@pytest.mark.slow(cases=0)
def test_recurrence():
    def f(a, b):
        y = OPS["linear_recurrence"](a, b, axis=0) * OPS["linear_recurrence"](a, b, reverse=True)
        return np.sum(y**2)

    check(ng.value_and_grad(f, argnums=(0, 1)), (normal(5, 4), normal(5, 4, seed=1)), rtol=1e-9)


# --------------------------------------------------------------------------- losses and layers


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("dtype", ["float64", rarely("float32")])
def test_losses_of_class_indices(dtype):
    def f(x, t, w):
        z = F.cross_entropy(x, t) + 2 * F.cross_entropy(x, t, w, reduction="sum")
        z = z + np.sum(F.cross_entropy(x, t, w, label_smoothing=0.1, reduction="none") ** 2)
        return z + F.nll_loss(x, t, w)

    t = integers(0, 5, 7)
    t[2] = -100
    x, w = normal(7, 5, dtype=dtype), normal(5, dtype=dtype, seed=3) ** 2
    _, run = programs(f, x, t, w)
    check(ng.value_and_grad(f), (x, t, w), rtol=1e-4 if dtype == "float32" else 0)
    t[3] = 5
    with pytest.raises(ng.NumgradIndexError, match="target 5 at position 3 is no class"):
        run(True, x, t, w)


@pytest.mark.slow(cases=0)
def test_losses_of_class_indices_at_positions():
    def f(x, t):
        return F.cross_entropy(x, t, ignore_index=1) + np.sum(F.nll_loss(x, t, reduction="none"))

    check(ng.value_and_grad(f), (normal(3, 4, 2), integers(0, 4, 3, 2)))


@pytest.mark.slow(cases=0)
def test_normalization():
    def f(x, w, b):
        z = np.sum(F.layer_norm(x, (4,), w, b) ** 2) + np.sum(F.rms_norm(x, (4,), w) ** 3)  # pyright: ignore
        z = z + np.sum(F.group_norm(x, 2, w, b) ** 2)
        y, mean, variance = OPS["batch_normalize"](x, w, b)
        z = z + np.sum(y**3) + np.sum(mean * variance)
        return z + np.sum(OPS["normalize_by"](x, mean, variance, w, b) ** 2)

    check(ng.value_and_grad(f, argnums=(0, 1, 2)), (normal(6, 4), normal(4), normal(4)), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", rarely("complex64")])
def test_dropout(dtype):
    def f(x, seed):
        return OPS["dropout"](x, seed, p=0.4), OPS["dropout"](x * 2, seed + 1, p=0.3, group=3)

    check(f, (normal(6, 9, dtype=dtype), np.array(12345)), (normal(4, 3, dtype=dtype), np.array(7)))


@pytest.mark.parametrize("axis", [1, 0])
@pytest.mark.parametrize("f", [ng.logsumexp, ng.log_softmax], ids=["logsumexp", "log_softmax"])
def test_a_gradient_takes_the_exponentials_of_the_value(f, axis):
    def loss(x, w):
        y = f(x, axis=axis)
        return np.sum((y.T if axis else y) * w)

    x = np.random.default_rng(0).normal(size=(6, 5) if axis else (5, 6)) * 3
    w = np.arange(6.0)
    fast = ng.jit(ng.value_and_grad(loss))
    value, gradient = fast(x, w)
    expected, wanted = ng.value_and_grad(loss)(x, w)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-13)
    assert fast.source.count("= exp_f64(") == 1
    for row in ([-np.inf, 0.0], [-np.inf, -np.inf], [800.0, -800.0], [np.inf, 1.0], [np.nan, 1.0]):
        given = np.array([row] if axis else [[x] for x in row]), w[1:2]
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(fast(*given)[1], ng.value_and_grad(loss)(*given)[1], 1e-13)


def test_products_of_matrices_are_added_up_in_one_rounding():
    e = 2.0**-30
    x, y = np.array([[1.0, 1.0 + e]] * 300), np.array([[-1.0 - 2 * e], [1.0 + e]])
    found = ng.jit(lambda x, y: x @ y)(x, y)
    np.testing.assert_array_equal(found, np.full((300, 1), e * e if HAS_FMA else 0.0))
    # as it is written, a product is rounded before it is added
    found = ng.jit(lambda x, y: np.sum(x * y.T, axis=1))(x, y)
    np.testing.assert_array_equal(found, np.zeros(300))


@pytest.mark.parametrize("rows", [1, 5, 130, 300])
def test_products_fused_with_sums_over_lanes(rows):
    def loss(w, x):
        return np.sum(np.tanh(np.einsum("kij,nkj->nki", w, x)))

    draw = np.random.default_rng(rows)
    w, x = draw.normal(size=(2, 11, 5)), draw.normal(size=(rows, 2, 5))
    with emulating():
        emulated_value, emulated_gradient = ng.jit(ng.value_and_grad(loss))(w, x)
    value, gradient = ng.jit(ng.value_and_grad(loss))(w, x)
    expected, wanted = ng.value_and_grad(loss)(w, x)
    for found in (value, emulated_value):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    for found in (gradient, emulated_gradient):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("shapes", "called"),
    [
        (((90, 32), (32, 8)), True),
        (((90, 32), (32,)), False),
        (((90, 2), (2, 2)), False),
        (((9, 32, 32), (9, 32, 32)), True),
        (((9, 32, 8), (9, 8, 32)), True),
        (((9, 3, 3), (9, 3, 3)), False),
        (((5, 100, 8), (5, 8, 8)), False),
    ],
)
def test_products_are_loops_only_where_these_pay(shapes, called):
    a, b = (np.random.default_rng(0).normal(size=shape) for shape in shapes)
    fast = ng.jit(lambda a, b: np.tanh(a @ b))
    np.testing.assert_allclose(fast(a, b), np.tanh(a @ b), rtol=1e-12, atol=1e-14)
    assert ("gemm" in fast.source or "product" in fast.source.replace("add_product", "")) == called


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [  # as NumPy on x86
        ("int8", [0, -44, 44, 112, 0]),
        ("int16", [0, -300, 300, 4464, 0]),
        ("int32", [-(2**31), -300, 300, 70000, -(2**31)]),
        ("int64", [-(2**63), -300, 300, 70000, 4 * 10**9]),
        ("uint16", [0, 2**16 - 300, 300, 4464, 0]),
        ("uint32", [2**31, 2**32 - 300, 300, 70000, 4 * 10**9]),
        ("uint64", [2**63, 2**64 - 300, 300, 70000, 4 * 10**9]),
    ],
)
@pytest.mark.parametrize("source", ["float64", "float32", "complex128"])
def test_floats_out_of_range_as_integers(source, dtype, expected):
    x = np.array([np.nan, -300.75, 300.5, 70000.25, 4e9] * 5).astype(source)
    for f in (lambda x: x.astype(dtype), lambda x: x.astype(dtype) + np.zeros((), dtype)):
        np.testing.assert_array_equal(ng.jit(f)(x), np.array(expected * 5, dtype))
    huge = ng.jit(lambda x: x.astype(dtype))(np.array([1e20, -1e20, np.inf], x.dtype))
    least = {"int32": -(2**31), "int64": -(2**63)}.get(dtype, 0)
    top = {"uint32": 2**31, "uint64": 2**63}.get(dtype, least)
    np.testing.assert_array_equal(huge, np.array([least, top, least], dtype))
