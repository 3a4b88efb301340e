"""In-place code and effects in a trace: made functional, written back, done at each call."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.graph.graph import CALL
from numgrad.errors import NumgradRuntimeError, NumgradTraceError
from tests.compiler.numpy_backend import run
from tests.compiler.tracing import record

VECTOR = np.array([0.3, -0.7, 1.2])


def values(tracer, *args):
    sources = [c.owner._grad if c.gradient else c.owner for c in tracer.captured]
    return run(tracer.graph, *args, *[getattr(source, "_array", source) for source in sources])


# ----------------------------------------------------------------------------- local in-place code


def filled(x, empty):
    out = empty((x.shape[0], 2))
    out[:, 0] = x
    out[:, 1] = x * x
    columns = out.T
    columns[1] += 1  # through a view of a view
    flat = out.reshape(-1)
    flat[0] = 5.0
    copied = out.T.reshape(-1)  # not contiguous, so a copy
    copied[...] = 0.0
    out *= 2
    return out


def shifted(x, empty):
    a = x * 1.0
    b = a[1:][::-1]
    a *= 2
    r = b.sum()
    b[0] = 7.0
    a.reshape(1, -1).T[...] += x[0]
    return np.stack([a.sum(), r, b[1]])


@pytest.mark.parametrize("function", [filled, shifted])
def test_local_writes_mean_what_they_mean_in_numpy(function):
    tracer = record(lambda x: function(x, ng.zeros), VECTOR)
    np.testing.assert_allclose(values(tracer, VECTOR)[0], function(VECTOR, np.zeros), rtol=1e-14)
    assert tracer.graph.writes == []


@pytest.mark.parametrize("function", [filled, shifted])
def test_gradients_of_local_writes(function):
    def scalar(x, empty):
        y = function(x, empty)
        return (y * y).sum()

    tracer = record(ng.grad(lambda x: scalar(x, ng.zeros)), VECTOR)
    (found,) = values(tracer, VECTOR)
    for k, e in enumerate(np.eye(3) * 1e-6):
        difference = scalar(VECTOR + e, np.zeros) - scalar(VECTOR - e, np.zeros)
        np.testing.assert_allclose(found[k], difference / 2e-6, rtol=1e-6)


def test_a_part_of_complex_numbers_is_written():
    def f(x):
        z = x + 0j
        z.imag[...] = 2 * x
        return z

    tracer = record(f, VECTOR)
    np.testing.assert_allclose(values(tracer, VECTOR)[0], VECTOR + 2j * VECTOR)


def test_a_diagonal_is_written():
    def f(x):
        out = ng.ones((3, 3))
        out.diagonal()[...] = x
        return out

    # diagonals are few nodes of operations that NumPy lacks: the graph says it all
    names = [node.name for node in record(f, VECTOR).graph.nodes]
    assert names[-1] == "where"


def test_a_mask_of_the_trace_is_written_at():
    def f(x, copy):
        y = copy(x)
        y[y < 0] = 0.0
        return y

    tracer = record(lambda x: f(x, ng.tensor), VECTOR)
    np.testing.assert_array_equal(values(tracer, VECTOR)[0], f(VECTOR, np.copy))


def test_what_a_backward_needs_and_is_overwritten_is_an_error_as_in_eager_code():
    def f(x):
        y = x * x
        z = np.sum(np.exp(y) * y)
        y *= 2
        return z

    with pytest.raises(NumgradRuntimeError, match="version"):
        record(ng.grad(f), VECTOR)


# ---------------------------------------------------------------------------- around the function


def test_captured_tensors_are_written_back():
    p = ng.tensor([1.0, 2.0, 3.0])

    def f(x):
        p.mul_(0.5)
        p[0] = x[0]
        return p * x

    tracer = record(f, VECTOR)
    (captured,) = tracer.captured
    assert [target for target, _ in tracer.graph.writes] == [captured.value]
    result, written = values(tracer, VECTOR)
    np.testing.assert_allclose(written, [0.3, 1.0, 1.5])
    np.testing.assert_allclose(result, written * VECTOR)
    assert p.tolist() == [1.0, 2.0, 3.0]  # tracing changes nothing


def test_arguments_are_written_to_only_if_donated():
    def f(x):
        x += 1
        return x

    with pytest.raises(NumgradTraceError, match="donate") as error:
        record(f, VECTOR)
    assert __file__ in str(error.value)


def test_gradients_accumulate_at_each_call():
    p = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    q = ng.tensor([1.0, 1.0, 1.0], requires_grad=True)
    q.grad = ng.tensor([5.0, 5.0, 5.0])

    def f(x):
        loss = np.sum(x * p * q)
        loss.backward()
        return p.grad + 0

    tracer = record(f, VECTOR)
    found = {id(w.tensor): w.value for w in tracer.gradients}
    assert set(found) == {id(p), id(q)}
    assert tracer.without_gradient == [p]
    assert [c.owner for c in tracer.captured if c.gradient] == [q]
    tracer.graph.outputs = [found[id(p)], found[id(q)]]
    dp, dq = values(tracer, VECTOR)
    np.testing.assert_allclose(dp, VECTOR)
    np.testing.assert_allclose(dq, 5 + VECTOR * [1, 2, 3])
    assert p.grad is None
    assert q.grad is not None
    assert q.grad.tolist() == [5.0, 5.0, 5.0]


def test_a_gradient_that_is_cleared_first_is_not_relied_on():
    p = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def f(x):
        p.grad = None
        np.sum(x * p).backward()

    def step(x):
        f(x)
        return x

    tracer = record(step, VECTOR)
    assert tracer.without_gradient == []
    assert [w.tensor for w in tracer.gradients] == [p]


def test_an_exception_leaves_gradients_as_they_were():
    p = ng.tensor([1.0], requires_grad=True)

    def f(x):
        np.sum(p * x).backward()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        record(f, np.ones(1))
    assert p.grad is None


class Descent(ng.optim.Optimizer):
    """Plain gradient descent, without a kernel."""

    def __init__(self, params):
        super().__init__(params, {})

    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            if p.grad is not None:
                p._array -= 0.1 * p.grad._array


def test_an_optimizer_steps_at_each_call():
    p = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    optimizer = Descent([p])

    def step(x):
        optimizer.zero_grad()
        loss = np.sum(p * p * x)
        loss.backward()
        optimizer.step()
        return loss, p.detach() * 1.0

    tracer = record(step, VECTOR)
    assert p.tolist() == [1.0, 2.0, 3.0]
    (call,) = [node for node in tracer.graph.nodes if node.op == CALL]
    assert call.params["impure"]
    assert call.params["writes"] == (tracer.captured[0].value,)
    expected = np.array([1.0, 2.0, 3.0])
    for _ in range(2):
        loss, after = values(tracer, VECTOR)
        np.testing.assert_allclose(loss, np.sum(expected**2 * VECTOR))
        expected = expected - 0.1 * 2 * expected * VECTOR
        np.testing.assert_allclose(after, expected)
        np.testing.assert_allclose(p.tolist(), expected)
    assert tracer.graph.writes == []


def test_running_statistics_are_written_back():
    layer = ng.nn.BatchNorm1d(2)
    x = np.array([[1.0, 2.0], [3.0, 6.0], [2.0, 1.0]])
    tracer = record(layer, x)
    written = [target for target, _ in tracer.graph.writes]
    sources = [c.owner for c in tracer.captured if c.value in written]
    assert {id(s) for s in sources} == {id(b) for b in layer.buffers()}
    assert layer.running_mean.tolist() == [0.0, 0.0]


def test_the_norm_of_gradients_is_computed_at_each_call():
    p = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def f(x):
        p.grad = None
        np.sum(p * x).backward()
        return ng.nn.utils.clip_grad_norm_(p, 1.0)

    tracer = record(f, VECTOR)
    (call,) = [node for node in tracer.graph.nodes if node.op == CALL]
    assert not call.params["impure"]
    (write,) = tracer.gradients
    assert write.value is not call.inputs[0]  # it was scaled


def test_what_python_alone_would_do_once_is_refused():
    p = ng.tensor([1.0], requires_grad=True)
    optimizer = Descent([p])
    optimizer.param_groups[0]["lr"] = 0.1
    schedule = ng.optim.lr_scheduler.StepLR(optimizer, 2)
    newton = ng.optim.LBFGS([p])
    for step in (schedule.step, lambda: newton.step(lambda: None)):
        with pytest.raises(NumgradTraceError, match="step"):
            record(lambda x, step=step: (step(), x)[1], VECTOR)


def test_random_numbers_are_drawn_at_each_call():
    generator, twin = ng.random.default_rng(1), np.random.default_rng(1)

    def f(x):
        return x + generator.normal(size=x.shape), generator.integers(10, size=(2, x.shape[0]))

    tracer = record(f, VECTOR)
    for _ in range(2):
        a, b = values(tracer, VECTOR)
        np.testing.assert_array_equal(a, VECTOR + twin.normal(size=3))
        np.testing.assert_array_equal(b, twin.integers(10, size=(2, 3)))


def test_dropout_draws_its_seed_at_each_call():
    tracer = record(lambda x: ng.nn.functional.dropout(x), VECTOR)
    names = [node.name for node in tracer.graph.nodes]
    assert names == ["input", "call", "dropout"]


class Traced(ng.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x  # not 2, to see that it is this that is used


class Called(ng.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return ng.asarray(x.numpy() ** 2 * y.numpy())

    @staticmethod
    @ng.autograd.function.once_differentiable
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return ng.asarray(g.numpy() * 3 * x.numpy()), None


def test_a_function_of_operations_is_traced_through():
    tracer = record(ng.grad(lambda x: np.sum(Traced.apply(x))), VECTOR)
    np.testing.assert_allclose(values(tracer, VECTOR)[0], 3 * VECTOR)
    assert all(node.op != CALL for node in tracer.graph.nodes)


def test_a_function_that_needs_numbers_is_called_back():
    y = ng.tensor([1.0, 2.0, 3.0])
    both = ng.value_and_grad(lambda x: np.sum(Called.apply(x * 1.0, y)))
    tracer = record(both, VECTOR)
    value, gradient = values(tracer, VECTOR)
    np.testing.assert_allclose(value, np.sum(VECTOR**2 * [1, 2, 3]))
    np.testing.assert_allclose(gradient, 3 * VECTOR)
    with pytest.raises(NumgradRuntimeError, match="second derivative leads through it"):
        record(ng.hessian(lambda x: np.sum(Called.apply(x, y))), VECTOR)


# --------------------------------------------------------------------------------------- refusals


def branch(x):
    return x if np.sum(x) > 0 else -x


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (branch, "np.where"),
        (lambda x: float(x[0]), "static_argnums"),
        (lambda x: int(x[0]), "static_argnums"),
        (lambda x: x[0].item(), "static_argnums"),
        (lambda x: x.tolist(), "static_argnums"),
        (lambda x: x.numpy(), "numgrad function"),
        (lambda x: np.asarray(x), "numgrad function"),
        (lambda x: x[x > 0].shape, "np.where"),
        (lambda x: 0.3 in x, "np.where"),
    ],
)
def test_what_needs_numbers_is_refused(function, remedy):
    with pytest.raises(NumgradTraceError) as error:
        record(function, VECTOR)
    message = str(error.value)
    assert message.startswith(f"{__file__}:")
    assert remedy in message


def test_storing_in_an_ndarray_says_what_to_store_in():
    with pytest.raises(NumgradTraceError, match=r"ng\.zeros"):
        record(lambda x: np.zeros(3).__setitem__(0, x[0]), VECTOR)


def test_a_tensor_that_outlives_its_trace_says_so():
    kept = []

    def f(x):
        kept.append(x * 2)
        return x

    record(f, VECTOR)
    for use in (lambda t: t + 1, lambda t: np.exp(t), lambda t: t[0], lambda t: t.shape):
        with pytest.raises(NumgradTraceError, match="finished trace"):
            use(kept[0])
    assert "traced" in repr(kept[0])


def _row_written(x, i):
    y = x * 1.0
    row = y[i]
    row *= 2.0
    return y


def _put_back(x, i):
    y = x * 1.0
    y[i] *= 2.0
    y[1:][i - 1] += y[i]
    y[np.argmax(y[:, 0])] -= 1.0
    row = y[i]
    row /= 3.0
    y[i] = row
    return y


def test_rows_at_integers_that_are_known_later():
    x = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(ng.jit(_put_back)(x, 1), _put_back(ng.tensor(x), 1).numpy())
    slope = ng.grad(lambda x, i: np.sum(_put_back(x, i) ** 2))
    np.testing.assert_allclose(ng.jit(slope)(x, 1), slope(x, 1))
    with pytest.raises(ng.NumgradTraceError, match=r"write x\[i\] \*= 2"):
        ng.jit(_row_written)(x, 1)
    with pytest.raises(ng.NumgradTraceError, match=r"write x\[i\] \*= 2"):
        ng.jit(lambda x: _row_written(x, np.argmax(x[:, 0])))(x)


@pytest.mark.parametrize("c", [1.5, 3, np.float32(1.5), np.int8(3)])
def test_numbers_that_are_changed_in_place_are_made_anew(c):
    """As in Python: ``c += x`` gives the name another number."""

    def f(c, x):
        before = c
        c += x
        c *= c
        return before, c

    for x in (2, 0.5, 2j, np.arange(3.0)):
        if isinstance(c, np.generic) and isinstance(x, np.ndarray):
            continue
        for found, expected in zip(ng.jit(f)(c, x), f(c, x), strict=True):
            np.testing.assert_array_equal(found, expected)
            assert type(found) is type(expected)
    with pytest.raises(NumgradTraceError, match="a number"):
        ng.jit(lambda c: c.add_(1))(c)


def test_results_of_numbers_are_numbers():
    def f(c):
        c = c * 2
        before = c
        c **= 2
        return before, c

    assert ng.jit(f)(3.0) == f(3.0)


def test_sums_that_are_written_over_in_reverse():
    """Nothing of what is written over is read, so the sum is not computed."""

    def f(a):
        total, product = np.sum(a, axis=0), np.prod(a, axis=1, keepdims=True)
        total[::-1] = a[0]
        np.flip(product)[:] = a[:, :1]
        return total * product

    a = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_array_equal(ng.jit(f)(a), f(a))
    weighed = lambda a: np.sum(np.sin(f(a)))  # noqa: E731
    np.testing.assert_allclose(ng.jit(ng.grad(weighed))(a), ng.grad(weighed)(a), rtol=1e-13)


@pytest.mark.parametrize("make", [ng.zeros, lambda n: ng.asarray(np.zeros(n)),
                                  lambda n: ng.asarray(np.zeros((2, n)))[1]])  # fmt: skip
def test_what_a_call_makes_is_made_in_each_call(make):
    """Writes to an array that a function makes do not add up from call to call."""
    w = ng.tensor(2.0, requires_grad=True)

    def function(x):
        out = make(3)
        out[:2] = x[:2] * w
        out += x
        return out

    compiled = ng.jit(function)
    for value in (1.0, 2.0):
        w.grad = None
        result = compiled(ng.tensor([value] * 3))
        result.sum().backward()
        assert result.tolist() == [3 * value, 3 * value, value]
        assert w.grad.item() == 2 * value


def test_writes_to_an_array_around_a_function_reach_it():
    around = np.zeros(2)

    def function(x):
        out = ng.asarray(around)
        out += x
        return out * 1.0

    compiled = ng.jit(function)
    assert [compiled(np.ones(2)).tolist() for _ in range(2)] == [[1.0, 1.0], [2.0, 2.0]]
    assert around.tolist() == [2.0, 2.0]
