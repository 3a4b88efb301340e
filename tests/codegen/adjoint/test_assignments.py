"""Assignments of several arrays at once, copies and views, against the plain function."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradKernelError

X = np.array([0.7, 1.3, -0.4, 2.1])
TEXTS = {
    "rotation in time": "for t in range(n): u, v = u + 0.1 * v, v - 0.1 * u",
    "no products": "for t in range(n): u, v = u + v, u - v",
    "a copy second": "for t in range(n): u, v = u + 1, u.copy()",
    "three": "for t in range(n): u, v, w = v + w, u - w, u * v * 0.1",
    "in branches": """
for t in range(n):
    if t % 2: u, v = v * 1.0, u * 1.0
    else: u = u + v
""",
    "names exchanged": "for t in range(n): u, v = v, u\nu[0] *= 3.0",
    "into slices": "for t in range(n): u[:], v[:] = u + v, u - v",
    "copies into slices": "u[:], v[:] = v.copy(), u.copy()",
    "halves": "u[:2], u[2:] = u[2:].copy(), u[:2].copy()",
    "views of halves": "u[:2], u[2:] = u[2:], u[:2]",
    "an element and the rest": "u[0], u[1:] = u[1], u[:-1].copy()",
    "a number and a copy": "u[0], v = x[0] * x[1], u.copy()",
    "rows": "b = np.stack((u, v)); b[0], b[1] = b[1].copy(), b[0].copy(); u = b[0] * 2.0 + b[1]",
    "rows times numbers": "b = np.stack((u, v)); b[0], b[1] = b[1] * 3.0, b[0] * 2.0; u = 3 * b[0]",
    "columns": "b = np.stack((u, v)); b[:, 0], b[:, 1] = b[:, 1] + 0, b[:, 0] + 0; v = b[1]",
    "a tuple that is named": "c = (u + v, u * v)\nu[0] = 9.0\nv = c[0] * c[1]",
    "a list that is named": "c = [u * 2, v]\nu[1] = 5.0\nv = c[0] + c[1]",
    "items of a tuple": "for c in (u + 1, u * 2):\n    u[0] = 4.0\n    v = v + c",
    "a plus sign": "v = +u\nu[0] = 9.0",
    "a plus sign of what is changed": "v = +u\nv[1] = 0.5",
    "the real component is the array": "v = u.real\nv[0] = x[1] * x[1]",
    "the conjugate of real numbers": "v = u.conj()\nv[0] = x[1] * x[1]",
    "the function conj copies": "v = np.conj(u)\nv[0] = x[1] * x[1]",
    "a list of indices": """
b = np.stack((u, v, u * v))
b[[0, 2]] = b[[2, 0]] * 2.0
c = b[[2, 1]]
u = c.sum(0)
""",
    "a list in a vector": "v = u[[0, 2]]; u[[1, 1, 3]] = 2.0 * x[0]",
    "a list beside a slice": "b = np.stack((u, v)); v = b[[1, 0], 1:] + 0.0; v = v.sum(0)",
}  # fmt: skip

START = """
import numpy as np

def f(x, n):
    u = x.copy()
    v = x * 2
    w = x - 1.0
"""
END = """
    s = 0.0
    for i in range(len(u)):
        s += (i + 1.0) * u[i] * u[i]
    for i in range(len(v)):
        s += (i + 0.5) * v[i] * v[i]
    return s + w[0] * w[1]
"""


def function_of(text, folder, name):
    lines = "\n".join(f"    {line}" for line in text.strip().splitlines())
    source = START + lines + END
    path = folder / f"{name}.py"
    path.write_text(source)
    space = {}
    exec(compile(source, str(path), "exec"), space)
    return space["f"]


@pytest.mark.parametrize("name", TEXTS)
def test_values_and_gradients(name, tmp_path):
    f = function_of(TEXTS[name], tmp_path, "assignment")
    kernel = ng.kernel(f)
    for n in (0, 1, 3):
        np.testing.assert_allclose(kernel(X, n), f(X, n), rtol=1e-13)
        steps = 1e-6 * np.eye(len(X))
        slope = np.array([(f(X + e, n) - f(X - e, n)) / 2e-6 for e in steps])
        np.testing.assert_allclose(ng.grad(kernel)(X, n), slope, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("text", ["v = z.real\nv[0] = 5.0", "v = z.real\nz[0] = 5.0"])
def test_components_of_complex_arrays_are_shared(text, tmp_path):
    lines = "\n".join(f"    {line}" for line in text.splitlines())
    source = f"def f(x):\n    z = x + 1j * x\n{lines}\n    return abs(z[0]) + v[0]\n"
    path = tmp_path / "component.py"
    path.write_text(source)
    space = {}
    exec(compile(source, str(path), "exec"), space)
    with pytest.raises(NumgradKernelError):
        ng.kernel(space["f"])(X)
