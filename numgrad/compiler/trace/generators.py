"""Random numbers from states of generators, where a loop decides what it draws.

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

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.autograd.batching.selected import levels
from numgrad.autograd.variable import Tensor
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand, apply, of_examples
from numgrad.core.declare import primitive
from numgrad.core.draws import WORD, Draw, Draws, going_on, without_operands, words_of
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, state
from numgrad.core.op import Op
from numgrad.random.generator import checked_parameter
from numgrad.tensors.reparameterised import fixed


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
    return fixed(x) if dtype.kind in "fc" else checked_parameter(x)


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
