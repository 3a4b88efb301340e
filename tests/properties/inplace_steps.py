"""Steps of programs of views and in-place operations: for the model, numgrad and PyTorch."""

from __future__ import annotations

import operator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.properties.memory_model import (
    BINARY,
    UNARY,
    Dual,
    P,
    Place,
    constant,
    elementwise,
    imaginary,
    new_place,
)

MODEL_VIEWS = {
    "index": lambda at, index: at[index if Ellipsis in index else (*index, Ellipsis)],
    "permute": lambda at, axes: at.transpose(axes),
    "swap": lambda at, a, b: np.swapaxes(at, a, b),
    "reshape": lambda at, shape: at.reshape(shape),
    "diagonal": lambda at, offset, a, b: np.diagonal(at, offset, a, b),
    "flip": lambda at, axis: np.flip(at, axis),
    "squeeze": lambda at: np.squeeze(at),
    "expand": lambda at, axis: np.expand_dims(at, axis),
    "real": lambda at: at[...],
    "imag": imaginary,
    "part": lambda at, k: at[k, ...],
    "half": lambda at: at[: (len(at) + 1) // 2],
    "broadcast": lambda at, shape: np.broadcast_to(at, shape),
}
NUMGRAD_VIEWS = {
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
TORCH_VIEWS = {
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
AUGMENTED = {
    "add": operator.iadd,
    "subtract": operator.isub,
    "multiply": operator.imul,
    "divide": operator.itruediv,
}


@dataclass(frozen=True)
class View:
    source: int
    kind: str
    arguments: tuple = ()

    def in_model(self, live, recording):
        source = live[self.source]
        at = MODEL_VIEWS[self.kind](source.at, *self.arguments)
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
    views = NUMGRAD_VIEWS
    no_grad = staticmethod(ng.no_grad)

    def array(self, numbers):
        return np.array(numbers) if np.ndim(numbers) else numbers

    def function(self, kind):
        return {
            "root": lambda x: np.sqrt(x * x + 1.0),
            "clip": lambda x: ng.clip(x, -0.7, 0.8),
        }.get(kind, getattr(ng, kind, None))

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
    views = TORCH_VIEWS

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
