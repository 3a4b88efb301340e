"""Numba's definition of the instruction of ``fortran``."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from numgrad.codegen.linker import external_symbol
from numgrad.kernels.matrices.fortran import external


def lapack(typingctx, like, name, *given):
    """Arguments come as one tuple."""
    kinds: Any = given[0] if len(given) == 1 and isinstance(given[0], types.BaseTuple) else given
    symbol = external_symbol(external(name.literal_value, np.dtype(like.dtype.name)))

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        void, whole = ir.IntType(8).as_pointer(), args[2]
        places = []
        for k, kind in enumerate(kinds):
            value = builder.extract_value(whole, k)
            if isinstance(kind, types.Array):
                value = context.make_array(kind)(context, builder, value).data
            else:
                if isinstance(kind, types.StringLiteral):
                    value = ir.Constant(ir.IntType(32), ord(kind.literal_value))
                elif isinstance(kind, types.IntegerLiteral):
                    value = ir.Constant(ir.IntType(32), kind.literal_value)
                else:
                    value = context.cast(builder, value, kind, types.int32)
                value = cgutils.alloca_once_value(builder, value)
            places.append(builder.bitcast(value, void))
        function = ir.FunctionType(ir.VoidType(), [void] * len(places))
        builder.call(cgutils.get_or_insert_function(builder.module, function, symbol), places)
        return context.get_dummy_value()

    together: Any = types.StarArgTuple.from_types(tuple(kinds))
    return types.none(like, name, together), codegen
