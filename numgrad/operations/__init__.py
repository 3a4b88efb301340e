"""The operations, one module a field; importing this package fills the table ``OPS``."""

from importlib import import_module as _import_module

_MODULES = """
    arithmetic arrangement choice compare cumulative diagonal einsum error_gamma_logistic
    exponential extend index join matmul norm reduce region scatter shape take trigonometric write
"""
for _name in _MODULES.split():
    _import_module(f"{__name__}.{_name}")
