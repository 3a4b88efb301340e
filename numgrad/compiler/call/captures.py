"""Captures of a function, besides its arguments: enclosed variables, globals, attributes.

Note [Sources]
--------------
A compiled function gets the arrays and Tensors that Python code finds in its surroundings as
inputs. It must look for them at each call where the code would look, since a global may be bound
to another and an attribute replaced. So before a function is traced, all it can reach is listed
with its *source*: an expression that reads it again. Numbers on the way are noted with their
values, functions and objects by their identity: a compiled function is good as long as these
*guards* hold. Lengths of arrays are such numbers, since code may ask for them (``len(a)``),
and so is what is in an array that is no input: plain NumPy may have computed with it (``a.sum()``).

Which attributes of an object count is told by the names in the code that can get at it. The code
of libraries (what is installed, and Python's own) is taken for constant, and neither its globals
nor its objects are searched, those of this library excepted.

Note [Caches]
-------------
A function may keep what it computes: ``if "w" not in cache: cache["w"] = ...``, ``setdefault``,
``functools.cached_property``. The compiled function has it as a constant, since it was not there
before the trace. So what keys and attributes hold that came during the trace is guarded as it is
then. If it is a traced Tensor, the function is traced again, and told if it uses it; if it is a
generator of random numbers, too, since that goes on where the first call left it. Elements of lists
are left out: a list that the trace appends to is a record of traces.
"""

from __future__ import annotations

import builtins
import os
import random
import sys
import threading
from array import array as PlainArray
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import is_dataclass, replace
from functools import _lru_cache_wrapper, cached_property, partial
from importlib.util import resolve_name
from inspect import getattr_static
from itertools import pairwise
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.process_state import ProcessState
from numgrad.compiler.call.signature import METHODS, WeakMethod
from numgrad.compiler.call.source import (
    CONTENT,
    FIXED,
    IDENTITY,
    SMALL,
    VALUE,
    Content,
    Source,
    fixed_place,
    is_atom,
    of_library,
    of_memory,
    of_method,
    of_sparse,
    of_standard,
    place_of,
)
from numgrad.core.abstract import AbstractArray
from numgrad.core.bytecode import WORD, Mention, PlainReads, Sites, all_codes, facts
from numgrad.core.foreign import is_sparse_kind
from numgrad.core.op import Op
from numgrad.core.referents import ARGUMENT, CELL, DEFAULT, KEYWORD, referents
from numgrad.core.wrappers import FunctionWrapper
from numgrad.libraries import is_users_module

_VARIABLES = (np.ndarray, Tensor, dict, list)
_NOTHING = object()
_NO_OPERATORS = {
    *("__copy__", "__deepcopy__", "__del__", "__delattr__", "__dir__", "__getstate__"),
    *("__init__", "__new__", "__reduce__", "__reduce_ex__", "__repr__", "__setattr__"),
    *("__setstate__", "__str__"),
}
"""Methods with names in underscores that code does not call by its syntax."""
_IMPORTERS = {"import_module", "__import__", "modules"}
"""Names of what gives a module for a name, besides imports."""
_LIMIT = 20_000
"""How many objects are looked at."""
_RECORDS = {("types", "SimpleNamespace"), ("argparse", "Namespace"), ("_thread", "_local")}
"""Classes of Python's own whose objects hold what users put there."""


class Captures:
    """All that a function can reach, by place.

    Attributes
    ----------
    arrays
        The place of each array and Tensor, by identity.
    guards
        What must stay the same in any case: numbers, functions, lengths of containers.
    generators
        The sources of generators of random numbers, iterators and files, which go on by use.
    bit_generators
        The ids of what these, and generators of ours, draw from.
    codes
        The user's code, that of the function itself first.
    process
        Which state of the process this code asks for.
    opaque
        Whether there is an object of a library in which nothing was found that can be compared.
    """

    def __init__(self, roots: list[tuple[str, Any]], libraries: bool = False) -> None:
        self.roots = roots
        self.names: set[str] = {"__call__", "__getattr__", "forward"}
        self._asked: set[str] = set()
        self._random = _random_kinds()
        self._evaluates = self._builds_names = False
        weak = [m.instance for _, m in roots if isinstance(m, WeakMethod)]
        self._weak = {id(instance()): instance for instance in weak}
        while True:
            known = len(self.names) + len(self._asked) + self._builds_names
            self.arrays: dict[int, Source] = {}
            self.codes: dict[CodeType, None] = {}
            self._classes: set[type] = set()
            self._mentions: dict[int, list[Mention]] = {}
            self._before: dict[int, Content] = {}
            self.guards: list[Source] = []
            self.generators: list[Source] = []
            self.bit_generators: set[int] = set()
            self.process = ProcessState()
            self.opaque = False
            self._lengths: list[tuple[Any, int]] = []
            self._missing: set[str] = set()
            self._seen: set[int] = set()
            self._queue: list[Source] = [
                Source(value, FIXED, value, "{0}", name) for name, value in roots
            ]
            self._walk()
            if len(self.names) + len(self._asked) + self._builds_names == known:
                break
        for source in self._queue:
            if source.treatment == FIXED and id(source.value) in self._weak:
                source.value = None

    @property
    def sources(self) -> list[Source]:
        """All that was found, holders before what they hold."""
        return self._queue

    def promote(self, keys: Container[tuple[int, str]]) -> None:
        """Take numbers out of the guards that are inputs: Note [Promoted numbers]."""
        self.guards = [p for p in self.guards if (id(p.holder), p.access) not in keys]

    def has_grown(self) -> bool:
        """Whether there are keys or attributes by now that were not there."""
        return any(len(value) != count for value, count in self._lengths) or any(
            name in sys.modules for name in self._missing
        )

    def contents(self, inputs: set[int], looked_at: set[int]) -> Iterator[Source]:
        """The places of arrays that code may look at, and of those that it does.

        Of ``inputs`` it does so only if they are among the latter. What the function itself changes
        while it is traced, such as a counter, is none of them.
        """
        everything = not self.names.isdisjoint(("items", "values", "popitem"))
        for array, source in self.arrays.items():
            named = type(source.key) is not str or source.key in self.names or everything
            before = self._before.get(array)
            if array in looked_at:
                yield replace(source, value=Content(source.value, whole=True), treatment=CONTENT)
            elif before and named and array not in inputs and before(source.value):
                whole = isinstance(source.value, np.ndarray) and source.value.nbytes > SMALL
                content = Content(source.value, whole=True) if whole else before
                yield replace(source, value=content, treatment=CONTENT)

    def plainly_read(self, inputs: Iterable[int], sites: Sites, viewed: set[int]) -> set[int]:
        """The input arrays that plain NumPy may read too: Note [Plain reads]."""
        reads = PlainReads(self.codes, sites, viewed)
        return {array for array in inputs if reads.of(array, self._mentions.get(array, ()))}

    def _walk(self) -> None:
        queue = self._queue
        new, old, bits, ours = self._random
        leaves = (np.ndarray, Tensor, Op, *ours, *new, *old, *bits)
        for count, source in enumerate(queue):  # grows meanwhile
            if count > _LIMIT:
                return
            value = source.value
            if source.treatment in (IDENTITY, VALUE, CONTENT):
                self.guards.append(source)
            if source.treatment == CONTENT:
                continue
            if type(value) is str and value.isidentifier():  # for getattr(self, name)
                self.names.add(value)
            elif type(value) is str and self._evaluates:
                self.names.update(WORD.findall(value))
            if isinstance(value, np.ndarray):
                self._mentions.setdefault(id(value), []).append(source.mention)
            if id(value) in self._seen or is_atom(value):
                continue
            self._seen.add(id(value))
            if isinstance(value, random.Random | Iterator):  # files are iterators, too
                self.generators.append(source)
            if isinstance(value, leaves):
                if isinstance(value, np.ndarray | Tensor):
                    self.arrays[id(value)] = source
                    if not (isinstance(value, Tensor) and isinstance(value._array, AbstractArray)):
                        self._before[id(value)] = Content(value)
                elif isinstance(value, (*new, *old)):
                    self.generators.append(source)
                if isinstance(value, (*new, *ours)):
                    self.bit_generators.add(id(value.bit_generator))  # pyright: ignore
                elif isinstance(value, bits):
                    self.bit_generators.add(id(value))
                if not isinstance(value, Tensor):
                    continue
            for child in self._parts(value):
                child.parent = source
                child.name = f"{source.name}{child.name}" if child.name[:1] in ".[" else child.name
                queue.append(child)

    # ------------------------------------------------------------------------ what is in what

    def _parts(self, value: Any) -> Iterator[Source]:
        standard = of_standard(value, self._weak)
        if standard is not None:
            yield from standard
        elif isinstance(value, Tensor):  # a parameter's attributes of the user's
            own = getattr(value, "__dict__", None)
            if own is not None:
                self._lengths.append((own, len(own)))
                yield from self._absent(value, value, own)
                for name in sorted(self.names & own.keys()):
                    yield place_of(own[name], own, f"{{0}}[{name!r}]", f".{name}")
        elif isinstance(value, FunctionType):
            yield from self._of_function(value)
        elif isinstance(value, METHODS):
            yield Source(value.__func__, FIXED, value, "{0}.__func__", value.__name__)
            yield Source(value.__self__, FIXED, value, "{0}.__self__", _type_name(value.__self__))
        elif isinstance(value, partial):
            names = _positional(value.func)
            for child, kind, key, _, access in referents(value) or ():
                named = kind == ARGUMENT and key < len(names)
                if kind != KEYWORD:
                    name = f"default {names[key]}" if named else access.removeprefix("{0}")
                    yield fixed_place(child, value, access, name)
            yield from _of_keywords(value.keywords)
        elif isinstance(value, dict | MappingProxyType):
            self._lengths.append((value, len(value)))
            yield Source(len(value), VALUE, value, "_len({0})", "[...]")
            as_read = MappingProxyType(value)  # by the methods of its class
            for child, _, key, _, access in referents(as_read) or ():
                yield place_of(child, value, access, f"[{key!r}]", key)
        elif isinstance(value, list | tuple | deque):
            fixed = isinstance(value, tuple)
            if not fixed:
                yield Source(len(value), VALUE, value, "_len({0})", "[...]")
            make = fixed_place if fixed else place_of
            for child, _, number, _, access in referents(value) or ():
                yield make(child, value, access, f"[{number}]")
        elif isinstance(value, ModuleType):
            if not _is_library(value.__name__):
                yield from self._absent(value, value, vars(value))
                for name in sorted(self.names & vars(value).keys()):
                    yield place_of(vars(value)[name], value, f"{{0}}.{name}", f".{name}")
        elif isinstance(value, type):
            yield from self._of_class(value)
        elif type(value) is set and len(value) <= SMALL // 8:
            yield Source(frozenset(value), VALUE, value, "_frozenset({0})", "{...}")
        elif isinstance(value, bytearray | PlainArray | memoryview):
            yield Source(bytes(value), VALUE, value, "_bytes({0})", "[...]")
        elif isinstance(value, ChainMap | UserDict | UserList):
            inner = "maps" if isinstance(value, ChainMap) else "data"
            yield place_of(getattr(value, inner), value, f"{{0}}.{inner}", f".{inner}")
        elif isinstance(value, BuiltinFunctionType | CodeType | np.ufunc | set | frozenset):
            return
        elif _wraps(value):
            yield Source(value.__wrapped__, FIXED, value, "{0}.__wrapped__", _name(value))
        else:
            yield from self._of_object(value)

    def _of_function(self, function: FunctionType) -> Iterator[Source]:
        code = function.__code__
        has = facts(code)
        names, attributes, texts = has.globals, has.attributes, has.strings
        library = _is_library(function.__globals__.get("__name__", ""))
        for child, kind, key, holder, access in referents(function) or ():
            name = key if kind == CELL else f"default {key}"
            if kind == CELL and not library:
                yield place_of(child, holder, access, name)
                yield from self.process.places(child, attributes)
            elif library or kind == DEFAULT:
                yield fixed_place(child, holder, access, name)
        if not library:
            self._note_names(code)
            self.codes.update(dict.fromkeys(all_codes(code)))
        if library:
            return
        defaults, keywords = function.__defaults__, function.__kwdefaults__
        if defaults:  # which are replaced as a whole
            yield Source(defaults, IDENTITY, function, "{0}.__defaults__", ".__defaults__")
        yield Source(code, IDENTITY, function, "{0}.__code__", ".__code__")  # reloaders replace it
        if keywords:
            yield Source(keywords, IDENTITY, function, "{0}.__kwdefaults__", ".__kwdefaults__")
            yield from _of_keywords(keywords)
        yield from self._imported(function)
        yield from self._absent(function, function, vars(function))
        for name in sorted(self.names & vars(function).keys()):
            access = f"{{0}}.__dict__[{name!r}]"
            yield place_of(vars(function)[name], function, access, f".{name}")
        self._lengths.append((function.__globals__, len(function.__globals__)))
        maybe_absent = {name for name in names if not hasattr(builtins, name)}
        if not names.isdisjoint(("globals", "eval", "exec")):  # for globals()["name"]
            maybe_absent.update(filter(str.isidentifier, texts))
            names |= texts
        if not names.isdisjoint(("eval", "exec")):
            self._evaluates = True
            names |= self.names
        if not (names | attributes).isdisjoint(("environ", "getenv")):
            yield Source(os.environ, FIXED, os.environ, "{0}", "os.environ")
        for name in names:
            value = function.__globals__.get(name, function)
            yield from self.process.places(value, attributes)
            if isinstance(value, ModuleType):
                yield Source(value, FIXED, function.__globals__, f"{{0}}[{name!r}]", name)
            elif value is not function:
                yield place_of(value, function.__globals__, f"{{0}}[{name!r}]", name)
            elif name in maybe_absent:
                yield Source(False, VALUE, function.__globals__, f"({name!r} in {{0}})", name)

    def _imported(self, function: FunctionType) -> Iterator[Source]:
        """The modules that code of a function imports when it runs."""
        for name in _modules_in(function, self.names):
            module = sys.modules.get(name)
            if module is None:
                self._missing.add(name)
                continue
            yield from self.process.places(module, facts(function.__code__).attributes)
            if not _is_library(name):
                yield Source(module, IDENTITY, sys.modules, f"{{0}}[{name!r}]", name)

    def _of_object(self, value: Any) -> Iterator[Source]:
        kind = type(value)
        if is_sparse_kind(kind):
            yield from of_sparse(value)
            return
        if (
            _is_library(kind.__module__)
            and not kind.__module__.startswith("numgrad.")
            and (kind.__module__, kind.__name__) not in _RECORDS
        ):
            results = [*of_memory(value), *of_library(value, self.names)]
            self.opaque = self.opaque or not results
            yield from results
            return
        if kind.__module__.startswith("numgrad.optim"):  # a step reads its options at each call
            return
        yield from of_memory(value)
        holder = self._weak.get(id(value), value)
        if not _is_library(kind.__module__) and value.__class__ is kind:  # it may be replaced
            yield Source(True, VALUE, holder, "({0}.__class__ is {1})", ".__class__", key=kind)
        attributes = getattr(value, "__dict__", None)
        own = attributes if type(attributes) is dict else {}
        self._lengths.append((own, len(own)))
        if self._builds_names and not _is_library(kind.__module__):
            self.names.update(own)
            bases = (base for base in kind.__mro__ if not _is_library(base.__module__))
            self.names.update(n for base in bases for n in vars(base) if not n.startswith("__"))
        shared = holder is value and not isinstance(value, threading.local)
        if shared and own and value.__dict__ is own and not _is_library(kind.__module__):
            access = "({0}.__dict__ is {1})"
            yield Source(True, VALUE, value, access, ".__dict__", key=own)
        frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # pyright: ignore
        source = fixed_place if frozen else place_of
        members = self._members(kind)
        methods = [
            name
            for name, member in members
            if not _is_descriptor(member) and any(map(_is_users, _functions(member)))
        ]
        if methods and kind not in self._classes:
            self._classes.add(kind)
            yield from (of_method(kind, name, getattr(kind, name)) for name in methods)
            yield from self._overridden(kind, methods)
        if (
            methods
            and type(attributes) is dict
            and not any(_is_library(b.__module__) for b in kind.__mro__[:-1])
        ):
            yield Source(len(own), VALUE, holder, "_len({0}.__dict__)", ".__dict__")
        yield from self._absent(value, holder, attributes)
        for name, member in members:
            if _is_descriptor(member) and _is_users(type(member).__get__):
                holds = next(base for base in kind.__mro__ if name in vars(base))
                access = f"{{0}}.__dict__[{name!r}]"
                yield Source(member, IDENTITY, holds, access, f"{holds.__name__}.{name}")
            slot = type(member).__name__ == "member_descriptor" and hasattr(value, name)
            constant = _is_constant(member) and not name.startswith("__")
            if constant and name in own:  # and who reads the class gets the other
                yield place_of(getattr(kind, name), kind, f"{{0}}.{name}", f".{name}")
            if slot or constant:
                yield source(getattr(value, name), holder, f"{{0}}.{name}", f".{name}")
            elif name in own and not shared:
                yield source(own[name], holder, f"{{0}}.__dict__[{name!r}]", f".{name}")
            elif name in own:
                yield source(own[name], own, f"{{0}}[{name!r}]", f".{name}")

    def _absent(self, value: Any, holder: Any, attributes: Any) -> Iterator[Source]:
        """The attributes that an object lacks, where code may ask whether it has them."""
        for name in sorted(self._asked):
            if getattr_static(value, name, _NOTHING) is _NOTHING:
                if attributes is not None:
                    access = f"({name!r} in {{0}}.__dict__)"
                    yield Source(False, VALUE, holder, access, f".{name}")
            elif attributes is None and not hasattr(value, name):  # a slot
                yield Source(False, VALUE, holder, f"_has({{0}}, {name!r})", f".{name}")

    def _of_class(self, kind: type) -> Iterator[Source]:
        """The constants of a class that users keep there."""
        if _is_library(kind.__module__):
            return
        if not _is_library(type(kind).__module__):  # a metaclass has methods and properties
            yield Source(type(kind), IDENTITY, kind, "{0}.__class__", ".__class__")
            self._members(type(kind))
        yield from self._absent(kind, kind, vars(kind))
        for name, member in self._members(kind):
            if member is not _NOTHING and not name.startswith("__"):
                value = getattr(kind, name, _NOTHING)
                shown = isinstance(value, (*_VARIABLES, type)) or is_atom(value)
                if shown or _is_constant(member):
                    yield place_of(value, kind, f"{{0}}.{name}", f".{name}")
                elif kind not in self._classes and any(map(_is_users, _functions(member))):
                    yield of_method(kind, name, value)

    def _members(self, kind: type) -> list[tuple[str, Any]]:
        """The attributes that code with objects of a class looks up, and what the class has.

        What the methods of our own classes look up counts for objects of these alone.
        """
        names, mapping = set(self.names), {}
        for base in kind.__mro__[:-1]:
            operators = (n for n, m in vars(base).items() if isinstance(m, FunctionType))
            names.update(n for n in operators if n.startswith("__") and n not in _NO_OPERATORS)
        if is_dataclass(kind) and kind.__dataclass_params__.eq:  # pyright: ignore  # reads all fields
            names.update(kind.__dataclass_fields__)
        while names:
            name = names.pop()
            members = [vars(b)[name] for b in kind.__mro__ if name in vars(b)]
            mapping[name] = members[0] if members else _NOTHING
            for function in (f for m in members for f in _functions(m)):  # super() reaches all
                attributes = facts(function.__code__).attributes
                if _is_library(function.__globals__.get("__name__")):
                    names |= attributes - mapping.keys()
                else:
                    self._read_code(function, kind)
        return sorted(mapping.items())

    def _overridden(self, kind: type, names: Iterable[str]) -> Iterator[Source]:
        """The members that ``super()`` leads to from methods of a class."""
        for name in names:
            bases = [base for base in kind.__mro__ if name in vars(base)]
            for base, above in pairwise(bases):
                functions = _functions(vars(base)[name])
                if not any("super" in facts(f.__code__).names for f in functions):
                    break
                if not _is_library(above.__module__):
                    member = vars(above)[name]
                    access = f"{{0}}.__dict__[{name!r}]"
                    yield Source(member, IDENTITY, above, access, f"{above.__name__}.{name}")

    def _note_names(self, code: CodeType) -> None:
        """Note the names in code of the user's, and those of which it may ask whether they exist.

        Strings may be names, for ``getattr(self, "weight")``.
        """
        has = facts(code)
        self.names |= has.attributes | has.strings
        self._builds_names = self._builds_names or has.builds_names
        self._asked |= has.optional

    def _read_code(self, function: FunctionType, kind: type) -> None:
        """Note the names in a method, and what else it reads."""
        self._note_names(function.__code__)
        if id(function) not in self._seen:
            name = f"{kind.__name__}.{function.__name__}"
            self._queue.append(Source(function, FIXED, function, "{0}", name))


def _random_kinds() -> tuple[tuple[type, ...], ...]:
    """NumPy's generators, those of old, what both draw from, and generators of ours.

    ``numpy.random`` takes 20 ms to import, ours 5; before that, nobody has any of them.
    """
    own = sys.modules.get("numgrad.random.generator")
    ours = () if own is None else (own.Generator,)
    if "numpy.random" not in sys.modules:
        return (), (), (), ours
    return (np.random.Generator,), (np.random.RandomState,), (np.random.BitGenerator,), ours


def _modules_in(function: FunctionType, known: set[str]) -> Iterator[str]:
    """The full names of modules that a function, and those defined in it, import when they run.

    They may do so by name, which is then a string of the code or among those that are ``known``.
    """
    package = function.__globals__.get("__package__") or ""
    has = facts(function.__code__)
    for name, level in has.imports:
        try:
            yield resolve_name("." * level + name, package) if level else name
        except ImportError:  # beyond the package: the import says so
            continue
    if has.mentions(_IMPORTERS):
        yield from sorted((has.strings | known) & sys.modules.keys())


def _of_keywords(keywords: dict[str, Any]) -> Iterator[Source]:
    """Arguments by keyword, as defaults or from a partial, which may be changed."""
    yield Source(len(keywords), VALUE, keywords, "_len({0})", ".keywords")
    for child, _, key, _, access in referents(keywords) or ():
        yield place_of(child, keywords, access, f"default {key}")


def _positional(function: Any) -> tuple[str, ...]:
    """The names of the parameters that a call gives by position, if they can be told."""
    inner, bound = (function.__func__, 1) if isinstance(function, METHODS) else (function, 0)
    code = getattr(inner, "__code__", None)
    return () if code is None else code.co_varnames[bound : code.co_argcount]


def _is_users(function: FunctionType) -> bool:
    return not _is_library(function.__globals__.get("__name__"))


def _functions(member: Any) -> Iterator[FunctionType]:
    if isinstance(member, FunctionType):
        yield member
    elif isinstance(member, staticmethod | classmethod):
        yield from _functions(member.__func__)
    elif isinstance(member, property) and member.fget is not None:
        yield from _functions(member.fget)
    elif isinstance(member, cached_property):
        yield from _functions(member.func)
    elif _wraps(member):
        yield from _functions(member.__wrapped__)  # pyright: ignore
    elif _is_descriptor(member):
        yield type(member).__get__


def _is_descriptor(member: Any) -> bool:
    """Whether it is an attribute of a class of the user's that computes what is read."""
    return isinstance(getattr(type(member), "__get__", None), FunctionType) and not _wraps(member)


def _is_constant(member: Any) -> bool:
    """Whether an attribute of a class is read as it is, and no descriptor."""
    return member is not _NOTHING and not hasattr(type(member), "__get__")


def _wraps(value: Any) -> bool:
    """Whether it calls the function that is its attribute ``__wrapped__``."""
    kind = type(value)
    return kind in (_lru_cache_wrapper, FunctionWrapper) or hasattr(kind, "__numgrad_jit__")


def _is_library(module: str | None) -> bool:
    """Whether a module is installed, or part of Python."""
    return not is_users_module(module)


def _type_name(value: Any) -> str:
    return type(value).__name__.lower()


def _name(value: Callable[..., Any]) -> str:
    return getattr(value, "__name__", type(value).__name__)


# -------------------------------------------------------------------------------------------- made


def made_by_trace(before: Captures) -> list[Source]:
    """Guards of what has come into containers and attributes since ``before``."""
    if not before.has_grown():
        return []
    known = {_key(source): source for source in before.sources}
    new: set[int] = set()
    results: list[Source] = []
    for source in Captures(before.roots).sources:
        parent = source.parent
        if parent is None or _key(source) in known or source.treatment == FIXED:
            continue
        if isinstance(parent.value, list | deque) and id(parent) not in new:
            continue
        if _key(parent) not in known and id(parent) not in new:
            continue
        new.add(id(source))
        if _is_traced(source.value) or isinstance(source.value, _random_kinds()[3]):
            results += _lengths(source, known)
        elif isinstance(source.value, np.ndarray):
            content = Content(source.value, whole=True)
            results.append(replace(source, value=content, treatment=CONTENT))
        elif isinstance(source.value, Tensor):
            results.append(replace(source, treatment=IDENTITY))
        else:
            results.append(source)
    return results


def _key(source: Source) -> tuple[Any, ...]:
    return id(source.holder), source.access, repr(source.key) if source.key is not None else None


def _is_traced(value: Any) -> bool:
    return isinstance(value, Tensor) and isinstance(value._array, AbstractArray)


def _lengths(source: Source, known: dict[tuple[Any, ...], Source]) -> Iterator[Source]:
    """The guards of how many things there were beside something."""
    holder = id(source.holder)
    for before in known.values():
        inside = before.parent is not None and before.is_length
        if inside and holder in (id(before.holder), id(getattr(before.holder, "__dict__", None))):
            yield replace(before, kept=True)
