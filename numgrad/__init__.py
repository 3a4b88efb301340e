"""NumPy code gets gradients at compiled speed on a CPU.

Wrap an array in a ``Tensor``, go on writing NumPy, call ``backward``; or hand a function to
``grad`` or ``value_and_grad``; or compile it, its gradient included, with ``jit``. Names, promotion
and the default of float64 are NumPy's; autograd, modules and optimizers are PyTorch's.

>>> import numpy as np
>>> import numgrad as ng
>>> x = ng.tensor([0.5, 1.0], requires_grad=True)
>>> np.sum(np.exp(-x) * x).backward()
>>> x.grad
tensor([0.30326533, 0.        ])
>>> def loss(x):
...     return np.sum((x - 1.0) ** 2)
>>> ng.grad(loss)(np.zeros(2))
array([-2., -2.])
>>> ng.jit(ng.value_and_grad(loss))(np.zeros(2))
(np.float64(2.0), array([-2., -2.]))

Where to look:

======================  ==========================================================================
``ng.Tensor``           an array that records; made by ``tensor``, ``asarray``, ``zeros``, ...
``ng.<operation>``      NumPy's functions by NumPy's names, and some of PyTorch's; ``ng.ops`` shows
                        formula, gradient and machine code of each; ``elementwise`` and
                        ``primitive`` declare more
``ng.grad``, ...        derivatives of functions: ``value_and_grad``, ``jacobian``, ``hessian``;
                        their products with vectors: ``vjp``, ``jvp``, ``linearize``, ``hvp``
``ng.vmap``             functions of one example for whole batches
``ng.scan``, ...        loops as functions: ``fori_loop``, ``while_loop``, ``map``,
                        ``associative_scan``; branches: ``cond``, ``switch``
``ng.odeint``           solves initial value problems by such loops; ``solve_ivp``: by SciPy
``ng.func``             these by themselves
``ng.tree``             nested containers of arrays: ``map``, ``flatten``, ``ravel``, ``register``
``ng.jit``              compiles a function; ``jit_stats`` says what it did
``ng.autograd``         ``backward``, ``grad``, hooks, graphs, forward mode, ``Function``
``ng.array_api``        the namespace of the Array API standard
``ng.nn``               modules; ``ng.nn.functional``: layers, activations and losses as functions
``ng.optim``            optimizers, schedules of learning rates, ``minimize`` over Tensors
``ng.minimize``, ...    SciPy's solvers with exact derivatives: ``least_squares``, ``curve_fit``,
                        ``root``, ``quad``; ``objective`` and ``linear_operator`` for others
``ng.implicit``         roots, fixed points, minima, linear systems: differentiated as solutions
``ng.sparse``           products with sparse matrices and systems of them
``ng.random``           Tensors of random numbers from NumPy's generators
``ng.data``             datasets, and loaders of batches
``ng.distributed``      processes that communicate by MPI, by PyTorch's names
``ng.parallel``         functions on the pieces of their data, on executors and Dask
``ng.io``               files of nested arrays: ``save`` and ``load``
``ng.testing``          checks of gradients
``ng.benchmark``        decorators for ``python -m numgrad bench``
``ng.profiler``         where the time of a program goes
``ng.viz``              drawings of what was recorded
``ng.config``           settings, and the number of threads
``ng.errors``           the exceptions; each is a ``NumgradError`` and a built-in
======================  ==========================================================================

What a program does not use is not loaded: sub-packages and ``jit`` come when first asked for.
"""

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any as _Any

from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import e as e
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import inf as inf
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import nan as nan
from numpy import newaxis as newaxis
from numpy import pi as pi
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64

from numgrad import autograd as autograd
from numgrad import config as config
from numgrad import errors as errors
from numgrad import random as random
from numgrad.autograd.modes import enable_grad as enable_grad
from numgrad.autograd.modes import inference_mode as inference_mode
from numgrad.autograd.modes import is_grad_enabled as is_grad_enabled
from numgrad.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from numgrad.autograd.modes import no_grad as no_grad
from numgrad.autograd.modes import set_grad_enabled as set_grad_enabled
from numgrad.autograd.row_sparse_tensor import RowSparseTensor as RowSparseTensor
from numgrad.config import get_num_threads as get_num_threads
from numgrad.config import set_num_threads as set_num_threads
from numgrad.errors import GradcheckError as GradcheckError
from numgrad.errors import NumgradAssertionError as NumgradAssertionError
from numgrad.errors import NumgradAttributeError as NumgradAttributeError
from numgrad.errors import NumgradError as NumgradError
from numgrad.errors import NumgradIndexError as NumgradIndexError
from numgrad.errors import NumgradKeyError as NumgradKeyError
from numgrad.errors import NumgradLinAlgError as NumgradLinAlgError
from numgrad.errors import NumgradNotImplementedError as NumgradNotImplementedError
from numgrad.errors import NumgradOverflowError as NumgradOverflowError
from numgrad.errors import NumgradRuntimeError as NumgradRuntimeError
from numgrad.errors import NumgradTraceError as NumgradTraceError
from numgrad.errors import NumgradTypeError as NumgradTypeError
from numgrad.errors import NumgradValueError as NumgradValueError
from numgrad.tensors.checkpoint import checkpoint as checkpoint
from numgrad.tensors.checkpoint import checkpoint_sequential as checkpoint_sequential
from numgrad.tensors.checkpoint import set_checkpoint_early_stop as set_checkpoint_early_stop
from numgrad.tensors.creation import arange as arange
from numgrad.tensors.creation import asarray as asarray
from numgrad.tensors.creation import empty as empty
from numgrad.tensors.creation import empty_like as empty_like
from numgrad.tensors.creation import eye as eye
from numgrad.tensors.creation import from_numpy as from_numpy
from numgrad.tensors.creation import full as full
from numgrad.tensors.creation import full_like as full_like
from numgrad.tensors.creation import linspace as linspace
from numgrad.tensors.creation import ones as ones
from numgrad.tensors.creation import ones_like as ones_like
from numgrad.tensors.creation import tensor as tensor
from numgrad.tensors.creation import zeros as zeros
from numgrad.tensors.creation import zeros_like as zeros_like
from numgrad.tensors.tensor import Tensor as Tensor
from numgrad.transforms import associative_scan as associative_scan
from numgrad.transforms import cond as cond
from numgrad.transforms import custom_jvp as custom_jvp
from numgrad.transforms import custom_vjp as custom_vjp
from numgrad.transforms import fori_loop as fori_loop
from numgrad.transforms import grad as grad
from numgrad.transforms import hessian as hessian
from numgrad.transforms import hvp as hvp
from numgrad.transforms import jacfwd as jacfwd
from numgrad.transforms import jacobian as jacobian
from numgrad.transforms import jacrev as jacrev
from numgrad.transforms import jvp as jvp
from numgrad.transforms import linearize as linearize
from numgrad.transforms import map as map
from numgrad.transforms import scan as scan
from numgrad.transforms import stop_gradient as stop_gradient
from numgrad.transforms import switch as switch
from numgrad.transforms import value_and_grad as value_and_grad
from numgrad.transforms import vhp as vhp
from numgrad.transforms import vjp as vjp
from numgrad.transforms import vmap as vmap
from numgrad.transforms import while_loop as while_loop

# isort: split
from numgrad.core.op import OPS as _OPS
from numgrad.operations.lazy_operations import LATE as _LATE
from numgrad.operations.lazy_operations import NAMESPACES as _NAMESPACES
from numgrad.operations.lazy_operations import declared as _declared
from numgrad.tensors import numpy_protocol as _numpy_protocol  # noqa: F401 (for what it attaches)

__version__ = "0.1.0"

_SUBPACKAGES = (
    "array_api",
    "benchmark",
    "data",
    "distributed",
    "func",
    "implicit",
    "io",
    "nn",
    "optim",
    "parallel",
    "profiler",
    "sparse",
    "stats",
    "testing",
    "tree",
    "viz",
)
_SUBPACKAGES += tuple(sorted({_home.partition(".")[2] for _home in _NAMESPACES.values()}))
_ON_FIRST_USE = {
    **{name: f"numgrad.{name}" for name in _SUBPACKAGES},
    "apply_along_axis": "numgrad.tensors.applying",
    "apply_over_axes": "numgrad.tensors.applying",
    "c_": "numgrad.tensors.creation",
    "constraint": "numgrad.optimize.constraints",
    "curve_fit": "numgrad.optimize.curve_fit",
    "curve_jac": "numgrad.optimize.models",
    "geomspace": "numgrad.tensors.creation",
    "jit": "numgrad.compiler.api",
    "jit_stats": "numgrad.compiler.inspect.report",
    "least_squares": "numgrad.optimize.least_squares",
    "linear_operator": "numgrad.optimize.objective",
    "load": "numgrad.io",
    "logspace": "numgrad.tensors.creation",
    "minimize": "numgrad.optimize.minimize",
    "objective": "numgrad.optimize.objective",
    **dict.fromkeys(("elementwise", "ops", "primitive"), "numgrad.nn.operations"),
    "piecewise": "numgrad.tensors.applying",
    "quad": "numgrad.optimize.quad",
    "r_": "numgrad.tensors.creation",
    "root": "numgrad.optimize.root",
    "save": "numgrad.io",
    "odeint": "numgrad.integrate",
    "solve_ivp": "numgrad.integrate",
    **_LATE,
}
"""Where to find what is loaded when it is first asked for: most programs need a part of it."""


def __getattr__(name: str) -> _Any:
    if name not in _ON_FIRST_USE:
        message = f"module 'numgrad' has no attribute {name!r}"
        if name[:1] != "_":  # what protocols ask for
            message = _import_module("numgrad.tensors.missing").said_of_module(name, __all__)
        raise errors.NumgradAttributeError(message, name=name)
    if name in _LATE:
        value = _declared(name)
    else:
        module = _import_module(_ON_FIRST_USE[name])
        value = module if name in _SUBPACKAGES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


for _op in _OPS.values():
    if not _op.internal:
        globals().update({_name: _op for _name in _op.names})
__all__ = sorted(  # pyright: ignore[reportUnsupportedDunderAll]
    {"autograd", "config", "errors", "random", *_ON_FIRST_USE}
    | {_n for _n, _v in globals().items() if _n[0] != "_" and not isinstance(_v, _ModuleType)}
)
