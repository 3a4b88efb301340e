"""The fixture for users of pytest-benchmark."""

from typing import Any

pytest_plugins = ["pytester"]

FAKE = """
import pytest

pytest_plugins = ["numgrad.testing.pytest_benchmark"]

@pytest.fixture
def benchmark():
    return lambda function: ("timed", function())
"""
TEST = """
calls = []

class Late:
    def block_until_ready(self):
        calls.append("waited")

def compute(value, key):
    calls.append(value)
    return {key: [Late(), (value, Late())]}

def test_it(benchmark_warm):
    timed, found = benchmark_warm(compute, 3, key="x")
    assert timed == "timed" and found["x"][1][0] == 3
    assert calls == [3, "waited", "waited"] * 3
"""


def test_functions_are_warm_and_results_there(pytester: Any) -> None:
    pytester.makeconftest(FAKE)
    pytester.makepyfile(TEST)
    options = ("-p", "no:cacheprovider", "-p", "no:benchmark")
    pytester.runpytest(*options).assert_outcomes(passed=1)
