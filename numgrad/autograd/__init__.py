"""Gradients of what was recorded: PyTorch's ``torch.autograd``.

``backward`` adds to ``.grad`` of the leaves, ``grad`` returns gradients and touches nothing;
``no_grad`` and its like say what is recorded; ``detect_anomaly`` finds where a NaN came from. A
``Function`` is an operation with a backward of yours. ``functional`` has Jacobians, Hessians and
their products with vectors, ``forward_ad`` forward mode, ``graph`` nodes, edges and hooks.

>>> import numgrad as ng
>>> x = ng.tensor(3.0, requires_grad=True)
>>> (slope,) = ng.autograd.grad(x**3, x, create_graph=True)
>>> ng.autograd.grad(slope, x)
(tensor(18.),)
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {},
    {
        "gradcheck": "ng.testing.gradcheck",
        "gradgradcheck": "ng.testing.gradgradcheck",
        "profiler": "ng.profiler",
        "anomaly_mode": "its names are in ng.autograd itself",
        "grad_mode": "its names are in ng.autograd itself",
        "set_multithreading_enabled": "a backward runs in the thread that calls it; how many "
        "threads compute is said by ng.set_num_threads",
        "enforce_grad_layout_policy": "a .grad lies as its gradient came; store a new one in it",
        "NestedIOFunction": "ng.autograd.Function with ng.tree.leaves of nested arguments",
    },
    late={
        "numgrad.autograd": "forward_ad function functional graph",
        "numgrad.autograd.anomaly": "detect_anomaly is_anomaly_check_nan_enabled "
        "is_anomaly_enabled set_detect_anomaly",
        "numgrad.autograd.engine.backward": "backward grad",
        "numgrad.autograd.function": "Function",
        "numgrad.autograd.modes": "Variable enable_grad inference_mode is_grad_enabled "
        "is_inference_mode_enabled no_grad set_grad_enabled",
    },
)
