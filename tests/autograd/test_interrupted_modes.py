"""Modes whose beginning a signal handler interrupts: they are as before."""

import linecache
import sys

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.interpreter import State, _sum_up, state
from numgrad.core.refusals import Refusals
from numgrad.errors import REFUSED

X = np.linspace(0.5, 1.5, 3)


class Interrupted(KeyboardInterrupt):
    pass


def no_grad():
    with ng.no_grad():
        pass


def enable_grad():
    with ng.no_grad(), ng.enable_grad():
        pass


def inference():
    with ng.inference_mode():
        pass


def set_grad_enabled():
    ng.set_grad_enabled(True)


def hooks():
    with ng.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        pass


def decorated():
    ng.no_grad()(lambda: None)()


PLACES = {
    "no_grad": no_grad,
    "enable_grad": enable_grad,
    "inference": inference,
    "set_grad_enabled": set_grad_enabled,
    "hooks": hooks,
    "decorated": decorated,
    "grad": lambda: ng.grad(lambda x: np.sum(x * x))(X),
    "vmap": lambda: ng.vmap(lambda x: x * 2.0)(X),
    "jacfwd": lambda: ng.jvp(lambda x: x * x, (X,), (X,)),
    "jit": lambda: ng.jit(lambda x: x * 2.0)(X),
}
CHANGES = tuple(f.__code__ for f in (State.set, State.exchange, State.refresh, _sum_up))
ENTRIES = ("__enter__", "_change")


def settings():
    names = [name for name in vars(State) if name in State.__annotations__]
    return {name: getattr(state, name) for name in names} | {"scopes": REFUSED.scopes}


def interrupt(do, moment):
    """Raise at a line of what begins a mode; whether there are so many."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        code, caller = frame.f_code, frame.f_back
        while caller is not None and caller.f_code in CHANGES:
            caller = caller.f_back
        begins = code.co_name == "__enter__" and "numgrad" in code.co_filename
        begins &= code is not Refusals.__enter__.__code__  # it ends with what it does
        begins |= code in CHANGES and caller.f_code.co_name in ENTRIES
        if not begins:
            return trace
        line = linecache.getline(code.co_filename, frame.f_lineno)
        if event == "line" and line.strip() != "try:":  # at which no handler runs
            count += 1
            if count == moment:
                sys.settrace(None)
                raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        do()
    except Interrupted:
        pass
    finally:
        sys.settrace(before)
    return count >= moment


@pytest.mark.parametrize("do", PLACES.values(), ids=PLACES)
def test_an_interrupted_beginning_leaves_modes_alone(do):
    do()  # and whatever happens once
    before, moment = settings(), 1
    while interrupt(do, moment):
        assert settings() == before, f"line {moment}"
        moment += 1
    assert settings() == before
    assert moment > 3
