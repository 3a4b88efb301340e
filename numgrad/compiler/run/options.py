"""What a user may choose about a compiled function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from numgrad.errors import NumgradTypeError, NumgradValueError


@dataclass(frozen=True)
class Options:
    """What a backend is told besides the graph.

    Attributes
    ----------
    name
        Name of the function, for sources and reports.
    parallel
        ``"auto"``, or whether loops run in several threads.
    contract
        Whether multiplications and additions of several operations may become one instruction.
    cache
        Whether kernels are kept on disk.
    donated
        Which inputs of the graph may be overwritten.
    """

    name: str = "function"
    parallel: bool | str = "auto"
    contract: bool = False
    cache: bool = True
    donated: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.parallel not in ("auto", True, False):
            raise NumgradValueError(
                f'jit: parallel is "auto", True or False, got {self.parallel!r}'
            )
        for name in ("contract", "cache"):
            if not isinstance(getattr(self, name), bool):
                raise NumgradTypeError(f"jit: {name} is a bool, got {getattr(self, name)!r}")


class Program(Protocol):
    """A graph made to run.

    Backends may add ``report() -> str``, ``source`` (a string), and ``steps``, of which some have
    ``kernels``, a dictionary of kernels compiled so far.
    """

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Outputs of the graph, then what it writes, for C-contiguous arrays and numbers."""
        ...
