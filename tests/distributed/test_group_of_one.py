"""A process by itself runs the same programs; what needs no second rank is checked here."""

import numpy as np
import pytest

import numgrad as ng
from numgrad import distributed as dist
from numgrad.distributed import ReduceOp
from numgrad.nn.parallel.reducer import arranged


@pytest.fixture
def alone():
    dist.init_process_group()
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_collectives_of_one(alone):
    x = np.arange(6.0).reshape(2, 3).T
    y, out, parts = ng.tensor(x), ng.zeros((3, 2)), [ng.zeros((3, 2))]
    for op in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.MAX):
        assert dist.all_reduce(y, op, async_op=True).wait()
    dist.broadcast(y, 0)
    dist.reduce(y, 0)
    dist.all_gather(parts, y)
    np.testing.assert_array_equal(parts[0].numpy(), x)
    dist.reduce_scatter(out, [y])
    np.testing.assert_array_equal(out.numpy(), x)
    for call in (dist.gather, dist.scatter):
        target = ng.zeros((3, 2))
        call(*((y, [target]) if call is dist.gather else (target, [y])))
        np.testing.assert_array_equal(target.numpy(), x)
    for call in (dist.all_to_all_single, lambda a, b: dist.all_to_all([a], [b])):
        target = ng.zeros((3, 2))
        call(target, y)
        np.testing.assert_array_equal(target.numpy(), x)
    for call in (dist.all_gather_object, lambda a, b: dist.gather_object(b, a)):
        found = [None]
        call(found, {"a": 1})
        assert found == [{"a": 1}]
    dist.scatter_object_list(found, ["b"])
    assert found == ["b"]
    dist.monitored_barrier()
    assert dist.get_process_group_ranks(dist.group.WORLD) == [0]
    dist.barrier()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "mpi")
    for call in (dist.send, dist.recv):
        with pytest.raises(ng.NumgradValueError):
            call(y, 0)
    with pytest.raises(ng.NumgradValueError, match="no other rank"):
        dist.recv(y)


def test_profiles_show_collectives_with_their_bytes(alone):
    with ng.profiler.profile() as p:
        dist.all_reduce(ng.zeros(5))
        dist.all_gather([np.zeros(2)], np.ones(2))
        dist.barrier()
    found = [(e.name, e.kind, e.bytes) for e in p.events() if e.kind == "collective"]
    assert found == [
        ("all_reduce(sum) of float64 (5,)", "collective", 80),
        ("all_gather of float64 (2,)", "collective", 32),
        ("barrier", "collective", 0),
    ]
    assert "test_group_of_one" in p.events()[0].line


def test_nan_and_zeros_of_one(alone):
    """As of more ranks: each NaN is the same."""
    odd = np.array([0x7FF8000000000123, 0xFFF8000000000000, 0x8000000000000000], np.uint64)
    for op in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX):
        x = odd.view(np.float64).copy()
        dist.all_reduce(x, op)
        assert x.tobytes() == np.array([np.nan, np.nan, -0.0]).tobytes()


def test_names_and_options_of_pytorch(alone):
    for name in ("TCPStore", "launch", "new_subgroups", "is_nccl_available", "reduce_op"):
        with pytest.raises(AttributeError, match=f"{name}'?: "):
            getattr(dist, name)
    assert dist.is_available()
    assert repr(dist.GroupMember.NON_GROUP_MEMBER) == "GroupMember.NON_GROUP_MEMBER"
    model = ng.nn.Linear(1, 1)
    ddp = ng.nn.parallel.DistributedDataParallel
    assert ddp(model, device_ids=None, output_device=None, bucket_cap_mb=None).module is model
    with pytest.raises(ng.NumgradValueError, match="device_ids is None here"):
        ddp(model, device_ids=[0])
    with pytest.raises(ng.NumgradValueError, match="init_sync"):
        ddp(model, init_sync=False)
    with pytest.raises(ng.NumgradValueError, match="device_ids"):
        dist.barrier(device_ids=[1])
    with pytest.raises(ng.NumgradValueError, match="backend"):
        dist.new_group([0], backend="gloo")
    with pytest.raises(ng.NumgradTypeError, match="P2POp"):
        dist.batch_isend_irecv([dist.isend])
    dist.destroy_process_group()
    with pytest.raises(ng.NumgradValueError, match="init_method is None"):
        dist.init_process_group("mpi", "tcp://localhost:1234")
    dist.init_process_group("mpi", init_method="env://", world_size=1, rank=0, device_id=None)


def test_without_a_group():
    for call in (dist.get_rank, dist.barrier, lambda: dist.all_reduce(ng.ones(2))):
        with pytest.raises(ng.NumgradRuntimeError, match="init_process_group"):
            call()
    with pytest.raises(ng.NumgradValueError, match="'mpi'"):
        dist.init_process_group("gloo")
    with pytest.raises(ng.NumgradValueError, match="world_size=3"):
        dist.init_process_group(world_size=3)
    with pytest.raises(ng.NumgradValueError, match="timeout"):
        dist.init_process_group(timeout=0)
    assert not dist.is_initialized()


def test_groups_end(alone):
    group = dist.new_group([0])
    dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group()
    with pytest.raises(ng.NumgradRuntimeError, match="was destroyed"):
        dist.barrier(group)
    with pytest.raises(ng.NumgradTypeError, match="new_group"):
        dist.barrier("all")
    with pytest.raises(ng.NumgradValueError, match="at least one"):
        dist.new_group([])


def test_model_and_optimizer_of_one(alone):
    results = []
    for wrapped in (False, True):
        ng.random.manual_seed(0)
        model = ng.nn.Linear(3, 2)
        called, optimizer = model, ng.optim.Adam(model.parameters(), lr=0.1)
        if wrapped:
            called = ng.nn.parallel.DistributedDataParallel(model)
            optimizer = ng.optim.ZeroRedundancyOptimizer(
                [{"params": [p]} for p in model.parameters()], ng.optim.Adam, lr=0.1
            )
            with called.join(), called.no_sync():
                called(ng.ones((1, 3))).sum().backward()
        for _ in range(3):
            optimizer.zero_grad()
            (called(ng.ones((4, 3))) ** 2).sum().backward()
            optimizer.step()
        results.append([p.detach().numpy() for p in model.parameters()])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    assert set(called.state_dict()) == {"module.weight", "module.bias"}
    assert len(optimizer.state_dict()["state"]) == 2


def test_bad_arguments(alone):
    ddp, zero = ng.nn.parallel.DistributedDataParallel, ng.optim.ZeroRedundancyOptimizer
    with pytest.raises(ng.NumgradTypeError, match="Module"):
        ddp(3)  # pyright: ignore
    with pytest.raises(ng.NumgradValueError, match="no parameter"):
        ddp(ng.nn.ReLU())
    with pytest.raises(ng.NumgradValueError, match="bucket_cap_mb"):
        ddp(ng.nn.Linear(1, 1), bucket_cap_mb=0)
    with pytest.raises(ng.NumgradTypeError, match="optimizer_class"):
        zero([ng.ones(1, requires_grad=True)], "Adam")  # pyright: ignore
    with pytest.raises(ng.NumgradTypeError, match="LBFGS"):
        zero([ng.ones(1, requires_grad=True)], ng.optim.LBFGS)
    with pytest.raises(ng.NumgradValueError, match="lr"):
        zero([ng.ones(1, requires_grad=True)], ng.optim.Adam, lr=-1.0)


def test_buckets_hold_one_dtype_and_at_most_their_size():
    dtypes = [np.float32, np.float64]
    params = [ng.zeros(100 * (k + 1), dtype=dtypes[k % 3 == 0]) for k in range(20)]
    buckets = arranged(params, 5000)
    assert sorted(k for bucket in buckets for k in bucket) == list(range(20))
    for bucket in buckets:
        assert bucket == sorted(bucket, reverse=True)
        assert len({params[k].dtype for k in bucket}) == 1
        assert len(bucket) == 1 or sum(params[k].nbytes for k in bucket) <= 5000


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 9])
def test_samplers_of_ranks_share_all_samples(count, drop_last):
    samplers = [
        ng.data.DistributedSampler(range(count), 3, rank, seed=5, drop_last=drop_last)
        for rank in range(3)
    ]
    orders = []
    for epoch in (0, 1, 0):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        parts = [list(sampler) for sampler in samplers]
        assert {len(part) for part in parts} == {len(samplers[0])}
        every = [number for row in zip(*parts, strict=True) for number in row]
        assert drop_last or set(every) == set(range(count))
        assert not drop_last or len(set(every)) == len(every) == count // 3 * 3
        orders.append(every)
    assert orders[0] == orders[2]
    assert count < 7 or orders[0] != orders[1]


def test_sampler_wants_its_place():
    with pytest.raises(ng.NumgradRuntimeError, match="init_process_group"):
        ng.data.DistributedSampler(range(3))
    with pytest.raises(ng.NumgradValueError, match="below num_replicas"):
        ng.data.DistributedSampler(range(3), 2, 2)
    with pytest.raises(ng.NumgradTypeError, match="shuffle"):
        ng.data.DistributedSampler(range(3), 2, 1, shuffle=1)  # pyright: ignore


def test_shared_batches_of_one_are_plain_batches(alone):
    x = ng.tensor(np.random.default_rng(0).normal(size=(5, 3)), requires_grad=True)
    model = ng.nn.Sequential(ng.nn.BatchNorm1d(3), ng.nn.Sequential(ng.nn.BatchNorm1d(3)))
    expected = model(x)
    before = dict(model.named_parameters())
    ng.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert {type(m).__name__ for m in model.modules()} == {"Sequential", "SyncBatchNorm"}
    assert all(p is before[name] for name, p in model.named_parameters())
    assert model[0].num_batches_tracked == 1
    np.testing.assert_array_equal(model(x).detach().numpy(), expected.detach().numpy())
    with pytest.raises(ng.NumgradValueError, match="channels"):
        ng.nn.SyncBatchNorm(2)(x)
    with pytest.raises(ng.NumgradTypeError, match="Module"):
        ng.nn.SyncBatchNorm.convert_sync_batchnorm(3)
