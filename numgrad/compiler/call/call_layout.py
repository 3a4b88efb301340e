"""All that the owner of a dispatcher depends on: inputs, results, guards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.signature import TENSOR, Leaf
from numgrad.compiler.call.source import Source
from numgrad.compiler.graph.graph import Value
from numgrad.compiler.graph.sizes import Size, Sizes
from numgrad.core.tree import Nesting

RECORDING, PLAIN = 2, 1
"""Two of the values of ``state.mode``."""


@dataclass
class Input:
    """One input of a compiled function.

    Attributes
    ----------
    value
        Its place in the graph.
    leaf
        The leaf of the arguments, or None for something captured.
    source
        Source of something captured; None if it is held.
    owner
        What was captured.
    gradient
        Whether it is the ``.grad`` of that.
    """

    value: Value
    leaf: Leaf | None = None
    source: Source | None = None
    owner: Any = None
    gradient: bool = False

    @property
    def tensor(self) -> bool:
        """Whether what is found there is a Tensor."""
        return isinstance(self.owner, Tensor) if self.leaf is None else self.leaf.kind == TENSOR

    @property
    def is_number(self) -> bool:
        """Whether it is a promoted number: Note [Promoted numbers] in ``promoted_numbers``."""
        return isinstance(self.owner, float | np.floating)

    @property
    def name(self) -> str:
        """How a reader would write it."""
        if self.leaf is not None:
            return self.leaf.path
        return "an array" if self.source is None else self.source.name


@dataclass
class Result:
    """One leaf of what a function returns: output ``number``, a length, or something constant.

    ``dead_end`` makes a Tensor of it, if its gradients could not be traced. Note [Shared results]
    in ``trace.arrays``: ``origin`` is the input and ``same`` the number of the result that it is,
    or that ``views`` make it of; ``gradient_of`` is the captured Tensor whose ``.grad`` it is.
    """

    number: int | None = None
    value: Value | None = None
    size: Size | None = None
    constant: Any = None
    dead_end: Callable[..., Any] | None = None
    origin: Value | None = None
    same: int | None = None
    views: Any = None
    gradient_of: Tensor | None = None
    source: Source | None = None


@dataclass
class GradientResult:
    """A Tensor whose ``.grad`` is output ``number``, or None, from then on.

    ``source`` is where the Tensor is found; ``present`` says that it had a gradient before, which
    then holds the new numbers.
    """

    tensor: Tensor
    source: Source | None
    number: int | None
    present: bool


@dataclass
class CallLayout:
    """All that the owner of a specialisation depends on.

    Attributes
    ----------
    parameters, nestings
        Names of the parameters, and the nesting of each (see ``Arguments``).
    leaves
        Leaves of the arguments.
    inputs
        Inputs of the program, in order.
    results, nesting
        Leaves and nesting of what is returned.
    writes
        For each write of the program, the number of the input that it goes to.
    touched
        Inputs whose memory the program itself writes to.
    gradients
        What ``.grad`` of captured Tensors is set to.
    bare
        Tensors that must not have a ``.grad`` before, with their places.
    as_tensors
        Whether results are Tensors.
    mode
        ``state.mode`` that it was traced in.
    guards
        What must be as it was around the function.
    sizes
        Lengths and their guards.
    run
        What is called with the inputs.
    """

    parameters: list[str]
    nestings: list[tuple[Nesting] | None]
    leaves: list[Leaf]
    inputs: list[Input]
    results: list[Result]
    nesting: Nesting
    writes: list[int]
    touched: list[int]
    gradients: list[GradientResult]
    bare: list[tuple[Tensor, Source | None]]
    as_tensors: bool
    mode: int
    guards: list[Source]
    sizes: Sizes
    run: Callable[..., tuple[Any, ...]]
    record: Callable[..., Sequence[Any]] | None = None
    number: int = 0
    names: dict[str, Any] = field(default_factory=dict)
