"""First and second derivatives of plain Python functions, exact, by hyper-dual numbers.

A number carries ``value + sum_k gradient[k] e_k + tangent f + sum_k product[k] e_k f`` with
``e_j e_k = f f = 0`` (Fike and Alonso, 2011): one run of a function gives its value, the gradient
with respect to all coordinates, the derivative along a direction, and the product of the Hessian
with that direction. Control flow looks at values alone. Complex numbers have coordinates for their
real and for their imaginary parts, so functions need not be holomorphic.

The function runs as it is, on arrays of objects, with `math` and `np` replaced by what knows these
numbers (`run`). How near it comes to a jump or kink is its *margin*.
"""

from __future__ import annotations

import cmath
import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special


class Margin:
    """The smallest distance from a jump or kink that any run since `start` came to.

    In `single` precision constants that are equal here, as 0.3 and the element set to it, are near.
    """

    def __init__(self):
        self.start()

    def start(self, single=False):
        self.least, self.single = math.inf, single

    def note(self, distance, scale=1.0):
        self.least = min(self.least, abs(distance) / max(1.0, abs(scale)))


margin = Margin()


class HyperDual:
    __slots__ = ("gradient", "product", "tangent", "value")

    def __init__(self, value, gradient=0.0, tangent=0.0, product=0.0):
        self.value, self.gradient, self.tangent, self.product = value, gradient, tangent, product

    @property
    def parts(self):
        return self.value, self.gradient, self.tangent, self.product

    @property
    def active(self):
        return any(np.any(part != 0) for part in self.parts[1:])

    def __repr__(self):
        return f"HyperDual({self.value!r})"

    def unary(self, value, first, second):
        """A function of this number, by its value and two derivatives."""
        _, g, t, p = self.parts
        return HyperDual(value, first * g, first * t, first * p + second * (g * t))

    def binary(self, other, value, da, db, da2, dadb, db2):
        """A function of two numbers, by its value and partial derivatives."""
        _, g, t, p = self.parts
        _, h, s, q = parts(other)
        mixed = da2 * (g * t) + dadb * (g * s + h * t) + db2 * (h * s)
        return HyperDual(value, da * g + db * h, da * t + db * s, da * p + db * q + mixed)

    def linear(self, function):
        """A function that is linear over the real numbers, of each part."""
        return HyperDual(*map(function, self.parts))

    # arithmetic

    def __add__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        v, g, t, p = parts(other)
        return HyperDual(self.value + v, self.gradient + g, self.tangent + t, self.product + p)

    __radd__ = __add__

    def __neg__(self):
        return self.linear(lambda part: -part)

    def __pos__(self):
        return self

    def __sub__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self + (-other)

    def __rsub__(self, other):
        return (-self) + other

    def __mul__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        a, b = self.value, parts(other)[0]
        return self.binary(other, a * b, b, a, 0.0, 1.0, 0.0)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        a, b = self.value, parts(other)[0]
        return self.binary(other, a / b, 1 / b, -a / b**2, 0.0, -1 / b**2, 2 * a / b**3)

    def __rtruediv__(self, other):
        return HyperDual(other) / self

    def __pow__(self, other):
        a = self.value
        if isinstance(other, HyperDual):
            return exp(other * log(self))
        if isinstance(other, (float, np.floating)) and float(other).is_integer():
            other = int(other)
        if other == 0:
            return HyperDual(a * 0.0 + 1.0)
        first = other * a ** (other - 1)
        return self.unary(
            a**other, first, 0.0 if other == 1 else other * (other - 1) * a ** (other - 2)
        )

    def __rpow__(self, other):
        return exp(
            self * cmath.log(other) if isinstance(other, complex) else self * math.log(other)
        )

    def __mod__(self, other):
        a, b = self.value, parts(other)[0]
        whole = math.floor(a / b)
        margin.note(min(a / b - whole, whole + 1 - a / b))
        return self - whole * other

    def __floordiv__(self, other):
        return float(floor(self / other))

    def __abs__(self):
        if isinstance(self.value, complex):
            return sqrt(self.real * self.real + self.imag * self.imag)
        margin.note(self.value)
        return self if self.value >= 0 else -self

    @property
    def real(self):
        return self.linear(np.real) if isinstance(self.value, complex) else self

    @property
    def imag(self):
        return self.linear(np.imag)

    def conjugate(self):
        return self.linear(np.conj)

    def sqrt(self):
        return sqrt(self)

    # what control flow looks at

    def _difference(self, other):
        a, b = self.value, parts(other)[0]
        rounded = margin.single and a != np.float32(a)
        if a != b or rounded or self.active or (isinstance(other, HyperDual) and other.active):
            margin.note(a - b, max(abs(a), abs(b)) if math.isfinite(abs(a) + abs(b)) else 1.0)
        return a, b

    def __lt__(self, other):
        a, b = self._difference(other)
        return a < b

    def __le__(self, other):
        a, b = self._difference(other)
        return a <= b

    def __gt__(self, other):
        a, b = self._difference(other)
        return a > b

    def __ge__(self, other):
        a, b = self._difference(other)
        return a >= b

    def __eq__(self, other):
        if isinstance(self.value, complex):
            return self.value == parts(other)[0]
        a, b = self._difference(other)
        return a == b

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __bool__(self):
        margin.note(self.value)
        return bool(self.value)

    def __int__(self):
        near = round(self.value)
        margin.note(self.value - near if near or self.active else 1.0)
        return int(self.value)

    __trunc__ = __int__

    def __floor__(self):
        self.__int__()
        return math.floor(self.value)

    def __ceil__(self):
        self.__int__()
        return math.ceil(self.value)

    def __round__(self, digits=None):
        margin.note(abs(self.value - math.floor(self.value) - 0.5))
        return round(self.value)


def parts(number):
    return number.parts if isinstance(number, HyperDual) else (number, 0.0, 0.0, 0.0)


def _functions():
    """``(f, f', f'')`` of x and, if given, of y = f(x)."""
    root_pi = 2 / math.sqrt(math.pi)
    return {
        "sin": (lambda x, m: (m.sin(x), m.cos(x), -m.sin(x))),
        "cos": (lambda x, m: (m.cos(x), -m.sin(x), -m.cos(x))),
        "tan": (lambda x, m: (m.tan(x), 1 / m.cos(x) ** 2, 2 * m.tan(x) / m.cos(x) ** 2)),
        "exp": (lambda x, m: (m.exp(x),) * 3),
        "expm1": (lambda x, m: (m.expm1(x), m.exp(x), m.exp(x))),
        "exp2": (lambda x, m: (2**x, 2**x * math.log(2), 2**x * math.log(2) ** 2)),
        "log": (lambda x, m: (m.log(x), 1 / x, -1 / x**2)),
        "log1p": (lambda x, m: (m.log1p(x), 1 / (1 + x), -1 / (1 + x) ** 2)),
        "log2": (lambda x, m: (m.log2(x), 1 / x / math.log(2), -1 / x**2 / math.log(2))),
        "log10": (lambda x, m: (m.log10(x), 1 / x / math.log(10), -1 / x**2 / math.log(10))),
        "sqrt": (lambda x, m: (m.sqrt(x), 0.5 / m.sqrt(x), -0.25 / x / m.sqrt(x))),
        "cbrt": (lambda x, m: (m.cbrt(x), m.cbrt(x) / x / 3, -2 * m.cbrt(x) / x**2 / 9)),
        "sinh": (lambda x, m: (m.sinh(x), m.cosh(x), m.sinh(x))),
        "cosh": (lambda x, m: (m.cosh(x), m.sinh(x), m.cosh(x))),
        "tanh": (
            lambda x, m: (m.tanh(x), 1 - m.tanh(x) ** 2, -2 * m.tanh(x) * (1 - m.tanh(x) ** 2))
        ),
        "asin": (lambda x, m: (m.asin(x), (1 - x * x) ** -0.5, x * (1 - x * x) ** -1.5)),
        "acos": (lambda x, m: (m.acos(x), -((1 - x * x) ** -0.5), -x * (1 - x * x) ** -1.5)),
        "atan": (lambda x, m: (m.atan(x), 1 / (1 + x * x), -2 * x / (1 + x * x) ** 2)),
        "erf": (lambda x, m: (m.erf(x), root_pi * m.exp(-x * x), -2 * x * root_pi * m.exp(-x * x))),
        "erfc": (
            lambda x, m: (m.erfc(x), -root_pi * m.exp(-x * x), 2 * x * root_pi * m.exp(-x * x))
        ),
        "lgamma": (lambda x, m: (m.lgamma(x), special.digamma(x), special.polygamma(1, x))),
        "gamma": (
            lambda x, m: (
                m.gamma(x),
                m.gamma(x) * special.digamma(x),
                m.gamma(x) * (special.digamma(x) ** 2 + special.polygamma(1, x)),
            )
        ),
        "radians": (lambda x, m: (m.radians(x), math.pi / 180, 0.0)),
        "degrees": (lambda x, m: (m.degrees(x), 180 / math.pi, 0.0)),
    }


FUNCTIONS = _functions()
SAME = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "fabs": "abs",
        "absolute": "abs", "power": "pow", "conj": "conjugate", "deg2rad": "radians"}  # fmt: skip


def _applied(name):
    rule = FUNCTIONS[name]

    def function(x):
        if isinstance(x, np.ndarray):
            return _each(function, x)
        if not isinstance(x, HyperDual):
            return rule(x, cmath if isinstance(x, (complex, np.complexfloating)) else math)[0]
        return x.unary(*rule(x.value, cmath if isinstance(x.value, complex) else math))

    function.__name__ = name
    return function


def _each(function, *operands):
    out = np.frompyfunc(function, len(operands), 1)(*operands)
    return out


exp, log, sqrt = map(_applied, ("exp", "log", "sqrt"))


def floor(x):
    return math.floor(x)


def atan2(y, x):
    if not isinstance(y, HyperDual):
        y = HyperDual(y)
    a, b = y.value, parts(x)[0]
    r = a * a + b * b
    value = math.atan2(a, b)
    return y.binary(
        x, value, b / r, -a / r, -2 * a * b / r**2, (a * a - b * b) / r**2, 2 * a * b / r**2
    )


def hypot(x, y):
    return sqrt(x * x + y * y)


def minimum(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _each(minimum, a, b)
    return a if a < b else b


def maximum(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _each(maximum, a, b)
    return a if a > b else b


def sign(x):
    value = parts(x)[0]
    margin.note(value)
    return float(np.sign(value))


def conjugate(x):
    return _each(conjugate, x) if isinstance(x, np.ndarray) else x.conjugate()


def where(condition, a, b):
    if isinstance(condition, np.ndarray):
        return _each(where, condition, a, b)
    return a if condition else b


def power(a, b):
    return a**b


def _is_number(value):
    return isinstance(value, HyperDual)


class Scalar:
    """A NumPy scalar type: called, the identity for numbers with derivatives; given, a dtype."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def __call__(self, value=0.0):
        if self.dtype.kind in "iub":
            return self.dtype.type(int(value) if _is_number(value) else value)
        if _is_number(value):
            return value if self.dtype.kind != "c" else value * (1.0 + 0.0j)
        return complex(value) if self.dtype.kind == "c" else float(value)


def _kind(dtype):
    """``(dtype, first value)`` of a new array: objects where a number with derivatives may go."""
    if isinstance(dtype, Scalar):
        dtype = dtype.dtype
    if any(dtype is each for each in (None, float, as_float)):
        return object, 0.0
    if dtype is complex or dtype is as_complex:
        return object, 0j
    if dtype in (int, as_int):
        return np.int64, 0
    dtype = np.dtype(dtype)
    if dtype.kind in "fcO":
        return object, 0j if dtype.kind == "c" else 0.0
    return dtype, 0


def _maker(name, first):
    def make(shape, *more, dtype=None, **unused):
        value = first
        if name == "full":
            value, *more = more
        if more:
            dtype = more[0]
        if name == "full" and dtype is None and isinstance(value, (int, np.integer)):
            dtype = np.int64
        kind, zero = _kind(dtype)
        if kind is not object:
            return np.full(shape, 0 if value is None else value, kind)
        out = np.empty(shape, object)
        out[...] = math.nan if value is None else value + zero
        return out

    def make_like(array, *more, dtype=None, **unused):
        example = array.dtype
        if example.kind == "O" and array.size and isinstance(parts(array.flat[0])[0], complex):
            example = np.dtype(complex)
        return make(array.shape, *more, dtype=example if dtype is None else dtype)

    return make, make_like


class Replaced:
    """A module whose functions know numbers with derivatives; what is not here is the module's."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        plain = SAME.get(name, name)
        if plain in FUNCTIONS and (hasattr(math, plain) or plain in ("cbrt", "exp2")):
            return _applied(plain)
        if plain in SPECIAL:
            return SPECIAL[plain]
        if self._module is np:
            if name in (
                "float64",
                "float32",
                "complex128",
                "complex64",
                "int64",
                "int32",
                "bool_",
                "uint8",
                "intp",
            ):
                return Scalar(getattr(np, name))
            if name in MAKERS:
                return MAKERS[name]
        return getattr(self._module, name)


def as_float(value=0.0):
    return value if _is_number(value) else float(value)


def as_int(value=0):
    return int(value)


def as_complex(real=0.0, imag=0.0):
    if _is_number(real) or _is_number(imag):
        return real * (1.0 + 0.0j) + imag * 1j
    return complex(real, imag)


SPECIAL: dict[str, Callable[..., Any]] = {
    "atan2": atan2,
    "hypot": hypot,
    "minimum": minimum,
    "maximum": maximum,
    "fmin": minimum,
    "fmax": maximum,
    "sign": sign,
    "abs": abs,
    "floor": floor,
    "pow": power,
    "conjugate": conjugate,
    "where": where,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "square": lambda x: x * x,
    "phase": lambda z: atan2(z.imag, z.real),
    "angle": lambda z: atan2(z.imag, z.real),
    "copy": lambda x: x.copy(),
    "copysign": lambda x, y: math.copysign(parts(x)[0], parts(y)[0]),
    "isnan": lambda x: parts(x)[0] != parts(x)[0],
    "isfinite": lambda x: math.isfinite(abs(parts(x)[0])),
}
MAKERS: dict[str, Callable[..., Any]] = {}
for _name, _first in (("zeros", 0.0), ("ones", 1.0), ("empty", None), ("full", None)):
    MAKERS[_name], MAKERS[_name + "_like"] = _maker(_name, _first)


def _exact(function, known):
    """The function, and those that it calls, with replaced modules among their globals."""
    function = getattr(function, "py_func", function)
    if function in known:
        return known[function]
    space: dict[str, Any] = {"float": as_float, "int": as_int, "complex": as_complex}
    copy = types.FunctionType(
        function.__code__, space, function.__name__, function.__defaults__, function.__closure__
    )
    known[function] = copy
    copy.__kwdefaults__ = function.__kwdefaults__
    for name, value in function.__globals__.items():
        space[name] = _replaced(value, known)
    if function.__closure__:
        cells = [
            types.CellType(_replaced(cell.cell_contents, known)) for cell in function.__closure__
        ]
        copy = types.FunctionType(
            function.__code__, space, function.__name__, function.__defaults__, tuple(cells)
        )
        copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _replaced(value, known):
    value = getattr(value, "py_func", value)
    if value in (np, math, cmath) if isinstance(value, types.ModuleType) else False:
        return Replaced(value)
    if isinstance(value, types.FunctionType) and (value.__module__ or "").split(".")[0] not in (
        "numpy", "math", "numba", "numgrad", "pytest",
    ):  # fmt: skip
        return _exact(value, known)
    if getattr(value, "__name__", "") == "prange":
        return range
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        return value.astype(object)
    return value


@dataclass
class Derivatives:
    """What a run tells about a function of arrays and numbers.

    Attributes
    ----------
    outputs, tangents
        What is returned, then the arrays written; their derivatives along the direction.
    gradients, products
        By argument, None where it has none: of the weighted sum of the outputs, and of its
        derivative along the direction.
    margin
        How near it came to a jump or kink.
    """

    outputs: list[Any]
    tangents: list[Any]
    gradients: list[Any]
    products: list[Any]
    margin: float
    weights: list[Any] = field(default_factory=list)


def differentiable(value):
    return np.asarray(value).dtype.kind in "fc" and not isinstance(value, (bool, int))


def run(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    written: Sequence[int] = (),
    weights: Callable[[Any], Any] | Sequence[Any] | None = None,
    directions: Sequence[Any] | None = None,
) -> Derivatives:
    """Derivatives of a function.

    Parameters
    ----------
    written
        Positions of arguments that are outputs too.
    weights
        By output, what multiplies it in the sum; a function makes one of an output.
    directions
        By argument, the direction of derivatives along one.
    """
    total = sum(
        np.size(a) * (2 if np.iscomplexobj(a) else 1) for a in arguments if differentiable(a)
    )
    values, at = [], 0
    directions = [None] * len(arguments) if directions is None else directions
    for argument, direction in zip(arguments, directions, strict=True):
        if not differentiable(argument):
            values.append(np.array(argument) if isinstance(argument, np.ndarray) else argument)
            continue
        array = np.asarray(argument)
        along = np.zeros(array.shape) if direction is None else np.asarray(direction)
        out = np.empty(array.shape, object)
        for index in np.ndindex(array.shape):
            unit = np.zeros(total, complex if array.dtype.kind == "c" else float)
            unit[at] = 1.0
            at += 1
            if array.dtype.kind == "c":
                unit[at] = 1j
                at += 1
            out[index] = HyperDual(array[index].item(), unit, along[index].item(), 0.0)
        values.append(out if isinstance(argument, np.ndarray) else out[()])
    margin.start(any(getattr(a, "dtype", None) in (np.float32, np.complex64) for a in arguments))
    given = list(values)
    back = _exact(function, {})(*values)
    nearest = margin.least
    results = [] if back is None else list(back) if isinstance(back, tuple) else [back]
    results += [given[k] for k in written]
    outputs = [_part(r, 0) for r in results]
    tangents = [_part(r, 2) for r in results]
    if weights is None:
        weights = [np.ones(np.shape(out)) for out in outputs]
    elif callable(weights):
        weights = [weights(out) for out in outputs]
    loss = HyperDual(0.0)
    for weight, result in zip(weights, results, strict=True):
        for w, r in zip(np.ravel(weight), np.ravel(np.asarray(result, object)), strict=True):
            if weight is not None and isinstance(r, HyperDual):
                loss = loss + (r * np.conj(w).item()).real
    gradients, products, at = [], [], 0
    slopes, curves = (np.broadcast_to(part, total) for part in (loss.gradient, loss.product))
    for argument in arguments:
        if not differentiable(argument):
            gradients.append(None)
            products.append(None)
            continue
        array = np.asarray(argument)
        size = array.size * (2 if array.dtype.kind == "c" else 1)
        for out, flat in ((gradients, slopes), (products, curves)):
            piece = np.array(flat[at : at + size], float)
            if array.dtype.kind == "c":
                piece = piece[::2] + 1j * piece[1::2]
            out.append(piece.reshape(array.shape))
        at += size
    return Derivatives(outputs, tangents, gradients, products, nearest, list(weights))


def _part(result, which):
    if isinstance(result, np.ndarray) and result.dtype != object:
        return result.copy() if which == 0 else None
    array = np.asarray(result, object)
    values = [parts(r)[which] for r in array.ravel()]
    if not isinstance(result, (np.ndarray, HyperDual)) and isinstance(
        values[0], (bool, int, np.integer)
    ):
        return result if which == 0 else None
    complex_ = any(isinstance(parts(r)[0], complex) for r in array.ravel())
    out = np.array(values, complex if complex_ else float).reshape(array.shape)
    return out if isinstance(result, np.ndarray) else out[()]
