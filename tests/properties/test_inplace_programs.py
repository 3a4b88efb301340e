"""Random programs of views and in-place operations, against a model that has no graph.

Note [Model]
------------
The model knows nothing of nodes, versions or saved tensors. Memory is a vector of numbers with the
Jacobian of each with respect to all leaves; a view is an array of positions in it, made by NumPy
from such an array; a write puts new numbers and rows of the Jacobian there. Complex elements take
two positions. Without grad a write changes numbers and leaves the Jacobian alone.

A *careful* program clones what an operation might save, so nothing it writes to is ever needed as
it was, and its backward must succeed. Any other program may fail with an error about versions, but
only where PyTorch fails as well.
"""

from __future__ import annotations

import operator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import numgrad as ng

LEAVES = ((3,), (2, 3), ())
P = sum(int(np.prod(shape)) for shape in LEAVES)
LARGE = 200.0


# -------------------------------------------------------------------------------------- the model


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
    "clip": lambda x: (np.clip(x, -0.7, 0.8), ((x > -0.7) & (x < 0.8)).astype(float)),
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
AUGMENTED = {
    "add": operator.iadd,
    "subtract": operator.isub,
    "multiply": operator.imul,
    "divide": operator.itruediv,
}


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
            rows = zip(at.ravel() + shift, part(value).ravel(), part(jacobian).reshape(-1, P))
            for position, v, j in rows:
                old = self.memory.values[position] if accumulate else 0.0
                self.memory.values[position] = old + v
                if recording:
                    old = self.memory.jacobian[position] if accumulate else 0.0
                    self.memory.jacobian[position] = old + j
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
    memory = at
    while memory.base is not None:
        memory = memory.base
    start = at.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return np.ndarray(at.shape, at.dtype, memory, start + at.itemsize, at.strides)


# ----------------------------------------------------------------------------------- the programs
# Each kind of step is a class with its meaning in the model, for numgrad and for PyTorch.


@dataclass(frozen=True)
class View:
    source: int
    kind: str
    arguments: tuple = ()

    MODEL = {
        "index": lambda at, index: at[index],
        "permute": lambda at, axes: at.transpose(axes),
        "swap": lambda at, a, b: np.swapaxes(at, a, b),
        "reshape": lambda at, shape: at.reshape(shape),
        "diagonal": lambda at, offset, a, b: np.diagonal(at, offset, a, b),
        "flip": lambda at, axis: np.flip(at, axis),
        "squeeze": lambda at: np.squeeze(at),
        "expand": lambda at, axis: np.expand_dims(at, axis),
        "real": lambda at: at[...],
        "imag": imaginary,
        "part": lambda at, k: at[k],
        "half": lambda at: at[: (len(at) + 1) // 2],
        "broadcast": lambda at, shape: np.broadcast_to(at, shape),
    }
    NUMGRAD = {
        "index": lambda t, index: t[index],
        "permute": lambda t, axes: ng.permute_dims(t, axes),
        "swap": lambda t, a, b: t.swapaxes(a, b),
        "reshape": lambda t, shape: t.reshape(shape),
        "diagonal": lambda t, offset, a, b: ng.diagonal(t, offset=offset, axis1=a, axis2=b),
        "flip": lambda t, axis: ng.flip(t, axis=axis),
        "squeeze": lambda t: t.squeeze(),
        "expand": lambda t, axis: ng.expand_dims(t, axis=axis),
        "real": lambda t: t.real,
        "imag": lambda t: t.imag,
        "part": lambda t, k: ng.unstack(t)[k],
        "half": lambda t: ng.array_split(t, 2)[0],
        "broadcast": lambda t, shape: ng.broadcast_to(t, shape),
    }
    TORCH = {
        "index": lambda t, index: t[index],
        "permute": lambda t, axes: t.permute(axes),
        "swap": lambda t, a, b: t.swapaxes(a, b),
        "reshape": lambda t, shape: t.view(shape),
        "diagonal": lambda t, offset, a, b: t.diagonal(offset, a, b),
        "squeeze": lambda t: t.squeeze(),
        "expand": lambda t, axis: t.unsqueeze(axis),
        "real": lambda t: t.real,
        "imag": lambda t: t.imag,
        "part": lambda t, k: t.unbind()[k],
        "half": lambda t: t.tensor_split(2)[0],
        "broadcast": lambda t, shape: t.expand(shape),
    }

    def in_model(self, live, recording):
        source = live[self.source]
        at = self.MODEL[self.kind](source.at, *self.arguments)
        live.append(
            Place(
                source.memory,
                at,
                source.complex and self.kind not in ("real", "imag"),
                source.detached or not recording,
                source.writable and self.kind not in ("part", "half", "broadcast"),
            )
        )

    def run(self, live, backend):
        live.append(backend.views[self.kind](live[self.source], *self.arguments))


@dataclass(frozen=True)
class Operand:
    """The right-hand side of a write or read: numbers, or a live tensor in some form."""

    numbers: Any = None
    source: int = -1
    form: str = "itself"  # "clone", "sum"

    def in_model(self, live, recording):
        if self.source < 0:
            return constant(np.asarray(self.numbers)), False
        place = live[self.source]
        dual = place.read(recording)
        if self.form == "sum":
            axes = tuple(range(dual.value.ndim))
            dual = Dual(0.1 * dual.value.sum(), 0.1 * dual.jacobian.sum(axis=axes))
        return dual, place.follows and recording

    def value(self, live, backend):
        if self.source < 0:
            return backend.array(self.numbers)
        t = live[self.source]
        if self.form == "sum":
            return t.sum() * 0.1
        return t.clone() if self.form == "clone" else t


@dataclass(frozen=True)
class Read:
    """A new tensor: ``kind`` of a tensor and perhaps another."""

    kind: str
    operands: tuple[Operand, ...]
    clone: bool = False  # the result, which the operation saves

    def in_model(self, live, recording):
        found = [operand.in_model(live, recording) for operand in self.operands]
        duals = [dual for dual, _ in found]
        if self.kind in BINARY:
            out = BINARY[self.kind](*duals)
        else:
            value, derivative = UNARY[self.kind](duals[0].value)
            out = elementwise(value, (derivative, duals[0].jacobian))
        live.append(new_place(out, any(follows for _, follows in found)))

    def run(self, live, backend):
        values = [operand.value(live, backend) for operand in self.operands]
        out = backend.function(self.kind)(*values)
        live.append(out.clone() if self.clone else out)


@dataclass(frozen=True)
class Write:
    """``kind`` in place on a tensor; ``how`` tells ``t.add_(v)`` from ``t += v``."""

    target: int
    kind: str
    how: str = "method"
    operand: Operand | None = None
    arguments: tuple = ()

    def in_model(self, live, recording):
        target = live[self.target]
        before = target.read(recording)
        dual, follows = constant(0.0), False
        if self.operand is not None:
            dual, follows = self.operand.in_model(live, recording)
        arguments = self.arguments
        if self.kind in UNARY:
            value, derivative = UNARY[self.kind](before.value)
            out, at = elementwise(value, (derivative, before.jacobian)), None
        elif self.kind in BINARY and not arguments:
            out, at = BINARY[self.kind](before, dual), None
        elif self.kind in BINARY:  # t[index] += v
            at = target.at[plain(arguments[0])]
            part = Place(target.memory, at, target.complex, target.detached)
            out = BINARY[self.kind](part.read(recording), dual)
        elif self.kind in ("set", "index_put"):
            out, at = dual, target.at[plain(arguments[0])]
        elif self.kind == "masked_fill":
            out, at = dual, target.at[np.array(arguments[0])]
        elif self.kind == "put":
            out, at = dual, target.at.reshape(-1)[list(arguments[0])]
        elif self.kind in ("index_add", "index_copy"):
            axis, index = arguments
            out, at = dual, np.take(target.at, index, axis)
        elif self.kind == "scatter":
            axis, index = arguments
            out, at = dual, np.take_along_axis(target.at, np.array(index), axis)
        else:  # copy, fill, zero
            out, at = dual, None
        accumulate = self.kind == "index_add" or (self.kind == "put" and arguments[1])
        target.write(out, follows, recording, at, accumulate)

    def run(self, live, backend):
        value = None if self.operand is None else self.operand.value(live, backend)
        backend.write(self, live[self.target], value)


def plain(index):
    """An index with lists as arrays."""
    return tuple(np.array(part) if isinstance(part, list) else part for part in index)


class Numgrad:
    views = View.NUMGRAD
    no_grad = staticmethod(ng.no_grad)

    def array(self, numbers):
        return np.array(numbers) if np.ndim(numbers) else numbers

    def function(self, kind):
        return {"root": lambda x: np.sqrt(x * x + 1.0), "clip": lambda x: ng.clip(x, -0.7, 0.8)}.get(
            kind, getattr(ng, kind, None)
        )

    def index(self, parts):
        return plain(parts)

    def write(self, step, t, value):
        kind, arguments = step.kind, step.arguments
        if kind == "root":
            t.square_().add_(1.0).sqrt_()
        elif kind == "clip":
            t.clip_(-0.7, 0.8)
        elif kind == "put":
            t.put_(list(arguments[0]), value, accumulate=arguments[1])
        elif kind == "masked_fill":
            t.masked_fill_(np.array(arguments[0]), value)
        elif kind in ("index_add", "index_copy", "scatter"):
            getattr(t, f"{kind}_")(np.array(arguments[1]), value, axis=arguments[0])
        elif kind == "index_put":
            t.index_put_(value, index=self.index(arguments[0]))
        else:
            write_anywhere(step, t, value, self.index, kind)


class Torch:
    views = View.TORCH

    def __init__(self):
        self.torch = pytest.importorskip("torch")
        self.no_grad = self.torch.no_grad

    def array(self, numbers):
        return self.torch.tensor(numbers, dtype=self.torch.float64) if np.ndim(numbers) else numbers

    def function(self, kind):
        names = {"clip": lambda x: x.clamp(-0.7, 0.8), "root": lambda x: (x * x + 1.0).sqrt()}
        return names.get(kind, getattr(self.torch, kind, None))

    def index(self, parts):
        return tuple(self.torch.tensor(p) if isinstance(p, list) else p for p in parts)

    def write(self, step, t, value):
        torch, kind, arguments = self.torch, step.kind, step.arguments
        if kind == "root":
            t.square_().add_(1.0).sqrt_()
        elif kind == "clip":
            t.clamp_(-0.7, 0.8)
        elif kind == "put":
            t.put_(torch.tensor(arguments[0]), value, accumulate=arguments[1])
        elif kind == "masked_fill":
            t.masked_fill_(torch.tensor(arguments[0]), value)
        elif kind in ("index_add", "index_copy", "scatter"):
            getattr(t, f"{kind}_")(arguments[0], torch.tensor(arguments[1]), value)
        elif kind == "index_put":
            t.index_put_(self.index(arguments[0]), value)
        else:
            write_anywhere(step, t, value, self.index, kind)


def write_anywhere(step, t, value, index, kind):
    """What is written alike for numgrad and PyTorch."""
    if kind == "set":
        t[index(step.arguments[0])] = value
    elif step.arguments:
        place = index(step.arguments[0])
        t[place] = AUGMENTED[kind](t[place], value)
    elif step.how == "operator":
        AUGMENTED[kind](t, value)
    elif value is None:
        getattr(t, f"{kind}_")()
    else:
        getattr(t, f"{kind}_")(value)


@dataclass
class Program:
    """Steps, which of them run without grad, and the initial numbers of the leaves."""

    numbers: list[np.ndarray]
    steps: list[tuple[Any, bool]] = field(default_factory=list)

    def model(self):
        live = []
        offset = 0
        for numbers in self.numbers:
            rows = np.eye(P)[offset : offset + numbers.size].reshape(*numbers.shape, P)
            live.append(new_place(Dual(numbers, rows), True, leaf=True))
            offset += numbers.size
        return live

    def run(self, leaves, backend):
        live = list(leaves)
        for step, recording in self.steps:
            with nullcontext() if recording else backend.no_grad():
                step.run(live, backend)
        return live


def weights(k, shape):
    return np.cos(1.0 + 3 * k + np.arange(int(np.prod(shape)))).reshape(shape)


def expected(live):
    """Gradients of the weighted sum of everything alive."""
    total = np.zeros(P)
    for k, place in enumerate(live):
        _, jacobian = place.read()
        w = weights(k, place.at.shape)[..., None]
        axes = tuple(range(place.at.ndim))
        total += (jacobian.real * w).sum(axis=axes)
        if place.complex:
            total += 0.5 * (jacobian.imag * w).sum(axis=axes)
    return total


def loss(live, array):
    total = 0.0
    for k, t in enumerate(live):
        w = array(weights(k, tuple(t.shape)))
        if "complex" in str(t.dtype):
            total = total + (t.real * w).sum() + 0.5 * (t.imag * w).sum()
        else:
            total = total + (t * w).sum()
    return total


# ----------------------------------------------------------------------------------- the strategy

numbers = st.integers(-9, 9).map(lambda k: k / 8 + 0.03)


@dataclass
class Writer:
    """Draws the steps of a program, which the model runs as they are drawn."""

    draw: Any
    program: Program
    live: list[Place]
    torch: bool  # only what PyTorch has, too
    careful: bool

    def pick(self, options):
        return self.draw(st.sampled_from(list(options)))

    def choose(self, test):
        """The number of a live tensor, or None; recent ones are preferred."""
        found = [k for k, place in enumerate(self.live) if test(place)]
        return self.pick(found[::-1]) if found else None

    def step(self):
        recording = self.draw(st.integers(0, 6)) > 0
        kind = self.pick(["view", "view", "write", "write", "write", "read"])
        step = getattr(self, kind)(recording)
        if step is None:
            return
        step.in_model(self.live, recording)
        self.program.steps.append((step, recording))
        assume(all(np.abs(p.memory.values).max(initial=0) < LARGE for p in self.live))

    # ------------------------------------------------------------------------------------ views

    def view(self, recording):
        source = self.choose(lambda place: place.at.ndim < 4)
        place = self.live[source]
        ndim, shape = place.at.ndim, place.at.shape
        kinds = ["index", "index", "expand", "squeeze", "broadcast"]
        kinds += ["reshape", "half"] * (ndim > 0) + ["real", "imag"] * place.complex
        kinds += ["permute", "swap", "diagonal"] * (ndim > 1)
        kinds += ["flip"] * (not self.torch and ndim > 0)
        kinds += ["part"] * (ndim > 0 and len(place.at) > 0)
        kind = self.pick(kinds)
        arguments: tuple = ()
        if kind == "index":
            arguments = (self.basic(shape),)
        elif kind == "expand":
            arguments = (self.pick(range(-ndim - 1, ndim + 1)),)
        elif kind == "flip":
            arguments = (self.pick([None, *range(ndim)]),)
        elif kind in ("permute", "swap", "diagonal"):
            axes = tuple(self.draw(st.permutations(range(ndim))))
            offset = self.pick([0, 1, -1])
            arguments = {"permute": (axes,), "swap": axes[:2], "diagonal": (offset, *axes[:2])}[kind]
        elif kind == "broadcast":
            arguments = ((2, *shape),)
        elif kind == "part":
            arguments = (self.pick(range(len(place.at))),)
        elif kind == "reshape":
            shapes = [(-1,), (1, *shape), (*shape[:-1], 1, shape[-1]), (place.at.size, 1)]
            new = self.pick(shapes)
            if place.at.size == 0 or not np.shares_memory(place.at.reshape(new), place.at):
                return None
            arguments = (new,)
        return View(source, kind, arguments)

    def basic(self, shape):
        """An index of slices, integers, None and Ellipsis."""
        parts: list[Any] = []
        for n in shape:
            part = self.pick(["slice", "slice", "int", "all", "stop"])
            if part == "stop":
                if self.draw(st.booleans()):
                    parts.append(Ellipsis)
                break
            if part == "int" and n:
                parts.append(self.pick(range(-n, n)))
            elif part == "slice":
                steps = [1, 2] if self.torch else [1, 2, -1, -2]
                ends = [None, *range(-n, n)]
                parts.append(slice(self.pick(ends), self.pick(ends), self.pick(steps)))
            else:
                parts.append(slice(None))
        if self.draw(st.integers(0, 4)) == 0:
            parts.insert(self.pick(range(len(parts) + 1)), None)
        return tuple(parts)

    def index(self, shape):
        """Any index: basic, with lists of integers, or a mask."""
        kind = self.pick(["basic", "basic", "list", "mask"])
        if kind == "basic" or not shape or 0 in shape:
            return self.basic(shape)
        if kind == "mask":
            mask = self.draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0]))
            return (mask,)
        axis = self.pick(range(len(shape)))
        return (*(slice(None),) * axis, self.integers(shape[axis]))

    def integers(self, n, unique=False, count=None):
        """Indices of an axis, which may repeat: PyTorch's gradient is wrong then."""
        most = n if unique or self.torch else n + 1
        low, high = (1, most) if count is None else (count, count)
        found = st.lists(st.integers(-n, n - 1), min_size=low, max_size=high)
        drawn = self.draw(found)
        if unique or self.torch:
            drawn = list(dict.fromkeys(k % n for k in drawn))
        return drawn

    # ------------------------------------------------------------------------------ what is read

    def operand(self, recording, shape, iscomplex, saved, scalar=False, test=lambda place: True):
        """Something that broadcasts to a shape."""

        def fits(place):
            try:
                fitting = np.broadcast_shapes(place.at.shape, shape) == shape
            except ValueError:
                return False
            return fitting and (iscomplex or not place.complex) and test(place)

        kind = self.pick(["number", "array", "tensor", "tensor", "tensor"])
        if kind == "number" or (kind == "array" and scalar):
            return Operand(self.draw(numbers))
        if kind == "array":
            shapes = [shape[k:] for k in range(len(shape) + 1)]
            shapes += [(1, *shape[1:])] * (len(shape) > 0)
            drawn = self.pick(shapes)
            count = int(np.prod(drawn))
            flat = self.draw(st.lists(numbers, min_size=count, max_size=count))
            return Operand(np.reshape(flat, drawn).tolist()) if count else Operand(0.25)
        source = self.choose(fits) if not scalar else None
        if source is None or self.draw(st.integers(0, 5)) == 0:
            source = self.choose(lambda place: (iscomplex or not place.complex) and test(place))
            return Operand(0.5) if source is None else Operand(source=source, form="sum")
        cloned = (saved and self.careful) or self.draw(st.integers(0, 3)) == 0
        return Operand(source=source, form="clone" if cloned else "itself")

    def read(self, recording):
        source = self.choose(lambda place: place.at.size <= 24)
        place = self.live[source]
        kinds = ["add", "multiply", "sin", "negative"]
        if not place.complex:
            kinds += ["tanh", "clip", "root"]
        kind = self.pick(kinds)
        saved = kind not in ("add", "negative")
        form = "clone" if saved and self.careful else "itself"
        first = Operand(source=source, form=form)
        if kind not in BINARY:
            return Read(kind, (first,), self.careful and kind in SAVES_RESULT)
        if not place.complex and self.draw(st.integers(0, 3)) == 0:
            return Read("multiply", (first, Operand(0.5 + 0.25j)))
        return Read(kind, (first, self.operand(recording, place.at.shape, place.complex, saved)))

    # ----------------------------------------------------------------------------------- writes

    def write(self, recording):
        def may_be(place):
            if not place.writable or (place.memory.leaf and recording):
                return False
            return not (recording and place.detached and place.memory.follows)

        number = self.choose(may_be)
        if number is None:
            return None
        target = self.live[number]
        test = lambda place: not (recording and target.detached and place.follows)  # noqa: E731
        kinds = ["binary", "binary", "unary", "set", "set", "augmented", "copy", "fill", "special"]
        return getattr(self, f"write_{self.pick(kinds)}")(number, target, recording, test)

    def write_unary(self, number, target, recording, test):
        kinds = OF_COMPLEX if target.complex else tuple(UNARY)
        if self.careful:  # the saved result is in memory that may be written to
            kinds = [kind for kind in kinds if kind not in SAVES_RESULT]
        return Write(number, self.pick(kinds))

    def write_binary(self, number, target, recording, test):
        kind = self.pick(BINARY)
        shape, saved = target.at.shape, kind in ("multiply", "divide")
        value = self.operand(recording, shape, target.complex, saved, test=test)
        if not self.divides(kind, value, recording):
            return None
        return Write(number, kind, self.pick(["method", "operator"]), value)

    def divides(self, kind, value, recording):
        if kind != "divide":
            return True
        return bool((np.abs(value.in_model(self.live, recording)[0].value) > 0.2).all())

    def write_set(self, number, target, recording, test):
        index = self.index(target.at.shape)
        shape = target.at[plain(index)].shape
        value = self.operand(recording, shape, target.complex, False, test=test)
        return Write(number, "set", operand=value, arguments=(index,))

    def write_augmented(self, number, target, recording, test):
        index = self.index(target.at.shape)
        shape = target.at[plain(index)].shape
        kind = self.pick(["add", "multiply"])
        value = self.operand(recording, shape, target.complex, kind == "multiply", test=test)
        return Write(number, kind, operand=value, arguments=(index,))

    def write_copy(self, number, target, recording, test):
        value = self.operand(recording, target.at.shape, target.complex, False, test=test)
        if value.source < 0:
            return Write(number, "zero")
        return Write(number, "copy", operand=value)

    def write_fill(self, number, target, recording, test):
        value = self.operand(recording, (), target.complex, False, scalar=True, test=test)
        return Write(number, "fill", operand=value)

    def write_special(self, number, target, recording, test):
        shape, ndim = target.at.shape, target.at.ndim
        if not ndim or 0 in shape:
            return None
        kind = self.pick(["masked_fill", "put", "index_add", "index_copy", "scatter", "index_put"])

        def exactly(lengths):
            """A live tensor of a shape, or numbers."""
            source = self.choose(
                lambda p: p.at.shape == lengths and p.complex == target.complex and test(p)
            )
            if source is not None:
                return Operand(source=source)
            if target.complex and self.torch:
                return None
            count = int(np.prod(lengths))
            flat = self.draw(st.lists(numbers, min_size=count, max_size=count))
            return Operand(np.reshape(flat, lengths).tolist())

        axis = self.pick(range(ndim))
        if kind == "masked_fill":
            flat = self.draw(st.lists(st.booleans(), min_size=target.at.size, max_size=target.at.size))
            value = self.operand(recording, (), target.complex, False, scalar=True, test=test)
            return Write(number, kind, operand=value, arguments=(np.reshape(flat, shape).tolist(),))
        if kind == "put":
            accumulate = self.draw(st.booleans())
            index = self.integers(target.at.size)
            value = exactly((len(index),))
            arguments: tuple = (tuple(index), accumulate)
        elif kind in ("index_add", "index_copy"):
            index = self.integers(shape[axis])
            value = exactly((*shape[:axis], len(index), *shape[axis + 1 :]))
            if self.torch:
                index = [k % shape[axis] for k in index]
            arguments = (axis, index)
        elif kind == "scatter":
            index = np.argsort(np.sin(np.arange(target.at.size) + axis).reshape(shape), axis)
            value = exactly(shape)
            arguments = (axis, index.tolist())
        else:
            index = self.integers(shape[0])
            value = exactly((len(index), *shape[1:]))
            arguments = ((index,),)
        return None if value is None else Write(number, kind, operand=value, arguments=arguments)


@st.composite
def programs(draw, torch, careful):
    values = [
        np.reshape(draw(st.lists(numbers, min_size=n, max_size=n)), shape)
        for shape in LEAVES
        for n in [int(np.prod(shape))]
    ]
    program = Program(values)
    writer = Writer(draw, program, program.model(), torch, careful)
    for kind in ("negative", "multiply"):  # roots that may be written to from the start
        source = draw(st.sampled_from([0, 1, 1]))
        operands = (Operand(source=source), Operand(draw(st.sampled_from([1.0, 1.0, 1j]))))
        step = Read(kind, operands[: 1 + (kind == "multiply")])
        step.in_model(writer.live, True)
        program.steps.append((step, True))
    for _ in range(draw(st.integers(3, 10))):
        writer.step()
    return program


# -------------------------------------------------------------------------------------- the tests


def numgrad_run(program):
    leaves = [ng.tensor(numbers, requires_grad=True) for numbers in program.numbers]
    return leaves, program.run(leaves, Numgrad())


def gradient(leaves, total):
    found = ng.autograd.grad(total, leaves, retain_graph=True, materialize_grads=True)
    return np.concatenate([g.numpy().ravel() for g in found])


def replay(program):
    """The live tensors as the model has them at the end."""
    live = program.model()
    for step, recording in program.steps:
        step.in_model(live, recording)
    return live


def check_values(program, live, model):
    for t, place in zip(live, model, strict=True):
        np.testing.assert_allclose(
            t.numpy(force=True), place.read().value, rtol=1e-12, atol=1e-12, strict=True
        )
        assert t.requires_grad == place.follows


def check_careful(program):
    leaves, live = numgrad_run(program)
    model = replay(program)
    check_values(program, live, model)
    total = loss(live, np.asarray)
    wanted = expected(model)
    scale = np.abs(wanted).max() + 1
    np.testing.assert_allclose(gradient(leaves, total), wanted, rtol=1e-10, atol=1e-10 * scale)
    found = ng.autograd.grad(total, leaves, create_graph=True, materialize_grads=True)
    again = np.concatenate([g.numpy(force=True).ravel() for g in found])
    np.testing.assert_allclose(again, wanted, rtol=1e-10, atol=1e-10 * scale)


def check_as_torch(program):
    leaves, live = numgrad_run(program)
    model = replay(program)
    check_values(program, live, model)
    backend = Torch()
    torch = backend.torch
    theirs = [torch.tensor(n, dtype=torch.float64, requires_grad=True) for n in program.numbers]
    try:
        alive = program.run(theirs, backend)
        versions = [t._version for t in alive]
        total = loss(alive, lambda w: torch.tensor(w, dtype=torch.float64))
        grads = torch.autograd.grad(total, theirs, materialize_grads=True)
        grads = np.concatenate([g.numpy().ravel() for g in grads])
    except RuntimeError as error:
        grads, reason = None, str(error)
        event(f"PyTorch refuses: {' '.join(reason.split()[:6])}")
    try:
        actual = gradient(leaves, loss(live, np.asarray))
    except ng.NumgradRuntimeError:
        event("numgrad refuses")
        assert grads is None, "numgrad raises and PyTorch does not"
        return
    wanted = expected(model)
    scale = np.abs(wanted).max() + 1
    np.testing.assert_allclose(actual, wanted, rtol=1e-10, atol=1e-10 * scale)
    if grads is not None:
        event("both")
        np.testing.assert_allclose(actual, grads, rtol=1e-10, atol=1e-10 * scale)
        assert [t._version for t in live] == versions


@given(programs(torch=False, careful=True))
@settings(max_examples=60)
def test_careful_programs(program):
    check_careful(program)


@given(programs(torch=True, careful=False))
@settings(max_examples=60)
def test_programs_as_in_torch(program):
    check_as_torch(program)


@pytest.mark.slow
@given(programs(torch=False, careful=True))
@settings(max_examples=1500)
def test_many_careful_programs(program):
    check_careful(program)


@pytest.mark.slow
@given(programs(torch=True, careful=False))
@settings(max_examples=1500)
def test_many_programs_as_in_torch(program):
    check_as_torch(program)
