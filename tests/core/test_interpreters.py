"""Floors below the compiler ask whoever says what arrays are, and know no compiler."""

import re
from pathlib import Path

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.trace.interpreter import TraceInterpreter
from numgrad.core.interpreter import BaseInterpreter, Interpreter, State, eagerly, state
from numgrad.errors import NumgradTraceError
from numgrad.tensors.eager import EagerInterpreter

PACKAGE = Path(ng.__file__).parent
VOCABULARY = {
    name
    for kind in (Interpreter, BaseInterpreter)
    for name in vars(kind)
    if not name.startswith("_")
}


def test_nobody_below_the_compiler_names_a_tracer():
    found = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in PACKAGE.rglob("*.py*")
        if path.suffix in (".py", ".pyi") and PACKAGE / "compiler" not in path.parents
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"tracer\b", line, re.IGNORECASE)
    ]
    assert not found


def test_eager_code_and_the_compiler_say_the_same_things():
    own = {"tracer", "entry", "attach", "operand", "run", "run_recorded"}  # no meaning of an array
    for kind in (EagerInterpreter, TraceInterpreter):
        public = {name for name in dir(kind) if not name.startswith("_")}
        assert public - own == VOCABULARY
        assert not kind.__abstractmethods__
    # what eager code computes at once may not be what a compiled function means
    assert not issubclass(TraceInterpreter, EagerInterpreter)


def test_the_ground_is_eager_but_where_something_is_compiled():
    seen = []

    @ng.jit
    def f(x):
        seen.append(state.ground)
        with eagerly():
            seen.append((state.ground, np.exp(ng.ones(1)).numpy()))
        return x * 2

    f(ng.ones(2))
    assert isinstance(seen[0], TraceInterpreter)
    assert seen[1][0] is State.ground is state.ground
    np.testing.assert_allclose(seen[1][1], np.exp([1.0]))


def test_what_is_done_once_is_refused_where_it_would_be_done_at_each_call():
    def f(x):
        state.ground.once("once upon a time")
        return x

    f(ng.ones(2))
    with pytest.raises(NumgradTraceError, match="once upon a time"):
        ng.jit(f)(ng.ones(2))


def test_python_code_is_called_alike_in_eager_and_compiled_functions():
    target = ng.zeros(2)

    def f(x):
        def fill(given):
            target._array[...] = given
            return (target._array,)

        state.ground.effect(fill, [x * 3], [target])
        (out,) = state.ground.called(lambda a: (a[::-1].copy(),), [x], [((2,), x.dtype)])
        return out

    compiled = ng.jit(f)
    for function in (f, compiled, compiled):
        target.zero_()
        x = ng.tensor([1.0, 2.0])
        np.testing.assert_array_equal(function(x).numpy(), [2.0, 1.0])
        np.testing.assert_array_equal(target.numpy(), [3.0, 6.0])


def test_full_of_a_value_that_is_read_at_each_call():
    values = np.array([1.0, 2.0])
    f = ng.jit(lambda x: x + ng.full((3, 2), values) + ng.full(2, 1.5, dtype=int))
    np.testing.assert_array_equal(f(ng.zeros(2)).numpy(), np.full((3, 2), values) + 1)
    leaf = ng.jit(lambda x: ng.grad(lambda w: (w * x).sum())(ng.full(2, x[0], requires_grad=True)))
    np.testing.assert_array_equal(leaf(ng.tensor([3.0, 4.0])).numpy(), [3.0, 4.0])
