"""Split mode: an augmented forward sweep, and the backward sweep that reads its state.

Note [Split mode]
-----------------
The joint sweep (``sweeps.gradient_text``) computes the function again. Where the function runs
before its gradient is asked for, the classic split mode spares that: the *augmented* forward sweep
gives the outputs and its *state*, all that the backward sweep reads of it: tapes, final contents of
local arrays, scalars outside of loops. The state lies in arrays that the caller makes and holds, so
their lengths have to follow from the arguments' lengths and integers; else there is no split form,
and the joint sweep runs. Where the state is empty, the function itself is the forward sweep. The
backward sweep changes nothing in it and may run again (Griewank and Walther, Evaluating
Derivatives, 2008, chapter 4; Moses and Churavy, 2020, call it by the same names).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.backward import Backward, bar
from numgrad.codegen.adjoint.compiled import Text, kinds_of
from numgrad.codegen.adjoint.lengths import ResultLengths
from numgrad.codegen.adjoint.operations import Operations
from numgrad.codegen.adjoint.representation import (
    Allocate,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Store,
    walk,
)
from numgrad.codegen.adjoint.sweeps import (
    ForwardSweep,
    definition,
    differentiable_arrays,
    gradient_ends,
    parameters,
    with_derivatives,
)
from numgrad.codegen.adjoint.text import Line, joined_lines, names_of_text
from numgrad.codegen.adjoint.text_calls import TextCalls
from numgrad.codegen.adjoint.vectors import facts_of
from numgrad.codegen.dtypes import numpy_name
from numgrad.dataclass import dataclass

_ELEMENTS = re.compile(r"([A-Za-z_]\w*)\[")


@dataclass(frozen=True)
class ForwardState:
    """The state of a forward sweep that the backward sweep reads.

    Attributes
    ----------
    inputs
        The parameters that the forward sweep ran for.
    arrays
        Tapes, local arrays, and scalars by dtype, in the order of the texts.
    """

    inputs: tuple[str, ...]
    arrays: tuple[np.ndarray, ...] = field(repr=False)


@dataclass(frozen=True)
class UnitGradients:
    """The gradients of a result of 1, as a fused sweep has given them.

    The first backward sweep takes the arrays, which become its result; another one runs again.
    """

    inputs: tuple[str, ...]
    _arrays: list[tuple[np.ndarray, ...]] = field(repr=False)

    def take(self) -> tuple[np.ndarray, ...] | None:
        """The gradients, of which there is one owner; None if another call has them."""
        try:
            return self._arrays.pop()
        except IndexError:
            return None


class AugmentedForward(ForwardSweep):
    """The forward sweep that writes its state to arrays of the caller's."""

    def __init__(self, split: SplitProgram) -> None:
        super().__init__(split.function, split.backward.texts, split.backward)
        self.split = split

    def _keeping(self, name: str) -> list[Line]:
        place = self.split.places.get(name)
        lines = super()._keeping(name)
        return lines if place is None else [*lines, f"{place} = {name}"]

    def _plain(self, s: KernelStatement) -> list[Line]:
        if isinstance(s, Allocate) and s.array in self.split.locals:
            return []
        return super()._plain(s)

    def _cotangents(self, s: Allocate) -> list[Line]:
        return []


class SplitProgram:
    """The two texts of a function in split mode: Note [Split mode].

    Attributes
    ----------
    locals
        Arrays made outside of loops whose elements the backward sweep reads.
    places
        Where scalars outside of loops lie, ``kept_float64[0]``, by name.
    reads
        Parameters and results whose final elements it reads.
    """

    def __init__(
        self, function: KernelFunction, operations: Operations, backward: Backward,
        inputs: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.function, self.operations = function, operations
        self.backward, self.inputs = backward, inputs
        self.lengths = ResultLengths(function, operations)
        made = [s for s in walk(function.body) if isinstance(s, Allocate) and s.home.loop is None]
        self._made = {s.array: s for s in made}
        self._opening = [
            backward.texts.allocation(bar(s.array), Allocate(s.array, "zeros", s.shape))
            for s in made
            if backward.has_cotangent(s.array)
        ]
        text = joined_lines([*self._opening, *backward.lines])
        names, elements = names_of_text(text), set(_ELEMENTS.findall(text))
        self.reads = elements.intersection([*function.parameters, *function.results])
        stores = [s.array for s in walk(function.body) if isinstance(s, Store)]
        self._outputs = {*function.results, *stores}
        self.locals = [s.array for s in made if s.array in names]
        tapes = backward.tapes
        self.tapes = sorted(n for n, loop in tapes.loops.items() if tapes.root(loop) is None)
        self.stacks = tapes.stacks(None)
        scalars = [
            n
            for n, home in function.homes.items()
            if n in names and home.loop is None and n not in function.parameters
        ]
        by_dtype: dict[np.dtype, list[str]] = {}
        for name in scalars:
            by_dtype.setdefault(function.dtypes[name], []).append(name)
        self.kept = {f"kept_{dtype.name}": (dtype, names) for dtype, names in by_dtype.items()}
        self.places = {
            name: f"{array}[{k}]"
            for array, (_, names) in self.kept.items()
            for k, name in enumerate(names)
        }

    @property
    def reads_outputs(self) -> bool:
        """Whether the backward sweep reads elements of what the function gave."""
        return any(name in self.reads for name in self._outputs)

    @property
    def is_possible(self) -> bool:
        """Whether the caller can make room for the state."""
        loops = [self.backward.tapes.loops[name] for name in self.tapes]
        lengths = [n for name in self.locals for n in self._made[name].shape]
        return not self.stacks and all(
            [
                *[self._has_length(loop) for loop in loops],
                *[self.lengths.is_integer(n) for n in lengths],
                *[self._made[name].maker != "growing" for name in self.locals],
            ]
        )

    def _has_length(self, loop: KernelLoop) -> bool:
        """Whether the length of a loop's tapes follows from integers of the arguments."""
        tapes = self.backward.tapes
        if tapes.is_bounded(loop):
            assert loop.at_most is not None
            return self.lengths.is_integer(loop.at_most)
        return tapes.is_rectangular(loop) and all(
            self.lengths.is_integer(n)
            for one in tapes.chain(loop)
            for n in (one.low, one.high, one.step)
        )

    # --------------------------------------------------------------------------------- the texts

    @property
    def is_empty(self) -> bool:
        """Whether the backward sweep reads nothing but arguments and outputs."""
        return not (self.locals or self.tapes or self.kept)

    @property
    def names(self) -> list[str]:
        """The names of the state's arrays."""
        return [*[f"tape_{name}" for name in self.tapes], *self.locals, *self.kept]

    @property
    def held(self) -> tuple[str, ...]:
        """The state in words: tapes and arrays by name, how many numbers, outputs that it reads."""
        count = len(self.places)
        numbers = [f"{count} number{'s' * (count > 1)}"] if count else []
        outputs = ["its outputs"] if self.reads_outputs else []
        return (*self.tapes, *self.locals, *numbers, *outputs)

    @property
    def _kinds(self) -> list[tuple[np.dtype, int]]:
        arrays = [self.function.arrays[name] for name in self.locals]
        return [
            *[(self.function.dtypes[name], 1) for name in self.tapes],
            *[(array.dtype, array.ndim) for array in arrays],
            *[(dtype, 1) for dtype, _ in self.kept.values()],
        ]

    @cached_property
    def forward(self) -> Text:
        """The augmented forward sweep."""
        function = self.function
        lines = AugmentedForward(self).lines(function.body)
        given = tuple([f"grow(tape_{name}," for name in self.tapes])
        names = parameters(function)
        source = definition(function, [*names, *self.names], _without(lines, given))
        kinds = [*kinds_of(function, names), *self._kinds]
        return Text(
            f"{function.name}_augmented", source, kinds, self.operations, facts_of(function)
        )

    @cached_property
    def reverse(self) -> Text:
        """The backward sweep alone."""
        function = self.function
        ends, last = gradient_ends(function, self.backward)
        own = sorted(self.backward.tapes.loops.keys() - set(self.tapes))  # of replayed loops
        lines = [
            *[f"tape_{name} = growing({numpy_name(function.dtypes[name])})" for name in own],
            *[f"{name} = {place}" for name, place in self.places.items()],
            *self._opening, *self.backward.lines, *last,
        ]  # fmt: skip
        names = parameters(function)
        source = definition(function, [*names, *self.names, *ends], lines)
        kinds = [*kinds_of(function, names), *self._kinds, *cotangent_kinds(function)]
        return Text(f"{function.name}_reverse", source, kinds, self.operations, facts_of(function))

    # --------------------------------------------------------------------------------- the state

    def new_state(self, given: Mapping[str, Any], calls: TextCalls) -> ForwardState:
        """Room for the state of a call."""
        makers = [
            *["empty" for _ in self.tapes],
            *[self._made[name].maker for name in self.locals],
            *["zeros" for _ in self.kept],
        ]
        pairs = zip(makers, self._layout(given, calls), strict=True)
        arrays = tuple([calls.make(maker, *layout) for maker, layout in pairs])
        return ForwardState(self.inputs, arrays)

    def nbytes(self, given: Mapping[str, Any]) -> int:
        """The bytes of the state of a call."""
        layout = self._layout(given, TextCalls())
        return sum(prod(shape) * dtype.itemsize for shape, dtype in layout)

    def _layout(
        self, given: Mapping[str, Any], calls: TextCalls
    ) -> list[tuple[tuple[Any, ...], np.dtype]]:
        """The shape and dtype of each array of the state."""
        layout: list[tuple[tuple[Any, ...], np.dtype]] = []
        tapes = self.backward.tapes
        for name in self.tapes:
            loop = tapes.loops[name]
            if tapes.is_bounded(loop):
                assert loop.at_most is not None
                length = calls.length(self.lengths.value(loop.at_most, given))
            else:
                bounds = [(one.low, one.high, one.step) for one in tapes.chain(loop)]
                length = prod(
                    calls.trips(*[self.lengths.value(n, given) for n in three]) for three in bounds
                )
            layout.append(((length,), self.function.dtypes[name]))
        for name in self.locals:
            lengths = [self.lengths.value(n, given) for n in self._made[name].shape]
            shape = tuple(map(calls.length, lengths))
            layout.append((shape, self.function.arrays[name].dtype))
        layout += [((len(names),), dtype) for dtype, names in self.kept.values()]
        return layout


def cotangent_kinds(function: KernelFunction) -> list[tuple[np.dtype, int]]:
    """The dtype and rank of each cotangent that a text takes; those of numbers lie in vectors."""
    arrays = differentiable_arrays(function)
    return [
        (function.arrays[n].dtype, function.arrays[n].ndim)
        if n in arrays
        else (function.dtypes[n], 1)
        for n in with_derivatives(function)
    ]


def _without(lines: Iterable[Line], beginnings: Sequence[str]) -> list[Line]:
    """Nested lines but for those that begin in one of these ways."""
    return [
        _without(line, beginnings) if isinstance(line, list) else line
        for line in lines
        if isinstance(line, list) or not str(line).startswith(tuple(beginnings))
    ]
