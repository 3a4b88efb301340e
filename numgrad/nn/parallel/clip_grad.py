"""Clipping by a norm over ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from numgrad.distributed.collectives import all_reduce
from numgrad.distributed.group import Group
from numgrad.distributed.reductions import ReduceOp
from numgrad.errors import NumgradRuntimeError
from numgrad.nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm
from numgrad.tensors.tensor import Tensor


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    process_group: Group = None,
) -> Tensor:
    """Scale gradients in place so that their norm, taken over all ranks together, is limited.

    This is for parameters of which each rank has its own. Gradients that are equal on all ranks,
    such as those of ``DistributedDataParallel``, are clipped by ``nn.utils.clip_grad_norm_``.

    Parameters
    ----------
    parameters, max_norm, norm_type, error_if_nonfinite
        As for ``nn.utils.clip_grad_norm_``.
    process_group
        By default all ranks.

    Returns
    -------
    Tensor
        The norm before clipping, 0-d and float64, equal on all ranks.

    Raises
    ------
    NumgradRuntimeError
        With ``error_if_nonfinite``, on all ranks.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.init_process_group()
    >>> w = ng.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> ng.nn.parallel.clip_grad_norm_([w], max_norm=1.0)
    tensor(5.)
    >>> ng.distributed.destroy_process_group()
    """
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = [t.grad for t in tensors if t.grad is not None]
    own = float(get_total_norm(grads, norm_type).item())
    order = float(norm_type)
    scale = np.array(own)
    all_reduce(scale, ReduceOp.MIN if order == -math.inf else ReduceOp.MAX, process_group)
    total = float(scale)
    if math.isfinite(order) and math.isfinite(total) and total > 0:
        # norms of ranks by the largest, whose powers neither overflow nor vanish
        share = np.array(own if order == 0 else (own / total) ** order)
        all_reduce(share, ReduceOp.SUM, process_group)
        total = float(share) if order == 0 else total * float(share) ** (1 / order)
    if error_if_nonfinite and not math.isfinite(total):
        raise NumgradRuntimeError(
            f"clip_grad_norm_: the norm of order {order} over all ranks is {total}; find out where "
            "gradients stop to be finite (ng.autograd.detect_anomaly), or pass "
            "error_if_nonfinite=False"
        )
    clip_grads_with_norm_(tensors, max_norm, total)
    return Tensor(np.array(total))
