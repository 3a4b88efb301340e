"""Numba's definitions of the instructions of ``intrinsics``."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from numgrad.codegen.intrinsics import HAS_FMA
from numgrad.codegen.linker import external_symbol

_INT_OF_FLOAT = {types.float32: types.int32, types.float64: types.int64}
_FLOAT_OF_INT = {i: f for f, i in _INT_OF_FLOAT.items()}


def fma(typingctx, a, b, c):
    if not (a == b == c and isinstance(a, types.Float)):
        return None

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    return a(a, a, a), codegen


def bits(typingctx, x):
    if x not in _INT_OF_FLOAT:
        return None
    out = _INT_OF_FLOAT[x]

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(out))

    return out(x), codegen


def from_bits(typingctx, i):
    if i not in _FLOAT_OF_INT:
        return None
    out = _FLOAT_OF_INT[i]

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(out))

    return out(i), codegen


def select(typingctx, condition, a, b):
    if not (isinstance(condition, types.Boolean) and a == b):
        return None

    def codegen(context, builder, signature, args):
        flag, x, y = args
        if flag.type != ir.IntType(1):
            flag = builder.trunc(flag, ir.IntType(1))
        return builder.select(flag, x, y)

    return a(condition, a, b), codegen


def _float_intrinsic(name: str, arity: int) -> Callable[..., Any]:
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

    return unary if arity == 1 else binary


sqrt = _float_intrinsic("llvm.sqrt", 1)
fabs = _float_intrinsic("llvm.fabs", 1)
floor = _float_intrinsic("llvm.floor", 1)
ceil = _float_intrinsic("llvm.ceil", 1)
trunc = _float_intrinsic("llvm.trunc", 1)
rint = _float_intrinsic("llvm.rint", 1)
copysign = _float_intrinsic("llvm.copysign", 2)
maximum = _float_intrinsic("llvm.maximum", 2)
minimum = _float_intrinsic("llvm.minimum", 2)


def estrin(typingctx, x, coefficients):
    if not (
        isinstance(x, types.Float)
        and isinstance(coefficients, types.UniTuple)
        and coefficients.dtype == x
    ):
        return None

    def codegen(context, builder, signature, args):
        power = args[0]
        terms = [builder.extract_value(args[1], i) for i in range(coefficients.count)]
        while len(terms) > 1:
            odd = terms[-1:] if len(terms) % 2 else []
            pairs = zip(terms[0::2], terms[1::2], strict=False)
            terms = [_multiply_add(builder, b, power, a) for a, b in pairs] + odd
            if len(terms) > 1:
                power = builder.fmul(power, power)
        return terms[0]

    return x(x, coefficients), codegen


def no_inline(typingctx):
    def codegen(context, builder, signature, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen


def kernel_call(external: Callable[[str, str], str], name: str) -> Callable[..., Any]:
    """Define the call of a kernel of integers, which has a form for each dtype ``like``."""

    def call(typingctx, like, *integers):
        kinds: Any = integers[0] if isinstance(integers[0], types.BaseTuple) else integers
        symbol = external_symbol(external(name, like.dtype.name))
        together: Any = types.StarArgTuple.from_types(tuple(kinds))

        def codegen(context, builder, signature, args):
            values = [
                context.cast(builder, builder.extract_value(args[1], k), kind, types.int64)
                for k, kind in enumerate(kinds)
            ]
            convention, taken = context.call_conv, [types.int64] * len(values)
            kind = convention.get_function_type(types.none, taken)
            function = cgutils.get_or_insert_function(builder.module, kind, symbol)
            convention.call_function(builder, function, types.none, taken, values)
            return context.get_dummy_value()

        return types.none(like, together), codegen

    return call


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fma(a, b, c) if HAS_FMA else builder.fadd(builder.fmul(a, b), c)


def add_any_order(typingctx, a, b):
    if not (a == b and isinstance(a, types.Float)):
        return None

    def codegen(context, builder, signature, args):
        return builder.fadd(*args, flags=("reassoc",))

    return a(a, b), codegen


def multiply_any_order(typingctx, a, b):
    if not (a == b and isinstance(a, types.Float)):
        return None

    def codegen(context, builder, signature, args):
        return builder.fmul(*args, flags=("reassoc",))

    return a(a, b), codegen


def mul_add(typingctx, a, b, c):
    if not (a == b == c and isinstance(a, types.Float)):
        return None

    def codegen(context, builder, signature, args):
        return _multiply_add(builder, *args)

    return a(a, a, a), codegen


def add_product(typingctx, total, a, b):
    if not (a == b == total and isinstance(a, types.Float)):
        return None

    def codegen(context, builder, signature, args):
        total, a, b = args
        if HAS_FMA:
            return builder.fma(a, b, total)
        return builder.fadd(total, builder.fmul(a, b), flags=("reassoc",))

    return a(a, a, a), codegen


def _scoped(builder: Any, access: Any, scope: int, scopes: int) -> None:
    if scope >= scopes:
        return
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


def load(typingctx, like, address, index, scope, scopes):
    dtype = like.dtype

    def codegen(context, builder, signature, args):
        value = builder.load(_at(context, builder, dtype, args[1], args[2]))
        _scoped(builder, value, scope.literal_value, scopes.literal_value)
        return context.data_model_manager[dtype].from_data(builder, value)

    return dtype(like, address, index, scope, scopes), codegen


def load_if(typingctx, like, condition, address, index, scope, scopes):
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


def store(typingctx, value, address, index, scope, scopes):
    def codegen(context, builder, signature, args):
        data = context.data_model_manager[value].as_data(builder, args[0])
        access = builder.store(data, _at(context, builder, value, args[1], args[2]))
        _scoped(builder, access, scope.literal_value, scopes.literal_value)
        return context.get_dummy_value()

    return types.void(value, address, index, scope, scopes), codegen


def peek(typingctx, like, address):
    dtype = like.dtype

    def codegen(context, builder, signature, args):
        return builder.load(_at(context, builder, dtype, args[1], ir.IntType(64)(0)))

    return dtype(like, address), codegen


def prefetch(typingctx, row, index):
    if not (isinstance(row, types.Array) and row.ndim == 1 and row.layout == "C"):
        return None

    def codegen(context, builder, signature, args):
        array = context.make_array(row)(context, builder, args[0])
        word, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        place = builder.bitcast(builder.gep(array.data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(function, [place, word(1), word(3), word(1)])  # a write, near, of data
        return context.get_dummy_value()

    return types.void(row, types.int64), codegen
