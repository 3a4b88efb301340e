"""Checks of gradients against finite differences, and of nested values.

>>> import numgrad as ng
>>> x = ng.tensor([0.3, 0.8], requires_grad=True)
>>> ng.testing.gradcheck(ng.tanh, (x,)), ng.testing.gradgradcheck(ng.tanh, (x,))
(True, True)
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.testing.comparing": "assert_close",
        "numgrad.testing.numerical": "gradcheck gradgradcheck",
    },
)
