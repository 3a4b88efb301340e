"""Arguments of layers: ranges of names that mean the same in every layer, tuples along axes."""

from __future__ import annotations

from typing import Any

from numgrad.core import options
from numgrad.core.options import Option
from numgrad.errors import NumgradTypeError, NumgradValueError

_SIZE, _COUNT = Option(at_least=0), Option(above=0)


COMMON: dict[str, Option] = {
    **dict.fromkeys(
        [
            *("in_features", "out_features", "in2_features", "in_channels", "out_channels"),
            *("num_features", "num_channels", "num_embeddings", "embedding_dim"),
            *("input_size", "proj_size", "kdim", "vdim"),
        ],
        _SIZE,
    ),
    **dict.fromkeys(
        [
            *("in1_features", "hidden_size", "num_layers", "embed_dim", "num_heads"),
            *("groups", "num_groups", "num_parameters", "d_model", "nhead", "dim_feedforward"),
            *("num_encoder_layers", "num_decoder_layers"),
        ],
        _COUNT,
    ),
    **dict.fromkeys(["eps", "layer_norm_eps"], Option(at_least=0)),
    "dropout": Option(at_least=0, at_most=1),
}
"""The vocabulary: Note [Declared options]."""


checked = options.checked(COMMON)


def along_axes(operation: str, what: str, value: Any, rank: int, least: int) -> tuple[int, ...]:
    """An option as a tuple with an integer, at least ``least``, for each of ``rank`` axes."""
    several = isinstance(value, tuple | list) or getattr(value, "ndim", 0) == 1
    entries: tuple[Any, ...] = tuple(value) if several else (value,)
    if len(entries) == 1:
        entries *= rank
    try:
        entries = tuple([n.__index__() for n in entries])
    except (AttributeError, TypeError):
        raise NumgradTypeError(
            f"{operation}: {what} must be an integer or a tuple of {rank}, got {value!r}"
        ) from None
    if len(entries) != rank or min(entries) < least:
        raise NumgradValueError(
            f"{operation}: {what} must be an integer, or a tuple of {rank}, of at least {least}; "
            f"got {value!r}"
        )
    return entries
