"""Reductions of NaN, infinities and signed zeros: a check of ``ranks.py``."""

import functools
import hashlib
import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad import distributed as dist, nn
from numgrad.distributed import ReduceOp, means

NAN = np.array([0x7FF8000000000123, 0xFFF8000000000000], np.uint64).view(np.float64).tolist()
REAL = [*NAN, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0]
COMPLEX = [complex(a, b) for a, b in itertools.product([NAN[1], np.inf, -0.0, 0.0, 3.0], repeat=2)]
WHOLE = [0, 1, 5, 100]
COUNT = 4000


def terms(dtype, size):
    """One row a rank: all tuples of special values, or some of them where they are many."""
    if dtype.kind in "fc":
        values = np.array(REAL if dtype.kind == "f" else COMPLEX, dtype)
    else:
        values = np.array(WHOLE).astype(dtype)
    if len(values) ** size <= COUNT:
        places = np.array(list(itertools.product(range(len(values)), repeat=size)))
    else:
        places = np.random.default_rng(0).integers(0, len(values), (COUNT, size))
    return np.ascontiguousarray(values[places.T])


def extreme(numbers, largest):
    """The largest or smallest of Python floats: NaN if there is one, and -0 is below 0."""
    if any(x != x for x in numbers):
        return np.nan
    return (max if largest else min)(numbers, key=lambda x: (x, np.copysign(1.0, x)))


def expected(op, rows):
    """The reduction of one row a rank, by NumPy and Python."""
    kind, size = rows.dtype.kind, len(rows)
    with np.errstate(all="ignore"):
        if op in (ReduceOp.MIN, ReduceOp.MAX) and kind == "f":
            found = [extreme(column, op is ReduceOp.MAX) for column in rows.T.tolist()]
            return np.array(found, rows.dtype)
        if op is ReduceOp.AVG:
            total = functools.reduce(np.add, rows)
            parts = total.view(total.real.dtype)
            return (parts / parts.dtype.type(size)).view(rows.dtype)
        function = {
            ReduceOp.SUM: np.logical_or if kind == "b" else np.add,
            ReduceOp.PRODUCT: np.multiply,
            ReduceOp.MIN: np.minimum,
            ReduceOp.MAX: np.maximum,
            ReduceOp.BAND: np.bitwise_and,
            ReduceOp.BOR: np.bitwise_or,
            ReduceOp.BXOR: np.bitwise_xor,
        }[op]
        return functools.reduce(function, rows)


def assert_same(found, wanted):
    """Equal numbers, NaN where NaN is, zeros of the same sign."""
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    if found.dtype.kind in "fc":
        a, b = (np.ascontiguousarray(x).view(x.real.dtype) for x in (found, wanted))
        zeros = a == 0
        np.testing.assert_array_equal(np.signbit(a[zeros]), np.signbit(b[zeros]))


def equal_bits(arrays, group):
    """All ranks of the group have the same bits."""
    mine = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).digest()
    every = [None] * dist.get_world_size(group)
    dist.all_gather_object(every, mine, group)
    assert len(set(every)) == 1


def special_values():
    """Every reduction of every dtype, in groups of 2 ranks to all."""
    world = dist.get_world_size()
    for size in range(2, world + 1):
        group = dist.new_group(range(size))
        if dist.get_rank() < size:
            for code in "?bhilBHILfdFD":
                reductions(np.dtype(code), group)
            gradients(group)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(means, "_shared_memory", lambda *_: None)
                gradients(group)


def reductions(dtype, group):
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    rows = terms(dtype, size)
    rows = np.ascontiguousarray(rows[:, : rows.shape[1] // size * size])
    seen = []
    for op in ReduceOp:
        try:
            dist.all_reduce(np.zeros(1, dtype), op, group)
        except ng.NumgradTypeError:
            continue
        if dtype.kind == "c" and op is ReduceOp.PRODUCT and size > 3:
            # NaN and zeros of a product of four are by how it is put together: (ab)(cd), ((ab)c)d
            seen.append(rows[rank].copy())
            dist.all_reduce(seen[-1], op, group)
            continue
        wanted = expected(op, rows)
        for part in (slice(None), slice(3, 40)):  # MPIs have algorithms by size
            given = rows[rank, part].copy()
            dist.all_reduce(given, op, group)
            assert_same(given, wanted[part])
            seen.append(given)
        given = rows[rank].copy()
        dist.reduce(given, size - 1, op, group)
        if rank == size - 1:
            assert_same(given, wanted)
            np.testing.assert_array_equal(given.view(np.uint8), seen[-2].view(np.uint8))
        else:
            np.testing.assert_array_equal(given.view(np.uint8), rows[rank].view(np.uint8))
        parts = [np.zeros(rows.shape[1] // size, dtype) for _ in range(2)]
        given = rows[rank].copy()
        dist.reduce_scatter_tensor(parts[0], given, op, group)
        dist.reduce_scatter(parts[1], np.split(given, size), op, group)
        np.testing.assert_array_equal(given.view(np.uint8), rows[rank].view(np.uint8))
        for part in parts:
            assert_same(part, np.split(wanted, size)[rank])
            same = np.split(seen[-2], size)[rank]
            np.testing.assert_array_equal(part.view(np.uint8), same.view(np.uint8))
    equal_bits(seen, group)


class Weighted(nn.Module):
    """Its gradients are what is given."""

    def __init__(self, count):
        super().__init__()
        self.real = nn.Parameter(ng.zeros(count))
        self.short = nn.Parameter(ng.zeros(count, dtype=ng.float32))

    def forward(self, real, short):
        return (self.real * real).sum() + (self.short * short).sum()


def gradients(group):
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    rows = [terms(np.dtype(code), size) for code in "df"]
    model = Weighted(rows[0].shape[1])
    ddp = nn.parallel.DistributedDataParallel(model, process_group=group)
    with np.errstate(all="ignore"):
        ddp(*(ng.tensor(row[rank]) for row in rows)).backward()
    found = [p.grad.numpy() for p in model.parameters()]
    for mean, row in zip(found, rows, strict=True):
        np.testing.assert_array_equal(mean, expected(ReduceOp.AVG, row))
    equal_bits(found, group)
