"""The array a user holds: its members, how it is made, what NumPy does with it."""

from importlib import import_module as _import_module

_import_module("numgrad.tensors.numpy_protocol")  # which completes Tensor
