"""Names that loops and branches give other arrays: NumPy's values, or an error, never others."""

import random

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradKernelError
from tests.codegen.adjoint.plain import plainly
from tests.codegen.adjoint.test_assignments import END, function_of

X = np.array([0.7, 1.3, -0.4, 2.1])
DRAWN = 2000
RENAMES = ["{a} = {b}", "{a} = {b} + 0.1 * {c}", "{a}, {b} = {b}, {a}", "{a}, {b} = {b}, {c} - {a}",
           "{a} = 0.5 * {a} + 1.0", "{a} = {b}.copy()", "{a} = np.zeros(4)", "{a}, {b} = {c}, {a}",
           "{a} = {b}.reshape(4)", "{a} = {b}[::-1]", "{a} = +np.array({b}[::-1])",
           "{a} = np.asarray({b}.reshape((2, 2))).ravel()",
           "{a} = {b}.reshape((2, 2)).copy().reshape(4)"]  # fmt: skip
STORES = ["{a}[1] = 0.3 * {b}[0]", "{a}[:] = {b} * 0.9", "{a} += 0.1 * {b}", "{a}[t % 4] += 0.2",
          "{a}[2:] = {b}[:2].copy()"]  # fmt: skip


def draw(seed):
    """A text of assignments to names and to elements in loops and branches."""
    rng = random.Random(seed)

    def statements(depth, margin):
        lines = []
        for _ in range(rng.randint(1, 3)):
            names = dict(zip("abc", rng.sample("uvw", 3), strict=True))
            kind = rng.random()
            if depth < 3 and kind < 0.25:
                lines += [margin + rng.choice(["for t in range(n):", "for t in range(2):"])]
                lines += statements(depth + 1, margin + "    ")
            elif depth < 3 and kind < 0.45:
                lines += [margin + rng.choice(["if t % 2 == 0:", "if n > 1:", "if x[t] > 0.8:"])]
                lines += statements(depth + 1, margin + "    ")
                if rng.random() < 0.5:
                    lines += [margin + "else:", *statements(depth + 1, margin + "    ")]
            else:
                line = rng.choice(RENAMES if kind < 0.78 else STORES)
                lines.append(margin + line.format(**names))
        return lines

    return "t = 0\n" + "\n".join(statements(0, ""))


def check(text, folder):
    """Whether a text is one for kernels: then its values and gradients are NumPy's."""
    f = function_of(text, folder, "sharing")
    kernel = ng.kernel(f)
    try:
        with plainly():
            for n in (0, 1, 3):
                np.testing.assert_allclose(kernel(X, n), f(X, n), rtol=1e-12)
            steps = 1e-6 * np.eye(len(X))
            slope = np.array([(f(X + e, 3) - f(X - e, 3)) / 2e-6 for e in steps])
            size = np.max(np.abs(slope), initial=1.0)
            np.testing.assert_allclose(ng.grad(kernel)(X, 3), slope, rtol=1e-6, atol=1e-6 * size)
    except NumgradKernelError:
        return False
    return True


TEXTS = {
    "a new array in a branch": "if n > 0: u = u + v",
    "one on both sides": "if n > 0: u = v + w\nelse: u = v * w",
    "one of two": "if n > 1: w = u\nelse: w = v\nu = w * w",
    "a new one that is changed": "if n > 0:\n    u = u + v\n    u[0] = 3.0\nu[1] = v[1]",
    "a tuple in a branch": "if n > 1: p = (2.0, u)\nelse: p = (3.0, v)\nu = p[0] * p[1]",
    "in a loop and a branch": """
for t in range(n):
    if x[t] > 0.8: w = u * v
    else: w = u + v
    u = w - 0.5 * u
""",
    "a new array becomes the old": """
for t in range(n):
    new = np.empty_like(u)
    for i in range(4): new[i] = u[i - 1] * v[i]
    u = new
    u[0] = 0.5
""",
    "a recurrence of Chebyshev": "for t in range(n): u, v = v, 2 * x * v - u",
    "one of Clenshaw": "for t in range(n): u, v = 0.3 * t + 2 * x * u - v, u",
    "leapfrog": "for t in range(n):\n    new = 2 * v - u + 0.1 * w\n    u = v\n    v = new",
    "one of Viterbi": "for t in range(n): u = np.max(u[:, None] + np.outer(v, w), axis=0) + w[t]",
    "copies": """
for t in range(n):
    v[0] = 0.3 * u[1]
    u = v.copy()
    w = np.array(u.reshape((2, 2))).ravel()
    v[1] = 0.2 + w[0]
    u[2] = +v[1]
""",
    "a copy in another shape": "w = u.reshape((2, 2)).copy()\nw[0, 0] = 5.0\nw = w.ravel()",
    "turns and something else": "for t in range(n):\n    u, v = v, u\n    u = u + 0.5 * v",
}


@pytest.mark.parametrize("name", TEXTS)
def test_values_and_gradients(name, tmp_path):
    assert check(TEXTS[name], tmp_path)


REFUSED = {
    "the argument itself at first": "for t in range(n):\n    x[0] += 1.0\n    x = x + u",
    "perhaps the argument": "for t in range(n): x = x + u\nx[0] = 7.0",
    "twice in another shape": "if n > 1: u = v.reshape((2, 2)).reshape(4)\nv[0] = 7.0",
    "an array of its dtype": "if n > 1: u = np.asarray(v, np.float64)\nv[0] = 7.0",
    "another shape in turns": "u = w.reshape(4)\nfor t in range(n):\n    w += v\n    v = u",
    "perhaps the other name": "w = u\nif n > 1: w = w + v\nw[0] = 7.0",
    "a new array by two names": """
for t in range(n):
    new = u + 1.0
    u = new
    new[0] = 5.0
    v = u + v
""",
    "the caller's array": """
def change(z):
    for t in range(n):
        z = z + v
    z[0] = 9.0
    return z[1]
v[0] = change(u)
""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    f = function_of(REFUSED[name], tmp_path, "shared")
    with pytest.raises(NumgradKernelError, match=r"share elements|part of it|is overwritten"):
        ng.kernel(f)(X, 3)


@pytest.mark.parametrize("first", [0, 10])
def test_drawn_texts(first, tmp_path):
    assert sum(check(draw(seed), tmp_path) for seed in range(first, first + 10)) > 2


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("first", range(100, 100 + DRAWN, 50))
def test_many_drawn_texts(first, tmp_path):
    for seed in range(first, first + 50):
        try:
            check(draw(seed), tmp_path)
        except Exception as error:
            error.add_note(f"seed {seed}\n{draw(seed)}{END}")
            raise
