"""The functions behind the modules, which take their parameters as arguments.

>>> import numgrad as ng
>>> ng.nn.functional.softmax(ng.zeros(2), dim=0)
tensor([0.5, 0.5])
"""

from numgrad.core.absent import absent as _absent
from numgrad.nn.activation.functional import celu as celu
from numgrad.nn.activation.functional import elu as elu
from numgrad.nn.activation.functional import gelu as gelu
from numgrad.nn.activation.functional import hardtanh as hardtanh
from numgrad.nn.activation.functional import leaky_relu as leaky_relu
from numgrad.nn.activation.functional import log_softmax as log_softmax
from numgrad.nn.activation.functional import logsigmoid as logsigmoid
from numgrad.nn.activation.functional import mish as mish
from numgrad.nn.activation.functional import prelu as prelu
from numgrad.nn.activation.functional import relu as relu
from numgrad.nn.activation.functional import relu6 as relu6
from numgrad.nn.activation.functional import selu as selu
from numgrad.nn.activation.functional import sigmoid as sigmoid
from numgrad.nn.activation.functional import silu as silu
from numgrad.nn.activation.functional import softmax as softmax
from numgrad.nn.activation.functional import softmin as softmin
from numgrad.nn.activation.functional import softplus as softplus
from numgrad.nn.activation.functional import softsign as softsign
from numgrad.nn.activation.functional import tanh as tanh
from numgrad.nn.activation.piecewise import glu as glu
from numgrad.nn.activation.piecewise import gumbel_softmax as gumbel_softmax
from numgrad.nn.activation.piecewise import hardshrink as hardshrink
from numgrad.nn.activation.piecewise import hardsigmoid as hardsigmoid
from numgrad.nn.activation.piecewise import hardswish as hardswish
from numgrad.nn.activation.piecewise import rrelu as rrelu
from numgrad.nn.activation.piecewise import softshrink as softshrink
from numgrad.nn.activation.piecewise import tanhshrink as tanhshrink
from numgrad.nn.activation.piecewise import threshold as threshold
from numgrad.nn.attention import scaled_dot_product_attention as scaled_dot_product_attention
from numgrad.nn.convolution.functional import conv1d as conv1d
from numgrad.nn.convolution.functional import conv2d as conv2d
from numgrad.nn.convolution.functional import conv_transpose1d as conv_transpose1d
from numgrad.nn.convolution.functional import conv_transpose2d as conv_transpose2d
from numgrad.nn.convolution.volume import conv3d as conv3d
from numgrad.nn.convolution.volume import conv_transpose3d as conv_transpose3d
from numgrad.nn.dropout import alpha_dropout as alpha_dropout
from numgrad.nn.dropout import dropout as dropout
from numgrad.nn.dropout import dropout1d as dropout1d
from numgrad.nn.dropout import dropout2d as dropout2d
from numgrad.nn.dropout import dropout3d as dropout3d
from numgrad.nn.dropout import feature_alpha_dropout as feature_alpha_dropout
from numgrad.nn.embedding import embedding as embedding
from numgrad.nn.embedding import one_hot as one_hot
from numgrad.nn.embedding_bag import embedding_bag as embedding_bag
from numgrad.nn.interpolation import affine_grid as affine_grid
from numgrad.nn.interpolation import grid_sample as grid_sample
from numgrad.nn.interpolation import interpolate as interpolate
from numgrad.nn.interpolation import upsample as upsample
from numgrad.nn.interpolation import upsample_bilinear as upsample_bilinear
from numgrad.nn.interpolation import upsample_nearest as upsample_nearest
from numgrad.nn.linear import bilinear as bilinear
from numgrad.nn.linear import linear as linear
from numgrad.nn.loss.ctc import ctc_loss as ctc_loss
from numgrad.nn.loss.distance import cosine_embedding_loss as cosine_embedding_loss
from numgrad.nn.loss.distance import cosine_similarity as cosine_similarity
from numgrad.nn.loss.distance import pairwise_distance as pairwise_distance
from numgrad.nn.loss.distance import pdist as pdist
from numgrad.nn.loss.distance import triplet_margin_loss as triplet_margin_loss
from numgrad.nn.loss.functional import binary_cross_entropy as binary_cross_entropy
from numgrad.nn.loss.functional import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from numgrad.nn.loss.functional import cross_entropy as cross_entropy
from numgrad.nn.loss.functional import huber_loss as huber_loss
from numgrad.nn.loss.functional import l1_loss as l1_loss
from numgrad.nn.loss.functional import mse_loss as mse_loss
from numgrad.nn.loss.functional import nll_loss as nll_loss
from numgrad.nn.loss.functional import smooth_l1_loss as smooth_l1_loss
from numgrad.nn.loss.likelihood import gaussian_nll_loss as gaussian_nll_loss
from numgrad.nn.loss.likelihood import kl_div as kl_div
from numgrad.nn.loss.likelihood import poisson_nll_loss as poisson_nll_loss
from numgrad.nn.loss.margin import hinge_embedding_loss as hinge_embedding_loss
from numgrad.nn.loss.margin import margin_ranking_loss as margin_ranking_loss
from numgrad.nn.loss.margin import multi_margin_loss as multi_margin_loss
from numgrad.nn.loss.margin import multilabel_margin_loss as multilabel_margin_loss
from numgrad.nn.loss.margin import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from numgrad.nn.loss.margin import soft_margin_loss as soft_margin_loss
from numgrad.nn.loss.margin import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from numgrad.nn.normalization.functional import batch_norm as batch_norm
from numgrad.nn.normalization.functional import group_norm as group_norm
from numgrad.nn.normalization.functional import instance_norm as instance_norm
from numgrad.nn.normalization.functional import layer_norm as layer_norm
from numgrad.nn.normalization.functional import local_response_norm as local_response_norm
from numgrad.nn.normalization.functional import normalize as normalize
from numgrad.nn.normalization.functional import rms_norm as rms_norm
from numgrad.nn.padding import pad as pad
from numgrad.nn.pooling.fractional import fractional_max_pool2d as fractional_max_pool2d
from numgrad.nn.pooling.fractional import fractional_max_pool3d as fractional_max_pool3d
from numgrad.nn.pooling.functional import adaptive_avg_pool1d as adaptive_avg_pool1d
from numgrad.nn.pooling.functional import adaptive_avg_pool2d as adaptive_avg_pool2d
from numgrad.nn.pooling.functional import avg_pool1d as avg_pool1d
from numgrad.nn.pooling.functional import avg_pool2d as avg_pool2d
from numgrad.nn.pooling.functional import max_pool1d as max_pool1d
from numgrad.nn.pooling.functional import max_pool2d as max_pool2d
from numgrad.nn.pooling.places import adaptive_max_pool1d as adaptive_max_pool1d
from numgrad.nn.pooling.places import adaptive_max_pool2d as adaptive_max_pool2d
from numgrad.nn.pooling.places import adaptive_max_pool3d as adaptive_max_pool3d
from numgrad.nn.pooling.places import lp_pool1d as lp_pool1d
from numgrad.nn.pooling.places import lp_pool2d as lp_pool2d
from numgrad.nn.pooling.places import lp_pool3d as lp_pool3d
from numgrad.nn.pooling.places import max_unpool1d as max_unpool1d
from numgrad.nn.pooling.places import max_unpool2d as max_unpool2d
from numgrad.nn.pooling.places import max_unpool3d as max_unpool3d
from numgrad.nn.pooling.volume import adaptive_avg_pool3d as adaptive_avg_pool3d
from numgrad.nn.pooling.volume import avg_pool3d as avg_pool3d
from numgrad.nn.pooling.volume import max_pool3d as max_pool3d
from numgrad.nn.rearrangement import channel_shuffle as channel_shuffle
from numgrad.nn.rearrangement import fold as fold
from numgrad.nn.rearrangement import pixel_shuffle as pixel_shuffle
from numgrad.nn.rearrangement import pixel_unshuffle as pixel_unshuffle
from numgrad.nn.rearrangement import unfold as unfold

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
