"""The eager tape: tensors' autograd state, nodes, the engine, grad modes."""

from numgrad.autograd.engine import backward as backward
from numgrad.autograd.engine import grad as grad
from numgrad.autograd.modes import enable_grad as enable_grad
from numgrad.autograd.modes import is_grad_enabled as is_grad_enabled
from numgrad.autograd.modes import no_grad as no_grad
from numgrad.autograd.modes import set_grad_enabled as set_grad_enabled
from numgrad.autograd.node import Node as Node
