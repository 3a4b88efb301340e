"""Modules: functions with parameters, made of one another."""

from numgrad.nn import functional as functional
from numgrad.nn import init as init
from numgrad.nn.containers import ModuleDict as ModuleDict
from numgrad.nn.containers import ModuleList as ModuleList
from numgrad.nn.containers import Sequential as Sequential
from numgrad.nn.embedding import Embedding as Embedding
from numgrad.nn.flatten import Flatten as Flatten
from numgrad.nn.flatten import Unflatten as Unflatten
from numgrad.nn.functional_call import functional_call as functional_call
from numgrad.nn.functional_call import stack_module_state as stack_module_state
from numgrad.nn.linear import Bilinear as Bilinear
from numgrad.nn.linear import Identity as Identity
from numgrad.nn.linear import Linear as Linear
from numgrad.nn.module import Module as Module
from numgrad.nn.parameter import Buffer as Buffer
from numgrad.nn.parameter import Parameter as Parameter
from numgrad.nn.parameter_containers import ParameterDict as ParameterDict
from numgrad.nn.parameter_containers import ParameterList as ParameterList
