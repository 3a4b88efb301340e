"""The calls that mean something else than in PyTorch are those that its users' guide lists."""

import numpy as np
import pytest

import numgrad as ng

DIFFERENT = {
    "x.max(1)", "x.min(0)", "x.var()", "x.std()", "x.transpose(0, 1)", "x.repeat(2, 1)",
    "lib.split(x, 1)", "lib.equal(x, x)", "lib.meshgrid(x[0], x[0])", "lib.max(x, 0)",
    "lib.var(x, 0)", "x.norm(1)", "x.sort()", "x.cummax(0)", "x.median()", "x.nonzero()",
}  # fmt: skip
SAME = """
x.transpose(1, 0); x.round(); x.norm(); x.norm(2, 1); x.cumsum(0); x.sum(0, True)
x.mean(1, True); x.any(1); x.all(0); x.flip(0); x.diagonal(); x.unsqueeze(1); x.squeeze(); x.ravel()
x.flatten(); x.reshape(4, 3); x.permute(1, 0); x.swapaxes(0, 1); x.T; x.clamp(0, 2); x.clamp(min=1)
x.argmax(); x.argmax(1); lib.tile(x, (2,)); lib.roll(x, 1); lib.roll(x, 1, 0)
lib.linspace(0, 1, 3); lib.arange(0, 1, 0.5); lib.tensor(3) / lib.tensor(2); lib.outer(x[0], x[0])
lib.stack([x, x], 1); lib.sum(x, 1); lib.max(x, 2 * x); lib.logsumexp(x, 1); lib.softmax(x, 1)
lib.cumprod(x, 1); lib.clip(x, 0, 1); lib.floor_divide(-x, 2); lib.remainder(-x, 3); lib.fmod(-x, 3)
lib.unique(x); lib.diag(x[0]); lib.trace(x); lib.tril(x, -1); len(x); -x % 3; x // 2; lib.diff(x)
lib.einsum("ij->j", x); lib.argmax(x, 0); lib.kron(x, x); lib.mean(x, 0); lib.isclose(x, x)
lib.topk(x, 2); lib.argsort(x, 0); lib.argwhere(x); lib.bincount(lib.tensor([2, 0]))
lib.quantile(x, 0.3, 1); lib.searchsorted(x[0], x[1]); lib.logcumsumexp(x, 0); x.nanmean(0)
"""
CALLS = {call.strip() for call in SAME.replace("\n", ";").split(";") if call.strip()} | DIFFERENT


def plain(value):
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return np.asarray(value.detach() if hasattr(value, "detach") else value)


def same(a, b):
    if isinstance(a, list) or isinstance(b, list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a.shape == b.shape and np.allclose(a, b)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", sorted(CALLS))
def test_only_what_the_guide_lists_means_something_else(call):
    torch = pytest.importorskip("torch")
    found = []
    for lib in (torch, ng):
        x = lib.tensor(np.arange(12.0).reshape(3, 4))
        try:
            found.append(plain(eval(call, {"lib": lib, "x": x})))
        except (TypeError, AttributeError, ng.NumgradError):
            assert lib is ng  # an error is no silent difference
            assert call not in DIFFERENT
            return
    assert same(*found) == (call not in DIFFERENT)
