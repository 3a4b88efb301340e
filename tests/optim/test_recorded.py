"""Schedules and L-BFGS against what PyTorch did."""

import json

import pytest

import numgrad as ng
from tests import recorded
from tests.optim.recorded import CASES, FILE, results

RECORDED = json.loads(FILE.read_text())


@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_recorded(name):
    recorded.agree(
        results(ng, name),
        RECORDED[name],
        name,
        1e-8 if name.startswith(("lbfgs", "line")) else 1e-12,
    )


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", CASES)
def test_the_installed_pytorch_takes_these_steps(torch, name):
    recorded.agree(
        results(torch, name),
        RECORDED[name],
        name,
        1e-8 if name.startswith(("lbfgs", "line")) else 1e-12,
    )
