"""Grad modes: promises 64 to 69 of SEMANTICS.md."""

import asyncio

import pytest

import numgrad as ng

MODES = {"no_grad": False, "enable_grad": True, "inference_mode": False}


def leaf(lib):
    return lib.tensor([1.0, 2.0], requires_grad=True)


@pytest.mark.parametrize("name", MODES)
def test_modes_are_contexts_and_decorators(lib, name):
    """Promise 64."""
    mode, expected = getattr(lib, name), MODES[name]

    @mode()
    def called():
        """What it does."""
        return lib.is_grad_enabled()

    @mode
    def bare():
        return lib.is_grad_enabled()

    with lib.set_grad_enabled(not expected):
        with mode():
            assert lib.is_grad_enabled() == expected
        assert called() == expected
        assert bare() == expected
        assert lib.is_grad_enabled() != expected
    assert (called.__name__, called.__doc__) == ("called", "What it does.")


@pytest.mark.parametrize("name", MODES)
def test_an_object_may_be_entered_again(name):
    """Promise 64."""
    mode = getattr(ng, name)()
    with mode, mode:
        assert ng.is_grad_enabled() == MODES[name]
    assert ng.is_grad_enabled()


@pytest.mark.parametrize("name", MODES)
def test_errors_restore_the_mode(lib, name):
    """Promise 64."""
    with lib.set_grad_enabled(not MODES[name]):
        with pytest.raises(KeyError), getattr(lib, name)():
            raise KeyError
        assert lib.is_grad_enabled() != MODES[name]


def test_decorating_a_class_warns(lib):
    """Promise 64."""
    with pytest.warns(FutureWarning, match="class"):

        @lib.no_grad()
        class Made:
            def __init__(self):
                self.recording = lib.is_grad_enabled()

    assert not Made().recording


def test_inference_mode_can_be_turned_off(lib):
    """Promise 64."""
    with lib.inference_mode():
        assert lib.is_inference_mode_enabled()
        with lib.inference_mode(False):
            assert not lib.is_inference_mode_enabled()
            assert (leaf(lib) * 2).requires_grad
    assert not lib.is_inference_mode_enabled()


def test_generators_hold_the_mode_only_while_running(lib):
    """Promise 65."""
    seen = []

    @lib.no_grad()
    def generator():
        try:
            seen.append((yield lib.is_grad_enabled()))
            try:
                yield lib.is_grad_enabled()
            except KeyError:
                yield lib.is_grad_enabled()
        finally:
            seen.append(lib.is_grad_enabled())

    running = generator()
    for resume in (lambda: next(running), lambda: running.send("sent"),
                   lambda: running.throw(KeyError())):  # fmt: skip
        assert resume() is False
        assert lib.is_grad_enabled()
    running.close()
    assert seen == ["sent", False]
    assert lib.is_grad_enabled()


def test_generators_return_and_raise(lib):
    """Promise 65."""

    @lib.no_grad()
    def returning():
        yield 1
        return 2

    @lib.no_grad()
    def failing():
        yield 1
        raise KeyError("mine")

    def outer():
        return (yield from returning())

    running = outer()
    next(running)
    with pytest.raises(StopIteration) as stop:
        next(running)
    assert stop.value.value == 2
    with pytest.raises(KeyError, match="mine"):
        list(failing())
    assert lib.is_grad_enabled()


def test_generators_let_the_user_change_the_mode_in_between(lib):
    """Promise 65."""

    @lib.no_grad()
    def generator():
        while True:
            yield lib.is_grad_enabled()

    running = generator()
    next(running)
    with lib.no_grad():
        next(running)
        assert not lib.is_grad_enabled()
    assert lib.is_grad_enabled()
    running.close()


def test_set_grad_enabled_acts_at_once_and_as_a_context(lib):
    """Promise 66."""
    lib.set_grad_enabled(False)
    assert not lib.is_grad_enabled()
    lib.set_grad_enabled(True)
    with lib.set_grad_enabled(False):
        assert not lib.is_grad_enabled()
    assert lib.is_grad_enabled()


@pytest.mark.parametrize("mode", [True, False])
def test_set_grad_enabled_as_a_decorator_acts_inside_only(lib, mode):
    """Promise 66."""
    with lib.set_grad_enabled(not mode):

        @lib.set_grad_enabled(mode)
        def function():
            return lib.is_grad_enabled()

        assert lib.is_grad_enabled() != mode
        assert function() == mode
        assert lib.is_grad_enabled() != mode


def test_leaves_can_be_made_where_nothing_is_recorded(lib):
    """Promise 67."""
    with lib.no_grad():
        x = lib.tensor([1.0], requires_grad=True)
        assert x.requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_inference_tensors_cannot_be_saved(lib, raises):
    """Promise 68."""
    x = leaf(lib)
    with lib.inference_mode():
        made = lib.ones(2) * 2
    assert made.is_inference()
    with raises(RuntimeError, "inference mode.*clone"):
        x * made
    assert (x * made.clone()).requires_grad
    assert (x + made).requires_grad  # which saves nothing


def test_inference_tensors_cannot_be_changed_outside(lib, raises):
    """Promise 68."""
    with lib.inference_mode():
        made = lib.ones(2) * 2
        made.add_(1)
    with raises(RuntimeError, "requires_grad.*inference mode"):
        made.requires_grad = True
    with raises(RuntimeError, "_version.*inference mode"):
        _ = made._version
    assert (made * 2).tolist() == [6.0, 6.0]
    with raises(RuntimeError, "add_.*inference mode"):
        made.add_(1)
    assert lib is not ng or made.tolist() == [3.0, 3.0]  # PyTorch complains when it has added


def test_views_of_normal_tensors_stay_normal_in_inference_mode(lib):
    """Promise 68."""
    x = lib.ones(2)
    with lib.inference_mode():
        view, made = x[:1], x * 2
    assert not view.is_inference()
    assert made.is_inference()
    assert made[:1].is_inference()
    view.mul_(3)
    assert x.tolist() == [3.0, 1.0]
    assert x._version == 1


def test_writes_in_inference_mode_are_counted(lib, raises):
    """Promise 68."""
    x, w = lib.ones(2), leaf(lib)
    y = (w * x).sum()
    with lib.inference_mode():
        x.mul_(2)
    with raises(RuntimeError, "version 0.*version 1"):
        y.backward()


@pytest.mark.filterwarnings("ignore:.*create_graph:UserWarning")
@pytest.mark.parametrize("create_graph", [True, False])
@pytest.mark.parametrize("outside", [True, False])
def test_a_backward_records_only_with_create_graph(lib, create_graph, outside):
    """Promise 69."""
    modes, x = [], leaf(lib)
    y = x * x
    y.register_hook(lambda _: modes.append(lib.is_grad_enabled()))
    with lib.set_grad_enabled(outside):
        y.backward(lib.ones(2), create_graph=create_graph)
        assert lib.is_grad_enabled() == outside
    assert modes == [create_graph]
    assert x.grad.requires_grad == create_graph


def test_coroutines_share_the_mode_of_their_thread():
    """As in PyTorch: a mode belongs to the thread, so no ``await`` inside of one."""

    async def main():
        with ng.no_grad():
            await asyncio.sleep(0)
            return ng.is_grad_enabled()

    assert not asyncio.run(main())
    assert ng.is_grad_enabled()
