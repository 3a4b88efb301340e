"""What the arguments of layers may be: ranges of names that mean the same in every layer."""

from __future__ import annotations

from numgrad.core import options
from numgrad.core.options import Option

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
