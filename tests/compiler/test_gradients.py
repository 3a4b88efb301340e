"""Gradients of jitted functions: one node on the tape, at any order."""

from types import SimpleNamespace

import numpy as np
import pytest

import numgrad as ng

pytestmark = pytest.mark.usefixtures("reference_backend")

RNG = np.random.default_rng(1)


def chain(a, b):
    return np.sum(np.exp(np.tanh(a * b) + a))


def product(a, b):
    return ng.tanh(a @ b.T).sum(axis=0) * 2.0


def several(a, b):
    return {"x": (a * b).sum(axis=1), "y": [ng.exp(a), ng.argmax(b)]}


def leaf(array):
    return ng.tensor(array, requires_grad=True)


@pytest.mark.parametrize("function", [chain, product])
def test_backward_agrees_with_eager(function):
    a, b = RNG.random((2, 3, 4))
    fast = ng.jit(function)
    for _ in range(2):
        x, y, u, v = map(leaf, (a, b, a, b))
        fast(x, y).sum().backward()
        function(u, v).sum().backward()
        np.testing.assert_allclose(x.grad, u.grad, rtol=1e-13)
        np.testing.assert_allclose(y.grad, v.grad, rtol=1e-13)
    assert len(fast.specialisations) == 1


def test_one_node_on_the_tape():
    x, y = leaf(RNG.random((3, 2))), ng.ones((3, 2))
    out = ng.jit(chain)(x, y)
    assert out.grad_fn.name() == "ChainBackward"
    assert [node and node.name() for node, _ in out.grad_fn.next_functions] == [
        "AccumulateGrad",
        None,
    ]


def test_transforms_of_a_jitted_function():
    a, b = RNG.random((2, 2, 2))
    fast = ng.jit(chain)
    for transform in (ng.grad, ng.hessian, ng.value_and_grad, ng.jacobian):
        found, expected = transform(fast)(a, b), transform(chain)(a, b)
        if transform is ng.value_and_grad:
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
            found, expected = found[1], expected[1]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    third = ng.grad(lambda x: np.sum(ng.grad(lambda y: np.sum(ng.grad(fast)(y, b)))(x)))
    expected = ng.grad(lambda x: np.sum(ng.grad(lambda y: np.sum(ng.grad(chain)(y, b)))(x)))
    np.testing.assert_allclose(third(a), expected(a), rtol=1e-11)


@pytest.mark.parametrize("transform", [ng.grad, ng.hessian, ng.jacobian])
def test_a_jitted_transform(transform):
    a, b = RNG.random((2, 2, 2))
    fast = ng.jit(transform(chain))
    np.testing.assert_allclose(fast(a, b), transform(chain)(a, b), rtol=1e-12)
    assert isinstance(fast(ng.tensor(a), b), ng.Tensor)


@pytest.mark.parametrize("transform", [ng.hessian, ng.jacrev, ng.jacfwd])
def test_a_jitted_matrix_of_many_rows_is_a_batch_of_any_number(transform):
    def f(x):
        y = np.tanh(x * x[::-1]) * np.sum(np.cos(x))
        return np.sum(y * x) if transform is ng.hessian else y.reshape(2, -1)

    fast = ng.jit(transform(f))
    for n in (16, 26, 150):
        x = RNG.random(n)
        np.testing.assert_allclose(fast(x), transform(f)(x), rtol=1e-9, atol=1e-11)
    counts = [len(fast.graph(RNG.random(n)).nodes) for n in (16, 26)]
    assert counts[0] == counts[1]


def test_create_graph():
    a, b = RNG.random((2, 5))
    fast = ng.jit(chain)
    x, u = leaf(a), leaf(a)
    (g,) = ng.autograd.grad(fast(x, b), x, create_graph=True)
    (h,) = ng.autograd.grad(chain(u, b), u, create_graph=True)
    np.testing.assert_allclose(g.detach(), h.detach(), rtol=1e-13)
    (g * g).sum().backward()
    (h * h).sum().backward()
    np.testing.assert_allclose(x.grad, u.grad, rtol=1e-12)


def test_gradcheck():
    a, b = RNG.random((2, 3))
    assert ng.testing.gradcheck(ng.jit(product), (leaf(a[None]), leaf(b[None])))
    assert ng.testing.gradgradcheck(ng.jit(product), (leaf(a[None]), leaf(b[None])))


def test_several_results():
    a, b = RNG.random((2, 2, 3))
    x, y = leaf(a), leaf(b)
    out = ng.jit(several)(x, y)
    assert not out["y"][1].requires_grad
    (out["x"].sum() + (out["y"][0] * 2).sum()).backward()
    np.testing.assert_allclose(x.grad, b + 2 * np.exp(a))
    np.testing.assert_allclose(y.grad, a)
    x.grad = None
    ng.jit(several)(x, y)["y"][0].sum().backward()  # no gradient arrives at the other
    np.testing.assert_allclose(x.grad, np.exp(a))


def test_a_result_twice_and_an_argument_as_result():
    x = leaf([1.0, 2.0])
    first, second, same = ng.jit(lambda x: ((y := x * x), y, x))(x)
    (first * 3 + second * 5 + same * 7).sum().backward()
    np.testing.assert_allclose(x.grad, 8 * 2 * np.array([1.0, 2.0]) + 7)


def test_an_argument_twice():
    x = leaf([1.0, 2.0])
    ng.jit(lambda a, b: (a * a * b).sum())(x, x).backward()
    np.testing.assert_allclose(x.grad, 3 * np.array([1.0, 4.0]))


def test_broadcast_arguments():
    x, y = leaf(RNG.random((3, 1))), leaf(RNG.random(4))
    ng.jit(lambda a, b: (a * b).sum())(x, y).backward()
    np.testing.assert_allclose(x.grad, np.full((3, 1), y.detach().numpy().sum()))
    np.testing.assert_allclose(y.grad, np.full(4, x.detach().numpy().sum()))


def test_complex_arguments():
    a = RNG.random(3) + 1j * RNG.random(3)
    x, u = leaf(a), leaf(a)
    ng.jit(lambda z: ng.abs(z * z * z).sum())(x).backward()
    ng.abs(u * u * u).sum().backward()
    np.testing.assert_allclose(x.grad, u.grad)


def test_captured_parameters_have_gradients():
    model = ng.nn.Sequential(ng.nn.Linear(3, 4), ng.nn.Tanh(), ng.nn.Linear(4, 1))
    fast = ng.jit(model)
    x = ng.tensor(RNG.random((5, 3)))
    for _ in range(2):
        model.zero_grad()
        fast(x).sum().backward()
        found = [p.grad for p in model.parameters()]
        model.zero_grad()
        model(x).sum().backward()
        for g, p in zip(found, model.parameters(), strict=True):
            np.testing.assert_allclose(g, p.grad, rtol=1e-12)
    with ng.no_grad():
        assert not fast(x).requires_grad
    model[0].requires_grad_(False)
    fast(x).sum().backward()
    assert fast(x.numpy()).requires_grad  # a gradient of the parameters may be asked for
    with ng.no_grad():
        assert fast(x.numpy()).__class__ is np.ndarray


def test_a_captured_tensor_that_was_computed():
    p = leaf([1.0, 2.0])
    w = p * p
    fast = ng.jit(lambda x: (x * w).sum())
    fast(ng.tensor([3.0, 4.0])).backward()
    np.testing.assert_allclose(p.grad, [6.0, 16.0])


def test_a_detached_twin_does_not_hide_the_parameter():
    p = leaf([1.0, 2.0])
    fast = ng.jit(lambda x: (p.detach() * x + p * x).sum())
    for _ in range(2):
        p.grad = None
        fast(ng.tensor([3.0, 4.0])).backward()
        np.testing.assert_allclose(p.grad, [3.0, 4.0])


def test_hooks_run_once():
    p = leaf([1.0, 2.0])
    p.register_hook(lambda g: 10 * g)
    fast = ng.jit(lambda x: (x * p).sum())
    fast(ng.tensor([3.0, 4.0])).backward()
    np.testing.assert_allclose(p.grad, [30.0, 40.0])


def test_a_captured_result_keeps_its_history_to_itself():
    """Of ``w * x + tanh(w)``: counted once, and there for others; by hand."""
    w = leaf([1.0, 2.0])
    memory = SimpleNamespace(state=ng.tanh(w))
    fast = ng.jit(lambda x: w * x + memory.state)
    for _ in range(2):
        total = fast(ng.tensor([3.0, 4.0])).sum()
        (g,) = ng.autograd.grad(total, w, retain_graph=True)
        np.testing.assert_allclose(g, [3.0, 4.0] + 1 / np.cosh([1.0, 2.0]) ** 2)
    (g,) = ng.autograd.grad(memory.state.sum(), w)
    np.testing.assert_allclose(g, 1 / np.cosh([1.0, 2.0]) ** 2)


def test_a_change_between_forward_and_backward_is_noticed():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    out = ng.jit(lambda a: (a * a).sum())(y)
    with ng.no_grad():
        y.add_(1.0)
    with pytest.raises(ng.NumgradRuntimeError, match="in-place"):
        out.backward()


def test_what_has_no_gradient_says_so_in_the_backward():
    state = ng.tensor([2.0, 3.0])

    @ng.jit
    def changes(x):
        out = (x * state).sum()
        with ng.no_grad():
            state.add_(1.0)
        return out

    @ng.jit
    def frees(x):
        loss = (x * w).sum()
        loss.backward()
        return loss

    x, w = leaf([1.0, 1.0]), leaf([5.0, 7.0])
    for k in (0, 1):
        out = changes(x)
        assert out.item() == 5.0 + 2 * k
        assert out.requires_grad
        with pytest.raises(ng.NumgradRuntimeError, match="in-place"):
            out.backward()
    loss = frees(ng.ones(2))
    assert loss.item() == 12.0
    np.testing.assert_array_equal(w.grad, [1.0, 1.0])
    with pytest.raises(ng.NumgradRuntimeError, match="freed"):
        loss.backward()


def test_a_training_step():
    def train(fast):
        ng.random.manual_seed(0)
        model = ng.nn.Sequential(ng.nn.Linear(3, 4), ng.nn.Tanh(), ng.nn.Linear(4, 1))
        optimizer = ng.optim.Adam(model.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        function = ng.jit(step) if fast else step
        losses = [function(x, y).item() for _ in range(4)]
        return losses, [p.detach().numpy() for p in model.parameters()], function

    x, y = ng.tensor(RNG.random((5, 3))), ng.tensor(RNG.random((5, 1)))
    losses, parameters, _ = train(False)
    found, fitted, function = train(True)
    np.testing.assert_allclose(found, losses, rtol=1e-12)
    for a, b in zip(fitted, parameters, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)
    assert len(function.specialisations) == 1


@pytest.mark.slow(cases=0)
def test_buffers_are_written_to():
    layers = [ng.nn.BatchNorm1d(3) for _ in range(2)]
    fast = ng.jit(lambda x: (layers[0](x) ** 3).sum())
    for _ in range(3):
        a = RNG.random((4, 3))
        x, u = leaf(a), leaf(a)
        fast(x).backward()
        (layers[1](u) ** 3).sum().backward()
        np.testing.assert_allclose(x.grad, u.grad, rtol=1e-10, atol=1e-12)
    for name, value in layers[0].state_dict().items():
        np.testing.assert_allclose(value, layers[1].state_dict()[name], rtol=1e-12)
    assert len(fast.specialisations) == 1


def test_gradients_of_captured_tensors_accumulate():
    w = leaf([1.0, 2.0])

    @ng.jit
    def accumulate(x):
        (w * x).sum().backward()

    accumulate(np.ones(2))
    held = w.grad
    np.testing.assert_array_equal(w.grad, [1.0, 1.0])
    for n in (2, 3):
        accumulate(np.ones(2))
        assert w.grad is held
        np.testing.assert_array_equal(w.grad, [n, n])
    w.grad = None
    accumulate(np.ones(2))
    np.testing.assert_array_equal(w.grad, [1.0, 1.0])
    np.testing.assert_array_equal(held, [3.0, 3.0])
    assert len(accumulate.specialisations) == 2


def test_retain_graph_and_a_second_backward():
    x = leaf([1.0, 2.0])
    out = ng.jit(lambda a: (a * a).sum())(x)
    out.backward(retain_graph=True)
    out.backward()
    np.testing.assert_allclose(x.grad, [4.0, 8.0])
    with pytest.raises(ng.NumgradRuntimeError, match="freed"):
        out.backward()


def test_saved_tensors_hooks_and_anomaly_mode():
    x = leaf([1.0, 2.0])
    fast = ng.jit(lambda a: ng.tanh(a.sum() * a).sum())
    fast(x).backward()
    expected, x.grad = x.grad, None
    packed = []
    with ng.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        out = fast(x)
    out.backward()
    assert packed
    np.testing.assert_allclose(x.grad, expected)
    x.grad = None
    with pytest.warns(UserWarning, match="Anomaly"), ng.autograd.detect_anomaly():
        fast(x).backward()
    np.testing.assert_allclose(x.grad, expected)
    assert len(fast.specialisations) == 1


def test_numbers_and_constants_beside_what_is_differentiated():
    x = leaf(np.float32([1.0, 2.0]))
    fast = ng.jit(lambda a, n, k: (a * n + k).sum() * a.shape[0])
    for n in (2, 3.0):
        x.grad = None
        fast(x, n, np.float32(4)).backward()
        assert x.grad.dtype == np.float32
        np.testing.assert_allclose(x.grad, [2 * n, 2 * n])


def test_what_an_operation_notes_is_kept_for_further_derivatives():
    def peaks(x):
        return (ng.nn.functional.max_pool1d(x[None], 2) ** 3).sum()

    def steepness(x):
        return (ng.grad(peaks)(x) ** 2).sum()

    a = RNG.standard_normal((3, 4))
    for function in (peaks, steepness):
        expected = ng.hessian(function)(a)
        np.testing.assert_allclose(ng.hessian(ng.jit(function))(a), expected, rtol=1e-12)


def test_forward_mode_and_batches():
    from numgrad.autograd import forward_ad

    a = RNG.random(3)
    fast = ng.jit(lambda x: ng.sin(x) * x)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(ng.tensor(a), ng.ones(3))
        tangent = forward_ad.unpack_dual(fast(dual)).tangent
    np.testing.assert_allclose(tangent, np.cos(a) * a + np.sin(a))
    x = leaf(a)
    (rows,) = ng.autograd.grad(fast(x), x, ng.eye(3), is_grads_batched=True)
    np.testing.assert_allclose(rows, np.diag(np.cos(a) * a + np.sin(a)))


def test_inside_of_it_a_leaf_of_its_own():
    def function(x):
        w = ng.ones(2).requires_grad_()
        return (x * w).sum()

    out = ng.jit(function)(ng.tensor([1.0, 2.0]))
    assert out.item() == 3.0


def _scaled_by_what_is_written_over(x):
    z = x * 1.0
    factor = np.exp(z)
    w = factor * 2.0
    factor += 1.0  # which the gradient of exp needs
    return (w + factor).sum()


class _WithoutBackward(ng.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        raise ng.NumgradRuntimeError("no backward here")


@pytest.mark.parametrize(
    "function", [_scaled_by_what_is_written_over, lambda x: _WithoutBackward.apply(x).sum()]
)
@pytest.mark.parametrize("derive", [ng.grad, ng.value_and_grad, ng.jacobian, ng.hessian])
def test_gradients_that_cannot_be_traced_are_no_zeros(derive, function):
    x, fast = np.array([0.3, 0.9, -0.7]), derive(ng.jit(function))
    for _ in range(2):
        with pytest.raises(ng.NumgradRuntimeError, match=r"as it was|no backward"):
            fast(x)


@pytest.mark.parametrize("other", [lambda z: z[::-1], lambda z: np.roll(z, 1), lambda z: z])
def test_writes_of_what_shares_memory_with_the_target(other):
    def function(x):
        z = x * 1.0
        z *= other(z)
        z[:-1] *= z[1:]
        return np.sum(z * z)

    x, step = np.array([0.3, 0.9, -0.7]), 1e-6
    found = [(function(x + h) - function(x - h)) / (2 * step) for h in step * np.eye(3)]
    np.testing.assert_allclose(ng.grad(function)(x), found, rtol=1e-6, atol=1e-8)
    for fast in (ng.jit(ng.grad(function)), ng.grad(ng.jit(function))):
        np.testing.assert_allclose(fast(x), found, rtol=1e-6, atol=1e-8)


def _without_recording(x):
    with ng.no_grad():
        return x * 1.0


@pytest.mark.parametrize("cut_off", [ng.stop_gradient, _without_recording])
def test_what_is_cut_off_stays_constant(cut_off):
    """In second derivatives of a compiled function, and in the steps of a loop."""
    x = np.array([0.9, 0.4])

    def function(x):
        return np.sum(np.sin(x) * cut_off(np.cos(x)))

    np.testing.assert_allclose(ng.hvp(ng.jit(function))(x, x), -np.sin(x) * np.cos(x) * x)

    def in_steps(x):
        return np.sum(ng.scan(lambda c, _: (c * c * cut_off(c), c), x, None, length=2)[0])

    # c -> c * c * [c] twice: 2 c^2 for the first step, 2 c^2 of its result for the second
    np.testing.assert_allclose(ng.jit(ng.grad(in_steps))(x), 4 * x**8)


def test_a_constant_shares_memory_with_what_it_was_cut_from():
    def function(x):
        y = x * 1.0
        constant = y.detach()
        y += 1
        constant[0] *= 2.0
        return y * constant

    x = ng.tensor([0.9, 0.4])
    np.testing.assert_allclose(ng.jit(function)(x).numpy(), function(x).numpy(), rtol=1e-15)


def test_a_compiled_function_inside_a_checkpoint():
    x = ng.tensor([0.9, 0.4], requires_grad=True)
    ng.checkpoint(ng.jit(lambda x: np.sum(x**3)), x, use_reentrant=False).backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * x.detach().numpy() ** 2)


@pytest.mark.parametrize("transform", [ng.grad, ng.value_and_grad, ng.jacobian])
def test_derivatives_require_grad_only_if_something_outside_does(transform):
    def total(x):
        return np.sum((x - 1) ** 2 * scale)

    scale = ng.tensor(2.0)
    fast = ng.jit(transform(total))
    for follows in (False, True, False):
        x = ng.tensor(np.ones(3), requires_grad=follows)
        results = fast(x) if transform is ng.value_and_grad else (fast(x),)
        assert [t.requires_grad for t in results] == [follows] * len(results)


def test_only_what_depends_on_a_parameter_requires_grad():
    scale = leaf(np.array(2.0))

    @ng.jit
    def both(x):
        return ng.grad(lambda x: np.sum(x**2))(x), ng.grad(lambda x: scale * np.sum(x**2))(x)

    plain, scaled = both(ng.tensor(np.ones(3)))
    assert not plain.requires_grad
    scaled.sum().backward()
    np.testing.assert_array_equal(scale.grad, 6.0)
