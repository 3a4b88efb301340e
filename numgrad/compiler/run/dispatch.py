"""Source of the Python function that stands between a caller and a compiled one.

Note [Dispatch]
---------------
A call has to find out whether what was compiled suits its arguments, hand over the arrays and put
results into the caller's nesting. Each of these steps is a few dozen nanoseconds, so nothing may be
left to decide: for every specialisation one chain of conditions is written out, from the cheapest
to the dearest, with the reading of arrays and lengths folded in (``:=``). The dispatcher of a
function tries one after the other and ends in ``_miss``, which normalises the arguments (lists of
the wrong kind, foreign byte order, subclasses), tries once more, and traces. It is a polymorphic
inline cache (U. Hoelzle and others, 1991), whose checks are guards.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from numgrad import config
from numgrad.autograd.variable import TENSORS, Tensor, refresh
from numgrad.autograd.versions import mark_written
from numgrad.compiler.call import signature
from numgrad.compiler.call.signature import PLAIN, RECORDING, CallLayout, Input, Result
from numgrad.compiler.call.source import CONTENT, FIXED, IDENTITY, READERS, Source
from numgrad.compiler.graph.sizes import Size, lengths_in
from numgrad.core.interpreter import state
from numgrad.core.tree import MAPPING, SEQUENCE, Nesting, container_of
from numgrad.errors import NumgradValueError
from numgrad.tensors.recording import new_tensor

_HELD = (signature.ARRAY, signature.TENSOR)
"""Kinds of arguments that are memory."""
MISS: Any = type("Miss", (), {})()
"""Result of a specialisation for arguments that it was not made for."""


def _joined(kind: type, keys: Any, parts: list[Any]) -> Any:
    container: Any = container_of(kind)
    return container.join(kind, keys, parts)


def _refreshed(tensor: Tensor) -> bool:
    refresh(tensor)
    return True


NAMES: dict[str, Any] = {
    "_Exception": Exception,
    "_MISS": MISS,
    "_Tensor": Tensor,
    "_asarray": np.asarray,
    "_compact": np.ascontiguousarray,
    "_config": config,
    "_missing": signature.MISSING,
    "_ndarray": np.ndarray,
    "_new": new_tensor,
    "_refreshed": _refreshed,
    "_same": signature.same,
    "_state": state,
    "_isinstance": isinstance,
    **READERS,
    "_tensors": TENSORS,
    "_type": type,
    "_written": mark_written,
    "_calls": 0,
}
"""Names that every dispatcher uses."""


class DispatchWriter:
    """Writes the source of one specialisation, in each form that is needed."""

    def __init__(self, layout: CallLayout) -> None:
        self.layout = layout
        self._held: dict[int, str] = {}
        self._assigned: dict[str, str] = {}  # locals and what they are read from, in order
        self._arrays: dict[int, str] = {}  # input number -> the local that holds its ndarray
        self._owners: dict[int, str] = {}  # input number -> the local that holds the Tensor
        self._given: dict[int, str] = {}  # input number -> the local that holds what was given
        self._late: list[str] = []
        self._arguments = list(self._of_arguments())
        self._captured = list(self._of_captured())
        self._relations = list(self._of_relations())
        self._captures = list(map(self._of_guard, layout.guards))

    # --------------------------------------------------------------------------------- names

    def _hold(self, value: Any) -> str:
        """A name for an object in the namespace of the dispatcher."""
        name = self._held.get(id(value))
        if name is None:
            name = self._held[id(value)] = f"_h{self.layout.number}_{len(self._held)}"
            self.layout.names[name] = value
        return name

    def _let(self, text: str, name: str | None = None) -> tuple[str, str]:
        """A local for an expression, and the expression that assigns and has its value."""
        if text.isidentifier() and name is None:
            return text, text
        name = name or f"_t{len(self._assigned)}"
        self._assigned[name] = text
        return name, f"({name} := {text})"

    @staticmethod
    def _length(axis: int) -> str:
        return f"_n{axis}"

    def _key(self, key: Any) -> str:
        return repr(key) if type(key) in (str, int) else self._hold(key)

    # ----------------------------------------------------------------------------- arguments

    def _of_arguments(self) -> Iterator[str]:
        layout = self.layout
        numbers = {id(i.leaf): n for n, i in enumerate(layout.inputs) if i.leaf is not None}
        leaves = iter(layout.leaves)
        for name, nesting in zip(layout.parameters, layout.nestings, strict=True):
            if nesting is None:
                yield f"{name} is _missing"
            else:
                yield from self._of_nesting(nesting[0], name, leaves, numbers)

    def _of_nesting(
        self, nesting: Nesting, text: str, leaves: Iterator[signature.Leaf], numbers: dict[int, int]
    ) -> Iterator[str]:
        if nesting is None:
            leaf = next(leaves)
            yield from self._of_leaf(leaf, text, numbers.get(id(leaf)))
            return
        kind, keys, parts = nesting
        name, walrus = self._let(text)
        yield f"_type({walrus}) is {self._hold(kind)}"
        container: Any = container_of(kind)
        if container is MAPPING:
            yield f"[*{name}] == {self._hold(list(keys))}" if keys else f"not {name}"
        elif container is SEQUENCE:
            yield f"_len({name}) == {len(parts)}"
        elif container.fields is None or keys is not None:
            split, walrus = self._let(f"{self._hold(container.split)}({name})")
            yield f"{walrus}[0] == {self._hold(keys)}"
            name = f"{split}[1]"
            yield f"_len({name}) == {len(parts)}"
        for number, item in enumerate(parts):
            if container is MAPPING and keys is not None:
                inner = f"{name}[{self._key(keys[number])}]"
            elif keys is not None:
                inner = f"{name}[{number}]"
            else:
                inner = f"{name}{container.path(keys, number)}"
            yield from self._of_nesting(item, inner, leaves, numbers)

    def _of_leaf(self, leaf: signature.Leaf, text: str, number: int | None) -> Iterator[str]:
        name, walrus = self._let(text)
        if number is not None:
            self._given[number] = name
        if number is None:
            yield self._equal(walrus, name, leaf.value)
        elif leaf.kind in (signature.NUMBER, signature.SCALAR):
            yield f"_type({walrus}) is {self._hold(type(leaf.value))}"
            if type(leaf.value) is int:
                yield f"{signature.LEAST} <= {name} <= {signature.MOST}"
            self._arrays[number] = name if leaf.kind == signature.NUMBER else f"_asarray({name})"
        elif leaf.kind == signature.TENSOR:
            yield from self._of_tensor(number, name, walrus, leaf.value)
        else:
            yield f"_type({walrus}) is _ndarray"
            yield from self._of_array(number, name)

    def _of_tensor(self, number: int, name: str, walrus: str, tensor: Tensor) -> Iterator[str]:
        yield f"(_type({walrus}) in _tensors or _isinstance({name}, _Tensor))"
        if self.layout.mode == RECORDING:
            yield f"({name}._memory is None or _refreshed({name}))"
            yield f"{name}._requires_grad is {tensor._requires_grad}"
        self._owners[number] = name
        array, walrus = self._let(f"{name}._array")
        yield f"_type({walrus}) is _ndarray"
        yield from self._of_array(number, array)

    def _of_array(self, number: int, name: str) -> Iterator[str]:
        """Conditions on dtype and rank, and the reading of lengths.

        Lengths of what is captured are as they were: code may have looked at them.
        """
        entry = self.layout.inputs[number]
        value = entry.value
        now = value.shape if entry.leaf is not None or entry.gradient else entry.owner.shape
        dtype = self._hold(value.dtype)
        yield f"({name}.dtype is {dtype} or {name}.dtype == {dtype})"
        self._arrays[number] = name
        if value.ndim < 2:
            yield f"{name}.ndim == {value.ndim}"
            lengths = [f"_len({name})"]
        else:
            shape, walrus = self._let(f"{name}.shape")
            yield f"_len({walrus}) == {value.ndim}"
            lengths = [f"{shape}[{k}]" for k in range(value.ndim)]
        for expected, n, length in zip(value.shape, now, lengths, strict=False):
            yield from self._of_length(expected, n, length)

    def _of_length(self, expected: int | Size, now: int | Size, text: str) -> Iterator[str]:
        """Conditions on a length: what is expected, and what it is if that is a number."""
        sizes = self.layout.sizes
        expected = sizes.resolve(expected)
        axis = sizes.number(expected)
        if axis is not None and self._length(axis) not in self._assigned:
            walrus = self._let(text, self._length(axis))[1]
            yield f"{walrus} == {now}" if type(now) is int else f"{walrus} > 1"
            return
        if type(now) is int and type(expected) is not int:
            yield f"{text} == {now}"
        condition = f"{text} == {sizes.text(expected, self._length)}"
        if all(self._length(k) in self._assigned for k in sizes.axes([expected])):
            yield condition
        else:
            self._late.append(condition)

    def _equal(self, walrus: str, name: str, value: Any) -> str:
        if value is None or type(value) is bool:
            return f"{walrus} is {value}"
        held = self._hold(value)
        return f"({walrus} is {held} or _same({name}, {held}))"

    # -------------------------------------------------------------------------- captures

    def _access(self, source: Source) -> str:
        holder = self._hold(source.holder)
        text = source.access.replace(
            "{0}", f"{holder}()" if isinstance(source.holder, ref) else holder
        )
        text = text.replace("{1}", self._hold(source.key)) if "{1}" in text else text
        return text if source.shown is None else f"{self._hold(source.shown)}({text})"

    def _of_captured(self) -> Iterator[str]:
        for number, entry in enumerate(self.layout.inputs):
            if entry.leaf is not None:
                continue
            text = self._read(entry.owner, entry.source)
            name, walrus = self._let(f"{text}._grad" if entry.gradient else text)
            self._given[number] = name
            if entry.gradient:
                yield from self._of_tensor(number, name, walrus, entry.owner._grad)
            elif isinstance(entry.owner, Tensor):
                yield from self._of_tensor(number, name, walrus, entry.owner)
            elif entry.is_number:
                kind = type(entry.owner)
                yield f"_type({walrus}) is {self._hold(kind)}"
                self._arrays[number] = name if kind is float else f"_asarray({name})"
            else:
                yield f"_type({walrus}) is _ndarray"
                yield from self._of_array(number, name)

        for tensor, source in self.layout.bare:
            yield f"{self._read(tensor, source)}._grad is None"

    def _read(self, owner: Any, source: Source | None) -> str:
        """The expression that reads something captured."""
        if source is None or source.treatment == FIXED:
            return self._hold(owner)
        return self._access(source)

    def _of_guard(self, source: Source) -> str:
        """The condition that something around the function is what it was."""
        text = self._access(source)
        if source.treatment == IDENTITY:
            return f"{text} is {self._hold(source.value)}"
        if source.treatment == CONTENT:
            if issubclass(source.value.kind, Tensor):  # of which there may be hundreds
                return f"{text}._array.shape == {self._hold(source.value.shape)}"
            return f"{self._hold(source.value)}({text})"
        if source.is_length:
            return f"{text} == {source.value}"
        name, walrus = self._let(text)
        return self._equal(walrus, name, source.value)

    def _of_relations(self) -> Iterator[str]:
        """Conditions on lengths, for when all of them are read."""
        yield from self._late
        for guard in self.layout.sizes.relations():
            yield guard.text(self._length)

    # ----------------------------------------------------------------------------------- body

    def _argument(self, number: int) -> str:
        """An input as the program takes it."""
        name = self._arrays[number]
        if self.layout.inputs[number].value.ndim == 0:
            return name
        return f"{name} if {name}.flags.c_contiguous else _compact({name})"

    def _body(self, arguments: list[str]) -> list[str]:
        layout = self.layout
        inputs = range(len(layout.inputs))
        if layout.record is None:
            lines = [f"_r = {self._hold(layout.run)}({', '.join(arguments)})"]
        else:
            owners = "".join(f"{self._owners.get(n, self._arrays[n])}, " for n in inputs)
            passed = "".join(f"{argument}, " for argument in arguments)
            lines = [f"_r = {self._hold(layout.record)}(({owners}), ({passed}))"]
        count = sum(result.number is not None for result in layout.results)
        count += sum(result.number is not None for result in layout.gradients)
        for position, number in enumerate(layout.writes):
            lines.append(f"_store({self._arrays[number]}, _r[{count + position}])")
            if number in self._owners:
                lines.append(f"_written({self._owners[number]})")
        for number in layout.touched:
            if number in self._owners:
                lines.append(f"_written({self._owners[number]})")
        for result in layout.gradients:
            value = "None" if result.number is None else f"_r[{result.number}]"
            text = self._read(result.tensor, result.source)
            lines.append(f"_set_gradient({text}, {value}, {result.present})")
        for k in dict.fromkeys(r.same for r in layout.results if r.same is not None):
            lines.append(f"_o{k} = {self._result(layout.results[k])}")
        text = self._returned(layout.nesting, iter(enumerate(layout.results)))
        lines.append(
            f"return {text if layout.state is None else f'{self._hold(layout.state)}({text})'}"
        )
        return lines

    def _returned(self, nesting: Nesting, results: Iterator[tuple[int, Result]]) -> str:
        if nesting is None:
            k, result = next(results)
            named = any(r.same == k for r in self.layout.results)
            return f"_o{k}" if named else self._result(result)
        kind, keys, parts = nesting
        texts = [self._returned(item, results) for item in parts]
        inside = ", ".join(texts)
        if container_of(kind) is MAPPING:
            keyed = (f"{self._key(key)}: {text}" for key, text in zip(keys, texts, strict=True))
            text = f"{{{', '.join(keyed)}}}"
            return text if kind is dict else f"{self._hold(kind)}({text})"
        if kind is list:
            return f"[{inside}]"
        if kind is tuple:
            return f"({inside}{',' * bool(texts)})"
        return f"{self._hold(partial(_joined, kind, keys))}([{inside}])"

    def _result(self, result: Result) -> str:
        layout = self.layout
        if result.gradient_of is not None:
            text = f"{self._read(result.gradient_of, result.source)}._grad"
            return text if layout.as_tensors else f"{text}._array"
        if result.origin is not None or result.same is not None:
            return self._shared(result)
        if result.size is not None:
            return layout.sizes.text(result.size, self._length)
        value = result.value
        if value is None:
            return self._hold(result.constant)
        text = f"_r[{result.number}]"
        if value.weak:
            return f"{self._hold(value.operand)}({text})"
        if layout.record is not None:
            return text
        if layout.as_tensors:
            array = text if value.ndim else f"_asarray({text}, {self._hold(value.dtype)})"
            if result.dead_end is not None:
                operands = [t for n, t in self._owners.items() if not layout.inputs[n].gradient]
                return f"{self._hold(result.dead_end)}({', '.join([array, *operands])})"
            return f"{'_Tensor' if layout.mode in (RECORDING, PLAIN) else '_new'}({array})"
        return text if value.ndim else f"{self._hold(value.dtype.type)}({text})"

    def _shared(self, result: Result) -> str:
        """A result that is an input or another result, or views of one."""
        layout = self.layout
        if result.origin is None:
            text, tensor = f"_o{result.same}", layout.as_tensors
        else:
            number = next(n for n, i in enumerate(layout.inputs) if i.value is result.origin)
            text, tensor = self._given[number], layout.inputs[number].tensor
        if result.views is None:
            return f"{text}._array" if tensor and not layout.as_tensors else text
        axes = layout.sizes.axes(lengths_in([step.params for step in result.views.steps]))
        lengths = "{" + ", ".join(f"{k}: {self._length(k)}" for k in sorted(axes)) + "}"
        return f"{self._hold(result.views)}({text}, {lengths}, {layout.as_tensors})"

    # --------------------------------------------------------------------------------- forms

    def hot(self) -> list[str]:
        """The statements that take a call as it comes if it suits."""
        mode = f"_state.mode == {self.layout.mode}"
        conditions = [mode, *self._arguments]
        around = [*self._captures, *self._captured]
        if not around:
            return self._tried([*conditions, *self._relations], ["_calls += 1", *self._run()])
        return self._guarded(
            [*conditions, *around, *self._relations], ["_calls += 1", *self._run()]
        )

    def cold(self, *, captures: bool = True, run: bool = True) -> list[str]:
        """The same for arguments whose key is known to suit.

        Without ``captures`` it does not matter what was closed over; without ``run`` the
        arrays are returned and nothing is computed.
        """
        around = [*(self._captures if captures else ()), *self._captured]
        conditions = [*self._arguments, *around, *self._relations] or ["True"]
        arrays = "".join(f"{self._arrays[n]}, " for n in range(len(self.layout.inputs)))
        return self._guarded(conditions, self._run() if run else [f"return ({arrays})"])

    def raw(self) -> list[str]:
        """The same for arguments that suit for sure."""
        body = self._body([self._arrays[n] for n in range(len(self.layout.inputs))])
        needed = set(_NAME.findall("\n".join(body)))
        lines: list[str] = []
        for name, text in reversed(self._assigned.items()):
            if name in needed:
                needed |= set(_NAME.findall(text))
                lines.insert(0, f"{name} = {text}")
        return [f"    {line}" for line in (*lines, *body)]

    def _run(self) -> list[str]:
        body = self._body([self._argument(n) for n in range(len(self.layout.inputs))])
        return [*self._check_apart(), *body]

    def _check_apart(self) -> Iterator[str]:
        """A look at memory that is written to: nothing else may be in it.

        What is captured was looked at when it was traced.
        """
        layout = self.layout
        arrays = [n for n, i in enumerate(layout.inputs) if i.leaf is None or i.leaf.kind in _HELD]
        leaves = {n for n in arrays if layout.inputs[n].leaf is not None}
        written = {*layout.writes, *layout.touched} & set(arrays)
        written |= {n for n in leaves if getattr(layout.inputs[n].leaf, "donated", False)}
        others = arrays if written & leaves else sorted(written | leaves)
        if leaves and written and len(others) > 1:
            pairs = [(a, b) for a in written for b in others if a != b and {a, b} & leaves]
            positions = {n: k for k, n in enumerate(others)}
            held = self._hold(
                [(positions[a], positions[b], layout.inputs[a], layout.inputs[b]) for a, b in pairs]
            )
            passed = "".join(f"{self._arrays[n]}, " for n in others)
            yield f"_apart(({passed}), {held})"

    def _tried(self, conditions: list[str], body: list[str]) -> list[str]:
        return [f"    if {' and '.join(conditions)}:", *(f"        {line}" for line in body)]

    def _guarded(self, conditions: list[str], body: list[str]) -> list[str]:
        """The same where looking at the surroundings may fail: a name may be gone."""
        return [
            "    try:",
            f"        _ok = {' and '.join(conditions)}",
            "    except _Exception:",
            "        _ok = False",
            *self._tried(["_ok"], body),
        ]


_NAME = re.compile(r"\b_[tn]\d+\b")


def _store(target: np.ndarray, value: Any) -> None:
    """Write to the memory of an input, unless the program has done so."""
    if value is not target:
        np.copyto(target, value)


def _set_gradient(tensor: Tensor, value: Any, present: bool) -> None:
    """Let ``.grad`` be what a program computed; one that was there holds the new numbers."""
    if isinstance(value, Tensor):
        value = value._array
    if value is None:
        tensor._grad = None
    elif present and tensor._grad is not None:
        np.copyto(tensor._grad._array, value)
        mark_written(tensor._grad)
    else:
        tensor._grad = Tensor(np.asarray(value, tensor._array.dtype))


def _check_apart(arrays: Sequence[np.ndarray], pairs: list[tuple[int, int, Input, Input]]) -> None:
    """Raise if two of some pairs of arrays, the first of which is written to, share memory."""
    owners = {id(a) if a.base is None else id(a.base): a.base for a in arrays}
    if len(owners) == len(arrays) and not any(map(_is_foreign, owners.values())):
        return
    for one, other, target, source in pairs:
        a, b = arrays[one], arrays[other]
        if np.may_share_memory(a, b) and _share_memory(a, b):
            raise NumgradValueError(
                f"jit: {target.name}, whose memory the compiled function may write to, shares it "
                f"with {source.name}; pass a copy of one of them"
            )


def _is_foreign(base: Any) -> bool:
    """Whether memory is that of another object, which may have lent it to several arrays."""
    return base is not None and type(base) is not np.ndarray


def _share_memory(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.shares_memory(a, b, max_work=10_000)  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True


NAMES["_apart"] = _check_apart
NAMES["_set_gradient"] = _set_gradient
NAMES["_store"] = _store


def compiled(
    name: str, header: str, blocks: Sequence[list[str]], last: str, names: dict[str, Any]
) -> Callable[..., Any]:
    """The function that executes blocks of statements in turn, and then the statement ``last``."""
    lines = [f"def _function({header}):", "    global _calls"]
    for block in blocks:
        lines += block
    lines.append(f"    {last}")
    # among our own files, so that no line of it is taken for the user's
    path = os.path.join(os.path.dirname(__file__), f"<dispatcher of {name}>")
    exec(compile("\n".join(lines), path, "exec"), names)
    function = names["_function"]
    function.__name__ = function.__qualname__ = name
    return function
