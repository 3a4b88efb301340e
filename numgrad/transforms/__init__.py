"""Functions that turn functions into their derivatives."""

from numgrad.transforms.custom import custom_jvp as custom_jvp
from numgrad.transforms.custom import custom_vjp as custom_vjp
from numgrad.transforms.derivatives import grad as grad
from numgrad.transforms.derivatives import hessian as hessian
from numgrad.transforms.derivatives import jacfwd as jacfwd
from numgrad.transforms.derivatives import jacobian as jacobian
from numgrad.transforms.derivatives import jacrev as jacrev
from numgrad.transforms.derivatives import value_and_grad as value_and_grad
from numgrad.transforms.products import hvp as hvp
from numgrad.transforms.products import jvp as jvp
from numgrad.transforms.products import linearize as linearize
from numgrad.transforms.products import stop_gradient as stop_gradient
from numgrad.transforms.products import vhp as vhp
from numgrad.transforms.products import vjp as vjp
from numgrad.transforms.vmap import vmap as vmap
