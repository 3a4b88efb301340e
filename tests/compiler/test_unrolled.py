"""Python loops that a trace unrolls: a warning where that makes very many operations."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.trace import unrolled
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
    monkeypatch.setattr(unrolled, "MOST_UNROLLED", 150)
    traced(looping, np.ones(3), 50)
    with pytest.warns(UnrolledLoopWarning, match="which ran 50 times"):
        traced(ng.grad(lambda x: looping(x, 50)), np.ones(3))


def test_operations_of_few_calls_are_no_loop(monkeypatch):
    monkeypatch.setattr(unrolled, "MOST_UNROLLED", 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced(lambda x: np.stack(np.array_split(x, 30)), np.ones(30))
        traced(looping, np.ones(3), unrolled.OFTEN - 1)


def test_where_warnings_are_errors_each_trace_raises(monkeypatch):
    monkeypatch.setattr(unrolled, "MOST_UNROLLED", 50)
    fast = ng.jit(looping, static_argnames="times")
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UnrolledLoopWarning):
                fast(np.ones(3), 40)
