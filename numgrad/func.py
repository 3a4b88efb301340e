"""Functions that turn functions into their derivatives; ``ng.grad`` is ``ng.func.grad``."""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.tensors.checkpoint": "checkpoint",
        "numgrad.transforms": "custom_jvp custom_vjp grad hessian hvp jacfwd jacobian jacrev jvp "
        "linearize stop_gradient value_and_grad vhp vjp vmap",
    },
    {
        "functional_call": "ng.nn.functional_call",
        "stack_module_state": "ng.nn.stack_module_state",
        "grad_and_value": "value_and_grad",
        "functionalize": "ng.jit",
    },
    late={"numgrad.compiler.inspect.sparsity": "sparsity"},  # which needs SciPy and the compiler
)
