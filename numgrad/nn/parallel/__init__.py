"""Models on several processes; ``ng.distributed`` connects these.

>>> import numgrad as ng
>>> ng.distributed.init_process_group()
>>> model = ng.nn.parallel.DistributedDataParallel(ng.nn.Linear(2, 1))
>>> ng.distributed.destroy_process_group()
"""

from numgrad.nn.parallel.distributed import DistributedDataParallel, clip_grad_norm_

__all__ = ["DistributedDataParallel", "clip_grad_norm_"]


def __dir__() -> list[str]:
    return __all__
