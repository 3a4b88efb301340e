"""Drawing with NumPy's generators: of which shape, when, and with which errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from numgrad.core.abstract import broadcast_lengths
from numgrad.core.interpreter import drawn, state
from numgrad.core.masks import refuse_mask
from numgrad.errors import NumgradError, NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.tensors.reparameterised import differentiated
from numgrad.tensors.tensor import Tensor


def drawn_shape(operation: str, size: Any, *shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape of what is drawn, to which parameters of these shapes have to broadcast.

    Raises
    ------
    NumgradValueError
        If they do not.

    Examples
    --------
    >>> from numgrad.random.draws import drawn_shape
    >>> drawn_shape("deal", None, (3, 1), (4,)), drawn_shape("deal", 4, (4,))
    ((3, 4), (4,))
    """
    try:
        common = broadcast_lengths(*shapes)
        if size is None:
            return common
        wanted = tuple(size) if isinstance(size, tuple | list) else (size,)
        if len(common) > len(wanted) or broadcast_lengths(common, wanted) != wanted:
            raise ValueError
    except ValueError:
        found = ", ".join(str(tuple(shape)) for shape in shapes)
        raise NumgradValueError(
            f"{operation}: parameters of shapes {found} do not broadcast to size={size}"
        ) from None
    return wanted


def draw_seed() -> Any:
    """A random integer below ``2**53`` from NumPy's global generator, to seed an operation with.

    While a function is compiled it is drawn anew at each call of that.

    Examples
    --------
    >>> from numgrad.random.draws import draw_seed
    >>> 0 <= draw_seed() < 2**53
    True
    """
    if any(each.draws for each in state.interpreters):
        return drawn(_seeds, np.random.get_bit_generator(), (), (), np.int64)  # pyright: ignore
    return state.ground.seed()


def _seeds(size: Any) -> np.ndarray:
    return np.asarray(np.random.random_sample(size) * 2**53).astype(np.int64)


def at_once() -> bool:
    """Whether what NumPy draws now is the result: not in a compiled function or a batch.

    Examples
    --------
    >>> from numgrad.random.draws import at_once
    >>> at_once()
    True
    """
    return not (state.ground.deferred or any(each.draws for each in state.interpreters))


def numbers(
    method: Callable[..., Any], bounds: tuple, size: Any, dtype: Any = None, kind: Any = np.float64,
    **options: Any,
) -> Tensor:  # fmt: skip
    """Numbers between bounds, in an array of a size or of the shape that these broadcast to."""
    draw = method if dtype is None else lambda *given: method(*given, dtype, **options)
    operands = [checked_parameter(bound, method.__name__) for bound in bounds]
    return asked(method, draw, operands, size, np.dtype(dtype or kind))


def _source(method: Any) -> Any:
    """What a method of NumPy's Generator draws from."""
    return method.__self__.bit_generator


def places(permutation: Callable[..., Any], count: Any) -> Tensor:
    """The integers below ``count`` in random order."""
    source = _source(permutation)
    return drawn(lambda n, _: permutation(int(n)), source, (count,), count, np.int64, apart=False)


def checked_parameter(value: Any, name: str = "") -> Any:
    """A parameter, which is no Tensor that is to be differentiated."""
    refuse_mask(f"random{name and '.'}{name}", value)
    if differentiated(value):
        raise NumgradRuntimeError(
            f"random{name and '.'}{name}: a parameter of shape {value.shape} is to be "
            "differentiated, in which these numbers have no gradients; draw from a distribution "
            "whose numbers have some (normal, gamma, beta, ...), choose rows with "
            "x[rng.permutation(n)], or detach() it"
        )
    return value


def plain(value: Any) -> Any:
    """A parameter as NumPy takes it."""
    return value.numpy() if isinstance(checked_parameter(value), Tensor) else value


def drawn_now(method: Callable[..., Any], *args: Any) -> Tensor:
    """What NumPy draws."""
    return Tensor(np.asarray(named(method, method, *args)))


def named(method: Callable[..., Any], draw: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What ``draw`` gives; its errors name the method of NumPy."""
    try:
        return draw(*args, **options)
    except NumgradError:
        raise
    except (ValueError, OverflowError, MemoryError, RuntimeError) as error:
        raise NumgradValueError(f"random.{method.__name__}: {error}") from None
    except (TypeError, KeyError) as error:
        raise NumgradTypeError(f"random.{method.__name__}: {error}") from None


def asked(method: Callable[..., Any], draw: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What ``draw`` gives, now or when what is compiled runs; errors name the method of NumPy."""
    later = draw if at_once() else partial(named, method, draw)
    return named(method, drawn, later, _source(method), *args, **options)
