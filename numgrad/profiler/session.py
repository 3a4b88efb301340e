"""``profile`` and ``schedule``: in which steps events are noted, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from os import PathLike
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Self

from numgrad.codegen.locks import ENTRIES
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.profiler.notes import RANGE, RecordedNotes, Recording, Span

if TYPE_CHECKING:
    from numgrad.profiler.events import Event, Summary


Schedule = Callable[[int], "ProfilerAction"]


class ProfilerAction(Enum):
    """Action of a profile in a step."""

    NONE = 0
    """Nothing."""
    WARMUP = 1
    """Takes notes and forgets them, so that the first step of interest finds all in place."""
    RECORD = 2
    """Takes notes."""
    RECORD_AND_SAVE = 3
    """Takes notes, and hands over those of all steps in a row when the step ends."""


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Schedule:
    """Cycles of steps: ``wait`` of them are left alone, ``warmup`` forgotten, ``active`` recorded.

    Parameters
    ----------
    wait, warmup, active
        Numbers of steps.
    repeat
        How many cycles; 0 for as many as there are steps.
    skip_first
        Steps before the first cycle.

    Returns
    -------
    callable
        The ``ProfilerAction`` of each step, for ``profile``.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If a number is no integer, is negative, or no step would be recorded.

    Examples
    --------
    >>> import numgrad as ng
    >>> plan = ng.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    counts = {
        "wait": wait, "warmup": warmup, "active": active, "repeat": repeat,
        "skip_first": skip_first,
    }  # fmt: skip
    for name, value in counts.items():
        if not hasattr(value, "__index__"):
            raise NumgradTypeError(
                f"schedule: {name} is a number of steps, an int; got {type(value).__name__}"
            )
        if value < (name == "active"):
            raise NumgradValueError(
                f"schedule: {name}={value}; there must be at least {int(name == 'active')}"
            )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        cycle, position = divmod(step - skip_first, length)
        if step < skip_first or (repeat and cycle >= repeat) or position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        last = position == length - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def always(step: int) -> ProfilerAction:
    """Record every step, where none was asked for."""
    return ProfilerAction.RECORD


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
_running: list[profile] = []
"""The profile that runs: there is one at a time."""


class profile:
    """Record what a block of code does with numgrad, in all threads.

    Recorded are operations, backwards and their nodes, compiled programs with their kernels and
    nests, steps of optimizers, tracing, kernels that are compiled or loaded from disk,
    collectives, and blocks named by ``record_function``: calls, time with and without their
    parts, bytes, threads, and the user's line. The time of a kernel is measured, and divided
    among its nests by their estimated work.

    Parameters
    ----------
    schedule
        The ``ProfilerAction`` of each step, see ``schedule``; by default all is recorded. Steps
        end where ``step()`` is called.
    on_trace_ready
        Called with the profile whenever recorded steps are complete.
    profile_memory
        Record memory in use and its peaks, by ``tracemalloc``, which makes everything slower.
    with_stack
        Whether the user's lines are recorded.

    Raises
    ------
    NumgradTypeError
        If ``schedule`` or ``on_trace_ready`` cannot be called.
    NumgradRuntimeError
        If another profile is running.

    Notes
    -----
    Without a profile nothing of this is in place, and costs nothing. With one, eager calls and
    backwards run in Python, where notes can be taken, and not in machine code, of which Note [Hot
    paths] in ``codegen.cpython.hot_paths`` tells. A small operation with its backward takes about 4
    us longer: a chain of five, forward and backward, four times as long on 100 elements, 1.8 times
    on 10,000, a tenth longer on 100,000. Compare shares of what is profiled, and take times without
    a profile. A note holds about 150 bytes until the profile is forgotten.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> with ng.profiler.profile() as p:
    ...     (x * x).sum().backward()
    >>> sorted((row.name, row.calls) for row in p.averages() if row.kind == "backward node")
    [('MultiplyBackward', 1), ('SumBackward', 1)]
    >>> print(p.table(sort="calls"))  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        profile_memory: bool = False,
        with_stack: bool = True,
    ) -> None:
        for name, value in (("schedule", schedule), ("on_trace_ready", on_trace_ready)):
            if value is not None and not callable(value):
                raise NumgradTypeError(
                    f"profile: {name} is a function, got {type(value).__name__}; "
                    "ng.profiler.schedule makes the former"
                )
        self._schedule, self._on_trace_ready = schedule or always, on_trace_ready
        self._memory, self._lines = bool(profile_memory), bool(with_stack)
        self.step_num = 0
        """Number of the step that is running."""
        self._action = ProfilerAction.NONE
        self._recording: Recording | None = None
        self._recorded: RecordedNotes | None = None
        self._remove: Callable[[], None] | None = None
        self._events: list[Event] | None = None
        self._step_begin = 0
        self._running = self._started_tracing = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        what = "running" if self._running else f"{len(self.events())} events"
        return f"<numgrad.profiler.profile: {what}>"

    # ---------------------------------------------------------------------------------- running

    def start(self) -> None:
        """Begin with step 0.

        Raises
        ------
        NumgradRuntimeError
            If this profile or another one is running.
        NumgradTypeError
            If ``schedule`` does not return a ``ProfilerAction``.
        """
        with ENTRIES:
            if _running:
                raise NumgradRuntimeError(
                    "profile: another profile is running, and there is one at a time; stop it first"
                )
            _running.append(self)
        self._running = True
        self.step_num = 0
        try:
            self._turn_to(self._planned(0))
        except BaseException:
            self._end()
            raise

    def step(self) -> None:
        """End a step and begin the next one.

        Raises
        ------
        NumgradRuntimeError
            If the profile is not running.
        NumgradTypeError
            If ``schedule`` does not return a ``ProfilerAction``.
        """
        self._check_running("step")
        action = self._planned(self.step_num + 1)
        self._end_step()
        self.step_num += 1
        self._turn_to(action)

    def stop(self) -> None:
        """End the last step, and hand over what was recorded.

        Raises
        ------
        NumgradRuntimeError
            If the profile is not running.
        """
        self._check_running("stop")
        try:
            if self._schedule is not always:
                self._end_step()
            self._turn_to(ProfilerAction.NONE)
        finally:
            self._end()

    def _planned(self, step: int) -> ProfilerAction:
        action = self._schedule(step)
        if not isinstance(action, ProfilerAction):
            raise NumgradTypeError(
                f"profile: schedule returned {action!r} for step {step}, not a member of "
                "ng.profiler.ProfilerAction; ng.profiler.schedule makes such functions"
            )
        return action

    def _check_running(self, what: str) -> None:
        if not self._running:
            raise NumgradRuntimeError(
                f"profile.{what}: the profile is not running; use it as a context manager, or call "
                "start() first"
            )

    def _turn_to(self, action: ProfilerAction) -> None:
        """End what was done in the step before as far as this one does something else."""
        before, self._action = self._action, action
        if before in _RECORDING and (
            before is ProfilerAction.RECORD_AND_SAVE or action not in _RECORDING
        ):
            self._take_down()
            if self._on_trace_ready is not None:
                self._on_trace_ready(self)
            before = ProfilerAction.NONE
        if action is ProfilerAction.NONE:
            self._take_down()
        elif before is not action and not (before in _RECORDING and action in _RECORDING):
            self._take_down()
            self._set_up()
        self._step_begin = perf_counter_ns()

    def _end_step(self) -> None:
        active = self._recording
        if active is not None and self._remove is not None:
            end = active.clock()
            name = f"ProfilerStep#{self.step_num}"
            active.log.add((self._step_begin, end, Span(RANGE, name), -1, None, 0))

    def _set_up(self) -> None:
        from numgrad.profiler.instruments import install

        if self._memory:
            import tracemalloc

            if not tracemalloc.is_tracing():
                tracemalloc.start()
                self._started_tracing = True
        active = Recording(self._memory, self._lines)
        self._remove = install(active)
        self._recording, self._events, self._recorded = active, None, None
        active.begin = active.clock()

    def _take_down(self) -> None:
        if self._remove is None or self._recording is None:
            return
        self._remove()
        self._remove = None
        self._recorded = self._recording.recorded()
        self._recording.forget()
        self._recording = None

    def _end(self) -> None:
        self._action = ProfilerAction.NONE
        self._take_down()
        if self._started_tracing:
            import tracemalloc

            tracemalloc.stop()
            self._started_tracing = False
        self._running = False
        _running.remove(self)

    # ---------------------------------------------------------------------------------- results

    def events(self) -> list[Event]:
        """Events recorded last, by thread, each in the order in which it began.

        Returns
        -------
        list of Event
            With ``kind``, ``name``, ``total_ns``, ``self_ns``, ``bytes``, ``line``, ``children``
            and more; of a profile that is recording, all that has ended so far.

        Examples
        --------
        >>> import numgrad as ng
        >>> with ng.profiler.profile() as p:
        ...     y = ng.ones(1000) + 1.0
        >>> event = p.events()[0]
        >>> event.name, event.written
        ('add', 8000)
        """
        from numgrad.profiler.events import events_of

        if self._events is not None:
            return self._events
        if self._recording is not None:
            return events_of(self._recording.recorded())
        self._events = [] if self._recorded is None else events_of(self._recorded)
        self._recorded = None
        return self._events

    def averages(self, by_line: bool = False) -> list[Summary]:
        """Sums of events of one kind and name, and of one line if that is asked for.

        Returns
        -------
        list of Summary
            With ``kind``, ``name``, ``calls``, ``self_ns``, ``total_ns``, ``bytes``, ``threads``,
            ``peak``, ``line``.

        Examples
        --------
        >>> import numgrad as ng
        >>> with ng.profiler.profile() as p:
        ...     for _ in range(3):
        ...         y = ng.exp(ng.ones(4))
        >>> [(row.name, row.calls) for row in p.averages() if row.kind == "operation"]
        [('exp', 3)]
        """
        from numgrad.profiler.events import averages

        return averages(self.events(), by_line)

    def table(self, sort: str = "self", rows: int | None = 30, by_line: bool = False) -> str:
        """The sums as text.

        Parameters
        ----------
        sort
            ``"self"``, ``"total"``, ``"mean"``, ``"calls"``, ``"bytes"``, ``"peak"``,
            ``"threads"`` (largest first), ``"name"`` or ``"line"``.
        rows
            The most rows that are shown; None for all.
        by_line
            Whether each of the user's lines has a row of its own.

        Raises
        ------
        NumgradValueError
            If there is no such column.

        Examples
        --------
        >>> import numgrad as ng
        >>> with ng.profiler.profile() as p:
        ...     y = ng.exp(ng.ones(4))
        >>> print(p.table())  # doctest: +ELLIPSIS
        name  kind  ...
        exp   operation ...
        """
        from numgrad.profiler.exports import to_text

        return to_text(self.averages(by_line), sort, rows)

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write events to a file that Perfetto (ui.perfetto.dev) and ``chrome://tracing`` open.

        The format is that of trace events in JSON; compressed if the name ends in ``.gz``. Arrows
        lead from operations to the nodes of their backwards. The process has the number of its
        rank in its name; ``ng.profiler.merge_traces`` makes one file of those of all ranks.

        Examples
        --------
        >>> import json, pathlib, tempfile
        >>> import numgrad as ng
        >>> with ng.profiler.profile() as p:
        ...     y = ng.exp(ng.ones(4))
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     path = pathlib.Path(directory, "trace.json")
        ...     p.export_chrome_trace(path)
        ...     trace = json.loads(path.read_text())
        >>> [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]
        ['exp']
        """
        from numgrad.profiler.exports import write

        write(path, self.events())

    def _repr_html_(self) -> str:
        """The table and a picture of the calls, for Jupyter."""
        from numgrad.profiler.exports import to_html

        return to_html(self.events(), self.averages())

    def __str__(self) -> str:
        return repr(self) if self._running else self.table()
