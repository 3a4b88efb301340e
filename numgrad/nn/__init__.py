"""Modules: functions with parameters, made of one another."""

from numgrad.nn import functional as functional
from numgrad.nn import init as init
from numgrad.nn.attention import MultiheadAttention as MultiheadAttention
from numgrad.nn.linear import Bilinear as Bilinear
from numgrad.nn.linear import Identity as Identity
from numgrad.nn.linear import Linear as Linear
from numgrad.nn.module import Module as Module
from numgrad.nn.normalization import BatchNorm1d as BatchNorm1d
from numgrad.nn.normalization import BatchNorm2d as BatchNorm2d
from numgrad.nn.normalization import GroupNorm as GroupNorm
from numgrad.nn.normalization import LayerNorm as LayerNorm
from numgrad.nn.normalization import RMSNorm as RMSNorm
from numgrad.nn.parameter import Buffer as Buffer
from numgrad.nn.parameter import Parameter as Parameter
from numgrad.nn.rnn import GRU as GRU
from numgrad.nn.rnn import LSTM as LSTM
from numgrad.nn.rnn import RNN as RNN
from numgrad.nn.rnn_cells import GRUCell as GRUCell
from numgrad.nn.rnn_cells import LSTMCell as LSTMCell
from numgrad.nn.rnn_cells import RNNCell as RNNCell
