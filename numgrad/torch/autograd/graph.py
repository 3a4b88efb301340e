"""Nodes, edges and hooks of what was recorded: ``torch.autograd.graph``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from numgrad.autograd import graph as base
from numgrad.autograd.hooks import check_hook
from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradRuntimeError
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.wrapping import face_function, same, unwrap, user_function, wrap

GradientEdge = base.GradientEdge
disable_saved_tensors_hooks = base.disable_saved_tensors_hooks
save_on_cpu = base.save_on_cpu
increment_version = face_function(base.increment_version)
_NODES: WeakValueDictionary[int, Node] = WeakValueDictionary()
"""Nodes by ``id`` of numgrad's."""
_TABLE = """
    absolute=Abs arccos=Acos arccosh=Acosh arcsin=Asin arcsinh=Asinh arctan=Atan arctan2=Atan2
    arctanh=Atanh astype=ToCopy average_windows=AvgPool2D batch_normalize=NativeBatchNorm
    broadcast_to=Expand clip_above=Clamp clip_below=Clamp concat=Cat copy=Clone
    cross_entropy=NllLoss cube=Pow det=LinalgDet divide=Div dropout=Mul expand_dims=Unsqueeze
    gammainc=Igamma gammaincc=Igammac gammaln=Lgamma inv=LinalgInvEx linear=Addmm log1p=Log1P
    matmul=Mm max_pool=MaxPool2DWithIndices moveaxis=Permute multiply=Mul negative=Neg
    norm2=LinalgVectorNorm normalize_groups=NativeLayerNorm pad_constant=ConstantPadNd
    permute_dims=Permute positive=Clone power=Pow region=AsStrided replace_nonfinite=NanToNum
    reshape=View rint=Round sinc_pi=Sinc square=Pow subtract=Sub swapaxes=Transpose take=Index
    unstack=Unbind
"""
_NAMES = {op: theirs for op, _, theirs in (pair.partition("=") for pair in _TABLE.split())}
"""Names of operations in PyTorch's nodes, where they are not those of numgrad's."""
_WHOLE = {
    "copy_slices": "torch::autograd::CopySlices",
    "once_differentiable": "torch::autograd::Error",
}
_ALONG_AXES = ("sum", "mean", "prod")


def node_name(node: Any) -> str:
    """The name of one of numgrad's nodes as PyTorch has it."""
    if not hasattr(node, "call"):
        return "torch::autograd::AccumulateGrad"
    call = node.call
    op = call.op.name
    if op in _WHOLE:
        return _WHOLE[op]
    if call.opaque:  # a Function of the user's
        return node.name()
    if op == "getitem":
        index = call.params["index"]
        parts = index if isinstance(index, tuple) else (index,)
        op = "select" if any(isinstance(i, int) for i in parts) else "slice"
        op = "unsqueeze" if all(i is None or i is ... for i in parts) else op
    name = _NAMES.get(op) or "".join(w.capitalize() for w in op.split("_"))
    return f"{name}Backward{int(op in _ALONG_AXES and call.params.get('axis') is not None)}"


class Node:
    """A node of what was recorded: numgrad's, whose values and hooks are of this room."""

    __slots__ = ("__weakref__", "_node")

    def __init__(self, node: Any) -> None:
        self._node = node
        _NODES[id(node)] = self

    def name(self) -> str:
        """The operation, followed by ``Backward`` and the number of its form."""
        return node_name(self._node)

    def __getattr__(self, name: str) -> Any:
        node = self._node
        try:
            value = getattr(node, name)
        except AttributeError:
            if not (hasattr(node, "call") and node.call.opaque):
                raise
            value = getattr(node.call.ctx, name)  # a Function's node is its ctx
        if name == "metadata":
            return value
        if name == "next_functions":
            return tuple([(node_of(node), number) for node, number in value])
        if name in ("register_hook", "register_prehook"):
            return lambda fn: value(user_function(fn))
        return _seen(value)

    def __call__(self, *gradients: Any) -> Any:
        """Gradients of the operands by those of the results."""
        return wrap(self._node(*map(unwrap, gradients)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    def _unwrap(self) -> Any:
        return self._node


@cache
def node_class(name: str) -> type[Node]:
    """The class of nodes of a name."""
    return type(name.rpartition(":")[2], (Node,), {"__slots__": ()})


class SavedTensor:
    """A value that a node saved, before hooks unpack it."""

    _saved: base.SavedTensor

    def __init__(self, *args: Any) -> None:
        raise NumgradRuntimeError(
            "SavedTensor: nodes make them; take _raw_saved_<name> of a grad_fn"
        )

    def register_hooks(self, pack_hook: Callable[..., Any], unpack_hook: Any) -> None:
        """Let a pair of functions keep this value from now on."""
        self._saved.register_hooks(*_of_user(pack_hook, unpack_hook))


def _seen(value: Any) -> Any:
    """A value that a node saved, as users see it."""
    if isinstance(value, base.SavedTensor):
        saved = object.__new__(SavedTensor)
        saved._saved = value
        return saved
    if type(value) is tuple:
        return tuple(map(_seen, value))
    return same(value) if isinstance(value, Tensor) else wrap(value)


def _of_user(pack_hook: Any, unpack_hook: Any) -> tuple[Any, Any]:
    """A pair of hooks of a user's, as numgrad calls them."""
    check_hook("pack_hook", pack_hook)
    check_hook("unpack_hook", unpack_hook)
    return user_function(pack_hook), lambda packed: unwrap(unpack_hook(wrap(packed)))


def node_of(node: Any) -> Any:
    """The node that users see of one of numgrad's, always the same one; None for None."""
    if node is None:
        return None
    known = _NODES.get(id(node))
    if known is not None and known._node is node:
        return known
    return node_class(node_name(node))(node)


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The node that a gradient of a Tensor goes to, and as which of its outputs."""
    edge = base.get_gradient_edge(unwrap(tensor))
    return GradientEdge(node_of(edge.node), edge.output_nr)


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """Inside, a saved Tensor may be changed in place: its old value is copied first."""
    with base.allow_mutation_on_saved_tensors() as mutations:
        seen: Any = mutations
        seen.cloned, seen.tid_to_weakhandle = mutations.copied, mutations.saved
        yield seen


class saved_tensors_hooks(base.saved_tensors_hooks):
    """Say what is kept of Tensors that a backward needs, and how they come back from that."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        super().__init__(*_of_user(pack_hook, unpack_hook))


def register_multi_grad_hook(tensors: Any, fn: Callable[..., Any], *, mode: str = "all") -> Any:
    """Call a function when the gradients of several Tensors are computed."""
    return base.register_multi_grad_hook(unwrap(tensors), user_function(fn), mode=mode)  # pyright: ignore


__getattr__ = _refuse(globals())
