"""The step of a loop as a graph of its own, traced within the trace of what is around it.

Note [Bodies]
-------------
A body is a graph whose inputs are what the step is given, then what it reads from outside; these
become operands of the loop. Lengths are those of the trace around it. Nothing else may come out of
a step than its results: it calls no Python code and writes to no memory but its own. The random
numbers that it draws are inputs, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import CALL, INPUT, Graph, Value
from numgrad.compiler.graph.sizes import Size, Sizes
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.cut import ancestors, extract
from numgrad.compiler.trace.interpreter import TraceInterpreter
from numgrad.compiler.trace.side_effects import SideEffects
from numgrad.compiler.trace.tracer import Tracer
from numgrad.core.draws import Draw, Draws, words_of
from numgrad.core.formula import Meta
from numgrad.core.interpreter import ThreadSettings, state
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradTraceError

_OWN = (
    "the target lies outside of the step, which gives its results by returning them; write to a "
    "copy, or to an array that the step makes"
)
_DEPENDS = (
    "what is drawn depends on what a branch computes, and a compiled branch has its random numbers "
    "drawn before it; draw standard numbers before the branch and transform them, as in "
    "mean + scale * rng.standard_normal()"
)


@dataclass(frozen=True)
class TracedBody:
    """A step: its graph, and what it reads from outside, the last inputs of that.

    The results of ``draws`` are the inputs before these: Note [Draws of a body] in ``draws``. Their
    operands may be graphs, which compute them from ``outside``. In their place are the states of
    ``sources`` if these are carried, and what comes after each is a result, last of all.
    """

    graph: Graph
    outside: list[Any]
    weak: list[bool]
    draws: list[Draw | Draws]
    sources: list[Any]


class DependentDrawError(NumgradTraceError):
    """Error of a draw that depends on what the step computes."""


class BodyTracer(Tracer):
    """Records a step, inside of another trace or on its own."""

    inner = True

    def __init__(self, sizes: Sizes | None = None, carries: bool = False) -> None:
        super().__init__(dynamic=False)
        self.carries = carries
        self.generators: dict[int, tuple[Any, Value, Value]] = {}
        around = getattr(state.ground, "tracer", None)
        self.around: Tracer | None = around
        if around is not None:
            self.lines.sites = around.lines.sites
        if sizes is None and around is not None:
            sizes = around.sizes
        if sizes is not None:
            self.graph.sizes = self.sizes = sizes
        self.outside: list[Any] = []
        self._lengths: dict[Any, Any] = {}
        self._entered: dict[int, tuple[Any, TracedArray]] = {}
        self.drawings: list[tuple[Draw | Draws, str | None]] = []
        self._drawn: list[Value] = []

    def given(self, meta: Meta, *, weak: bool = False) -> Tensor:  # pyright: ignore
        """An input."""
        array = TracedArray(self, self.graph.input(meta.shape, meta.dtype, weak=weak))
        array.locked = _OWN
        return Tensor(array)  # pyright: ignore

    def lift(self, x: Any, dtype: Any = None) -> TracedArray:
        """Anything as an array of the body; what is none becomes an input."""
        if isinstance(x, Batched):  # of a batch around the loop, whose rule takes it
            return self._from_outside(x, x)
        array: Any = x._array if isinstance(x, Tensor) else x
        if isinstance(array, TracedArray):
            return array if array.tracer is self else self._from_outside(x, array)
        if isinstance(x, Tensor) or (isinstance(x, np.ndarray) and self.around is not None):
            return self._from_outside(x, array)
        return super().lift(x, dtype)

    def freeze(self, array: np.ndarray, *, made: bool = False) -> TracedArray:
        """An array that is made in the step: one of the trace around it, the same in all steps."""
        if not array.ndim:
            return super().freeze(array)
        x = array if self.around is None else Tensor(self.around.freeze(array, made=made))  # pyright: ignore
        return self._from_outside(x, getattr(x, "_array", x))

    def _from_outside(self, x: Any, array: Any) -> TracedArray:
        cached = self._entered.get(id(array))
        if cached is not None:
            return cached[1]
        around = None if isinstance(x, Batched) else self.around
        value = array if around is None else around.lift(x).value
        number = getattr(value, "constant", None)
        if number is not None:
            return TracedArray(self, self.constant(number, None if value.weak else value.dtype))
        weak = getattr(value, "weak", False)
        shape = tuple(map(self._own, value.shape))
        traced = TracedArray(self, self.graph.input(shape, value.dtype, weak=weak))
        traced.locked = _OWN
        self.outside.append(x)
        self._entered[id(array)] = (array, traced)  # kept, so that its id stays its own
        return traced

    def draw(self, draws: Draw | Draws) -> tuple[Value, ...]:
        """Random numbers, which the body is given, or draws from states that it is given."""
        if self.carries or any(id(source) in self.begun for source in draws.sources):
            return self.drawn_from_states(draws)
        self.drawings.append((draws, self.lines.current()))
        made = tuple([self.graph.input(tuple(s), d) for s, d in draws.results])
        self._drawn += made
        return made

    def reseed(self, seed: Any) -> None:
        """Seed NumPy's global generator here, at each step."""
        source = np.random.get_bit_generator()  # pyright: ignore
        self._states_around([source])
        self._put_outside([source], [self.freeze(words_of(source), made=True).value])
        tracer: Any = self
        while tracer is not None:
            tracer.reseeded = np.random.get_state()
            tracer = getattr(tracer, "around", None)

    def _states_around(self, sources: Sequence[Any]) -> Sequence[Value]:
        """The states of generators that the step has come to."""
        if not self.carries:
            raise DependentDrawError(f"{self.lines.current() or 'jit'}: {_DEPENDS}")
        for source in sources:
            if id(source) not in self.generators:
                words = words_of(source)
                first = self.graph.input(words.shape, words.dtype)
                self.generators[id(source)] = (source, first, first)
        return [self.generators[id(source)][2] for source in sources]

    def _put_outside(self, sources: Sequence[Any], states: Sequence[Value]) -> None:
        """Let the step go on from these states."""
        for source, now in zip(sources, states, strict=True):
            self.generators[id(source)] = (source, self.generators[id(source)][1], now)

    def finished(self, input_count: int, outputs: Sequence[Value]) -> TracedBody:
        """The body, whose inputs are put in order."""
        weak = [v.weak for v in outputs]
        graph = self.graph
        graph.outputs = [self.strong(v) for v in outputs]
        if self.generators:
            sources, first, last = map(list, zip(*self.generators.values(), strict=True))
            read = [v for v in graph.inputs[input_count:] if v not in first]
            order = [*graph.inputs[:input_count], *first, *read]
            whole = extract(graph, order, [*graph.outputs, *last])
            return TracedBody(whole, self.outside, weak, [], sources)
        if not self.drawings:
            return TracedBody(graph, self.outside, weak, [], [])
        drawn = set(self._drawn)
        read = [v for v in graph.inputs[input_count:] if v not in drawn]
        draws = [
            draw.on(lambda x, _, line=line: self._before(x, read, line))
            for draw, line in self.drawings
        ]
        order = [*graph.inputs[:input_count], *self._drawn, *read]
        return TracedBody(extract(graph, order, graph.outputs), self.outside, weak, draws, [])

    def release(self) -> None:
        """Let go of what was met: who else has an array shows by its references."""
        self._entered.clear()
        self.outside = []

    def _before(self, x: Any, read: Sequence[Value], line: str | None) -> Any:
        """A parameter of a draw; of what the body reads a graph computes it."""
        array: Any = x._array if isinstance(x, Tensor) else x
        if not isinstance(array, TracedArray) or array.tracer is not self:
            return x
        value = array.value
        if value.constant is not None:
            return value.constant
        if any(v.node.op == INPUT and v not in read for v in ancestors([value])):
            raise DependentDrawError(f"{line or 'jit'}: {_DEPENDS}")
        return extract(self.graph, read, [value])

    def _own(self, n: Any) -> Any:
        """A length around the body as one of its own."""
        if not isinstance(n, Size) or n.sizes is self.sizes:
            return n
        key = n.sizes.known(n.terms)
        if key not in self._lengths:
            self._lengths[key] = self.sizes.axis(n.hint)
        return self._lengths[key]


def own_memory(carry: Sequence[Tensor]) -> list[Tensor]:
    """Inputs of a body as memory of its own, to which it may write; the inputs stay."""
    return [Tensor(x._array.copy()) for x in carry]  # pyright: ignore


def trace_body(
    function: Callable[[Sequence[Tensor]], Sequence[Any]],
    metas: Sequence[Meta],
    weak: Sequence[bool] = (),
    sizes: Sizes | None = None,
    what: str = "a step of a compiled loop",
    draws: bool = False,
    carries: bool = False,
    watched: bool = True,
    again: bool = False,
) -> TracedBody:
    """Trace a step for inputs of these shapes and dtypes; ``function`` returns a flat list.

    Errors say ``what`` it is; ``draws`` says that random numbers may be drawn for it, ``carries``
    that it draws them from states of generators, which it is given and returns. Lengths are
    ``sizes``, or else those of the trace around it: what is made from a body has its lengths, which
    may be those of an earlier trace. What is not has the user's code in it, which is ``watched``,
    and traced ``again`` if it keeps something new: Note [Side effects of steps] in
    ``side_effects``.
    """
    effects = SideEffects(what, function, again=again) if watched and sizes is None else None
    tracer = BodyTracer(sizes, carries)
    flags = [*weak, *[False] * (len(metas) - len(weak))]
    with TraceInterpreter(tracer):
        with ThreadSettings(grad_enabled=False, constant=False, mutation=None):
            inputs = [tracer.given(m, weak=w) for m, w in zip(metas, flags, strict=True)]
            with effects or nullcontext():
                results = function(inputs)
            outputs = [tracer.value(x) for x in results]
        body = tracer.finished(len(metas), outputs)
        tracer.release()
    if effects is not None and effects.grown and not again:
        options: dict[str, Any] = {"what": what, "draws": draws, "carries": carries}
        return trace_body(function, metas, weak, again=True, **options)
    called = [node.line for node in body.graph.nodes if node.op == CALL]
    if body.draws and not draws:
        called += [line for _, line in tracer.drawings]
    if called:
        raise NumgradTraceError(
            f"{called[0] or 'jit'}: {what} calls Python code or draws random numbers, which is not "
            "done where it may run any number of times; do it before, and pass on what it gives"
        )
    return body
