"""What a call of a function and its sweeps does with arrays: allocations, copies, calls of texts.

Note [Calls of texts]
---------------------
``DerivativeProgram`` says in which order arrays are made and texts are called. On NumPy's arrays
``TextCalls`` does it at once; where a compiled function leaves Python, ``compiler.native`` has a
subclass that writes each as machine code, and arrays are addresses there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.compiled import Text
from numgrad.codegen.memory import empty, zeros


class TextCalls:
    """Note [Calls of texts], on NumPy's arrays."""

    def make(self, maker: str, shape: Sequence[Any], dtype: np.dtype) -> Any:
        """An array; ``maker`` is "empty" or "zeros"."""
        return (empty if maker == "empty" else zeros)(tuple(shape), dtype)

    def copy(self, array: Any) -> Any:
        """A copy of an argument, which is overwritten."""
        return array.copy()

    def fill(self, array: Any, value: Any) -> None:
        """Set all elements to those of something that broadcasts."""
        array[...] = value

    def add(self, array: Any, value: Any) -> None:
        """Add to all elements."""
        array += value

    def contiguous(self, array: Any) -> Any:
        """An array in order, of captured ones."""
        return np.ascontiguousarray(array)

    def number(self, array: Any) -> Any:
        """The number in an array of one element."""
        return array.reshape(())

    def row(self, array: Any) -> Any:
        """An array of one element for a number."""
        return array.reshape(1)

    def length(self, value: Any) -> Any:
        """A length, which is no less than 0."""
        return max(0, int(value))

    def trips(self, low: Any, high: Any, step: Any) -> Any:
        """How many steps a loop makes."""
        return len(range(int(low), int(high), int(step)))

    def holds(self, condition: Any) -> bool:
        """Whether a condition holds that a call asks for."""
        return bool(condition)

    def any(self, array: Any) -> bool:
        """Whether an array of what a kernel has found wrong says so."""
        return bool(array.any())

    def run(self, text: Text, values: Sequence[Any]) -> None:
        """Call a text."""
        text.entry(*values)

    def scaled(self, arrays: Sequence[Any], seed: Any, again: Callable[[], list[Any]]) -> list[Any]:
        """Gradients for a seed, from those for 1.

        Where one of these is not finite, that may come of an overflow which the seed would prevent,
        so the sweep runs ``again``.
        """
        if seed != 1:
            with np.errstate(all="ignore"):
                if not all(np.isfinite(a.sum()) for a in arrays):
                    return again()
                for a in arrays:
                    np.multiply(a, np.asarray(seed, a.dtype), out=a)
        return list(arrays)
