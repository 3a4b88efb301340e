"""A gradient formula, and what it may be told of an operand without its numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError


@dataclass(slots=True, unsafe_hash=True)  # not frozen, which takes three times as long to make
class Meta:
    """Shape and dtype of an operand that a gradient formula names as ``meta_<input>``."""

    shape: tuple[Any, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(slots=True, unsafe_hash=True)
class KnownInteger(Meta):
    """An integer that is known while a function is traced: a number, or the length of an array."""

    value: Any


DECLARED, DERIVED, REFUSED = "declared", "derived", "refused"


class GradientFormula:
    """A gradient formula: its parameter names say what it needs (design idea 2).

    ``needs`` are the values a backward must have kept (inputs, ``y``, auxiliaries), ``metas`` the
    inputs of which shape and dtype suffice, ``params`` the parameters of the call it reads;
    ``kind`` says whether it was declared, derived from the body, or raises.
    """

    __slots__ = ("function", "kind", "metas", "names", "needs", "params", "uses_g")

    def __init__(self, op: Any, function: Callable[..., Any], kind: str = DECLARED) -> None:
        code = function.__code__
        self.function = function
        self.kind = kind
        self.names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.uses_g = "g" in self.names
        self.needs: tuple[str, ...] = ()
        self.metas: tuple[str, ...] = ()
        self.params: tuple[str, ...] = ()
        for name in self.names:
            if name == "g":
                continue
            if name == "y" or name in op.inputs or name in op.auxiliaries:
                self.needs += (name,)
            elif name.startswith("meta_") and name[5:] in op.inputs:
                self.metas += (name[5:],)
            elif name in op.params or name in op.implied:
                self.params += (name,)
            else:
                raise NumgradTypeError(
                    f"{op.name}: the gradient formula names {name!r}, which is neither g, y, an "
                    f"input ({', '.join(op.inputs)}), meta_<input>, nor a parameter"
                )
