"""Hooks: promises 70 to 83 of SEMANTICS.md, without 82, which is about modules."""

import functools
import gc
import weakref

import pytest

import numgrad as ng


def leaf(lib, values=(1.0, 2.0)):
    return lib.tensor(list(values), requires_grad=True)


def noting(order, name):
    """A hook of any kind that notes its call and changes nothing."""
    return lambda *_: order.append(name)


def accumulator(x):
    return x.reshape(1, 2).grad_fn.next_functions[0][0]


# ---------------------------------------------------------------------------------------- order


def hooked_leaf(lib, order):
    """A leaf with every kind of hook, registered in reverse order."""
    x = leaf(lib)
    node = accumulator(x)
    node.register_hook(noting(order, "post"))
    x.register_post_accumulate_grad_hook(
        lambda t: order.append(("accumulated", None if t.grad is None else t.grad.tolist()))
    )
    node.register_prehook(noting(order, "pre"))
    x.register_hook(noting(order, "tensor"))
    return x, node


def test_hooks_of_a_leaf_run_in_order(lib):
    """Promise 70."""
    order = []
    x, _node = hooked_leaf(lib, order)
    (x * 3).sum().backward()
    assert order == ["tensor", "pre", ("accumulated", [3.0, 3.0]), "post"]


def test_a_pre_hook_of_the_accumulator_replaces_the_gradient(lib):
    """Promise 70."""
    x, seen = leaf(lib), []
    node = accumulator(x)
    node.register_prehook(lambda grads: (grads[0] * 10,))
    node.register_hook(lambda found, grads: seen.append((found, grads[0].tolist())))
    (x * 3).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]
    assert seen == [((), [30.0, 30.0])]


def test_hooks_of_a_result_run_in_order(lib):
    """Promise 71."""
    order = []
    x = leaf(lib)
    y = x * 3
    y.grad_fn.register_hook(noting(order, "post"))
    y.grad_fn.register_prehook(noting(order, "pre"))
    y.register_hook(noting(order, "first"))
    y.register_hook(noting(order, "second"))
    x.register_hook(noting(order, "x"))
    y.sum().backward()
    assert order == ["first", "second", "pre", "post", "x"]


def test_retain_grad_sees_what_all_tensor_hooks_made(lib):
    """Promise 71."""
    x = leaf(lib)
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 100,))
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    assert y.grad.tolist() == [10.0, 10.0]
    assert x.grad.tolist() == [3000.0, 3000.0]


@pytest.mark.parametrize("tensor_first", [True, False])
def test_tensor_hooks_run_before_node_hooks(lib, tensor_first):
    """Promise 72."""
    order = []
    y = leaf(lib) * 3
    registrations = [
        lambda: y.register_hook(noting(order, "tensor")),
        lambda: y.grad_fn.register_prehook(noting(order, "pre")),
    ]
    for register in registrations if tensor_first else reversed(registrations):
        register()
    y.sum().backward()
    assert order == ["tensor", "pre"]


def test_grad_runs_only_tensor_hooks_of_its_inputs(lib):
    """Promise 73."""
    order = []
    x, _node = hooked_leaf(lib, order)
    y = x * 3
    y.grad_fn.register_prehook(noting(order, "node"))
    lib.autograd.grad(y.sum(), x)
    assert order == ["node", "tensor"]
    order.clear()
    (x * 3).sum().backward(inputs=[x])
    assert order == ["tensor", "pre", ("accumulated", [3.0, 3.0]), "post"]


def test_grad_runs_only_tensor_hooks_of_a_result_too(lib):
    """Promise 73."""
    order = []
    x = leaf(lib)
    y = x * 3
    y.register_hook(noting(order, "tensor"))
    y.grad_fn.register_prehook(noting(order, "pre"))
    y.grad_fn.register_hook(noting(order, "post"))
    lib.autograd.grad(y.sum(), y)
    assert order == ["tensor"]


def scaled_by_hooks(lib):
    x = leaf(lib)
    y = x * 3
    for tensor, factor in ((x, 2), (y, 5)):
        tensor.register_hook(lambda g, factor=factor: g * factor)
    return x, y


@pytest.mark.parametrize("create_graph", [True, False])
def test_grad_returns_what_tensor_hooks_made_of_it(lib, create_graph):
    """Promise 73."""
    for position, expected in enumerate(([30.0, 30.0], [5.0, 5.0])):
        tensors = scaled_by_hooks(lib)
        asked = tensors[position]
        (g,) = lib.autograd.grad(tensors[1].sum(), asked, create_graph=create_graph)
        assert g.tolist() == expected


@pytest.mark.parametrize("create_graph", [True, False])
def test_grad_returns_that_at_a_result_on_the_way_to_another_input(create_graph):
    """Promise 73."""
    x, y = scaled_by_hooks(ng)  # PyTorch returns for y what came before its hooks, in this case
    gx, gy = ng.autograd.grad(y.sum(), [x, y], create_graph=create_graph)
    assert gx.tolist() == [30.0, 30.0]
    assert gy.tolist() == [5.0, 5.0]


# --------------------------------------------------------------------------------- tensor hooks


@pytest.mark.parametrize(
    "method", ["register_hook", "register_post_accumulate_grad_hook", "retain_grad"]
)
def test_a_tensor_without_a_gradient_takes_no_hook(lib, raises, method):
    """Promise 74."""
    arguments = () if method == "retain_grad" else (print,)
    with raises(RuntimeError, f"{method}.*does not require grad"):
        getattr(lib.ones(2), method)(*arguments)


def test_a_tensor_hook_may_replace_the_gradient(lib):
    """Promise 75."""
    x = leaf(lib)
    y = x * 3
    y.register_hook(lambda g: None)
    y.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def some_text(_):
    return "text"


def shorter(g):
    return g[:1]


def single_precision(g):
    return g.astype(ng.float32) if isinstance(g, ng.Tensor) else g.float()


@pytest.mark.parametrize("on_leaf", [True, False])
@pytest.mark.parametrize(
    ("hook", "error", "words"),
    [
        (some_text, TypeError, "some_text.*str"),
        (shorter, RuntimeError, r"shorter.*\(1,\).*\(2,\)"),
        (single_precision, RuntimeError, "single_precision.*float32.*float64"),
    ],
)
def test_a_tensor_hook_must_return_a_gradient_that_fits(lib, raises, on_leaf, hook, error, words):
    """Promise 75."""
    x = leaf(lib)
    y = x * 3
    (x if on_leaf else y).register_hook(hook)
    with raises(error, words):
        y.sum().backward()
    assert x.grad is None


def test_node_hooks_see_and_replace_gradients(lib):
    """Promise 76."""
    x, seen = leaf(lib), []
    y = x * lib.tensor([3.0, 4.0])

    def post(grad_inputs, grad_outputs):
        seen.append(([g if g is None else g.tolist() for g in grad_inputs],
                     [g.tolist() for g in grad_outputs]))  # fmt: skip
        return (grad_inputs[0] * 10, None)

    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(post)
    y.sum().backward()
    assert seen == [([[6.0, 8.0], None], [[2.0, 2.0]])]
    assert x.grad.tolist() == [60.0, 80.0]


@pytest.mark.parametrize("register", ["register_prehook", "register_hook"])
@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        (lambda grads: (*grads, None), RuntimeError, "returned . gradients in place of ."),
        (lambda grads: list(grads), TypeError, "list"),
        (lambda grads: grads[0], TypeError, "Tensor"),
        (lambda grads: "text", TypeError, "str"),
    ],
    ids=["length", "list", "tensor", "text"],
)
def test_node_hooks_must_return_a_tuple_that_fits(lib, raises, register, result, error, words):
    """Promise 76."""
    x = leaf(lib)
    y = x * 3
    getattr(y.grad_fn, register)(lambda grads, *_: result(grads))
    with raises(error, words):
        y.sum().backward()
    assert x.grad is None
    accumulator(x).register_prehook(result)
    with raises(error, words):
        (x * 3).sum().backward()
    assert x.grad is None


def test_hooks_of_a_node_with_several_outputs(lib):
    """Promise 76."""
    x, seen = leaf(lib, [1.0, 2.0, 3.0, 4.0]), []
    if lib is ng:
        first, second = ng.split(x, 2)
    else:
        first, second = lib.split(x, 2)
    assert first.grad_fn is second.grad_fn
    first.register_hook(lambda g: g * 10)
    second.register_hook(lambda g: g * 100)
    first.grad_fn.register_prehook(lambda grads: seen.extend(g.tolist() for g in grads))
    (first.sum() + second.sum()).backward()
    assert seen == [[10.0, 10.0], [100.0, 100.0]]
    assert x.grad.tolist() == [10.0, 10.0, 100.0, 100.0]


# ------------------------------------------------------------------------ after the accumulation


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_of_a_node_see_None_for_outputs_that_are_not_used(lib, create_graph):
    """Promise 76."""
    x, seen = leaf(lib), []
    (first, _) = ng.unstack(x) if lib is ng else lib.unbind(x)
    first.grad_fn.register_hook(lambda found, grads: seen.append((found[0].tolist(), grads[1])))
    lib.autograd.grad(first * 3.0, x, create_graph=create_graph)
    assert seen == [([3.0, 0.0], None)]


def test_post_accumulate_hooks_see_the_leaf(lib, raises):
    """Promise 77."""
    x = leaf(lib)
    with raises(RuntimeError, "leaves only.*MultiplyBackward"):
        (x * 2).register_post_accumulate_grad_hook(print)

    def step(t):
        with lib.no_grad():
            t -= 0.5 * t.grad
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    for _ in range(2):
        (x * 2).sum().backward()
        assert x.grad is None
    assert x.tolist() == [-1.0, 0.0]


def test_post_accumulate_hooks_return_nothing():
    """Promise 77."""
    x = leaf(ng)
    x.register_post_accumulate_grad_hook(lambda t: t)
    with pytest.raises(RuntimeError, match=r"lambda.*returned Tensor.*None"):
        (x * 2).sum().backward()


def test_leaves_are_accumulated_although_a_later_hook_fails(lib):
    """Promise 77."""
    done, failing = leaf(lib), leaf(lib)

    def fail(_):
        raise KeyError

    done.register_post_accumulate_grad_hook(lambda _: None)
    failing.register_hook(fail)
    with pytest.raises(KeyError):
        ((failing * 2) * done).sum().backward()
    assert done.grad.tolist() == [2.0, 4.0]
    assert failing.grad is None


# --------------------------------------------------------------------------------------- handles


def test_handles_remove_hooks(lib):
    """Promise 78."""
    x, calls = leaf(lib), []
    handle = x.register_hook(calls.append)
    with x.register_hook(calls.append):
        x.sum().backward()
    assert len(calls) == 2
    x.sum().backward()
    assert len(calls) == 3
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert len(calls) == 3


def test_handles_remove_hooks_of_nodes(lib):
    """Promise 78."""
    order = []
    y = leaf(lib) * 3
    handles = [
        y.grad_fn.register_prehook(noting(order, "pre")),
        y.grad_fn.register_hook(noting(order, "post")),
    ]
    y.sum().backward(retain_graph=True)
    for handle in handles:
        handle.remove()
    y.sum().backward()
    assert order == ["pre", "post"]


def test_hooks_can_be_removed_during_a_backward(lib):
    """Promise 78."""
    x, calls, handles = leaf(lib), [], []

    def once(_):
        calls.append("once")
        handles[0].remove()

    handles.append(x.register_hook(once))
    x.register_hook(noting(calls, "always"))
    for _ in range(2):
        x.sum().backward()
    assert calls == ["once", "always", "always"]


def test_hooks_need_no_name(lib):
    """Promise 78."""

    class Doubling:
        def __call__(self, g):
            return g * 2

    x = leaf(lib)
    x.register_hook(Doubling())
    x.register_hook(functools.partial(lambda factor, g: g * factor, 5))
    x.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]


@pytest.mark.parametrize("method", ["register_hook", "register_post_accumulate_grad_hook"])
def test_a_hook_is_a_function(method):
    """Promise 78."""
    with pytest.raises(TypeError, match=f"{method}.*int"):
        getattr(leaf(ng), method)(3)


# ------------------------------------------------------------------------------------ retain_grad


def test_retain_grad_keeps_the_gradient(lib):
    """Promise 79."""
    x = leaf(lib)
    x.retain_grad()
    assert not x.retains_grad
    y = x * 3
    for _ in range(2):
        y.retain_grad()
    assert y.retains_grad
    assert y.grad is None
    for _ in range(2):
        (y * y).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [12.0, 24.0]


@pytest.mark.parametrize("through_a_view", [True, False])
def test_retain_grad_follows_an_in_place_operation(lib, through_a_view):
    """Promise 79."""
    x = leaf(lib)
    y = x * 3
    y.retain_grad()
    (y[:] if through_a_view else y).mul_(2)
    assert y.retains_grad
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]
    assert x.grad.tolist() == [30.0, 30.0]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.filterwarnings("ignore:.*create_graph:UserWarning")
def test_a_retained_input_of_backward_gets_one_gradient(lib, create_graph):
    """Promise 79."""
    for hooked in (False, True):
        x = leaf(lib)
        y = x * 2
        y.retain_grad()
        if hooked:
            y.register_hook(lambda g: g * 10)
        z = (y * y).sum()
        z.backward(inputs=[y, x], create_graph=create_graph, retain_graph=True)
        z.backward(inputs=[y])
        gradient = y.grad.tolist()
        if lib is ng:  # PyTorch runs hooks of inputs that are passed on the way less consistently
            factor = 10.0 if hooked else 1.0
            assert gradient == [8.0 * factor, 16.0 * factor]
            assert x.grad.tolist() == [8.0 * factor, 16.0 * factor]
        elif not hooked:
            assert gradient == [8.0, 16.0]


def test_retain_grad_does_not_keep_the_tensor_alive():
    """Promise 79."""
    x = leaf(ng)
    y = x * 3
    y.retain_grad()
    gone = weakref.ref(y)
    z = (y + 1).sum()
    del y
    assert gone() is None
    z.backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_retained_gradients_have_a_graph_with_create_graph(lib):
    """Promise 79."""
    x = leaf(lib)
    y = x * 3
    y.retain_grad()
    lib.autograd.grad((y * y).sum(), x, create_graph=True)
    assert y.grad.requires_grad
    assert y.grad.tolist() == [6.0, 12.0]


def test_hooks_stay_with_the_old_value(lib):
    """Promise 80."""
    x = leaf(lib)
    y = x.clone()
    y.register_hook(lambda g: g * 2)
    y.mul_(2)
    y.register_hook(lambda g: g * 2)
    y.sum().backward()
    assert x.grad.tolist() == [8.0, 8.0]


def test_hooks_before_and_after_a_write_each_see_theirs(lib):
    """Promise 80."""
    seen = []
    x = leaf(lib)
    y = x.clone()
    y.register_hook(lambda g: seen.append(("old", g.tolist())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("new", g.tolist())))
    y.sum().backward()
    assert seen == [("new", [1.0, 1.0]), ("old", [3.0, 3.0])]


# ----------------------------------------------------------------------------- several tensors


def multi(lib, tensors, fn, **options):
    return lib.autograd.graph.register_multi_grad_hook(tensors, fn, **options)


def values(gradients):
    return [None if g is None else g.tolist() for g in gradients]


def test_multi_grad_hook_waits_for_all(lib):
    """Promise 81."""
    a, b, absent = leaf(lib), leaf(lib), leaf(lib)
    middle, calls = a * 2, []
    handle = multi(lib, [a, absent, middle, b], lambda gs: calls.append(values(gs)))
    for _ in range(2):
        (middle * b).sum().backward(retain_graph=True)
    expected = [[2.0, 4.0], None, [1.0, 2.0], [2.0, 4.0]]
    assert calls == [expected, expected]
    handle.remove()
    (middle * b).sum().backward()
    assert len(calls) == 2


def test_multi_grad_hook_runs_at_the_first_of_any(lib):
    """Promise 81."""
    a, b, calls = leaf(lib), leaf(lib), []
    multi(lib, [a, b], lambda g: calls.append(g.tolist()), mode="any")
    for _ in range(2):
        (a * 2 + b * 3).sum().backward()
    assert calls == [[3.0, 3.0]] * 2


def test_multi_grad_hook_counts_the_gradients_a_call_asks_for():
    """Promise 81."""
    a, b, calls = leaf(ng), leaf(ng), []
    multi(ng, [a, b], lambda gs: calls.append(values(gs)))
    ng.autograd.grad((a * 2 + b * 3).sum(), a)
    assert calls == [[[2.0, 2.0], None]]


def test_multi_grad_hook_has_two_modes(lib, raises):
    """Promise 81."""
    with raises(ValueError, "'all' or 'any', got 'some'"):
        multi(lib, [leaf(lib)], print, mode="some")


def test_multi_grad_hook_refuses_tensors_without_a_gradient():
    """Promise 81."""
    with pytest.raises(RuntimeError, match="does not require grad"):
        multi(ng, [leaf(ng), ng.ones(2)], print)


def test_multi_grad_hook_counts_nested_backwards_apart(lib):
    """Promise 81."""
    a, calls = leaf(lib), []
    with lib.enable_grad():
        other = (a * 5).sum()
    y = a * 2
    multi(lib, [a], lambda gs: calls.append(values(gs)))
    y.register_hook(lambda _: other.backward())
    y.sum().backward()
    assert calls == [[[5.0, 5.0]], [[2.0, 2.0]]]


# ------------------------------------------------------------------------------------- lifetimes


@pytest.mark.parametrize("register", ["register_hook", "register_prehook", "tensor"])
def test_hooks_may_hold_their_node(register):
    """Promise 83."""
    x = leaf(ng)
    y = x * 3
    node = y.grad_fn
    gone = weakref.ref(node)
    if register == "tensor":
        y.register_hook(lambda g, held=y: None)
    else:
        getattr(node, register)(lambda *_, held=node: None)
    del node, y
    gc.collect()
    assert gone() is None


@pytest.mark.filterwarnings("ignore:.*create_graph:UserWarning")
def test_the_cycle_through_grad_is_collected():
    """Promise 83."""
    x = leaf(ng)
    (x * x).sum().backward(create_graph=True)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_hooks_see_tensors_whatever_the_walk(lib):
    x, kinds = leaf(lib), []
    for tensor in (x, y := x * 3):
        tensor.register_hook(lambda g: kinds.append(type(g)))
    y.grad_fn.register_prehook(lambda gs: kinds.append(type(gs[0])))
    lib.autograd.grad(y.sum(), x, retain_graph=True)
    lib.autograd.grad(y.sum(), x, create_graph=True)
    assert set(kinds) == {lib.Tensor}
    assert len(kinds) == 6


def test_a_hook_may_return_what_requires_grad(lib):
    x, factor = leaf(lib), leaf(lib)
    y = x * 3
    y.register_hook(lambda g: g * factor)
    (gx,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (gf,) = lib.autograd.grad(gx.sum(), factor)
    assert gx.tolist() == [3.0, 6.0]
    assert gf.tolist() == [3.0, 3.0]


def test_a_hook_that_returns_its_argument_shares_nothing(lib):
    x, kept = leaf(lib), []
    x.register_hook(lambda g: kept.append(g) or g)
    x.sum().backward()
    x.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert [g.tolist() for g in kept] == [[1.0, 1.0]] * 2


@pytest.mark.parametrize("create_graph", [True, False])
def test_a_leaf_hook_runs_although_a_path_carried_nothing(lib, create_graph):
    x, calls = leaf(lib), []
    x.register_hook(lambda g: calls.append(g.tolist()))
    y = x * 2 * 5
    y.grad_fn.register_hook(lambda found, _: (None, *found[1:]))
    (gx,) = lib.autograd.grad((x * 3 + y).sum(), x, create_graph=create_graph)
    assert gx.tolist() == [3.0, 3.0]
    assert calls == [[3.0, 3.0]]
