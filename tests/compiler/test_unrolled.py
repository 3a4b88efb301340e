"""Python loops that a trace unrolls: a warning where that makes very many operations."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad import errors
from numgrad.compiler.trace import diagnostics
from numgrad.errors import NumgradWarning, UnrolledLoopWarning


def looping(x, times):
    for _ in range(times):
        x = np.sin(x) * 0.5  # the line that is named
    return np.sum(x)


def line_of_the_loop():
    lines, first = inspect.getsourcelines(looping)
    return f"{__file__}:{first + next(k for k, text in enumerate(lines) if 'named' in text)}"


def traced(function, *arguments):
    """The graph of a function; nothing is compiled."""
    names = ["times"] if len(arguments) == 2 else []
    fast: Any = ng.jit(function, static_argnames=names)
    return fast, fast.graph(*arguments)


def test_a_loop_of_many_operations_is_named_with_what_to_write():
    assert issubclass(UnrolledLoopWarning, NumgradWarning)
    with pytest.warns(UnrolledLoopWarning) as caught:
        fast, graph = traced(looping, np.ones(3), 1001)
    (found,) = caught
    message = str(found.message)
    assert f"2,002 of them from {line_of_the_loop()}, which ran 1,001 times" in message
    assert "unrolled into 2,002 operations" in message
    assert "an axis for its iterations" in message
    assert "ng.scan" in message
    assert found.filename == __file__
    assert len(graph.nodes) > 2000
    fast.graph(np.ones(3), 1002)  # once for each function


def test_up_to_the_limit_nothing_is_said():
    traced(looping, np.ones(3), 1000)


def test_operations_of_the_gradient_count(monkeypatch):
    monkeypatch.setattr(diagnostics, "MOST_UNROLLED", 150)
    traced(looping, np.ones(3), 50)
    with pytest.warns(UnrolledLoopWarning, match="which ran 50 times"):
        traced(ng.grad(lambda x: looping(x, 50)), np.ones(3))


def test_operations_of_few_calls_are_no_loop(monkeypatch):
    monkeypatch.setattr(diagnostics, "MOST_UNROLLED", 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced(lambda x: np.stack(np.array_split(x, 30)), np.ones(30))
        traced(looping, np.ones(3), diagnostics.OFTEN - 1)


def test_where_warnings_are_errors_each_trace_raises(monkeypatch):
    monkeypatch.setattr(diagnostics, "MOST_UNROLLED", 50)
    fast = ng.jit(looping, static_argnames="times")
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UnrolledLoopWarning):
                fast(np.ones(3), 40)


def test_a_loop_over_an_axis_fixes_its_length_and_the_report_says_where():
    def over_rows(x):
        total = 0.0
        for row in x:
            total = total + np.sin(row)
        return np.sum(total)

    def over_numbers(x):
        total = 0.0
        for k in range(x.shape[0]):
            total = total + x[k]
        return np.sum(total)

    for f in (over_rows, over_numbers):
        fast = ng.jit(f)
        fast(np.ones((3, 2)))
        line = f"{__file__}:{f.__code__.co_firstlineno + 2}"
        assert f"length 3 is fixed, {line} reads it; a loop of any length is ng.scan" in (
            fast.report()
        )
    fast = ng.jit(np.sum)
    fast(np.ones((3, 2)))
    assert "is fixed" not in fast.report()


def count(x, n):
    for _ in range(n):
        x = 2 * x
    return x


def whole(x, n):
    return x * int(n)


def until(x, n):
    while x[0] < n:
        x = 2 * x
    return x


@pytest.mark.parametrize(
    ("f", "name"), [(count, "ng.fori_loop"), (whole, "ng.fori_loop"), (until, "ng.while_loop")]
)
def test_loops_that_depend_on_numbers_name_the_line_and_what_to_write(f, name):
    line = f"{__file__}:{f.__code__.co_firstlineno + 1}: "
    with pytest.raises(errors.NumgradTraceError, match=name) as caught:
        ng.jit(f)(np.ones(3), np.array(3))
    assert str(caught.value).startswith(line)
