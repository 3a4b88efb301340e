"""A call of a compiled function on the eager tape: one node, whose backward is compiled too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.history import record
from numgrad.autograd.node import Node
from numgrad.autograd.saved import keep
from numgrad.autograd.variable import Tensor
from numgrad.autograd.versions import Version, check_result_current, shared_version
from numgrad.codegen.locks import TRACING
from numgrad.compiler.graph.graph import Graph, Value
from numgrad.compiler.run.program import Program, owns
from numgrad.compiler.run.replay import replay
from numgrad.compiler.trace.custom_rules import is_linear
from numgrad.compiler.trace.cut import Cut
from numgrad.compiler.trace.tracing import NO_ARRAY, operation_of
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.plan import Call
from numgrad.errors import NumgradRuntimeError


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
        if state.grad_enabled and not parts.is_linear and any(_followed(part) for part in g):
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
