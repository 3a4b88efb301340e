"""The functions behind the modules, which take their parameters as arguments."""

from numgrad.nn.functional.activation import celu as celu
from numgrad.nn.functional.activation import elu as elu
from numgrad.nn.functional.activation import gelu as gelu
from numgrad.nn.functional.activation import hardtanh as hardtanh
from numgrad.nn.functional.activation import leaky_relu as leaky_relu
from numgrad.nn.functional.activation import log_softmax as log_softmax
from numgrad.nn.functional.activation import logsigmoid as logsigmoid
from numgrad.nn.functional.activation import mish as mish
from numgrad.nn.functional.activation import prelu as prelu
from numgrad.nn.functional.activation import relu as relu
from numgrad.nn.functional.activation import relu6 as relu6
from numgrad.nn.functional.activation import selu as selu
from numgrad.nn.functional.activation import sigmoid as sigmoid
from numgrad.nn.functional.activation import silu as silu
from numgrad.nn.functional.activation import softmax as softmax
from numgrad.nn.functional.activation import softmin as softmin
from numgrad.nn.functional.activation import softplus as softplus
from numgrad.nn.functional.activation import softsign as softsign
from numgrad.nn.functional.activation import tanh as tanh
from numgrad.nn.functional.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from numgrad.nn.functional.conv import conv1d as conv1d
from numgrad.nn.functional.conv import conv2d as conv2d
from numgrad.nn.functional.conv import conv_transpose1d as conv_transpose1d
from numgrad.nn.functional.conv import conv_transpose2d as conv_transpose2d
from numgrad.nn.functional.distance import cosine_embedding_loss as cosine_embedding_loss
from numgrad.nn.functional.distance import cosine_similarity as cosine_similarity
from numgrad.nn.functional.distance import pairwise_distance as pairwise_distance
from numgrad.nn.functional.distance import triplet_margin_loss as triplet_margin_loss
from numgrad.nn.functional.dropout import dropout as dropout
from numgrad.nn.functional.dropout import dropout1d as dropout1d
from numgrad.nn.functional.dropout import dropout2d as dropout2d
from numgrad.nn.functional.embedding import embedding as embedding
from numgrad.nn.functional.embedding import one_hot as one_hot
from numgrad.nn.functional.likelihood import gaussian_nll_loss as gaussian_nll_loss
from numgrad.nn.functional.likelihood import kl_div as kl_div
from numgrad.nn.functional.likelihood import poisson_nll_loss as poisson_nll_loss
from numgrad.nn.functional.linear import bilinear as bilinear
from numgrad.nn.functional.linear import linear as linear
from numgrad.nn.functional.loss import binary_cross_entropy as binary_cross_entropy
from numgrad.nn.functional.loss import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from numgrad.nn.functional.loss import cross_entropy as cross_entropy
from numgrad.nn.functional.loss import huber_loss as huber_loss
from numgrad.nn.functional.loss import l1_loss as l1_loss
from numgrad.nn.functional.loss import mse_loss as mse_loss
from numgrad.nn.functional.loss import nll_loss as nll_loss
from numgrad.nn.functional.loss import smooth_l1_loss as smooth_l1_loss
from numgrad.nn.functional.normalization import batch_norm as batch_norm
from numgrad.nn.functional.normalization import group_norm as group_norm
from numgrad.nn.functional.normalization import layer_norm as layer_norm
from numgrad.nn.functional.normalization import normalize as normalize
from numgrad.nn.functional.normalization import rms_norm as rms_norm
from numgrad.nn.functional.padding import pad as pad
from numgrad.nn.functional.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from numgrad.nn.functional.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from numgrad.nn.functional.pooling import avg_pool1d as avg_pool1d
from numgrad.nn.functional.pooling import avg_pool2d as avg_pool2d
from numgrad.nn.functional.pooling import max_pool1d as max_pool1d
from numgrad.nn.functional.pooling import max_pool2d as max_pool2d
