"""Hooks of Tensors in what is compiled.

Note [Hooks in graphs]
----------------------
The tape of a trace calls hooks, but a graph that is differentiated again, a step of a loop above
all, has no tape. So registering a hook puts an operation ``ruled`` behind the value, whose gradient
is what the hook makes of the gradient. As in eager code it stands before all uses of the value,
earlier ones too. A hook of a node has no such place: what it returns is not differentiated from the
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.autograd.hooks import RemovableHandle, node_extras
from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import INPUT
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.ruled import Ended, ended, ruled
from numgrad.compiler.trace.tracer import Tracer
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradTraceError


class HookRule:
    """The rule of a value with a hook."""

    name = "register_hook"
    once = False
    batched = (
        "register_hook: a hook sees one gradient, and a batch of examples has many; differentiate "
        "each example (ng.vmap of ng.grad), or give the rule with ng.custom_vjp"
    )

    def __init__(self, handle: RemovableHandle) -> None:
        self.handle = handle

    def __call__(self, given: Sequence[Any]) -> list[Any]:
        """The value, with the hook if there is a tape."""
        y = OPS["positive"](given[0])
        if y._requires_grad and self.handle.id in self.handle._hooks:
            node_extras(y.grad_fn).on_tensor(y.output_nr, self._called)
            if state.ground.deferred:
                put_hook(state.ground.tracer, y, self.handle, earlier=False)
        return [y]

    def _called(self, g: Tensor) -> Tensor | None:
        try:
            return self.handle._hooks[self.handle.id](g)
        except NumgradTraceError as error:
            raise NumgradTraceError(
                "register_hook: the hook is called again where something compiled is "
                "differentiated, and then reads what that computes; differentiate inside of "
                "ng.jit, as in ng.jit(ng.hessian(f)), or give the rule of a loop's step with "
                f"ng.custom_vjp ({error})"
            ) from error


def put_hook(
    tracer: Tracer, tensor: Tensor, handle: RemovableHandle, *, earlier: bool = True
) -> None:
    """Note [Hooks in graphs]; ``earlier`` says whether there may be uses of the value already."""
    array = tensor._array
    if type(array) is not TracedArray or array.tracer is not tracer:
        if tracer.inner:
            raise NumgradTraceError(
                "register_hook: the tensor lies outside of the step of a compiled loop or branch; "
                "register the hook there"
            )
        return
    value, graph = array.value, tracer.graph
    params = {"rule": HookRule(handle), "count": 1}
    meta = [(value.shape, value.dtype)]
    (new,) = tracer.add(ruled, (value, value), params, meta, weak=value.weak)
    if earlier and (array.base is None or array.base.value is not value):
        node = graph.nodes.pop()
        place = graph.nodes.index(value.node) + 1
        for later in graph.nodes[place:]:
            if value in later.inputs:
                later.inputs = tuple([new if v is value else v for v in later.inputs])
        graph.nodes.insert(place, node)
    if tracer.stored.get(id(array), value if value.node.op == INPUT else None) is value:
        tracer.stored[id(array)] = new
    array.stand_for(new)


def ending(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A hook of a node whose gradients only the tape differentiates: Note [Hooks in graphs]."""
    if not callable(hook):
        return hook

    def called(*grads: Any) -> Any:
        results = hook(*grads)
        if results is None or state.grad_enabled or not state.ground.deferred:
            return results
        several = isinstance(results, tuple)
        parts = list(results) if several else [results]
        places = [k for k, g in enumerate(parts) if isinstance(g, Tensor)]
        known = [g for part in grads for g in part if isinstance(g, Tensor)]
        known += [parts[k] for k in places]
        for k, g in zip(places, ended(_OF_NODE, known, [parts[k] for k in places]), strict=True):
            parts[k] = g
        return tuple(parts) if several else parts[0]

    return called


_OF_NODE = Ended(
    "a hook of a node (grad_fn.register_hook, register_prehook) changed the gradient in a compiled "
    "function, whose gradients cannot be differentiated again from outside; differentiate inside "
    "of ng.jit, as in ng.jit(ng.hessian(f)), or use Tensor.register_hook"
)
