"""Transforms of functions of a vector, by numgrad and by dual numbers of nested levels.

A transform turns a function from vectors to vectors into another one, so any of them follow each
other. The truth is computed with plain Python numbers: derivatives of any order along directions,
by numbers ``a + b eps`` whose parts may be such numbers of lower levels.
"""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from dataclasses import dataclass

import numpy as np

import numgrad as ng

# ------------------------------------------------------------------------- numbers of the truth

_levels = itertools.count()


@dataclass
class Dual:
    """``a + b eps``, where numbers of a higher level are the outer ones."""

    level: int
    a: object
    b: object

    def __add__(self, other):
        if isinstance(other, Dual) and other.level > self.level:
            return other + self
        a, b = split(other, self.level)
        return Dual(self.level, self.a + a, self.b + b)

    def __mul__(self, other):
        if isinstance(other, Dual) and other.level > self.level:
            return other * self
        a, b = split(other, self.level)
        return Dual(self.level, self.a * a, self.a * b + self.b * a)

    __radd__, __rmul__ = __add__, __mul__


def split(x, level):
    """Both parts of a number at a level."""
    return (x.a, x.b) if isinstance(x, Dual) and x.level == level else (x, 0.0)


def lifted(function, slope):
    def of(x):
        if isinstance(x, Dual):
            return Dual(x.level, of(x.a), slope(x.a) * x.b)
        return function(x)

    return of


sin = lifted(math.sin, lambda x: cos(x))
cos = lifted(math.cos, lambda x: -1 * sin(x))
exp = lifted(math.exp, lambda x: exp(x))
tanh = lifted(math.tanh, lambda x: 1 + -1 * tanh(x) * tanh(x))


def stripped(x):
    return stripped(x.a) if isinstance(x, Dual) else x


def along(f, x, v):
    """The derivative of f at x along v."""
    level = next(_levels)
    out = f([Dual(level, a, b) for a, b in zip(x, v, strict=True)])
    return [y.b if isinstance(y, Dual) and y.level == level else 0.0 for y in out]


def matrix(f, x):
    """Columns of the Jacobian."""
    return [along(f, x, [float(i == j) for i in range(len(x))]) for j in range(len(x))]


def dot(a, b):
    total = 0.0
    for p, q in zip(a, b, strict=True):
        total = p * q + total
    return total


# --------------------------------------------------------------------------------- the functions

SIZE = 2
M = np.array([[0.5, -0.3], [0.8, 0.4]])
CONSTANT = np.array([0.3, -0.7])
BY_EXAMPLE = np.array([[1.0], [2.0], [-1.0]])

FUNCTIONS = {
    "sine": (lambda x: np.sin(x) * x[::-1], lambda x: [sin(x[0]) * x[1], sin(x[1]) * x[0]]),
    "bell": (
        lambda x: np.exp(x * x * -0.5) * np.sum(x),
        lambda x: [exp(a * a * -0.5) * (x[0] + x[1]) for a in x],
    ),
    "layer": (lambda x: np.tanh(M @ x), lambda x: [tanh(dot(map(float, row), x)) for row in M]),
    "products": (lambda x: np.cumprod(x), lambda x: [x[0], x[0] * x[1]]),
    "branch": (
        lambda x: np.where(x > 0.6, x * x * x, np.sin(x)),
        lambda x: [a * a * a if stripped(a) > 0.6 else sin(a) for a in x],
    ),
    "stack": (
        lambda x: np.stack([x[0] * x[1], np.cos(x[1])]),
        lambda x: [x[0] * x[1], cos(x[1])],
    ),
    "constant": (lambda x: CONSTANT, lambda x: [0.3, -0.7]),
}  # fmt: skip

# --------------------------------------------------------------------------------- the transforms

WEIGHTS = [1.0, -0.6]
W = np.array(WEIGHTS)
Pair = namedtuple("Pair", "a b")


def _gradient(f, x):
    return [dot(WEIGHTS, column) for column in matrix(f, x)]


def _scalar(f):
    return lambda x: np.sum(f(x) * W)


def _tape(f):
    def of(x):
        with ng.enable_grad():  # rules of one's own are evaluated without recording
            own = x.clone() if isinstance(x, ng.Tensor) else ng.tensor(x)
            if not own.requires_grad:
                own.requires_grad_()
            out = _scalar(f)(own)
            if not (isinstance(out, ng.Tensor) and out.requires_grad):
                return own * 0.0
            (g,) = ng.autograd.grad(out, own, create_graph=True, allow_unused=True)
            return own * 0.0 if g is None else g

    return of


def _nested(f):
    def of(x):
        def inner(p, scale):
            whole = f(np.concatenate([p["u"].a, p["u"].b[0]]))
            return np.sum(whole * W) * scale, {"aux": whole}

        given = {"u": Pair(x[:1], [x[1:]])}
        found, aux = ng.grad(inner, has_aux=True)(given, scale=2.0)
        return np.concatenate([found["u"].a, found["u"].b[0]]) + aux["aux"]

    return of


def _rows(f):
    def of(x):
        examples = np.stack([x, x * 0.5, x * -0.3])
        return np.sum(ng.vmap(f)(examples) * BY_EXAMPLE, axis=0)

    return of


def _rows_truth(f):
    def of(x):
        pairs = (1.0, 1.0), (0.5, 2.0), (-0.3, -1.0)
        parts = [[c * y for y in f([s * a for a in x])] for s, c in pairs]
        return [p + q + r for p, q, r in zip(*parts, strict=True)]

    return of


def _by_vjp(f):
    ruled = ng.custom_vjp(lambda x: f(x) * 1.0)
    ruled.defvjp(
        lambda x: (f(x) * 1.0, x), lambda x, g: (ng.vjp(lambda z: f(z) * 1.0, x)[1](g) * 2.0,)
    )
    return ruled


def _by_jvp(f):
    ruled = ng.custom_jvp(lambda x: f(x) * 1.0)

    @ruled.defjvp
    def rule(primals, tangents):
        value, moved = ng.jvp(lambda z: f(z) * 1.0, primals, tangents)
        return value, moved * 2.0

    return ruled


def _doubled(f):
    """Twice the derivative, the value as it is."""

    def of(x):
        return [2 * y + -1 * stripped(y) for y in f(x)]

    return of


TRANSFORMS = {
    "grad": (lambda f: ng.grad(_scalar(f)), lambda f: lambda x: _gradient(f, x)),
    "value_and_grad": (
        lambda f: lambda x: (lambda v, g: g * v)(*ng.value_and_grad(_scalar(f))(x)),
        lambda f: lambda x: [dot(WEIGHTS, f(x)) * g for g in _gradient(f, x)],
    ),
    "argnums": (
        lambda f: lambda x: ng.grad(lambda a, b: np.sum(f(a * b) * W), argnums=(1,))(x, x * x)[0],
        lambda f: lambda x: _gradient(
            lambda b: f([p * q for p, q in zip(x, b, strict=True)]), [a * a for a in x]
        ),
    ),
    "tape": (_tape, lambda f: lambda x: _gradient(f, x)),
    "containers": (
        _nested,
        lambda f: lambda x: [2 * g + y for g, y in zip(_gradient(f, x), f(x), strict=True)],
    ),
    **{
        name: (
            lambda f, jacobian=jacobian: lambda x: W @ jacobian(f)(x),
            lambda f: lambda x: _gradient(f, x),
        )
        for name, jacobian in (
            ("jacobian", ng.jacobian), ("jacfwd", ng.jacfwd), ("jacrev", ng.jacrev)
        )
    },
    "hessian": (
        lambda f: lambda x: ng.hessian(_scalar(f))(x) @ np.cos(x),
        lambda f: lambda x: along(lambda z: _gradient(f, z), x, [cos(a) for a in x]),
    ),
    "hvp": (
        lambda f: lambda x: ng.hvp(_scalar(f))(x, np.cos(x)),
        lambda f: lambda x: along(lambda z: _gradient(f, z), x, [cos(a) for a in x]),
    ),
    "vhp": (
        lambda f: lambda x: ng.vhp(_scalar(f))(x, np.cos(x)),
        lambda f: lambda x: along(lambda z: _gradient(f, z), x, [cos(a) for a in x]),
    ),
    "jvp": (
        lambda f: lambda x: ng.jvp(f, (x,), (np.sin(x),))[1],
        lambda f: lambda x: along(f, x, [sin(a) for a in x]),
    ),
    "linearize": (
        lambda f: lambda x: ng.linearize(f, x)[1](np.sin(x)),
        lambda f: lambda x: along(f, x, [sin(a) for a in x]),
    ),
    "vjp": (
        lambda f: lambda x: ng.vjp(f, x)[1](np.sin(x)),
        lambda f: lambda x: [dot([sin(a) for a in x], c) for c in matrix(f, x)],
    ),
    "vmap": (_rows, _rows_truth),
    "checkpoint": (
        lambda f: lambda x: ng.checkpoint(f, x, use_reentrant=False), lambda f: f,
    ),
    "stop_gradient": (
        lambda f: lambda x: f(x) * ng.stop_gradient(f(x)),
        lambda f: lambda x: [y * stripped(y) for y in f(x)],
    ),
    "custom_vjp": (_by_vjp, _doubled),
    "custom_jvp": (_by_jvp, _doubled),
    "jit": (lambda f: ng.jit(f), lambda f: f),
}  # fmt: skip
FORWARD = {"jvp", "jacfwd", "linearize", "hvp", "vhp", "hessian", "jacobian", "custom_jvp"}
"""Transforms that may use forward mode, which ``custom_vjp`` has no rule for."""

REFUSED = (
    ("forward mode", lambda names: "custom_vjp" in names and bool(FORWARD & names)),
    ("only the whole batch has a place in a graph", {"vmap", "tape"}.issubset),
)
"""What errors say that are right, and of which compositions."""

X = np.array([0.9, 0.4])


def composed(names, function):
    """A function after these transforms, the innermost first, and its truth."""
    ours, truth = FUNCTIONS[function]
    for name in names:
        ours, truth = TRANSFORMS[name][0](ours), TRANSFORMS[name][1](truth)
    return ours, truth


def check(names, function):
    """Compare value, gradient by ``ng.grad`` and by ``backward`` with the truth."""
    said = f"{' of '.join(reversed(names))} of {function}"
    ours, truth = composed(names, function)
    x = X.tolist()
    expected = [list(map(float, truth(x))), list(map(float, _gradient(truth, x)))]
    leaf = ng.tensor(X, requires_grad=True)
    calls = {
        "value": (lambda: ours(X), expected[0]),
        "value of a Tensor": (lambda: ours(leaf), expected[0]),
        "gradient": (lambda: ng.grad(_scalar(ours))(X), expected[1]),
        "backward": (lambda: _backward(ours, leaf), expected[1]),
    }
    for what, (call, right) in calls.items():
        try:
            found = call()
        except Exception as error:
            if any(text in str(error) and of(set(names)) for text, of in REFUSED):
                return
            raise AssertionError(f"{said}: {what}: {error}") from error
        found = found.detach().numpy() if isinstance(found, ng.Tensor) else found
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-11, err_msg=f"{said}: {what}")


def _backward(f, leaf):
    out = _scalar(f)(leaf)
    if not (isinstance(out, ng.Tensor) and out.requires_grad):
        return np.zeros(SIZE)
    leaf.grad = None
    out.backward()
    return np.zeros(SIZE) if leaf.grad is None else leaf.grad
