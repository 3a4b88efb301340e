"""A program beside libraries that ``pip install --target`` put into its folder; .ci/run runs it."""

import os
import sys

import numpy as np
import numpy.ma  # before ng.jit, whose search of a program's surroundings meets it

import numgrad as ng

FOLDER = os.path.dirname(os.path.abspath(__file__))
MASKED = np.ma.masked_array([1.0, 2.0, 4.0], [False, True, False])
SCALE = 2.0


def loss(x):
    """Read the module of masked arrays, and two variables."""
    if numpy.ma.isMaskedArray(x):
        raise TypeError("an array without mask")
    return np.sum(np.sin(x) * x) * SCALE + MASKED.sum()


x = np.linspace(-1.0, 2.0, 7)
value, slope = np.sum(np.sin(x) * x), np.cos(x) * x + np.sin(x)
both = ng.jit(ng.value_and_grad(loss))
for module in (np, ng):
    assert module.__file__.startswith(FOLDER + os.sep), module.__file__
for scale in (2.0, 3.0):
    SCALE = scale
    found = both(x)
    np.testing.assert_allclose(found[0], value * scale + 5.0)
    np.testing.assert_allclose(found[1], slope * scale)
t = ng.tensor(x, requires_grad=True)
loss(t).backward()
np.testing.assert_allclose(t.grad, slope * SCALE)
try:
    ng.jit(lambda x: x if float(x[0]) > 0 else -x)(x)
except ng.NumgradError as error:
    said = str(error)
if not said.startswith(f"{__file__}:"):
    sys.exit(f"this names another line: {said}")
print(f"numgrad, NumPy and the program in {FOLDER}: as anywhere")
