"""Backward: walk the graph from the roots in the order of falling sequence numbers.

Note [Ownership of buffers]
---------------------------
A gradient array may be written only if a backward kernel made it in this pass for exactly one edge:
``add``, ``reshape`` and views pass the same array on. ``backward`` of a call says which gradients
it owns; a buffer keeps that flag, the first sum of two aliases makes a new owned array, and what is
put into ``.grad`` without being owned is copied.

Leaves are accumulated when the whole walk has succeeded, so an exception leaves every ``.grad`` as
it was.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from numgrad.autograd.node import Node, freed, mark_written
from numgrad.autograd.variable import Tensor, refresh
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.op.base import OPS, Meta, bind, conform, state

_ONES = {np.dtype(name): np.ones((), name) for name in ("float32", "float64")}
for _one in _ONES.values():
    _one.flags.writeable = False


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of ``tensors`` into the leaves they depend on.

    Parameters
    ----------
    tensors
        One or more roots.
    grad_tensors
        A gradient for each root; may be left out for roots of one element.
    retain_graph
        Keep what the backward needs, for another one; default ``create_graph``.
    create_graph
        Record the backward itself, so that its result can be differentiated.
    inputs
        Accumulate into these tensors only.

    Raises
    ------
    NumgradRuntimeError
        If a root is not differentiable, needs a gradient, or was freed.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> ng.autograd.backward(x * x, ng.tensor([1.0, 10.0]))
    >>> x.grad
    tensor([ 2., 40.])
    """
    roots = _sequence(tensors)
    grads = _root_gradients("backward", roots, grad_tensors, create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    if create_graph:
        warnings.warn(
            "backward(create_graph=True) makes a reference cycle through .grad; "
            "autograd.grad(create_graph=True) does not",
            UserWarning,
            stacklevel=3,
        )
    targets = None
    if inputs is not None:
        targets = _sequence(inputs)
        if not targets:
            raise NumgradRuntimeError("backward: inputs is empty; leave it out for all leaves")
        _check_inputs("backward", targets)
    if create_graph:
        captured, leaves = _walk_recorded(roots, grads, retain, targets)
    else:
        captured, leaves = _walk(roots, grads, retain, targets)
    if targets is None:
        for leaf, g, owned in leaves:
            accumulate(leaf, g, owned)
    else:
        for target, g in zip(targets, captured, strict=True):
            if g is not None:
                accumulate(target, g, False)


def is_loss(root: Tensor) -> bool:
    """Whether ``root`` is a real number with a graph: then there is nothing to check."""
    return root._requires_grad and root._array.shape == () and root._array.dtype in _ONES


def backward_from_loss(root: Tensor, retain_graph: bool | None) -> None:
    """``backward`` of one real number."""
    for leaf, g, owned in _walk((root,), (_ONES[root._array.dtype],), bool(retain_graph), None)[1]:
        accumulate(leaf, g, owned)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Gradients of ``outputs`` with respect to ``inputs``; no ``.grad`` is touched.

    Returns a tuple with a gradient (or None, where ``allow_unused`` permits) for each input; for a
    mapping of inputs, a dict.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(3.0, requires_grad=True)
    >>> ng.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if isinstance(inputs, Mapping):
        found = grad(
            outputs, list(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs,
            allow_unused, is_grads_batched, materialize_grads,
        )  # fmt: skip
        return dict(zip(inputs, found, strict=True))
    if is_grads_batched:
        return _grad_batched(
            outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused,
            materialize_grads,
        )  # fmt: skip
    if allow_unused is False and materialize_grads:
        raise NumgradValueError(
            "grad: materialize_grads gives zeros for unused inputs, so allow_unused=False "
            "contradicts it; leave allow_unused out"
        )
    roots, targets = _sequence(outputs), _sequence(inputs)
    _check_inputs("grad", targets)
    grads = _root_gradients("grad", roots, grad_outputs, create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    walk = _walk_recorded if create_graph else _walk
    captured, _ = walk(roots, grads, retain, targets)
    result: list[Any] = []
    for position, (target, g) in enumerate(zip(targets, captured, strict=True)):
        if g is None:
            if materialize_grads:
                g = np.zeros(target._array.shape, target._array.dtype)
            elif not allow_unused:
                raise NumgradRuntimeError(
                    f"grad: input {position} of shape {target._array.shape} is not used by the "
                    "outputs; pass allow_unused=True to get None for it, or materialize_grads=True "
                    "to get zeros"
                )
        result.append(g if g is None or type(g) is Tensor else Tensor(g))
    return tuple(result)


def _grad_batched(
    outputs: Any, inputs: Any, grad_outputs: Any, retain: Any, create_graph: bool,
    allow_unused: bool | None, materialize: bool,
) -> tuple:  # fmt: skip
    """One backward for each row of the batched cotangents, results stacked."""
    roots = _sequence(outputs)
    cotangents = [grad_outputs] if isinstance(grad_outputs, np.ndarray) else _sequence(grad_outputs)
    arrays = [c if type(c) is Tensor else Tensor(np.asarray(c)) for c in cotangents]
    for root, c in zip(roots, arrays, strict=True):
        if c._array.ndim == 0 or c._array.shape[1:] != root._array.shape:
            raise NumgradRuntimeError(
                f"grad: with is_grads_batched a cotangent has a batch axis before the root's shape "
                f"{root._array.shape}; got {c._array.shape}"
            )
    rows = []
    count = arrays[0]._array.shape[0]
    for row in range(count):
        last = row == count - 1
        rows.append(
            grad(
                roots, inputs, [c[row] for c in arrays], bool(retain) or create_graph or not last,
                create_graph, True, allow_unused, False, materialize,
            )
        )  # fmt: skip
    return tuple(
        None if column[0] is None else OPS["stack"](list(column))
        for column in zip(*rows, strict=True)
    )


# ---------------------------------------------------------------------------------- arguments


def _sequence(tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        return [tensors]
    if isinstance(tensors, list | tuple):
        return list(tensors)
    if hasattr(tensors, "__iter__") and not isinstance(tensors, np.ndarray):
        return list(tensors)
    raise NumgradTypeError(
        f"expected a Tensor or a sequence of them, got {type(tensors).__name__}; ndarrays carry no "
        "graph, use ng.tensor(..., requires_grad=True)"
    )


def _check_inputs(operation: str, inputs: Sequence[Any]) -> None:
    for position, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            raise NumgradTypeError(
                f"{operation}: input {position} is a {type(x).__name__}, not a Tensor"
            )
        if not x._requires_grad:
            raise NumgradRuntimeError(
                f"{operation}: input {position} of shape {x._array.shape} does not require grad; "
                "set requires_grad=True before computing the outputs"
            )


def _root_gradients(
    operation: str, roots: Sequence[Tensor], grads: Any, create_graph: bool
) -> list[Any]:
    """A gradient for each root, as an array (as a Tensor with ``create_graph``)."""
    if grads is None:
        grads = [None] * len(roots)
    elif isinstance(grads, Tensor | np.ndarray | float | int | complex):
        grads = [grads]
    else:
        grads = list(grads)
    if len(grads) != len(roots):
        raise NumgradRuntimeError(
            f"{operation}: {len(roots)} roots but {len(grads)} gradients; give one (or None) each"
        )
    result = []
    for position, (root, g) in enumerate(zip(roots, grads, strict=True)):
        if not isinstance(root, Tensor):
            raise NumgradTypeError(
                f"{operation}: root {position} is a {type(root).__name__}, not a Tensor"
            )
        if not root._requires_grad:
            raise NumgradRuntimeError(
                f"{operation}: root {position} of shape {root._array.shape} was not computed from "
                "anything that requires grad; set requires_grad=True on an input"
            )
        array = root._array
        if g is None:
            if array.size != 1:
                raise NumgradRuntimeError(
                    f"{operation}: root {position} has shape {array.shape}; only a root of one "
                    "element has an implied gradient, pass one of its shape or sum it first"
                )
            if array.dtype.kind == "c":
                raise NumgradRuntimeError(
                    f"{operation}: root {position} is complex; pass its gradient, or take the "
                    "real part or absolute value first"
                )
            g = np.ones(array.shape, array.dtype)
        else:
            given = g._array if isinstance(g, Tensor) else np.asarray(g)
            if given.shape != array.shape:
                raise NumgradRuntimeError(
                    f"{operation}: the gradient of root {position} has shape {given.shape}, the "
                    f"root has shape {array.shape}"
                )
            if (given.dtype.kind == "c") != (array.dtype.kind == "c"):
                raise NumgradRuntimeError(
                    f"{operation}: the gradient of root {position} is {given.dtype}, the root is "
                    f"{array.dtype}; both must be real or both complex"
                )
            if not (create_graph and isinstance(g, Tensor)):
                g = given.astype(array.dtype, copy=False)
        if create_graph and not isinstance(g, Tensor):
            g = Tensor(np.asarray(g))
        result.append(g)
    return result


# ----------------------------------------------------------------------------------- the walk


def _edge(tensor: Tensor) -> Any:
    if tensor._memory is not None:
        refresh(tensor)
    node = tensor._grad_fn
    if node is None:
        return tensor
    return (node, tensor._slot - 1) if tensor._slot else node


def _needed(roots: Sequence[Any], targets: Sequence[Any]) -> set[int]:
    """Sequence numbers of the nodes on a path from the roots to an edge in ``targets``."""
    wanted = {_edge_key(t) for t in targets}
    needed: set[int] = set()
    visited: dict[int, Node] = {}
    heap: list[int] = []
    consumers: dict[int, list[int]] = {}
    for edge in roots:
        node = edge[0] if type(edge) is tuple else edge
        if type(node) is Node and node.sequence not in visited:
            visited[node.sequence] = node
            heap.append(node.sequence)
    while heap:
        node = visited[heap.pop()]
        for edge in node.edges:
            if edge is None:
                continue
            if _edge_key(edge) in wanted:
                needed.add(node.sequence)
            child = edge[0] if type(edge) is tuple else edge
            if type(child) is Node:
                consumers.setdefault(child.sequence, []).append(node.sequence)
                if child.sequence not in visited:
                    visited[child.sequence] = child
                    heap.append(child.sequence)
    frontier = list(needed)
    while frontier:
        for consumer in consumers.get(frontier.pop(), ()):
            if consumer not in needed:
                needed.add(consumer)
                frontier.append(consumer)
    return needed


def _edge_key(edge: Any) -> tuple[int, int]:
    """Identity of the value an edge points to: a node's output, or a leaf."""
    if type(edge) is tuple:
        return edge[0].sequence, edge[1]
    if type(edge) is Node:
        return edge.sequence, 0
    return id(edge), -1


def _walk(
    roots: Sequence[Tensor], grads: Sequence[np.ndarray], retain: bool, targets: Any
) -> tuple[list[Any], list[list]]:
    """Run compiled backwards; returns the gradients of ``targets`` and of the leaves.

    What waits at a node is ``[node, gradient, owned]``, lists of the latter two for a node with
    several outputs; a leaf's entry has the leaf in place of the node.
    """
    pending: dict[int, list] = {}
    leaves: dict[int, list] = {}
    heap: list[int] = []
    captured: dict[tuple[int, int], Any] = {}
    needed: set[int] = set()
    edges: list[Any] = []
    if targets is not None:
        edges = [_edge(t) for t in targets]
        captured = {_edge_key(e): None for e in edges}
        needed = _needed([_edge(r) for r in roots], edges)
    for root, g in zip(roots, grads, strict=True):
        edge = _edge(root)
        if type(edge) is tuple:
            _deliver_part(pending, heap, edge, g, False)
            continue
        table, key = (pending, -edge.sequence) if type(edge) is Node else (leaves, id(edge))
        waiting = table.get(key)
        if waiting is None:
            table[key] = [edge, g, False]
            if table is pending:
                heappush(heap, key)
        else:
            waiting[1], waiting[2] = add(waiting[1], g), True
    # along a chain one node is pending at a time: it is kept out of the heap
    only: list | None = None
    only_key = 0
    while True:
        if only is not None:
            key, (node, g, _), only = only_key, only, None
        elif heap:
            key = heappop(heap)
            node, g, _ = pending.pop(key)
        else:
            break
        if captured:
            _capture(captured, -key, g)
            if -key not in needed:
                continue
        call = node.call
        if type(g) is list:
            g = [
                np.zeros(m.shape, m.dtype) if part is None else part
                for part, m in zip(g, call.out_metas, strict=True)
            ]
        saved = node.saved
        values = node.unpack() if saved != () else saved
        buffers = _owned_buffers(node, pending, leaves) if call.large else None
        if buffers is not None:
            gradients, owned = call.backward_into(node.mask, g, values, buffers)
        else:
            function = call.functions.get(node.mask)
            if function is not None:
                gradients, owned = function(g, *values)
            else:
                gradients, owned = call.backward(node.mask, g, values)
        if saved and not retain:
            node.saved = None
        bit = 1
        for edge, g in zip(node.edges, gradients):  # noqa: B905 (equal by construction)
            if edge is not None and g is not None:
                if type(edge) is Node:
                    key = -edge.sequence
                    if only is None:
                        if not heap:
                            only, only_key = [edge, g, owned & bit != 0], key
                            bit += bit
                            continue
                    elif key != only_key:
                        pending[only_key], only = only, None
                        heappush(heap, only_key)
                    waiting = pending.get(key) if only is None else only
                    if waiting is None:
                        pending[key] = [edge, g, owned & bit != 0]
                        heappush(heap, key)
                elif type(edge) is tuple:
                    if only is not None:
                        pending[only_key], only = only, None
                        heappush(heap, only_key)
                    _deliver_part(pending, heap, edge, g, owned & bit != 0)
                    waiting = None
                else:
                    key = id(edge)
                    waiting = leaves.get(key)
                    if waiting is None:
                        leaves[key] = [edge, g, owned & bit != 0]
                if waiting is None:
                    pass
                elif waiting[2]:
                    add_into(waiting[1], g)
                elif owned & bit:  # the newcomer may be written instead
                    add_into(g, waiting[1])
                    waiting[1], waiting[2] = g, True
                else:
                    waiting[1], waiting[2] = add(waiting[1], g), True
            bit += bit
    found = []
    handed: set[int] = set()
    for edge in edges:
        waiting = leaves.get(id(edge)) if type(edge) is Tensor else None
        g = waiting[1] if waiting else captured[_edge_key(edge)]
        if g is not None:
            if id(g) in handed or not (waiting and waiting[2]):
                g = g.copy()
            handed.add(id(g))
        found.append(g)
    return found, list(leaves.values())


def _owned_buffers(
    node: Node, pending: dict[int, list], leaves: dict[int, list]
) -> list[np.ndarray | None] | None:
    """For each operand the array its gradient can be added to in place; None if there is none."""
    found: list[Any] | None = None
    taken: set[int] = set()
    for k, edge in enumerate(node.edges):
        if type(edge) is Node:
            waiting = pending.get(-edge.sequence)
        elif edge is None or type(edge) is tuple:
            continue
        else:
            waiting = leaves.get(id(edge))
        if waiting is None or not waiting[2] or id(waiting) in taken:
            continue
        meta, buffer = node.call.metas[k], waiting[1]
        if buffer.flags.c_contiguous and buffer.shape == meta.shape and buffer.dtype == meta.dtype:
            found = found or [None] * len(node.edges)
            found[k] = buffer
            taken.add(id(waiting))
    return found


def _deliver_part(
    pending: dict[int, list], heap: list[int], edge: tuple, g: np.ndarray, owned: bool
) -> None:
    """Add ``g`` to what waits at one output of a node with several."""
    node, number = edge
    key = -node.sequence
    waiting = pending.get(key)
    if waiting is None:
        count = node.call.nout
        waiting = pending[key] = [node, [None] * count, [False] * count]
        heappush(heap, key)
    _, parts, owners = waiting
    if parts[number] is None:
        parts[number], owners[number] = g, owned
    elif owners[number]:
        add_into(parts[number], g)
    else:
        parts[number], owners[number] = add(parts[number], g), True


def _capture(captured: dict, sequence: int, g: Any) -> None:
    for number, part in enumerate(g if isinstance(g, list) else [g]):
        if (sequence, number) in captured:
            captured[sequence, number] = part


def _walk_recorded(
    roots: Sequence[Tensor], grads: Sequence[Tensor], retain: bool, targets: Any
) -> tuple[list[Any], list[list]]:
    """The same walk with formulas on Tensors, so that the gradients carry a graph."""
    nodes: dict[int, Node] = {}
    buffers: dict[int, list] = {}
    leaves: dict[int, list] = {}
    heap: list[int] = []
    captured: dict[tuple[int, int], Any] = {}
    needed: set[int] = set()
    edges: list[Any] = []
    if targets is not None:
        edges = [_edge(t) for t in targets]
        captured = {_edge_key(e): None for e in edges}
        needed = _needed([_edge(r) for r in roots], edges)

    def deliver(edge: Any, g: Tensor) -> None:
        if type(edge) is Tensor:
            waiting = leaves.setdefault(id(edge), [edge, None])
            waiting[1] = g if waiting[1] is None else waiting[1] + g
            return
        node, number = edge if type(edge) is tuple else (edge, 0)
        key = -node.sequence
        if key not in nodes:
            nodes[key] = node
            buffers[key] = [None] * node.call.nout
            heappush(heap, key)
        slot = buffers[key]
        slot[number] = g if slot[number] is None else slot[number] + g

    for root, g in zip(roots, grads, strict=True):
        deliver(_edge(root), g)
    before = state.grad_enabled
    state.grad_enabled = True
    state.refresh()
    try:
        while heap:
            key = heappop(heap)
            node, parts = nodes.pop(key), buffers.pop(key)
            if captured:
                _capture(captured, -key, parts)
                if -key not in needed:
                    continue
            call = node.call
            if call.out_metas:
                g: Any = tuple(
                    Tensor(np.zeros(m.shape, m.dtype)) if part is None else part
                    for part, m in zip(parts, call.out_metas, strict=True)
                )
            else:
                (g,) = parts
            if node.saved is None:
                raise freed(node)
            values = node.unpack_tensors()
            for k, edge in enumerate(node.edges):
                if edge is not None and node.mask >> k & 1:
                    value = call.gradient(k, g, values)
                    if value is not None:
                        deliver(edge, conform_tensor(value, call.metas[k]))
            if not retain and node.saved:
                node.saved = None
    finally:
        state.grad_enabled = before
        state.refresh()
    found = []
    for edge in edges:
        waiting = leaves.get(id(edge)) if type(edge) is Tensor else None
        found.append(waiting[1] if waiting else captured[_edge_key(edge)])
    return found, [[leaf, g, False] for leaf, g in leaves.values()]


def conform_tensor(value: Any, meta: Meta) -> Tensor:
    """``conform`` with recorded operations."""
    if not isinstance(value, Tensor):
        return Tensor(conform(np.asarray(value), meta))
    shape = value._array.shape
    if shape != meta.shape:
        lead = len(shape) - len(meta.shape)
        axes = tuple(range(lead)) + tuple(
            lead + i for i, n in enumerate(meta.shape) if n == 1 and shape[lead + i] != 1
        )
        if axes:
            value = bind(OPS["sum"], (value,), {"axis": axes})
        if value._array.size == int(np.prod(meta.shape)):
            value = bind(OPS["reshape"], (value, meta.shape), {})
        else:
            value = bind(OPS["broadcast_to"], (value, meta.shape), {})
    if value._array.dtype != meta.dtype:
        if value._array.dtype.kind == "c" and meta.dtype.kind != "c":
            value = bind(OPS["real"], (value,), {})
        value = bind(OPS["astype"], (value, meta.dtype), {})
    return value


# ------------------------------------------------------------------------------- accumulation


SMALL = 16384
"""Elements up to which NumPy's addition is faster than choosing among our kernels."""


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A new array with the sum of two gradients."""
    return np.add(a, b) if a.size <= SMALL else OPS["add"].run((a, b), {})[0]


def add_into(buffer: np.ndarray, g: np.ndarray) -> None:
    """Add to a buffer the engine owns."""
    if buffer.size > SMALL and buffer.flags.c_contiguous and g.flags.c_contiguous:
        flat = buffer.ravel()
        add_op: Any = OPS["add"]
        add_op.plan((buffer, g)).entry(flat, g.ravel(), flat)
    else:
        np.add(buffer, g, out=buffer)


def accumulate(leaf: Tensor, g: Any, owned: bool) -> None:
    """Add a gradient to ``leaf.grad``."""
    present = leaf._grad
    if isinstance(g, Tensor):  # create_graph: a new object, with a graph
        leaf._grad = g if present is None else present + g
        return
    array = leaf._array
    if present is None:
        if not owned or g.base is not None:
            g = g.copy()
        if g.dtype is not array.dtype and g.dtype != array.dtype:
            g = g.astype(array.dtype)
        leaf._grad = Tensor(g)
    elif present._requires_grad:
        leaf._grad = present + Tensor(g)
    else:
        add_into(present._array, g)
        mark_written(present)
