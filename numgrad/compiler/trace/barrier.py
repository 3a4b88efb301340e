"""What ends gradients inside of bodies.

Note [Constants in bodies]
--------------------------
A body is traced once and derived from its graph, so what code says about gradients has to be in
that graph: ``detach`` is an operation there, and so is a result of code under ``no_grad``, of which
tangents are known.
"""

from __future__ import annotations

import numpy as np

from numgrad.core.batching import unchanged
from numgrad.core.declare import primitive
from numgrad.core.interpreter import bind


@primitive(internal=True, method=False, differentiable=False)
def detached(x):
    """The same numbers, of which nothing is known."""
    return np.array(x)


@primitive(internal=True, method=False)
def unrecorded(x):
    """The same numbers, through which tangents flow and gradients do not."""
    return np.array(x)


@unrecorded.jvp
def _pushed(t_x, x):
    return bind(unrecorded, (t_x,), {})


for _op in (detached, unrecorded):
    _op.shape(lambda x: x)
    _op.batch(unchanged)
