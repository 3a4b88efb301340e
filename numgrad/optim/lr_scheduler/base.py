"""Base of all schedules of learning rates.

Note [A schedule is stepped after its optimizer]
------------------------------------------------
Building a schedule writes the learning rate of step 0 into the optimizer's groups, and keeps the
one that was there as ``initial_lr``. Each ``step()`` after that belongs behind an
``optimizer.step()``: otherwise the rate of step 0 is never used. To notice, the optimizer's
``step`` is wrapped once, and marks the optimizer when it runs.

Note [Chainable and closed form]
--------------------------------
``get_lr`` is *chainable*: it computes the next rate from the present one, so that several
schedules, or a user's own assignment, may act on the same optimizer. ``_get_closed_form_lr``, where
a schedule has it, computes the rate of any step from the initial one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import ismethod
from typing import Any, TypeVar, dataclass_transform
from weakref import ref

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.core import options
from numgrad.core.interpreter import state
from numgrad.core.options import Option, declare, option
from numgrad.errors import (
    NumgradKeyError,
    NumgradNotImplementedError,
    NumgradTypeError,
    NumgradValueError,
    warn,
)
from numgrad.nn.module.state_dict import array_of, is_array
from numgrad.optim.optimizer import Optimizer
from numgrad.tensors.tensor import Tensor

_Class = TypeVar("_Class", bound=type)


COMMON: dict[str, Option] = {
    "optimizer": Option(
        doc="Whose learning rates are scheduled; they are set to those of step 0 at once."
    ),
    "gamma": Option(doc="The factor."),
    "total_iters": Option(doc="The step at which the change is complete.", at_least=0),
    "eta_min": Option(doc="The lowest rate."),
    "patience": Option(at_least=0),
    "cooldown": Option(at_least=0),
    "last_epoch": Option(
        doc="The step to go on from, -1 to begin; else each group needs its ``initial_lr``."
    ),
}
"""The vocabulary: range and sentence of options that mean the same in every schedule."""


checked = options.checked(COMMON)


@dataclass_transform(field_specifiers=(option,))
def declared(cls: _Class) -> _Class:
    """Give a schedule the constructor, checks and attributes that its class body declares.

    See Note [Declared options]; names in ``COMMON`` need neither a range nor a sentence.
    """
    declare(cls, COMMON)
    return cls


EPOCH_IS_DEPRECATED = (
    "step: the argument epoch is deprecated; call step() once after each epoch, or load_state_dict "
    "to go on from a saved one. With epoch the rate comes from the closed form, where there is one"
)


def refuse_trace(name: str) -> None:
    """Raise in a function that is being compiled, which would step once and never again."""
    state.ground.once(
        f"{name}.step: a schedule is Python code, which a compiled function does not run at "
        "each call; step it after the call"
    )


class LRScheduler:
    """Base class of schedules: it writes ``group["lr"]`` of each group at each ``step``.

    A schedule of one's own overrides ``get_lr``.

    Parameters
    ----------
    optimizer
        Whose learning rates are scheduled. Building a schedule sets them to those of step 0: build
        it before the optimizer's state is loaded.
    last_epoch
        The step to go on from, -1 to begin. Otherwise each group needs its ``initial_lr``, which a
        loaded state of the optimizer has.

    Raises
    ------
    NumgradTypeError
        If ``optimizer`` is no ``Optimizer``.
    NumgradKeyError
        If there is a ``last_epoch`` and a group has no ``initial_lr``.

    Examples
    --------
    >>> import numgrad as ng
    >>> class InverseRootLR(ng.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / (1 + self.last_epoch) ** 0.5 for lr in self.base_lrs]
    >>> w = ng.ones(2, requires_grad=True)
    >>> optimizer = ng.optim.SGD([w], lr=0.6)
    >>> scheduler = InverseRootLR(optimizer)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.3]
    """

    _checked: tuple[Option, ...] = ()
    _get_lr_called_within_step = False
    _is_initial = False
    _get_closed_form_lr: Callable[[], list[Any]]
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        name = type(self).__name__
        check_optimizer(name, optimizer)
        self.optimizer = optimizer
        begun = []
        if last_epoch == -1:
            begun = [group for group in optimizer.param_groups if "initial_lr" not in group]
            for group in begun:
                group["initial_lr"] = copied(group["lr"])
        for k, group in enumerate(optimizer.param_groups):
            if "initial_lr" not in group:
                raise NumgradKeyError(
                    f"{name}: last_epoch={last_epoch} goes on with a schedule, but group {k} of "
                    "the optimizer has no 'initial_lr'; load the optimizer's state first, or begin "
                    "with last_epoch=-1"
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        try:
            self._initial_step()
        except BaseException:
            for group in begun:
                del group["initial_lr"]
            raise

    def _set_up(self, options: dict[str, Any]) -> None:
        """Check the options and begin, for a declared constructor: Note [Declared options]."""
        for limited in self._checked:
            limited.check(type(self).__name__, options[limited.name])
        optimizer, last_epoch = options.pop("optimizer"), options.pop("last_epoch")
        vars(self).update(options)
        LRScheduler.__init__(self, optimizer, last_epoch)

    def _initial_step(self) -> None:
        """Step 0."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _restart(self) -> None:
        """Step 0 once more, on top of the rates that are there."""
        self.last_epoch = -1
        self._initial_step()

    def step(self, epoch: int | None = None) -> None:
        """Write the learning rates of the next step into the optimizer's groups.

        Parameters
        ----------
        epoch
            Deprecated: the step to go to.

        Warns
        -----
        UserWarning
            If the optimizer has not been stepped before, or ``epoch`` is given.
        """
        refuse_trace(type(self).__name__)
        if self._step_count == 1:
            _warn_unless_stepped(self.optimizer)
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_IS_DEPRECATED, UserWarning)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = epoch is not None and hasattr(self, "_get_closed_form_lr")
        with self._stepping():
            self._write(self._get_closed_form_lr() if closed else self.get_lr())

    @contextmanager
    def _stepping(self) -> Iterator[None]:
        """While ``get_lr`` is called by ``step``."""
        refuse_trace(type(self).__name__)
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _write(self, rates: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer, "lr")

    def get_lr(self) -> list[Any]:
        """The next learning rate of each group; called by ``step``.

        Warns
        -----
        UserWarning
            If called from outside, where ``get_last_lr`` is meant.

        Raises
        ------
        NumgradNotImplementedError
            If the class has none.
        """
        if not self._get_lr_called_within_step:
            warn(
                "get_lr: computes the rates of the next step; get_last_lr() has the present ones",
                UserWarning,
            )
        return self._next_lr()

    def _next_lr(self) -> list[Any]:
        raise NumgradNotImplementedError(
            f"{type(self).__name__}: a schedule defines get_lr(), which returns the next learning "
            "rate of each group"
        )

    def get_last_lr(self) -> list[Any]:
        """The learning rates written last, one for each group; of tensors copies."""
        return [copied(lr) for lr in self._last_lr]

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer, whose own is saved beside it."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from where ``state_dict`` was taken.

        Raises
        ------
        NumgradTypeError, NumgradValueError
            If it is no dictionary, lacks an entry, or has lists of another length, as a schedule of
            another kind or for other groups has. Nothing is changed then.
        """
        self._check_state(state_dict)
        self.__dict__.update({key: _native(value) for key, value in state_dict.items()})

    def _check_state(self, loaded: Any) -> None:
        """Raise unless ``loaded`` is as ``state_dict`` makes it."""
        where = f"{type(self).__name__}.load_state_dict"
        if not isinstance(loaded, Mapping):
            raise NumgradTypeError(f"{where}: takes a dictionary, got {type(loaded).__name__}")
        own = self.state_dict()
        lacking = [key for key in own if key not in loaded]
        if lacking:
            raise NumgradValueError(
                f"{where}: the state has no {', '.join(lacking)}; was that of another schedule "
                "given?"
            )
        for key, value in own.items():
            length = len(loaded[key]) if isinstance(loaded[key], list | tuple) else None
            if isinstance(value, list) and length != len(value):
                raise NumgradValueError(
                    f"{where}: {key} has {len(value)} entries here, and in the state "
                    f"{'is no list' if length is None else length}; was that of a schedule for "
                    "other groups given?"
                )


def _native(value: Any) -> Any:
    """A value of a state, with arrays of other libraries as Tensors."""
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(map(_native, value))
    if is_array(value) and not isinstance(value, Tensor | np.ndarray):
        return Tensor(np.array(array_of(value)))
    return value


# ------------------------------------------------------------------------- values of the groups


def check_optimizer(name: str, optimizer: Any) -> None:
    """Raise unless ``optimizer`` is one."""
    if not isinstance(optimizer, Optimizer):
        raise NumgradTypeError(
            f"{name}: schedules an Optimizer, got {type(optimizer).__name__}; pass one of ng.optim"
        )


def copied(value: Any) -> Any:
    """``value``, or a copy of its own if it is a Tensor."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """``group[key]`` of each group; of tensors copies."""
    return [copied(group[key]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Set ``group[key]``; a tensor that is there stays and is filled."""
    if isinstance(group[key], Tensor):
        fill(group[key], value)
    else:
        group[key] = value


def fill(tensor: Tensor, value: Any) -> None:
    """Store a number, or that of a Tensor of one element, in ``tensor``."""
    with no_grad():
        tensor.fill_(value.item() if isinstance(value, Tensor) else value)


def for_each_group(name: str, key: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group: a list as it is, anything else for all of them."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        Option(name=key, annotation="float").check(name, value)
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise NumgradValueError(
            f"{name}: {key} has {len(value)} values, the optimizer {count} groups; give one for "
            "each group, or a single one for all"
        )
    for number, one in enumerate(value):
        Option(name=f"{key}[{number}]", annotation="float").check(name, one)
    return [copied(v) for v in value]


# ------------------------------------------------- Note [A schedule is stepped after its optimizer]


def _note_steps(optimizer: Any) -> None:
    """Make ``optimizer.step`` mark the optimizer when it runs."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    # The bound method would hold the optimizer, which is to hold this wrapper.
    function, is_bound, owner = getattr(step, "__func__", step), ismethod(step), ref(optimizer)

    @functools.wraps(function)
    def noted(*args: Any, **kwargs: Any) -> Any:
        target: Any = owner()
        target._opt_called = True
        return function(target, *args, **kwargs) if is_bound else function(*args, **kwargs)

    vars(noted)["_wrapped_by_lr_sched"] = True
    optimizer.step = noted


def _warn_unless_stepped(optimizer: Any) -> None:
    if not hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        message = (
            "step: the optimizer's step was replaced after the schedule was built, so it cannot be "
            "seen whether the optimizer is stepped first, as it should be"
        )
    elif not getattr(optimizer, "_opt_called", False):
        message = (
            "step: the schedule is stepped before its optimizer, so the first learning rate is "
            "never used; call optimizer.step() first, then scheduler.step()"
        )
    else:
        return
    warn(message, UserWarning)
