"""Random Tensors from NumPy's generators: a seed gives the same numbers as in NumPy.

What takes no generator, such as dropout and the first values of parameters, draws from NumPy's
global one, ``np.random``, which ``manual_seed`` sets and ``checkpoint`` puts back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError
from numgrad.tensor import Tensor


class Generator:
    """NumPy's ``Generator`` with Tensors as results; the wrapped one is ``generator``."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def __repr__(self) -> str:
        return f"numgrad.random.{self.generator!r}"

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Normal numbers of mean ``loc`` and standard deviation ``scale``."""
        return _wrap(self.generator.normal(_plain(loc), _plain(scale), size))

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Tensor:
        """Normal numbers of mean 0 and standard deviation 1, float64 or float32."""
        return _wrap(self.generator.standard_normal(size, dtype))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers spread evenly over the interval from ``low`` up to ``high``."""
        return _wrap(self.generator.uniform(_plain(low), _plain(high), size))

    def random(self, size: Any = None, dtype: Any = np.float64) -> Tensor:
        """Numbers spread evenly over the interval from 0 up to 1, float64 or float32."""
        return _wrap(self.generator.random(size, dtype))

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Tensor:  # fmt: skip
        """Integers from ``low`` up to ``high``, which is left out unless ``endpoint``."""
        return _wrap(self.generator.integers(_plain(low), _plain(high), size, dtype, endpoint))

    def permutation(self, x: Any, axis: int = 0) -> Tensor:
        """The rows of ``x``, or the integers below ``x``, in random order."""
        return _wrap(self.generator.permutation(_plain(x), axis))

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0,
        shuffle: bool = True,
    ) -> Tensor:  # fmt: skip
        """Random rows of ``a``, or integers below ``a``, with probabilities ``p``."""
        return _wrap(self.generator.choice(_plain(a), size, replace, _plain(p), axis, shuffle))


def generator_of(
    operation: str, generator: Generator | np.random.Generator | None
) -> np.random.Generator:
    """NumPy's generator that is meant; for None one over the state of NumPy's global generator.

    Raises
    ------
    NumgradTypeError
        If ``generator`` is anything else; the message begins with the name of the operation.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.random.generator_of("deal", ng.random.default_rng(0)).integers(10)
    np.int64(8)
    """
    if generator is None:
        return np.random.Generator(np.random.get_bit_generator())  # pyright: ignore
    if isinstance(generator, Generator):
        return generator.generator
    if isinstance(generator, np.random.Generator):
        return generator
    raise NumgradTypeError(
        f"{operation}: the generator is one of ng.random or of NumPy, got "
        f"{type(generator).__name__}; make one with ng.random.default_rng"
    )


def default_rng(seed: Any = None) -> Generator:
    """A new generator; equal seeds give equal numbers.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.random.default_rng(0).normal(size=2)
    tensor([ 0.12573022, -0.13210486])
    """
    return Generator(np.random.default_rng(seed))


def manual_seed(seed: int) -> None:
    """Let what draws from NumPy's global generator give the same numbers again.

    Parameters
    ----------
    seed
        An integer from 0 up to ``2**32``, which is left out.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.random.manual_seed(0)
    >>> first = ng.nn.functional.dropout(ng.ones(8))
    >>> ng.random.manual_seed(0)
    >>> (ng.nn.functional.dropout(ng.ones(8)) == first).all().item()
    True
    """
    np.random.seed(seed)


def draw_seed() -> int:
    """A random integer below ``2**53`` from NumPy's global generator, to seed an operation with.

    Examples
    --------
    >>> import numgrad as ng
    >>> 0 <= ng.random.draw_seed() < 2**53
    True
    """
    return int(np.random.random_sample() * 2**53)


def _plain(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else value


def _wrap(value: Any) -> Tensor:
    return Tensor(np.asarray(value))
