"""Where the time of a program goes: ``profile`` records what numgrad does.

>>> import numgrad as ng
>>> x = ng.tensor([1.0, 2.0], requires_grad=True)
>>> with ng.profiler.profile() as p:
...     (x * x).sum().backward()
>>> print(p.table(sort="total"))  # doctest: +SKIP

Names are those of ``torch.profiler`` where it has them: ``record_function``, ``schedule``,
``step``, ``export_chrome_trace``.
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.profiler.exports": "merge_traces=merge",
        "numgrad.profiler.notes": "record_collective record_function",
        "numgrad.profiler.session": "ProfilerAction profile schedule",
    },
)
