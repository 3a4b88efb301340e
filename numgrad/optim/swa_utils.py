"""Averages of the weights that training goes through, which often predict better than the last.

References
----------
P. Izmailov, D. Podoprikhin, T. Garipov, D. Vetrov, A. G. Wilson, "Averaging Weights Leads to Wider
Optima and Better Generalization", 2018 (SWA, the plain mean); B. Polyak, A. Juditsky, "Acceleration
of Stochastic Approximation by Averaging", 1992.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.core.namespaces import absent as _absent
from numgrad.errors import NumgradAssertionError, NumgradValueError
from numgrad.nn.module.module import Module
from numgrad.nn.utils.clip_grad import update_many
from numgrad.optim.lr_scheduler.base import LRScheduler, check_optimizer, for_each_group
from numgrad.optim.optimizer import Optimizer
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
    "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip


__getattr__ = _absent(__name__, __all__, {})


def __dir__() -> list[str]:
    return __all__


AverageOne: TypeAlias = Callable[[Tensor, Tensor, Any], Any]
AverageMany: TypeAlias = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


# ------------------------------------------------------------------------------------- averages


def get_ema_avg_fn(decay: float = 0.999) -> AverageOne:
    """The exponential moving average, for ``AveragedModel(avg_fn=...)``.

    Returns a function of average, present value and the number of values so far (not used), that
    gives ``decay * average + (1 - decay) * present``.

    Raises
    ------
    NumgradValueError
        If ``decay`` is not from 0 to 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.optim.swa_utils.get_ema_avg_fn(0.75)(ng.tensor(4.0), ng.tensor(8.0), 1)
    tensor(5.)
    """
    _check_decay("get_ema_avg_fn", decay)

    @no_grad()
    def ema(average: Tensor, present: Tensor, num_averaged: Any) -> Any:
        return decay * average + (1 - decay) * present

    return ema


def get_swa_avg_fn() -> AverageOne:
    """The mean of all values, for ``AveragedModel(avg_fn=...)``.

    Returns a function of average, present value and the number ``n`` of values so far, that gives
    ``average + (present - average) / (n + 1)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.optim.swa_utils.get_swa_avg_fn()(ng.tensor(4.0), ng.tensor(7.0), 2)
    tensor(5.)
    """

    @no_grad()
    def swa(average: Tensor, present: Tensor, num_averaged: Any) -> Any:
        return average + (present - average) / (num_averaged + 1)

    return swa


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageMany:
    """The exponential moving average, for ``AveragedModel(multi_avg_fn=...)``.

    Returns a function that changes a list of averages in place; see ``get_ema_avg_fn``.

    Raises
    ------
    NumgradValueError
        If ``decay`` is not from 0 to 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> averages = [ng.tensor(4.0), ng.tensor([0.0])]
    >>> update = ng.optim.swa_utils.get_ema_multi_avg_fn(0.75)
    >>> update(averages, [ng.tensor(8.0), ng.tensor([1.0])], 1)
    >>> averages
    [tensor(5.), tensor([0.25])]
    """
    _check_decay("get_ema_multi_avg_fn", decay)

    def ema(averages: Sequence[Tensor], present: Sequence[Tensor], num_averaged: Any) -> None:
        _move_towards(averages, present, 1 - decay)

    return ema


def get_swa_multi_avg_fn() -> AverageMany:
    """The mean of all values, for ``AveragedModel(multi_avg_fn=...)``.

    Returns a function that changes a list of averages in place; see ``get_swa_avg_fn``.

    Examples
    --------
    >>> import numgrad as ng
    >>> averages = [ng.tensor(4.0), ng.tensor([0.0])]
    >>> update = ng.optim.swa_utils.get_swa_multi_avg_fn()
    >>> update(averages, [ng.tensor(7.0), ng.tensor([1.5])], 2)
    >>> averages
    [tensor(5.), tensor([0.5])]
    """

    def swa(averages: Sequence[Tensor], present: Sequence[Tensor], num_averaged: Any) -> None:
        _move_towards(averages, present, 1 / (int(num_averaged) + 1))

    return swa


@no_grad()
def _move_towards(averages: Sequence[Tensor], present: Sequence[Tensor], share: float) -> None:
    """Move each average by a part of its distance to the present value."""
    if len(averages) != len(present):
        raise NumgradValueError(
            f"got {len(averages)} averages and {len(present)} present values; they go by pairs"
        )
    for k in update_many(_moved, [averages, present], share):
        averages[k].copy_(_moved(averages[k], present[k], share)["average"])


def _moved(average: Any, value: Any, share: Any) -> dict[str, Any]:
    return {"average": average + (value - average) * share}


def _check_decay(name: str, decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise NumgradValueError(f"{name}: decay must be from 0 to 1, got {decay}")


# ---------------------------------------------------------------------------------------- models


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that the model goes through.

    Parameters
    ----------
    model
        The model; it is copied and not kept.
    device
        Accepted for PyTorch's sake: None or ``"cpu"``.
    avg_fn
        ``avg_fn(average, present, num_averaged)`` returns the new average of one parameter.
    multi_avg_fn
        ``multi_avg_fn(averages, present, num_averaged)`` changes the averages of all parameters of
        one dtype in place. Without either the plain mean is taken.
    use_buffers
        Average buffers as well. Otherwise those of the model are copied at each update.

    Attributes
    ----------
    module
        The copy, which calls go to.
    n_averaged
        How many values are in the averages; a buffer.

    Raises
    ------
    NumgradAssertionError
        If both functions are given.
    NumgradValueError
        If the device is another.

    Examples
    --------
    >>> import numgrad as ng
    >>> model = ng.nn.Linear(1, 1, bias=False)
    >>> averaged = ng.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = model.weight.detach().fill_(value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: AverageOne | None = None,
        multi_avg_fn: AverageMany | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise NumgradAssertionError(
                "AveragedModel: got avg_fn and multi_avg_fn; give one of them, or neither for the "
                "plain mean"
            )
        _check_device("AveragedModel", device)
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", asarray(np.zeros((), np.int64)))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged module."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of ``model`` into the averages; the first are copied.

        Raises
        ------
        NumgradValueError
            If ``model`` has other parameters than the one that was copied. Nothing is changed.
        """
        averages, present = self._averaged(self.module), self._averaged(model)
        copied = [] if self.use_buffers else list(self.module.buffers())
        sources = [] if self.use_buffers else list(model.buffers())
        _check_alike([*averages, *copied], [*present, *sources])
        if int(self.n_averaged) == 0:
            copied, sources = [*copied, *averages], [*sources, *present]
        elif self.avg_fn is not None:
            for average, value in zip(averages, present, strict=True):
                average.copy_(self.avg_fn(average, value, self.n_averaged))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for dtype in {t.dtype: None for t in averages}:
                members = [k for k, t in enumerate(averages) if t.dtype == dtype]
                update(
                    [averages[k] for k in members], [present[k] for k in members], self.n_averaged
                )
        for target, source in zip(copied, sources, strict=True):
            target.copy_(source)
        self.n_averaged.add_(1)

    def _averaged(self, model: Module) -> list[Tensor]:
        buffers = model.buffers() if self.use_buffers else ()
        return [t.detach() for t in chain(model.parameters(), buffers)]


def _check_alike(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
    shapes, others = [t.shape for t in ours], [t.shape for t in theirs]
    if shapes != others:
        raise NumgradValueError(
            f"update_parameters: the model has parameters and buffers of shapes {others}, the "
            f"averages are of shapes {shapes}; give the model that was copied"
        )


def _check_device(name: str, device: Any) -> None:
    if device is not None and str(device) != "cpu":
        raise NumgradValueError(f"{name}: numgrad computes on the CPU, got device {device!r}")


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of all batch normalizations of ``model`` again.

    The averaged weights have other activations than the weights had whose statistics were kept.
    All batches count equally here.

    Parameters
    ----------
    loader
        Gives batches: the input of the model, or a list or tuple that begins with it.
    model
        The model. It is in training mode meanwhile; without batch normalization nothing is done.
    device
        Accepted for PyTorch's sake: None or ``"cpu"``.

    Raises
    ------
    NumgradValueError
        If the device is another.

    Notes
    -----
    A batch normalization is any module with ``reset_running_stats`` and ``momentum``. Momenta and
    modes are put back also after an exception.

    Examples
    --------
    >>> import numgrad as ng
    >>> model = ng.nn.Linear(1, 1)
    >>> ng.optim.swa_utils.update_bn([ng.ones((2, 1))], model)
    """
    _check_device("update_bn", device)
    norms: list[Any] = [
        module
        for module in model.modules()
        if hasattr(module, "reset_running_stats") and hasattr(module, "momentum")
    ]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.train()
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the mean of all batches
        for batch in loader:
            model(batch[0] if isinstance(batch, list | tuple) else batch)
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        for module, mode in modes:
            module.training = mode


# -------------------------------------------------------------------------------------- schedule


class SWALR(LRScheduler):
    """Anneal the learning rate to a fixed value, at which weights are averaged.

    Parameters
    ----------
    optimizer, last_epoch
        As for ``LRScheduler``.
    swa_lr
        The fixed rate, or a list with one for each group.
    anneal_epochs
        The number of steps to it.
    anneal_strategy
        ``"cos"`` or ``"linear"``: the way to it.

    Raises
    ------
    NumgradTypeError
        If ``optimizer`` is none.
    NumgradValueError
        If a list has the wrong length, ``anneal_strategy`` is unknown or ``anneal_epochs`` is no
        integer from 0.

    Examples
    --------
    >>> import numgrad as ng
    >>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = ng.optim.swa_utils.SWALR(
    ...     optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear"
    ... )
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        check_optimizer("SWALR", optimizer)
        rates = for_each_group("SWALR", "swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise NumgradValueError(
                f"SWALR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise NumgradValueError(
                f"SWALR: anneal_epochs must be an integer from 0, got {anneal_epochs!r}"
            )
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way is done: from 0 to 1."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def _next_lr(self) -> list[Any]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, share = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            lr, goal = group["lr"], group["swa_lr"]
            # where the way began, from where it is now
            begin = goal if before == 1 else (lr - before * goal) / (1 - before)
            rates.append(goal * share + begin * (1 - share))
        return rates
