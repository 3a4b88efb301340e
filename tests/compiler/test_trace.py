"""What a function becomes: nodes in canonical form, sizes, numbers, what is captured."""

import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.core.primitive import Primitive
from numgrad.errors import NumgradIndexError, NumgradValueError
from tests.compiler.numpy_backend import run
from tests.compiler.tracing import guards, operations, record
from tests.operations.cases import TABLE, cases
from tests.operations.reference import by_name

VECTOR = np.array([0.3, -0.7, 1.2])
MATRIX = np.arange(12.0).reshape(3, 4) / 7

INTERNAL = {"region", "region_backward", "copy_slices"}
"""Called with a place in memory: in a trace only with what ``Tracer.region`` makes."""
NUMBERS = {"polydiv", "trim_zeros"}
"""What numbers decide the shape of; other such operations have no cases in the table."""
APART = INTERNAL | NUMBERS


def values(tracer, *args):
    captured = [getattr(c.owner, "_array", c.owner) for c in tracer.captured]
    return run(tracer.graph, *args, *captured)


def check(function, *args):
    """Trace, compute with NumPy, compare with the function on ndarrays; returns the tracer."""
    tracer = record(function, *args)
    direct = function(*args)
    expected = direct if isinstance(direct, tuple) else (direct,)
    for got, wanted in zip(values(tracer, *args), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
        assert got.dtype == np.asarray(wanted).dtype
    return tracer


def jacobian(f, x, step=1e-6):
    """Central differences; Jacobians of gradients are second derivatives."""
    columns = []
    for k in range(x.size):
        e = np.zeros(x.size)
        e[k] = step
        e = e.reshape(x.shape)
        columns.append((np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * step))
    return np.stack(columns, axis=-1)


# ------------------------------------------------------------------------------- the whole table


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if op.name not in APART]))
def test_every_operation_traces_with_its_gradients(op):
    """Shapes and dtypes: those of any lengths, of these lengths, and of eager code."""
    for k, case in enumerate(cases(op, np.float64)):
        outputs, tracer = traced_with_gradients(case)
        eager = case.function(*map(ng.asarray, case.operands))
        eager = eager if isinstance(eager, list | tuple) else [eager]
        expected = [(y.shape, y.dtype) for y in eager]
        assert [(hinted(tracer, v), v.dtype) for v in outputs] == expected
        if not k:
            static, *_ = traced_case(case, dynamic=False)
            assert [(v.shape, v.dtype) for v in static] == expected
    for case in () if op.real_only else itertools.islice(cases(op, np.complex128), 1):
        traced_with_gradients(case)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("op", **by_name([op for op in TABLE if op.name not in APART]))
def test_every_call_traces(op):
    """Parameters with complex dtypes and with fixed lengths, of which the test above has each."""
    for case in () if op.real_only else itertools.islice(cases(op, np.complex128), 1, None):
        traced_with_gradients(case)
    for case in itertools.islice(cases(op, np.float64), 1, None):
        outputs, tracer = traced_with_gradients(case)
        static, *_ = traced_case(case, dynamic=False)
        assert [hinted(tracer, v) for v in outputs] == [v.shape for v in static]


def traced_with_gradients(case):
    outputs, gradients, tracer = traced_case(case)
    for x, g in gradients:
        assert hinted(tracer, g) == hinted(tracer, x)
        assert g.dtype == x.dtype
    return outputs, tracer


def traced_case(case, **options):
    tracer_options = options or {"dynamic": True}

    def function(*xs):
        for x, differentiable in zip(xs, case.differentiable, strict=True):
            x.requires_grad_(differentiable and x.dtype.kind in "fc")
        returned = case.function(*xs)
        outputs = list(returned) if isinstance(returned, list | tuple) else [returned]
        roots = [y for y in outputs if y.requires_grad]
        sources = [x for x in xs if x.requires_grad]
        ones = [ng.ones_like(y) for y in roots]
        found = ng.autograd.grad(roots, sources, ones, allow_unused=True) if roots else ()
        pairs.extend((x, g) for x, g in zip(sources, found, strict=False) if g is not None)
        return outputs

    pairs = []
    tracer = record(function, *case.operands, **tracer_options)
    return tracer.graph.outputs, [[tracer.value(t) for t in p] for p in pairs], tracer


def hinted(tracer, value):
    return tuple(tracer.sizes.hint(n) for n in value.shape)


def test_every_primitive_says_what_it_returns():
    lacking = [
        op.name for op in OPS.values() if isinstance(op, Primitive) and op.shape_rule is None
    ]
    assert set(lacking) <= INTERNAL | {"array_function"}  # which is run, of any function


# ------------------------------------------------------------------------------------- gradients


def test_value_and_gradient_in_one_graph():
    def f(a, b):
        return np.sum(np.exp(np.tanh(a * b) + a))

    tracer = record(ng.value_and_grad(f, argnums=(0, 1)), VECTOR, VECTOR[::-1].copy())
    a, b = VECTOR, VECTOR[::-1]
    y, t = np.exp(np.tanh(a * b) + a), np.tanh(a * b)
    value, da, db = values(tracer, a, b)
    np.testing.assert_allclose(value, y.sum(), rtol=1e-14)
    np.testing.assert_allclose(da, y * ((1 - t * t) * b + 1), rtol=1e-14)
    np.testing.assert_allclose(db, y * (1 - t * t) * a, rtol=1e-13)
    assert guards(tracer) == ["n0 == n1"]


def cubes(x):
    return np.sum(x * x * x) * x[0] + np.max(x)


def cubes_gradient(x):
    unit = np.eye(3)
    return 3 * x * x * x[0] + np.sum(x**3) * unit[0] + unit[np.argmax(x)]


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (ng.grad(cubes), cubes_gradient(VECTOR)),
        (ng.jacobian(cubes), cubes_gradient(VECTOR)),
        (ng.hessian(cubes), jacobian(cubes_gradient, VECTOR)),
        (ng.jacobian(ng.grad(cubes)), jacobian(cubes_gradient, VECTOR)),
        (ng.grad(lambda x: ng.grad(cubes)(x)[0]), jacobian(cubes_gradient, VECTOR)[0]),
    ],
)
def test_transforms_trace(transform, expected):
    (found,) = values(record(transform, VECTOR), VECTOR)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_a_jacobian_of_many_rows_costs_its_columns():
    def residuals(p):
        return p[0] * np.exp(-p[1] * grid) + p[2]

    grid = np.linspace(0, 1, 50)
    tracer = record(ng.jacobian(residuals), VECTOR)
    expected = jacobian(residuals, VECTOR)
    np.testing.assert_allclose(values(tracer, VECTOR)[0], expected, atol=1e-8)
    assert len(operations(tracer.graph)) < 60  # a few for each column, none for each row
    assert "getitem_backward" not in needed(tracer.graph)


def needed(graph):
    """Names of the operations that outputs depend on."""
    nodes, stack = set(), [v.node for v in graph.outputs]
    while stack:
        node = stack.pop()
        if node not in nodes:
            nodes.add(node)
            stack += [v.node for v in node.inputs]
    return {node.name for node in nodes}


def test_a_jacobian_of_few_rows_costs_its_rows():
    tracer = record(ng.jacobian(lambda x: np.stack([x[0] * x[1], np.sum(x * x)])), VECTOR)
    a, b, c = VECTOR
    expected = [[b, a, 0], [2 * a, 2 * b, 2 * c]]
    np.testing.assert_allclose(values(tracer, VECTOR)[0], expected, rtol=1e-14)


def test_a_column_that_does_not_depend_is_zero_even_where_a_product_would_be_nan():
    tracer = record(ng.jacobian(lambda x: np.stack([x[0] * np.inf, x[1], x[2]])), VECTOR)
    expected = np.diag([np.inf, 1.0, 1.0])
    np.testing.assert_array_equal(values(tracer, VECTOR)[0], expected)


# ------------------------------------------------------------------------------------- canonical


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x[1:, None, ::2], ["getitem", "reshape"]),
        (lambda x: x[-1], ["getitem"]),
        (lambda x: x[::-1, 3:0:-2], ["getitem"]),
        (lambda x: x[...], []),
        (lambda x: x.reshape(x.shape), []),
        (lambda x: x.reshape(-1), ["reshape"]),
        (lambda x: np.reshape(x, (4, 3), order="F"), ["permute_dims", "reshape", "permute_dims"]),
        (lambda x: np.transpose(x.T), ["permute_dims", "permute_dims"]),
        (lambda x: np.moveaxis(x[:, :, None], 2, 0), ["reshape", "permute_dims"]),
        (lambda x: np.flip(x, 1), ["getitem"]),
        (lambda x: np.squeeze(np.expand_dims(x, (0, 2))), ["reshape", "reshape"]),
        (lambda x: np.broadcast_to(x, (3, 4)), []),
        (lambda x: x.real, []),
        (lambda x: np.conj(x), []),
        (lambda x: np.diagonal(x, 1), ["diagonal"]),
        (lambda x: x.sum(axis=-1, keepdims=True), ["sum"]),
        (lambda x: tuple(np.split(x, [1, 2])), ["getitem"] * 3),
    ],
)
def test_canonical_nodes(function, expected):
    tracer = check(function, MATRIX)
    assert operations(tracer.graph) == expected


def test_parameters_are_complete():
    tracer = record(lambda x: np.sum(x[:, 1:-1], axis=-1), MATRIX)
    index, axes = (tracer.graph.nodes[k].params for k in (1, 2))
    assert str(index["index"]) == "(slice(0, n0, 1), slice(1, n1 - 1, 1))"
    assert axes == {"axis": (1,), "dtype": None, "keepdims": False}


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x[5], NumgradIndexError),
        (lambda x: x[0, 0, 0], NumgradIndexError),
        (lambda x: x.reshape(5, -1), NumgradValueError),
        (lambda x: x + np.ones(7), NumgradValueError),
        (lambda x: x @ x, NumgradValueError),
        (lambda x: np.squeeze(x, 0), NumgradValueError),
        (lambda x: np.concatenate([x, x.T]), NumgradValueError),
        (lambda x: np.sum(x, axis=2), NumgradIndexError),
    ],
)
def test_errors_name_the_shapes_of_the_call(function, error):
    with pytest.raises(error) as found:
        record(function, MATRIX)
    assert "n0" not in str(found.value)


def test_every_node_knows_the_line_it_comes_from():
    tracer = record(lambda x: np.exp(x) * 2, VECTOR)
    lines = {node.line for node in tracer.graph.nodes if not isinstance(node.op, str)}
    (line,) = lines
    assert line is not None
    assert __file__ in line


# --------------------------------------------------------------------------------- sizes, numbers


def test_sizes_stay_symbols():
    tracer = check(lambda x: x / x.shape[0] + 0.5 * x.size * np.sqrt(x.shape[0]), VECTOR)
    assert guards(tracer) == []


def test_a_loop_over_an_axis_is_made_for_its_length():
    tracer = check(lambda x: sum(row * k for k, row in enumerate(x)), MATRIX)
    assert guards(tracer) == ["n0 == 3"]


def test_without_dynamic_shapes_are_numbers():
    tracer = record(lambda x: x * x, MATRIX, dynamic=False)
    assert tracer.graph.outputs[0].shape == (3, 4)


def test_python_numbers_promote_as_such():
    x = VECTOR.astype(np.float32)
    tracer = record(lambda x, s, n: (x * s + n, s * n, n // 2, s > 1, np.sqrt(n)), x, 0.5, 3)
    kinds = [(v.dtype.name, v.weak) for v in tracer.graph.outputs]
    assert kinds == [
        ("float32", False),
        ("float64", True),
        ("int64", True),
        ("bool", False),
        ("float64", False),
    ]


def test_the_gradient_by_a_python_number_is_one_of_float64():
    tracer = record(ng.grad(lambda n: n * n), 3)
    (found,) = values(tracer, 3)
    assert found == 6
    assert found.dtype == np.float64


# -------------------------------------------------------------------------------------- captured


def test_arrays_and_tensors_around_become_inputs_once():
    a, t = np.ones(3), ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    tracer = record(lambda x: (x * a + t) * a + t.detach(), VECTOR)
    assert tracer.captured[0].owner is a
    assert tracer.captured[1].owner is t
    assert len(tracer.graph.inputs) == 3
    assert [c.value for c in tracer.captured] == tracer.graph.inputs[1:]


def test_gradients_of_captured_tensors():
    t = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    tracer = record(lambda x: ng.autograd.grad(np.sum(x * t * t), t)[0], VECTOR)
    np.testing.assert_allclose(values(tracer, VECTOR)[0], 2 * VECTOR * [1, 2, 3], rtol=1e-14)


def test_what_numpy_makes_meanwhile_is_frozen():
    def f(x):
        table = np.arange(3.0)
        y = x + table
        table[0] = 5.0
        return y + table

    tracer = record(f, VECTOR, source_of=lambda array: None)
    assert [c.frozen for c in tracer.captured] == [True, True]
    np.testing.assert_array_equal(values(tracer, VECTOR)[0], VECTOR * 1 + [5, 2, 4])


def test_zero_d_arrays_of_the_trace_are_constants():
    tracer = record(lambda x: x * np.float32(2) + np.array(3), VECTOR, source_of=lambda a: None)
    assert tracer.captured == []


# ------------------------------------------------------------------------------------- indices


def test_indices_that_are_arrays():
    i = np.array([2, 0])
    check(lambda x: (x[i], x[:, i], x[[0, 1]]), MATRIX)


def test_integers_of_the_trace_index():
    tracer = record(lambda x, i: x[i], MATRIX, np.array([1, 0]))
    assert operations(tracer.graph) == ["take"]


def test_a_mask_that_plain_numpy_knows():
    mask = np.array([True, False, True])
    sources = {id(mask): mask}
    tracer = record(lambda x: x[np.array(mask)], VECTOR, source_of=lambda a: sources.get(id(a)))
    assert hinted(tracer, tracer.graph.outputs[0]) == (2,)
