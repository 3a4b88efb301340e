"""A fixture for users of pytest-benchmark: warm, and with results that are there.

Put ``pytest_plugins = ["numgrad.testing.pytest_benchmark"]`` into ``conftest.py``; then

    def test_speed(benchmark_warm):
        benchmark_warm(gradient, x)
"""

from collections.abc import Callable
from typing import Any

import pytest


def wait_for(result: Any) -> None:
    """Return when arrays of a result, or of what it contains, are there."""
    wait = getattr(result, "block_until_ready", None)
    if wait is not None:
        wait()
    elif isinstance(result, tuple | list | dict):
        for item in result.values() if isinstance(result, dict) else result:
            wait_for(item)


@pytest.fixture
def benchmark_warm(benchmark: Any) -> Callable[..., Any]:
    """pytest-benchmark's ``benchmark``, after two calls that compile what they need.

    Results that another library still computes (its arrays have ``block_until_ready``), also in
    tuples, lists and dicts, are waited for in every round.
    """

    def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        def call() -> Any:
            result = function(*args, **kwargs)
            wait_for(result)
            return result

        call()
        call()
        return benchmark(call)

    return run
