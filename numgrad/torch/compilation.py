"""``torch.compile``: ``ng.jit`` of functions and modules.

Note [Programs]
---------------
A call's Tensors are the inputs of a program, which ``ng.jit`` makes; there is one for each way in
which arguments nest and for their other values: numbers, flags, objects. What the function finds
around itself ``ng.jit`` reads, or guards. After ``_MANY`` programs numbers become inputs, too.
Lengths are inputs unless the function cannot be traced so.

Note [Effects of compiled functions]
------------------------------------
PyTorch's users count on what a function does besides returning: it prints, appends to a list, keeps
a running average or a hidden state in ``self``. Tensors that a function sets as attributes of
modules and objects become results of the program, and are set after each call. Everything else
(Note [Side effects of steps] in ``compiler.trace.side_effects``; schedules, modes, counters) leaves
the function to Python, with one warning, as all does that cannot be traced.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import numgrad as ng
from numgrad.compiler.trace.side_effects import SideEffects, SnapshotEntry, StateSnapshot
from numgrad.core.interpreter import state
from numgrad.core.tree import align, flatten, unflatten
from numgrad.errors import NumgradRuntimeError, NumgradTraceError
from numgrad.torch.nn.module import Module
from numgrad.torch.wrapping import Tensor, unwrap, wrap

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
BACKENDS = ("inductor", "aot_eager", "eager")
_ONCE = ".* while it was traced"


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None,
    backend: Any = "inductor", mode: str | None = None, options: Any = None, disable: bool = False,
) -> Any:  # fmt: skip
    """Compile a function or a module by ``ng.jit``; without one it is a decorator.

    Parameters
    ----------
    model
        A function, or a module, which goes into one that calls it as a whole.
    fullgraph
        Raise where the function cannot be traced; else one warning says why, and from then on it
        runs as it is.
    dynamic
        Whether one program serves arrays of all lengths; False compiles for each shape.
    backend, mode
        PyTorch's names, which all mean numgrad's compiler; ``backend="eager"`` compiles nothing.
    options
        Settings of PyTorch's code generators, which do nothing here; not with a mode.
    disable
        Return the function as it is.

    Raises
    ------
    NumgradRuntimeError
        If the backend or mode is another, or in calls with ``fullgraph=True`` if the function
        cannot be traced.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> @torch.compile
    ... def energy(x):
    ...     return (x * x).sum()
    >>> energy(torch.ones(3))
    tensor(3.)
    """
    if backend not in BACKENDS or mode not in _MODES or (mode is not None and options):
        raise NumgradRuntimeError(
            f"compile: takes a backend of {BACKENDS}, and a mode of {_MODES} or options, got "
            f"{backend!r}, {mode!r}, {options!r}; ng.jit has options of its own"
        )
    if model is None:
        return lambda f: compile(
            f, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, disable=disable
        )
    if disable or backend == "eager" or getattr(model, "_left_out", False):
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph, dynamic is not False)
    return _compiled(model, fullgraph, dynamic is not False)


def _compiled(function: Callable[..., Any], fullgraph: bool, dynamic: bool) -> Callable[..., Any]:
    programs = _Programs(function, dynamic)
    refused = begun = False

    @wraps(function, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal refused, begun
        if refused or state.ground.deferred or state.interpreters:
            return function(*args, **kwargs)
        try:
            return programs.call(args, kwargs)
        except Exception as error:
            if isinstance(error, _Begun) and not begun:
                begun = True
                return function(*args, **kwargs)
            untraced = fullgraph and isinstance(error, NumgradTraceError | UserWarning)
            result = None if untraced else function(*args, **kwargs)  # or an error of its own
            if fullgraph:
                told = f"compile: {programs.name} cannot be traced: {error}"
                raise NumgradRuntimeError(told) from error
            refused = True
            warnings.warn(f"compile: {programs.name} runs as it is: {error}", stacklevel=2)
            return result

    return called


_MANY, _MOST = 8, 64
"""Programs after which numbers become inputs, and after which there are no more."""
_REACH = 100_000
"""Objects that are looked at."""
_VALUES = (bool, int, float, complex, str, bytes, type(None))


class _Programs:
    """The programs of a function: Note [Programs]."""

    def __init__(self, function: Callable[..., Any], dynamic: bool) -> None:
        self.function, self.dynamic = function, dynamic
        self.name = getattr(function, "__name__", type(function).__name__)
        self.programs: dict[Any, Any] = {}
        self.numbers: bool | None = None

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result by the program for such arguments."""
        values: list[Any] = []
        if not kwargs and all([type(a) is Tensor for a in args]):
            key, nesting, values = len(args), None, list(args)
        else:
            nesting = flatten((args, kwargs), values)
            key = self._key(nesting, values)
        program = self.programs.get(key)
        if program is not None:
            try:
                return self._run(program, values)
            except Exception:  # other lengths may need a program of their own
                if not self.dynamic:
                    raise
            del self.programs[key]
        return self._first(key, nesting or flatten((args, kwargs), []), values)

    def _first(self, key: Any, nesting: Any, values: list[Any]) -> Any:
        """The result by a new program, with as many inputs as can be traced."""
        if any(isinstance(x, np.ndarray) for x in values):
            raise NumgradTraceError("an argument is an ndarray; pass torch.from_numpy of it")
        count = len(self.programs)
        if count >= _MOST:
            raise NumgradTraceError(f"it was called with {count} combinations of numbers, objects")
        modes = [(False, True), (False, False)][not self.dynamic :]
        if self.numbers or (count >= _MANY and self.numbers is None):
            modes.insert(0, (True, self.dynamic))
        for mode in modes:
            try:
                program = self._program(nesting, values, *mode)
                with warnings.catch_warnings():
                    warnings.filterwarnings("error", _ONCE)
                    result = self._run(program, values)
            except Exception:
                if mode is modes[-1]:
                    raise
                continue
            self.numbers, self.dynamic = mode[0] if modes[0][0] else self.numbers, mode[1]
            self.programs[key if type(key) is int else self._key(nesting, values)] = program
            return result

    def _key(self, nesting: Any, values: list[Any]) -> Any:
        return nesting, *[_kind_of(x, bool(self.numbers)) for x in values]

    def _program(self, nesting: Any, values: list[Any], numbers: bool, dynamic: bool) -> Any:
        """A compiled function of inputs, the positions of these, and places that it sets."""
        inputs_at = [k for k, x in enumerate(values) if isinstance(_kind_of(x, numbers), type)]
        fixed = [None if k in inputs_at else x for k, x in enumerate(values)]
        function, name = self.function, self.name
        places: dict[Any, SnapshotEntry] = {}

        def traced(*inputs: Any) -> Any:
            given = fixed.copy()
            for place, x in zip(inputs_at, inputs, strict=True):
                given[place] = wrap(x)
            args, kwargs = unflatten(nesting, iter(given))
            if not state.ground.deferred:
                return unwrap(function(*args, **kwargs)), {}
            around, written = StateSnapshot(_REACH, library=True), {}
            around.look([(function, "", ""), *[(x, name, name) for x in fixed]])
            try:
                with SideEffects(name, function, state=around) as effects:
                    result = function(*args, **kwargs)
                if effects.grown:
                    raise _Begun(f"{name} sets something around it for the first time")
                for entry, key, value in around.stored():
                    places[entry.place(key)] = replace(entry, before=None)
                    written[entry.place(key)] = unwrap(value)
            finally:
                around.restore()
            after: list[Any] = []
            where = align(nesting, (args, kwargs), after, "its arguments")
            if where is not None or any(x is not y for x, y in zip(after, given, strict=True)):
                raise NumgradTraceError(f"{name} changes containers among its arguments")
            return unwrap(result), written

        traced.__name__ = name
        return ng.jit(traced, dynamic=dynamic), inputs_at, places

    def _run(self, program: Any, values: list[Any]) -> Any:
        compiled, inputs_at, places = program
        result, written = compiled(*[unwrap(values[k]) for k in inputs_at])
        for place, value in written.items():
            places[place].assign(place[1], wrap(value))
        return wrap(result)


def _kind_of(x: Any, numbers: bool) -> Any:
    """The part of an argument that a program depends on."""
    kind = type(x)
    if isinstance(x, Tensor) or (numbers and kind in (int, float)):
        return kind
    if kind is float:
        return kind, repr(x)  # zeros have signs
    return (kind, x) if kind in _VALUES else id(x)


class _Begun(NumgradTraceError):
    """Something is there for the first time: another call may find it."""


_programs: WeakKeyDictionary[Module, Any] = WeakKeyDictionary()
"""Compiled functions of modules, which no copy of a module takes along."""


class OptimizedModule(Module):
    """A module whose call is compiled; ``_orig_mod`` is the one that was given."""

    def __init__(self, module: Module, fullgraph: bool = False, dynamic: bool = True) -> None:
        super().__init__()
        self._orig_mod, self._options = module, (fullgraph, dynamic)
        self.training = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if self not in _programs:
            module = self._orig_mod

            def forward(*args: Any, **kwargs: Any) -> Any:
                return module(*args, **kwargs)

            _programs[self] = _compiled(forward, *self._options)
        return _programs[self](*args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, of the module if it is none of this one's."""
        own = name in self.__dict__ or name in ("_orig_mod", "_options")
        if own or "_orig_mod" not in self.__dict__:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __getattr__(self, name: str) -> Any:
        """An attribute, which may be the module's."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)
