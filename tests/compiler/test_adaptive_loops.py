"""Loops that find their length and collect on the way: what is remembered changes nothing."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.loops import loop_program
from numgrad.compiler.loops.loop_program import AdaptiveLoopProgram

TIMES = np.array([0.0, 1.0, 4.0])


def growth(p):
    y = ng.odeint(lambda y, t: p * y * (1.0 - y), 0.1, TIMES, rtol=1e-5, atol=1e-5)
    return np.sum(y**2)


@pytest.fixture
def walks(monkeypatch):
    """How many steps each walk made."""
    made = []
    walk = AdaptiveLoopProgram._run

    def noted(self, *given):
        found = walk(self, *given)
        made.append(found[0])
        return found

    monkeypatch.setattr(AdaptiveLoopProgram, "_run", noted)
    return made


def test_a_call_walks_once_unless_that_takes_much_memory(walks, monkeypatch):
    derived = ng.value_and_grad(growth)
    fast = ng.jit(derived)
    found = {p: fast(p) for p in (1.5, 2.5, 1.5)}
    assert len(walks) == 3, "one for each call, whatever is remembered of earlier ones"
    for p, x in found.items():
        np.testing.assert_allclose(x, derived(p), rtol=1e-11)
    monkeypatch.setattr(loop_program, "MOST_BYTES", 1)
    monkeypatch.setattr(loop_program, "FIRST", 4)  # so kernels make few steps in a call
    assert fast(1.5) == found[1.5]
    assert walks[3:] == [walks[0]] * 3, "for the length, the value and the gradient"
    assert walks[0] > 4
    assert fast(2.5) == found[2.5]


def test_gradients_asked_for_later_are_of_their_own_walk():
    """The tape keeps what a walk was given, not what it found."""
    given = [ng.tensor(p, requires_grad=True) for p in (1.5, 2.5)]
    compiled = ng.jit(growth)
    for value in [compiled(p) for p in given]:
        value.backward()
    for p in given:
        assert p.grad is not None
        np.testing.assert_allclose(p.grad.item(), ng.grad(growth)(p.item()), rtol=1e-10)
