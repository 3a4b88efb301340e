"""A function made for one kind of arguments: traced, compiled, called, a node of the eager tape.

Graphs are run as functions of Tensors too: ``replay`` calls their operations again, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.history import record
from numgrad.autograd.node import Node
from numgrad.autograd.saved import keep
from numgrad.autograd.variable import Tensor, constant
from numgrad.autograd.versions import Version, check_result_current, shared_version
from numgrad.codegen.compile import Kernel
from numgrad.codegen.locks import TRACING
from numgrad.codegen.memory import owns
from numgrad.compiler.call.signature import RECORDING, TENSOR, Arguments, CallLayout
from numgrad.compiler.call.source import CONTENT, IDENTITY, VALUE, Source
from numgrad.compiler.graph.evaluate import operands, parameters
from numgrad.compiler.graph.graph import (
    CALL,
    CONSTANT,
    INPUT,
    SIZE,
    BodyOperation,
    Graph,
    TracedNode,
    Value,
)
from numgrad.compiler.messages import no_internal_error
from numgrad.compiler.run.dispatch import MISS, NAMES, DispatchWriter, compiled
from numgrad.compiler.run.program import Options, Program, compile_graph
from numgrad.compiler.run.steps import KernelStep
from numgrad.compiler.trace.custom_rules import is_linear
from numgrad.compiler.trace.cut import Cut
from numgrad.compiler.trace.promoted_numbers import Key, is_number, key_of
from numgrad.compiler.trace.traced_calls import primitive_results
from numgrad.compiler.trace.tracer import draw_from, fixed_operands
from numgrad.compiler.trace.tracing import NO_ARRAY, Traced, operation_of, trace
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, bind_recorded, state
from numgrad.core.op import Op
from numgrad.core.plan import Call
from numgrad.errors import NumgradAssertionError, NumgradNotImplementedError, NumgradRuntimeError


class Differentiable:
    """The two halves of a compiled function that is recorded, and how they fit.

    Parameters
    ----------
    name
        Name of the function.
    parts
        The cut graph.
    compile
        What makes a program of a graph, with a name.
    jit
        What makes a jitted function of a function.
    touched
        Inputs that the program writes to, besides the writes of the graph.
    outputs
        Outputs of the joint graph, for the caller.
    recorded
        Which of them are differentiated.
    wanted
        Which inputs have gradients, in the order of the outputs of ``parts.backward``.
    """

    def __init__(
        self,
        name: str,
        parts: Cut,
        compile: Callable[[Graph, str], Program],
        jit: Callable[..., Any],
        touched: Sequence[int],
        outputs: Sequence[Value],
        recorded: Sequence[int],
        variables: Sequence[int],
    ) -> None:
        self.name, self.parts, self._compile, self._jit = name, parts, compile, jit
        self.outputs, self.recorded, self.wanted = list(outputs), list(recorded), list(variables)
        self.forward = compile(parts.forward, name)
        self.op = operation_of(name)
        self.mask = sum(1 << k for k in variables)
        positions = {value: k for k, value in enumerate(parts.forward.inputs)}
        self.written = {*touched, *(positions[target] for target, _ in parts.forward.writes)}
        self.compiled_backward: Program | None = None
        self._again: Callable[..., Any] | None = None

    def __call__(self, owners: tuple, arrays: tuple) -> list[Any]:
        """Outputs, as Tensors with their place on the tape, and what is to be written."""
        kept_inputs: list[Any] = list(owners)
        for k in self.written:
            kept_inputs[k] = arrays[k].copy()
        outputs = self.forward.run(*arrays)
        count = len(self.outputs)
        retained = tuple(
            [
                array if value.weak else np.asarray(array, value.dtype)
                for value, array in zip(self.parts.forward.outputs[count:], outputs[count:])  # noqa: B905
            ]
        )
        results: list[Any] = []
        for value, array in zip(self.outputs, outputs, strict=False):
            results.append(array if value.weak else Tensor(np.asarray(array, value.dtype)))
        shared: list[Any] = []
        if retained:
            memory = {id(array): result for array, result in zip(outputs, results, strict=False)}
            ids = map(id, outputs[count : count + self.parts.kept])
            shared = [memory[i] for i in ids if i in memory]
        call = CompiledCall(
            self,
            tuple(
                [Meta(a.shape, a.dtype) if isinstance(a, np.ndarray) else NO_ARRAY for a in arrays]
            ),
            tuple([Meta(results[k]._array.shape, results[k]._array.dtype) for k in self.recorded]),
        )
        edges = tuple([edge_of(o) if self.mask >> k & 1 else None for k, o in enumerate(owners)])
        saved = (tuple(map(keep, kept_inputs)), retained)
        node: Node = record(call, self.mask, edges, saved)
        for slot, k in enumerate(self.recorded):
            tensor = results[k]
            tensor._requires_grad, tensor._grad_fn, tensor._slot = True, node, slot + 1
        if shared:
            call.sequence = node.sequence
            call.shared = [shared_version(t) for t in shared if isinstance(t, Tensor) and t.ndim]
        return [*results, *outputs[count + self.parts.kept :]]

    @cached_property
    def is_linear(self) -> bool:
        """Whether gradients are linear in cotangents: Note [Rules that are not linear]."""
        whole = self.parts.whole
        if not any(node.name == "ruled" for node in whole.nodes):
            return True
        pairs = zip(whole.inputs, self.parts.needs_whole, strict=True)
        cotangents = [value for value, (where, _) in pairs if where == "cotangent"]
        return is_linear(whole, cotangents, whole.outputs, in_doubt=True)

    @cached_property
    def is_of_the_table(self) -> bool:
        """Whether gradients are made by operations of the table only, in loops and branches too."""
        graphs = [self.parts.whole]
        for graph in graphs:
            for node in graph.nodes:
                if node.op == CALL or node.name == "ruled":
                    return False
                if isinstance(node.op, BodyOperation):
                    bodies = node.params.get("parts") or [node.params["body"]]
                    graphs += [body.graph for body in bodies]
        return True

    def backward(self) -> Program:
        """The program of the backward, compiled when first needed."""
        if self.compiled_backward is None:
            with TRACING:  # compiling rewrites the graph, so it is done once
                if self.compiled_backward is None:
                    name = f"{self.name}_backward"
                    self.compiled_backward = self._compile(self.parts.backward, name)
        return self.compiled_backward

    def again(self) -> Callable[..., Any]:
        """The backward as a jitted function of Tensors, which can be differentiated."""
        with TRACING:
            return self._again or self._written_again()

    def _written_again(self) -> Callable[..., Any]:
        graph = self.parts.whole

        def backward(*values: Any) -> Any:
            return replay(graph, values)

        backward.__name__ = f"{self.name}_backward"
        result = self._again = self._jit(backward)
        return result


def _followed(g: Any) -> bool:
    return isinstance(g, Tensor) and g.requires_grad


class CompiledCall(Call):
    """The record of a call of a compiled function."""

    __slots__ = ("nout", "out_metas", "parts", "sequence", "shared")

    def __init__(
        self, parts: Differentiable, metas: tuple[Meta, ...], outputs: tuple[Meta, ...]
    ) -> None:
        super().__init__(parts.op, metas, {})
        self.parts, self.out_metas, self.nout = parts, outputs, len(outputs)
        self.shared: list[Version] = []
        """The versions of results whose memory is kept for the backward, after ``sequence``."""
        self.sequence = 0

    @property
    def composed(self) -> bool:
        return self.parts.is_of_the_table

    def differentiable(self, k: int) -> bool:
        return k in self.parts.wanted

    def saves(self, mask: int) -> tuple[str, ...]:
        return "inputs", "kept"

    def _arguments(
        self, needs: Sequence[tuple[str, int]], g: Sequence[Any], saved: Sequence[Any]
    ) -> list[Any]:
        for version in self.shared:
            check_result_current(lambda: self.op.name, version, self.sequence)
        places = {"input": saved[0], "kept": saved[1], "cotangent": g}
        return [places[where][k] for where, k in needs]

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        parts = self.parts
        arguments = [
            np.ascontiguousarray(a) if isinstance(a, np.ndarray) and a.ndim else a
            for a in self._arguments(parts.parts.needs, g, saved)
        ]
        results = parts.backward().run(*arguments)
        out: list[Any] = [None] * len(self.metas)
        owned = 0
        handed = {id(a) for a in arguments}
        for k, array in zip(parts.wanted, results, strict=True):
            out[k] = np.asarray(array, self.metas[k].dtype)
            if id(array) not in handed and owns(out[k]):
                owned |= 1 << k
            handed.add(id(array))
        return out, owned

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        parts = self.parts
        if state.grad_enabled and not parts.is_linear and any(_followed(grad) for grad in g):
            raise NumgradRuntimeError(
                f"{self.op.name}: has a rule or a hook that is not linear in the gradient, and "
                "second derivatives of what is computed from a compiled function hand it gradients "
                "in parts; differentiate inside of ng.jit, all of what is differentiated"
            )
        saved = (values["inputs"], values["kept"])
        results = parts.again()(*self._arguments(parts.parts.needs_whole, g, saved))
        out: list[Any] = [None] * len(self.metas)
        for k, tensor in zip(parts.wanted, results, strict=True):
            out[k] = tensor
        return out


def needed_guards(traced: Traced) -> list[Source]:
    """The guards of each call, holders before what they hold."""
    needed: dict[int, Source] = {}

    def need(source: Source) -> None:
        if source.is_filled:
            return  # a list that the function itself fills while it is traced
        for step in reversed(list(source.path)):
            if step.treatment in (IDENTITY, VALUE, CONTENT):
                needed.setdefault(id(step), step)

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
            state=traced.state,
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
            "force" if run else "force arrays", lambda: self.writer.cold(captures=False, run=run)
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


def replay(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Outputs of a graph, computed with operations on Tensors that may be recorded or traced.

    What an operation notes besides its results is a constant to whoever reads it, as in the first
    run: gradient formulas are written so (what follows the operands they get from the operands).
    """
    sizes = graph.sizes
    # an axis that no input has keeps its symbol: a step reads lengths of what is around it
    lengths: dict[int, Any] = {k: sizes.of_axis(k) for k in range(len(sizes.hints))}
    for value, array in zip(graph.inputs, inputs, strict=True):
        for expected, n in zip(value.shape, getattr(array, "shape", ()), strict=True):
            axis = sizes.number(sizes.resolve(expected))
            if axis is not None:
                lengths[axis] = n

    def length(n: Any) -> Any:
        return sizes.evaluate(n, lengths)

    known: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    read = {v for node in graph.nodes for v in node.inputs}.union(graph.outputs)
    for node in graph.nodes:
        if node.op != INPUT:
            results = _compute(node, known, length, read)
            known.update(zip(node.outputs, results, strict=False))
    return tuple([known[value] for value in graph.outputs])


def _compute(
    node: TracedNode, known: dict[Value, Any], length: Any, read: set[Value]
) -> tuple[Any, ...]:
    """Results of a node, and what its operation notes besides if that is read."""
    value = node.outputs[0]
    if node.op == CONSTANT:
        number = node.params["value"]
        return (number if value.weak or number is None else np.asarray(number, value.dtype),)
    if node.op == SIZE:
        return (length(node.params["size"]),)
    if not isinstance(node.op, Op):
        raise NumgradNotImplementedError(
            f"jit: {node.line or 'a call of a Python function'}: a compiled function that calls "
            "Python code cannot be differentiated twice; run it eagerly (ng.config.jit = False)"
        )
    inputs = operands(node, [known[v] for v in node.inputs])
    params = parameters(node, length)
    if node.op is draw_from:
        inputs = fixed_operands(params["draws"], inputs)
    aside = node.outputs[len(node.outputs) - len(node.op.auxiliaries) :]
    noted: Any = ()
    if read.isdisjoint(aside):
        out = node.op(*inputs, **params)
    else:
        out, call = bind_recorded(node.op, tuple(inputs), params)
        # there is no record of a batch, nor of what has no gradient
        noted = _auxiliaries(node.op, inputs, params) if call is None else map(constant, call.aux)
    results = *(out if isinstance(out, tuple) else (out,)), *noted
    return tuple(
        r.item() if v.weak and isinstance(r, Tensor) and isinstance(r._array, np.ndarray) else r
        for v, r in zip(node.outputs, results, strict=False)
    )


def _auxiliaries(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    absent = tuple([k for k, a in enumerate(inputs) if a is None])
    present = tuple([a for a in inputs if a is not None])
    settings = tuple(params.items())
    return bind(notes, present, {"op": op, "settings": settings, "without": absent, "batches": ()})


# ------------------------------------------------------------------------------------------- notes


@primitive(internal=True, method=False, outputs=True, differentiable=False)
def notes(*inputs, op, settings, without, batches):
    """The auxiliaries of ``op`` for operands of which those at ``without`` are left out.

    ``batches`` says, outermost first, how many examples there are and which operands have an axis
    of them in front: how an operation lays out its auxiliaries is known for one example only.
    """
    if not batches:
        return tuple(op.run(_without(inputs, without), dict(settings))[1].aux)
    (size, batched), rest = batches[0], batches[1:]
    if not size:
        metas = [Meta(x.shape, x.dtype) for x in inputs]
        results = _results(*metas, op=op, settings=settings, without=without, batches=batches)
        return tuple([np.zeros(m.shape, m.dtype) for m in results])
    examples = [
        notes.function(
            *[np.asarray(x[k]) if b else x for x, b in zip(inputs, batched, strict=True)],
            op=op, settings=settings, without=without, batches=rest,
        )
        for k in range(size)
    ]  # fmt: skip
    return tuple(map(np.stack, zip(*examples, strict=True)))


def _without(inputs: Sequence[Any], without: tuple[int, ...]) -> list[Any]:
    results = list(inputs)
    for position in without:
        results.insert(position, None)
    return results


@notes.shape
def _results(*inputs, op, settings, without, batches):
    if not batches:
        return primitive_results(op, _without(inputs, without), dict(settings))[1]
    size, batched = batches[0]
    one = [Meta(m.shape[1:], m.dtype) if b else m for m, b in zip(inputs, batched, strict=True)]
    results = _results(*one, op=op, settings=settings, without=without, batches=batches[1:])
    return tuple([Meta((size, *m.shape), m.dtype) for m in results])


@notes.batch
def _of_batches(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    here = (size, tuple([o.batched for o in operands]))
    values = tuple([o.value for o in operands])
    return bind(op, values, {**params, "batches": (here, *params["batches"])})
