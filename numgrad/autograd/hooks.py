"""Functions a user hangs on tensors and nodes, which the engine calls during a backward.

Note [Order of hooks]
---------------------
When all gradients of a value have arrived: the tensor's hooks in the order of their registration,
then the capture of a retained gradient, then the pre-hooks of its node, the node itself, its
post-hooks. At a leaf: the tensor's hooks, the accumulator's pre-hooks, accumulation, the
post-accumulate-grad hooks, the accumulator's post-hooks. Hooks of the result of an operation hang
on its node, so after an in-place operation they stay with the old value; those of a leaf and of
its accumulator hang on the leaf.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Self
from weakref import WeakKeyDictionary, ref

from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.autograd.variable import Tensor, extra
from numgrad.core.interpreter import ThreadSettings, state
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError

_numbers = count().__next__


class RemovableHandle:
    """A handle of a registered hook: ``remove()`` takes the hook away again.

    Removing twice does nothing. As a context manager it removes the hook at the end of the block.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> with x.register_hook(lambda g: g * 10):
    ...     x.sum().backward()
    >>> x.grad
    tensor([10., 10.])
    """

    __slots__ = ("_hooks", "id")

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.id = _numbers()
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook away, if it is there."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def check_hook(operation: str, hook: Any) -> None:
    """Raise for a hook that cannot be called."""
    if not callable(hook):
        raise NumgradTypeError(f"{operation}: a hook is a function, got {type(hook).__name__}")


def register(
    hooks: dict[int, Any], hook: Any, stored: Any = None, prepend: bool = False
) -> RemovableHandle:
    """Enter a hook, or what is kept of it, into a table: behind those that are there, or before.

    Errors name the function that calls this one.
    """
    check_hook(sys._getframe(1).f_code.co_name, hook)
    others = dict(hooks) if prepend else {}
    for key in others:
        del hooks[key]
    handle = RemovableHandle(hooks, hook if stored is None else stored)
    hooks.update(others)
    return handle


class Hooks:
    """The hooks of a node or a leaf, each kind by handle number in order of registration."""

    __slots__ = ("post", "pre", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, dict[int, Callable[..., Any]]] = {}  # by output
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}

    def on_tensor(self, output: int, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook on the gradient of an output."""
        return RemovableHandle(self.tensor.setdefault(output, {}), hook)


class NodeExtras(Hooks):
    """The side object of a node that has hooks, retained gradients, metadata or a line."""

    __slots__ = ("metadata", "parent", "retained", "trace")

    def __init__(self) -> None:
        super().__init__()
        self.retained: dict[int, ref[Tensor]] = {}  # by output
        self.metadata: dict[Any, Any] = {}
        self.trace: str | None = None
        self.parent: Any = None  # the node whose backward recorded this one, in anomaly mode


class LeafHooks(Hooks):
    """The hooks of a leaf and of its accumulator."""

    __slots__ = ("post_accumulate",)

    def __init__(self) -> None:
        super().__init__()
        self.post_accumulate: dict[int, Callable[..., Any]] = {}

    def any(self) -> bool:
        """Whether there are hooks, and not only tables of hooks that were removed."""
        tensor = self.tensor and self.tensor[0]
        return bool(tensor or self.pre or self.post_accumulate or self.post)

    @property
    def after_accumulation(self) -> bool:
        """Whether a hook wants to see the accumulated gradient."""
        return bool(self.post_accumulate or self.post)


def node_extras(node: Any) -> NodeExtras:
    """The side object of a node, made now if there is none."""
    extras = node.extras
    if extras is None:
        extras = node.extras = NodeExtras()
    return extras


def leaf_hooks(leaf: Tensor) -> LeafHooks:
    """The hooks of a leaf, made now if there are none."""
    side = extra(leaf)
    if side.hooks is None:
        side.hooks = LeafHooks()
    return side.hooks


def has_hooks(leaf: Tensor) -> bool:
    """Whether a backward runs hooks at a leaf."""
    side = leaf._extra
    return side is not None and side.hooks is not None and side.hooks.any()


# ------------------------------------------------------------------------------- registration


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call ``hook`` with the gradient of this tensor whenever a backward has computed it.

    The hook may return another gradient of the same shape and dtype, which takes its place, but
    must not change its argument. On a leaf it runs before accumulation.

    Returns
    -------
    RemovableHandle
        Its ``remove()`` takes the hook away.

    Raises
    ------
    NumgradRuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(3.0, requires_grad=True)
    >>> handle = x.register_hook(lambda g: -g)
    >>> (x * x).backward()
    >>> x.grad
    tensor(-6.)
    """
    check_hook("register_hook", hook)
    if not tensor.requires_grad and state.ground.follows(tensor):
        handle = RemovableHandle({}, hook)
    else:
        _check_requires_grad("register_hook", tensor)
        node = tensor.grad_fn
        if node is None:
            handle = leaf_hooks(tensor).on_tensor(0, hook)
        else:
            handle = node_extras(node).on_tensor(tensor.output_nr, hook)
    if state.ground.deferred:
        state.ground.hooked(tensor, handle)
    return handle


def register_post_accumulate_grad_hook(
    tensor: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Call ``hook`` with this leaf whenever a backward has added to its ``.grad``.

    Raises
    ------
    NumgradRuntimeError
        If the tensor does not require grad or is the result of an operation.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(3.0, requires_grad=True)
    >>> def step(leaf):
    ...     with ng.no_grad():
    ...         leaf -= 0.1 * leaf.grad
    >>> handle = x.register_post_accumulate_grad_hook(step)
    >>> (x * x).backward()
    >>> x
    tensor(2.4, requires_grad=True)
    """
    check_hook("register_post_accumulate_grad_hook", hook)
    _check_requires_grad("register_post_accumulate_grad_hook", tensor)
    if tensor.grad_fn is not None:
        raise NumgradRuntimeError(
            "register_post_accumulate_grad_hook: gradients are accumulated into leaves only, and "
            f"this tensor is the result of {tensor.grad_fn.name()}; use register_hook"
        )
    return RemovableHandle(leaf_hooks(tensor).post_accumulate, hook)


def retain_grad(tensor: Tensor) -> None:
    """Keep the gradient of a result in its ``.grad``, as a leaf does; on leaves nothing changes.

    Raises
    ------
    NumgradRuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(3.0, requires_grad=True)
    >>> y = x * 2
    >>> y.retain_grad()
    >>> (y * y).backward()
    >>> y.grad
    tensor(12.)
    """
    _check_requires_grad("retain_grad", tensor)
    node = tensor.grad_fn
    if node is None or retains_grad(tensor):
        return
    extra(tensor).retains_grad = True
    node_extras(node).retained[tensor.output_nr] = ref(tensor)


def retains_grad(tensor: Tensor) -> bool:
    """Whether ``retain_grad`` made a result keep its gradient."""
    side = tensor._extra
    return side is not None and side.retains_grad


def move_retained(tensor: Tensor, before: Any, output: int) -> None:
    """Let a retained gradient follow a tensor that an in-place operation gave a new node."""
    if retains_grad(tensor):
        if before is not None and before.extras is not None:
            before.extras.retained.pop(output, None)
        node_extras(tensor._grad_fn).retained[tensor.output_nr] = ref(tensor)


def _check_requires_grad(operation: str, tensor: Tensor) -> None:
    if not tensor.requires_grad:
        raise NumgradRuntimeError(
            f"{operation}: the tensor of shape {tensor._array.shape} does not require grad, so "
            "no backward ever computes its gradient; set requires_grad=True first"
        )


# ------------------------------------------------------------------------------------ calling


def user_code(recording: bool, task: Any) -> ThreadSettings:
    """Run a user's code from within a backward: its grad mode, and the depth of nesting.

    Modes that it enters end with it.
    """
    own = {"grad_enabled": recording, "depth": state.depth + 1, "task": task}
    return ThreadSettings(**(state.modes() | own))


def name_of(hook: Any) -> str:
    """How an error names a hook."""
    return getattr(hook, "__qualname__", None) or repr(hook)


def run_tensor_hooks(hooks: dict[int, Any], g: Tensor, recording: bool, task: Any) -> Tensor:
    """The gradient as the hooks of a tensor leave it."""
    for hook in list(hooks.values()):
        with user_code(recording, task):
            result = hook(g)
        if result is not None:
            g = _replaced("a tensor's hook", hook, result, g)
    return g


def _replaced(what: str, hook: Any, result: Any, g: Any) -> Any:
    if isinstance(result, RowSparseTensor):  # may stand for another one only
        result = result if isinstance(g, RowSparseTensor) else result.to_dense()
    elif not isinstance(result, Tensor):
        raise NumgradTypeError(
            f"{name_of(hook)}: {what} returned {type(result).__name__}; return a Tensor to replace "
            "the gradient, or None to keep it"
        )
    if g is not None and result.shape != g.shape:
        raise NumgradRuntimeError(
            f"{name_of(hook)}: {what} returned shape {result.shape} for a gradient of shape "
            f"{g.shape}; they must be equal"
        )
    if g is not None and result.dtype != g.dtype:
        raise NumgradRuntimeError(
            f"{name_of(hook)}: {what} returned dtype {result.dtype} for a gradient of dtype "
            f"{g.dtype}; convert it with astype"
        )
    return result


def run_node_hooks(
    what: str,
    hooks: dict[int, Any],
    recording: bool,
    task: Any,
    changing: list[Any],
    *context: tuple,
) -> list[Any]:
    """Gradients (Tensors or None) as pre-hooks or post-hooks of a node leave them.

    Each hook gets the tuple of gradients, which it may replace, then the ``context``.
    """
    for hook in list(hooks.values()):
        with user_code(recording, task):
            result = hook(tuple(changing), *context)
        if result is None:
            continue
        if not isinstance(result, tuple):
            raise NumgradTypeError(
                f"{name_of(hook)}: {what} returned {type(result).__name__}; return a tuple of "
                f"{len(changing)} gradients, or None to keep them"
            )
        if len(result) != len(changing):
            raise NumgradRuntimeError(
                f"{name_of(hook)}: {what} returned {len(result)} gradients in place of "
                f"{len(changing)}"
            )
        changing = [
            None if new is None else _replaced(what, hook, new, old)
            for new, old in zip(result, changing, strict=True)
        ]
    return changing


def run_post_accumulate(hooks: LeafHooks, leaf: Tensor, task: Any) -> None:
    """Show a leaf with its new gradient to those who asked."""
    for hook in list(hooks.post_accumulate.values()):
        with user_code(False, task):
            result = hook(leaf)
        if result is not None:
            raise NumgradRuntimeError(
                f"{name_of(hook)}: a post-accumulate-grad hook returned "
                f"{type(result).__name__}; it can only look at the leaf, return None"
            )


# ------------------------------------------------------------------------- at the end of a backward


def queue_callback(fn: Callable[[], Any]) -> None:
    """Call ``fn`` when the backward that is running is complete, its gradients accumulated.

    Hooks and backwards of Functions call this; callbacks run in the order of registration, and may
    register further ones. After a backward that fails they do not run.

    Raises
    ------
    NumgradRuntimeError
        If no backward is running in this thread.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> handle = y.register_hook(
    ...     lambda g: ng.autograd.graph.queue_callback(lambda: print("complete:", x.grad))
    ... )
    >>> y.backward()
    complete: tensor(6.)
    """
    check_hook("queue_callback", fn)
    state.ground.once(
        "queue_callback registers a function once, while the function is traced, and not at each "
        "call; call it in a backward outside of ng.jit"
    )
    if not state.depth:
        raise NumgradRuntimeError(
            "queue_callback: no backward is running in this thread; call it in a hook, or in the "
            "backward of a Function"
        )
    state.callbacks = (*state.callbacks, (state.depth, fn))


def run_callbacks() -> None:
    """Call what the backward that was called at this depth has queued."""
    level = state.depth + 1
    while True:
        index = next((k for k, (depth, _) in enumerate(state.callbacks) if depth >= level), None)
        if index is None:
            return
        _, fn = state.callbacks[index]
        state.callbacks = (*state.callbacks[:index], *state.callbacks[index + 1 :])
        with user_code(False, state.task):
            fn()


def drop_callbacks() -> None:
    """Forget what a backward that failed has queued."""
    state.callbacks = tuple([each for each in state.callbacks if each[0] <= state.depth])


# ----------------------------------------------------------------------- several tensors at once


class MultiGradHandle:
    """The hooks of ``register_multi_grad_hook``, removed together."""

    __slots__ = ("handles",)

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take the hook away, if it is there."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> MultiGradHandle:
    """Call ``fn`` once a backward for the gradients of several tensors.

    Parameters
    ----------
    tensors
        Tensors that require grad.
    fn
        With ``mode="all"`` called when the gradients of all tensors are there, with a list of
        them, None for those the backward does not reach; with ``"any"`` called with the first.

    Raises
    ------
    NumgradValueError
        If ``mode`` is neither.

    Examples
    --------
    >>> import numgrad as ng
    >>> a, b = (ng.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    >>> handle = ng.autograd.graph.register_multi_grad_hook([a, b], print)
    >>> (a * b).backward()
    [tensor(3.), tensor(2.)]
    """
    if mode not in ("all", "any"):
        raise NumgradValueError(f"register_multi_grad_hook: mode is 'all' or 'any', got {mode!r}")
    tensors = list(tensors)
    check_hook("register_multi_grad_hook", fn)
    for tensor in tensors:
        _check_requires_grad("register_multi_grad_hook", tensor)
    arrived: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
    places = [(t.grad_fn if t.grad_fn is not None else t, t.output_nr) for t in tensors]

    def arrive(position: int, g: Tensor) -> None:
        task = state.task
        grads = arrived.get(task)
        first = grads is None
        if grads is None:
            missing = sum(task.reaches(*edge) for edge in places)
            grads = arrived[task] = [missing, [None] * len(tensors)]
        grads[0] -= 1
        grads[1][position] = g
        if mode == "any":
            if first:
                fn(g)
        elif grads[0] == 0:
            fn(grads[1])

    def hook_of(position: int) -> Callable[[Tensor], None]:
        return lambda g: arrive(position, g)

    return MultiGradHandle(
        [register_hook(tensor, hook_of(position)) for position, tensor in enumerate(tensors)]
    )
