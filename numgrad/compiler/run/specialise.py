"""A function made for one kind of arguments: traced, compiled, called if they are of that kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from numgrad.codegen.compile import Kernel
from numgrad.codegen.locks import TRACING
from numgrad.compiler.call.signature import RECORDING, TENSOR, Arguments, CallLayout
from numgrad.compiler.call.source import CONTENT, IDENTITY, VALUE, Source
from numgrad.compiler.graph.graph import Graph
from numgrad.compiler.messages import no_internal_error
from numgrad.compiler.run.dispatch import MISS, NAMES, DispatchWriter, compiled
from numgrad.compiler.run.program import Options, Program, compile_graph
from numgrad.compiler.run.steps import KernelStep
from numgrad.compiler.run.tape import Differentiable
from numgrad.compiler.trace.promoted_numbers import Key, is_number, key_of
from numgrad.compiler.trace.tracing import Traced, trace
from numgrad.errors import NumgradAssertionError


def needed_guards(traced: Traced) -> list[Source]:
    """The guards of each call, holders before what they hold."""
    needed: dict[int, Source] = {}

    def need(source: Source) -> None:
        if source.is_filled:
            return  # a list that the function itself fills while it is traced
        for part in reversed(list(source.path)):
            if part.treatment in (IDENTITY, VALUE, CONTENT):
                needed.setdefault(id(part), part)

    for source in traced.captures.guards:
        if source.treatment == VALUE or not isinstance(source.value, dict | list | set):
            need(source)
    read = [entry.source for entry in traced.inputs]
    read += [result.source for result in traced.gradients]
    for source in (*read, *(source for _, source in traced.bare)):
        if source is not None:
            need(source)
    for source in traced.captures.contents(traced.known, traced.looked_at):
        need(source)
    for source in traced.made:
        need(source)
    return list(needed.values())


def changing_numbers(results: Iterable[Specialisation]) -> set[Key]:
    """The places of numbers that differ between specialisations, or are inputs of one.

    None if the function stores something around itself when it is traced.
    """
    values: dict[Key, set[str]] = {}
    promoted: set[Key] = set()
    for specialisation in results:
        layout = specialisation.layout
        filled = any(source.is_filled for source in specialisation.traced.captures.guards)
        if specialisation.traced.made or filled:
            return set()
        for source in filter(is_number, layout.guards):
            values.setdefault(key_of(source), set()).add(repr(source.value))
        inputs = (entry.source for entry in layout.inputs if entry.is_number)
        promoted |= {key_of(source) for source in inputs if source is not None}
    return promoted | {key for key, numbers in values.items() if len(numbers) > 1}


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
    tracing_seconds
        What it took to make it, before any kernel was compiled.
    """

    def __init__(
        self,
        number: int,
        arguments: Arguments,
        key: tuple,
        options: Options,
        dynamic: bool,
        jit: Callable[..., Any],
        promoted: Collection[Key] = (),
    ) -> None:
        self.key, self.options = key, options
        self._function = arguments.parameters.function
        self.reason: str | None = None
        self.tracing_seconds = 0.0
        leaves = arguments.dynamic
        self.traced = trace(
            arguments, dynamic=dynamic, recorded=key[-1] == RECORDING, promoted=promoted
        )
        traced, parameters, name = self.traced, arguments.parameters, options.name
        # results that depend on a captured Tensor that requires grad lead there
        as_tensors = (
            not leaves or traced.parts is not None or any(leaf.kind == TENSOR for leaf in leaves)
        )
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
                traced.touched,
                traced.graph.outputs,
                traced.recorded,
                traced.wanted,
            )
            self.program = self.tape.forward
        positions = {entry.value: n for n, entry in enumerate(traced.inputs)}
        self.layout = CallLayout(
            parameters=parameters.names,
            nestings=arguments.nestings,
            leaves=arguments.leaves,
            inputs=traced.inputs,
            results=traced.results,
            nesting=traced.nesting,
            writes=[positions[target] for target, _ in traced.graph.writes],
            touched=traced.touched,
            gradients=traced.gradients,
            bare=traced.bare,
            as_tensors=as_tensors,
            mode=key[-1],
            guards=needed_guards(traced),
            sizes=traced.graph.sizes,
            run=self.program.run,
            record=self.tape,
            number=number,
        )
        self.writer = DispatchWriter(self.layout)
        self._header, self._name = parameters.header, name
        self._forms: dict[str, Callable[..., Any]] = {}

    def _compile(self, graph: Graph, name: str) -> Program:
        with no_internal_error(f"it compiled {name}", self._function):
            return compile_graph(graph, replace(self.options, name=name))

    def _form(self, name: str, block: Callable[[], list[str]]) -> Callable[..., Any]:
        """A function of one form of the specialisation (``DispatchWriter``), made when needed."""
        cached = self._forms.get(name)
        if cached is None:
            with TRACING:
                lines = block()
                names = {**NAMES, **self.layout.names}
                cached = compiled(self._name, self._header, [lines], "return _MISS", names)
                self._forms[name] = cached
        return cached

    @property
    def enter(self) -> Callable[..., Any]:
        """Call it if arguments of its key suit; else it returns ``MISS``."""
        return self._form("enter", self.writer.cold)

    def force(self, arguments: Arguments, *, run: bool = True) -> Any:
        """Call it, or return its arrays, whatever became of the surroundings.

        Tracing itself may have changed them.
        """
        form = self._form(
            "force" if run else "force arrays",
            lambda: self.writer.cold(captures=False, run=run),
        )
        out = arguments.parameters.on(form, arguments.values)
        if out is MISS:
            raise NumgradAssertionError(
                f"jit: {self._name} was compiled for this very call and does not suit it; what it "
                "reads from outside changed its shape or dtype while it was traced"
            )
        return out

    @property
    def arrays(self) -> Callable[..., Any]:
        """The arrays that would be handed to the program, or ``MISS``."""
        return self._form("arrays", lambda: self.writer.cold(run=False))

    @property
    def raw(self) -> Callable[..., Any]:
        """Call it without looking at the arguments."""
        return self._form("raw", self.writer.raw)

    @property
    def programs(self) -> list[Program]:
        """The programs compiled so far, the backward included."""
        backward = None if self.tape is None else self.tape.compiled_backward
        return [self.program] if backward is None else [self.program, backward]

    @property
    def steps(self) -> list[KernelStep]:
        """The kernels of all programs, compiled or not."""
        results = [step for program in self.programs for step in getattr(program, "steps", ())]
        return [step for step in results if isinstance(step, KernelStep)]

    @property
    def seconds(self) -> float:
        """Seconds that tracing, and compiling or loading kernels, took so far."""
        return self.tracing_seconds + sum(step.seconds for step in self.steps)

    @property
    def kernels(self) -> list[Kernel]:
        """The native kernels that were compiled, or loaded, so far."""
        return [kernel for step in self.steps for kernel in step.kernels.values()]
