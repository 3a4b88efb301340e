"""Random programs as steps of loops, as branches and as functions of one example, emulated."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings

import numgrad as ng
from tests.compiler.emulator import emulating
from tests.compiler.programs import arguments_of, loss, programs, settle

ARGUMENTS = [np.ascontiguousarray(a) for a in arguments_of(0, 3, 4)]
TENSORS = [ng.asarray(a) for a in ARGUMENTS]
XS = ng.asarray([0.5, -0.8, 1.2])


def in_scan(step, p):
    def both(c, x):
        new = step(c, x)
        return new, new * c

    last, rows = ng.scan(both, p, XS)
    return last + np.sum(rows)


def in_while(step, p):
    return ng.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(c[1], 0.3)), (0, p))[1]


def in_branches(step, p):
    def choose(c, x):
        return ng.cond(c * x > 0, lambda: step(c, x), lambda: c * x), None

    return ng.scan(choose, p, XS)[0] + ng.cond(p > 0, lambda: step(p, 0.1), lambda: p * p)


def in_batch(step, p):
    return np.sum(ng.vmap(lambda x: ng.scan(lambda c, _: (step(c, x), None), p, length=2)[0])(XS))


pytestmark = pytest.mark.filterwarnings("ignore:.*plain NumPy made")
PLACES = [in_scan, in_while, in_branches, in_batch]


def check(steps, place, second=False):
    settled = settle(steps, [ARGUMENTS])

    def step(c, x):
        return np.tanh(c * x + 0.1 * loss(settled, *(a * (1 + 0.1 * c) for a in TENSORS)))

    derive = (lambda f: ng.jacfwd(ng.grad(f))) if second else ng.value_and_grad
    f = derive(lambda p: place(step, p))
    with np.errstate(all="ignore"):
        expected = f(0.4)
        found = ng.jit(f)(0.4)
    if np.all(np.isfinite(expected)):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("place", PLACES)
@given(programs)
@settings(max_examples=2, deadline=None, derandomize=True, phases=[Phase.generate])
def test_random_programs(place, steps):
    with emulating(task=3, lanes=4):
        check(steps, place)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("place", PLACES)
@given(programs)
@settings(max_examples=4, deadline=None, phases=[Phase.generate])
def test_second_derivatives_of_random_programs(place, steps):
    with emulating():
        check(steps, place, second=True)
