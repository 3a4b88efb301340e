"""One run of a function on tracers: what it computes, reads, returns and changes."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np

from numgrad.autograd.argument import told
from numgrad.autograd.batching.selected import Selected, refuse
from numgrad.autograd.engine import backward as engine
from numgrad.autograd.engine.task import depend_on_leaves, edge_of
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.captures import Captures, made_by_trace
from numgrad.compiler.call.process_state import clocks_watched
from numgrad.compiler.call.signature import (
    DEEPEST,
    NUMBER,
    SCALAR,
    STATIC,
    TENSOR,
    Arguments,
    GradientResult,
    Input,
    Leaf,
    Result,
)
from numgrad.compiler.call.source import CONTENT, READ, Source, is_atom
from numgrad.compiler.graph.graph import CALL, Graph, Value
from numgrad.compiler.graph.sizes import Size
from numgrad.compiler.messages import name_line, no_internal_error, raised_at
from numgrad.compiler.trace import diagnostics
from numgrad.compiler.trace.arrays import Captured, TracedArray, share, source_of
from numgrad.compiler.trace.cut import Cut, cut
from numgrad.compiler.trace.function_state import FunctionState
from numgrad.compiler.trace.interpreter import TraceInterpreter
from numgrad.compiler.trace.promoted_numbers import Key, Promotion, Substitution
from numgrad.compiler.trace.tracer import Tracer
from numgrad.core.bytecode import Sites, facts
from numgrad.core.formula import Meta
from numgrad.core.op import Op
from numgrad.core.plan import Call
from numgrad.core.tree import flatten
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradError, NumgradNotImplementedError, NumgradTypeError


class DeadEnds:
    """Makes Tensors of results whose gradients could not be traced: their backward says why.

    They depend on every operand that requires grad, for all that is known.
    """

    def __init__(self, name: str, error: NumgradError) -> None:
        self.op, self.error = operation_of(name), error

    def __call__(self, array: Any, *operands: Tensor) -> Tensor:
        operands = tuple(t for t in operands if t._requires_grad)
        metas = tuple(Meta(t._array.shape, t._array.dtype) for t in operands)
        call = UntracedGradients(self.op, metas, self.error)
        edges = tuple(map(edge_of, operands))
        return Tensor(array, True, Node(call, (1 << len(edges)) - 1, edges, ()))


class UntracedGradients(Call):
    """The record of a call that has no gradients."""

    __slots__ = ("error",)

    def __init__(self, op: Op, metas: tuple[Meta, ...], error: NumgradError) -> None:
        super().__init__(op, metas, {})
        self.error = error

    @property
    def results(self) -> tuple[Meta, ...]:
        return (NO_ARRAY,)

    def saves(self, mask: int) -> tuple[str, ...]:
        return ()

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        raise type(self.error)(*self.error.args)

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        return self.backward(mask, g, ())[0]


NO_ARRAY = Meta((), np.dtype(np.float64))
"""Shape and dtype for the tape of a result that is no array."""


def operation_of(name: str) -> Op:
    """The operation that a compiled function is for the tape."""

    def function(*inputs: Any) -> None:
        """A compiled function."""

    op = Op(function, register=False, internal=True)
    op.name = name
    op.auxiliaries = ("kept",)
    return op


@dataclass
class Traced:
    """One run of a function.

    Attributes
    ----------
    graph
        All operations.
    inputs
        Inputs of the graph that the caller and the surroundings give.
    known
        The ids of Tensors and arrays around the function that are inputs, or whose views are.
    looked_at
        Those of ndarrays whose numbers decide what is computed.
    results, nesting
        What is returned.
    touched
        Numbers of inputs that calls of Python functions write to.
    gradients, bare
        What becomes of ``.grad`` of captured Tensors (see ``Layout``).
    recorded, wanted
        Which outputs are differentiated, with respect to which inputs.
    parts
        The graph and its gradients, if anything is to be differentiated.
    made
        Guards of what the function stored around itself.
    state
        What it sets around itself, if there is anything: Note [State of functions].
    """

    graph: Graph
    inputs: list[Input]
    results: list[Result]
    nesting: Any
    captures: Captures
    known: set[int]
    looked_at: set[int]
    touched: list[int] = field(default_factory=list)
    gradients: list[GradientResult] = field(default_factory=list)
    bare: list[tuple[Tensor, Source | None]] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)
    parts: Cut | None = None
    made: list[Source] = field(default_factory=list)
    state: FunctionState | None = None


def trace(
    arguments: Arguments, *, dynamic: bool, recorded: bool, promoted: Collection[Key] = ()
) -> Traced:
    """Run the function of ``arguments`` on tracers, some numbers around it being inputs.

    Raises
    ------
    NumgradTypeError
        If it returns something that a compiled function cannot make.
    """
    parameters = arguments.parameters
    static = [(leaf.path, leaf.given) for leaf in arguments.leaves if leaf.kind == STATIC]
    captures = Captures([(parameters.name, parameters.function), *static])
    tracer = Tracer(dynamic=dynamic, source_of=lambda array: source_of(array, captures))
    tracer.owners = captures.arrays.keys()
    tracer.sources = captures.bit_generators
    sites = None
    if any(isinstance(source.value, np.ndarray) for source in captures.arrays.values()):
        sites = tracer.lines.sites = Sites(sys._getframe().f_code)
    inputs: dict[Value, Input] = {}
    owners: list[tuple[Tensor, Value]] = []
    traced_arguments = []
    for leaf in arguments.leaves:
        if leaf.kind == STATIC:
            traced_arguments.append(leaf.given)
            continue
        tensor = _argument(tracer, leaf, recorded)
        value = tracer.value(tensor)
        tracer.numbers[value] = leaf.array
        traced_arguments.append(tensor)
        owners.append((tensor, value))
        inputs[value] = Input(value, leaf)
    function, substitution = parameters.function, Substitution(captures, promoted)
    if substitution.sources:
        tracer.promotion = Promotion(tracer, substitution)
        captures.promote(substitution.sources)
        for key, source in substitution.sources.items():
            value = tracer.value(tracer.promotion.numbers[key])
            inputs[value] = Input(value, None, replace(source, treatment=READ), source.value)
    kinds = []
    if any(facts(code).asks_for_kinds for code in captures.codes):
        pairs = zip((t for t, _ in owners), arguments.dynamic, strict=True)
        kinds = [(t, type(leaf.given)) for t, leaf in pairs if leaf.shows_kind]
    drawn = diagnostics.generator_states(captures.generators)
    with ExitStack() as stack, TraceInterpreter(tracer):
        if tracer.promotion is not None:
            stack.enter_context(tracer.promotion.strict())
            function = stack.enter_context(substitution.replaced(tracer.promotion.numbers))
        try:
            with (
                FunctionState(parameters.function, captures.codes) as function_state,
                told(kinds),
                clocks_watched(parameters.name, captures.process.clocked),
                no_internal_error(
                    f"it traced {parameters.name}", parameters.function, runs_users_code=True
                ),
            ):
                out = parameters.on(function, arguments.rebuild(traced_arguments))
        except NumgradError as error:
            name_line(error, raised_at(error.__traceback__))
            raise
        tracer.leave_generators()
        leaves: list[Any] = []
        keeps = bool(function_state.writes)
        nesting = flatten((out, function_state.values) if keeps else out, leaves, DEEPEST)
        results = [_result(parameters.name, tracer, leaf) for leaf in leaves]
        results = share(tracer, leaves, results)
        if tracer.promotion is not None:
            made = [result.value for result in results if result.value is not None]
            tracer.promotion.check_results(tracer.graph, made)
            tracer.promotion = None  # the code of the user's ends here
        gradients = _Gradients(tracer, leaves, results, traced_arguments) if recorded else None
    if tracer.reseeded is not None:
        drawn["np.random"] = tracer.reseeded
    diagnostics.warn_of_draws(parameters.name, drawn, captures.generators)
    made = made_by_trace(captures)
    stored = {id(source.read()) for source in made if source.treatment == CONTENT}
    for captured in tracer.captured:
        owner = _owner(tracer, captured, captures)
        source = captured.source or captures.arrays.get(id(owner))
        entry = Input(captured.value, None, source, owner, captured.gradient)
        inputs[captured.value] = entry
        if not captured.gradient:
            owners += [(t, captured.value) for t in _owners(tracer, captured)]
        if captured.frozen and not captured.made:
            line = tracer.frozen_at.get(id(captured.array))
            array = tracer.original(captured.array)
            diagnostics.warn_of_frozen(parameters.name, array, captures, stored, line)
            del array
    known = {id(x) for captured in tracer.captured for x in _owners(tracer, captured)}
    known |= tracer.viewed
    graph = tracer.graph
    if not parameters.warned_of_loops:
        parameters.warned_of_loops = diagnostics.warn_of_loops(parameters.name, graph, tracer.lines)
    traced = Traced(
        graph,
        [inputs[v] for v in graph.inputs if v in inputs],
        results,
        nesting,
        captures,
        known,
        tracer.looked_at,
    )
    traced.made = made
    traced.state = function_state if keeps else None
    _set_outputs(tracer, traced)
    positions = {entry.value: n for n, entry in enumerate(traced.inputs)}
    calls = [node for node in graph.nodes if node.op == CALL]
    touched = {positions[v] for node in calls for v in node.params.get("writes", ())}
    traced.touched = sorted(touched)
    if sites is not None:
        written = {positions[target] for target, _ in graph.writes} | touched
        traced_arguments = [e.owner for n, e in enumerate(traced.inputs) if n not in written]
        traced_arguments += [
            source.value for key, source in captures.arrays.items() if key in tracer.viewed
        ]
        arrays = {id(x) for x in traced_arguments if type(x) is np.ndarray}
        traced.looked_at |= captures.plainly_read(arrays, sites, tracer.viewed)
    graph.labels = {entry.value: entry.name for entry in traced.inputs}
    _check_overlap(parameters.name, tracer, traced)
    if gradients is not None and gradients.values:
        traced.recorded = [results[k].number or 0 for k in gradients.positions]
        numbers = {id(tensor): positions[value] for tensor, value in owners}
        traced.wanted = [numbers[id(t)] for t in gradients.targets]
        values = [entry.value for entry in traced.inputs]
        traced.parts = cut(graph, values, gradients.cotangents, gradients.values)
    elif gradients is not None and gradients.error is not None:
        for k in gradients.positions:
            results[k].dead_end = DeadEnds(parameters.name, gradients.error)
    return traced


def _check_overlap(function: str, tracer: Tracer, traced: Traced) -> None:
    """Raise if what is written to is also known by another array."""
    written = {target for target, _ in traced.graph.writes}
    written |= {traced.inputs[n].value for n in traced.touched}
    captured = [c for c in tracer.captured if not c.frozen]
    for one in (c for c in captured if c.value in written):
        for other in captured:
            if one is not other and np.may_share_memory(one.array, other.array):
                raise NumgradNotImplementedError(
                    f"jit: {function} writes to an array of shape {one.array.shape} whose memory "
                    f"it also reads as another, of shape {other.array.shape}, made outside of it; "
                    "make the view inside of the function"
                )


def _argument(tracer: Tracer, leaf: Leaf, recorded: bool) -> Tensor:
    if leaf.kind == NUMBER:
        return tracer.number(leaf.value)
    needs = recorded and leaf.kind == TENSOR and leaf.value._requires_grad
    array = leaf.array
    scalar = leaf.kind == SCALAR
    return tracer.array(
        array.shape, array.dtype, requires_grad=needs, donated=leaf.donated, scalar=scalar
    )


def _set_outputs(tracer: Tracer, traced: Traced) -> None:
    """Number what the graph computes: results, then gradients of captured Tensors."""
    graph, value = tracer.graph, traced.captures.arrays
    graph.outputs = []
    for result in traced.results:
        result.source = value.get(id(result.gradient_of))
        if result.value is not None:
            result.number = len(graph.outputs)
            graph.outputs.append(result.value)
    present = {id(c.owner) for c in tracer.captured if c.gradient}
    for write in tracer.gradients:
        tensor, number = write.tensor, None
        if write.value is not None:
            number = len(graph.outputs)
            graph.outputs.append(write.value)
        source = value.get(id(tensor))
        traced.gradients.append(GradientResult(tensor, source, number, id(tensor) in present))
    traced.bare = [(t, value.get(id(t))) for t in tracer.without_gradient]


def _owners(tracer: Tracer, captured: Captured) -> list[Any]:
    """Tensors and arrays over the memory of something captured."""
    aliases = tracer.aliases.get(id(captured.array), ())
    return list({id(x): x for x in (captured.owner, *aliases)}.values())


def _owner(tracer: Tracer, captured: Captured, captures: Captures) -> Any:
    """The one of Tensors and arrays over the same memory that is read at each call."""
    if captured.gradient:
        return captured.owner
    results = _owners(tracer, captured)
    recorded = [t for t in results if isinstance(t, Tensor) and t._requires_grad]
    if len(recorded) > 1:
        raise NumgradNotImplementedError(
            f"jit: two Tensors of shape {recorded[0].shape} that require grad share one memory, "
            "and a compiled function knows them by it; clone() one of them"
        )
    placed = [t for t in results if id(t) in captures.arrays]
    return (*recorded, *placed, captured.owner)[0]


class _Gradients:
    """Gradients of what a function returned, traced after it.

    Attributes
    ----------
    positions, outputs
        Which leaves are differentiated, and these.
    cotangents
        Inputs of the graph for the gradients that arrive at these.
    targets, values
        The Tensors that have gradients, and those.
    error
        Why there are none, if that is so: the graph was freed, or something it needs changed.
    """

    def __init__(
        self, tracer: Tracer, leaves: list[Any], results: list[Result], arguments: list[Any]
    ) -> None:
        made = [k for k, result in enumerate(results) if result.value is not None]
        tensors = [k for k in made if isinstance(leaves[k], Tensor)]
        leading = depend_on_leaves([leaves[k] for k in tensors])
        self.positions = [k for k, leads in zip(tensors, leading, strict=True) if leads]
        self.outputs = [leaves[k] for k in self.positions]
        self.cotangents: list[Value] = []
        self.targets: list[Tensor] = []
        self.values: list[Value] = []
        self.error: NumgradError | None = None
        graph = tracer.graph
        before, inputs, count = len(graph.nodes), len(graph.inputs), len(tracer.captured)
        captured = [c.owner for c in tracer.captured if not c.gradient]
        captured += [t for aliases in tracer.aliases.values() for t in aliases]
        tensors = {id(t): t for t in (*arguments, *captured) if isinstance(t, Tensor)}
        candidates = [t for t in tensors.values() if t._requires_grad]
        if not (self.outputs and candidates):
            return
        cotangents = []
        for tensor in self.outputs:
            value = tracer.value(tensor)
            self.cotangents.append(graph.input(value.shape, value.dtype))
            cotangents.append(Tensor(TracedArray(tracer, self.cotangents[-1])))  # pyright: ignore
        with _as_leaves([t for t in captured if isinstance(t, Tensor)]):
            try:
                outputs = engine.inner_grad(self.outputs, candidates, cotangents, allow_unused=True)
            except NumgradError as error:  # a matter of the backward, if there is one
                self.error = error
                outputs = [None] * len(candidates)
        for target, g in zip(candidates, outputs, strict=True):
            if g is not None:
                self.targets.append(target)
                self.values.append(tracer.value(g))
        if not self.values:  # all that requires grad was made inside
            del graph.nodes[before:]
            del graph.inputs[inputs:]
            del tracer.captured[count:]


def _result(function: str, tracer: Tracer, leaf: Any) -> Result:
    if isinstance(leaf, Selected):
        refuse(f"{function}, which returns them,")
    if isinstance(leaf, Tensor | np.ndarray):
        return Result(value=tracer.value(leaf))
    if isinstance(leaf, Size):
        return Result(size=leaf)
    if is_atom(leaf):
        return Result(constant=leaf)
    raise NumgradTypeError(
        f"jit: {function} returns a {type(leaf).__name__}; a compiled function returns arrays, "
        "numbers, strings and None, and tuples, lists and dicts of them"
    )


@contextmanager
def _as_leaves(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Hide hooks and history of tensors: what comes of them when gradients leave the node."""
    sides = [(t, t._extra) for t in tensors]
    made = {id(t._grad_fn): t._grad_fn for t in tensors if t._grad_fn is not None}
    nodes = [(node, node.extras, node.edges) for node in made.values()]
    for tensor, _ in sides:
        tensor._extra = None
    for node, _, edges in nodes:
        node.extras, node.edges = None, (None,) * len(edges)
    try:
        yield
    finally:
        for tensor, side in sides:
            tensor._extra = side
        for node, extras, edges in nodes:
            node.extras, node.edges = extras, edges
