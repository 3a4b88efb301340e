"""``ng.ops``: the complete table of operations, and a look inside each.

Importing this module declares all operations. So what lets a user add one, whose name must be new,
comes from here too.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from numgrad.codegen.compile import Kernel
from numgrad.core.declare import elementwise, primitive
from numgrad.core.documentation import summary
from numgrad.core.formula import DERIVED
from numgrad.core.op import OPS, Op
from numgrad.errors import NumgradValueError
from numgrad.nn import (  # noqa: F401
    activation_formulas,
    batch_normalization,
    convolution_primitives,
    dropout,
    embedding,
    layer_normalization,
    linear,
    pooling_windows,
    recurrent,
)  # fmt: skip
from numgrad.nn.loss import cross_entropy, ctc, likelihood, regression  # noqa: F401
from numgrad.operations.lazy_operations import declare_all


class OpView:
    """One operation as ``ng.ops[name]`` shows it.

    Attributes
    ----------
    op
        The operation itself, to call.
    kernels
        The native kernels compiled so far, forward and backward; compile one by calling the
        operation and its backward. Each has ``name``, ``signature``, ``source``, ``llvm()`` and
        ``asm()``.
    """

    def __init__(self, op: Op) -> None:
        self.op = op

    @property
    def kernels(self) -> list[Kernel]:
        """The native kernels compiled so far, forward and backward."""
        return list(getattr(self.op, "kernels", list)())

    @property
    def formula(self) -> str:
        """The body of the operation and the gradient formula of each input, as written."""
        return f"{_source(self.op.function)}\n\n{self.gradients}"

    @property
    def gradients(self) -> str:
        """The gradient formulas as written."""
        op = self.op
        formulas = (*op.declared.values(), *op.complex_formulas.values())
        texts = list(dict.fromkeys(_source(f.function) for f in formulas))
        derived = [name for name, f in op.formulas.items() if f.kind == DERIVED]
        texts += [f"# by {name}: derived from the body" for name in derived]
        return "\n".join(texts) or "(no gradient)"

    @property
    def signatures(self) -> list[str]:
        """Name and argument types of every compiled kernel."""
        return [f"{k.name}: {k.signature}" for k in self.kernels]

    @property
    def source(self) -> str:
        """The generated source of every compiled kernel."""
        return "\n".join(f"# {k.name}: {k.signature}\n{k.source}" for k in self.kernels)

    def llvm(self) -> str:
        """LLVM IR of every compiled kernel, after optimisation."""
        return "\n".join(f"; {k.name}: {k.signature}\n{k.llvm()}" for k in self.kernels)

    def asm(self) -> str:
        """Assembly of every compiled kernel."""
        return "\n".join(f"# {k.name}: {k.signature}\n{k.asm()}" for k in self.kernels)

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.op(*args, **params)

    def __repr__(self) -> str:
        family = type(self.op).__name__
        compiled = "\n".join(f"  {s}" for s in self.signatures) or "  (none yet)"
        return (
            f"{self.op.name}: {summary(self.op)}\nfamily: {family}\nformula:\n{self.formula}\n"
            f"compiled kernels:\n{compiled}"
        )


class OpTable(Mapping):
    """All operations by name, as views that show formulas and kernels.

    Examples
    --------
    >>> import numgrad as ng
    >>> print(ng.ops["exp"].gradients)
    exp.vjp(x=lambda g, y: g * np.conj(y))
    """

    def __getitem__(self, name: str) -> OpView:
        if name not in OPS:
            from difflib import get_close_matches

            near = get_close_matches(name, OPS, 3)
            raise _NoSuchOperation(
                f"no operation is called {name!r}" + (f"; near: {', '.join(near)}" if near else "")
            )
        return OpView(OPS[name])

    def __iter__(self) -> Iterator[str]:
        return iter(OPS)

    def __len__(self) -> int:
        return len(OPS)

    def __repr__(self) -> str:
        return f"<{len(self)} operations: {', '.join(sorted(self))}>"


class _NoSuchOperation(NumgradValueError, KeyError):
    """A name that is in no table; a KeyError too, as a mapping's should be."""

    __str__ = Exception.__str__


ops = OpTable()


def _source(function: Any) -> str:
    try:
        return inspect.getsource(function).strip()
    except OSError:  # typed into a plain interpreter
        return f"<source of {getattr(function, '__name__', 'function')} is not available>"


declare_all()

__all__ = ["elementwise", "ops", "primitive"]
