"""Options of optimizers: what names mean that several have, and how a class declares its own."""

from __future__ import annotations

from typing import Any, TypeVar, dataclass_transform

from numgrad.core.options import Option, declare, option

_Class = TypeVar("_Class", bound=type)
_ACCEPTED = "Accepted for compatibility: there is one kernel, which steps all tensors at once."

COMMON: dict[str, Option] = {
    "params": Option(doc="Tensors, pairs ``(name, Tensor)``, or groups as dictionaries."),
    "lr": Option(
        doc=r"Learning rate :math:`\eta`, a number or a Tensor of one element.", at_least=0
    ),
    "betas": Option(doc="Decay rates of the averages.", at_least=0, below=1, after="eps"),
    "eps": Option(doc="Added to the denominator.", at_least=0),
    "momentum": Option(doc=r"Decay rate :math:`\mu` of the momentum.", at_least=0),
    "weight_decay": Option(doc="Factor of the L2 penalty, added to the gradient.", at_least=0),
    "decoupled_weight_decay": Option(
        doc="Let parameters shrink at the rate ``lr * weight_decay`` rather than add a penalty."
    ),
    "maximize": Option(doc="Climb instead of descending."),
    "differentiable": Option(doc="Record the step itself, so that it can be differentiated."),
    "foreach": Option(doc=_ACCEPTED),
    "capturable": Option(doc=_ACCEPTED),
    "fused": Option(doc=_ACCEPTED[:-1] + "; excludes ``foreach`` and ``differentiable``."),
}
"""The vocabulary: range and sentence of options that mean the same in every optimizer."""


@dataclass_transform(field_specifiers=(option,))
def declared(cls: _Class) -> _Class:
    """Give an optimizer the constructor, checks and defaults that its class body declares.

    See Note [Declared options]; names in ``COMMON`` need neither a range nor a sentence.

    Examples
    --------
    >>> from typing import Any
    >>> import numgrad as ng
    >>> from numgrad.optim.options import declared, option
    >>> @declared
    ... class Fixed(ng.optim.Optimizer):
    ...     params: Any
    ...     lr: float = 0.5
    ...     width: float = option(default=1.0, above=0, doc="Of the region.")
    >>> Fixed([ng.ones(2, requires_grad=True)], width=0)
    Traceback (most recent call last):
    numgrad.errors.NumgradValueError: Fixed: width is 0; it must be positive
    """
    declare(cls, COMMON)
    made: Any = cls
    made._take_up_options()
    return cls
