"""Facts that Python's code objects state: the one module that reads bytecode.

Note [Reading bytecode]
-----------------------
Python documents the names and constants of a code object; its instructions change from version to
version. Whatever reads them stands in this module, which knows the versions of CPython in
``KNOWN``. With any other one it reads none: ``facts`` then holds what no code exceeds (each name
may be a global, an attribute or a module that is imported, any array may be read or written to),
and what rests on less is left out. So more is compared at each call of a compiled function, steps
of loops are watched, and no number is promoted; results are the same.

Note [Plain reads]
------------------
An ndarray around a compiled function that becomes an operand is read at each call. Plain NumPy may
read it as well (``X @ w / np.std(Y)`` with ``Y`` an operand elsewhere), and what that gave is part
of what was compiled. No ndarray tells who reads it. But bytecode says where a name is loaded and
which instruction takes what was loaded, and the trace knows which instructions made operations.
Where each of those that take the array made one, or asks for its shape only, nothing else reads it.
Else its numbers are compared at each call. What is not understood here counts as a read, so
mistakes cost a comparison, and a trace if the numbers are others. This is an escape analysis along
one path of the stack, without a fixed point.
"""

import dis
import itertools
import opcode
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property, lru_cache
from types import CodeType, FrameType, TracebackType
from typing import Any

import numpy as np

from numgrad.codegen.cpython.offsets import KNOWN
from numgrad.dataclass import dataclass
from numgrad.libraries import is_users

VERSION = sys.version_info[:2] if sys.implementation.name == "cpython" else (0, 0)

WORD = re.compile(r"[^\W\d]\w*")
_FORM = {"shape", "ndim", "dtype", "size", "nbytes", "itemsize", "strides", "flags"}
"""Attributes that do not depend on the numbers; lengths are compared in any case."""
_TURNED = {"T", "mT"}
_VIEWS = {"reshape", "ravel", "transpose", "swapaxes", "squeeze", "view"}
"""Methods whose results show the same memory, as a rule."""
_VIEWERS = _VIEWS | {"broadcast_to", "expand_dims", "moveaxis", "rollaxis", "flip", "diagonal"}
"""Functions of NumPy whose results do."""
_HARMLESS = {"len": 1, "isinstance": 2, "type": 1, "id": 1}
"""Functions that read no numbers, and how many arguments they take."""
_OF_DATACLASSES = "__create_fn__."
"""How the names of methods begin that dataclasses are given; none reads on the way to a result."""

_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_LOADED = (*_GLOBALS, "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_MEMBERS = (*_ATTRIBUTES, "LOAD_SUPER_ATTR", "IMPORT_FROM")
_CONSTANTS = ("LOAD_CONST", "RETURN_CONST", "LOAD_SMALL_INT")
_ELEMENT_STORES = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
_ATTRIBUTE_STORES = ("STORE_ATTR", "DELETE_ATTR")
_POPPED = {
    **dict.fromkeys(("BINARY_OP", "COMPARE_OP", "BINARY_SUBSCR", "IS_OP", "CONTAINS_OP"), 2),
    **dict.fromkeys((*_ATTRIBUTES, "STORE_FAST", "STORE_FAST_LOAD_FAST", "RETURN_VALUE"), 1),
    **dict.fromkeys(("POP_TOP", "GET_ITER", "UNARY_NEGATIVE", "UNARY_NOT", "UNARY_INVERT"), 1),
    **dict.fromkeys(("BINARY_SLICE", "STORE_SUBSCR"), 3),
    **dict.fromkeys(("PUSH_NULL", "NOP", "RESUME", "PRECALL", "KW_NAMES", "MAKE_CELL"), 0),
}
"""How many objects an instruction takes from the stack."""
_SILENT = frozenset(
    number
    for name, number in opcode.opmap.items()
    if name.startswith(("STORE_FAST", "DELETE_FAST", "STORE_GLOBAL", "DELETE_GLOBAL"))
    or name.startswith(("STORE_DEREF", "DELETE_DEREF", "POP_TOP"))
)
"""Instructions that call nothing, except finalizers of what they let go of."""

Mention = tuple[str | int | None, str | int | None]
"""How code may spell something: a name or key, and what the key is of, if that counts."""
_GETTERS = {"getattr", "attrgetter"}
_DEEPEST = 8
"""Levels of packages that are tried for an import whose level is not read."""
DEFAULT = "<default>"
"""Second of a parameter's name, of which something is the default."""


def is_known() -> bool:
    """Whether this module reads the instructions of the Python that runs."""
    return VERSION in KNOWN


@lru_cache(maxsize=1024)
def _instructions(code: CodeType) -> list[dis.Instruction]:
    return list(dis.get_instructions(code))


# ------------------------------------------------------------------------------------------ facts


@dataclass(frozen=True)
class CodeFacts:
    """Facts about a code and those of functions defined in it.

    Attributes
    ----------
    names
        Whatever it looks up, stores or imports, in order.
    globals, attributes
        Those of the names that it looks up as such.
    strings
        Constants, and elements of constant tuples: they may be names, for ``getattr(self, "w")``.
    keywords
        Names of arguments of calls.
    numbers
        Constants.
    imports
        Name and level of each import.
    assigned
        Names outside of the code that it assigns, without those of functions in it.
    assigns_outside
        Whether the code, or that of a function in it, assigns any.
    sets_attributes, sets_elements
        Whether it assigns attributes of objects, or elements of containers and arrays.
    updates
        Whether it has an operator such as ``+=``.
    catches
        Whether it catches errors; ``with`` does not count.
    matches_classes
        Whether a pattern asks for a class.
    builds_names
        Whether ``getattr`` gets a name that is not a constant of the call.
    """

    names: tuple[str, ...]
    globals: frozenset[str]
    attributes: frozenset[str]
    strings: frozenset[str]
    keywords: frozenset[str]
    numbers: frozenset[Any]
    imports: tuple[tuple[str, int], ...]
    assigned: frozenset[str]
    assigns_outside: bool
    sets_attributes: bool
    sets_elements: bool
    updates: bool
    catches: bool
    matches_classes: bool
    builds_names: bool

    @cached_property
    def _name_set(self) -> frozenset[str]:
        return frozenset(self.names)

    @cached_property
    def optional(self) -> frozenset[str]:
        """Attributes of which it may ask whether they are there."""
        asks = self.mentions(("getattr", "hasattr", "vars"))
        strings = frozenset(filter(str.isidentifier, self.strings)) if asks else frozenset[str]()
        return strings | self.attributes if "AttributeError" in self._name_set else strings

    @cached_property
    def asks_for_kinds(self) -> bool:
        """Whether it may ask of what class an object is."""
        return self.matches_classes or self.mentions(("isinstance", "__class__"))

    def mentions(self, names: Collection[str]) -> bool:
        """Whether it has one of some names."""
        return not self._name_set.isdisjoint(names)


@lru_cache(maxsize=4096)
def facts(code: CodeType) -> CodeFacts:
    """The facts about a code: Note [Reading bytecode]."""
    inner = [facts(x) for x in code.co_consts if isinstance(x, CodeType)]
    direct = _own_facts(code) if is_known() else _most(code)
    joined: dict[str, Any] = {}
    for name, value in direct.items():
        values = [value, *(getattr(f, name) for f in inner)]
        if name == "assigned":
            joined[name] = value
        elif isinstance(value, bool):
            joined[name] = any(values)
        elif isinstance(value, tuple):
            joined[name] = tuple(dict.fromkeys(x for facts_of_one in values for x in facts_of_one))
        else:
            joined[name] = frozenset[Any]().union(*values)
    return CodeFacts(**joined)


def _own_facts(code: CodeType) -> dict[str, Any]:
    """The facts about a code without those of functions defined in it."""
    free, steps = set(code.co_freevars), _instructions(code)
    opnames = {step.opname for step in steps}
    constants: list[Any] = []
    keywords: set[str] = set()
    assigned: set[str] = set()
    imports: dict[tuple[str, int], None] = {}
    catches = updates = False
    for k, step in enumerate(steps):
        name, value = step.opname, step.argval
        after = steps[k + 1].opname if k + 1 < len(steps) else ""
        if name == "KW_NAMES":
            keywords.update(code.co_consts[step.arg or 0])
        elif name == "LOAD_CONST" and after == "CALL_KW":
            keywords.update(value)
        elif name in _CONSTANTS:
            constants.append(value)
        elif name == "IMPORT_NAME":
            level = steps[k - 2].argval
            imports[value, level] = None
            if not level:  # "import a.b" binds a
                imports[value.partition(".")[0], 0] = None
        elif name == "PUSH_EXC_INFO":
            catches = catches or after != "WITH_EXCEPT_START"
        elif name == "BINARY_OP":
            updates = updates or step.argrepr.endswith("=")
        elif name.startswith(("STORE_GLOBAL", "DELETE_GLOBAL")) or (
            name in ("STORE_DEREF", "DELETE_DEREF") and value in free
        ):
            assigned.add(value)
    return {
        "names": code.co_names,
        "globals": frozenset(s.argval for s in steps if s.opname in _GLOBALS),
        "attributes": frozenset(s.argval for s in steps if s.opname in _MEMBERS),
        "strings": _strings(constants, code.co_names),
        "keywords": frozenset(keywords),
        "numbers": _numbers([*code.co_consts, *constants]),
        "imports": tuple(imports),
        "assigned": frozenset(assigned),
        "assigns_outside": bool(assigned),
        "sets_attributes": not opnames.isdisjoint(_ATTRIBUTE_STORES),
        "sets_elements": not opnames.isdisjoint(_ELEMENT_STORES),
        "updates": updates,
        "catches": catches,
        "matches_classes": "MATCH_CLASS" in opnames,
        "builds_names": _builds_names(steps),
    }


def _most(code: CodeType) -> dict[str, Any]:
    """Facts that no code of such names and constants exceeds."""
    names = frozenset(code.co_names)
    strings = _strings(code.co_consts, code.co_names)
    modules, levels = names.union(n.partition(".")[0] for n in names), range(_DEEPEST + 1)
    return {
        "names": code.co_names,
        "globals": names,
        "attributes": names,
        "strings": strings,
        "keywords": strings,
        "numbers": _numbers(code.co_consts),
        "imports": tuple((name, level) for name in modules for level in levels),
        "assigned": names.union(code.co_freevars),
        "assigns_outside": True,
        "sets_attributes": True,
        "sets_elements": True,
        "updates": True,
        "catches": True,
        "matches_classes": True,
        "builds_names": not _GETTERS.isdisjoint(names),
    }


def _simple(constants: Iterable[Any]) -> Iterator[Any]:
    """Constants, and the elements of those that are tuples and sets."""
    for x in constants:
        if isinstance(x, tuple | frozenset):
            yield from _simple(x)
        else:
            yield x


def _strings(constants: Iterable[Any], names: Iterable[str]) -> frozenset[str]:
    """The strings among constants, and the words in them where code is made of strings."""
    strings = {x for x in _simple(constants) if type(x) is str}
    if not {"eval", "exec"}.isdisjoint(names):
        strings.update(*map(WORD.findall, strings))
    return frozenset(strings)


def _numbers(constants: Iterable[Any]) -> frozenset[Any]:
    return frozenset(x for x in _simple(constants) if isinstance(x, bool | int | float | complex))


def _builds_names(steps: list[dis.Instruction]) -> bool:
    """Whether ``getattr`` is used otherwise than in calls with constants as names."""
    for k, step in enumerate(steps):
        if step.opname in _LOADED and step.argval in _GETTERS:
            loads = list(itertools.takewhile(_only_loads, steps[k + 1 :]))
            name = next((x.argval for x in loads if x.opname == "LOAD_CONST"), None)
            after = k + 1 + len(loads)
            calls = after < len(steps) and steps[after].opname.startswith(("CALL", "PRECALL"))
            if type(name) is not str or not calls:
                return True
    return False


def _only_loads(step: dis.Instruction) -> bool:
    return step.opname.startswith(("LOAD_", "PUSH_NULL", "BINARY_SUBSCR"))


def all_codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those of functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from all_codes(constant)


# ------------------------------------------------------------------------------------ frames


def is_silent(frame: FrameType) -> bool:
    """Whether a frame is at an instruction that calls nothing but finalizers."""
    return is_known() and frame.f_code.co_code[frame.f_lasti] in _SILENT


def has_handler(traceback: TracebackType) -> bool:
    """Whether code catches what is raised at the place that it came to."""
    if not is_known():
        return False
    entries: Any = dis.Bytecode(traceback.tb_frame.f_code).exception_entries  # pyright: ignore
    return any(entry.start <= traceback.tb_lasti < entry.end for entry in entries)


# -------------------------------------------------------------------------------- plain reads


class Sites:
    """The instructions of the user's code that made operations while a function was traced.

    Attributes
    ----------
    root
        The code of the function that traces, beyond which nobody looks.
    calls
        For each, the user's code that it called on the way to operations; whether it did so itself,
        and the arrays in local variables there at the first operation, by identity.
    """

    def __init__(self, root: CodeType) -> None:
        self.root = root
        self.calls: dict[
            tuple[CodeType, int], dict[CodeType, tuple[bool, dict[int, list[str]]]]
        ] = {}

    def add(self, frame: FrameType | None) -> None:
        """Note the instructions that run, from an innermost one of the user's outwards."""
        inner: FrameType | None = None
        while frame is not None and frame.f_code is not self.root:
            code = frame.f_code
            if is_users(code.co_filename):
                called = self.calls.setdefault((code, frame.f_lasti), {})
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
        if not is_known():
            return True
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
            popped = _popped(step)
            if popped is None:
                return False
            if popped <= above:
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
                local = step.argval if name == "STORE_FAST" else step.argval[0]
                return not packed and self._local(array, code, local, done)
            elif name == "RETURN_VALUE":
                return code is self.root or self._returned(array, code, packed, done)
            elif (site := self._site(code, steps, number)) is not None:
                return self._passed(array, site, packed, done)
            elif _is_subscript(step) and above == popped - 1 and array in self.viewed:
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
            self._explained(array, code_object, start, above, done)
            for code_object in inner
            for start, above in _uses(code_object, name)
        )

    def _returned(
        self, array: int, code: CodeType, packed: bool, done: set[tuple[CodeType, str]]
    ) -> bool:
        """Whether callers that gave the array to code read it not plainly when they get it back."""
        sites = [
            site
            for site, called in self.sites.calls.items()
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
        sites = ((code, offset) for offset in range(steps[number].offset, end, 2))
        return next((site for site in sites if site in self.sites.calls), None)

    def _passed(
        self, array: int, site: tuple[CodeType, int], packed: bool, done: set[tuple[CodeType, str]]
    ) -> bool:
        """Whether the user's code that gets the array from a call reads it not plainly either."""
        for called, (direct, arrays) in self.sites.calls[site].items():
            names = arrays.get(array, ())
            if packed or (direct and not names):
                return False  # transforms of ours give Tensors instead
            if not all(self._local(array, called, name, done) for name in names):
                return False
        return True


def _behind(code: CodeType, offset: int) -> int:
    """The number of the instruction after one that runs, or whose cache does."""
    return sum(step.offset <= offset for step in _instructions(code))


def _popped(step: dis.Instruction) -> int | None:
    """How many objects an instruction takes; None if that is not known here."""
    name, count = step.opname, step.arg or 0
    if name in _POPPED:
        return _POPPED[name]
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
    """The change of the stack's height by an instruction."""
    if step.opname == "PRECALL":  # whose nominal effect is that of the call
        return 0
    if step.opname == "CALL":
        return -(step.arg or 0) - 1
    return dis.stack_effect(step.opcode, step.arg, jump=False)


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
            for position, loaded in enumerate(names):
                if loaded == name:
                    yield number + 1, len(names) - position - 1
        elif step.opname == "STORE_FAST_LOAD_FAST" and step.argval[1] == name:
            yield number + 1, 0


def _called(steps: list[dis.Instruction], start: int) -> dis.Instruction | None:
    """The instruction that loads the function whose first argument is loaded before ``start``."""
    before = start - 2
    if sys.version_info >= (3, 13) and before >= 0 and steps[before].opname == "PUSH_NULL":
        before -= 1
    return steps[before] if before >= 0 else None
