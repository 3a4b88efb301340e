"""Assignments of parts of an array to others that share memory with them: the right side first.

NumPy itself copies a row to a column that crosses it without a copy, so the truth has one.
"""

import linecache

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint.plain import plainly

X = np.arange(1.0, 17.0).reshape(4, 4)
START = """def f(x):
    b = x.copy()
    y = x[0].copy()
    q = np.array([1, 2, 3, 0])
    p = np.array([2, 2, 0, 1])
    k = np.array([True, False, True, True])
"""
LINES = [
    "b[1]", "b[:, 2]", "b[::-1, 1]", "b[2, ::-1]", "b.T[1]", "b[q, 1]", "b[1, q]", "b[q, p]",
    "y[:]", "y[::-1]", "y[q]", "y[p]",
]  # fmt: skip
WHOLE = [
    "b[:]", "b.T[:]", "b[::-1]", "b[:, ::-1]", "b[::-1, ::-1]", "b[q]", "b[:, p]", "b.T[::-1]",
    "b.T[q]",
]  # fmt: skip
PARTS = ["y[1:]", "y[:-1]", "y[2::-1]", "y[:0:-1]", "b[1:, 0]", "b[1, 1:]", "y[k]", "b[1][k]"]
TARGETS = [(t, kind) for kind in (LINES, WHOLE, PARTS) for t in kind]


def function(statement, more=""):
    """The function that runs a statement."""
    text = START + more + f"    {statement}\n    return np.concatenate((b.ravel(), y))\n"
    file = f"<{more}{statement}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"np": np}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def agree(kernel, truth):
    """Compare values, and the gradient of a function that is linear."""
    np.testing.assert_array_equal(kernel(X), truth(X), kernel.__name__)
    weights = np.arange(20.0) ** 2
    units = np.eye(16).reshape(16, 4, 4)
    wanted = np.array([weights @ (truth(X + u) - truth(X)) for u in units]).reshape(4, 4)
    gradient = np.asarray(ng.vjp(kernel, X)[1](weights))
    np.testing.assert_allclose(gradient, wanted, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["=", "+=", "-="])
@pytest.mark.parametrize(("target", "sources"), TARGETS, ids=[t for t, _ in TARGETS])
def test_parts_of_one_array(target, sources, operator):
    with plainly():
        for source in sources:
            kernel = ng.kernel(function(f"{target} {operator} {source}"))
            agree(kernel, function(f"{target} {operator} ({source}).copy()"))


@pytest.mark.parametrize(
    ("statement", "truth"),
    {
        "b[:, 2] = b[1]": "b[:, 2] = b[1].copy()",
        "b[1] = b[:, 2]": "b[1] = b[:, 2].copy()",
        "b[:, 2], b[1] = b[1], b[:, 2]": "b[:, 2] = b[1].copy(); b[1] = b[:, 2].copy()",
        "b[0] = b[1] = b[0] * 2.0": "t = b[0] * 2.0; b[0] = t; b[1] = t",
        "for i in range(4): b[i] = b[:, i]": "for i in range(4): b[i] = b[:, i].copy()",
        "b[:2] = b[1], b[0]": "b[0] = b[1]",  # items are stored in their order, as NumPy does
        "y[:] = [x[0, 1]]": "y[:] = x[0, 1]",
        "b[:] = [x[0, 1], 2, 3, 4]": "b[:] = np.array([x[0, 1], 2, 3, 4])",
        "b[:, :2] = [[x[0, 1], 2]]": "b[:, :2] = np.array([x[0, 1], 2])",
        "b[:2] = [y, x[3]]": "b[0] = y; b[1] = x[3]",
        "c, d = e = (x[0], x[1, 1]); y[0] = d; y[1] = e[1]": "y[0] = x[1, 1]; y[1] = x[1, 1]",
        "c, d = e, g = x[1, 1], x[0, 2]; y[:] = [c, d, e, g]":
            "y[:] = [x[1, 1], x[0, 2], x[1, 1], x[0, 2]]",
        "c, d = e = (y + 1, y * 2); c[0] = x[2, 2]; b[0] = e[0]": "b[0] = y + 1; b[0, 0] = x[2, 2]",
    }.items(),
)  # fmt: skip
def test_statements(statement, truth):
    with plainly():
        agree(ng.kernel(function(statement)), function(truth))


@pytest.mark.parametrize(
    ("statement", "truth"),  # NumPy 2.2 reads some of these indices while it overwrites them
    {
        "q[q] = q[::-1]": "q[q.copy()] = q[::-1].copy()",
        "q[q] = 2": "q[q.copy()] = 2",
        "q[q] += q": "q[q.copy()] += q.copy()",
        "q[q] += 1": "q[q.copy()] += 1",
        "q[q[::-1]] = p": "q[q[::-1].copy()] = p.copy()",
        "k[k] = False": "k[k.copy()] = False",
    }.items(),
)
def test_indices_that_an_assignment_changes(statement, truth):
    more = "\n    b[:] = b[q % 4] * k"
    with plainly():
        agree(ng.kernel(function(statement + more)), function(truth + more))


def test_items_that_do_not_fit():
    with plainly(), pytest.raises(ng.errors.NumgradValueError, match="different lengths, 4 and 2"):
        ng.kernel(function("y[:] = [1, 2]"))(X)
    with plainly(), pytest.raises(ng.errors.NumgradError, match="more axes"):
        ng.kernel(function("y[:] = [[1, 2], [3, 4]]"))(X)
