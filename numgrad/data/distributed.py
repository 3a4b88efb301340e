"""``DistributedSampler``: each rank goes through its own part of a dataset."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np

from numgrad.data.sampler import Ordered, check_number
from numgrad.distributed.group import get_rank, get_world_size
from numgrad.errors import NumgradTypeError, NumgradValueError


class DistributedSampler(Ordered):
    """Every so many-th sample, so that all ranks together have all and each has as many as another.

    Parameters
    ----------
    dataset
        Anything with a length.
    num_replicas, rank
        The number of parts, and which of them comes here; by default those of
        ``ng.distributed``.
    shuffle
        Draw a new random order for each epoch, the same one on all ranks.
    seed
        Where orders begin; the same on all ranks.
    drop_last
        Leave out what would make parts unequal; else the first samples come again.

    Raises
    ------
    NumgradRuntimeError
        If a default is asked for before ``ng.distributed.init_process_group``.
    NumgradTypeError, NumgradValueError
        If a number is none, or out of its range.

    Notes
    -----
    The order depends on ``seed`` and the epoch only: call ``set_epoch`` before each. Position ``i``
    of the order goes to rank ``i % num_replicas``.

    Examples
    --------
    >>> import numgrad as ng
    >>> samplers = [ng.data.DistributedSampler("abcde", 2, rank, shuffle=False) for rank in (0, 1)]
    >>> [list(sampler) for sampler in samplers]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        name = "DistributedSampler"
        replicas: Any = get_world_size() if num_replicas is None else num_replicas
        number: Any = get_rank() if rank is None else rank
        check_number(name, "num_replicas", replicas, 1)
        check_number(name, "rank", number, 0)
        check_number(name, "seed", seed, 0)
        for option, value in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not isinstance(value, bool):
                raise NumgradTypeError(f"{name}: {option} is True or False, got {value!r}")
        if number >= replicas:
            raise NumgradValueError(
                f"{name}: rank is below num_replicas, got rank {number} of {replicas}"
            )
        self.dataset, self.num_replicas, self.rank = dataset, replicas, number
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch begins, from which its random order follows.

        Raises
        ------
        NumgradTypeError, NumgradValueError
            If it is no integer from 0.
        """
        check_number("set_epoch", "epoch", epoch, 0)
        self.epoch = epoch

    @property
    def num_samples(self) -> int:
        """How many samples come on each rank."""
        count = len(self.dataset)
        return count // self.num_replicas if self.drop_last else -(-count // self.num_replicas)

    def order(self) -> np.ndarray:
        """Numbers of samples of this rank."""
        count, wanted = len(self.dataset), self.num_samples * self.num_replicas
        every = np.arange(count)
        if self.shuffle:
            every = np.random.default_rng([self.seed, self.epoch]).permutation(count)
        return np.resize(every, wanted)[self.rank :: self.num_replicas] if wanted else every[:0]

    def __len__(self) -> int:
        return self.num_samples
