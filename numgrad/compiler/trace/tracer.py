"""The tracer: operations of a function that runs once, written into a graph.

Note [Tracing a function]
-------------------------
Arguments are Tensors over ``TracedArray``s, which know the value of the graph that they are.
Tape, hooks and modes are those of eager code: ``TraceInterpreter`` replaces the computing alone.
So gradients are traced as they are computed, by the formulas. What belongs to nobody in the trace,
Tensors and ndarrays of the world around, is *captured*: an input of the graph, read at each call.
An ndarray that plain NumPy made during the trace is captured too, but *frozen*: there is nothing to
read at the next call, so its content is part of the compiled function.

Note [Generators of a trace]
----------------------------
Numbers of a generator that was there before the function are drawn by a call with effects. One that
the function makes (``default_rng(0)``, a copy) starts afresh at each call, also in a step or in
several threads at once: its state is a value of the graph, from which ``draw_from`` draws.

Note [Generators that are carried]
----------------------------------
The random numbers of a loop are drawn before it if they can be (Note [Draws of a body] in
``core.draws``). They cannot where a parameter, a branch or the number of steps follows from what
the steps compute. Then the state of each generator that a step draws from is a carry, and
``draw_from`` is a function of a state, which returns the state that comes next: so a step can be
computed again, for gradients, with the same numbers. Before the loop the state is taken from the
generator, and put there after it.

All examples of a batch share one state, from which the numbers of all are drawn in turn. Where each
has numbers of its own the state has an axis of examples with equal rows; where it has none, as for
directions to differentiate along, all have the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any
from weakref import ref

import numpy as np

from numgrad.autograd.batching.selected import levels
from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph import evaluate
from numgrad.compiler.graph.graph import CALL, INPUT, Meta as Result, Shape, TracedNode, Value
from numgrad.compiler.graph.sizes import Size, hinted, specialised
from numgrad.compiler.trace.arrays import CaptureBuilder, TracedArray
from numgrad.compiler.trace.cut import extract
from numgrad.compiler.trace.promoted_numbers import Promotion
from numgrad.compiler.trace.views import CONSTANTS
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand, apply, of_examples
from numgrad.core.declare import primitive
from numgrad.core.draws import (
    WORD,
    Draw,
    Draws,
    drawing,
    going_on,
    put_words,
    without_operands,
    words_of,
)
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, eagerly, raw, state
from numgrad.core.op import Op
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.tensors.reparameterised import fixed


@dataclass(frozen=True)
class GradientWrite:
    """A value for ``.grad`` of a captured tensor at the end of each call."""

    tensor: Tensor
    value: Value | None


class RepeatedValues:
    """Lets what is traced several times draw the same numbers, in a ``with`` block for each time.

    The first time values of what is drawn, and states of generators, are kept; later times get
    these in the same order, and generators stay where they are. ``before`` are those that the
    function made earlier; what it makes inside begins again each time.
    """

    def __init__(self, tracer: EffectBuilder) -> None:
        self.tracer, self.before = tracer, set(tracer.begun)
        self.kept: list[tuple[Value, ...]] = []
        self.coming: Iterator[tuple[Value, ...]] | None = None
        self.entered = False

    def __enter__(self) -> RepeatedValues:
        self.coming = iter(self.kept) if self.entered else None
        self.entered = True
        self.around, self.tracer.repeated = self.tracer.repeated, self
        return self

    def __exit__(self, *exception: object) -> None:
        self.tracer.repeated = self.around

    def values(self, make: Callable[[], Sequence[Value]]) -> tuple[Value, ...]:
        """The object made the first time, or made now."""
        if self.coming is not None:
            value = next(self.coming, None)
            if value is None:
                raise NumgradRuntimeError(
                    "jacfwd: the function draws more random numbers when it is called again"
                )
            return value
        made = tuple(make())
        self.kept.append(made)
        return made


class EffectBuilder(CaptureBuilder):
    """The part of a tracer that is told of effects: Note [Calls] in ``graph``.

    Attributes
    ----------
    gradients
        What ``.grad`` of captured tensors holds after each call, where the function changes it.
    without_gradient
        Captured tensors whose ``.grad`` the function found to be None: it relies on that.
    stored
        By the id of an array the value that its memory holds already.
    begun
        Generators that the function itself makes, by the id of what they draw from, with what that
        is and its state: Note [Generators of a trace].
    reseeded
        The state of NumPy's global generator when the function seeded it.
    sources
        The ids of what generators around the function draw from, if that is known.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.gradients: list[GradientWrite] = []
        self.without_gradient: list[Tensor] = []
        self._gradients: dict[int, tuple[Tensor, Any]] = {}
        self._standins: dict[int, Any] = {}
        self.stored: dict[int, Value] = {}
        self.begun: dict[int, tuple[Any, Value]] = {}
        self._makers: list[tuple[Any, Any]] = []
        self.reseeded: Any = None
        self.sources: set[int] | None = None
        self.repeated: RepeatedValues | None = None

    # ---------------------------------------------------------------------------------- effects

    def effect(
        self, function: Callable[..., tuple], operands: Sequence[Any], targets: Sequence[Tensor]
    ) -> None:
        """Call a function at each call, which changes captured tensors.

        It gets the operands as ndarrays and returns the arrays of the targets.
        """
        arrays = [self.lift(target) for target in targets]
        for target, array in zip(targets, arrays, strict=True):
            self._flush(target, array)
        outs = self.call(function, operands, [(a.shape, a.dtype) for a in arrays], targets)
        for array, out in zip(arrays, outs, strict=True):
            array.write(out)
            self.stored[id(array)] = out

    def call(
        self,
        function: Callable[..., tuple],
        operands: Sequence[Any],
        results: Sequence[Result],
        targets: Sequence[Tensor] = (),
    ) -> tuple[Value, ...]:
        """Append a node that calls a Python function with effects."""
        values = [self.strong(self.lift(x).value) for x in operands]
        writes = tuple([self._input_of(self.lift(t)) for t in targets])
        params = {"function": function, "impure": True, "writes": writes}
        return self.add(CALL, values, params, results)

    # ------------------------------------------------------------------------------- generators

    def drawn(self, draws: Draw | Draws) -> tuple[Value, ...]:
        """Random numbers, drawn again at each call."""
        if self.repeated is None or all(map(self._is_own, draws.sources)):
            return self.draw(draws)
        repeated, self.repeated = self.repeated, None
        try:
            return repeated.values(lambda: self.draw(draws))
        finally:
            self.repeated = repeated

    def draw(self, draws: Draw | Draws) -> tuple[Value, ...]:
        """Random numbers, by a call or from states."""
        if any(id(source) in self.begun for source in draws.sources):
            return self.drawn_from_states(draws)
        return self.call(drawing(draws), [*draws.data, *draws.lengths], draws.results)

    def _is_own(self, source: Any) -> bool:
        """Whether the function made a generator, and in this run of it if there are several."""
        repeated = self.repeated
        return id(source) in self.begun and (repeated is None or id(source) not in repeated.before)

    def drawn_from_states(self, draws: Draw | Draws) -> tuple[Value, ...]:
        """Random numbers as values of the graph, which follow from the states of generators."""
        sources = draws.sources
        states = list(self.generator_states(sources))
        data = [self.strong(self.lift(x).value) for x in draws.data]
        params = {"draws": without_operands(draws), "lengths": tuple(draws.lengths)}
        results = [*((s.shape, s.dtype) for s in states), *draws.results]
        result = self.add(draw_from, [*states, *data], params, results)
        self._put_values(sources, result[: len(sources)])
        return result[len(sources) :]

    def begin(self, generator: Any, like: Any = None) -> None:
        """Let a generator start here at each call: from its seed, or where another one is."""
        source = generator.bit_generator
        if like is None:
            state = self.freeze(words_of(source), made=True).value
        else:
            (state,) = self.generator_states([like.bit_generator])
        self.begun[id(source)] = source, state
        self._makers.append((ref(generator), source))

    def reseed(self, seed: Any) -> None:
        """Seed NumPy's global generator here, at each call."""
        if self.repeated is not None and self.repeated.coming is not None:
            return

        def start() -> tuple:
            np.random.seed(seed)
            return (np.asarray(True),)

        self.call(start, (), [((), np.dtype(bool))])
        self.reseeded = np.random.get_state()

    def leave_generators(self) -> None:
        """Let generators that outlive the function go on where it left them."""
        alive = [source for generator, source in self._makers if generator() is not None]
        if alive:
            states = self.generator_states(alive)
            for source in alive:
                del self.begun[id(source)]
            self._put_values(alive, states)

    def generator_states(self, sources: Sequence[Any]) -> Sequence[Value]:
        """The states of generators at this place of each call."""
        own = {id(s): self.begun[id(s)][1] for s in sources if self._is_own(s)}
        others = [s for s in sources if id(s) not in own]
        results: Sequence[Value] = ()
        if others and self.repeated is not None:
            results = self.repeated.values(lambda: self._states_of(others))
        elif others:
            results = self._states_of(others)
        rest = iter(results)
        return [own[id(s)] if id(s) in own else next(rest) for s in sources]

    def _states_of(self, sources: Sequence[Any]) -> Sequence[Value]:
        around = [s for s in sources if id(s) not in self.begun]
        result = iter(self._states_around(around) if around else ())
        return [self.begun[id(s)][1] if id(s) in self.begun else next(result) for s in sources]

    def put_generator_states(self, sources: Sequence[Any], states: Sequence[Any]) -> None:
        """Let generators go on from states at this place of each call."""
        self._put_values(sources, [self.lift(x).value for x in states])

    def _put_values(self, sources: Sequence[Any], states: Sequence[Value]) -> None:
        others: list[tuple[Any, Value]] = []
        again = self.repeated is not None and self.repeated.coming is not None
        for source, now in zip(sources, states, strict=True):
            if again and not self._is_own(source):
                continue
            if id(source) in self.begun:
                self.begun[id(source)] = source, now
            else:
                others.append((source, now))
        if others:
            self._put_outside(*zip(*others, strict=True))

    def _states_around(self, sources: Sequence[Any]) -> Sequence[Value]:
        """The states of generators that were there before."""
        results = [(words.shape, words.dtype) for words in map(words_of, sources)]
        return self.call(lambda: tuple(map(words_of, sources)), (), results)

    def _put_outside(self, sources: Sequence[Any], states: Sequence[Value]) -> None:
        def put(*number: np.ndarray) -> tuple:
            for source, words in zip(sources, number, strict=True):
                put_words(source, words)
            return (np.asarray(True),)

        arrays = [TracedArray(self, value) for value in states]
        self.call(put, arrays, [((), np.dtype(bool))])

    # ------------------------------------------------------------------------------------ calls

    def called(
        self, function: Callable[..., tuple], operands: Sequence[Any], results: Sequence[Result]
    ) -> list[Tensor]:
        """Results of a Python function without effects, which runs at each call."""
        values = [self.strong(self.lift(x).value) for x in operands]
        params = {"function": function, "impure": False, "writes": ()}
        outputs = self.add(CALL, values, params, results)
        return [Tensor(TracedArray(self, value)) for value in outputs]  # pyright: ignore

    def _flush(self, target: Tensor, array: TracedArray) -> None:
        """Store what was written to a captured tensor, before a call looks at it."""
        value = array.value
        if value is self.stored.get(id(array), self._input_of(array)):
            return

        def store(number: np.ndarray) -> tuple:
            np.copyto(target._array, number)
            return (target._array,)

        (out,) = self.call(store, [array], [(array.shape, array.dtype)], [target])
        array.write(out)
        self.stored[id(array)] = out

    def _input_of(self, array: TracedArray) -> Value:
        """The input that a captured tensor is."""
        return next(c.value for c in self.captured if self._inputs[id(c.array)][1] is array)

    # -------------------------------------------------------------------------------- gradients

    def gradient(self, tensor: Tensor) -> Any:
        """The ``.grad`` of a tensor; if that is from before the trace, an input."""
        if type(tensor._array) is TracedArray:
            return tensor._grad
        present = tensor._grad
        if id(tensor) in self._gradients:
            return present
        self._gradients[id(tensor)] = (tensor, present)
        if present is None:
            self.without_gradient.append(tensor)
            return None
        array = present._array
        if not isinstance(array, np.ndarray):
            raise NumgradTypeError(
                "backward: a row-sparse gradient from before the compiled function cannot be added "
                "to; call zero_grad() first"
            )
        value = self.graph.input(self._symbols(array.shape), array.dtype)
        traced = self._enter_captured(array, value, tensor, False, gradient=True)
        tensor._grad = Tensor(traced)  # pyright: ignore
        self._standins[id(tensor)] = tensor._grad
        return tensor._grad

    def with_gradients(self) -> list[Tensor]:
        """The captured tensors whose ``.grad`` is looked at or set."""
        return [t for t, _ in self._gradients.values() if type(t._array) is not TracedArray]

    def remember_gradient(self, tensor: Tensor) -> None:
        """Note what ``.grad`` was before the trace, to put it back in the end."""
        self._gradients.setdefault(id(tensor), (tensor, tensor._grad))

    def _collect_gradients(self) -> None:
        """Find out what ``.grad`` is to hold after each call, and undo it for now."""
        for key, (tensor, entry) in self._gradients.items():
            final = tensor._grad
            tensor._grad = entry
            if final is entry or final is self._standins.get(key):
                continue
            if type(tensor._array) is not TracedArray:
                value = None if final is None else self.lift(final).value
                self.gradients.append(GradientWrite(tensor, value))


_NUMBER = (
    "the target is an argument of the compiled function that is a number, and numbers are not "
    "changed in place; write c = c + x"
)


class Tracer(EffectBuilder):
    """Records one run of a function as a graph: Note [Tracing a function]."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.sizes.on_number = self._size_as_number
        self.numbers: dict[Value, Any] = {}
        """Values of arguments in the call that is traced, if known."""
        self.promotion: Promotion | None = None
        self._arguments: list[tuple[Value, TracedArray]] = []
        self._tensors: list[tuple[Value, Tensor]] = []

    def finish(self, *, failed: bool) -> None:
        """End the trace; note what was written to memory, unless the function failed."""
        self._collect_gradients()
        self.ended = True
        self.lines.end()
        if failed:
            return
        captured = [(value.value, self._inputs[id(value.array)][1]) for value in self.captured]
        for target, array in (*self._arguments, *captured):
            if array.value is not self.stored.get(id(array), target):
                self.graph.writes.append((target, array.value))

    # ------------------------------------------------------------------------------- arguments

    def array(
        self,
        shape: Sequence[int],
        dtype: Any,
        requires_grad: bool = False,
        *,
        donated: bool = False,
        scalar: bool = False,
    ) -> Tensor:
        """An argument that is an array; one that is donated may be written to, no scalar may."""
        value = self.graph.input(self._symbols(shape), np.dtype(dtype))
        array = TracedArray(self, value)
        self._arguments.append((value, array))
        tensor = Tensor(array, requires_grad)  # pyright: ignore
        self._tensors.append((value, tensor))
        if scalar:
            array.number, array.locked = True, _NUMBER
        elif not donated:
            array.locked = (
                "the target is an argument of the compiled function, which belongs to the caller; "
                "clone() it, or say with donate=... that its memory may be used"
            )
        return tensor

    def is_argument(self, tensor: Tensor) -> bool:
        """Whether a Tensor is an argument that is an array."""
        return any(tensor is t for v, t in self._tensors if v.node.op == INPUT and not v.weak)

    def number(self, value: Any) -> Tensor:
        """An argument that is a Python number of the type of ``value``."""
        dtype = np.dtype(type(value))
        array = TracedArray(self, self.graph.input((), dtype, weak=dtype.kind != "b"))
        array.number, array.locked = True, _NUMBER
        self._arguments.append((array.value, array))
        tensor = Tensor(array)  # pyright: ignore
        self._tensors.append((array.value, tensor))
        return tensor

    # ---------------------------------------------------------------------------------- results

    def follows(self, x: Any) -> bool:
        """Whether derivatives may lead from a Tensor to an input of floating or complex numbers."""
        stack, visited = [self.value(x)], set[Value]()
        while stack:
            value = stack.pop()
            if value in visited or value.dtype.kind not in "fc":
                continue
            visited.add(value)
            node = value.node
            if node.op == INPUT:
                return True
            if isinstance(node.op, Op) and node.op.name not in CONSTANTS:
                stack.extend(node.inputs)
        return False

    def value(self, x: Any) -> Value:
        """The value of a Tensor, array or number in the graph."""
        return self.lift(x).value

    def examples(self, arrays: Sequence[TracedArray]) -> tuple[list[np.ndarray], bool]:
        """The numbers of arrays in the call that is traced, for code that asks for them.

        Ones, and False, if that depends on effects, or on gradients that arrive in a backward.
        """
        values = [a.value for a in arrays]
        known = self.numbers | {c.value: c.array for c in self.captured}
        extracted = extract(self.graph, self.graph.inputs, values)
        needed = {v for node in extracted.nodes for v in node.inputs} | set(extracted.outputs)
        if any(map(_is_impure_call, extracted.nodes)) or any(
            new in needed and old not in known
            for old, new in zip(self.graph.inputs, extracted.inputs, strict=True)
        ):
            return [np.ones(specialised(v.shape), v.dtype) for v in values], False
        inputs = [known.get(v) for v in self.graph.inputs]
        inputs = [np.ones(hinted(v.shape), v.dtype) if x is None else x for v, x in zip(
            self.graph.inputs, inputs, strict=True)]  # fmt: skip
        with eagerly(raw, grad_enabled=False):
            return list(evaluate.compile_graph(extracted).run(*inputs)), True

    def memory(self) -> Iterator[tuple[Value, TracedArray]]:
        """Inputs that are memory of the caller or around the function, and the arrays over it."""
        yield from self._arguments
        for value in self.captured:
            if not (value.frozen or value.gradient):
                yield value.value, self._inputs[id(value.array)][1]

    def given(self, value: Value) -> list[Any]:
        """The Tensors and ndarrays that stand for an input."""
        results = [t for v, t in self._tensors if v is value]
        for captured in self.captured:
            if captured.value is value:
                results += [captured.owner, *self.aliases.get(id(captured.array), ())]
        return results

    # ---------------------------------------------------------------------------------- arrays

    def filled(self, shape: Shape, number: Any, dtype: Any) -> TracedArray:
        """An array with one number everywhere."""
        return TracedArray(self, self.filled_value(shape, number, dtype))

    def _size_as_number(self, size: Size) -> Tensor:
        return Tensor(TracedArray(self, self.graph.size(size)))  # pyright: ignore


def _is_impure_call(node: TracedNode) -> bool:
    return node.op == CALL and node.params["impure"]


@primitive(internal=True, method=False, outputs=True, differentiable=False)
def draw_from(*inputs, draws, lengths):
    """The states of generators after ``draws`` from those given first, and what is drawn."""
    sources = draws.sources
    states, data = inputs[: len(sources)], inputs[len(sources) :]
    now = draws.of(iter(data), iter(lengths))
    with going_on(sources, states) as after:
        results = now()
    return (*after, *results)


@draw_from.shape
def _results(*inputs: Meta, draws: Draw | Draws, lengths: tuple) -> tuple[Meta, ...]:
    count = len(draws.sources)
    value = draws.of(iter(inputs[count:]), iter(lengths)).results
    return (*inputs[:count], *(Meta(shape, dtype) for shape, dtype in value))


@draw_from.batch
def _of_batches(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    draws, lengths = params["draws"], params["lengths"]
    count = len(draws.sources)
    states = [one_of_all(o, size) for o in operands[:count]]
    if not operands[0].batched:  # all examples share it
        data = [one_of_all(o, size) for o in operands[count:]]
        return tuple([BatchOperand(x, False) for x in bind(op, (*states, *data), params)])
    now = draws.of(iter(operands[count:]), iter(lengths))
    each = of_examples(now, lambda o: o, size)
    call_params = {"draws": without_operands(each), "lengths": tuple(each.lengths)}
    result = bind(op, (*states, *each.data), call_params)
    after = [BatchOperand(x, False).repeated(size) for x in result[:count]]
    moved = zip(result[count:], draws.leads, strict=True)
    return (*after, *(apply("moveaxis", x, source=n, destination=0) for x, n in moved))


def one_of_all(operand: BatchOperand, size: int) -> Any:
    """The value of one example, where all have the same; zeros if there is none."""
    if not operand.batched:
        return operand.value
    if not size:
        return Tensor(zeros(operand.shape, operand.value.dtype))
    return apply("getitem", operand.value, index=(0,))


def fixed_operands(draws: Draw | Draws, operands: Sequence[Any]) -> list[Any]:
    """The operands of ``draw_from`` where they may be followed: numbers are drawn with constants.

    Raises
    ------
    NumgradRuntimeError
        If a parameter of numbers without gradients is to be differentiated.
    """
    count = len(draws.sources)
    now = draws.of(iter(operands[count:]), iter(draws.lengths)).on(parameter)
    return [*operands[:count], *now.data]


def parameter(x: Any, dtype: np.dtype) -> Any:
    """A parameter as it is drawn with; gradients of what has them follow in the body."""
    if dtype.kind in "fc":
        return fixed(x)
    return import_module("numgrad.random.generator").checked_parameter(x)  # which drew it


def generator_states(sources: Sequence[np.random.BitGenerator]) -> list[Any]:
    """The states of generators as operands of a loop."""
    if not sources:
        return []
    tracer = state.ground.tracer
    results: list[Any] = [
        Tensor(TracedArray(tracer, value))  # pyright: ignore
        for value in tracer.generator_states(sources)
    ]
    for level in levels():
        results = [level.wrap(level.unwrap(x)) for x in results]
    return results


def put_generator_states(sources: Sequence[np.random.BitGenerator], states: Sequence[Any]) -> None:
    """Let generators go on from the states that a loop returns."""
    if not sources:
        return
    for level in reversed(levels()):
        if not level.size:
            return
        with level._below():
            states = [apply("getitem", level.unwrap(x), index=(0,)) for x in states]
    state.ground.tracer.put_generator_states(sources, states)


def state_metas(sources: Sequence[np.random.BitGenerator]) -> list[Meta]:
    """Shapes and dtypes of states."""
    return [Meta(words_of(source).shape, WORD) for source in sources]
