"""What a step of a compiled loop or branch does besides computing, which would be done once.

Note [Side effects of steps]
----------------------------
A step is traced, not run: what it prints, writes to a file, or puts into a list around it would
come about once, while it is compiled, and never again. What it changes around itself is found by
comparison: what its code can reach is noted before the trace, and looked at after it, as
Note [Reach of a step] in ``state_snapshot`` says. A new key of a dictionary, or a new attribute, is
no change unless something traced is kept there: functions remember so what they computed. The step
is then traced again, in which what it remembers is there and does not grow.

What leaves no trace, such as a print, is seen by a profile function of this thread, before it is
done, and so are methods that change a container, with the line of the call. Bytecode does not tell
what is executed, and a stream does not tell who writes to it. That takes time, so it is done only
for code that may do such things: that names ``print``, or a container around it and a method that
changes one, or assigns a variable around it. Where a profiler is running already it is not, and
only the comparison is made.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from array import array
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NoReturn

from numgrad.compiler.trace.state_snapshot import (
    CHANGES,
    STREAMS,
    Reach,
)
from numgrad.core.bytecode import facts
from numgrad.errors import NumgradTraceError
from numgrad.libraries import is_users

_LOGS = os.path.join("logging", "__init__.py")
_CONTAINERS = (list, dict, set, deque, bytearray, array)


class SideEffects:
    """Watches the user's code in a ``with`` block, and raises for what it does besides computing.

    Parameters
    ----------
    what
        What the step is, for errors.
    function
        The step.
    again
        Whether it was traced before and kept something new, which it may not do once more.

    Attributes
    ----------
    grown
        Whether it kept something new, when the block has ended.

    Raises
    ------
    NumgradTraceError
        For the first side effect, with its line.
    """

    def __init__(self, what: str, function: Callable[..., Any], *, again: bool = False) -> None:
        self.what, self.function, self.again = what, function, again
        self.grown = False
        self.entered: set[CodeType] = set()
        self.around = Reach()
        self.outer: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> SideEffects:
        self._before = sys.getprofile()
        around = self.around
        around.look([(self.function, "", "")])
        free = self._before is None or is_watching(self._before)
        self._watches = free and (around.suspect or (around.changes and around.holds))
        if self._watches:
            sys.setprofile(_Profile(self))
        return self

    def __exit__(self, kind: Any, *exception: object) -> None:
        if self._watches:
            sys.setprofile(self._before)
        if kind is None:
            self._compare()

    # ------------------------------------------------------------------------------------ calls

    def enters(self, frame: FrameType) -> None:
        """The user's code begins to run: note what it finds around itself."""
        code = frame.f_code
        where, assigned, names = (
            f"{code.co_filename}:{code.co_firstlineno}",
            facts(code).assigned,
            frame.f_locals,
        )
        free = {n: names[n] for n in code.co_freevars if n in names and not self._makes(code, n)}
        if assigned and free:
            self.outer[id(frame)] = {n: x for n, x in free.items() if n in assigned}
        if code in self.entered:
            return
        self.entered.add(code)
        found = [(x, name, where) for name, x in free.items()]
        self.around.look(found + self.around.named(code, frame.f_globals, where))

    def leaves(self, frame: FrameType) -> None:
        """The user's code has run: look at what it assigned around itself."""
        for name, before in self.outer.pop(id(frame), {}).items():
            if frame.f_locals.get(name) is not before:
                self._refuse(f"assigning {name!r}, which lies around it,", _line(frame))

    def _makes(self, code: CodeType, name: str) -> bool:
        """Whether a variable around code is one of code that the step runs."""
        return any(
            code in outer.co_consts
            and (
                name in outer.co_cellvars
                or (name in outer.co_freevars and self._makes(outer, name))
            )
            for outer in self.entered
        )

    def called(self, frame: FrameType, function: Any) -> None:
        """A function that is written in C is about to be called."""
        if function is builtins.print or function is builtins.input:
            self._refuse(f"{function.__name__}()", _line(frame))
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if name in STREAMS and isinstance(owner, io.IOBase):
            self._refuse(f"{name}() of a file", _line(frame))
        known = self.around.places.get(id(owner)) if name in CHANGES else None
        if not isinstance(owner, _CONTAINERS) or (type(owner) is dict and name == "update"):
            return  # an update may be one of new keys
        if known is not None:
            self._refuse(f"{name}() of {known.name!r}, which lies around it,", _line(frame))

    def _compare(self) -> None:
        for place in self.around.places.values():
            if (name := place.changed(again=self.again)) is not None:
                self._refuse(f"a change of {name!r}, which lies around it,", place.where)
            self.grown = self.grown or place.grown()

    def _refuse(self, effect: str, line: str) -> NoReturn:
        raise NumgradTraceError(
            f"{line}: {self.what} is traced and compiled, so {effect} would happen once and not in "
            "each step; return what is to be seen, or run it outside of ng.jit "
            "(ng.config.jit = False)"
        )


class _Profile:
    """What Python calls with events of this thread."""

    def __init__(self, effects: SideEffects) -> None:
        self.effects = effects

    def __call__(self, frame: FrameType, event: str, function: Any) -> None:
        file = frame.f_code.co_filename
        if not is_users(file):
            if event == "call" and file.endswith(_LOGS) and frame.f_code.co_name == "_log":
                self.effects._refuse("logging", _line(frame))
        elif event == "c_call":
            self.effects.called(frame, function)
        elif event == "call":
            self.effects.enters(frame)
        elif event == "return":
            self.effects.leaves(frame)


def is_watching(profile: Any) -> bool:
    """Whether a profile function is one that watches steps."""
    return isinstance(profile, _Profile)


def _line(frame: FrameType | None) -> str:
    while frame is not None and frame.f_code.co_filename.endswith(_LOGS):
        frame = frame.f_back
    return "jit" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
