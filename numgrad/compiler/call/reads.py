"""Where code reads an array around a function otherwise than as an operand of ours.

Note [Plain reads]
------------------
An ndarray around a compiled function that becomes an operand is read at each call. Plain NumPy may
read it as well (``X @ w / np.std(Y)`` with ``Y`` an operand elsewhere), and what that gave is part
of what was compiled. No ndarray tells who reads it. But bytecode says where a name is loaded and
which instruction takes what was loaded, and the trace knows which instructions made operations.
Where each of those that take the array made one, or asks for its shape only, nothing else reads it.
Else its numbers are compared at each call. What is not understood here counts as a read, so
mistakes cost a comparison, and a trace if the numbers are others.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from numgrad.libraries import is_users

_FORM = {"shape", "ndim", "dtype", "size", "nbytes", "itemsize", "strides", "flags"}
"""Attributes that do not depend on the numbers; lengths are compared in any case."""
_TURNED = {"T", "mT"}
_VIEWS = {"reshape", "ravel", "transpose", "swapaxes", "squeeze", "view"}
"""Methods whose results show the same memory, as a rule."""
_VIEWERS = _VIEWS | {"broadcast_to", "expand_dims", "moveaxis", "rollaxis", "flip", "diagonal"}
"""Functions of NumPy whose results do."""
_HARMLESS = {"len": 1, "isinstance": 2, "type": 1, "id": 1}
"""Functions that read no numbers, and how many arguments they take."""
_LOADED = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_OF_DATACLASSES = "__create_fn__."
"""How the names of methods begin that dataclasses are given; none reads on the way to a result."""
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_TAKEN = {
    **dict.fromkeys(("BINARY_OP", "COMPARE_OP", "BINARY_SUBSCR", "IS_OP", "CONTAINS_OP"), 2),
    **dict.fromkeys((*_ATTRIBUTES, "STORE_FAST", "STORE_FAST_LOAD_FAST", "RETURN_VALUE"), 1),
    **dict.fromkeys(("POP_TOP", "GET_ITER", "UNARY_NEGATIVE", "UNARY_NOT", "UNARY_INVERT"), 1),
    **dict.fromkeys(("BINARY_SLICE", "STORE_SUBSCR"), 3),
    **dict.fromkeys(("PUSH_NULL", "NOP", "RESUME", "PRECALL", "KW_NAMES", "MAKE_CELL"), 0),
}
"""How many objects an instruction takes from the stack."""

Mention = tuple[str | int | None, str | int | None]
"""How code may spell something: a name or key, and what the key is of, if that counts."""
DEFAULT = "<default>"
"""Second of a parameter's name, of which something is the default."""


class Sites:
    """The instructions of the user's code that made operations while a function was traced.

    Attributes
    ----------
    root
        The code of the function that traces, beyond which nobody looks.
    found
        For each, the user's code that it called on the way to operations; whether it did so itself,
        and the arrays in local variables there at the first operation, by identity.
    """

    def __init__(self, root: CodeType) -> None:
        self.root = root
        self.found: dict[
            tuple[CodeType, int], dict[CodeType, tuple[bool, dict[int, list[str]]]]
        ] = {}

    def add(self, frame: FrameType | None) -> None:
        """Note the instructions that run, from an innermost one of the user's outwards."""
        inner: FrameType | None = None
        while frame is not None and frame.f_code is not self.root:
            code = frame.f_code
            if is_users(code.co_filename):
                called = self.found.setdefault((code, frame.f_lasti), {})
                if inner is not None and inner.f_code not in called:
                    arrays: dict[int, list[str]] = {}
                    for name, value in inner.f_locals.items():
                        if isinstance(value, np.ndarray):
                            arrays.setdefault(id(value), []).append(name)
                    called[inner.f_code] = inner.f_back is frame, arrays
                inner = frame
            frame = frame.f_back


class PlainReads:
    """Tells arrays around a function that code reads otherwise than as operands."""

    def __init__(self, codes: Iterable[CodeType], sites: Sites, viewed: Collection[int]) -> None:
        self.codes = [code for code in codes if not code.co_qualname.startswith(_OF_DATACLASSES)]
        self.sites, self.viewed = sites, viewed
        self.root = self.codes[0] if self.codes else None

    def of(self, array: int, mentions: Iterable[Mention]) -> bool:
        """Whether code may read an array, which it may spell so, by plain NumPy."""
        done: set[tuple[CodeType, str]] = set()
        return any(
            not self._explained(array, code, start, 0, done)
            for mention in mentions
            for code in self.codes
            for start in _starts(code, *mention)
        )

    def _explained(
        self, array: int, code: CodeType, start: int, above: int, done: set[tuple[CodeType, str]]
    ) -> bool:
        """Whether what takes the object below ``above`` others, from ``start`` on, is no read."""
        steps = _instructions(code)
        method = packed = False
        number = start - 1
        while (number := number + 1) < len(steps):
            step = steps[number]
            if step.opname == "JUMP_FORWARD":  # to the end of a conditional expression
                number = _behind(code, step.argval) - 2
                continue
            taken = _taken(step)
            if taken is None:
                return False
            if taken <= above:
                above += _effect(step)
                continue
            name = step.opname
            if name in ("IS_OP", "POP_TOP") or name.endswith(("IF_NONE", "IF_NOT_NONE")):
                return True
            if name in _ATTRIBUTES and not packed:
                if step.argval in _FORM:
                    return True
                if step.argval in _TURNED:
                    continue
                if step.argval not in _VIEWS or array not in self.viewed:
                    return False
                method = True
                above += _effect(step)
            elif name.startswith("CALL") and method:  # of a method of the array itself
                method, above = False, 0
            elif name == "BUILD_TUPLE" or name == "BUILD_LIST":
                packed, above = True, 0
            elif name in ("STORE_FAST", "STORE_FAST_LOAD_FAST"):
                kept = step.argval if name == "STORE_FAST" else step.argval[0]
                return not packed and self._local(array, code, kept, done)
            elif name == "RETURN_VALUE":
                return code is self.root or self._returned(array, code, packed, done)
            elif (site := self._site(code, steps, number)) is not None:
                return self._passed(array, site, packed, done)
            elif _is_subscript(step) and above == taken - 1 and array in self.viewed:
                above = 0
            elif name != "CALL" or (called := _called(steps, start)) is None:
                return False
            elif called.argval in _VIEWERS and array in self.viewed:
                above = 0
            else:
                return called.opname == "LOAD_GLOBAL" and _HARMLESS.get(called.argval) == step.arg
        return False

    def _local(
        self, array: int, code: CodeType, name: str, done: set[tuple[CodeType, str]]
    ) -> bool:
        """Whether nothing reads the array through a local variable, or one that is enclosed."""
        if (code, name) in done:
            return True
        done.add((code, name))
        inner = all_codes(code) if name in code.co_cellvars else [code]
        return all(
            self._explained(array, part, start, above, done)
            for part in inner
            for start, above in _uses(part, name)
        )

    def _returned(
        self, array: int, code: CodeType, packed: bool, done: set[tuple[CodeType, str]]
    ) -> bool:
        """Whether callers that gave the array to code read it not plainly when they get it back."""
        sites = [
            site
            for site, called in self.sites.found.items()
            if code in called and array in called[code][1]
        ]
        return (
            bool(sites)
            and not packed
            and all(self._explained(array, site[0], _behind(*site), 0, done) for site in sites)
        )

    def _site(
        self, code: CodeType, steps: list[dis.Instruction], number: int
    ) -> tuple[CodeType, int] | None:
        """An instruction, if it made operations; a frame may stand in what is cached behind it."""
        end = steps[number + 1].offset if number + 1 < len(steps) else len(code.co_code)
        places = ((code, offset) for offset in range(steps[number].offset, end, 2))
        return next((place for place in places if place in self.sites.found), None)

    def _passed(
        self,
        array: int,
        site: tuple[CodeType, int],
        packed: bool,
        done: set[tuple[CodeType, str]],
    ) -> bool:
        """Whether the user's code that gets the array from a call reads it not plainly either."""
        for called, (direct, given) in self.sites.found[site].items():
            names = given.get(array, ())
            if packed or (direct and not names):
                return False  # transforms of ours give Tensors instead
            if not all(self._local(array, called, name, done) for name in names):
                return False
        return True


def _behind(code: CodeType, offset: int) -> int:
    """The number of the instruction after one that runs, or whose cache does."""
    return sum(step.offset <= offset for step in _instructions(code))


def _taken(step: dis.Instruction) -> int | None:
    """How many objects an instruction takes; None if that is not known here."""
    name, count = step.opname, step.arg or 0
    if name in _TAKEN:
        return _TAKEN[name]
    if name.startswith("LOAD_") and name != "LOAD_SUPER_ATTR":
        return 0
    if name in ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SLICE"):
        return count
    if name == "CALL":
        return count + 2
    if name == "CALL_KW":
        return count + 3
    return 1 if name.endswith(("IF_NONE", "IF_NOT_NONE")) else None


def _effect(step: dis.Instruction) -> int:
    """By how much an instruction makes the stack higher."""
    if step.opname == "PRECALL":  # whose nominal effect is that of the call
        return 0
    if step.opname == "CALL":
        return -(step.arg or 0) - 1
    return dis.stack_effect(step.opcode, step.arg, jump=False)


@lru_cache(maxsize=1024)
def _instructions(code: CodeType) -> list[dis.Instruction]:
    return list(dis.get_instructions(code))


def all_codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those of functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from all_codes(constant)


def _starts(code: CodeType, name: str | int | None, container: str | int | None) -> Iterator[int]:
    """The numbers of instructions after those that load what is spelled so."""
    steps = _instructions(code)
    if container == DEFAULT:
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        yield from (s for s, above in _uses(code, str(name)) if name in parameters and not above)
        return
    for number, step in enumerate(steps):
        named = type(step.argval) is type(name) and step.argval == name
        if container is not None and (not number or steps[number - 1].argval != container):
            continue
        if named and step.opname in (*_LOADED, *_ATTRIBUTES, "LOAD_SUPER_ATTR", "IMPORT_FROM"):
            yield number + 1
        elif (
            named
            and step.opname in ("LOAD_CONST", "LOAD_SMALL_INT")
            and _is_subscript(steps[number + 1])
        ):
            yield number + 2


def _is_subscript(step: dis.Instruction) -> bool:
    name = step.opname
    return name in ("BINARY_SUBSCR", "BINARY_SLICE") or (
        name == "BINARY_OP" and step.argrepr == "[]"
    )


def _uses(code: CodeType, name: str) -> Iterator[tuple[int, int]]:
    """Instructions after those that load a local variable, and how many objects lie on it."""
    for number, step in enumerate(_instructions(code)):
        if step.opname.startswith("LOAD_FAST") or step.opname == "LOAD_DEREF":
            names: Any = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            for place, found in enumerate(names):
                if found == name:
                    yield number + 1, len(names) - place - 1
        elif step.opname == "STORE_FAST_LOAD_FAST" and step.argval[1] == name:
            yield number + 1, 0


def _called(steps: list[dis.Instruction], start: int) -> dis.Instruction | None:
    """What loads a function right before its first argument, which is loaded before ``start``."""
    before = start - 2
    if sys.version_info >= (3, 13) and before >= 0 and steps[before].opname == "PUSH_NULL":
        before -= 1
    return steps[before] if before >= 0 else None
