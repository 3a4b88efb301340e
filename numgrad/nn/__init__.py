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

from numgrad.core.absent import absent as _absent
from numgrad.nn import functional as functional
from numgrad.nn import init as init
from numgrad.nn import parallel as parallel
from numgrad.nn import utils as utils
from numgrad.nn.activation.module import CELU as CELU
from numgrad.nn.activation.module import ELU as ELU
from numgrad.nn.activation.module import GELU as GELU
from numgrad.nn.activation.module import SELU as SELU
from numgrad.nn.activation.module import Hardtanh as Hardtanh
from numgrad.nn.activation.module import LeakyReLU as LeakyReLU
from numgrad.nn.activation.module import LogSigmoid as LogSigmoid
from numgrad.nn.activation.module import LogSoftmax as LogSoftmax
from numgrad.nn.activation.module import Mish as Mish
from numgrad.nn.activation.module import PReLU as PReLU
from numgrad.nn.activation.module import ReLU as ReLU
from numgrad.nn.activation.module import ReLU6 as ReLU6
from numgrad.nn.activation.module import Sigmoid as Sigmoid
from numgrad.nn.activation.module import SiLU as SiLU
from numgrad.nn.activation.module import Softmax as Softmax
from numgrad.nn.activation.module import Softmin as Softmin
from numgrad.nn.activation.module import Softplus as Softplus
from numgrad.nn.activation.module import Softsign as Softsign
from numgrad.nn.activation.module import Tanh as Tanh
from numgrad.nn.activation.piecewise_module import GLU as GLU
from numgrad.nn.activation.piecewise_module import Hardshrink as Hardshrink
from numgrad.nn.activation.piecewise_module import Hardsigmoid as Hardsigmoid
from numgrad.nn.activation.piecewise_module import Hardswish as Hardswish
from numgrad.nn.activation.piecewise_module import RReLU as RReLU
from numgrad.nn.activation.piecewise_module import Softmax2d as Softmax2d
from numgrad.nn.activation.piecewise_module import Softshrink as Softshrink
from numgrad.nn.activation.piecewise_module import Tanhshrink as Tanhshrink
from numgrad.nn.activation.piecewise_module import Threshold as Threshold
from numgrad.nn.adaptive_softmax import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from numgrad.nn.attention import MultiheadAttention as MultiheadAttention
from numgrad.nn.container import Flatten as Flatten
from numgrad.nn.container import ModuleDict as ModuleDict
from numgrad.nn.container import ModuleList as ModuleList
from numgrad.nn.container import ParameterDict as ParameterDict
from numgrad.nn.container import ParameterList as ParameterList
from numgrad.nn.container import Sequential as Sequential
from numgrad.nn.container import Unflatten as Unflatten
from numgrad.nn.convolution.module import Conv1d as Conv1d
from numgrad.nn.convolution.module import Conv2d as Conv2d
from numgrad.nn.convolution.module import Conv3d as Conv3d
from numgrad.nn.convolution.module import ConvTranspose1d as ConvTranspose1d
from numgrad.nn.convolution.module import ConvTranspose2d as ConvTranspose2d
from numgrad.nn.convolution.module import ConvTranspose3d as ConvTranspose3d
from numgrad.nn.dropout import AlphaDropout as AlphaDropout
from numgrad.nn.dropout import Dropout as Dropout
from numgrad.nn.dropout import Dropout1d as Dropout1d
from numgrad.nn.dropout import Dropout2d as Dropout2d
from numgrad.nn.dropout import Dropout3d as Dropout3d
from numgrad.nn.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from numgrad.nn.embedding import Embedding as Embedding
from numgrad.nn.embedding_bag import EmbeddingBag as EmbeddingBag
from numgrad.nn.interpolation import Upsample as Upsample
from numgrad.nn.interpolation import UpsamplingBilinear2d as UpsamplingBilinear2d
from numgrad.nn.interpolation import UpsamplingNearest2d as UpsamplingNearest2d
from numgrad.nn.lazy import LazyBatchNorm1d as LazyBatchNorm1d
from numgrad.nn.lazy import LazyBatchNorm2d as LazyBatchNorm2d
from numgrad.nn.lazy import LazyBatchNorm3d as LazyBatchNorm3d
from numgrad.nn.lazy import LazyConv1d as LazyConv1d
from numgrad.nn.lazy import LazyConv2d as LazyConv2d
from numgrad.nn.lazy import LazyConv3d as LazyConv3d
from numgrad.nn.lazy import LazyConvTranspose1d as LazyConvTranspose1d
from numgrad.nn.lazy import LazyConvTranspose2d as LazyConvTranspose2d
from numgrad.nn.lazy import LazyConvTranspose3d as LazyConvTranspose3d
from numgrad.nn.lazy import LazyInstanceNorm1d as LazyInstanceNorm1d
from numgrad.nn.lazy import LazyInstanceNorm2d as LazyInstanceNorm2d
from numgrad.nn.lazy import LazyInstanceNorm3d as LazyInstanceNorm3d
from numgrad.nn.lazy import LazyLinear as LazyLinear
from numgrad.nn.lazy import UninitializedParameter as UninitializedParameter
from numgrad.nn.linear import Bilinear as Bilinear
from numgrad.nn.linear import Identity as Identity
from numgrad.nn.linear import Linear as Linear
from numgrad.nn.loss.margin_module import CosineSimilarity as CosineSimilarity
from numgrad.nn.loss.margin_module import HingeEmbeddingLoss as HingeEmbeddingLoss
from numgrad.nn.loss.margin_module import MarginRankingLoss as MarginRankingLoss
from numgrad.nn.loss.margin_module import MultiLabelMarginLoss as MultiLabelMarginLoss
from numgrad.nn.loss.margin_module import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from numgrad.nn.loss.margin_module import MultiMarginLoss as MultiMarginLoss
from numgrad.nn.loss.margin_module import PairwiseDistance as PairwiseDistance
from numgrad.nn.loss.margin_module import SoftMarginLoss as SoftMarginLoss
from numgrad.nn.loss.margin_module import (
    TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss,
)
from numgrad.nn.loss.module import BCELoss as BCELoss
from numgrad.nn.loss.module import BCEWithLogitsLoss as BCEWithLogitsLoss
from numgrad.nn.loss.module import CosineEmbeddingLoss as CosineEmbeddingLoss
from numgrad.nn.loss.module import CrossEntropyLoss as CrossEntropyLoss
from numgrad.nn.loss.module import CTCLoss as CTCLoss
from numgrad.nn.loss.module import GaussianNLLLoss as GaussianNLLLoss
from numgrad.nn.loss.module import HuberLoss as HuberLoss
from numgrad.nn.loss.module import KLDivLoss as KLDivLoss
from numgrad.nn.loss.module import L1Loss as L1Loss
from numgrad.nn.loss.module import MSELoss as MSELoss
from numgrad.nn.loss.module import NLLLoss as NLLLoss
from numgrad.nn.loss.module import PoissonNLLLoss as PoissonNLLLoss
from numgrad.nn.loss.module import SmoothL1Loss as SmoothL1Loss
from numgrad.nn.loss.module import TripletMarginLoss as TripletMarginLoss
from numgrad.nn.module.functional_call import functional_call as functional_call
from numgrad.nn.module.functional_call import stack_module_state as stack_module_state
from numgrad.nn.module.module import Module as Module
from numgrad.nn.module.module_hooks import (
    register_module_buffer_registration_hook as register_module_buffer_registration_hook,
)
from numgrad.nn.module.module_hooks import (
    register_module_forward_hook as register_module_forward_hook,
)
from numgrad.nn.module.module_hooks import (
    register_module_forward_pre_hook as register_module_forward_pre_hook,
)
from numgrad.nn.module.module_hooks import (
    register_module_full_backward_hook as register_module_full_backward_hook,
)
from numgrad.nn.module.module_hooks import (
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
)
from numgrad.nn.module.module_hooks import (
    register_module_module_registration_hook as register_module_module_registration_hook,
)
from numgrad.nn.module.module_hooks import (
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
)
from numgrad.nn.module.parameter import Buffer as Buffer
from numgrad.nn.module.parameter import Parameter as Parameter
from numgrad.nn.normalization.instance_module import InstanceNorm1d as InstanceNorm1d
from numgrad.nn.normalization.instance_module import InstanceNorm2d as InstanceNorm2d
from numgrad.nn.normalization.instance_module import InstanceNorm3d as InstanceNorm3d
from numgrad.nn.normalization.instance_module import LocalResponseNorm as LocalResponseNorm
from numgrad.nn.normalization.module import BatchNorm1d as BatchNorm1d
from numgrad.nn.normalization.module import BatchNorm2d as BatchNorm2d
from numgrad.nn.normalization.module import BatchNorm3d as BatchNorm3d
from numgrad.nn.normalization.module import GroupNorm as GroupNorm
from numgrad.nn.normalization.module import LayerNorm as LayerNorm
from numgrad.nn.normalization.module import RMSNorm as RMSNorm
from numgrad.nn.padding import CircularPad1d as CircularPad1d
from numgrad.nn.padding import CircularPad2d as CircularPad2d
from numgrad.nn.padding import CircularPad3d as CircularPad3d
from numgrad.nn.padding import ConstantPad1d as ConstantPad1d
from numgrad.nn.padding import ConstantPad2d as ConstantPad2d
from numgrad.nn.padding import ConstantPad3d as ConstantPad3d
from numgrad.nn.padding import ReflectionPad1d as ReflectionPad1d
from numgrad.nn.padding import ReflectionPad2d as ReflectionPad2d
from numgrad.nn.padding import ReflectionPad3d as ReflectionPad3d
from numgrad.nn.padding import ReplicationPad1d as ReplicationPad1d
from numgrad.nn.padding import ReplicationPad2d as ReplicationPad2d
from numgrad.nn.padding import ReplicationPad3d as ReplicationPad3d
from numgrad.nn.padding import ZeroPad1d as ZeroPad1d
from numgrad.nn.padding import ZeroPad2d as ZeroPad2d
from numgrad.nn.padding import ZeroPad3d as ZeroPad3d
from numgrad.nn.parallel.batch_norm import SyncBatchNorm as SyncBatchNorm
from numgrad.nn.pooling.fractional import FractionalMaxPool2d as FractionalMaxPool2d
from numgrad.nn.pooling.fractional import FractionalMaxPool3d as FractionalMaxPool3d
from numgrad.nn.pooling.module import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from numgrad.nn.pooling.module import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from numgrad.nn.pooling.module import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from numgrad.nn.pooling.module import AvgPool1d as AvgPool1d
from numgrad.nn.pooling.module import AvgPool2d as AvgPool2d
from numgrad.nn.pooling.module import AvgPool3d as AvgPool3d
from numgrad.nn.pooling.module import MaxPool1d as MaxPool1d
from numgrad.nn.pooling.module import MaxPool2d as MaxPool2d
from numgrad.nn.pooling.module import MaxPool3d as MaxPool3d
from numgrad.nn.pooling.places_module import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from numgrad.nn.pooling.places_module import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from numgrad.nn.pooling.places_module import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from numgrad.nn.pooling.places_module import LPPool1d as LPPool1d
from numgrad.nn.pooling.places_module import LPPool2d as LPPool2d
from numgrad.nn.pooling.places_module import LPPool3d as LPPool3d
from numgrad.nn.pooling.places_module import MaxUnpool1d as MaxUnpool1d
from numgrad.nn.pooling.places_module import MaxUnpool2d as MaxUnpool2d
from numgrad.nn.pooling.places_module import MaxUnpool3d as MaxUnpool3d
from numgrad.nn.rearrangement import ChannelShuffle as ChannelShuffle
from numgrad.nn.rearrangement import Fold as Fold
from numgrad.nn.rearrangement import PixelShuffle as PixelShuffle
from numgrad.nn.rearrangement import PixelUnshuffle as PixelUnshuffle
from numgrad.nn.rearrangement import Unfold as Unfold
from numgrad.nn.recurrent.cells import GRUCell as GRUCell
from numgrad.nn.recurrent.cells import LSTMCell as LSTMCell
from numgrad.nn.recurrent.cells import RNNCell as RNNCell
from numgrad.nn.recurrent.module import GRU as GRU
from numgrad.nn.recurrent.module import LSTM as LSTM
from numgrad.nn.recurrent.module import RNN as RNN
from numgrad.nn.transformer import Transformer as Transformer
from numgrad.nn.transformer import TransformerDecoder as TransformerDecoder
from numgrad.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from numgrad.nn.transformer import TransformerEncoder as TransformerEncoder
from numgrad.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer

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
