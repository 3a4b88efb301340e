"""Whatever lies in memory however, given as whatever: values and gradients are the same."""

from __future__ import annotations

import pytest

from numgrad.op import Elementwise
from numgrad.op.base import OPS
from tests.ops.arrangements import ARRANGED, arrangements, check
from tests.ops.cases import EVERY_LAYOUT, TABLE, cases
from tests.ops.reference import by_name


# The loops around elementwise formulas are shared: some operations go through all of them.
FEW = ("C", "transposed", "stepped", "broadcast")
SAMPLED = ("multiply", "subtract", "matmul", "linear", "sum", "softmax", "take", "concat", "cumsum")


def try_arrangements(op, chosen_cases, layouts=tuple(ARRANGED)):
    for case in chosen_cases:
        known: dict = {}
        for chosen in arrangements(case, layouts):
            check(case, chosen, known)


@pytest.mark.slow
@pytest.mark.parametrize("op", **by_name(TABLE))
def test_every_arrangement(op):
    if isinstance(op, Elementwise) and op.name not in EVERY_LAYOUT:
        try_arrangements(op, list(cases(op))[:1], FEW)
    else:
        try_arrangements(op, cases(op))


@pytest.mark.parametrize("op", **by_name([OPS[name] for name in SAMPLED]))
def test_some_arrangements(op):
    try_arrangements(op, list(cases(op))[:2], FEW)
