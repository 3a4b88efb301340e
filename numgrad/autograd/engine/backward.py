"""``backward`` and ``grad``: what may be asked for, and which walk answers it.

Leaves are accumulated when the whole walk has succeeded, so an exception leaves every ``.grad`` as
it was; only leaves with post-accumulate hooks are accumulated as soon as they are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from operator import attrgetter
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import NO_GRAPH, Batched, BatchingInterpreter, refuse
from numgrad.autograd.engine.gradients import ON_ARRAYS, RECORDED, UNRECORDED, accumulate
from numgrad.autograd.engine.task import GradientEdge, Task, edge_of
from numgrad.autograd.engine.walk import DEEP, on_fresh_stack, walk
from numgrad.autograd.hooks import drop_callbacks, retain_grad, retains_grad, run_callbacks
from numgrad.autograd.row_sparse_tensor import as_tensor
from numgrad.autograd.variable import TENSORS, Tensor, constant, refresh
from numgrad.core.abstract import ones, zeros
from numgrad.core.foreign import refuse_mask
from numgrad.core.formula import Meta
from numgrad.core.interpreter import ThreadSettings, state
from numgrad.core.op import OPS
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError, warn

_ONES = {np.dtype(name): np.ones((), name) for name in ("float32", "float64")}
for _one in _ONES.values():
    _one.flags.writeable = False

_array_of = attrgetter("_array")


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of ``tensors`` into the leaves they depend on.

    Parameters
    ----------
    tensors
        One or more roots: Tensors or gradient edges.
    grad_tensors
        A gradient for each root; may be left out for roots of one element.
    retain_graph
        Keep what the backward needs, for another one; default ``create_graph``.
    create_graph
        Record the backward itself, so that its result can be differentiated.
    inputs
        Accumulate into these tensors only, which need not be leaves; several, or a mapping of them.
        Those that are results retain their gradient from then on. A gradient edge stands for its
        leaf; at the edge of a result hooks run, and nothing is accumulated.

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
    if state.transforms:
        raise NumgradRuntimeError(
            "backward: was called inside a function that ng.grad or another transform "
            "differentiates, where nothing may accumulate in .grad; use ng.autograd.grad"
        )
    roots = _sequence("backward", tensors)
    grads = _root_gradients("backward", roots, grad_tensors)
    if create_graph:
        warn(
            "Using backward() with create_graph=True makes a reference cycle through .grad; "
            "autograd.grad(create_graph=True) does not",
            UserWarning,
        )
    targets = None
    if inputs is not None:
        edges = map(_leaf_or_edge, _targets("backward", _values(inputs)))
        targets = list({id(t): t for t in edges}.values())
        if not targets:
            raise NumgradRuntimeError("backward: inputs is empty; leave it out for all leaves")
    _run_for_user(create_graph, _accumulated, roots, grads, retain_graph, create_graph, targets)


def _accumulated(
    roots: Sequence[Any], grads: Sequence[Tensor], retain: bool | None, create_graph: bool,
    targets: Sequence[Any] | None,
) -> None:  # fmt: skip
    target_grads, arrived = _complete(_run, roots, grads, retain, create_graph, targets, True)
    if targets is not None:
        arrived = [
            (target, g, False)
            for target, g in zip(targets, target_grads, strict=True)
            # a retained gradient has been accumulated on the way
            if isinstance(target, Tensor) and not retains_grad(target)
        ]
    if create_graph or state.interpreters:
        _in_mode(create_graph, accumulate, arrived)
    else:  # of arrays
        accumulate(arrived)
    for target in targets or ():
        if isinstance(target, Tensor) and target._grad_fn is not None:
            retain_grad(target)
    if state.callbacks:
        _complete(run_callbacks)


def is_loss(root: Tensor) -> bool:
    """Whether ``root`` is a real number with a graph: then there is nothing to check."""
    if root._memory is not None:
        refresh(root)
    return (
        root._requires_grad
        and root._array.shape == ()
        and root._array.dtype in _ONES
        and state.plain
    )


def backward_from_loss(root: Tensor, retain_graph: bool | None) -> None:
    """``backward`` of one real number."""
    one = _ONES[root._array.dtype]
    try:
        accumulate(walk(ON_ARRAYS, (edge_of(root),), (one,), bool(retain_graph))[1])
        if state.callbacks:
            run_callbacks()
    except BaseException:
        drop_callbacks()
        raise


def gradients_of_loss(root: Tensor, leaves: Sequence[Tensor]) -> list[Any]:
    """``grad`` of one real number by leaves that were made for it, arrays for most of them.

    It frees the graph, and does not look for the nodes that lead to these leaves only.
    """
    if not is_loss(root):
        return list(grad(root, leaves, allow_unused=True))
    one = _ONES[root._array.dtype]
    arrived = _complete(walk, ON_ARRAYS, (edge_of(root),), (one,), False, None, False)[1]
    if state.callbacks:
        _complete(run_callbacks)
    by_leaf = {id(leaf): g for leaf, g, _ in arrived}
    gradients = [by_leaf.get(id(leaf)) for leaf in leaves]
    return [g if g is None or type(g) is np.ndarray else as_tensor(g) for g in gradients]


def grad(
    outputs: Any,
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

    Parameters
    ----------
    outputs, inputs
        Tensors or gradient edges, one or several; ``inputs`` may be a mapping.
    grad_outputs
        A gradient for each output; may be left out for outputs of one element.
    retain_graph
        Keep what the backward needs, for another one; default ``create_graph``.
    create_graph
        Record the backward itself, so that its result can be differentiated.
    only_inputs
        Must be True; other tensors never accumulate here.
    allow_unused
        Whether the gradient of an input that the outputs do not depend on is None, rather than an
        error.
    is_grads_batched
        The first axis of each of ``grad_outputs`` counts cotangents, and so does that of the
        results.
    materialize_grads
        Zeros in place of None for unused inputs.

    Returns
    -------
    tuple or dict
        A gradient (or None) for each input; for a mapping of inputs, a dict.

    Raises
    ------
    NumgradRuntimeError
        If an output or input is not differentiable, an input is unused, a gradient is missing or
        has another shape than its output, or the graph was freed.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor(3.0, requires_grad=True)
    >>> ng.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    return _run_for_user(
        create_graph, inner_grad, outputs, inputs, grad_outputs, retain_graph, create_graph,
        only_inputs, allow_unused, is_grads_batched, materialize_grads,
    )  # fmt: skip


def inner_grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """``grad`` for formulas and transforms: a trace may differentiate what it gives."""
    if type(inputs) not in TENSORS and isinstance(inputs, Mapping):
        gradients = inner_grad(
            outputs, _values(inputs), grad_outputs, retain_graph, create_graph, only_inputs,
            allow_unused, is_grads_batched, materialize_grads,
        )  # fmt: skip
        return dict(zip(inputs, gradients, strict=True))
    if not only_inputs:
        raise NumgradValueError(
            "grad: only_inputs=False is not possible; use backward to accumulate into leaves"
        )
    if allow_unused is False and materialize_grads:
        raise NumgradValueError(
            "grad: materialize_grads gives zeros for unused inputs, so allow_unused=False "
            "contradicts it; leave allow_unused out"
        )
    roots, targets = _sequence("grad", outputs), _targets("grad", inputs)
    if not targets:
        raise NumgradRuntimeError(
            "grad: inputs is empty; name the tensors whose gradients are wanted, or use backward"
        )
    grads = _root_gradients("grad", roots, grad_outputs, batched=is_grads_batched)
    if is_grads_batched:
        gradients = _complete(_run_batched, roots, grads, retain_graph, create_graph, targets)
    else:
        gradients, _ = _complete(_run, roots, grads, retain_graph, create_graph, targets, False)
    if state.callbacks:
        _complete(run_callbacks)
    for position, g in enumerate(gradients):
        if g is None and (materialize_grads or not allow_unused):
            meta = _meta(targets[position])
            if not materialize_grads:
                raise NumgradRuntimeError(
                    f"grad: input {position} of shape {meta.shape} is not used by the outputs; "
                    "pass allow_unused=True to get None for it, or materialize_grads=True to get "
                    "zeros"
                )
            if not isinstance(targets[position], Tensor):
                raise NumgradRuntimeError(
                    f"grad: input {position} is a gradient edge that is not used, and does not say "
                    "what the zeros of materialize_grads are for; give the Tensor"
                )
            lead = grads[0].shape[:1] if is_grads_batched else ()
            gradients[position] = Tensor(zeros((*lead, *meta.shape), meta.dtype), create_graph)
        elif type(g) is not Tensor:
            gradients[position] = Tensor(g) if type(g) is np.ndarray else as_tensor(g)
    return tuple(gradients)


def dense_grad(*args: Any, **options: Any) -> tuple[Any, ...]:
    """``inner_grad`` where gradients that are row-sparse are made dense."""
    gradients = inner_grad(*args, **options)
    return tuple([g.to_dense() if g is not None and g.is_sparse else g for g in gradients])


def repeated_gradient(
    root: Tensor, targets: Sequence[Tensor]
) -> Callable[[np.ndarray], list[np.ndarray | None]]:
    """The function from cotangents of a root to gradients, arrays, by a graph that is retained.

    What does not depend on the cotangent is found out once.
    """
    edges = [edge_of(root)]
    task = Task(edges, list(map(edge_of, targets)))

    def gradients(cotangent: np.ndarray) -> list[np.ndarray | None]:
        arrived, _ = _complete(_walk_on_arrays, edges, [cotangent], True, task, False)
        if state.callbacks:
            _complete(run_callbacks)
        return [
            g if g is None or type(g) is np.ndarray else as_tensor(g).to_dense()._array
            for g in arrived
        ]

    return gradients


# ---------------------------------------------------------------------------------- which walk


def _complete(run: Callable[..., Any], *args: Any) -> Any:
    """The result of a part of a backward; what it has queued is dropped if it fails."""
    try:
        return run(*args)
    except BaseException:
        drop_callbacks()
        raise


def _run(
    roots: Sequence[Any], grads: Sequence[Tensor], retain: bool | None, create_graph: bool,
    targets: Sequence[Any] | None, accumulating: bool,
) -> tuple[list[Any], list[list]]:  # fmt: skip
    edges = list(map(edge_of, roots))
    task = None if targets is None else Task(edges, list(map(edge_of, targets)), accumulating)
    retain = create_graph if retain is None else retain
    if create_graph or state.interpreters:
        return _on_stack(_walk_on_tensors, create_graph, edges, grads, retain, task, accumulating)
    return _walk_on_arrays(edges, list(map(_array_of, grads)), retain, task, accumulating)


def _walk_on_arrays(*how: Any) -> tuple[list[Any], list[list]]:
    return _on_stack(walk, ON_ARRAYS, *how)


def _on_stack(run: Callable[..., Any], *args: Any) -> Any:
    """The result of a walk, which deep inside of others gets a stack of its own."""
    deep = state.depth and state.depth % DEEP == 0
    return on_fresh_stack(partial(run, *args)) if deep else run(*args)


def _walk_on_tensors(
    recording: bool, edges: Sequence[Any], grads: Sequence[Any], *how: Any
) -> tuple[list[Any], list[list]]:
    evaluation = RECORDED if recording else UNRECORDED
    if not recording:
        grads = _in_mode(False, list, map(_without_gradients, grads))
    if state.ground.deferred:
        grads = evaluation.nonzero(grads)
    return _in_mode(recording, walk, evaluation, edges, grads, *how)


def _without_gradients(g: Any) -> Any:
    """A gradient without the graph that it came with."""
    return OPS["positive"](g) if g.requires_grad else g


def _run_for_user(create_graph: bool, run: Callable[..., Any], *args: Any) -> Any:
    """The result of ``run(*args)``, which a user asked for, with a graph or as a constant.

    Without a graph it is one also in a trace: Note [Constants of a trace] in ``interpreter``.
    """
    if not state.ground.deferred or state.constant is not create_graph:
        return run(*args)
    with ThreadSettings(constant=not create_graph):
        return run(*args)


def _in_mode(recording: bool, run: Callable[..., Any], *args: Any) -> Any:
    """The result of ``run(*args)`` where operations are recorded, or are not."""
    if state.grad_enabled is recording:
        return run(*args)
    with ThreadSettings(grad_enabled=recording):
        return run(*args)


def _run_batched(
    roots: Sequence[Any], grads: Sequence[Tensor], retain: bool | None, create_graph: bool,
    targets: Sequence[Any],
) -> list[Any]:  # fmt: skip
    """One backward for all cotangents of a batch at once."""
    edges = list(map(edge_of, roots))
    task = Task(edges, list(map(edge_of, targets)))
    retain = create_graph if retain is None else retain
    with BatchingInterpreter(grads[0].shape[0]) as level:
        wrapped = [level.wrap(g) for g in grads]
        gradients, _ = _walk_on_tensors(create_graph, edges, wrapped, retain, task, False)
        return [None if g is None else level.unwrap(g) for g in gradients]


# ----------------------------------------------------------------------------------- arguments


def _values(inputs: Any) -> Any:
    """Inputs without the names that a mapping has for them."""
    named = type(inputs) not in TENSORS and isinstance(inputs, Mapping)
    return list(inputs.values()) if named else inputs


def _leaf_or_edge(target: Any) -> Any:
    """A target, a leaf in place of the edge that leads to it."""
    edge = edge_of(target) if isinstance(target, GradientEdge) else None
    return edge if isinstance(edge, Tensor) else target


def _sequence(operation: str, tensors: Any) -> list[Any]:
    if isinstance(tensors, Tensor | GradientEdge):
        return [tensors]
    if hasattr(tensors, "__iter__") and not isinstance(tensors, np.ndarray | str):
        return list(tensors)
    raise NumgradTypeError(
        f"{operation}: expected a Tensor or a sequence of them, got {type(tensors).__name__}; "
        "ndarrays carry no graph, use ng.tensor(..., requires_grad=True)"
    )


def _meta(value: Tensor | GradientEdge) -> Meta:
    """Shape and dtype of what a gradient is for."""
    if isinstance(value, GradientEdge):
        return value.node._input_metadata[value.output_nr]
    return Meta(value.shape, value.dtype)


def _targets(operation: str, inputs: Any) -> list[Any]:
    """Check the tensors that gradients are wanted for."""
    targets = [inputs] if type(inputs) in TENSORS else _sequence(operation, inputs)
    for position, x in enumerate(targets):
        if isinstance(x, GradientEdge):
            continue
        if not isinstance(x, Tensor):
            raise NumgradTypeError(
                f"{operation}: input {position} is a {type(x).__name__}, not a Tensor"
            )
        if not (x._memory is None and x._requires_grad) and not x.requires_grad:
            raise NumgradRuntimeError(
                f"{operation}: input {position} of shape {x.shape} does not require grad; "
                "set requires_grad=True before computing the outputs"
            )
    return targets


def _root_gradients(
    operation: str, roots: Sequence[Any], grads: Any, *, batched: bool = False
) -> list[Tensor]:
    """A gradient for each root; with ``batched`` each has an axis more, in front."""
    if grads is None:
        grads = [None] * len(roots)
    elif isinstance(grads, Tensor | np.ndarray | np.generic | float | int | complex):
        grads = [grads]
    elif hasattr(grads, "__iter__") and not isinstance(grads, str):
        grads = list(grads)
    else:
        raise _no_gradient(operation, grads)
    if len(grads) != len(roots):
        raise NumgradRuntimeError(
            f"{operation}: {len(roots)} roots but {len(grads)} gradients; give one (or None) each"
        )
    gradients: list[Tensor] = []
    for root, g in zip(roots, grads, strict=True):
        if g.__class__ is not Tensor:
            refuse_mask(operation, g)
        gradients.append(_root_gradient(operation, len(gradients), root, g, batched))
    if batched and len({g.shape[0] for g in gradients}) > 1:
        raise NumgradRuntimeError(
            f"{operation}: with is_grads_batched all cotangents have one batch length; got "
            f"{', '.join(str(g.shape[0]) for g in gradients)}"
        )
    return gradients


def _no_gradient(operation: str, value: Any) -> NumgradTypeError:
    return NumgradTypeError(
        f"{operation}: a {type(value).__name__} is no gradient; give a Tensor, array or number for "
        "each root, None for one that is a number itself"
    )


def _root_gradient(operation: str, position: int, root: Any, g: Any, batched: bool) -> Tensor:
    if g is None and not batched and type(root) in TENSORS and is_loss(root):
        return Tensor(np.ones((), root._array.dtype))
    if not isinstance(root, Tensor | GradientEdge):
        raise NumgradTypeError(
            f"{operation}: root {position} is a {type(root).__name__}, not a Tensor"
        )
    if isinstance(root, Tensor) and not root.requires_grad:
        raise NumgradRuntimeError(
            f"{operation}: root {position} of shape {root.shape} was not computed from anything "
            "that requires grad (or inside no_grad); set requires_grad=True on an input"
        )
    if isinstance(root, Batched):
        refuse(operation, NO_GRAPH)
    meta = _meta(root)
    if g is None and not batched:
        if prod(meta.shape) != 1:
            raise NumgradRuntimeError(
                f"{operation}: root {position} has shape {meta.shape}; only a root of one element "
                "has an implied gradient, pass one of its shape or sum it first"
            )
        if meta.dtype.kind == "c":
            raise NumgradRuntimeError(
                f"{operation}: root {position} is complex; pass its gradient, or take the real "
                "part or absolute value first"
            )
        return Tensor(ones(meta.shape, meta.dtype))
    gradient = g if isinstance(g, Tensor) else constant(g)
    if g is not None and gradient.dtype.kind not in "biufc":
        raise _no_gradient(operation, g)
    if batched and (g is None or gradient.ndim == 0 or gradient.shape[1:] != meta.shape):
        raise NumgradRuntimeError(
            f"{operation}: with is_grads_batched the cotangent of root {position} has a batch axis "
            f"before the root's shape {meta.shape}; got {None if g is None else gradient.shape}"
        )
    if not batched and gradient.shape != meta.shape:
        raise NumgradRuntimeError(
            f"{operation}: the gradient of root {position} has shape {gradient.shape}, the root "
            f"has shape {meta.shape}"
        )
    if (gradient.dtype.kind == "c") != (meta.dtype.kind == "c"):
        raise NumgradRuntimeError(
            f"{operation}: the gradient of root {position} is {gradient.dtype}, the root is "
            f"{meta.dtype}; both must be real or both complex"
        )
    return gradient if gradient.dtype == meta.dtype else OPS["astype"](gradient, meta.dtype)
