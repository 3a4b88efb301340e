"""Where the time of a program goes: ``profile`` records what numgrad does.

>>> import numgrad as ng
>>> x = ng.tensor([1.0, 2.0], requires_grad=True)
>>> with ng.profiler.profile() as p:
...     (x * x).sum().backward()
>>> print(p.table(sort="total"))  # doctest: +SKIP

Names are those of ``torch.profiler`` where it has them: ``record_function``, ``schedule``,
``step``, ``export_chrome_trace``.
"""

from numgrad.profiler.exports import merge as merge_traces
from numgrad.profiler.notes import record_collective as record_collective
from numgrad.profiler.notes import record_function as record_function
from numgrad.profiler.session import ProfilerAction as ProfilerAction
from numgrad.profiler.session import profile as profile
from numgrad.profiler.session import schedule as schedule

__all__ = [
    "ProfilerAction", "merge_traces", "profile", "record_collective", "record_function", "schedule",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
