"""A function made for one kind of arguments: traced, compiled, called if they are of that kind."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from numgrad.autograd import engine
from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradNotImplementedError, NumgradRuntimeError, NumgradTypeError
from numgrad.jit.arrays import TracedArray
from numgrad.jit.closure import IDENTITY, VALUE, Place, Surroundings, is_atom
from numgrad.jit.cut import Cut, cut
from numgrad.jit.dispatch import NAMES, RECORDING, Input, Layout, Result, Writer, compiled
from numgrad.jit.graph import Graph, Value
from numgrad.jit.messages import warn
from numgrad.jit.options import Options, Program
from numgrad.jit.program import compile_graph
from numgrad.jit.progress import announced
from numgrad.jit.signature import NUMBER, STATIC, TENSOR, Arguments, flatten
from numgrad.jit.sizes import Size
from numgrad.jit.tape import Differentiable, without_hooks
from numgrad.jit.trace import Captured, Tracer


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
        source = _source(tracer, captured, surroundings)
        place = surroundings.arrays.get(id(source))
        inputs[captured.value] = Input(captured.value, None, place, source)
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
        traced.recorded = [results[k].number or 0 for k in gradients.places]
        positions = {entry.value: n for n, entry in enumerate(ordered)}
        traced.wanted = [positions[tracer.value(t)] for t in gradients.targets]
        traced.parts = cut(graph, [e.value for e in ordered], gradients.cotangents, gradients.found)
    return traced


def _source(tracer: Tracer, captured: Captured, surroundings: Surroundings) -> Any:
    """Of Tensors and arrays over the same memory the one to read at each call."""
    aliases = tracer.aliases.get(captured.value, ())
    found = list({id(x): x for x in (captured.source, *aliases)}.values())
    recorded = [t for t in found if isinstance(t, Tensor) and t._requires_grad]
    if len(recorded) > 1:
        raise NumgradNotImplementedError(
            f"jit: two Tensors of shape {recorded[0].shape} that require grad share one memory, "
            "and a compiled function knows them by it; clone() one of them"
        )
    placed = [t for t in found if id(t) in surroundings.arrays]
    return (*recorded, *placed, captured.source)[0]


class _Gradients:
    """Gradients of what a function returned, traced after it.

    Attributes
    ----------
    places, outputs
        Which leaves are differentiated, and these.
    cotangents
        Inputs of the graph for the gradients that arrive at these.
    targets, found
        The Tensors that have gradients, and those.
    """

    def __init__(self, tracer: Tracer, leaves: list[Any], given: list[Any]) -> None:
        self.places = [k for k, t in enumerate(leaves) if isinstance(t, Tensor) and t.requires_grad]
        self.outputs = [leaves[k] for k in self.places]
        self.cotangents: list[Value] = []
        self.targets: list[Tensor] = []
        self.found: list[Value] = []
        if not self.outputs:
            return
        graph = tracer.graph
        before = len(graph.nodes)
        captured = [c.source for c in tracer.captured]
        captured += [t for aliases in tracer.aliases.values() for t in aliases]
        tensors = {id(t): t for t in (*given, *captured) if isinstance(t, Tensor)}
        candidates = [t for t in tensors.values() if t._requires_grad]
        cotangents = []
        for tensor in self.outputs:
            value = tracer.value(tensor)
            self.cotangents.append(graph.input(value.shape, value.dtype))
            cotangents.append(Tensor(TracedArray(tracer, self.cotangents[-1])))  # pyright: ignore
        with without_hooks([t for t in captured if isinstance(t, Tensor)]):
            found = engine.grad(self.outputs, candidates, cotangents, allow_unused=True)
        for target, g in zip(candidates, found, strict=True):
            if g is not None:
                self.targets.append(target)
                self.found.append(tracer.value(g))
        if not self.found:  # all that requires grad was made inside
            del graph.nodes[before:]
            graph.inputs = [value for value in graph.inputs if value not in self.cotangents]


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
    warn(
        f"jit: {function} uses an array of shape {source.shape} and dtype {source.dtype} that "
        "plain NumPy made while it was traced, or that was found in no variable; its present "
        "content becomes part of the compiled function; make it with numgrad functions "
        "(ng.arange, ng.zeros), or outside of the function"
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
        if place.is_length and place.read() != place.value:
            return  # a list that the function itself fills while it is traced
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
        See ``Arguments.key``; the mode of the thread comes last.
    traced
        What it was made from.
    layout
        What its dispatcher depends on.
    program
        What computes; of a function that is recorded on the tape, its forward.
    tape
        Forward and backward of a function that is recorded.
    reason
        What set the call that it was made for apart from earlier ones.
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
        self.key, self.options = key, options
        self.reason: str | None = None
        self.seconds, self.compiles, self.cache_hits = 0.0, 0, 0
        leaves = arguments.dynamic
        as_tensors = not leaves or any(leaf.kind == TENSOR for leaf in leaves)
        self.traced = trace(
            arguments, dynamic=dynamic, recorded=as_tensors and key[-1] == RECORDING
        )
        traced, parameters, name = self.traced, arguments.parameters, options.name
        self.tape: Differentiable | None = None
        inputs = enumerate(traced.inputs)
        if traced.parts is None:  # the tape keeps inputs for the backward
            donated = [n for n, entry in inputs if entry.leaf is not None and entry.leaf.donated]
            self.options = replace(options, donated=tuple(donated))
        if traced.parts is None:
            self.program = self._compile(traced.graph, name)
        else:
            self.tape = Differentiable(
                name,
                traced.parts,
                self._compile,
                jit,
                traced.graph.outputs,
                traced.recorded,
                traced.wanted,
            )
            self.program = self.tape.forward
        positions = {entry.value: n for n, entry in enumerate(traced.inputs)}
        self.layout = Layout(
            parameters=parameters.names,
            nestings=arguments.nestings,
            leaves=arguments.leaves,
            inputs=traced.inputs,
            results=traced.results,
            nesting=traced.nesting,
            writes=[positions[target] for target, _ in traced.graph.writes],
            as_tensors=as_tensors,
            mode=key[-1],
            guards=needed_guards(traced.surroundings, traced.inputs),
            sizes=traced.graph.sizes,
            run=self.program.run,
            record=self.tape,
            number=number,
        )
        self.writer = Writer(self.layout)
        self._header, self._name = parameters.header, name
        self._forms: dict[str, Callable[..., Any]] = {}

    def _compile(self, graph: Graph, name: str) -> Program:
        begin = time.perf_counter()
        with announced(f"compiling {name} ({len(graph.nodes)} operations)"):
            program = compile_graph(graph, replace(self.options, name=name))
        self.seconds += time.perf_counter() - begin
        self.compiles += 1
        self.cache_hits += bool(getattr(program, "cached", False))
        return program

    def _form(self, name: str, block: Callable[[], list[str]]) -> Callable[..., Any]:
        """A function of one form of the specialisation (see ``Writer``), made when needed."""
        found = self._forms.get(name)
        if found is None:
            names = {**NAMES, **self.layout.names}
            lines = block()
            names.update(self.layout.names)  # writing may have added some
            found = compiled(self._name, self._header, [lines], "return _MISS", names)
            self._forms[name] = found
        return found

    @property
    def enter(self) -> Callable[..., Any]:
        """Call it if arguments of its key suit; else it returns ``MISS``."""
        return self._form("enter", self.writer.cold)

    @property
    def enter_anyway(self) -> Callable[..., Any]:
        """The same whatever became of the surroundings, which tracing may have changed."""
        return self._form("anyway", lambda: self.writer.cold(surroundings=False))

    @property
    def arrays(self) -> Callable[..., Any]:
        """The arrays that would be handed to the program, or ``MISS``."""
        return self._form("arrays", lambda: self.writer.cold(run=False))

    @property
    def arrays_anyway(self) -> Callable[..., Any]:
        """The same whatever became of the surroundings."""
        return self._form("arrays anyway", lambda: self.writer.cold(surroundings=False, run=False))

    @property
    def raw(self) -> Callable[..., Any]:
        """Call it without looking at the arguments."""
        return self._form("raw", self.writer.raw)

    @property
    def programs(self) -> list[Program]:
        """What was compiled so far, the backward included."""
        backward = None if self.tape is None else self.tape.compiled_backward
        return [self.program] if backward is None else [self.program, backward]
