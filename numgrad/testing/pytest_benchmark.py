"""A fixture for users of pytest-benchmark: warm, and with results that are there.

Put ``pytest_plugins = ["numgrad.testing.pytest_benchmark"]`` into ``conftest.py``; then

    def test_speed(benchmark_warm):
        benchmark_warm(gradient, x)
"""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def benchmark_warm(benchmark: Any) -> Callable[..., Any]:
    """pytest-benchmark's ``benchmark``, after two calls that compile what they need.

    A result that another library still computes (its arrays have ``block_until_ready``) is waited
    for in every round.
    """

    def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        def call() -> Any:
            result = function(*args, **kwargs)
            wait = getattr(result, "block_until_ready", None)
            if wait is not None:
                wait()
            return result

        call()
        call()
        return benchmark(call)

    return run
