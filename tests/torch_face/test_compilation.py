"""``torch.compile`` gives what the function gives, and says where it cannot compile."""

import copy
import warnings

import numpy as np
import pytest

import numgrad.torch as torch
from numgrad.compiler.run.specialise import Specialisation
from numgrad.torch import nn

SCALE = 2.0


def test_a_module_follows_its_parameters_and_its_mode():
    net = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
    compiled, x = torch.compile(net), torch.ones(4, 3)
    compiled(x).sum().backward()
    assert net[0].weight.grad is not None
    compiled.eval()
    with torch.no_grad():
        net[0].weight.mul_(2)
    assert torch.allclose(compiled(x), net(x))
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight"
    twin = copy.deepcopy(compiled)
    with torch.no_grad():
        twin._orig_mod[0].weight.add_(1)
    assert torch.allclose(twin(x), twin._orig_mod(x))
    assert torch.allclose(compiled(x), net(x))


def test_a_global_number_may_change(monkeypatch):
    @torch.compile
    def scaled(x):
        return {"y": x * SCALE}

    assert scaled(torch.ones(2))["y"].tolist() == [2, 2]
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert scaled(torch.ones(2))["y"].tolist() == [3, 3]


@pytest.mark.parametrize("uses", ["values", "random numbers"])
def test_what_cannot_be_traced_runs_as_it_is_with_one_warning(uses):
    def function(x):
        if uses == "values":
            return x if x.sum() > 0 else -x
        return x.abs() + 0 * np.random.rand()

    compiled = torch.compile(function)
    with pytest.warns(UserWarning, match="function runs as it is"):
        assert compiled(torch.ones(2)).tolist() == [1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(-torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="cannot be traced"):
        torch.compile(function, fullgraph=True)(torch.ones(2))


def test_options_are_of_numgrads_compiler():
    named = {"mode": "default", "options": {"trace": 1}}
    for options in ({"backend": "cudagraphs"}, {"mode": "fast"}, named):
        with pytest.raises(RuntimeError, match="compile: takes"):
            torch.compile(abs, **options)
    assert torch.compile(abs, backend="eager", options={"trace": 1}) is abs
    assert "inductor" in torch.compiler.list_backends()
    assert torch.compiler.allow_in_graph(abs) is abs
    assert not torch.compiler.is_exporting()
    assert torch.compile(abs, disable=True) is abs


def test_a_layer_s_members_and_options_may_be_replaced():
    net, x = nn.Sequential(nn.Linear(1, 1, bias=False), nn.LeakyReLU(0.1)), torch.ones(1, 1)
    compiled, results = torch.compile(net), []
    for weight in (1.0, -2.0):
        net[0].weight = nn.Parameter(torch.full((1, 1), weight))
        results.append(compiled(x).item())
    net[1].negative_slope = 0.5
    results.append(compiled(x).item())
    net[1] = nn.ReLU()
    results.append(compiled(x).item())
    assert results == pytest.approx([1, -0.2, -1, 0])
    compiled.note = 3
    assert net.note == 3


def test_random_numbers_are_drawn_at_each_call():
    noisy = torch.compile(lambda x: x + torch.rand(3))
    first, second = noisy(torch.zeros(3)), noisy(torch.zeros(3))
    assert not torch.equal(first, second)


def test_a_function_is_left_out_of_compilation():
    @torch.compiler.disable(reason="prints")
    def plain(x):
        assert not torch.compiler.is_compiling()
        return 2 * x

    def function(x):
        return plain(x) + 1

    compiled = torch.compile(function)
    with pytest.warns(UserWarning, match=r"plain is left out .* \(prints\)"):
        assert compiled(torch.ones(2)).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="plain is left out"):
        torch.compile(function, fullgraph=True)(torch.ones(2))
    assert torch.compile(plain) is plain
    assert plain(torch.ones(1)).item() == 2
    assert torch.compile(lambda x: x + torch.compiler.is_compiling())(torch.ones(1)).item() == 2
    with pytest.raises(TypeError, match="forward"):
        torch.compiler.disable(nn.Linear(1, 1))


STATE = {"n": 1}
NUMBERS = np.zeros(2)


def _prints(x, net, seen):
    print("called")
    return x


def _appends(x, net, seen):
    seen.append(1)
    return x + len(seen)


def _counts(x, net, seen):
    STATE["n"] += 1
    return x * STATE["n"]


def _declares(x, net, seen):
    global SCALE
    SCALE += 1
    return x * SCALE


def _sets_a_number(x, net, seen):
    net.count = getattr(net, "count", 1) + 1
    return x * net.count


def _changes_the_mode(x, net, seen):
    net.eval()
    return net(x)


def _writes_an_argument(x, net, seen):
    x += 1
    return x * 2


def _deletes(x, net, seen):
    if seen:
        del seen[0]
    return x * len(seen)


def _writes_an_array(x, net, seen):
    NUMBERS[0] += 1
    return x * NUMBERS[0]


def _grows_by_tensors(x, net, seen):
    seen += [x]
    return seen[-1] + len(seen)


@pytest.mark.parametrize(
    "function",
    [_prints, _appends, _counts, _declares, _sets_a_number, _changes_the_mode, _writes_an_argument,
     _writes_an_array, _grows_by_tensors, _deletes],
)  # fmt: skip
def test_what_a_function_does_besides_is_done_at_each_call(function, capsys, monkeypatch):
    def run(wrap):
        monkeypatch.setitem(globals(), "SCALE", 2.0)
        monkeypatch.setitem(STATE, "n", 1)
        NUMBERS[0] = 0
        net, seen = nn.Dropout(0.99), [0.0]
        called = wrap(lambda x: function(x, net, seen))
        x = torch.ones(2)
        results = [called(x).tolist() for _ in range(3)]
        return results, x.tolist(), len(seen), net.training, capsys.readouterr().out

    with pytest.warns(UserWarning, match="runs as it is"):
        compiled = run(torch.compile)
    assert compiled == run(lambda f: f)


def test_tensors_in_attributes_are_results():
    class Slots:
        __slots__ = ("last",)

    class Memory:
        last = torch.zeros(1)

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))
            self.register_buffer("mean", torch.zeros(1))
            self.state, self.pair = 0, None

        def forward(self, x):
            if self.pair is None:
                self.pair = (torch.zeros(1), torch.zeros(1))
            self.mean = 0.5 * self.mean + x.detach()
            self.state = (self.weight * x + self.pair[0]).sin()
            self.pair = (self.state, self.pair[1] + x)
            memory.last = self.state * 2
            slots.last = self.state * 3
            count(x)
            STATE["x"] = x + self.pair[1]
            return self.state

    def count(x):
        nonlocal total
        total = total + x

    def run(wrap):
        nonlocal total
        cell, total = Cell(), torch.zeros(1)
        called = wrap(cell)
        results = [called(torch.ones(1) * k).item() for k in range(4)]
        (results[-1] * cell.state + memory.last).sum().backward()
        names = [type(v) is torch.Tensor for v in (cell.state, cell.mean, memory.last, STATE["x"])]
        return [
            *results,
            total.item(),
            slots.last.item(),
            cell.mean.item(),
            cell.weight.grad.item(),
            STATE.pop("x").item(),
        ], names

    memory, slots, total = Memory(), Slots(), torch.zeros(1)
    slots.last = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled, kinds = run(torch.compile)
    assert compiled == pytest.approx(run(lambda f: f)[0], rel=1e-5)
    assert all(kinds)


def test_replaced_tensors_need_no_other_program(monkeypatch):
    programs, make = [], Specialisation.__init__
    monkeypatch.setattr(
        Specialisation, "__init__", lambda self, *args: programs.append(1) or make(self, *args)
    )
    state = {"total": torch.zeros(1)}

    @torch.compile
    def add(x):
        state["total"] = state["total"] + x

    for _ in range(4):
        add(torch.ones(1))
    assert (state["total"].item(), len(programs)) == (4, 1)


def test_a_step_with_its_optimizer_follows_the_schedule():
    def run(wrap):
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.Adam([w], lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(x):
            optimizer.zero_grad()
            loss = (w * x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        called, losses = wrap(step), []
        for k in range(3):
            losses.append(called(torch.ones(2) * (1 + k)).item())
            schedule.step()
        return losses, w.tolist()

    losses, w = run(lambda f: torch.compile(f, fullgraph=True))
    expected, v = run(lambda f: f)
    assert losses == pytest.approx(expected)
    assert w == pytest.approx(v)


def test_modules_and_optimizers_may_be_arguments():
    @torch.compile(fullgraph=True)
    def step(net, optimizer, x):
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    for k in range(2):
        net = nn.Linear(1, 1, bias=False)
        nn.init.constant_(net.weight, k)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
        step(net, optimizer, torch.ones(1, 1))
        step(net, optimizer, torch.ones(1, 1))
        assert net.weight.item() == k - 1


def test_numbers_flags_and_objects_are_values_of_programs():
    class Scaled:
        scale = 2.0

        @torch.compile(fullgraph=True)
        def __call__(self, x, n=1, *, power=False):
            for _ in range(n):
                x = x * self.scale
            return x**2 if power else x

    scaled, x = Scaled(), torch.arange(2)
    assert scaled(x).dtype is torch.float32
    assert [scaled(x, n)[1].item() for n in (1, 3)] == [2, 8]
    assert scaled(x, 2, power=True)[1].item() == 16
    scaled.scale = 3
    assert scaled(x).tolist() == [0, 3]
    assert scaled(x).dtype is torch.int64
    times = torch.compile(lambda x, lr: x - lr * x)
    assert [times(torch.ones(1), k).item() for k in range(12)] == [1 - k for k in range(12)]


def test_lengths_are_numbers_to_compute_with():
    function = torch.compile(
        lambda x: (x.view(-1) * x.size(0) + len(x), x.shape, x.numel(), x.dtype), fullgraph=True
    )
    for n in (1, 2, 5):
        values, shape, count, dtype = function(torch.ones(n, 2))
        assert values.tolist() == [2 * n] * 2 * n
        assert (shape, count, dtype) == (torch.Size([n, 2]), 2 * n, torch.float32)


def test_hooks_and_errors_are_the_functions_own():
    net, seen = nn.Linear(1, 1), []
    compiled = torch.compile(net)
    compiled(torch.ones(1, 1))
    handle = net.register_forward_hook(lambda *_: seen.append(1))
    with pytest.warns(UserWarning, match="append"):
        compiled(torch.ones(1, 1))
    compiled(torch.ones(1, 1))
    handle.remove()
    assert len(seen) == 2

    @torch.compile(fullgraph=True)
    def failing(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        failing(torch.ones(1))


@pytest.mark.parametrize("make", [
    lambda x: torch.zeros(3), lambda x: torch.zeros_like(x), lambda x: x.new_zeros(3),
    lambda x: torch.full((3,), 0.0), lambda x: torch.tensor([0.0] * 3),
    lambda x: torch.from_numpy(np.zeros(3, np.float32)), lambda x: torch.arange(3.0) * 0,
])  # fmt: skip
def test_what_a_call_makes_is_made_in_each_call(make):
    """Writes to a Tensor that a function makes do not add up, and their gradients arrive."""
    w = torch.tensor(2.0, requires_grad=True)

    def function(x):
        out = make(x)
        out[:2] = x[:2] * w
        out += x
        return out

    compiled = torch.compile(function, fullgraph=True)
    for value in (1.0, 2.0):
        w.grad = None
        result = compiled(torch.full((3,), value))
        result.sum().backward()
        assert result.tolist() == [3 * value, 3 * value, value]
        assert w.grad.item() == 2 * value
