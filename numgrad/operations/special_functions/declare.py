"""Declaration of special functions: by SciPy's name, with SciPy's value in kernels.

Complex operands are taken by those with a form for them in the kernel library; their gradient
formulas hold for both.

Note [Derivatives of special functions]
---------------------------------------
Those with respect to arguments are closed formulas, written in operations, so there are derivatives
of any order. Those with respect to orders and parameters of shape are closed formulas where there
is one; for incomplete gamma and beta functions and Bessel functions they are computed by Note
[Differences in a parameter] of ``kernels.differences``, twice; a third time raises. For others, and
at complex places, they are the same differences of operations (``differences``), of any order. What
has none raises as well: no gradient is silently zero.

Kernels take the same differences where they can: Note [Differences in a parameter] of
``kernels.differences``. A derivative of one of these loses two digits more.
"""

import importlib
from collections.abc import Callable, Sequence
from functools import partial, reduce, wraps
from operator import add
from typing import Any, ClassVar

import numpy as np

from numgrad.core.declare import Elementwise, Op, Primitive, broadcast_lengths, broadcasting_rule
from numgrad.core.formula import GradientFormula, Meta
from numgrad.errors import NumgradTypeError
from numgrad.kernels import differences as _differences  # noqa: F401 (what kernels call)
from numgrad.kernels.differences import STEP, WEIGHTS
from numgrad.operations.shared_rules import by_library, floating, is_complex


class Special(Op):
    """Options that all special functions have in common."""

    parameters: ClassVar = {
        "v": ("", "Order."),
        "n": ("", "Order."),
        "z": ("", "Argument."),
        "m": ("", "Parameter."),
        "c": ("", "Third parameter."),
        "p": ("", "Probability."),
        "k": ("", "Count."),
        "alpha": ("", "Parameter."),
        "beta": ("", "Second parameter."),
        "phi": ("", "Amplitude, in radians."),
        "delta": ("", "Where it becomes linear."),
        "r": ("", "Residual."),
        "lmbda": ("", "Power."),
        "df": ("", "Degrees of freedom."),
        "dfn": ("", "Degrees of freedom of the numerator."),
        "dfd": ("", "Degrees of freedom of the denominator."),
        "t": ("", "Quantile."),
    }

    def undeclared(self, name: str) -> GradientFormula:
        """A refusal, also where the body is a formula, in which a count may be rounded."""
        return Op.undeclared(self, name)


class SpecialFunction(Special, Elementwise):
    """An elementwise function that the kernel library has under its name."""


class ParameterDerivative(SpecialFunction):
    """A part of gradient formulas: a derivative by differences, without a reference of its own."""


def special(
    family: type[SpecialFunction] = SpecialFunction, **options: Any
) -> Callable[[Callable[..., Any]], SpecialFunction]:
    """Declare a special function, whose body is its documentation."""

    def declare(function: Callable[..., Any]) -> SpecialFunction:
        name = function.__name__
        arguments = {
            "ref": f"scipy.special.{name}",
            "scalar": name,
            "method": False,
            "smooth": True,
            **by_library(name),
            **options,
        }
        return family(function, **arguments)

    return declare


def derivative(**options: Any) -> Callable[[Callable[..., Any]], SpecialFunction]:
    """Declare a derivative in a parameter that gradient formulas name."""

    def declare(function: Callable[..., Any]) -> SpecialFunction:
        arguments = {"internal": True, "ref": None, **options}
        return special(family=ParameterDerivative, **arguments)(function)

    return declare


def moved(slope: Any, density: Any) -> Any:
    """How far a quantile moves: the change of the distribution function over its density.

    Where there is no change it is 0, also at an end of the support, where the density may be 0 or
    infinite.
    """
    still = (slope == 0) & ((density == 0) | np.isinf(density))
    return np.where(still, 0, slope / np.where(still, 1, density))


def complex_result(name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype]:
    """Dtypes where the argument, the last operand, and the result may be complex."""
    values = [np.empty(0, o) if isinstance(o, np.dtype) else o(0) for o in operands]
    if any(np.iscomplexobj(v) for v in values[:-1]):
        raise NumgradTypeError(f"{name}: the order is real, got complex; apply real() to it")
    dtype = np.result_type(*values, np.float16)
    single = dtype in (np.float16, np.float32, np.complex64)
    real, complex_ = map(np.dtype, ("f4", "c8") if single else ("f8", "c16"))
    *others, _ = [real] * len(operands)
    return [*others, complex_ if dtype.kind == "c" else real], complex_


def either(name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype]:
    """Dtypes of a holomorphic function, whose result is complex where an operand is."""
    return (complex_result if any(map(is_complex, operands)) else floating)(name, operands)


def complex_results(name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype]:
    """Dtypes of complex results of real operands."""
    loop, dtype = floating(name, operands)
    return loop, np.result_type(dtype, np.complex64)


class SpecialPrimitive(Special, Primitive):
    """Element by element as the ufunc of its name in SciPy, which is called with whole arrays.

    ``dtypes`` says what operands are converted to, and the dtype of results; ``count`` how many
    there are, if the result is a tuple. The body is documentation. ``values`` is called in place of
    SciPy's function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        count: int | None = None,
        dtypes: Callable[..., Any] = floating,
        values: Callable[..., Any] | None = None,
        **options: Any,
    ) -> None:
        name = function.__name__
        theirs = str(options.get("ref")).rpartition(".")[2]
        types = partial(dtypes, name)

        @wraps(function)
        def compute(*operands: np.ndarray, **params: Any) -> Any:
            loop, dtype = types([x.dtype for x in operands])
            # rounded once, as kernels do: of float32 some iterations of SciPy's never end
            loop = [np.result_type(d, np.float64) for d in loop]
            arguments = [x.astype(d, copy=False) for x, d in zip(operands, loop, strict=True)]
            call = values or getattr(importlib.import_module("scipy.special"), theirs)
            result = call(*arguments, **params)
            with np.errstate(all="ignore"):
                if count is None:
                    return np.asarray(result, dtype)
                return tuple([np.asarray(y, dtype) for y in result])

        def rule(*metas: Meta, **params: Any) -> Any:
            _, dtype = types([m.dtype for m in metas])
            result = Meta(broadcast_lengths(*[m.shape for m in metas]), dtype)
            return result if count is None else (result,) * count

        super().__init__(function, outputs=count is not None, materializes=False, **options)
        self.function = compute
        self.types = types
        self.shape(rule)
        self.batch(broadcasting_rule)


def arrived(g: Sequence[Any], *slopes: Callable[[], Any]) -> Any:
    """The sum of the gradients of results times derivatives, computed where a gradient arrived.

    Other results may be infinite or NaN, as may their derivatives.
    """
    return reduce(add, [p * slope() for p, slope in zip(g, slopes, strict=True) if p is not None])


def several(**options: Any) -> Callable[[Callable[..., Any]], SpecialPrimitive]:
    """Declare a function that a ufunc of SciPy's computes."""

    def declare(function: Callable[..., Any]) -> SpecialPrimitive:
        shapes = ((2, 3), *((3,),) * (function.__code__.co_argcount - 1))
        arguments = {
            "ref": f"scipy.special.{function.__name__}",
            "method": False,
            "smooth": True,
            "real_only": options.get("dtypes", floating) not in (complex_result, either),
            "holomorphic": options.get("dtypes") is either,
            "real_beside": function.__code__.co_argcount - 1,
            "samples": [(shapes, {})],
            "domain": (0.3, 3.0),
            **options,
        }
        return SpecialPrimitive(function, **arguments)

    return declare


def central_difference(f, a, step=STEP):
    """The derivative of ``f`` at ``a``, of order ten in the step."""
    total = 0
    for k, weight in enumerate(WEIGHTS):
        t = (k + 1) * step
        total = total + weight * (f(a + t) - f(a - t))
    return total / step


def shape_difference(f, a):
    """The same in a parameter of shape of a distribution, by the step that kernels take."""
    return central_difference(f, a, np.where(a < 4, a * STEP, np.sqrt(np.abs(a)) * (2 * STEP)))


def pole_difference(f, a):
    """The same where there are poles at 0 and the negative integers."""
    room = np.where(a > 0.5, a, np.abs(a - np.rint(a)))
    return central_difference(f, a, np.minimum(room, 1) * STEP)
