"""Gradients and parameters of a model as a whole: their norm, their clipping, one vector of all.

``rnn`` pads and packs sequences of different lengths, ``parametrize`` makes parameters functions of
others.
"""

# fmt: off
# isort: off

from numgrad.core.absent import absent as _absent
from numgrad.nn.utils import parametrizations, parametrize, rnn
from numgrad.nn.utils.clip_grad import (
    clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm,
)
from numgrad.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from numgrad.nn.utils.fusion import (
    fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights,
    skip_init,
)
from numgrad.nn.utils.reparametrize import (
    remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm,
)

# isort: on
# fmt: on

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm",
    "parameters_to_vector", "parametrizations", "parametrize", "remove_spectral_norm",
    "remove_weight_norm", "rnn", "skip_init", "spectral_norm", "vector_to_parameters",
    "weight_norm",
]  # fmt: skip

__getattr__ = _absent(
    __name__,
    __all__,
    {
        "clip_grad_norm": "clip_grad_norm_",
        "convert_conv*": "arrays are in C order here",
        "stateless": "nn.functional_call",
    },
)


def __dir__() -> list[str]:
    return __all__
