"""Operations: the table, the families that lift formulas to arrays, and binding of calls."""

from collections.abc import Callable
from typing import Any, TypeVar

from numgrad.op.axis import AxisOp as AxisOp
from numgrad.op.base import OPS as OPS
from numgrad.op.base import Composite as Composite
from numgrad.op.base import Op as Op
from numgrad.op.elementwise import Elementwise as Elementwise
from numgrad.op.primitive import Primitive as Primitive
from numgrad.op.view import View as View


T = TypeVar("T", bound=Op)


def _family(family: type[T]) -> Callable[..., Callable[[Callable[..., Any]], T]]:
    def declare(**options: Any) -> Callable[[Callable[..., Any]], T]:
        return lambda function: family(function, **options)

    return declare


elementwise = _family(Elementwise)
axiswise = _family(AxisOp)
view = _family(View)
primitive = _family(Primitive)
composite = _family(Composite)
