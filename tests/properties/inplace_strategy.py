"""Drawing programs of views and in-place operations, which the model runs as they are drawn.

A *careful* program clones what an operation might save, so nothing it writes to is ever needed as
it was, and its backward must succeed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import assume, strategies as st

from tests.properties.inplace_steps import Operand, Program, Read, View, Write, plain
from tests.properties.memory_model import BINARY, LEAVES, OF_COMPLEX, SAVES_RESULT, UNARY, Place

LARGE = 200.0
"""Programs with larger numbers are not looked at: rounding would tell little."""

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
            arguments = {"permute": (axes,), "swap": axes[:2], "diagonal": (offset, *axes[:2])}[
                kind
            ]
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
            flat = self.draw(
                st.lists(st.booleans(), min_size=target.at.size, max_size=target.at.size)
            )
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
