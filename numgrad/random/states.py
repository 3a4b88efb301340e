"""Seeds and states: what a generator draws next follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np

from numgrad.core.interpreter import state as interpreting
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.random.generator import Generator, generator_of, seeded


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
    seeded("manual_seed", np.random.seed, seed)
    interpreting.ground.reseeded(seed)


def get_state(generator: Generator | np.random.Generator | None = None) -> dict[str, Any]:
    """The state of a generator, by default NumPy's global one: what it draws next follows from it.

    Returns
    -------
    dict
        Numbers, strings and an array, which ``ng.save`` and pickle keep; for ``set_state``.

    Raises
    ------
    NumgradTypeError
        If ``generator`` is none.

    Examples
    --------
    >>> import numgrad as ng
    >>> state = ng.random.get_state()
    >>> first = ng.nn.functional.dropout(ng.ones(8))
    >>> ng.random.set_state(state)
    >>> (ng.nn.functional.dropout(ng.ones(8)) == first).all().item()
    True
    """
    _refuse_trace("get_state")
    if generator is None:
        return dict(np.random.get_state(legacy=False))  # pyright: ignore
    return dict(generator_of("get_state", generator).bit_generator.state)


def set_state(
    state: Mapping[str, Any], generator: Generator | np.random.Generator | None = None
) -> None:
    """Let a generator, by default NumPy's global one, go on from a state of ``get_state``.

    Raises
    ------
    NumgradTypeError
        If ``state`` is no dictionary, or ``generator`` is none.
    NumgradValueError
        If it is not the state of such a generator, which stays as it was.

    Examples
    --------
    >>> import numgrad as ng
    >>> rng = ng.random.default_rng(0)
    >>> state = ng.random.get_state(rng)
    >>> first = rng.normal()
    >>> ng.random.set_state(state, rng)
    >>> rng.normal() == first
    tensor(True)
    """
    _refuse_trace("set_state")
    target: Any = np.random
    if generator is not None:
        target = generator_of("set_state", generator).bit_generator
    if not isinstance(state, Mapping):
        raise NumgradTypeError(
            f"set_state: takes a dictionary as get_state returns it, got {type(state).__name__}"
        )
    kind = type(np.random.get_bit_generator() if generator is None else target)  # pyright: ignore
    trial: Any = kind(0)
    if generator is None:
        trial = np.random.RandomState(trial)
    try:
        _check_words(state, trial.get_state(legacy=False) if generator is None else trial.state)
        _put(trial, state)
    except Exception as error:
        raise NumgradValueError(
            f"set_state: this is no state of a {kind.__name__} ({error}); give what get_state "
            "returned for a generator of that kind"
        ) from None
    _put(target, state)


def _put(source: Any, state: Mapping[str, Any]) -> None:
    if isinstance(source, np.random.BitGenerator):
        source.state = dict(state)
    else:
        source.set_state(dict(state))


def _check_words(state: Mapping[str, Any], like: Mapping[str, Any]) -> None:
    """Raise unless ``state`` has what ``like`` has; NumPy takes places outside of arrays."""
    for name, value in like.items():
        if name not in state:
            raise ValueError(f"it has no {name!r}")
        found = state[name]
        if isinstance(value, Mapping):
            if not isinstance(found, Mapping):
                raise ValueError(f"its {name!r} is a {type(found).__name__}")
            _check_words(found, value)
        elif isinstance(value, np.ndarray):
            words = np.asarray(found)
            if words.shape != value.shape or words.dtype != value.dtype:
                raise ValueError(f"its {name!r} has shape {words.shape} and dtype {words.dtype}")
        elif isinstance(value, float):
            float(found)
        elif isinstance(value, str):
            if found != value:
                raise ValueError(f"its {name!r} is {found!r}")
        else:
            length = max([v.size for v in like.values() if isinstance(v, np.ndarray)], default=0)
            if not 0 <= index(found) <= (length if name in ("pos", "buffer_pos") else 2**128):
                raise ValueError(f"its {name!r} is {found}")


def _refuse_trace(name: str) -> None:
    interpreting.ground.once(
        f"{name}: the state of a generator is read and set outside of a compiled function, "
        "whose random numbers are drawn at each call"
    )
