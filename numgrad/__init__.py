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
``ng.ecosystem``        adapters to iminuit, lmfit, NLopt, emcee, nutpie, scikit-learn, PyMC, ...
``ng.implicit``         roots, fixed points, minima, linear systems: differentiated as solutions
``ng.integrate``        SciPy's integrals of functions and of samples
``ng.interpolate``      SciPy's interpolants: splines, piecewise polynomials, regular grids
``ng.sparse``           products with sparse matrices and systems of them
``ng.spatial``          distances of points and of all pairs of them
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

Note [Loading by name]
----------------------
``import numgrad`` loads nothing but a table: modules come when a name is first asked for (PEP 562;
SPEC 1), so that a program which only calls ``ng.load_native`` starts in milliseconds. The first
other name loads ``numgrad.tensors``, which is Tensors with the usual operations; the table of
``operations.lazy_operations`` has the names of all. Who imports a module by itself, such as
``numgrad.linalg``, has them with the first operation that is called (``State.ground`` in
``core.interpreter``). Editors and type checkers read ``__init__.pyi``.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from numgrad.core.namespaces import loading as _loading, namespace as _namespace
from numgrad.errors import NumgradAttributeError as _NumgradAttributeError

__version__ = "0.1.0"

_namespace(
    globals(),
    {},
    late={
        "numpy": "complex64 complex128 e float32 float64 inf int8 int16 int32 int64 nan newaxis "
        "pi uint8 uint16 uint32 uint64",
        "numgrad": "array_api autograd benchmark config data distributed ecosystem errors fft func "
        "implicit integrate interpolate io linalg ndimage nn optim parallel profiler random signal "
        "sparse spatial special stats testing tree viz",
        "numgrad.autograd.modes": "enable_grad inference_mode is_grad_enabled "
        "is_inference_mode_enabled no_grad set_grad_enabled",
        "numgrad.autograd.row_sparse_tensor": "RowSparseTensor",
        "numgrad.codegen.adjoint.outputs": "like",
        "numgrad.compiler.api": "jit",
        "numgrad.compiler.inspect.statistics": "jit_stats",
        "numgrad.compiler.native.export": "export",
        "numgrad.compiler.native.loading": "load_native",
        "numgrad.config": "get_num_threads set_num_threads",
        "numgrad.core.loop_kernels": "kernel",
        "numgrad.errors": "GradcheckError NumgradAssertionError NumgradAttributeError "
        "NumgradError NumgradImportError NumgradIndexError NumgradKeyError NumgradLinAlgError "
        "NumgradNotImplementedError NumgradOverflowError NumgradRuntimeError NumgradTraceError "
        "NumgradTypeError NumgradValueError",
        "numgrad.integrate": "odeint quad solve_ivp",
        "numgrad.io": "load save",
        "numgrad.nn.operations": "elementwise ops primitive",
        "numgrad.optimize.constraints": "constraint",
        "numgrad.optimize.curve_fit": "curve_fit",
        "numgrad.optimize.least_squares": "least_squares",
        "numgrad.optimize.minimize": "minimize",
        "numgrad.optimize.models": "curve_jac",
        "numgrad.optimize.objective": "linear_operator objective",
        "numgrad.optimize.root": "root",
        "numgrad.tensors.applying": "apply_along_axis apply_over_axes piecewise",
        "numgrad.tensors.checkpoint": "checkpoint checkpoint_sequential set_checkpoint_early_stop",
        "numgrad.tensors.creation": "arange asarray c_ empty empty_like eye from_numpy full "
        "full_like geomspace linspace logspace ones ones_like r_ tensor zeros zeros_like",
        "numgrad.tensors.strided": "as_strided",
        "numgrad.tensors.tensor": "Tensor",
        "numgrad.transforms.control_flow": "associative_scan cond fori_loop map scan switch "
        "while_loop",
        "numgrad.transforms.custom": "custom_jvp custom_vjp",
        "numgrad.transforms.derivatives": "grad hessian jacfwd jacobian jacrev value_and_grad",
        "numgrad.transforms.mapping": "vmap",
        "numgrad.transforms.products": "hvp jvp linearize stop_gradient vhp vjp",
    },
)
_load, _names = globals()["__getattr__"], frozenset(globals().pop("__all__"))
_LIGHT = frozenset(("config", "errors", "load_native"))
"""Names of what does without Tensors."""


def __getattr__(name: str) -> _Any:
    if name[:2] == "__" and name != "__all__":  # what protocols ask for
        raise _NumgradAttributeError(f"module 'numgrad' has no attribute {name!r}", name=name)
    if name not in _LIGHT:  # in one order, also of threads that begin at the same time
        with _loading():
            _import_module("numgrad.tensors")
    if name in _names:
        return _load(name)
    operations = _import_module("numgrad.operations.lazy_operations")
    if name == "__all__":
        value = sorted(_names | operations.NAMES)
    elif name in operations.NAMES:
        value = operations.declared(name)
    else:
        message = f"module 'numgrad' has no attribute {name!r}"
        if name[:1] != "_":
            message = _import_module("numgrad.tensors.missing").said_of_module(name, __dir__())
        raise _NumgradAttributeError(message, name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), *(name for name in globals() if name.startswith("__"))]


def load_ipython_extension(ipython: _Any) -> None:
    """Add ``%%ngprofile`` and ``%ngreport`` to IPython: ``%load_ext numgrad``."""
    _import_module("numgrad.cli.jupyter").load(ipython)
