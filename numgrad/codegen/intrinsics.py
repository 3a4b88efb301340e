"""Single machine instructions that Numba has no spelling for.

Imported by the kernel library and by generated source only: importing this module imports Numba.
Every function takes and returns scalars, is inlined by LLVM, and stays vectorisable.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def instruction(definition: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's ``intrinsic``, typed as what it makes: the typing context is not passed in a call."""
    return intrinsic(definition)


_INT_OF_FLOAT = {types.float32: types.int32, types.float64: types.int64}
_FLOAT_OF_INT = {i: f for f, i in _INT_OF_FLOAT.items()}


@instruction
def fma(typingctx, a, b, c):
    """``a * b + c`` with one rounding."""
    if not (a == b == c and isinstance(a, types.Float)):
        return None

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    return a(a, a, a), codegen


@instruction
def bits(typingctx, x):
    """The bit pattern of a float as a signed integer of its width."""
    if x not in _INT_OF_FLOAT:
        return None
    out = _INT_OF_FLOAT[x]

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(out))

    return out(x), codegen


@instruction
def from_bits(typingctx, i):
    """The float whose bit pattern is the int32 or int64 ``i``."""
    if i not in _FLOAT_OF_INT:
        return None
    out = _FLOAT_OF_INT[i]

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(out))

    return out(i), codegen


@instruction
def select(typingctx, condition, a, b):
    """``a`` where ``condition`` holds, else ``b``; both are evaluated, nothing branches."""
    if not (isinstance(condition, types.Boolean) and a == b):
        return None

    def codegen(context, builder, signature, args):
        flag, x, y = args
        if flag.type != ir.IntType(1):
            flag = builder.trunc(flag, ir.IntType(1))
        return builder.select(flag, x, y)

    return a(condition, a, b), codegen


def _float_intrinsic(name: str, arity: int, doc: str):
    """An LLVM intrinsic of ``arity`` equal floats, result of the same type."""

    def typed(typingctx, x, *rest):
        if not isinstance(x, types.Float) or any(r != x for r in rest):
            return None

        def codegen(context, builder, signature, args):
            ty = args[0].type
            function = builder.module.declare_intrinsic(
                name, [ty], ir.FunctionType(ty, [ty] * arity)
            )
            return builder.call(function, args)

        return x(*([x] * arity)), codegen

    def unary(typingctx, x):
        return typed(typingctx, x)

    def binary(typingctx, x, y):
        return typed(typingctx, x, y)

    template = unary if arity == 1 else binary
    template.__name__ = template.__qualname__ = name.rsplit(".", 1)[1]
    template.__doc__ = doc
    return instruction(template)


sqrt = _float_intrinsic("llvm.sqrt", 1, "Square root, correctly rounded.")
fabs = _float_intrinsic("llvm.fabs", 1, "Absolute value: clears the sign bit.")
floor = _float_intrinsic("llvm.floor", 1, "Largest integral value not above ``x``.")
ceil = _float_intrinsic("llvm.ceil", 1, "Smallest integral value not below ``x``.")
trunc = _float_intrinsic("llvm.trunc", 1, "Integral part, rounded towards zero.")
rint = _float_intrinsic("llvm.rint", 1, "Nearest integral value, halves to even.")
copysign = _float_intrinsic("llvm.copysign", 2, "Magnitude of ``x`` with the sign of ``y``.")
maximum = _float_intrinsic("llvm.maximum", 2, "Larger of two; NaN if either is NaN.")
minimum = _float_intrinsic("llvm.minimum", 2, "Smaller of two; NaN if either is NaN.")


@instruction
def add_any_order(typingctx, a, b):
    """``a + b`` that LLVM may reassociate with its like: the accumulation step of a sum."""
    if not (a == b and isinstance(a, types.Float)):
        return None

    def codegen(context, builder, signature, args):
        return builder.fadd(*args, flags=("reassoc",))

    return a(a, b), codegen


@instruction
def multiply_any_order(typingctx, a, b):
    """``a * b`` that LLVM may reassociate with its like: the accumulation step of a product."""
    if not (a == b and isinstance(a, types.Float)):
        return None

    def codegen(context, builder, signature, args):
        return builder.fmul(*args, flags=("reassoc",))

    return a(a, b), codegen


# Note [Multiply-add without hardware]
# ``llvm.fma`` on a CPU without FMA calls a software routine, 33 times slower than a product and a
# sum. Elementary functions therefore use ``mul_add``, which is ``fma`` where the CPU has it and the
# two-rounding form elsewhere; error-free transformations there go through Dekker's splitting.
def _cpu_has_fma() -> bool:
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    machine = binding.get_process_triple().split("-")[0]
    return bool(features.get("fma")) or machine in ("aarch64", "arm64")


HAS_FMA = _cpu_has_fma()


@instruction
def mul_add(typingctx, a, b, c):
    """``a * b + c``, in one rounding where the CPU can."""
    if not (a == b == c and isinstance(a, types.Float)):
        return None

    def codegen(context, builder, signature, args):
        if HAS_FMA:
            return builder.fma(*args)
        return builder.fadd(builder.fmul(args[0], args[1]), args[2])

    return a(a, a, a), codegen


F64_NAN = np.float64(np.nan)
F32_NAN = np.float32(np.nan)


# Note [Alias scopes]
# A loop over several arrays given by addresses vectorises only if LLVM knows that they do not
# overlap. Checking that as the loop starts is what it does for up to eight pairs, beyond that it
# gives up. ``load`` and ``store`` say it instead: each of ``scopes`` arrays has a scope of its own,
# and an access within one is declared not to touch the others.
def _scoped(builder: Any, access: Any, scope: int, scopes: int) -> None:
    module = builder.module
    domain = module.add_metadata([ir.MetaDataString(module, "numgrad arrays")])
    each = [
        module.add_metadata([ir.MetaDataString(module, f"numgrad array {k}"), domain])
        for k in range(scopes)
    ]
    others = [each[k] for k in range(scopes) if k != scope]
    access.set_metadata("alias.scope", module.add_metadata([each[scope]]))
    if others:
        access.set_metadata("noalias", module.add_metadata(others))


def _at(context: Any, builder: Any, dtype: Any, address: Any, index: Any) -> Any:
    pointer = builder.inttoptr(address, context.get_data_type(dtype).as_pointer())
    return builder.gep(pointer, [index], inbounds=True)


@intrinsic(prefer_literal=True)
def load(typingctx, like, address, index, scope, scopes):
    """Element ``index`` of the array at ``address``, of the dtype ``like``: Note [Alias scopes]."""
    dtype = like.dtype

    def codegen(context, builder, signature, args):
        value = builder.load(_at(context, builder, dtype, args[1], args[2]))
        _scoped(builder, value, scope.literal_value, scopes.literal_value)
        return context.data_model_manager[dtype].from_data(builder, value)

    return dtype(like, address, index, scope, scopes), codegen


@intrinsic(prefer_literal=True)
def load_if(typingctx, like, condition, address, index, scope, scopes):
    """Like ``load`` where ``condition`` holds, else zero: memory is not touched."""
    dtype = like.dtype

    def codegen(context, builder, signature, args):
        flag = args[1]
        if flag.type != ir.IntType(1):
            flag = builder.trunc(flag, ir.IntType(1))
        before = builder.block
        with builder.if_then(flag):
            data = builder.load(_at(context, builder, dtype, args[2], args[3]))
            _scoped(builder, data, scope.literal_value, scopes.literal_value)
            value = context.data_model_manager[dtype].from_data(builder, data)
            inside = builder.block
        result = builder.phi(value.type)
        result.add_incoming(ir.Constant(value.type, None), before)
        result.add_incoming(value, inside)
        return result

    return dtype(like, condition, address, index, scope, scopes), codegen


@intrinsic(prefer_literal=True)
def store(typingctx, value, address, index, scope, scopes):
    """Set element ``index`` of the array at ``address``: Note [Alias scopes]."""

    def codegen(context, builder, signature, args):
        data = context.data_model_manager[value].as_data(builder, args[0])
        access = builder.store(data, _at(context, builder, value, args[1], args[2]))
        _scoped(builder, access, scope.literal_value, scopes.literal_value)
        return context.get_dummy_value()

    return types.void(value, address, index, scope, scopes), codegen


@instruction
def peek(typingctx, like, address):
    """The integer of the dtype ``like`` at ``address``."""
    dtype = like.dtype

    def codegen(context, builder, signature, args):
        return builder.load(_at(context, builder, dtype, args[1], ir.IntType(64)(0)))

    return dtype(like, address), codegen
