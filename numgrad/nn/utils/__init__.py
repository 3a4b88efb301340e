"""Gradients and parameters of a model as a whole: their norm, their clipping, one vector of all.

``rnn`` pads and packs sequences of different lengths, ``parametrize`` makes parameters functions of
others, ``prune`` sets parts of them to zero.
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.nn.utils": "parametrizations parametrize prune rnn",
        "numgrad.nn.utils.clip_grad": "clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ "
        "get_total_norm",
        "numgrad.nn.utils.conversion": "parameters_to_vector vector_to_parameters "
        "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights "
        "consume_prefix_in_state_dict_if_present skip_init",
        "numgrad.nn.utils.reparametrize": "remove_spectral_norm remove_weight_norm spectral_norm "
        "weight_norm",
    },
    {
        "clip_grad_norm": "clip_grad_norm_",
        "convert_conv*": "arrays are in C order here",
        "stateless": "nn.functional_call",
    },
)
