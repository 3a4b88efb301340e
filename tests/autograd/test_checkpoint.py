"""Checkpoints give the gradients of the plain call, recompute once a backward, keep nothing."""

import gc
import threading
import tracemalloc
from contextlib import contextmanager
from functools import partial
from weakref import ref

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    saved_tensors_hooks,
)
from numgrad.tensors.checkpoint import checkpoint, checkpoint_sequential, set_checkpoint_early_stop

A = np.array([0.3, -0.7, 1.1])


class Counted:
    """A function that counts its calls, and how many of them came to their end."""

    def __init__(self, function):
        self.function = function
        self.calls = self.ends = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        result = self.function(*args, **kwargs)
        self.ends += 1
        return result


def leaf(value=A):
    return ng.tensor(value, requires_grad=True)


def smooth(x):
    return ng.exp(ng.sin(x) * ng.cos(x))


def smooth_slope(a):
    return np.exp(np.sin(a) * np.cos(a)) * np.cos(2 * a)


# ------------------------------------------------------------------------------- gradients


def test_gradient_and_number_of_calls():
    f, x = Counted(smooth), leaf()
    y = checkpoint(f, x)
    assert f.calls == 1
    ng.sum(y).backward()
    assert f.calls == 2
    np.testing.assert_allclose(x.grad.numpy(), smooth_slope(A), rtol=1e-14)


def test_several_backwards_recompute_once_each():
    """Promise 113."""
    f, x = Counted(smooth), leaf()
    y = ng.sum(checkpoint(f, x))
    for k in range(1, 4):
        y.backward(retain_graph=True)
        assert f.calls == 1 + k
        np.testing.assert_allclose(x.grad.numpy(), k * smooth_slope(A), rtol=1e-14)
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()
    assert f.calls == 5


def test_higher_derivatives():
    f, x = Counted(lambda x: ng.sin(x) ** 3), leaf()
    (first,) = ng.autograd.grad(ng.sum(checkpoint(f, x)), x, create_graph=True)
    (second,) = ng.autograd.grad(ng.sum(first), x, create_graph=True)
    (third,) = ng.autograd.grad(ng.sum(second), x)
    s, c = np.sin(A), np.cos(A)
    np.testing.assert_allclose(first.detach().numpy(), 3 * s**2 * c, rtol=1e-13)
    np.testing.assert_allclose(second.detach().numpy(), 6 * s * c**2 - 3 * s**3, rtol=1e-13)
    np.testing.assert_allclose(third.numpy(), 6 * c**3 - 21 * s**2 * c, rtol=1e-13)
    assert f.calls == 4


def test_gradcheck_of_all_modes_of_reverse():
    x = leaf()
    assert ng.testing.gradcheck(lambda x: checkpoint(smooth, x), (x,))
    assert ng.testing.gradgradcheck(lambda x: checkpoint(smooth, x), (x,))


def test_arguments_of_many_kinds():
    def f(a, number, array, *, scale, things):
        return ng.sin(a) * array * number * scale, things["b"] * a, "text"

    a, b, s = leaf(), leaf(2.0), leaf(3.0)
    array = np.array([1.0, 2.0, 3.0])
    first, second, text = checkpoint(f, a, 2, array, scale=s, things={"b": b})
    array[:] = -1  # the call keeps a copy, as operations do
    assert text == "text"
    (ng.sum(first) + ng.sum(second)).backward()
    w = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(a.grad.numpy(), 6 * w * np.cos(A) + 2, rtol=1e-14)
    np.testing.assert_allclose(s.grad.numpy(), 2 * np.sum(w * np.sin(A)), rtol=1e-14)
    np.testing.assert_allclose(b.grad.numpy(), np.sum(A), rtol=1e-14)


def test_leaves_that_are_no_arguments():
    w, x = leaf(2.0), ng.tensor(A)
    ng.sum(checkpoint(lambda x: ng.exp(w * x), x)).backward()
    np.testing.assert_allclose(w.grad.numpy(), np.sum(A * np.exp(2 * A)), rtol=1e-14)


def test_grad_of_some_inputs_and_inner_results():
    inner = []

    def f(x, w):
        h = ng.sin(x)
        inner.append(h)
        return ng.exp(h * w)

    x, w = leaf(), leaf(0.5)
    y = ng.sum(checkpoint(f, x * 1, w))
    (gw,) = ng.autograd.grad(y, w, retain_graph=True)
    gh, gx = ng.autograd.grad(y, (inner[0], x))
    s = np.sin(A)
    np.testing.assert_allclose(gw.numpy(), np.sum(s * np.exp(s / 2)), rtol=1e-14)
    np.testing.assert_allclose(gh.numpy(), np.exp(s / 2) / 2, rtol=1e-14)
    np.testing.assert_allclose(gx.numpy(), np.exp(s / 2) / 2 * np.cos(A), rtol=1e-14)
    assert x.grad is None
    assert w.grad is None


def test_several_outputs_of_which_one_is_used():
    f, x = Counted(lambda x: (ng.exp(x), ng.sin(ng.cos(x)))), leaf()
    first, second = checkpoint(f, x)
    del second  # what only it needed is not computed again
    ng.sum(first).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(A), rtol=1e-15)
    assert (f.calls, f.ends) == (2, 1)


@pytest.mark.slow(cases=0)
def test_operations_with_several_outputs_views_and_reductions():
    def f(x):
        top, bottom = ng.unstack(x)
        return ng.sum(top * bottom) + ng.max(x[:, ::2] ** 3) + ng.logsumexp(x.mT @ x)

    a = np.random.default_rng(0).normal(size=(2, 4))
    x, z = leaf(a), leaf(a)
    checkpoint(f, x).backward()
    f(z).backward()
    np.testing.assert_array_equal(x.grad.numpy(), z.grad.numpy())
    assert ng.testing.gradcheck(lambda x: checkpoint(f, x), (x,))


def test_batched_cotangents():
    x = leaf()
    y = checkpoint(smooth, x)
    (jacobian,) = ng.autograd.grad(y, x, ng.eye(3), is_grads_batched=True)
    np.testing.assert_allclose(jacobian.numpy(), np.diag(smooth_slope(A)), rtol=1e-14)


def test_same_as_torch():
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint as theirs

    a, w = np.random.default_rng(1).normal(size=(2, 3, 3))
    x, u = leaf(a), leaf(w)
    checkpoint(lambda x: ng.sum(ng.tanh(x @ u) ** 2), x * 2).backward()
    tx, tu = (torch.tensor(v, requires_grad=True) for v in (a, w))
    theirs(lambda x: (torch.tanh(x @ tu) ** 2).sum(), tx * 2, use_reentrant=False).backward()
    np.testing.assert_allclose(x.grad.numpy(), tx.grad.numpy(), rtol=1e-12)
    np.testing.assert_allclose(u.grad.numpy(), tu.grad.numpy(), rtol=1e-12)


# ------------------------------------------------------------------------- when it stops


def test_recomputation_stops_early_unless_told_otherwise():
    """Promise 113."""
    f, x = Counted(smooth), leaf()  # exp saves its result, so the last operation is repeated
    ng.sum(checkpoint(f, x)).backward()
    assert (f.calls, f.ends) == (2, 1)
    ng.sum(checkpoint(f, x, early_stop=False)).backward()
    assert (f.calls, f.ends) == (4, 3)
    with set_checkpoint_early_stop(False):
        y = ng.sum(checkpoint(f, x))
    y.backward()
    assert (f.calls, f.ends) == (6, 5)
    with set_checkpoint_early_stop(False), set_checkpoint_early_stop(True):
        y = ng.sum(checkpoint(f, x, early_stop=False))
    y.backward()
    assert (f.calls, f.ends) == (8, 6)


def test_stopping_passes_handlers_but_runs_finally():
    log = []

    def f(x):
        try:
            return ng.exp(x)
        except Exception:
            log.append("handled")
            raise
        finally:
            log.append("left")

    x = leaf()
    ng.sum(checkpoint(f, x)).backward()
    assert log == ["left", "left"]


def test_nothing_is_recomputed_where_nothing_is_needed():
    f, x = Counted(lambda x: x + 1), leaf()
    ng.sum(checkpoint(f, x)).backward()
    assert f.calls == 1
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(3))


@pytest.mark.parametrize("mode", [ng.no_grad, ng.inference_mode])
def test_plain_call_where_nothing_is_recorded(mode):
    def no_contexts():
        raise AssertionError

    x = leaf()
    with mode():
        y = checkpoint(smooth, x, context_fn=no_contexts)
    assert not y.requires_grad


def test_grad_mode_inside_and_around():
    seen = []

    def f(x):
        seen.append(ng.is_grad_enabled())
        with ng.no_grad():
            constant = ng.exp(x)
        return constant * ng.sin(x)

    x = leaf()
    y = ng.sum(checkpoint(f, x))
    with ng.no_grad():
        y.backward()
        assert not ng.is_grad_enabled()
    assert seen == [True, True]
    np.testing.assert_allclose(x.grad.numpy(), np.exp(A) * np.cos(A), rtol=1e-15)


# ---------------------------------------------------------------------- checks and errors


def test_reentrant_and_unknown_checks_are_refused():
    with pytest.raises(ng.NumgradValueError, match="use_reentrant"):
        checkpoint(smooth, leaf(), use_reentrant=True)
    with pytest.raises(ng.NumgradValueError, match="'default' or 'none'"):
        checkpoint(smooth, leaf(), determinism_check="all")


def changing(first, second):
    """A function that does something else when it is called again."""
    rest = iter([first, second])
    return lambda x: next(rest)(x)


CHANGED = [
    (lambda x: ng.exp(x[:2]), r"tensor 0 .* shape \(3,\) .* shape \(2,\)"),
    (lambda x: ng.exp(x.astype("float32")), "float64, but .* float32"),
    (lambda x: x + 1, "saved 1 tensors .* and 0 when"),
]


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize(("second", "match"), CHANGED)
def test_recomputation_that_differs_raises(second, match, early_stop):
    """Promise 113."""
    x = leaf()
    y = ng.sum(checkpoint(changing(ng.exp, second), x, early_stop=early_stop))
    with pytest.raises(ng.NumgradRuntimeError, match=match):
        y.backward()
    assert x.grad is None
    assert ng.is_grad_enabled()


def test_recomputation_that_saves_more():
    def more(x):
        return ng.sin(ng.exp(x))

    x = leaf()
    y = ng.sum(checkpoint(changing(ng.exp, more), x, early_stop=False))
    with pytest.raises(ng.NumgradRuntimeError, match=r"saved 1 tensors .* and 2 when"):
        y.backward()
    y = checkpoint(changing(ng.exp, more), x, early_stop=False, determinism_check="none")
    ng.sum(y).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(A), rtol=1e-15)


def test_without_the_check_a_wrong_shape_is_still_an_error():
    y = checkpoint(changing(ng.exp, lambda x: ng.exp(x[:2])), leaf(), determinism_check="none")
    with pytest.raises(ng.NumgradRuntimeError, match=r"\(2,\)"):
        ng.sum(y).backward()


def test_debug_names_the_lines():
    x = leaf()

    def another(x):
        return ng.exp(x[:2])

    y = checkpoint(changing(ng.exp, another), x, debug=True)
    with pytest.raises(ng.NumgradRuntimeError, match=r"in .*changing.*test_checkpoint.*another"):
        ng.sum(y).backward()
    y = checkpoint(changing(ng.exp, lambda x: x), x, debug=True)
    with pytest.raises(ng.NumgradRuntimeError, match=r"in .*changing.* then in nowhere"):
        ng.sum(y).backward()


def test_exceptions_keep_their_type_and_change_nothing():
    calls = []

    def f(x):
        calls.append(x)
        if len(calls) == 2:
            raise LookupError("the second time")
        return ng.exp(x)

    x = leaf()
    y = ng.sum(checkpoint(f, x))
    with pytest.raises(LookupError, match="the second time"):
        y.backward()
    assert x.grad is None
    y.backward()  # nothing was freed
    np.testing.assert_allclose(x.grad.numpy(), np.exp(A), rtol=1e-15)


def test_arguments_must_stay_as_they_were():
    x = leaf()
    argument = x * 1
    y = ng.sum(checkpoint(smooth, argument))
    argument += 1
    with pytest.raises(ng.NumgradRuntimeError, match=r"checkpoint: .* shape \(3,\)"):
        y.backward()
    big = np.ones(10_000)
    y = ng.sum(checkpoint(lambda x, a: ng.exp(x * ng.sum(a)), leaf(0.1), big))
    big[:] = 2
    with pytest.raises(ng.NumgradRuntimeError, match=r"checkpoint: .* changed it"):
        y.backward()


def test_in_place_inside_gives_the_gradient_of_old_values():
    def f(x):
        h = ng.sin(x)
        y = h * h  # saves h, which is then changed
        h.mul_(10)
        return ng.exp(y) + h

    x = leaf()
    ng.sum(checkpoint(f, x, early_stop=False)).backward()
    s, c = np.sin(A), np.cos(A)
    np.testing.assert_allclose(x.grad.numpy(), np.exp(s * s) * 2 * s * c + 10 * c, rtol=1e-13)


def test_no_hooks_where_hooks_are_disabled():
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        checkpoint(smooth, leaf())


# ------------------------------------------------------------------------------ contexts


def test_contexts_around_both_runs():
    log = []

    @contextmanager
    def noting(name):
        log.append(f"enter {name}")
        yield
        log.append(f"leave {name}")

    def f(x):
        log.append("call")
        return x + ng.exp(x)

    x = leaf()
    y = checkpoint(f, x, early_stop=False, context_fn=lambda: (noting("first"), noting("second")))
    ng.sum(y).backward()
    assert log == ["enter first", "call", "leave first", "enter second", "call", "leave second"]


# ------------------------------------------------------------------------- random numbers


RNG = np.random.default_rng(5)


def with_closure():
    rng = ng.random.default_rng(1)
    return lambda x: ng.sin(x) * rng.normal(size=3)


def with_default():
    rng = np.random.default_rng(2)
    return lambda x, rng=rng: ng.sin(x) * rng.normal(size=3)


class Model:
    def __init__(self, rng):
        self.layers = [{"rng": rng}]

    def __call__(self, x):
        return ng.sin(x) * self.layers[0]["rng"].normal(size=3)

    def method(self, x):
        return self(x)


RANDOM = {
    "global": lambda: lambda x: ng.sin(x) * np.random.normal(size=3),
    "named global": lambda: lambda x: ng.sin(x) * sum(RNG.normal() for _ in range(3)),
    "enclosed": with_closure,
    "default": with_default,
    "partial": lambda: partial(
        lambda x, rng: ng.sin(x) * rng.normal(size=3), rng=np.random.default_rng(2)
    ),
    "argument": lambda: lambda x, rng=None: ng.sin(x) * rng.normal(size=3),
    "legacy": lambda: partial(
        lambda rng, x: ng.sin(x) * rng.normal(size=3), np.random.RandomState(2)
    ),
    "object": lambda: Model(np.random.default_rng(2)),
    "method": lambda: Model(ng.random.default_rng(2)).method,
}


def seeded(kind):
    """A function that draws, and keyword arguments for it, with everything seeded anew."""
    np.random.seed(0)
    RNG.bit_generator.state = np.random.default_rng(5).bit_generator.state
    return RANDOM[kind](), {"rng": np.random.default_rng(3)} if kind == "argument" else {}


@pytest.mark.parametrize("kind", RANDOM)
def test_random_numbers_are_repeated_and_put_back(kind):
    plain, given = seeded(kind)
    expected = [plain(ng.tensor(A), **given).numpy() for _ in range(3)]
    function, given = seeded(kind)
    x = leaf()
    first, second = (checkpoint(function, x, **given) for _ in range(2))
    ng.sum(first).backward()
    third = checkpoint(function, x, **given)
    for y, value in zip((first, second, third), expected, strict=True):
        np.testing.assert_array_equal(y.detach().numpy(), value)
    np.testing.assert_allclose(x.grad.numpy(), expected[0] / np.tan(A), rtol=1e-13)


def test_random_state_can_be_left_alone():
    rng = np.random.default_rng(0)
    drawn = []

    def f(x):
        drawn.append(rng.normal())
        return ng.exp(x)

    ng.sum(checkpoint(f, leaf(), preserve_rng_state=False)).backward()
    assert len(drawn) == 2
    assert drawn[0] != drawn[1]


# ------------------------------------------------------------------- hooks, nesting, threads


def test_hooks_on_tensors():
    log = []

    def f(x):
        h = ng.sin(x)
        h.register_hook(lambda g: log.append("inner") or g * 2)
        return ng.exp(h)

    x = leaf()
    x.register_hook(lambda g: log.append("leaf"))
    y = checkpoint(f, x)
    y.register_hook(lambda g: log.append("output"))
    ng.sum(y).backward()
    assert log == ["output", "inner", "leaf"]
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(np.sin(A)) * np.cos(A), rtol=1e-14)


def test_backward_inside_a_hook_of_another_backward():
    x = leaf()
    slopes = []

    def again(g):
        if not slopes:
            slopes.append(None)
            slopes[:] = ng.autograd.grad(y, x, retain_graph=True)

    def with_hook(x):
        h = ng.cos(x)
        h.register_hook(again)
        return ng.exp(ng.sin(h))

    f = Counted(with_hook)
    y = ng.sum(checkpoint(f, x))
    y.backward(retain_graph=True)
    expected = -np.exp(np.sin(np.cos(A))) * np.cos(np.cos(A)) * np.sin(A)
    np.testing.assert_allclose(slopes[0].numpy(), expected, rtol=1e-14)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14)
    assert f.calls == 3  # the call, and one for each backward


def to_list(log):
    """Hooks that note what they pack, and keep it as a list."""

    def pack(t):
        log.append(t.shape)
        return t.numpy().tolist()

    return saved_tensors_hooks(pack, ng.tensor)


def test_hooks_around_a_checkpoint_see_its_arguments_only():
    log, x = [], leaf()
    with to_list(log):
        y = checkpoint(smooth, x + 1)
    assert log == [(3,)]
    ng.sum(y).backward()
    np.testing.assert_allclose(x.grad.numpy(), smooth_slope(A + 1), rtol=1e-14)


def test_hooks_inside_a_checkpoint():
    log = []

    def f(x):
        with to_list(log):
            h = ng.sin(x)  # not seen by the checkpoint
        return ng.exp(h)

    counted, x = Counted(f), leaf()
    y = ng.sum(checkpoint(counted, x))
    y.backward(retain_graph=True)
    assert log == [(3,), (3,)]
    y.backward()
    assert counted.calls == 3
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(np.sin(A)) * np.cos(A), rtol=1e-14)


def test_inside_allow_mutation():
    x = leaf()
    with allow_mutation_on_saved_tensors():
        argument = x * 1
        y = ng.sum(checkpoint(smooth, argument) + ng.exp(argument))
        argument.mul_(10)
        y.backward()
    np.testing.assert_allclose(x.grad.numpy(), smooth_slope(A) + np.exp(A), rtol=1e-14)


@pytest.mark.parametrize("early_stop", [True, False])
def test_nested(early_stop):
    calls = []

    def inner(x):
        calls.append("inner")
        return ng.sin(ng.exp(x))

    def outer(x):
        calls.append("outer")
        h = checkpoint(inner, ng.cos(x), early_stop=early_stop)
        return ng.exp(h) * h

    x = leaf()
    y = ng.sum(checkpoint(outer, x, early_stop=early_stop))
    calls.clear()
    y.backward(retain_graph=True)
    assert calls.count("outer") == 1
    assert calls.count("inner") <= 2  # in the recomputed outer, and for its own gradient
    h = np.sin(np.exp(np.cos(A)))
    slope = np.exp(h) * (1 + h) * np.cos(np.exp(np.cos(A))) * -np.exp(np.cos(A)) * np.sin(A)
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-13)
    (first,) = ng.autograd.grad(y, x, create_graph=True)
    (second,) = ng.autograd.grad(ng.sum(first), x)
    np.testing.assert_allclose(second.numpy(), _nested_curvature(), rtol=1e-12)


def _nested_curvature():
    """Second derivative of ``h exp(h)`` at ``h = sin(exp(cos(x)))``."""
    e = np.exp(np.cos(A))
    h, dh = np.sin(e), -np.cos(e) * e * np.sin(A)
    ddh = -np.sin(e) * (e * np.sin(A)) ** 2 + np.cos(e) * e * (np.sin(A) ** 2 - np.cos(A))
    return np.exp(h) * ((2 + h) * dh**2 + (1 + h) * ddh)


def test_deeply_nested():
    def nest(x, depth):
        x = ng.sin(x)
        return x if depth == 0 else ng.sin(checkpoint(nest, x, depth - 1))

    x, z = leaf(), leaf()
    ng.sum(checkpoint(nest, x, 6)).backward()
    y = z
    for _ in range(13):
        y = ng.sin(y)
    ng.sum(y).backward()
    np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), rtol=1e-14)


def test_backward_inside_the_function():
    def f(x):
        h = x * 1
        (slope,) = ng.autograd.grad(ng.sum(ng.sin(h) ** 2), h, create_graph=True)
        return slope * slope

    counted, x = Counted(f), leaf()
    ng.sum(checkpoint(counted, x)).backward()
    np.testing.assert_allclose(x.grad.numpy(), 4 * np.sin(2 * A) * np.cos(2 * A), rtol=1e-13)


def test_backward_in_another_thread_and_in_two_at_once():
    f, x = Counted(smooth), leaf()
    y = ng.sum(checkpoint(f, x))
    found = []

    def run():
        found.append(ng.autograd.grad(y, x, retain_graph=True)[0])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert f.calls == 5
    for g in found:
        np.testing.assert_allclose(g.numpy(), smooth_slope(A), rtol=1e-14)


def test_called_in_many_threads():
    grads = {}

    def run(k):
        x = leaf(A * k)
        ng.sum(checkpoint(smooth, x)).backward()
        grads[k] = x.grad.numpy()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, g in grads.items():
        np.testing.assert_allclose(g, smooth_slope(A * k), rtol=1e-13)


def test_anomaly_mode():
    x = leaf(0.0)
    with ng.autograd.set_detect_anomaly(True):
        y = checkpoint(lambda x: ng.sqrt(x) * 0.0, x)
        with (
            pytest.warns(UserWarning, match="in test_anomaly_mode"),
            pytest.raises(RuntimeError, match="SqrtBackward"),
        ):
            y.backward()


def test_forward_mode_calls_the_function():
    f = Counted(smooth)
    fwAD = ng.autograd.forward_ad
    with fwAD.dual_level():
        x = fwAD.make_dual(ng.tensor(A), ng.ones(3))
        tangent = fwAD.unpack_dual(checkpoint(f, x)).tangent
    np.testing.assert_allclose(tangent.numpy(), smooth_slope(A), rtol=1e-14)
    assert f.calls == 1


def test_saved_attributes():
    y = checkpoint(ng.exp, leaf())
    np.testing.assert_allclose(y.grad_fn._saved_result.numpy(force=True), np.exp(A), rtol=1e-15)


# ---------------------------------------------------------------------------------- segments


@pytest.mark.parametrize("segments", [1, 2, 3, 7])
def test_sequential(segments):
    functions = [Counted(f) for f in (ng.sin, ng.exp, ng.tanh, ng.sqrt, ng.cos, ng.exp, ng.sin)]
    x, z = leaf(), leaf()
    ng.sum(checkpoint_sequential(functions, segments, x)).backward()
    again = 7 // segments * (segments - 1)
    assert [f.calls for f in functions] == [2] * again + [1] * (7 - again)
    y = z
    for f in functions:
        y = f(y)
    ng.sum(y).backward()
    np.testing.assert_array_equal(x.grad.numpy(), z.grad.numpy())


@pytest.mark.parametrize("segments", [0, 3, -1])
def test_sequential_refuses_numbers_of_segments(segments):
    with pytest.raises(ng.NumgradValueError, match=f"segments={segments} for 2 functions"):
        checkpoint_sequential([ng.sin, ng.sin], segments, leaf())


# ------------------------------------------------------------------------------------ memory


N = 10_000
ARRAY = N * 8


def steps(x):
    for _ in range(10):
        x = ng.sin(x)
    return x


def peak_of(run):
    """Peak memory of ``run(x)`` with a gradient, in arrays."""
    x = ng.tensor(np.linspace(0, 1, N), requires_grad=True)
    run(x).backward()  # compiles, and makes x.grad
    gc.collect()
    tracemalloc.start()
    try:
        run(x).backward()
        return tracemalloc.get_traced_memory()[1] / ARRAY
    finally:
        tracemalloc.stop()


def chained(call):
    def run(x):
        for _ in range(10):
            x = call(steps, x)
        return ng.sum(x)

    return run


def test_peak_memory_of_ten_segments():
    plain = peak_of(chained(lambda f, x: f(x)))
    segments = peak_of(chained(checkpoint))
    assert plain > 99
    # 9 arguments between segments, 10 values of one of them, the result, gradients
    assert segments < 25


def test_peak_memory_of_nested_segments():
    def outer(x):
        for _ in range(3):
            x = checkpoint(steps, x)
        return x

    def run(x):
        for _ in range(3):
            x = checkpoint(outer, x)
        return ng.sum(x)

    assert peak_of(run) < 2 + 3 + 10 + 5


def test_nothing_stays_alive():
    gc.disable()
    try:
        x = leaf()
        kept = []

        def f(x):
            h = ng.sin(x)
            kept.append(ref(h))
            return ng.exp(h)

        y = checkpoint(f, x)
        assert kept[0]() is None
        node = ref(y.grad_fn)
        ng.sum(y).backward(retain_graph=True)
        del y
        assert node() is None
        assert all(h() is None for h in kept)
    finally:
        gc.enable()
