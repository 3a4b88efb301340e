"""The functions behind the modules, which take their parameters as arguments.

>>> import numgrad as ng
>>> ng.nn.functional.softmax(ng.zeros(2), dim=0)
tensor([0.5, 0.5])
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.nn.activation": "celu elu gelu glu gumbel_softmax hardshrink hardsigmoid "
        "hardswish hardtanh leaky_relu log_softmax logsigmoid mish prelu relu relu6 rrelu selu "
        "sigmoid silu softmax softmin softplus softshrink softsign tanh tanhshrink threshold",
        "numgrad.nn.attention": "scaled_dot_product_attention",
        "numgrad.nn.average_pooling": "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
        "avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d",
        "numgrad.nn.batch_normalization": "batch_norm",
        "numgrad.nn.convolution": "conv1d conv2d conv3d",
        "numgrad.nn.dropout": "alpha_dropout dropout dropout1d dropout2d dropout3d "
        "feature_alpha_dropout",
        "numgrad.nn.embedding": "embedding one_hot",
        "numgrad.nn.embedding_bag": "embedding_bag",
        "numgrad.nn.fractional_pooling": "fractional_max_pool2d fractional_max_pool3d",
        "numgrad.nn.instance_normalization": "instance_norm local_response_norm normalize",
        "numgrad.nn.layer_normalization": "group_norm layer_norm rms_norm",
        "numgrad.nn.linear": "bilinear linear",
        "numgrad.nn.loss.cross_entropy": "cross_entropy linear_cross_entropy nll_loss",
        "numgrad.nn.loss.ctc": "ctc_loss",
        "numgrad.nn.loss.likelihood": "binary_cross_entropy binary_cross_entropy_with_logits "
        "gaussian_nll_loss kl_div poisson_nll_loss",
        "numgrad.nn.loss.ranking": "cosine_embedding_loss cosine_similarity pairwise_distance "
        "pdist triplet_margin_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
        "multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss "
        "triplet_margin_with_distance_loss",
        "numgrad.nn.loss.regression": "huber_loss l1_loss mse_loss smooth_l1_loss",
        "numgrad.nn.max_pooling": "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
        "max_pool1d max_pool2d max_pool3d max_unpool1d max_unpool2d max_unpool3d",
        "numgrad.nn.padding": "pad",
        "numgrad.nn.rearrangement": "channel_shuffle fold pixel_shuffle pixel_unshuffle unfold",
        "numgrad.nn.resampling": "affine_grid grid_sample interpolate upsample upsample_bilinear "
        "upsample_nearest",
        "numgrad.nn.transposed_convolution": "conv_transpose1d conv_transpose2d conv_transpose3d",
    },
    {
        "*_with_indices": "the pool with return_indices=True",
        "multi_head_attention_forward": "nn.MultiheadAttention",
        "grouped_mm": "matmul of stacks",
        "scaled_mm": "there are no kernels of such dtypes; use matmul",
        "scaled_grouped_mm": "there are no kernels of such dtypes; use matmul",
        "conv_tbc": "conv1d, whose first axis is that of examples",
        "native_channel_shuffle": "channel_shuffle",
    },
)
