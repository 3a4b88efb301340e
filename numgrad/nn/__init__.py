"""Neural networks: modules are functions with parameters, made of one another.

Derive from ``Module`` or put modules together with ``Sequential``; ``parameters()`` goes to an
optimizer of ``ng.optim``. Layers: ``Linear``, ``Conv2d``, ``LSTM``, ``Transformer``, ``LayerNorm``,
``Dropout``, ``Embedding``, ``MaxPool2d``, ``Upsample`` and their kin; losses end with ``Loss``.
``functional`` has the same as functions of their parameters, ``init`` fills parameters, ``utils``
clips gradients, parametrizes modules and packs sequences, ``parallel`` trains on several processes.

>>> import numgrad as ng
>>> model = ng.nn.Sequential(ng.nn.Linear(3, 8), ng.nn.Tanh(), ng.nn.Linear(8, 1))
>>> loss = ng.nn.functional.mse_loss(model(ng.ones((5, 3))), ng.zeros((5, 1)))
>>> loss.backward()
>>> model[0].weight.grad.shape
(8, 3)
"""

# fmt: off
# isort: off

from numgrad.core.absent import absent as _absent
from numgrad.nn import functional, init, parallel, utils
from numgrad.nn.activation.layers import (
    CELU, ELU, GELU, GLU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid,
    LogSoftmax, Mish, PReLU, RReLU, ReLU, ReLU6, SELU, SiLU, Sigmoid, Softmax, Softmax2d,
    Softmin, Softplus, Softshrink, Softsign, Tanh, Tanhshrink, Threshold,
)
from numgrad.nn.adaptive_softmax import AdaptiveLogSoftmaxWithLoss
from numgrad.nn.attention import MultiheadAttention
from numgrad.nn.container import (
    Flatten, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential, Unflatten,
)
from numgrad.nn.convolution.correlation import Conv1d, Conv2d, Conv3d
from numgrad.nn.convolution.transposed import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from numgrad.nn.dropout import (
    AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout,
)
from numgrad.nn.embedding import Embedding
from numgrad.nn.embedding_bag import EmbeddingBag
from numgrad.nn.lazy import (
    LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d, LazyConv1d, LazyConv2d, LazyConv3d,
    LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d, LazyInstanceNorm1d,
    LazyInstanceNorm2d, LazyInstanceNorm3d, LazyLinear, UninitializedParameter,
)
from numgrad.nn.linear import Bilinear, Identity, Linear
from numgrad.nn.loss.cross_entropy import CrossEntropyLoss, NLLLoss
from numgrad.nn.loss.ctc import CTCLoss
from numgrad.nn.loss.distance import (
    CosineEmbeddingLoss, CosineSimilarity, PairwiseDistance, TripletMarginLoss,
)
from numgrad.nn.loss.likelihood import (
    BCELoss, BCEWithLogitsLoss, GaussianNLLLoss, KLDivLoss, PoissonNLLLoss,
)
from numgrad.nn.loss.margin import (
    HingeEmbeddingLoss, MarginRankingLoss, MultiLabelMarginLoss, MultiLabelSoftMarginLoss,
    MultiMarginLoss, SoftMarginLoss, TripletMarginWithDistanceLoss,
)
from numgrad.nn.loss.regression import HuberLoss, L1Loss, MSELoss, SmoothL1Loss
from numgrad.nn.module.functional_call import functional_call, stack_module_state
from numgrad.nn.module.hooks import (
    register_module_buffer_registration_hook, register_module_forward_hook,
    register_module_forward_pre_hook, register_module_full_backward_hook,
    register_module_full_backward_pre_hook, register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from numgrad.nn.module.module import Module
from numgrad.nn.module.parameter import Buffer, Parameter
from numgrad.nn.normalization.batch import BatchNorm1d, BatchNorm2d, BatchNorm3d
from numgrad.nn.normalization.instance import (
    InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LocalResponseNorm,
)
from numgrad.nn.normalization.layer import GroupNorm, LayerNorm, RMSNorm
from numgrad.nn.padding import (
    CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d,
    ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d,
    ReplicationPad3d, ZeroPad1d, ZeroPad2d, ZeroPad3d,
)
from numgrad.nn.parallel.batch_norm import SyncBatchNorm
from numgrad.nn.pooling.average import (
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AvgPool1d, AvgPool2d, AvgPool3d,
    LPPool1d, LPPool2d, LPPool3d,
)
from numgrad.nn.pooling.fractional import FractionalMaxPool2d, FractionalMaxPool3d
from numgrad.nn.pooling.maximum import (
    AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d, MaxPool1d, MaxPool2d, MaxPool3d,
    MaxUnpool1d, MaxUnpool2d, MaxUnpool3d,
)
from numgrad.nn.rearrangement import ChannelShuffle, Fold, PixelShuffle, PixelUnshuffle, Unfold
from numgrad.nn.recurrent.layers import GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCell
from numgrad.nn.resampling import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d
from numgrad.nn.transformer import (
    Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer,
)

# isort: on
# fmt: on

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "GRU", "LSTM", "RNN", "SELU", "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveLogSoftmaxWithLoss", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear",
    "Buffer", "CTCLoss", "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d",
    "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d", "Conv3d",
    "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss",
    "CosineSimilarity", "CrossEntropyLoss", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d",
    "Embedding", "EmbeddingBag", "FeatureAlphaDropout", "Flatten", "Fold", "FractionalMaxPool2d",
    "FractionalMaxPool3d", "GRUCell", "GaussianNLLLoss", "GroupNorm", "Hardshrink", "Hardsigmoid",
    "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss", "Identity", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "KLDivLoss", "L1Loss", "LPPool1d", "LPPool2d", "LPPool3d",
    "LSTMCell", "LayerNorm", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d",
    "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
    "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear", "LeakyReLU",
    "Linear", "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "MSELoss", "MarginRankingLoss",
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "Mish",
    "Module", "ModuleDict", "ModuleList", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "MultiheadAttention", "NLLLoss", "PReLU", "PairwiseDistance", "Parameter",
    "ParameterDict", "ParameterList", "PixelShuffle", "PixelUnshuffle", "PoissonNLLLoss", "RMSNorm",
    "RNNCell", "RReLU", "ReLU", "ReLU6", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
    "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Sequential", "SiLU", "Sigmoid",
    "SmoothL1Loss", "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink",
    "Softsign", "SyncBatchNorm", "Tanh", "Tanhshrink", "Threshold", "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss", "Unflatten", "Unfold", "UninitializedParameter", "Upsample",
    "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
    "functional", "functional_call", "init", "parallel", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
    "stack_module_state", "utils",
]  # fmt: skip

__getattr__ = _absent(
    __name__,
    __all__,
    {
        "DataParallel": "DistributedDataParallel of nn.parallel, a process for each part",
        "NLLLoss2d": "NLLLoss takes images too",
        "Container": "Module",
        "CrossMapLRN2d": "LocalResponseNorm, which is right at the first channels too",
        "LinearCrossEntropyLoss": "Linear and CrossEntropyLoss",
        "RNNBase": "RNN, LSTM or GRU",
        "RNNCellBase": "RNNCell, LSTMCell or GRUCell",
        "quant*": "there are no quantized kernels",
        "qat": "there are no quantized kernels",
        "intrinsic": "there are no quantized kernels",
    },
)


def __dir__() -> list[str]:
    return __all__
