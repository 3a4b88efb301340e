"""What a compiled function does besides computing: calls of Python code, gradients of leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import CALL, Value
from numgrad.compiler.graph.graph import Meta as Result
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.captured import Capturing
from numgrad.core.draws import Draw, Draws, drawing
from numgrad.core.generator_state import put_words, words_of
from numgrad.errors import NumgradTypeError


@dataclass(frozen=True)
class GradientWrite:
    """What ``.grad`` of a captured tensor is set to at the end of each call."""

    tensor: Tensor
    value: Value | None


class Effects(Capturing):
    """The part of a tracer that is told of effects: Note [Calls] in ``graph``.

    Attributes
    ----------
    gradients
        What ``.grad`` of captured tensors holds after each call, where the function changes it.
    without_gradient
        Captured tensors whose ``.grad`` the function found to be None: it relies on that.
    stored
        By the id of an array the value that its memory holds already.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.gradients: list[GradientWrite] = []
        self.without_gradient: list[Tensor] = []
        self._gradients: dict[int, tuple[Tensor, Any]] = {}
        self._standins: dict[int, Any] = {}
        self.stored: dict[int, Value] = {}

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
        params = {"function": function, "effects": True, "writes": writes}
        return self.add(CALL, values, params, results)

    def drawn(self, draws: Draw | Draws) -> tuple[Value, ...]:
        """Random numbers, drawn anew at each call."""
        return self.call(drawing(draws), [*draws.data, *draws.lengths], draws.results)

    def generator_states(self, sources: Sequence[Any]) -> Sequence[Value]:
        """The states of generators at this place of each call."""
        results = [(words.shape, words.dtype) for words in map(words_of, sources)]
        return self.call(lambda: tuple(map(words_of, sources)), (), results)

    def put_generator_states(self, sources: Sequence[Any], states: Sequence[Any]) -> None:
        """Let generators go on from states at this place of each call."""

        def put(*given: np.ndarray) -> tuple:
            for source, words in zip(sources, given, strict=True):
                put_words(source, words)
            return (np.asarray(True),)

        self.call(put, states, [((), np.dtype(bool))])

    def called(
        self,
        function: Callable[..., tuple],
        operands: Sequence[Any],
        results: Sequence[Result],
    ) -> list[Tensor]:
        """Results of a Python function without effects, which runs at each call."""
        values = [self.strong(self.lift(x).value) for x in operands]
        params = {"function": function, "effects": False, "writes": ()}
        found = self.add(CALL, values, params, results)
        return [Tensor(TracedArray(self, value)) for value in found]  # pyright: ignore

    def _flush(self, target: Tensor, array: TracedArray) -> None:
        """Store what was written to a captured tensor, before a call looks at it."""
        value = array.value
        if value is self.stored.get(id(array), self._input_of(array)):
            return

        def store(given: np.ndarray) -> tuple:
            np.copyto(target._array, given)
            return (target._array,)

        (out,) = self.call(store, [array], [(array.shape, array.dtype)], [target])
        array.write(out)
        self.stored[id(array)] = out

    def _input_of(self, array: TracedArray) -> Value:
        """The input that a captured tensor is."""
        return next(c.value for c in self.captured if self._inputs[id(c.array)][1] is array)

    # -------------------------------------------------------------------------------- gradients

    def gradient(self, tensor: Tensor) -> Any:
        """What ``.grad`` of a tensor holds; if that is from before the trace, an input."""
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
