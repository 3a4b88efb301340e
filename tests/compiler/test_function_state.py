"""Tensors that a compiled function sets around itself: Note [State of functions]."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradNotImplementedError

TOTAL = ng.zeros(2)


class Cell(ng.nn.Module):
    """Keeps a hidden state, an average and the parts of its last call."""

    def __init__(self):
        super().__init__()
        self.weight = ng.nn.Parameter(np.full(2, 0.5))
        self.register_buffer("mean", ng.zeros(2))
        self.hidden = ng.zeros(2)
        self.parts, self.calls = [None, (None, 0)], {"last": None}

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach()
        self.hidden = ng.tanh(self.weight * x + self.hidden)
        self.parts[1] = (self.hidden * 2, 3)
        self.calls["last"] = x
        return self.hidden.sum()


def _told(cell, loss):
    loss.backward()
    (twice, count), last = cell.parts[1], cell.calls["last"]
    return [
        loss.item(), *cell.mean.tolist(), *cell.hidden.tolist(), *twice.tolist(), count,
        *last.tolist(), *cell.weight.grad.tolist(),
    ]  # fmt: skip


def test_a_module_keeps_its_state_and_gradients_go_through_it():
    x = np.array([0.3, -0.7])
    results = []
    for wrap in (lambda f: f, ng.jit):
        cell = Cell()
        step = wrap(lambda x, cell=cell: cell(x))
        losses = [step(ng.tensor(k * x)) for k in range(1, 4)]
        results.append(_told(cell, losses[1] + losses[2] * cell.hidden[0]))
    assert results[1] == pytest.approx(results[0], rel=1e-12)


def test_places_of_all_kinds():
    def run(wrap):
        global TOTAL
        TOTAL, box, seen, outer = ng.zeros(2), type("Box", (), {})(), [ng.zeros(1)], ng.ones(2)
        box.value = None

        def f(x):
            nonlocal outer
            global TOTAL
            outer = outer * x
            TOTAL = TOTAL + outer
            box.value = TOTAL.sum()
            seen[0] = x[:1]
            return outer + 1

        called = wrap(f)
        results = [np.asarray(called(np.array([1.0, 2.0]) * k)).tolist() for k in (1, 2, 3)]
        state = (outer, TOTAL, box.value, seen[0])
        assert all(isinstance(x, ng.Tensor) for x in state[:3])
        return results, [x.tolist() for x in state]

    assert run(ng.jit) == run(lambda f: f)


@pytest.mark.usefixtures("reference_backend")
def test_an_error_leaves_the_state_as_it_was():
    box = type("Box", (), {"__init__": lambda self: setattr(self, "value", before)})
    before = ng.ones(2)
    box = box()

    def f(x):
        box.value = x * 2
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ng.jit(f)(ng.ones(2))
    assert box.value is before


def test_what_is_new_is_left_alone_and_a_native_function_has_no_state():
    box, log = type("Box", (), {})(), {}
    box.value = ng.zeros(2)

    def f(x):
        box.value = box.value + x
        log["last"] = x
        return x * 2

    fast = ng.jit(f)
    for k in range(3):
        assert fast(ng.ones(2)).tolist() == [2, 2]
        assert box.value.tolist() == [k + 1, k + 1]
    with pytest.raises(NumgradNotImplementedError, match="what is around it"):
        fast.native(ng.ones(2))


def test_a_checked_call_sets_the_state_once(monkeypatch):
    monkeypatch.setattr(ng.config, "check_jit", True)
    total = {"sum": ng.zeros(2)}

    def add(x):
        total["sum"] = total["sum"] + x
        return total["sum"] * 2

    fast = ng.jit(add)
    assert [fast(ng.ones(2)).tolist() for _ in range(3)] == [[2, 2], [4, 4], [6, 6]]
    assert total["sum"].tolist() == [3, 3]
