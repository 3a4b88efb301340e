"""Functions that turn functions into their derivatives; ``ng.grad`` is ``ng.func.grad``."""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.tensors.checkpoint": "checkpoint",
        "numgrad.transforms.custom": "custom_jvp custom_vjp",
        "numgrad.transforms.derivatives": "grad hessian jacfwd jacobian jacrev value_and_grad",
        "numgrad.transforms.mapping": "vmap",
        "numgrad.transforms.products": "hvp jvp linearize stop_gradient vhp vjp",
    },
    {
        "functional_call": "ng.nn.functional_call",
        "replace_all_batch_norm_modules_": "ng.nn.replace_all_batch_norm_modules_",
        "stack_module_state": "ng.nn.stack_module_state",
        "grad_and_value": "value_and_grad",
        "functionalize": "ng.jit",
    },
    late={"numgrad.compiler.inspect.sparsity": "sparsity"},  # which needs SciPy and the compiler
)
