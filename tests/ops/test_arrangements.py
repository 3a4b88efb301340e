"""Whatever lies in memory however, given as whatever: values and gradients are the same."""

from __future__ import annotations

import numpy as np
import pytest

from numgrad.op.base import OPS
from tests.ops.arrangements import arrangements, check
from tests.ops.cases import TABLE, Case, cases
from tests.ops.reference import by_name


@pytest.mark.slow
@pytest.mark.parametrize("op", **by_name(TABLE))
def test_every_arrangement(op):
    for case in cases(op):
        known: dict = {}
        for chosen in arrangements(case):
            check(case, chosen, known)
