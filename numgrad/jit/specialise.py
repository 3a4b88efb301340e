"""A function made for one kind of arguments: traced, compiled, and called if they are of that kind."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from numgrad.autograd import engine
from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.jit import options as backend
from numgrad.jit.closure import IDENTITY, VALUE, Place, Surroundings, is_atom
from numgrad.jit.arrays import TracedArray
from numgrad.jit.cut import cut, Cut
from numgrad.jit.dispatch import NAMES, Input, Layout, Result, Writer, dispatcher
from numgrad.jit.graph import Graph, Value
from numgrad.jit.options import Options, Program
from numgrad.jit.signature import NUMBER, STATIC, TENSOR, Arguments, flatten
from numgrad.jit.sizes import Size
from numgrad.jit.tape import Differentiable, without_hooks
from numgrad.jit.trace import Tracer
from numgrad.op.base import state

INFERENCE_MODE, RECORDING, PLAIN = 3, 2, 1
"""What goes on in a thread, as ``state.mode`` says it: the last is ``no_grad``."""


@dataclass
class Traced:
    """What one run of a function left behind."""

    graph: Graph
    inputs: list[Input]
    results: list[Result]
    nesting: Any
    surroundings: Surroundings
    recorded: list[int] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)
    parts: Cut | None = None


def trace(arguments: Arguments, *, dynamic: bool, recorded: bool) -> Traced:
    """Run the function of ``arguments`` on tracers.

    Raises
    ------
    NumgradTypeError
        If it returns something that a compiled function cannot make.
    NumgradRuntimeError
        If it writes to an argument that is not donated.
    """
    parameters = arguments.parameters
    static = [(leaf.path, leaf.given) for leaf in arguments.leaves if leaf.kind == STATIC]
    surroundings = Surroundings([(parameters.name, parameters.function), *static])
    tracer = Tracer(dynamic=dynamic, is_source=lambda array: id(array) in surroundings.arrays)
    inputs: dict[Value, Input] = {}
    given = []
    for leaf in arguments.leaves:
        if leaf.kind == STATIC:
            given.append(leaf.given)
            continue
        if leaf.kind == NUMBER:
            tensor = tracer.number(leaf.value)
        else:
            needs = recorded and leaf.kind == TENSOR and leaf.value._requires_grad
            tensor = tracer.array(leaf.array.shape, leaf.array.dtype, requires_grad=needs)
        given.append(tensor)
        value = tracer.value(tensor)
        inputs[value] = Input(value, leaf)
    with tracer:
        out = parameters.call(arguments.rebuild(given))
        leaves: list[Any] = []
        nesting = flatten(out, leaves)
        results = [_result(parameters.name, tracer, leaf) for leaf in leaves]
        gradients = _Gradients(tracer, leaves, given) if recorded else None
    for captured in tracer.captured:
        place = surroundings.arrays.get(id(captured.source))
        inputs[captured.value] = Input(captured.value, None, place, captured.source)
        if captured.frozen:
            _warn_of_frozen(parameters.name, captured)
    graph = tracer.graph
    graph.outputs = [r.value for r in results if r.value is not None]
    for number, result in enumerate(r for r in results if r.value is not None):
        result.number = number
    ordered = [inputs[v] for v in graph.inputs if v in inputs]
    traced = Traced(graph, ordered, results, nesting, surroundings)
    _check_writes(parameters.name, traced)
    if gradients is not None and gradients.found:
        numbers = {id(leaf): r.number for leaf, r in zip(leaves, results, strict=True)}
        traced.recorded = [numbers[id(t)] for t in gradients.outputs]
        positions = {entry.value: n for n, entry in enumerate(ordered)}
        traced.wanted = [positions[tracer.value(t)] for t in gradients.targets]
        traced.parts = cut(graph, [e.value for e in ordered], gradients.cotangents, gradients.found)
    return traced


class _Gradients:
    """Gradients of what a function returned, traced after it.

    Attributes
    ----------
    outputs
        The Tensors that are differentiated.
    cotangents
        Inputs of the graph for the gradients that arrive at these.
    targets, found
        The Tensors that have gradients, and those.
    """

    def __init__(self, tracer: Tracer, leaves: list[Any], given: list[Any]) -> None:
        unique = {id(t): t for t in leaves if isinstance(t, Tensor) and t.requires_grad}
        self.outputs = list(unique.values())
        self.cotangents: list[Value] = []
        self.targets: list[Tensor] = []
        self.found: list[Value] = []
        if not self.outputs:
            return
        captured = [c.source for c in tracer.captured]
        candidates = [t for t in (*given, *captured) if isinstance(t, Tensor) and t._requires_grad]
        cotangents = []
        for tensor in self.outputs:
            value = tracer.value(tensor)
            self.cotangents.append(tracer.graph.input(value.shape, value.dtype))
            cotangents.append(Tensor(TracedArray(tracer, self.cotangents[-1])))  # pyright: ignore
        with without_hooks([t for t in captured if isinstance(t, Tensor)]):
            found = engine.grad(self.outputs, candidates, cotangents, allow_unused=True)
        for target, g in zip(candidates, found, strict=True):
            if g is not None:
                self.targets.append(target)
                self.found.append(tracer.value(g))


def _result(function: str, tracer: Tracer, leaf: Any) -> Result:
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


def _warn_of_frozen(function: str, captured: Any) -> None:
    source = captured.source
    warnings.warn(
        f"jit: {function} uses an array of shape {source.shape} and dtype {source.dtype} that "
        "plain NumPy made while it was traced, or that was found in no variable; its present "
        "content becomes part of the compiled function; make it with numgrad functions "
        "(ng.arange, ng.zeros), or outside of the function",
        UserWarning,
        stacklevel=2,
    )


def _check_writes(function: str, traced: Traced) -> None:
    """Raise if an argument is written to that may not be."""
    inputs = {entry.value: entry for entry in traced.inputs}
    for target, value in traced.graph.writes:
        leaf = inputs[target].leaf
        if leaf is not None and not leaf.donated:
            line = f"{value.node.line}: " if value.node.line else ""
            raise NumgradRuntimeError(
                f"jit: {line}{function} writes to its argument {leaf.path} in place, whose memory "
                f'belongs to the caller; declare ng.jit(..., donate="{leaf.path}"), or write to a '
                "clone()"
            )


def needed_guards(surroundings: Surroundings, inputs: list[Input]) -> list[Place]:
    """What is to be checked at each call, holders before what they hold."""
    needed: dict[int, Place] = {}

    def need(place: Place) -> None:
        for part in reversed(list(place.path)):
            if part.treatment in (IDENTITY, VALUE):
                needed.setdefault(id(part), part)

    for place in surroundings.guards:
        if place.treatment == VALUE or callable(place.value):
            need(place)
    for entry in inputs:
        if entry.place is not None:
            need(entry.place)
    return list(needed.values())


class Specialisation:
    """A function compiled for arguments of one key.

    Attributes
    ----------
    key
        See ``Arguments.key``; with the mode of the thread.
    program
        What computes.
    traced
        What it was made from.
    seconds
        Time it took to compile.
    """

    def __init__(
        self,
        number: int,
        arguments: Arguments,
        key: tuple,
        options: Options,
        dynamic: bool,
        jit: Callable[..., Any],
    ) -> None:
        self.key = key
        mode = key[-1]
        recorded = mode == RECORDING and any(leaf.kind == TENSOR for leaf in arguments.leaves)
        self.traced = trace(arguments, dynamic=dynamic, recorded=recorded)
        self.path_of = {leaf.path: leaf for leaf in arguments.leaves}
        traced, parameters = self.traced, arguments.parameters
        donated = tuple(
            n
            for n, entry in enumerate(traced.inputs)
            if entry.leaf is not None and entry.leaf.donated
        )
        self.seconds = 0.0
        self.options = replace(options, donated=donated)
        self.tape: Differentiable | None = None
        if traced.parts is None:
            self.program = self._compile(traced.graph, options.name)
        else:
            self.tape = Differentiable(
                options.name, traced.parts, self._compile, jit, traced.graph.outputs,
                traced.recorded, traced.wanted,
            )  # fmt: skip
            self.program = self.tape.forward
        dynamic_leaves = arguments.dynamic
        positions = {entry.value: n for n, entry in enumerate(traced.inputs)}
        self.layout = Layout(
            header=parameters.header,
            parameters=parameters.names,
            nestings=arguments.nestings,
            leaves=arguments.leaves,
            inputs=traced.inputs,
            results=traced.results,
            nesting=traced.nesting,
            writes=[positions[target] for target, _ in traced.graph.writes],
            as_tensors=not dynamic_leaves or any(leaf.kind == TENSOR for leaf in dynamic_leaves),
            mode=mode,
            guards=needed_guards(traced.surroundings, traced.inputs),
            sizes=traced.graph.sizes,
            run=self.program.run,
            record=self.tape,
            number=number,
        )
        self.writer = Writer(self.layout)
        self.enter = self._function(surroundings=True)

    def _compile(self, graph: Graph, name: str) -> Program:
        begin = time.perf_counter()
        program = backend.backend(graph, replace(self.options, name=name))
        self.seconds += time.perf_counter() - begin
        return program

    def _function(self, *, surroundings: bool) -> Callable[..., Any]:
        """The function that returns ``MISS`` unless the arguments suit."""
        name = self.layout.header
        return dispatcher(
            name, self.layout.header, [self.writer], "return _MISS", dict(NAMES),
            surroundings=surroundings,
        )  # fmt: skip

    def enter_anyway(self) -> Callable[..., Any]:
        """The same for a function whose surroundings changed while it was traced."""
        return self._function(surroundings=False)


def mode_of_thread() -> int:
    """What goes on in this thread, without hooks for saved tensors and the search for anomalies."""
    if state.inference:
        return INFERENCE_MODE
    return RECORDING if state.grad_enabled else PLAIN
