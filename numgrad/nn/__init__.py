"""Modules: functions with parameters, made of one another."""

from numgrad.nn import functional as functional
from numgrad.nn import init as init
from numgrad.nn import utils as utils
from numgrad.nn.activation import CELU as CELU
from numgrad.nn.activation import ELU as ELU
from numgrad.nn.activation import GELU as GELU
from numgrad.nn.activation import SELU as SELU
from numgrad.nn.activation import Hardtanh as Hardtanh
from numgrad.nn.activation import LeakyReLU as LeakyReLU
from numgrad.nn.activation import LogSigmoid as LogSigmoid
from numgrad.nn.activation import LogSoftmax as LogSoftmax
from numgrad.nn.activation import Mish as Mish
from numgrad.nn.activation import PReLU as PReLU
from numgrad.nn.activation import ReLU as ReLU
from numgrad.nn.activation import ReLU6 as ReLU6
from numgrad.nn.activation import Sigmoid as Sigmoid
from numgrad.nn.activation import SiLU as SiLU
from numgrad.nn.activation import Softmax as Softmax
from numgrad.nn.activation import Softmin as Softmin
from numgrad.nn.activation import Softplus as Softplus
from numgrad.nn.activation import Softsign as Softsign
from numgrad.nn.activation import Tanh as Tanh
from numgrad.nn.attention import MultiheadAttention as MultiheadAttention
from numgrad.nn.containers import ModuleDict as ModuleDict
from numgrad.nn.containers import ModuleList as ModuleList
from numgrad.nn.containers import Sequential as Sequential
from numgrad.nn.conv import Conv1d as Conv1d
from numgrad.nn.conv import Conv2d as Conv2d
from numgrad.nn.conv import ConvTranspose1d as ConvTranspose1d
from numgrad.nn.conv import ConvTranspose2d as ConvTranspose2d
from numgrad.nn.dropout import Dropout as Dropout
from numgrad.nn.dropout import Dropout1d as Dropout1d
from numgrad.nn.dropout import Dropout2d as Dropout2d
from numgrad.nn.embedding import Embedding as Embedding
from numgrad.nn.flatten import Flatten as Flatten
from numgrad.nn.flatten import Unflatten as Unflatten
from numgrad.nn.functional_call import functional_call as functional_call
from numgrad.nn.functional_call import stack_module_state as stack_module_state
from numgrad.nn.linear import Bilinear as Bilinear
from numgrad.nn.linear import Identity as Identity
from numgrad.nn.linear import Linear as Linear
from numgrad.nn.loss import BCELoss as BCELoss
from numgrad.nn.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from numgrad.nn.loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from numgrad.nn.loss import CrossEntropyLoss as CrossEntropyLoss
from numgrad.nn.loss import GaussianNLLLoss as GaussianNLLLoss
from numgrad.nn.loss import HuberLoss as HuberLoss
from numgrad.nn.loss import KLDivLoss as KLDivLoss
from numgrad.nn.loss import L1Loss as L1Loss
from numgrad.nn.loss import MSELoss as MSELoss
from numgrad.nn.loss import NLLLoss as NLLLoss
from numgrad.nn.loss import PoissonNLLLoss as PoissonNLLLoss
from numgrad.nn.loss import SmoothL1Loss as SmoothL1Loss
from numgrad.nn.loss import TripletMarginLoss as TripletMarginLoss
from numgrad.nn.module import Module as Module
from numgrad.nn.module_hooks import (
    register_module_buffer_registration_hook as register_module_buffer_registration_hook,
)
from numgrad.nn.module_hooks import register_module_forward_hook as register_module_forward_hook
from numgrad.nn.module_hooks import (
    register_module_forward_pre_hook as register_module_forward_pre_hook,
)
from numgrad.nn.module_hooks import (
    register_module_full_backward_hook as register_module_full_backward_hook,
)
from numgrad.nn.module_hooks import (
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
)
from numgrad.nn.module_hooks import (
    register_module_module_registration_hook as register_module_module_registration_hook,
)
from numgrad.nn.module_hooks import (
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
)
from numgrad.nn.normalization import BatchNorm1d as BatchNorm1d
from numgrad.nn.normalization import BatchNorm2d as BatchNorm2d
from numgrad.nn.normalization import GroupNorm as GroupNorm
from numgrad.nn.normalization import LayerNorm as LayerNorm
from numgrad.nn.normalization import RMSNorm as RMSNorm
from numgrad.nn.parameter import Buffer as Buffer
from numgrad.nn.parameter import Parameter as Parameter
from numgrad.nn.parameter_containers import ParameterDict as ParameterDict
from numgrad.nn.parameter_containers import ParameterList as ParameterList
from numgrad.nn.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from numgrad.nn.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from numgrad.nn.pooling import AvgPool1d as AvgPool1d
from numgrad.nn.pooling import AvgPool2d as AvgPool2d
from numgrad.nn.pooling import MaxPool1d as MaxPool1d
from numgrad.nn.pooling import MaxPool2d as MaxPool2d
from numgrad.nn.rnn import GRU as GRU
from numgrad.nn.rnn import LSTM as LSTM
from numgrad.nn.rnn import RNN as RNN
from numgrad.nn.rnn_cells import GRUCell as GRUCell
from numgrad.nn.rnn_cells import LSTMCell as LSTMCell
from numgrad.nn.rnn_cells import RNNCell as RNNCell
