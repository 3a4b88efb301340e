"""What several ranks check together: started by ``test_ranks``, prints a line for each check."""

import copy
import functools
import hashlib
import pickle
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from special_values import special_values

import numgrad as ng
from numgrad import distributed as dist, nn
from numgrad.distributed import ReduceOp, means
from numgrad.distributed.group import group_of

dist.init_process_group(timeout=120)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
DDP = nn.parallel.DistributedDataParallel
FOLDER = Path(sys.argv[1])


def same_everywhere(tensors):
    """All ranks have the same bits."""
    found = hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in tensors)).hexdigest()
    every = [None] * SIZE
    dist.all_gather_object(every, found)
    assert len(set(every)) == 1


def raises(kind, match, call):
    with pytest.raises(kind, match=re.escape(match)):
        call()


def of_rank(rank, dtype, shape=(3, 2)):
    draw = np.random.default_rng(rank)
    values = draw.integers(0, 5, shape) + (
        1j * draw.integers(0, 5, shape) if dtype[0] == "c" else 0
    )
    return values.astype(dtype)


def reductions():
    for dtype in (
        "bool",
        "int8",
        "int64",
        "uint16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ):
        every = np.stack([of_rank(rank, dtype) for rank in range(SIZE)])
        ops = {ReduceOp.SUM: np.sum, ReduceOp.PRODUCT: np.prod}
        if dtype[0] != "c":
            ops |= {ReduceOp.MIN: np.min, ReduceOp.MAX: np.max}
        if dtype[0] in "fc":
            ops[ReduceOp.AVG] = np.mean
        if dtype[0] in "iu":
            ops |= {ReduceOp.BAND: np.bitwise_and.reduce, ReduceOp.BXOR: np.bitwise_xor.reduce}
        for op, reference in ops.items():
            expected = reference(every, axis=0).astype(dtype)
            x = ng.tensor(every[RANK])
            dist.all_reduce(x, op)
            np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
            wide = np.zeros((6, 4), dtype)
            view = wide[::2, 1:3]  # neither contiguous nor alone in its memory
            view[...] = every[RANK]
            dist.reduce(view, SIZE - 1, op)
            wanted = expected if RANK == SIZE - 1 else every[RANK]
            np.testing.assert_allclose(view, wanted, rtol=1e-6)
            assert not wide[1::2].any()
            assert not wide[:, 0].any()
    total, empty = ng.tensor(1.0), np.zeros((0, 3))
    dist.all_reduce(total)
    dist.all_reduce(empty)
    assert total.item() == SIZE


def collectives():
    mine = ng.tensor(of_rank(RANK, "float64"))
    every = [of_rank(rank, "float64") for rank in range(SIZE)]
    found = [ng.zeros((3, 2)) for _ in range(SIZE)]
    dist.all_gather(found, mine)
    np.testing.assert_array_equal(np.stack(found), every)
    whole = ng.zeros((SIZE * 3, 2))
    dist.all_gather_into_tensor(whole, mine)
    np.testing.assert_array_equal(whole.numpy(), np.concatenate(every))
    found = [np.zeros((3, 2)) for _ in range(SIZE)] if RANK == 1 else None
    dist.gather(mine, found, dst=1)
    if RANK == 1:
        np.testing.assert_array_equal(found, every)
    part = ng.zeros((3, 2))
    dist.scatter(part, every[::-1] if RANK == 0 else None, src=0)
    np.testing.assert_array_equal(part.numpy(), every[SIZE - 1 - RANK])
    dist.reduce_scatter(part, [mine * k for k in range(SIZE)])
    np.testing.assert_array_equal(part.numpy(), RANK * np.sum(every, axis=0))
    dist.reduce_scatter_tensor(part, np.concatenate([every[RANK]] * SIZE), ReduceOp.MAX)
    np.testing.assert_array_equal(part.numpy(), np.max(every, axis=0))
    source = ng.tensor(of_rank(RANK, "float32")).T
    dist.broadcast(source, SIZE - 1)
    np.testing.assert_array_equal(source.numpy(), of_rank(SIZE - 1, "float32").T)
    objects = [{"a": RANK}, "b"] if RANK == 1 else [None, None]
    dist.broadcast_object_list(objects, src=1)
    assert objects == [{"a": 1}, "b"]


def exchanges():
    """Something else for each rank: element (j, k) says from j to k."""
    table = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
    for dtype in (np.float64, np.bool_, np.complex64, np.int8):
        mine = table[RANK].astype(dtype)
        single = ng.tensor(np.zeros(SIZE, dtype))
        dist.all_to_all_single(single, ng.tensor(mine))
        np.testing.assert_array_equal(single.numpy(), table[:, RANK].astype(dtype))
        # k + 1 columns of rows to rank k, each of them a view in any order
        given = [np.full((RANK + 1, k + 1), table[RANK, k], dtype).T for k in range(SIZE)]
        found = [np.zeros((RANK + 1, k + 1), dtype) for k in range(SIZE)]
        assert dist.all_to_all(found, given, async_op=True).wait()
        for k, part in enumerate(found):
            assert (part == table[k, RANK].astype(dtype)).all()
    rows = np.repeat(table[RANK], np.arange(SIZE))[:, None] * np.ones(2)  # k rows to rank k
    found = np.zeros((SIZE * RANK, 2))
    dist.all_to_all_single(found, rows, [RANK] * SIZE, list(range(SIZE)))
    np.testing.assert_array_equal(found, np.repeat(table[:, RANK], RANK)[:, None] * np.ones(2))
    message = "rank 0 gives float64 (1,) to rank 1, which has a place for float64 (2,)"
    sizes = [1 + (RANK == 1 and k == 0) for k in range(SIZE)]
    lists = [np.zeros(n) for n in sizes], [np.zeros(1) for _ in sizes]
    raises(ng.NumgradRuntimeError, message, lambda: dist.all_to_all(*lists))
    message = f"rank {SIZE - 1} gives float32 (1,)"
    pair = np.zeros(SIZE), np.zeros(SIZE, np.float32 if RANK == SIZE - 1 else np.float64)
    raises(ng.NumgradRuntimeError, message, lambda: dist.all_to_all_single(*pair))
    ones = np.zeros(SIZE + 1)
    call = functools.partial(dist.all_to_all_single, ones, ones)
    raises(ng.NumgradValueError, "output_split_sizes", call)
    raises(ng.NumgradValueError, "split_sizes has a number", lambda: call([1] * SIZE, [1] * SIZE))


def objects():
    """Pickled objects of any length to one rank, from one rank, between two."""
    mine = {"rank": RANK, "text": "x" * 10**RANK}
    every = [{"rank": rank, "text": "x" * 10**rank} for rank in range(SIZE)]
    found = [None] * SIZE if RANK == 1 else None
    dist.gather_object(mine, found, dst=1)
    assert found == (every if RANK == 1 else None)
    place = [None, "kept"]
    dist.scatter_object_list(place, every if RANK == SIZE - 1 else None, src=SIZE - 1)
    assert place == [mine, "kept"]
    if RANK == 0:
        dist.send_object_list([every, ng.sin], 1)
    elif RANK == 1:
        found = [None, None]
        assert dist.recv_object_list(found) == 0
        assert found == [every, ng.sin]
    call = functools.partial(dist.gather_object, mine, None if RANK == 1 else [None])
    raises(ng.NumgradValueError, "object_gather_list", lambda: call(dst=1))
    assert dist.get_process_group_ranks() == list(range(SIZE))
    pair = dist.new_group([0, SIZE - 1])
    if RANK in (0, SIZE - 1):
        assert dist.get_process_group_ranks(pair) == [0, SIZE - 1]
        assert dist.get_group_rank(pair, SIZE - 1) == 1
        assert dist.get_global_rank(pair, 1) == SIZE - 1
        raises(ng.NumgradValueError, "no position 2", lambda: dist.get_global_rank(pair, 2))
    to, source = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    target = np.zeros(2)
    ops = [dist.P2POp(dist.isend, np.full(2, RANK), to), dist.P2POp(dist.irecv, target, source)]
    ops[0].tensor = ops[0].tensor.astype(float)
    assert all(work.wait() for work in dist.batch_isend_irecv(ops))
    assert target[0] == source
    for _ in range(2):
        dist.monitored_barrier()


def handles():
    first, second = ng.tensor([1.0 + RANK]), ng.tensor([2.0])
    works = [
        dist.all_reduce(first, async_op=True),
        dist.all_reduce(second, ReduceOp.AVG, async_op=True),
    ]
    assert works[1].wait()
    assert works[0].wait()
    assert works[0].is_completed()
    assert first.item() == SIZE * (SIZE + 1) / 2
    assert second.item() == 2.0
    # a write is one: what was saved for a backward has changed
    w = ng.tensor([3.0], requires_grad=True)
    y = (w * first).sum()
    dist.all_reduce(first)
    raises(ng.NumgradRuntimeError, "in-place", y.backward)


def messages():
    to, source = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    works = [dist.isend(ng.full(3, float(RANK + k)), to, tag=k) for k in (0, 1)]
    late, early = ng.zeros(3), ng.zeros(3)
    assert dist.recv(late, source, tag=1) == source
    assert dist.recv(early, tag=0) == source
    assert (late - early).tolist() == [1.0] * 3
    assert early[0].item() == source
    assert all(work.wait() for work in works)
    rows = np.arange(6.0)
    others = [
        np.float32, np.int64, np.complex128, np.bool_, (5,), (7,), (2, 3), (6, 1), (0,), (100_000,),
    ]  # fmt: skip
    for other in others:  # short ones and a long one, of which MPI waits for the receiver
        kind, shape = (np.float64, other) if isinstance(other, tuple) else (other, 6)
        for sent, target in ((rows, np.full(shape, 1, kind)), (np.full(shape, 1, kind), rows)):
            send, before = dist.isend(sent, to, tag=3), target.copy()
            work = dist.irecv(target, source, tag=3)
            said = f"is {sent.dtype} {sent.shape}; receive"
            raises(ng.NumgradValueError, said, work.wait)
            raises(ng.NumgradValueError, f"of {target.dtype} {target.shape}", work.is_completed)
            np.testing.assert_array_equal(target, before)
            send.wait()
    late, early = np.zeros(300_000), np.zeros(300_000)  # received in the order that they were sent
    receives = [dist.irecv(early, source), dist.irecv(late)]
    sends = [dist.isend(np.full(300_000, k), to) for k in (1.0, 2.0)]
    assert all(work.wait() for work in sends)  # all ranks send, and receive meanwhile
    assert receives[1].wait()
    assert receives[0].is_completed()
    assert (early[0], late[-1], receives[1].source_rank()) == (1.0, 2.0, source)
    raises(ng.NumgradValueError, "is this one", lambda: dist.send(late, RANK))


def groups():
    pair = dist.new_group([0, 1])
    x = ng.ones(2) * (RANK + 1)
    if RANK < 2:
        assert dist.get_world_size(pair) == 2
        dist.all_reduce(x, group=pair)
        assert x[0].item() == 3.0
        dist.destroy_process_group(pair)
    else:
        assert dist.get_rank(pair) == -1
        raises(ng.NumgradValueError, "not in the group", lambda: dist.all_reduce(x, group=pair))


def calls_with(x):
    """Every collective of one tensor of each rank."""
    every, last = [x] * SIZE, SIZE - 1
    whole = np.concatenate([x.reshape(-1)] * SIZE)
    return [
        lambda: dist.all_reduce(x), lambda: dist.reduce(x, last), lambda: dist.broadcast(x, 0),
        lambda: dist.all_gather(every, x), lambda: dist.all_gather_into_tensor(whole, x),
        lambda: dist.gather(x, every if last == RANK else None, last),
        lambda: dist.scatter(x, every if RANK == 0 else None),
        lambda: dist.reduce_scatter(x, every), lambda: dist.reduce_scatter_tensor(x, whole),
    ]  # fmt: skip


def disagreements():
    x = ng.ones(3 + (RANK == 1))
    raises(
        ng.NumgradRuntimeError,
        "rank 1: all_reduce(sum) of float64 (4,)",
        lambda: dist.all_reduce(x),
    )
    one = RANK == 1
    for x, said in (
        (np.zeros(2, np.float32 if one else np.float64), "float32 (2,)"),
        (np.zeros(2, np.int64 if one else np.uint64), "int64 (2,)"),
        (np.zeros((2, 1) if one else 2), "float64 (2, 1)"),
        (np.zeros((2, 3) if one else (3, 2)), "float64 (2, 3)"),
        (np.zeros(0 if one else 2), "float64 (0,)"),
    ):
        for call in calls_with(x):
            raises(ng.NumgradRuntimeError, f"of {said}", call)
    x = ng.ones(3, dtype=ng.float32 if RANK else ng.float64)
    raises(ng.NumgradRuntimeError, "of float64 (3,)", lambda: dist.broadcast(x, 0))
    call = dist.barrier if RANK else lambda: dist.all_reduce(x)
    raises(ng.NumgradRuntimeError, ": barrier", call)
    assert x.tolist() == [1.0] * 3
    models = [nn.Linear(2, 3 + RANK), nn.Linear(2, 2, bias=RANK == 0)]
    raises(ng.NumgradRuntimeError, "is parameter weight of float64 (4, 2)", lambda: DDP(models[0]))
    raises(ng.NumgradRuntimeError, "number 1 is not there", lambda: DDP(models[1]))
    params = [ng.ones(RANK + 1, requires_grad=True)]
    zero = ng.optim.ZeroRedundancyOptimizer
    raises(ng.NumgradRuntimeError, "different parameters", lambda: zero(params, ng.optim.SGD))
    dist.barrier()


class Branches(nn.Module):
    """Some parameters are used by some ranks, some by none; one is complex, one float32."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.parts = nn.ModuleList([nn.Linear(5, 1) for _ in range(SIZE)])
        self.nowhere = nn.Linear(2, 2)
        self.turn = nn.Parameter(ng.tensor([1 + 2j, 0.5j]))
        self.short = nn.Parameter(ng.ones(5, dtype=ng.float32))

    def forward(self, x, branch):
        turned = (self.turn * self.turn.conj()).real.sum() * self.turn.real.sum()
        return (self.parts[branch](self.first(x).tanh() * self.short).sum() * turned).sum()


def means_of_gradients():
    """By shared memory where that is there, and by messages."""
    means_of_branches()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(means, "_shared_memory", lambda *_: None)
        means_of_branches()


def means_in_memory():
    """Equal to a sum in the order of ranks bit by bit, whatever the sizes, pieces and orders."""
    means_of_lists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(means, "_PIECE", 1 << 16)
        means_of_lists()


def means_of_lists():
    group = group_of("test")
    sizes = [
        ((n, 0, 3, 40_000), np.dtype(d)) for n in (1, 70_001) for d in ("f4", "f8", "c8", "c16")
    ]
    sizes += [((0,), np.dtype("f8")), ((2, 1), np.dtype("f4"))]
    found = means.means_of(group, group.comm.Dup(), sizes)
    assert isinstance(found, means.MeansInMemory if sys.platform == "linux" else means.Means)
    for turn in range(4):
        reached = [[int((turn + k + j) % 4 > 0 and j % SIZE == RANK) for j in range(len(n))]
                   for k, (n, _) in enumerate(sizes)]  # fmt: skip
        divisor = SIZE + turn % 2
        found.begin(divisor, reached)
        every = [
            [[np.random.default_rng([turn, rank, k, j]).normal(size=m).astype(d)
              for j, m in enumerate(n)] for k, (n, d) in enumerate(sizes)]
            for rank in range(SIZE)
        ]  # fmt: skip
        mine = copy.deepcopy(every[RANK])
        places = [(k, j) for k, arrays in enumerate(mine) for j in range(len(arrays))]
        for k, j in np.random.default_rng([turn, RANK]).permutation(places):
            found.give(k, j, mine[k][j])
        while not found.done():
            pass
        for k, arrays in enumerate(mine):
            for j, mean in enumerate(arrays):
                total = functools.reduce(np.add, [e[k][j] for e in every])
                parts = total.view(total.real.dtype)
                expected = (parts / parts.dtype.type(divisor)).view(total.dtype)
                if (turn + k + j) % 4 == 0:
                    expected = every[RANK][k][j]
                np.testing.assert_array_equal(mean, expected)


def means_of_branches():
    ng.random.manual_seed(RANK)
    model = Branches()
    ddp = DDP(model, bucket_cap_mb=1e-4)
    same_everywhere(model.parameters())
    alone = [copy.deepcopy(model) for _ in range(SIZE)]
    data = np.random.default_rng(5).normal(size=(2, SIZE, 3, 4))
    with ddp.no_sync():
        ddp(ng.tensor(data[0, RANK]), RANK).backward()
    for rank, one in enumerate(alone):
        one(ng.tensor(data[0, rank]), rank).backward()
    for p, q in zip(model.parameters(), alone[RANK].parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None)
    ddp(ng.tensor(data[1, RANK]), RANK).backward()
    for rank, one in enumerate(alone):
        one(ng.tensor(data[1, rank]), rank).backward()
    named = [dict(one.named_parameters()) for one in alone]
    for name, p in model.named_parameters():
        grads = [one[name].grad for one in named]
        if name.startswith("nowhere"):
            assert p.grad is None
            continue
        expected = sum(0 if g is None else g.numpy() for g in grads) / SIZE
        np.testing.assert_allclose(
            p.grad.numpy(), expected, rtol=1e-6 if name == "short" else 1e-13
        )
        assert p.grad.dtype == p.dtype
    same_everywhere([p.grad for p in model.parameters() if p.grad is not None])
    before = ng.nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
    same_everywhere([before, *(p.grad for p in model.parameters() if p.grad is not None)])
    loss = ddp(ng.ones((1, 4)), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raises(ng.NumgradRuntimeError, "has a graph", lambda: loss.backward(create_graph=True))


class Fails(ng.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise LookupError("in a backward")


def copies_and_failures():
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    ddp = DDP(model, bucket_cap_mb=1e-5)
    x = ng.tensor(np.random.default_rng(RANK).normal(size=(3, 4)))
    alone, twin = copy.deepcopy(model), copy.deepcopy(ddp)
    for one in (alone, twin, ddp):
        (one(x) ** 2).sum().backward()
    grads = [one[0].weight.grad.numpy() for one in (model, twin.module, alone)]
    np.testing.assert_array_equal(grads[0], grads[1])
    assert not np.array_equal(grads[0], grads[2])
    ng.optim.swa_utils.AveragedModel(ddp).update_parameters(ddp)
    raises(ng.NumgradTypeError, "model.module", lambda: pickle.dumps(ddp))
    hidden = ddp.module[:2](x)
    raises(LookupError, "in a backward", lambda: model[2](Fails.apply(hidden)).sum().backward())
    raises(ng.NumgradRuntimeError, "gradients of 0.weight, 0.bias", lambda: ddp(x))
    for again in (False, True):  # retained: the mean of both
        loss = (ddp(x) ** 2).sum()
        ddp.zero_grad()
        for _ in range(1 + again):
            loss.backward(retain_graph=True)
        np.testing.assert_allclose(model[0].weight.grad.numpy(), grads[0] * (1 + again))


def gradients_in_place():
    """Gradients that share memory, lie in any order, or were given, are averaged as any other."""

    class Sums(nn.Module):
        def __init__(self):
            super().__init__()
            for name in "abcdef":
                setattr(self, name, nn.Parameter(ng.ones((30, 50))))
            self.empty, self.number = nn.Parameter(ng.ones((0, 3))), nn.Parameter(ng.tensor(2.0))

        def forward(self, x):
            both = (self.a + self.b) * x
            turned = self.c.T * x.T + ng.transpose(self.d * x)
            return (both.sum() + turned.sum() + self.e.sum() + (self.f * x).sum()) * self.number

    model = Sums()
    ddp, alone = DDP(model, bucket_cap_mb=0.02), [copy.deepcopy(model) for _ in range(SIZE)]
    data = np.random.default_rng(3).normal(size=(2, SIZE, 30, 50))
    pair = ng.zeros((2, 30, 50))
    model.e.grad, model.f.grad = pair[0], pair[1]  # views of one array
    for turn in range(2):
        loss = ddp(ng.tensor(data[turn, RANK]))
        if turn:
            ddp.zero_grad(set_to_none=False)
        loss.backward()
        for rank, one in enumerate(alone):
            one.zero_grad()
            one(ng.tensor(data[turn, rank])).backward()
        for name, p in model.named_parameters():
            grads = [dict(one.named_parameters())[name].grad for one in alone]
            if name == "empty":
                assert p.grad is None
                continue
            expected = sum(g.numpy() for g in grads) / SIZE
            np.testing.assert_allclose(p.grad.numpy(), expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(pair.numpy(), [model.e.grad.numpy(), model.f.grad.numpy()])
        same_everywhere([p.grad for p in model.parameters() if p.grad is not None])

    def change(p):
        p.grad.mul_(2.0)

    changes = model.d.register_post_accumulate_grad_hook(change)
    seen = "gradient of d was changed in place"
    raises(ng.NumgradRuntimeError, seen, lambda: ddp(ng.ones((30, 50))).backward())
    changes.remove()
    ddp(ng.ones((30, 50))).backward()


def norms_over_ranks():
    w = ng.tensor(np.arange(1.0, 4.0) + RANK, requires_grad=True)
    every = np.concatenate([np.arange(1.0, 4.0) + rank for rank in range(SIZE)])
    for order in (2.0, 1.0, 3.0, np.inf):
        w.grad = w.detach().clone()
        total = nn.parallel.clip_grad_norm_([w], 0.5, order)
        np.testing.assert_allclose(total.item(), np.linalg.norm(every, order), rtol=1e-14)
        np.testing.assert_allclose(w.grad.numpy(), w.detach().numpy() * 0.5 / (total.item() + 1e-6))


def network():
    ng.random.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


def training():
    """A thousand steps: equal bits on all ranks, with the state on one or divided."""
    rows, labels = np.random.default_rng(0).normal(size=(30, 6)), np.arange(30) % 3
    sampler = ng.data.DistributedSampler(rows, seed=4)
    loader = ng.data.DataLoader((rows, labels), batch_size=2, sampler=sampler, drop_last=True)
    plain, divided = network(), network()
    optimizers = [
        ng.optim.Adam(plain.parameters(), lr=1e-2),
        ng.optim.ZeroRedundancyOptimizer(divided.parameters(), ng.optim.Adam, lr=1e-2),
    ]
    models = [DDP(plain), DDP(divided)]
    steps = epoch = 0
    while steps < STEPS:
        sampler.set_epoch(epoch)
        for x, y in loader:
            for model, optimizer in zip(models, optimizers, strict=True):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
            same_everywhere([*plain.parameters(), *divided.parameters()])
            steps += 1
        epoch += 1
    for p, q in zip(plain.parameters(), divided.parameters(), strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())
    same_everywhere(next(iter(optimizers[0].state.values())).values())
    assert sum(len(s) > 0 for s in optimizers[1].state.values()) < len(list(plain.parameters()))
    return divided, optimizers


def checkpoints():
    """Written once; the state of all ranks, which loads anywhere."""
    model, (whole, divided) = training()
    raises(ng.NumgradRuntimeError, "consolidate_state_dict", divided.state_dict)
    divided.consolidate_state_dict(to=0)
    state = None
    if RANK == 0:
        state = {"model": model.state_dict(), "optimizer": divided.state_dict()}
        for key, value in whole.state_dict()["state"].items():
            for name, array in value.items():
                np.testing.assert_array_equal(state["optimizer"]["state"][key][name], array)
    path = FOLDER / "checkpoint.safetensors"
    dist.checkpoint.save(state, path)
    found = dist.checkpoint.load(path)
    model.load_state_dict(found["model"])
    divided.load_state_dict(found["optimizer"])
    assert len(divided.state) < len(found["optimizer"]["state"])
    divided.consolidate_state_dict(to=SIZE - 1)
    if RANK == SIZE - 1:
        ng.optim.Adam(network().parameters()).load_state_dict(divided.state_dict())
    kind = OSError if RANK == 0 else ng.NumgradRuntimeError
    raises(kind, "none", lambda: dist.checkpoint.save({}, FOLDER / "none" / "file"))


def groups_of_parameters():
    """Options of groups, schedules, groups that are added; fewer parameters than ranks."""
    results = []
    for zero in (False, True):
        params = [ng.full(k + 1, 1.0, requires_grad=True) for k in range(3)]
        groups = [{"params": params[:1], "lr": 0.5}, {"params": params[1:2]}]
        options = {"lr": 0.1, "momentum": 0.9}
        if zero:
            optimizer = ng.optim.ZeroRedundancyOptimizer(groups, ng.optim.SGD, **options)
        else:
            optimizer = ng.optim.SGD(groups, **options)
        schedule = ng.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        for step in range(4):
            if step == 2:
                optimizer.add_param_group({"params": params[2:]})
            optimizer.zero_grad()
            sum((p * p * p).sum() for p in params).backward()
            optimizer.step()
            schedule.step() if step < 2 else None
        results.append(np.concatenate([p.detach().numpy() for p in params]))
    np.testing.assert_array_equal(*results)


def uneven_data():
    for by_all in (True, False):
        model = network()
        ddp = DDP(model, bucket_cap_mb=1e-4)
        optimizer = ng.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.5)
        alone = network()
        draw = np.random.default_rng(1)
        batches = [[draw.normal(size=(4, 6)) for _ in range(2 + rank)] for rank in range(SIZE)]
        step = ng.optim.SGD(alone.parameters(), lr=0.1, momentum=0.5)
        with ddp.join(divide_by_initial_world_size=by_all, optimizers=[optimizer]):
            for x in batches[RANK]:
                optimizer.zero_grad()
                (ddp(ng.tensor(x)) ** 2).mean().backward()
                optimizer.step()
        for k in range(1 + SIZE):
            active = [own[k] for own in batches if k < len(own)]
            step.zero_grad()
            for x in active:
                loss = (alone(ng.tensor(x)) ** 2).mean()
                (loss / (SIZE if by_all else len(active))).backward()
            step.step()
        for p, q in zip(model.parameters(), alone.parameters(), strict=True):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-10)
        same_everywhere([*model.parameters(), *model.buffers()])
        same_everywhere([state["momentum_buffer"] for state in optimizer.state.values()])

    def strict():
        with ddp.join(throw_on_early_termination=True):
            for x in batches[RANK]:
                (ddp(ng.tensor(x)) ** 2).mean().backward()

    raises(ng.NumgradRuntimeError, "has no more data", strict)
    dist.barrier()


def uneven_data_of_divided_optimizers():
    """A rank that is done steps its share by what the others have: clipped gradients, schedules."""
    draw = np.random.default_rng(1)
    counts = [(2 + rank * 2) % 5 for rank in range(SIZE)]
    batches = [[draw.normal(size=(4, 6)) for _ in range(count)] for count in counts]
    model, alone = network(), network()
    ddp = DDP(model)

    def optimized(model, divided):
        optimizers = []
        for params in ([model[0].weight, model[0].bias], model[3].parameters()):
            if divided:
                kind = functools.partial(
                    ng.optim.ZeroRedundancyOptimizer, optimizer_class=ng.optim.Adam
                )
            else:
                kind = ng.optim.Adam
            optimizers.append(kind(params, lr=0.1, eps=0.1))
        decay = [ng.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in optimizers]
        return optimizers, decay

    optimizers, decay = optimized(ddp.module, True)
    with ddp.join(optimizers=optimizers):
        for k, x in enumerate(batches[RANK]):
            ddp.zero_grad()
            (ddp(ng.tensor(x)) ** 2).mean().backward()
            ng.nn.utils.clip_grad_norm_(ddp.parameters(), 0.1)
            optimizers[0].step()
            if k % 2 == 0:
                optimizers[1].step()
            for schedule in decay:
                schedule.step()
    plain, decays = optimized(alone, False)
    for k in range(max(counts)):
        alone.zero_grad()
        for own in batches:
            if k < len(own):
                ((alone(ng.tensor(own[k])) ** 2).mean() / SIZE).backward()
        ng.nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
        plain[0].step()
        if k % 2 == 0:
            plain[1].step()
        for schedule in decays:
            schedule.step()
    trained = zip(model.parameters(), alone.parameters(), strict=True)
    for p, q in trained:
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-9)
    same_everywhere(model.parameters())
    for one, whole in zip(optimizers, plain, strict=True):
        assert one.param_groups[0]["lr"] == whole.param_groups[0]["lr"]
        one.consolidate_state_dict()
        if RANK == 0:
            states = one.state_dict()["state"], whole.state_dict()["state"]
            for key, state in states[1].items():
                for name, value in state.items():
                    np.testing.assert_allclose(states[0][key][name], value, 1e-8, 1e-15)


def collectives_in_join():
    """Refused before anything is sent: whoever has joined would not take part."""
    pair = dist.new_group([0, 1])
    ddp, x = DDP(nn.Linear(2, 2)), ng.ones(2)
    divided = ng.optim.ZeroRedundancyOptimizer(ddp.parameters(), ng.optim.SGD)
    calls = [
        lambda: dist.all_reduce(x), dist.barrier, lambda: dist.broadcast_object_list([1]),
        lambda: dist.new_group([0]), divided.step, dist.destroy_process_group,
        lambda: dist.checkpoint.save({}, FOLDER / "none"),
        lambda: nn.parallel.clip_grad_norm_(ddp.parameters(), 1.0),
        lambda: DDP(nn.Linear(1, 1)), nn.SyncBatchNorm(2).train().__call__,
    ]  # fmt: skip
    calls[-1] = functools.partial(calls[-1], ng.ones((3, 2)))
    if RANK < 2:
        calls.append(lambda: dist.all_reduce(x, group=pair))
    with ddp.join():
        for _ in range(RANK):
            ddp(ng.ones((1, 2))).sum().backward()
        for call in calls:
            raises(ng.NumgradRuntimeError, "DistributedDataParallel.join", call)
    assert x.tolist() == [1.0, 1.0]
    if SIZE > 2 and RANK < 2:
        other = ng.optim.ZeroRedundancyOptimizer(ddp.parameters(), ng.optim.SGD, pair)
        raises(ng.NumgradValueError, "same process_group", ddp.join(optimizers=[other]).__enter__)
    dist.all_reduce(x)  # after the block as before it
    assert x[0].item() == SIZE


def shared_batches():
    """The rows of all ranks are normalized as one batch is by one process."""
    sizes = [3 + rank for rank in range(SIZE)]  # uneven parts
    places = np.cumsum([0, *sizes])
    mine = slice(places[RANK], places[RANK + 1])
    draw = np.random.default_rng(5)
    for shape, plain in (((), nn.BatchNorm1d), ((2, 3), nn.BatchNorm2d)):
        rows, factor = draw.normal(2.0, 3.0, (2, places[-1], 4, *shape))
        whole, shared = plain(4), nn.SyncBatchNorm(4)
        expected, x = ng.tensor(rows, requires_grad=True), ng.tensor(rows[mine], requires_grad=True)
        for layer in (whole, shared):
            with ng.no_grad():
                layer.weight.copy_(ng.tensor([1.0, -2.0, 0.5, 3.0]))
        (whole(expected).sin() * factor).sum().backward()
        y = shared(x)
        (y.sin() * factor[mine]).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), expected.grad.numpy()[mine], atol=1e-12)
        for name, buffer in shared.named_buffers():
            np.testing.assert_allclose(buffer, whole.get_buffer(name), rtol=1e-12)
        for name, parameter in shared.named_parameters():  # each rank's part of the gradient
            total = np.array(parameter.grad.numpy())
            dist.all_reduce(total)
            np.testing.assert_allclose(total, whole.get_parameter(name).grad, atol=1e-11)
        (first,) = ng.autograd.grad((shared(x).sin() * factor[mine]).sum(), x, create_graph=True)
        (second,) = ng.autograd.grad((first * first).sum(), x)
        total = (whole(expected).sin() * factor).sum()
        (first,) = ng.autograd.grad(total, expected, create_graph=True)
        (wanted,) = ng.autograd.grad((first * first).sum(), expected)
        np.testing.assert_allclose(second.numpy(), wanted.numpy()[mine], atol=1e-10)
        found, wanted = (
            layer.eval()(z).detach().numpy() for layer, z in ((shared, x), (whole, expected))
        )
        np.testing.assert_allclose(found, wanted[mine], rtol=1e-12)
    empty = ng.ones((0 if RANK else 2, 4))  # a rank without rows takes part
    assert nn.SyncBatchNorm(4)(empty).shape == empty.shape
    raises(ng.NumgradTraceError, "eval()", lambda: ng.jit(nn.SyncBatchNorm(4))(np.ones((2, 4))))
    one = ng.ones((0 if RANK else 1, 4))
    raises(ng.NumgradValueError, "one value", lambda: nn.SyncBatchNorm(4)(one))


def refusals():
    x = ng.ones(2, requires_grad=True)
    raises(ng.NumgradRuntimeError, "detach()", lambda: dist.all_reduce(x))
    raises(ng.NumgradRuntimeError, "detach()", lambda: dist.all_reduce(x * 2))
    raises(ng.NumgradTypeError, "list", lambda: dist.all_reduce([1.0]))
    raises(ng.NumgradTypeError, "MaskedArray", lambda: dist.all_reduce(np.ma.ones(2)))
    raises(ng.NumgradTypeError, "float16", lambda: dist.all_reduce(np.ones(2, np.float16)))
    raises(ng.NumgradTypeError, "ReduceOp", lambda: dist.all_reduce(np.ones(2), "sum"))
    raises(
        ng.NumgradTypeError,
        "no reduction min",
        lambda: dist.all_reduce(np.ones(2) + 0j, ReduceOp.MIN),
    )
    raises(ng.NumgradValueError, f"rank {SIZE} is not", lambda: dist.broadcast(np.ones(2), SIZE))
    raises(ng.NumgradTraceError, "ng.jit", lambda: ng.jit(lambda t: dist.all_reduce(t))(np.ones(2)))
    raises(ng.NumgradRuntimeError, "already", dist.init_process_group)
    x.detach()
    with ng.no_grad():
        dist.all_reduce(x)
    assert x[0].item() == SIZE


STEPS = int(sys.argv[2])
CHECKS = [
    reductions, special_values, collectives, exchanges, objects, handles, messages, groups,
    disagreements, means_of_gradients, means_in_memory, copies_and_failures, gradients_in_place,
    norms_over_ranks, checkpoints, groups_of_parameters, uneven_data,
    uneven_data_of_divided_optimizers, collectives_in_join, shared_batches, refusals,
]  # fmt: skip
for check in CHECKS:
    check()
    dist.barrier()
    if RANK == 0:
        print("checked", check.__name__, flush=True)
dist.destroy_process_group()
