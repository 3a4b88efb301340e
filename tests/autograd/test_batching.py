"""Batches against the same operations on one example after the other."""

import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.batching.batch import Batched, BatchingInterpreter
from numgrad.autograd.node import conform_tensor
from numgrad.core.axis import AxisOp
from numgrad.core.batching import BatchOperand, by_example, find_rule
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS
from numgrad.core.primitive import Composite, Primitive, View
from numgrad.core.refusals import Refusals
from numgrad.tensors.inplace import assign, inplace
from numgrad.testing.samples import AXES, BROADCASTS, draw
from tests.operations.calls import calls_of
from tests.operations.cases import followed
from tests.operations.reference import by_name

SIZE = 3
INDICES = np.array([[2, -1, 0], [1, 1, -3]])
ROWS = np.array([[2, 1, 0], [1, 1, 0]])

# What the declarations of the table do not give: (shapes or operands, parameters)
MORE = {
    "argmax": [(((3, 4),), {}), (((3, 4),), {"keepdims": True}), (((3, 4),), {"axis": -2})],
    "argmin": [(((3,),), {"axis": 0, "keepdims": True})],
    "astype": [(((),), {"dtype": np.int64})],
    "broadcast_to": [(((4,),), {"shape": (2, 3, 4)}), (((1,),), {"shape": 5})],
    "class_distribution": [
        (
            (np.array([0, 2, 1]), np.array([1.0, 2.0, 0.5, 3.0])),
            {"shape": (3, 4), "dtype": "float64", "ignore_index": 1, "label_smoothing": 0.1},
        )
    ],
    "concat": [(((2, 3), (1, 3), (2, 3)), {"axis": -2}), (((2,), (3,)), {"axis": None})],
    "copy": [(((),), {})],
    "cumsum": [(((),), {}), (((2, 3, 2),), {"axis": -2})],
    "diagonal": [(((2, 3, 4),), {"axis1": -1, "axis2": 0, "offset": -1})],
    "diagonal_backward": [(((2, 3),), {"shape": (3, 2, 4), "axis1": -1, "axis2": 0})],
    "expand_dims": [(((),), {"axis": 0}), (((3,),), {"axis": [0, 2]}), (((3,),), {"axis": -1})],
    "flip": [(((2, 3),), {"axis": [0, -1]})],
    "gather_along": [(((4, 2), INDICES.T), {"axis": 0})],
    "gather_along_backward": [(((3, 2), INDICES.T), {"axis": 0, "shape": (4, 2)})],
    "getitem": [(((3, 4),), {"index": 1}), (((3,),), {"index": (Ellipsis, -1)})],
    "getitem_backward": [
        (((),), {"shape": (3,), "index": 1}),
        (((),), {"shape": (3, 4), "index": slice(1, 2)}),
    ],
    "imag": [(((3,),), {})],
    "linear_recurrence": [(((3,), (3,)), {})],
    "moveaxis": [(((2, 3, 4),), {"source": (0, 1), "destination": (-1, 0)})],
    "pad_constant": [(((2,),), {"widths": ((1, 0),), "values": np.array([[5.0, 6.0]])})],
    "permute_dims": [(((),), {}), (((3,),), {"axes": (0,)}), (((2, 3, 4),), {"axes": [-1, 0, 1]})],
    "ravel": [(((2, 3),), {"order": "F"}), (((),), {})],
    "real": [(((3,),), {})],
    "reshape": [(((2, 3),), {"shape": (-1, 2), "order": "F"}), (((),), {"shape": 1})],
    "require_between": [(((3,),), {"low": -99.0, "high": 99.0, "problem": "too far"})],
    "roll": [(((2, 3),), {"shift": (1, 1), "axis": -1}), (((),), {"shift": 1})],
    "split_at": [(((4,),), {"cuts": (0, 2, 3, 4)})],
    "squeeze": [(((),), {}), (((1, 3, 1),), {"axis": (0, -1)})],
    "stack": [(((), ()), {}), (((3,), (3,), (3,)), {"axis": -2})],
    "take": [
        (((3, 4), INDICES), {}),
        (((3, 4), INDICES), {"axis": 0}),
        (((2, 3, 2), INDICES), {"axis": -2}),
        (((3,), np.array(1)), {"axis": 0}),
    ],
    "embedding": [
        (((3, 2), ROWS), {}),
        (((3, 2), np.array(1)), {"padding_idx": 1}),
        (((3, 2), ROWS), {"scale_grad_by_freq": True, "padding_idx": 0}),
    ],
    "embedding_backward": [
        (((2, 3, 2), ROWS), {"rows": 3, "padding_idx": None, "scaled": False}),
        (((2, 3, 2), ROWS), {"rows": 4, "padding_idx": -4, "scaled": True}),
        (((2,), np.array(1)), {"rows": 3, "padding_idx": None, "scaled": False}),
    ],
    "take_backward": [
        (((2, 3), INDICES), {"shape": (2, 3)}),
        (((2, 3, 2), INDICES), {"shape": (4, 2), "axis": 0}),
        (((2, 2, 3), INDICES), {"shape": (2, 3), "axis": -1}),
        (((4,), np.array(1)), {"shape": (3, 4), "axis": 0}),
    ],
    "searchsorted_places": [((np.arange(3.0), (4,)), {"side": "left"})],
    "digitize": [(((2, 3), np.zeros(2)), {"right": True})],
    "argpartition": [(((2, 4),), {"kth": 1}), (((2, 3),), {"kth": (0, 4), "axis": None})],
    "argtopk": [(((2, 9),), {"k": 1, "axis": 1, "largest": True, "ordered": True})],
    "order_places": [(((2, 5), np.array([0, 3])), {})],
    "tril": [(((3,),), {})],
    "unrecorded": [(((3,),), {})],
    "unstack": [(((3, 2),), {})],
    "written_detached": [(((3,), (3,)), {})],
    "written_unrecorded": [(((3,), (3,)), {})],
}  # fmt: skip

ELSEWHERE = {
    "bitwise_count", "exponents", "gcd", "lcm", "nextafter", "refused", "running_places", "spacing",
}  # fmt: skip
"""What cannot be drawn here, and is tried where its family is: integers, pairs of results."""

OPERATIONS = [
    op
    for op in OPS.values()
    if op.name not in ELSEWHERE
    and op.__module__.startswith("numgrad.")
    and not op.__module__.startswith("numgrad.compiler.")  # of bodies: tests/compiler
    and not isinstance(op, Composite)
    and (find_rule(op) is not None or op.samples)
]
INTEGER = ("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift")


def patterns(op):
    """Shapes and parameters of one example; members of a family share their rule."""
    if isinstance(op, AxisOp):
        found = AXES if op.name in ("sum", "std", "log_softmax") else AXES[1:5:2]
        yield from (((shape,), {"axis": axis}) for shape, axis in found)
        if not op.keeps_shape:
            yield ((),), {}
            yield ((3, 4),), {"axis": [0], "keepdims": True}
    elif isinstance(op, Elementwise):
        if op.name == "copysign":
            yield from ((pair, {}) for pair in BROADCASTS)
        else:
            yield ((3, 4), *((4,),) * (len(op.inputs) - 1)), {}
    else:
        yield from (*op.samples, *MORE.get(op.name, ()))
        if not op.samples and op.name not in MORE:
            yield from ((s, call) for s, call in calls_of(op) if not any(0 in shape for shape in s))


class Case:
    """Operands of a call; ``chosen`` says which of them have a batch axis in front.

    ``params`` are its parameters, or a function that makes it.
    """

    def __init__(self, op, shapes, params, chosen):
        self.op, self.params, self.chosen = op, params, chosen
        self.args = [self.operand(k, shape) for k, shape in enumerate(shapes)]

    def __str__(self):
        return f"{[a.shape for a in self.args]} {self.chosen} {self.params}"

    def operand(self, k, shape):
        if isinstance(shape, np.ndarray):  # indices
            return np.stack([np.roll(shape, r) for r in range(SIZE)]) if self.chosen[k] else shape
        dtype = np.int64 if self.op.name in INTEGER else np.float64
        value = draw(self.op, (SIZE, *shape) if self.chosen[k] else shape, dtype, k)
        return value > 0.3 if self.op.name == "where" and k == 0 else value

    def call(self, args):
        if callable(self.params):
            return self.params(*args)
        return bind(self.op, tuple(args), dict(self.params))

    def one_by_one(self, args):
        """The oracle: the operation on plain tensors in a Python loop."""
        rows = []
        for k in range(SIZE):
            example = [a[k] if c else a for a, c in zip(args, self.chosen, strict=True)]
            rows.append(parts(self.call(example)))
        return [OPS["stack"](*column) for column in zip(*rows, strict=True)]

    def at_once(self, args):
        with BatchingInterpreter(SIZE) as level:
            given = [level.wrap(a) if c else a for a, c in zip(args, self.chosen, strict=True)]
            found = parts(self.call(given))
            assert all(isinstance(part, Batched) for part in found)
            return [level.unwrap(part) for part in found]


# One rule serves all elementwise operations: these are tried with any of their operands batched,
# the others with one choice each, in turn.
ANY_OPERANDS = ("copysign", "multiply", "where")


def cases(op):
    for shapes, params in patterns(op):
        choices = [c for c in itertools.product((True, False), repeat=len(shapes)) if any(c)]
        if isinstance(op, Elementwise) and op.name not in ANY_OPERANDS:
            choices = [choices[OPERATIONS.index(op) % len(choices)]]
        for chosen in choices:
            yield Case(op, shapes, params, chosen)


def parts(out):
    return list(out) if isinstance(out, tuple) else [out]


def tensors(args, requires_grad=False):
    return [ng.tensor(a, requires_grad=requires_grad and a.dtype.kind in "fc") for a in args]


def assert_equal(actual, expected, case=""):
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert (a is None) == (e is None), str(case)
        if e is None:
            continue
        assert a.shape == e.shape, str(case)
        assert a.dtype == e.dtype, str(case)
        a, e = a.detach().numpy(), e.detach().numpy()
        np.testing.assert_allclose(a, e, rtol=1e-11, atol=1e-12, err_msg=str(case))


# ---------------------------------------------------------------------------- every operation


# one operation for each rule; the rules of what is elementwise or along axes serve many
RULES = {find_rule(op): op for op in reversed(OPERATIONS)}
WITH_RULES = [op for op in OPERATIONS if RULES[find_rule(op)] is op and find_rule(op)]


@pytest.mark.parametrize("op", **by_name(WITH_RULES))
def test_batch_of_a_rule_is_the_examples(op):
    check_batch(op)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("op", **by_name([op for op in OPERATIONS if op not in WITH_RULES]))
def test_batch_is_the_examples(op):
    check_batch(op)


def check_batch(op):
    found = list(cases(op))
    assert found, f"{op.name} has no samples; add one to MORE"
    for case in found:
        args = tensors(case.args)
        assert_equal(case.at_once(args), case.one_by_one(args), case)


# a few elementwise operations, with one, two and three operands
SOME = ("exp", "multiply", "subtract", "power", "where", "clip_below", "prelu", "gaussian_error")
RECORDED = [
    op for op in OPERATIONS if op.formulas and (not isinstance(op, Elementwise) or op.name in SOME)
]


@pytest.mark.slow
@pytest.mark.parametrize("op", **by_name(RECORDED))
def test_gradients_through_a_batch(op):
    for case in cases(op):
        args = tensors(case.args, requires_grad=True)
        for a, name in zip(args, op.inputs, strict=False):
            if name in op.refused and not callable(case.params):
                a.requires_grad_(False)
        inputs = [a for a in args if a.requires_grad]
        actual, expected = case.at_once(args), case.one_by_one(args)
        chosen = [k for k, e in enumerate(expected) if e.requires_grad]
        assert chosen == [k for k, a in enumerate(actual) if a.requires_grad], str(case)
        if not chosen:
            continue
        cotangents = [draw(op, expected[k].shape, expected[k].dtype, 9) for k in chosen]
        gradients = [
            ng.autograd.grad([out[k] for k in chosen], inputs, cotangents, allow_unused=True)
            for out in (actual, expected)
        ]
        assert_equal(*gradients, case)


@pytest.mark.slow
@pytest.mark.parametrize("op", **by_name([op for op in OPERATIONS if op.formulas]))
def test_formulas_take_batched_gradients(op):
    """What a batched backward does: many cotangents, one set of saved values."""
    for shapes, params in patterns(op):
        if callable(params):
            continue  # of what prepares its operands the jacobians of ``calls`` are tried
        args = Case(op, shapes, params, (False,) * len(shapes)).args
        out, call = op.run(args, {**op.params, **params})
        outs = parts(out)
        if outs[0].dtype.kind != "f":
            continue
        values = {name: ng.tensor(a) for name, a in zip(op.inputs, args, strict=False)}
        values |= zip(op.auxiliaries, call.aux, strict=True)
        y = tuple(map(ng.tensor, outs)) if call.out_metas else ng.tensor(outs[0])
        values |= {"y": y, "inputs": tuple(tensors(args))}
        cotangents = [ng.tensor(draw(op, (SIZE, *o.shape), o.dtype, 9)) for o in outs]
        for k in range(len(args)):
            if not (call.differentiable(k) and followed(op, call.input_name(k))):
                continue

            def gradient(given, call=call, k=k, values=values):
                g = tuple(given) if call.out_metas else given[0]
                value = call.gradient(k, g, values)
                return conform_tensor(value, call.metas[k])

            with BatchingInterpreter(SIZE) as level:
                actual = level.unwrap(gradient([level.wrap(c) for c in cotangents]))
            expected = [gradient([c[row] for c in cotangents]) for row in range(SIZE)]
            assert_equal([actual], [OPS["stack"](*expected)], f"{op.name} {shapes} {params}")


@pytest.mark.slow
def test_operations_of_layers_bring_their_rules():
    for name in ("convolution", "embedding", "linear", "max_pool", "normalize_groups"):
        assert OPS[name].batching is not None


# --------------------------------------------------------------------- functions of one example

X = np.linspace(-1.0, 2.0, SIZE * 12).reshape(SIZE, 3, 4) ** 2
V = np.linspace(0.5, 1.5, SIZE * 4).reshape(SIZE, 4)
FUNCTIONS = {
    "operators": lambda x, v: (2 - x) ** 2 / (1 + v * v) + (x > v) - x @ v.reshape(4, 1),
    "powers": lambda x, v: (v**0.5, v**-1, v**3, 2.0**v, abs(-v) // 0.3, divmod(v, 0.4)[1]),
    "norm": lambda x, v: np.linalg.norm(x, axis=1) + np.linalg.norm(v, 3),
    "einsum": lambda x, v: np.einsum("ij,j,kj->ik", x, v, x),
    "einsum trace": lambda x, v: np.einsum("ii->i", x[:, 1:]) * np.einsum("ij->", x),
    "tensordot": lambda x, v: np.tensordot(x, np.ones((3, 4, 2)), 2),
    "products": lambda x, v: (np.dot(x, v), np.vdot(v, v), np.outer(v, v), np.kron(x, v)),
    "indices": lambda x, v: (x[0], x[..., -1], x[:, None, ::2], x[[0, 2, 0]], x[[1, 2], [0, 3]]),
    "parts": lambda x, v: np.split(x, 2, axis=1)[1] + x[:, :2],
    "sequence": lambda x, v: np.stack([row.sum() for row in x]) + len(x),
    "mixed sequence": lambda x, v: np.stack([v[0], 1.0, v[1]]) + OPS["add"]([v[0], v[1], 2.0], 1),
    "along": lambda x, v: np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), axis=1),
    "both batched": lambda x, v: np.take(v, np.argmax(x, axis=1)) + np.argmax(x),
    "windows": lambda x, v: np.diff(np.pad(v, 2, mode="reflect")) + np.tile(v[:1], 7),
    "statistics": lambda x, v: (x.mean(), x.var(axis=0), np.clip(x, 0.2, 1), v.cumprod()),
    "views": lambda x, v: (x.T @ x, x.mT, np.atleast_2d(v), np.rot90(x), x.clone().ravel()),
    "masks": lambda x, v: np.where(x > 1, np.log(x + 1), np.nan_to_num(-x)),
    "like": lambda x, v: np.zeros_like(x) + np.ones(4) * np.full_like(v, 2.0) + np.size(x),
    "ufunc methods": lambda x, v: (np.add.reduce(x), np.multiply.outer(v, v), np.add.accumulate(v)),
    "complex": lambda x, v: (
        np.abs(np.exp(1j * x) @ np.conj(v * (1 + 2j))) + np.real(np.exp(1j * v))[1:]
    ),
    "unused": lambda x, v: (np.arange(3.0), 1.5),
}


def at_once(f, *args):
    with BatchingInterpreter(len(args[0])) as level:
        found = parts(f(*map(level.wrap, args)))
        return [level.unwrap(part) for part in found]


def one_by_one(f, *args):
    rows = [parts(f(*row)) for row in zip(*args, strict=True)]
    return [OPS["stack"](*column) for column in zip(*rows, strict=True)]


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    args = tensors((X, V), requires_grad=True)
    actual, expected = at_once(FUNCTIONS[name], *args), one_by_one(FUNCTIONS[name], *args)
    assert_equal(actual, expected)
    totals = [sum((part * part).sum() for part in out) for out in (actual, expected)]
    if totals[1].requires_grad:
        first, second = (ng.autograd.grad(t, args, allow_unused=True) for t in totals)
        assert_equal(first, second)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ["operators", "norm", "einsum", "products", "windows", "masks"])
def test_agrees_with_other_libraries(name):
    """Where PyTorch's functions have the names of NumPy's: by JAX, else by both."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    others = {
        "operators": FUNCTIONS["operators"],
        "norm": lambda x, v: jnp.linalg.norm(x, axis=1) + jnp.linalg.norm(v, 3),
        "einsum": lambda x, v: jnp.einsum("ij,j,kj->ik", x, v, x),
        "products": lambda x, v: (jnp.dot(x, v), jnp.vdot(v, v), jnp.outer(v, v), jnp.kron(x, v)),
        "windows": lambda x, v: jnp.diff(jnp.pad(v, 2, mode="reflect")) + jnp.tile(v[:1], 7),
        "masks": lambda x, v: jnp.where(x > 1, jnp.log(x + 1), jnp.nan_to_num(-x)),
    }
    expected = parts(jax.vmap(others[name])(X, V))
    for a, e in zip(at_once(FUNCTIONS[name], *tensors((X, V))), expected, strict=True):
        np.testing.assert_allclose(a.numpy(), e, rtol=1e-12)


@pytest.mark.slow
def test_agrees_with_torch():
    torch = pytest.importorskip("torch")

    def ours(x, v):
        return np.log(np.sum(np.exp(np.tanh(x) @ v))) * np.cumsum(v)

    def theirs(x, v):
        return torch.log(torch.sum(torch.exp(torch.tanh(x) @ v))) * torch.cumsum(v, 0)

    given = tensors((X, V), requires_grad=True)
    (out,) = at_once(ours, *given)
    others = [torch.tensor(a, requires_grad=True) for a in (X, V)]
    expected = torch.func.vmap(theirs)(*others)
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), rtol=1e-12)
    weights = np.cos(np.arange(out.size)).reshape(out.shape)
    actual = ng.autograd.grad(out, given, ng.tensor(weights))
    for a, e in zip(
        actual, torch.autograd.grad(expected, others, torch.tensor(weights)), strict=True
    ):
        np.testing.assert_allclose(a.numpy(), e.numpy(), rtol=1e-11)


@pytest.mark.slow
def test_gradients_of_examples():
    """Examples never meet: one backward gives the gradient of every example."""
    x = ng.tensor(X, requires_grad=True)
    f = lambda row: np.sum(np.sin(row) * row) ** 2  # noqa: E731
    (out,) = at_once(f, x)
    (g,) = ng.autograd.grad(out, x, np.ones(SIZE), create_graph=True)
    expected = [ng.grad(f)(row) for row in X]
    np.testing.assert_allclose(g.detach().numpy(), expected, rtol=1e-12)
    (second,) = ng.autograd.grad(g.sum(), x)
    hessians = [ng.hessian(f)(row).reshape(12, 12).sum(axis=0).reshape(3, 4) for row in X]
    np.testing.assert_allclose(second.numpy(), hessians, rtol=1e-10)


# ----------------------------------------------------------------------------- batched backward


def program(w, x, b):
    """Several paths, outputs, views and broadcasts to walk back through."""
    hidden = np.tanh(w @ x + b)
    first, second = np.split(np.reshape(hidden, (3, 1)) * x, 2, axis=1)
    spread = np.concatenate([OPS["softmax"](first * second, axis=0), x.reshape(2, 2)])
    return OPS["logsumexp"](spread[1:], axis=1) * np.cumsum(np.take(x, [3, 3, 0, 1])) + w[0, 0]


@pytest.mark.slow(cases=0)
def test_a_backward_with_a_batch_of_cotangents():
    """A Jacobian in one pass: batched gradients meet saved values that are not."""
    inputs = tensors((X[0], V[0], V[1, :3]), requires_grad=True)
    out = program(*inputs)
    with BatchingInterpreter(out.size) as level:
        rows = level.wrap(np.eye(out.size))
        found = ng.autograd.grad(out, inputs, rows, create_graph=True)
        found = [level.unwrap(g) for g in found]
    eps = 1e-6
    for k, jacobian in enumerate(found):
        plain = [x.detach().numpy() for x in inputs]
        for place in np.ndindex(plain[k].shape):
            step = np.zeros_like(plain[k])
            step[place] = eps
            shifted = [
                [a + s * step if j == k else a for j, a in enumerate(plain)] for s in (1, -1)
            ]
            high, low = (program(*tensors(given)).numpy() for given in shifted)
            column = jacobian.detach().numpy()[(slice(None), *place)]
            np.testing.assert_allclose(column, (high - low) / (2 * eps), atol=1e-8)
    # with create_graph the Jacobian is differentiable in turn
    total = sum(np.sum(np.sin(j)) for j in found)
    one_by_one = [ng.autograd.grad(out, inputs, row, create_graph=True) for row in np.eye(out.size)]
    other = sum(np.sum(np.sin(g)) for row in one_by_one for g in row)
    assert_equal(*(ng.autograd.grad(t, inputs, retain_graph=True) for t in (total, other)))


# --------------------------------------------------------------------------------------- levels


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exp", "sum", "cumsum", "matrix_transpose", "unstack", "ravel"])
def test_nested_levels_on_one_operand(name):
    op, x = OPS[name], ng.tensor(draw(OPS[name], (2, SIZE, 4, 3)))
    with BatchingInterpreter(2) as outer:
        with BatchingInterpreter(SIZE) as inner:
            given = inner.wrap(outer.wrap(x))
            assert given.shape == (4, 3)
            found = parts(op(given))
            found = [inner.unwrap(part) for part in found]
        found = [outer.unwrap(part) for part in found]
    expected = [[parts(op(example)) for example in row] for row in x]
    for k, part in enumerate(found):
        rows = [OPS["stack"](*[example[k] for example in row]) for row in expected]
        assert_equal([part], [OPS["stack"](*rows)])


@pytest.mark.slow(cases=0)
def test_every_pair_of_two_levels():
    a, b = tensors((X[:2], V), requires_grad=True)

    def f(x, v):
        return np.tanh(x @ v) * np.take(v, np.array([0, 2, 2])) + np.concatenate([v, v])[1:4]

    with BatchingInterpreter(2) as outer:
        x = outer.wrap(a)
        with BatchingInterpreter(SIZE) as inner:
            y = f(x, inner.wrap(b))
            assert y.level is inner
            assert y.value.level is outer
            y = inner.unwrap(y)
        found = outer.unwrap(y)
    expected = OPS["stack"](*[OPS["stack"](*[f(x, v) for v in b]) for x in a])
    assert_equal([found], [expected])
    weights = np.sin(np.arange(found.size)).reshape(found.shape)
    assert_equal(*(ng.autograd.grad(y, (a, b), weights) for y in (found, expected)))


@pytest.mark.slow
def test_what_an_inner_level_does_not_see():
    with BatchingInterpreter(2) as outer:
        x = outer.wrap(ng.tensor(X[:2]))
        with BatchingInterpreter(SIZE) as inner:
            y = np.exp(x)  # of the outer level alone
            assert y.level is outer
            spread = inner.unwrap(y)
            assert spread.shape == (SIZE, 3, 4)
        assert outer.unwrap(spread).shape == (2, SIZE, 3, 4)


# --------------------------------------------------------------------------------------- the loop


def halves(x):
    """Without a rule: rows in two parts, a view of several results."""
    return x[: len(x) // 2], x[len(x) // 2 :]


def rotated(a, b):
    """Without a rule: a result whose formula runs other operations."""
    return a[::-1] * b


@pytest.mark.slow
def test_an_operation_without_a_rule_is_called_in_a_loop():
    split = View(halves, register=False).vjp(x=lambda g: OPS["concat"](*g))
    turn = Primitive(rotated, register=False)
    turn.vjp(a=lambda g, b: OPS["flip"](g * b, axis=0), b=lambda g, a: g * OPS["flip"](a, axis=0))
    x, b = tensors((X, X[0]), requires_grad=True)

    def f(x):
        first, second = split(turn(x, b))
        return np.sum(first) * second

    actual, expected = at_once(f, x), one_by_one(f, x)
    assert_equal(actual, expected)
    assert_equal(*(ng.autograd.grad(out[0].sum(), (x, b)) for out in (actual, expected)))
    with BatchingInterpreter(0) as level, pytest.raises(ng.NumgradValueError, match="halves"):
        split(level.wrap(np.ones((0, 4))))


@pytest.mark.slow
def test_the_loop_agrees_with_a_rule():
    operands = [BatchOperand(ng.tensor(X), True), BatchOperand(ng.tensor(X[0]), False)]
    looped = by_example(OPS["multiply"], operands, {}, SIZE)
    np.testing.assert_array_equal(looped.numpy(), X * X[0])


@pytest.mark.slow(cases=0)
def test_a_batch_of_none():
    for f in (FUNCTIONS["operators"], FUNCTIONS["norm"], FUNCTIONS["einsum"]):
        expected = at_once(f, *tensors((X, V)))
        for a, e in zip(at_once(f, *tensors((X[:0], V[:0]))), expected, strict=True):
            assert a.shape == (0, *e.shape[1:])
            assert a.dtype == e.dtype
    (flat,) = at_once(lambda x: x.reshape(2, -1), ng.tensor(X[:0]))
    assert flat.shape == (0, 2, 6)


# ----------------------------------------------------------------------------- errors, the value


@pytest.fixture
def level():
    with BatchingInterpreter(SIZE) as entered:
        yield entered


@pytest.mark.slow
def test_a_batched_value_looks_like_an_example(level):
    x = level.wrap(ng.tensor(X.astype(np.float32), requires_grad=True))
    assert isinstance(x, ng.Tensor)
    assert type(x) is not ng.Tensor
    assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((3, 4), 2, 12, np.float32, 3)
    assert (np.shape(x), np.ndim(x), np.size(x), np.result_type(x)) == ((3, 4), 2, 12, np.float32)
    assert x.requires_grad
    assert x.is_leaf
    assert np.exp(x).grad_fn.name() == "ExpBackward"
    assert not x.detach().requires_grad
    assert x.detach().level is level
    text = repr(x)
    assert "3 examples" in text
    assert "(3, 4)" in text
    assert "float32" in text
    assert f"{x}" == text
    assert repr(level) == "<batch of 3 examples>"


REFUSED = {
    "bool": bool,
    "if": lambda x: x if x[0] > 0 else -x,
    "float": lambda x: float(x[0]),
    "int": lambda x: int(x[0]),
    "complex": lambda x: complex(x[0]),
    "index": lambda x: range(x[0]),
    "in": lambda x: 1.0 in x,
    "item": lambda x: x[0].item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "array of them": lambda x: np.array([[x, x]]),
    "ndarray indexed": lambda x: np.arange(9)[x],
    "parameter": lambda x: np.roll(x, x[0]),
    "shape": lambda x: np.broadcast_to(x, (x[0], 4)),
    "repeats": lambda x: np.repeat(x, x.astype(int)),
    "random": lambda x: ng.random.default_rng(0).normal(x.astype(int)),
    "assignment elsewhere": lambda x: assign("setitem", ng.ones(4), x),
    "in place elsewhere": lambda x: inplace(OPS["add"], "add_", ng.ones(4), (x,), {}),
    "in place of it": lambda x: inplace(OPS["add"], "add_", x, (1.0,), {}),
    "backward": lambda x: x.backward(),
    "hook": lambda x: x.register_hook(print),
    "retain_grad": lambda x: x.retain_grad(),
    "requires_grad_": lambda x: x.requires_grad_(),
    "requires_grad": lambda x: setattr(x, "requires_grad", True),
    "pickle": lambda x: __import__("pickle").dumps(x),
    "deepcopy": lambda x: __import__("copy").deepcopy(x),
    "ng.tensor": lambda x: ng.tensor(x.detach()),
    "comparison of the array": lambda x: x._array == 0,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_numbers_of_an_example_cannot_be_looked_at(level, name):
    x = level.wrap(ng.tensor(V, requires_grad=True))
    refused = pytest.raises(ng.NumgradRuntimeError, match="stands for all examples of a batch")
    with refused, Refusals(traced=False):
        REFUSED[name](x)


ERRORS = {
    "reshape": (lambda x: x.reshape(5, 2), ValueError, r"reshape.*\(3, 4\)"),
    "axis": (lambda x: np.sum(x, axis=2), IndexError, "sum.*axis 2.*2 dimensions"),
    "operands": (lambda x: x + np.ones(3), ValueError, r"add.*\(3, 4\).*\(3,\)"),
    "product": (lambda x: x @ np.ones(3), ValueError, r"matmul.*\(3, 4\)"),
    "scalar product": (lambda x: x[0, 0] @ np.ones(3), ValueError, "matmul.*0-d"),
    "vector": (lambda x: x[0].mT, ValueError, r"matrix_transpose.*\(4,\)"),
    "index": (lambda x: x[3], IndexError, r"getitem.*\(3, 4\)"),
    "indices": (lambda x: x[0, 0, 0], IndexError, r"getitem.*\(3, 4\)"),
    "take": (lambda x: np.take(x, 12), IndexError, "take.*index 12"),
    "keyword": (lambda x: OPS["exp"](x, axes=1), TypeError, "exp.*axes"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_what_the_caller_sees(level, name):
    function, kind, match = ERRORS[name]
    with pytest.raises(kind, match=match) as caught:
        function(level.wrap(ng.tensor(X)))
    assert isinstance(caught.value, ng.NumgradError)


@pytest.mark.slow
def test_an_error_of_one_example_only(level):
    indices = level.wrap(np.array([[0, 1], [2, 3], [4, 5]]))
    with pytest.raises(ng.NumgradIndexError, match="index 4"):
        np.take(level.wrap(V), indices)


@pytest.mark.slow
def test_a_batched_value_ends_with_its_context():
    with BatchingInterpreter(SIZE) as level:
        x = level.wrap(ng.tensor(V))
    for use in (lambda: x + 1, lambda: np.sum(x), lambda: x.numpy(), lambda: x @ np.ones(4)):
        with pytest.raises(ng.NumgradRuntimeError, match=r"batch|outside"):
            use()
    assert "3 examples" in repr(x)
    np.testing.assert_array_equal(level.unwrap(x).numpy(), V)
    with BatchingInterpreter(SIZE) as other, pytest.raises(RuntimeError, match="outside"):
        x * other.wrap(ng.tensor(V))


@pytest.mark.slow
def test_a_value_of_an_inner_level_cannot_be_kept():
    with BatchingInterpreter(2) as outer:
        with BatchingInterpreter(SIZE) as inner:
            x = inner.wrap(ng.tensor(V))
        with pytest.raises(ng.NumgradRuntimeError, match="outside"):
            outer.unwrap(x)


@pytest.mark.slow
def test_wrap_needs_the_batch_axis(level):
    for value in (np.ones(()), np.ones((4, 3)), ng.ones(2)):
        with pytest.raises(ng.NumgradValueError, match=r"batch of 3.*moveaxis"):
            level.wrap(value)
    assert level.wrap([1, 2, 3]).dtype == np.int64


@pytest.mark.slow
def test_nothing_is_recorded_without_grad(level):
    x = ng.tensor(X, requires_grad=True)
    with ng.no_grad():
        assert not np.exp(level.wrap(x)).requires_grad
    assert np.exp(level.wrap(x)).requires_grad
