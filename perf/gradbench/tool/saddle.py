"""A saddle point: the least of largest values, by descent on what an ascent finds."""

import numpy as np
from descent import argmax, argmin
from timing import as_lists, timed

import numgrad as ng


def height(p, q):
    return np.sum(p**2) - np.sum(q**2)


def variant(outer, inner):
    @ng.jit
    def solve(start):
        def ascent(p):
            return argmax(lambda q: height(p, q), start, inner)

        p = argmin(lambda p: height(p, ascent(p)), start, outer)
        return np.concatenate([p, ascent(p)])

    return timed(lambda message: np.array(message["start"]), as_lists)(solve)


ff = variant(ng.jacfwd, ng.jacfwd)
fr = variant(ng.jacfwd, ng.grad)
rf = variant(ng.grad, ng.jacfwd)
rr = variant(ng.grad, ng.grad)
