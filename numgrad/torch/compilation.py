"""``torch.compile``: ``ng.jit`` of functions and modules.

Note [Captured values of compiled functions]
--------------------------------------------
``ng.jit`` reads Tensors that a function captures at each call; numbers become part of the program.
So programs are kept by what else may change between calls: the training mode of modules, and
numbers, strings and bools, that the function finds in its closure or among its globals.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from inspect import unwrap as original
from typing import Any
from weakref import WeakKeyDictionary

import numgrad as ng
from numgrad.errors import NumgradRuntimeError, NumgradTraceError, NumgradValueError
from numgrad.torch.nn.module import Module
from numgrad.torch.wrapping import unwrap, user_function, wrap

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_BACKENDS = ("inductor", "aot_eager", "eager")
_RANDOM = ".*drew random numbers from np.random while it was traced"


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
        None: they are those of PyTorch's compiler.
    disable
        Return the function as it is.

    Raises
    ------
    NumgradValueError
        If the backend or mode is another, or options are given.
    NumgradRuntimeError
        In calls with ``fullgraph=True``, if the function cannot be traced.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> @torch.compile
    ... def energy(x):
    ...     return (x * x).sum()
    >>> energy(torch.ones(3))
    tensor(3.)
    """
    if backend not in _BACKENDS or mode not in _MODES or options:
        raise NumgradValueError(
            f"compile: takes a backend of {_BACKENDS}, a mode of {_MODES} and no options, got "
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
    programs: dict[Any, Any] = {}
    name = getattr(function, "__name__", type(function).__name__)
    refused = False

    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal refused
        if refused:
            return function(*args, **kwargs)
        key = tuple(_state(function))
        program = programs.get(key)
        try:
            if program is not None:
                return wrap(program(*unwrap(args), **unwrap(kwargs)))
            program = ng.jit(user_function(function), dynamic=dynamic)
            with warnings.catch_warnings():
                warnings.filterwarnings("error", _RANDOM)
                result = wrap(program(*unwrap(args), **unwrap(kwargs)))
        except (NumgradTraceError, UserWarning) as error:
            if fullgraph:
                raise NumgradRuntimeError(f"compile: {name} cannot be traced: {error}") from error
            refused = True
            warnings.warn(f"compile: {name} runs as it is: {error}", stacklevel=2)
            return function(*args, **kwargs)
        programs[key] = program
        return result

    called.__name__, called.__doc__ = name, function.__doc__
    vars(called)["__wrapped__"] = function
    return called


def _state(function: Any) -> Iterator[Any]:
    """What a program depends on: Note [Captured values of compiled functions]."""
    function = original(function)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, Module):
        yield from (m.training for m in owner.modules())
    code = getattr(function, "__code__", None)
    if code is None:
        return
    captured = [c.cell_contents for c in getattr(function, "__closure__", None) or ()]
    known = function.__globals__
    for value in (*captured, *(known.get(n) for n in code.co_names)):
        if isinstance(value, Module):
            yield from (m.training for m in value.modules())
        elif isinstance(value, bool | int | float | str):
            yield type(value), value


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
