"""The functions behind the modules, which take their parameters as arguments.

>>> import numgrad as ng
>>> ng.nn.functional.softmax(ng.zeros(2), dim=0)
tensor([0.5, 0.5])
"""

# fmt: off
# isort: off

from numgrad.core.absent import absent as _absent
from numgrad.nn.activation.activations import (
    celu, elu, gelu, glu, gumbel_softmax, hardshrink, hardsigmoid, hardswish, hardtanh,
    leaky_relu, log_softmax, logsigmoid, mish, prelu, relu, relu6, rrelu, selu, sigmoid, silu,
    softmax, softmin, softplus, softshrink, softsign, tanh, tanhshrink, threshold,
)
from numgrad.nn.attention import scaled_dot_product_attention
from numgrad.nn.convolution.correlation import conv1d, conv2d, conv3d
from numgrad.nn.convolution.transposed import conv_transpose1d, conv_transpose2d, conv_transpose3d
from numgrad.nn.dropout import (
    alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout,
)
from numgrad.nn.embedding import embedding, one_hot
from numgrad.nn.embedding_bag import embedding_bag
from numgrad.nn.linear import bilinear, linear
from numgrad.nn.loss.cross_entropy import cross_entropy, nll_loss
from numgrad.nn.loss.ctc import ctc_loss
from numgrad.nn.loss.distance import (
    cosine_embedding_loss, cosine_similarity, pairwise_distance, pdist, triplet_margin_loss,
)
from numgrad.nn.loss.likelihood import (
    binary_cross_entropy, binary_cross_entropy_with_logits, gaussian_nll_loss, kl_div,
    poisson_nll_loss,
)
from numgrad.nn.loss.margin import (
    hinge_embedding_loss, margin_ranking_loss, multi_margin_loss, multilabel_margin_loss,
    multilabel_soft_margin_loss, soft_margin_loss, triplet_margin_with_distance_loss,
)
from numgrad.nn.loss.regression import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from numgrad.nn.normalization.batch import batch_norm
from numgrad.nn.normalization.instance import instance_norm, local_response_norm, normalize
from numgrad.nn.normalization.layer import group_norm, layer_norm, rms_norm
from numgrad.nn.padding import pad
from numgrad.nn.pooling.average import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, avg_pool1d, avg_pool2d,
    avg_pool3d, lp_pool1d, lp_pool2d, lp_pool3d,
)
from numgrad.nn.pooling.fractional import fractional_max_pool2d, fractional_max_pool3d
from numgrad.nn.pooling.maximum import (
    adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d, max_pool1d, max_pool2d,
    max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d,
)
from numgrad.nn.rearrangement import channel_shuffle, fold, pixel_shuffle, pixel_unshuffle, unfold
from numgrad.nn.resampling import (
    affine_grid, grid_sample, interpolate, upsample, upsample_bilinear, upsample_nearest,
)

# isort: on
# fmt: on

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "elu", "embedding", "embedding_bag", "feature_alpha_dropout", "fold",
    "fractional_max_pool2d", "fractional_max_pool3d", "gaussian_nll_loss", "gelu", "glu",
    "grid_sample", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div",
    "l1_loss", "layer_norm", "leaky_relu", "linear", "local_response_norm", "log_softmax",
    "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d",
    "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss",
    "normalize", "one_hot", "pad", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle",
    "poisson_nll_loss", "prelu", "relu", "relu6", "rms_norm", "rrelu",
    "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss",
    "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
    "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample",
    "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

__getattr__ = _absent(
    __name__,
    __all__,
    {
        "*_with_indices": "the pool with return_indices=True",
        "linear_cross_entropy": "linear and cross_entropy",
        "multi_head_attention_forward": "nn.MultiheadAttention",
        "grouped_mm": "matmul of stacks",
        "scaled_mm": "there are no kernels of such dtypes; use matmul",
        "scaled_grouped_mm": "there are no kernels of such dtypes; use matmul",
        "conv_tbc": "conv1d, whose first axis is that of examples",
        "native_channel_shuffle": "channel_shuffle",
    },
)


def __dir__() -> list[str]:
    return __all__
