"""A fixed sample of PyTorch's database of operations: ``tests.torch_face.op_db`` runs all."""

from functools import cache

import pytest

from tests.torch_face import op_db

SAMPLE = (
    "add", "div.floor_rounding", "lerp", "var.unbiased", "max.reduction_with_dim", "sort", "gather",
    "scatter_add", "index_put", "masked_fill", "linalg.solve", "fft.rfft", "special.ndtr", "where",
    "cat", "expand", "std_mean", "cumprod", "nn.functional.linear", "baddbmm",
)  # fmt: skip
CHECKS = ("value", "first", "second", "out", "inplace")


@cache
def _database():
    pytest.importorskip("torch")
    return {op_db.name_of(op): op for op in op_db.database()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow(cases=4)
@pytest.mark.parametrize("name", SAMPLE)
def test_as_pytorch(name):
    torch = pytest.importorskip("torch")
    assert not op_db.run(_database()[name], torch.float64, 6, CHECKS)
