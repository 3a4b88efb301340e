"""``Tensor`` completed: methods of the table, then its fixed members."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isfunction
from typing import Any

from numgrad.autograd.node import show_saved
from numgrad.autograd.variable import Tensor
from numgrad.core.documentation import Page
from numgrad.core.interpreter import install_eager
from numgrad.core.op import OPS, Op
from numgrad.operations import lazy_operations
from numgrad.tensors import inplace as methods
from numgrad.tensors.attributes import TensorAttributes
from numgrad.tensors.conversions import (
    COMPARISONS,
    TensorConversions,
    acceptable,
    operator,
    reflected,
)
from numgrad.tensors.eager import EagerInterpreter

_OF_A_CLASS = {"__doc__", "__firstlineno__", "__module__", "__slots__", "__static_attributes__"}
"""Attributes that every class has of its own."""


def _complete() -> None:
    """Attach everything to ``Tensor``: methods of the table first, then what is special."""
    for op in list(OPS.values()):
        attach(op)
    for name in lazy_operations.METHODS:
        setattr(Tensor, name, _late_method(name))
    for body in (TensorAttributes, TensorConversions):
        for name, member in vars(body).items():
            if name in _OF_A_CLASS:
                continue
            if isfunction(member) and member.__module__ == body.__module__:
                member.__qualname__ = f"Tensor.{name}"
            setattr(Tensor, name, member)
    Tensor.__module__ = "numgrad"


def attach(op: Op) -> None:
    """Give ``Tensor`` the operator and method of an operation, and nodes what they save."""
    show_saved((*op.inputs, *op.auxiliaries))
    if op.dunder is not None:
        if len(op.inputs) == 1:
            setattr(Tensor, f"__{op.dunder}__", _method(op))
        else:
            setattr(Tensor, f"__{op.dunder}__", operator(op))
            if op.dunder not in COMPARISONS:
                setattr(Tensor, f"__r{op.dunder}__", reflected(op))
                if methods.has_inplace_form(op):
                    setattr(Tensor, f"__i{op.dunder}__", methods.augmented(op, acceptable))
    if op.method:
        for name in (op.name, *op.aliases):
            setattr(Tensor, name, _method(op))
    if methods.has_inplace_form(op):
        for name in methods.inplace_names(op):
            setattr(Tensor, name, methods.inplace_method(op, name))


def _method(op: Op) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **params: Any) -> Any:
        return op(self, *args, **params)

    method.__name__ = method.__qualname__ = op.name
    method.__doc__ = Page(op, signed=False)
    vars(method)["__wrapped__"] = op  # whose signature it has
    return method


def _late_method(name: str) -> Callable[..., Any]:
    """The method of an operation that is not declared yet, which its own will replace."""

    def method(self: Tensor, *args: Any, **params: Any) -> Any:
        return lazy_operations.declared(name)(self, *args, **params)

    method.__name__ = method.__qualname__ = name
    return method


class _Eager(EagerInterpreter):
    """The eager interpreter, which gives Tensor the methods of operations that users register."""

    def attach(self, op: Op, before: Op | None) -> None:
        method = getattr(Tensor, op.name, None)
        replaced = before is not None and getattr(method, "__wrapped__", None) is before
        if method is None or replaced or op.name in lazy_operations.METHODS:
            attach(op)


lazy_operations.declare_usual()
install_eager(_Eager())
_complete()
