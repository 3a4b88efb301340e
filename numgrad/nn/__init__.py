"""Modules: functions with parameters, made of one another."""

from numgrad.nn import functional as functional
from numgrad.nn import init as init
from numgrad.nn.linear import Bilinear as Bilinear
from numgrad.nn.linear import Identity as Identity
from numgrad.nn.linear import Linear as Linear
from numgrad.nn.module import Module as Module
from numgrad.nn.parameter import Buffer as Buffer
from numgrad.nn.parameter import Parameter as Parameter
