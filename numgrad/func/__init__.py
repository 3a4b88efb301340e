"""Functions that turn functions into their derivatives."""

from numgrad.func.transforms import grad as grad
from numgrad.func.transforms import hessian as hessian
from numgrad.func.transforms import jacobian as jacobian
from numgrad.func.transforms import value_and_grad as value_and_grad
