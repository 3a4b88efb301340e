"""Modules: functions with parameters, made of one another."""

from numgrad.nn.module import Module as Module
from numgrad.nn.parameter import Buffer as Buffer
from numgrad.nn.parameter import Parameter as Parameter
