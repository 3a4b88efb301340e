"""Where the time of a program goes: ``torch.profiler``, which is ``numgrad.profiler``."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from typing import Any

from numgrad import profiler as base
from numgrad.profiler.events import Summary
from numgrad.profiler.exports import to_text
from numgrad.torch.missing import refuse

ProfilerAction, record_function, schedule = base.ProfilerAction, base.record_function, base.schedule
_COLUMNS = {"self": "self", "count": "calls", "mem": "bytes", "cpu_time_total": "total"}
"""Parts of names of columns, and columns of numgrad's."""


class ProfilerActivity(Enum):
    """Devices whose work is recorded, of which there is one."""

    CPU, XPU, MTIA, CUDA = range(4)


class Row(Summary):
    """A sum by the names of PyTorch, with times in microseconds."""

    key = property(lambda self: self.name)
    count = property(lambda self: self.calls)
    cpu_time_total = property(lambda self: self.total_ns / 1e3)
    self_cpu_time_total = property(lambda self: self.self_ns / 1e3)
    cpu_time = property(lambda self: self.mean_ns / 1e3)


class Averages(list[Row]):
    """Sums of events of one name."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: Any) -> str:
        """The sums as text, the largest in a column of PyTorch's first."""
        column = next((c for part, c in _COLUMNS.items() if part in str(sort_by)), "total")
        return to_text(self, column, None if row_limit < 0 else row_limit)


class profile(base.profile):
    """A recorded block of code: ``numgrad.profiler.profile``, by PyTorch's names."""

    def __init__(
        self, *, schedule: Any = None, on_trace_ready: Any = None, profile_memory: bool = False,
        activities: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            schedule=schedule, on_trace_ready=on_trace_ready, profile_memory=profile_memory
        )

    def key_averages(self, *args: Any, **options: Any) -> Averages:
        """Sums of events of one name."""
        return Averages(Row(**vars(row)) for row in self.averages())


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None) -> Callable[..., None]:
    """A function that writes the trace of a profile into a folder, as TensorBoard looks for it."""

    def written(profile: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or os.getpid()}.{profile.step_num}.pt.trace.json"
        profile.export_chrome_trace(os.path.join(dir_name, name))

    return written


__getattr__ = refuse(globals())
