"""Views and in-place operations in a model that has no graph, for tests.

Note [Model]
------------
The model knows nothing of nodes, versions or saved tensors. Memory is a vector of numbers with the
Jacobian of each with respect to all leaves; a view is an array of positions in it, made by NumPy
from such an array; a write puts new numbers and rows of the Jacobian there. Complex elements take
two positions. Without grad a write changes numbers and leaves the Jacobian alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

LEAVES = ((3,), (2, 3), ())
"""Shapes of the leaves."""

P = sum(int(np.prod(shape)) for shape in LEAVES)


class Dual(NamedTuple):
    """Numbers and, along one more axis, their derivatives by every element of every leaf."""

    value: np.ndarray
    jacobian: np.ndarray


def constant(value):
    value = np.asarray(value)
    return Dual(value, np.zeros((*value.shape, P)))


def scaled(jacobian, factor):
    return jacobian * np.asarray(factor)[..., None]


def elementwise(value, *parts):
    """The result of an operation from pairs of a derivative and an operand's Jacobian."""
    full = (*np.shape(value), P)
    return Dual(np.asarray(value), sum(np.broadcast_to(scaled(j, d), full) for d, j in parts))


def spread(dual, ndim):
    """With the Jacobian's axes aligned from the left, as broadcasting aligns the values."""
    surplus = ndim - dual.value.ndim
    return dual.jacobian.reshape((1,) * surplus + dual.jacobian.shape)


def binary(value, a, b, by_a, by_b):
    ndim = np.ndim(value)
    by_a, by_b = (np.broadcast_to(d, np.shape(value)) for d in (by_a, by_b))
    return elementwise(value, (by_a, spread(a, ndim)), (by_b, spread(b, ndim)))


UNARY = {
    "sin": lambda x: (np.sin(x), np.cos(x)),
    "negative": lambda x: (-x, -np.ones_like(x)),
    "square": lambda x: (x * x, 2 * x),
    "exp": lambda x: (np.exp(x), np.exp(x)),
    "tanh": lambda x: (np.tanh(x), 1 - np.tanh(x) ** 2),
    "clip": lambda x: (np.clip(x, -0.7, 0.8), ((x >= -0.7) & (x <= 0.8)).astype(float)),
    "root": lambda x: (np.sqrt(x * x + 1), x / np.sqrt(x * x + 1)),
}
BINARY = {
    "add": lambda a, b: binary(a.value + b.value, a, b, 1.0, 1.0),
    "subtract": lambda a, b: binary(a.value - b.value, a, b, 1.0, -1.0),
    "multiply": lambda a, b: binary(a.value * b.value, a, b, b.value, a.value),
    "divide": lambda a, b: binary(
        a.value / b.value, a, b, 1 / b.value, -a.value / (b.value * b.value)
    ),
}
OF_COMPLEX = ("sin", "negative", "square", "exp")
SAVES_RESULT = ("exp", "tanh", "root")


@dataclass
class Memory:
    """What a tensor that is no view owns."""

    values: np.ndarray
    jacobian: np.ndarray
    follows: bool  # whether its history leads to a leaf
    leaf: bool = False


@dataclass
class Place:
    """A tensor: positions in a memory, how it was made, whether its elements are complex."""

    memory: Memory
    at: np.ndarray
    complex: bool = False
    detached: bool = False  # a view that was made without grad
    writable: bool = True

    @property
    def follows(self):
        return self.memory.follows and not self.detached

    def read(self, recording=True):
        value, jacobian = self.memory.values[self.at], self.memory.jacobian[self.at]
        if self.complex:
            value = value + 1j * self.memory.values[self.at + 1]
            jacobian = jacobian + 1j * self.memory.jacobian[self.at + 1]
        if self.detached or not recording:
            return constant(value)
        return Dual(value, jacobian)

    def write(self, dual, follows, recording, at=None, accumulate=False):
        """Store numbers one after the other: where positions repeat the last one stays."""
        at = self.at if at is None else at
        value = np.broadcast_to(dual.value, at.shape)
        jacobian = np.broadcast_to(spread(dual, at.ndim), (*at.shape, P))
        parts = [(0, np.real)] + [(1, np.imag)] * self.complex
        for shift, part in parts:
            at_part, v, j = at.ravel() + shift, part(value).ravel(), part(jacobian).reshape(-1, P)
            rows = zip(at_part, v, j, strict=True)
            for position, number, row in rows:
                old = self.memory.values[position] if accumulate else 0.0
                self.memory.values[position] = old + number
                if recording:
                    old = self.memory.jacobian[position] if accumulate else 0.0
                    self.memory.jacobian[position] = old + row
        if recording and follows:
            self.memory.follows = True


def new_place(dual, follows, leaf=False):
    """A tensor with memory of its own."""
    value, jacobian = dual
    iscomplex = np.iscomplexobj(value)
    if iscomplex:
        numbers = np.stack([value.real, value.imag], axis=-1)
        rows = np.stack([jacobian.real, jacobian.imag], axis=-2)
    else:
        numbers, rows = value, jacobian
    at = np.arange(numbers.size).reshape(numbers.shape)
    memory = Memory(numbers.astype(float).ravel(), rows.reshape(-1, P).real.copy(), follows, leaf)
    return Place(memory, at[..., 0] if iscomplex else at, iscomplex)


def imaginary(at):
    """The view of positions that shows those of imaginary parts."""
    if not at.size:  # it may lie anywhere
        return at[...]
    memory = at
    while memory.base is not None:
        memory = memory.base
    start = at.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return np.ndarray(at.shape, at.dtype, memory, start + at.itemsize, at.strides)
