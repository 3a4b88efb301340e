"""Gradients and parameters of a model as a whole: their norm, their clipping, one vector of all.

``rnn`` pads and packs sequences of different lengths, ``parametrize`` makes parameters functions of
others.
"""

from numgrad.core.absent import absent as _absent
from numgrad.nn.utils import parametrizations as parametrizations
from numgrad.nn.utils import parametrize as parametrize
from numgrad.nn.utils import rnn as rnn
from numgrad.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from numgrad.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from numgrad.nn.utils.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from numgrad.nn.utils.clip_grad import get_total_norm as get_total_norm
from numgrad.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from numgrad.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters
from numgrad.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from numgrad.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from numgrad.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from numgrad.nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from numgrad.nn.utils.fusion import skip_init as skip_init
from numgrad.nn.utils.reparametrize import remove_spectral_norm as remove_spectral_norm
from numgrad.nn.utils.reparametrize import remove_weight_norm as remove_weight_norm
from numgrad.nn.utils.reparametrize import spectral_norm as spectral_norm
from numgrad.nn.utils.reparametrize import weight_norm as weight_norm

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
