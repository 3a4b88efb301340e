"""Numba's definitions of the instructions of ``accumulation``."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types


def stay_apart(typingctx):
    def codegen(context, builder, signature, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen


def _ordered(name: str) -> Callable[..., Any]:
    def typed(typingctx, a, b):
        if not (a == b and isinstance(a, types.Float)):
            return None

        def codegen(context, builder, signature, args):
            ty = args[0].type
            function = builder.module.declare_intrinsic(name, [ty], ir.FunctionType(ty, [ty, ty]))
            return builder.call(function, args, fastmath=("nnan", "nsz"))

        return a(a, b), codegen

    return typed


ordered_maximum = _ordered("llvm.maxnum")
ordered_minimum = _ordered("llvm.minnum")
