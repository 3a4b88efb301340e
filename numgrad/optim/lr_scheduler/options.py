"""Options of schedules: what names mean that several have, and how a class declares its own."""

from __future__ import annotations

from typing import TypeVar, dataclass_transform

from numgrad.core import options
from numgrad.core.options import Option, declare, option

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
