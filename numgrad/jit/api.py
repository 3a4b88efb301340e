"""``ng.jit``: a function that is compiled when it is first called with arguments of a kind."""

from __future__ import annotations

import copy
import functools
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, overload

from numgrad import config
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.jit.dispatch import MISS, NAMES, dispatcher
from numgrad.jit.options import Options
from numgrad.jit.signature import Arguments, Parameters, same_key
from numgrad.jit.specialise import Specialisation, mode_of_thread
from numgrad.op.base import state

_lock = threading.RLock()
"""Held while anything is traced or compiled."""

RETRACES = 8
"""After how many retraces of one function there is a warning."""


class Jitted:
    """A function with its compiled forms; made by ``ng.jit``.

    Attributes
    ----------
    specialisations
        What was compiled so far, in the order in which it was.
    """

    __numgrad_jit__ = True
    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], choices: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._choices = choices
        self._options = Options(
            getattr(function, "__name__", type(function).__name__),
            choices["parallel"],
            choices["contract"],
            choices["cache"],
        )
        self._parameters = Parameters(
            function, choices["static_argnums"], choices["static_argnames"], choices["donate"]
        )
        self.specialisations: list[Specialisation] = []
        # a class of its own, whose ``__call__`` is the dispatcher: Python looks it up there, and
        # no argument is packed and unpacked on the way
        self.__class__ = type(type(self).__name__, (type(self),), {"__module__": __name__})
        self._names = dict(NAMES)
        self._renew()

    def _renew(self) -> None:
        """Write the dispatcher anew."""
        names = self._names = {**NAMES, "_miss": self._miss, "_calls": self._names["_calls"]}
        listed = self._parameters.names
        values = ", ".join(listed) + ("," if listed else "")
        function = dispatcher(
            self._parameters.name,
            self._parameters.header,
            [s.writer for s in self.specialisations],
            f"return _miss(({values}))",
            names,
        )
        type(self).__call__ = staticmethod(function)

    def _miss(self, values: tuple) -> Any:
        """A call that none of the specialisations took as it came."""
        if state.interpreters or not config.jit:
            return self._parameters.call(values)
        arguments = Arguments.of(self._parameters, values)
        mode = mode_of_thread()
        key = (*arguments.key(self._choices["dynamic"], mode == 2), mode)
        out = self._try(arguments, key)
        if out is MISS:
            with _lock:
                out = self._try(arguments, key)  # another thread may have been faster
                if out is MISS:
                    out = self._specialise(arguments, key)
        return out

    def _try(self, arguments: Arguments, key: tuple) -> Any:
        for found in self.specialisations:
            if found.key[-1] == key[-1] and same_key(found.key, key):
                out = self._parameters.on(found.enter, arguments.values)
                if out is not MISS:
                    return out
        return MISS

    def _specialise(self, arguments: Arguments, key: tuple) -> Any:
        new = Specialisation(
            len(self.specialisations),
            arguments,
            key,
            self._options,
            self._choices["dynamic"],
            self._like,
        )
        self.specialisations = [*self.specialisations, new]
        self._renew()
        out = self._parameters.on(new.enter, arguments.values)
        if out is MISS:
            out = self._parameters.on(new.enter_anyway(), arguments.values)
        return out

    def _like(self, function: Callable[..., Any]) -> Jitted:
        """Another function, jitted with the same choices."""
        return Jitted(
            function, {**self._choices, "static_argnums": (), "static_argnames": (), "donate": ()}
        )


def jit(
    f: Any = None,
    *,
    static_argnums: Any = (),
    static_argnames: Any = (),
    dynamic: bool = True,
    parallel: Any = "auto",
    contract: bool = False,
    donate: Any = (),
    cache: bool = True,
) -> Any:
    choices = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "dynamic": dynamic,
        "parallel": parallel,
        "contract": contract,
        "donate": donate,
        "cache": cache,
    }
    if f is None:
        return functools.partial(jit, **choices)
    return Jitted(f, choices)
