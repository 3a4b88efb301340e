"""Functions that turn functions into their derivatives."""

from numgrad.transforms.derivatives import grad as grad
from numgrad.transforms.derivatives import hessian as hessian
from numgrad.transforms.derivatives import jacobian as jacobian
from numgrad.transforms.derivatives import value_and_grad as value_and_grad
