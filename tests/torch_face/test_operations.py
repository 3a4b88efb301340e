"""PyTorch's database of operations, but for named exceptions: ``op_db`` runs it."""

from functools import cache

import pytest

from tests.torch_face import op_db
from tests.torch_face.op_db.exceptions import BY_PROCESSOR, EXCEPTIONS

SAMPLE = (
    "add", "div.floor_rounding", "lerp", "var.unbiased", "max.reduction_with_dim", "sort", "gather",
    "scatter_add", "index_put", "masked_fill", "linalg.solve", "fft.rfft", "special.ndtr", "where",
    "cat", "expand", "std_mean", "cumprod", "nn.functional.linear", "baddbmm",
)  # fmt: skip
PARTS = 32
"""Parts in which the whole database is run, every 32nd name in each."""


@cache
def _database():
    pytest.importorskip("torch")
    return {op_db.name_of(op): op for op in op_db.database()}


def _new(name, samples, checks):
    """Differences that no exception names."""
    op = _database()[name]
    found = op_db.run(op, op_db.dtype_for(op), samples, checks)
    known = EXCEPTIONS.get(name, {})
    return {check: text for check, text in found.items() if check not in known}, found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow(cases=4)
@pytest.mark.parametrize("name", SAMPLE)
def test_as_pytorch(name):
    new, _ = _new(name, 6, ("value", "strides", "first", "second", "forward", "out", "inplace"))
    assert not new


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("part", range(PARTS))
def test_whole_database(part):
    different, passed = {}, []
    for name in list(_database())[part::PARTS]:
        new, found = _new(name, 12, op_db.ALL)
        if new:
            different[name] = new
        passed += [
            (name, check)
            for check, reason in EXCEPTIONS.get(name, {}).items()
            if check not in found and reason not in BY_PROCESSOR
        ]
    assert not different
    assert not passed, "these are no exceptions any more"


def test_names_of_exceptions_are_names_of_the_database():
    assert EXCEPTIONS.keys() <= _database().keys()
    assert {check for known in EXCEPTIONS.values() for check in known} <= {*op_db.ALL}
    assert {reason for known in EXCEPTIONS.values() for reason in known.values()} >= BY_PROCESSOR
