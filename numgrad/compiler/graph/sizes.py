"""Lengths of axes as symbols: arithmetic stays symbolic, looking at a value becomes a guard.

Note [Sizes]
------------
A compiled function serves every length of its arguments' axes that its Python code did not look at.
While a function is traced, ``x.shape`` holds a ``Size`` for each axis longer than 1: a polynomial
with integer coefficients over *atoms*, which are the lengths of axes (``n0``, at least 2, since
lengths 0 and 1 belong to the signature) and quotients and remainders of other polynomials. Sums and
products of sizes are sizes. Comparing two that are not equal by themselves notes the outcome as a
*guard*, a relation that must hold wherever the kernel is used; what needs the number itself
(``range(n)``, ``int(n)``, a hash) guards its value. An equation that a guard establishes is used
from then on: equal lengths have one symbol.

``Size`` is no subclass of int: NumPy and Python would take its value silently.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from numgrad.codegen.nests import polynomial
from numgrad.compiler.messages import user_line
from numgrad.core.abstract import AbstractLength, broadcast_lengths
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradValueError


@dataclass(frozen=True)
class SizeGuard:
    """A relation between sizes that a kernel relies on: ``left sign right``."""

    sign: str
    left: polynomial.Length
    right: polynomial.Length

    def text(self, names: Callable[[int], str]) -> str:
        """The relation as a Python expression."""
        left, right = (polynomial.text_of(side, names) for side in (self.left, self.right))
        return f"{left} {self.sign} {right}"


@dataclass
class Sizes:
    """The lengths of axes in one trace, and what was noted about them.

    Attributes
    ----------
    hints
        Length of every symbolic axis in the call that is traced.
    guards
        Relations noted so far, in order.
    fixed
        Lengths that became numbers, by the line of the user's code that read them.
    """

    hints: list[int] = field(default_factory=list)
    guards: list[SizeGuard] = field(default_factory=list)
    fixed: dict[str, int] = field(default_factory=dict)
    on_number: Callable[[Size], Any] | None = None
    """Makes a traced number of a size, for true division."""
    _known: dict[polynomial.Atom, polynomial.Length] = field(default_factory=dict)
    _resolved: dict[polynomial.Length, polynomial.Length] = field(default_factory=dict)
    _bounds: dict[polynomial.Atom, int] = field(default_factory=dict)
    _equations: list[SizeGuard] = field(default_factory=list)
    """Equations from which something may follow yet."""

    def axis(self, length: int) -> int | Size:
        """A new symbol for the length of an axis; 0 and 1 stay what they are."""
        if length < 2:
            return length
        self.hints.append(length)
        return Size(self, (((("axis", len(self.hints) - 1),), 1),))

    def of_axis(self, number: int) -> Size:
        """The symbol of an axis."""
        return Size(self, (((("axis", number),), 1),))

    @property
    def learnt(self) -> bool:
        """Whether anything was found out about lengths, so that they may be simplified."""
        return bool(self._known)

    def resolve(self, length: int | Size) -> int | Size:
        """A length, simplified by what is known by now."""
        if not isinstance(length, Size):
            return length
        terms = self.known(length.terms)
        value = polynomial.value_of(terms)
        if value is not None:
            return value
        return length if terms is length.terms else Size(self, terms)

    def known(self, terms: polynomial.Length) -> polynomial.Length:
        """Length with atoms replaced by what they were found to equal."""
        if not self._known:
            return terms
        cached = self._resolved.get(terms)
        if cached is None:
            cached = self._resolved[terms] = polynomial.substitute(terms, self._known)
        return cached

    def number(self, length: int | Size) -> int | None:
        """``k`` if the length is that of axis ``k`` as it stands, else None."""
        axis = polynomial.axis_of(terms_of(length))
        return None if axis is None else axis[1]

    def hint(self, length: int | Size) -> int:
        """The length in the call that is traced."""
        return self.hint_of(terms_of(length))

    def hint_of(self, terms: polynomial.Length) -> int:
        """The value of terms in the call that is traced."""
        return polynomial.evaluate(terms, self.hints)

    def evaluate(self, length: int | Size, lengths: Mapping[int, int]) -> int:
        """A length where axis ``k`` has ``lengths[k]`` elements."""
        return polynomial.evaluate(self.known(terms_of(length)), lengths)

    def holds(self, sign: str, a: int | Size, b: int | Size) -> bool:
        """Whether ``a sign b`` (``==`` or ``<``), noted as a guard unless it always holds."""
        left, right = (self.known(terms_of(x)) for x in (a, b))
        result = self._decided(sign, left, right)
        if result is not None:
            return result
        x, y = self.hint_of(left), self.hint_of(right)
        if sign == "<":
            self._note("<" if x < y else ">=", left, right)
            if x < y:
                self._bound(right, polynomial.add(left, polynomial.constant(1)))
            else:
                self._bound(left, right)
            return x < y
        if x == y:
            self.equate(left, right)
        else:
            self._note("!=", left, right)
        return x == y

    def always(self, sign: str, a: int | Size, b: int | Size) -> bool:
        """Whether ``a sign b`` (``==``, ``<`` or ``<=``) is certain; nothing is noted."""
        if type(a) is int and type(b) is int:
            return a < b if sign == "<" else a <= b if sign == "<=" else a == b
        left, right = (self.known(terms_of(x)) for x in (a, b))
        if sign == "<=":
            return self._decided("<", right, left) is False
        return self._decided(sign, left, right) is True

    def exceeds(self, length: polynomial.Length, number: int) -> bool:
        """Whether a length is certain to be more than a number; nothing is noted."""
        return self._decided("<", polynomial.constant(number), length) is True

    def _decided(self, sign: str, left: polynomial.Length, right: polynomial.Length) -> bool | None:
        """Whether ``left sign right`` (``==`` or ``<``) in every call, None if that depends."""
        if left == right:
            return sign == "=="
        difference = polynomial.add(left, right, -1)
        value = polynomial.value_of(difference)
        if value is not None:
            return value == 0 if sign == "==" else value < 0
        bound = polynomial.least(difference, self._bounds)
        if bound is not None and (bound > 0 if sign == "==" else bound >= 0):
            return False
        opposite = polynomial.least(polynomial.add(right, left, -1), self._bounds)
        if opposite is not None and opposite > 0:
            return sign == "<"
        return None

    def _bound(self, larger: polynomial.Length, smaller: polynomial.Length) -> None:
        """Remember how long an axis is at least, from ``larger >= smaller``."""
        axis, number = polynomial.axis_of(larger), polynomial.value_of(smaller)
        if axis is not None and number is not None:
            self._bounds[axis] = max(number, self._bounds.get(axis, 2))

    def _note(self, sign: str, left: polynomial.Length, right: polynomial.Length) -> None:
        guard = SizeGuard(sign, left, right)
        if guard not in self.guards:
            self.guards.append(guard)
            if sign == "==":
                self._equations.append(guard)

    def equate(self, left: polynomial.Length, right: polynomial.Length) -> None:
        """Rely on the equality of two lengths from now on."""
        self._note("==", self.known(left), self.known(right))
        while (result := self._news()) is not None:
            atom, terms = result
            if atom[0] == "axis":  # quotients of it may be others now: they are found again
                self._known = {a: t for a, t in self._known.items() if a[0] == "axis"}
            self._known[atom] = terms
            self._resolved.clear()

    def _news(self) -> tuple[polynomial.Atom, polynomial.Length] | None:
        """The value of an atom, from an equation that does not hold by what is known."""
        # an identity of lengths of axes remains one; values of quotients may be dropped again
        lasting = all(atom[0] == "axis" for atom in self._known)
        left: list[SizeGuard] = []
        for number, guard in enumerate(self._equations):
            difference = polynomial.add(self.known(guard.left), self.known(guard.right), -1)
            result = polynomial.solve(difference)
            if difference or not lasting:
                left.append(guard)
            if result is not None:
                self._equations[:number] = left[:-1]
                return result
        self._equations = left
        return None

    def relations(self) -> list[SizeGuard]:
        """The guards on free axes, without those that then hold by themselves."""
        axes = {atom: terms for atom, terms in self._known.items() if atom[0] == "axis"}
        results = []
        for guard in self.guards:
            left, right = (polynomial.substitute(side, axes) for side in (guard.left, guard.right))
            if left != right or guard.sign != "==":
                results.append(SizeGuard(guard.sign, left, right))
        return results

    def specialise(self, length: int | Size) -> int:
        """The length as a number, which becomes part of what the kernel is made for."""
        terms = self.known(terms_of(length))
        value = polynomial.value_of(terms)
        if value is not None:
            return value
        value = self.hint_of(terms)
        self.equate(terms, polynomial.constant(value))
        line = user_line()
        if line is not None:
            self.fixed.setdefault(line, value)
        if (
            polynomial.value_of(self.known(terms)) is None
        ):  # a product: each of its axes, to know it again
            for atom in sorted(polynomial.atoms_of(self.known(terms))):
                self.equate((((atom,), 1),), polynomial.constant(self.hints[atom[1]]))
        return value

    def text(self, length: int | Size, names: Callable[[int], str]) -> str:
        """A length as a Python expression; ``names`` gives that of axis ``k``."""
        return polynomial.text_of(self.known(terms_of(length)), names)

    def axes(self, lengths: Iterable[int | Size]) -> set[int]:
        """Numbers of the symbolic axes that lengths depend on."""
        return {
            atom[1]
            for length in lengths
            for atom in polynomial.atoms_of(self.known(terms_of(length)))
        }


class Size(AbstractLength):
    """A length that a compiled function reads when it is called: Note [Sizes]."""

    __slots__ = ("sizes", "terms")

    def __init__(self, sizes: Sizes, terms: polynomial.Length) -> None:
        self.sizes, self.terms = sizes, terms

    def _of(self, terms: polynomial.Length) -> int | Size:
        return self.sizes.resolve(Size(self.sizes, terms))

    def __repr__(self) -> str:
        return self.sizes.text(self, lambda k: f"n{k}")

    # ------------------------------------------------------------------------- arithmetic

    def __add__(self, other: Any) -> Any:
        terms = _operand(other)
        if terms is None:
            return self._with_number(operator.add, other)
        return self._of(polynomial.add(self.terms, terms))

    def __sub__(self, other: Any) -> Any:
        terms = _operand(other)
        if terms is None:
            return self._with_number(operator.sub, other)
        return self._of(polynomial.add(self.terms, terms, -1))

    def __mul__(self, other: Any) -> Any:
        terms = _operand(other)
        if terms is None:
            return self._with_number(operator.mul, other)
        return self._of(polynomial.multiply(self.terms, terms))

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Any:
        terms = _operand(other)
        if terms is None:
            return self._with_number(lambda a, b: b - a, other)
        return self._of(polynomial.add(terms, self.terms, -1))

    def __neg__(self) -> Any:
        return self._of(polynomial.multiply(self.terms, polynomial.constant(-1)))

    def __pos__(self) -> Size:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __floordiv__(self, other: Any) -> Any:
        return self._divided("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._divided("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._divided("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._divided("%", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def _divided(self, sign: str, a: Any, b: Any) -> Any:
        left, right = _operand(a), _operand(b)
        if left is None or right is None:
            function = operator.floordiv if sign == "//" else operator.mod
            if a is self:
                return self._with_number(function, b)
            return self._with_number(lambda x, y: function(y, x), a)
        known = self.sizes.known
        left, right = known(left), known(right)
        if self.sizes.holds("==", Size(self.sizes, right), 0):
            raise ZeroDivisionError("division of a length by zero")
        return self._of(polynomial.divide(sign, left, right))

    def __truediv__(self, other: Any) -> Any:
        return self.as_number() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.as_number()

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and 0 <= other <= 8:
            terms = polynomial.constant(1)
            for _ in range(other):
                terms = polynomial.multiply(terms, self.terms)
            return self._of(terms)
        return self.as_number() ** other

    def __rpow__(self, other: Any) -> Any:
        return other ** self.as_number()

    def as_number(self) -> Any:
        """The length as a traced number."""
        make = self.sizes.on_number
        return self.__index__() if make is None else make(self)

    def _with_number(self, function: Callable[[Any, Any], Any], other: Any) -> Any:
        known = isinstance(other, float | complex | np.number | np.ndarray)
        return function(self.as_number(), other) if known else NotImplemented

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        function = _OPERATORS.get(ufunc.__name__)
        if function is not None and not options and all(_operand(x) is not None for x in inputs):
            return function(*(int(x) if isinstance(x, np.generic) else x for x in inputs))
        numbers = [x.as_number() if isinstance(x, Size) else x for x in inputs]
        return getattr(ufunc, method)(*numbers, **options)

    @property
    def hint(self) -> int:
        """The length in the call that is traced."""
        return self.sizes.hint(self)

    # ------------------------------------------------------------------------- comparisons

    def __eq__(self, other: object) -> bool:
        if isinstance(other, float):
            return other.is_integer() and self == int(other)
        if _operand(other) is None:
            return NotImplemented
        if isinstance(other, Size) and other.sizes is not self.sizes:  # a key of another trace
            return int(self) == int(other)
        return self.sizes.holds("==", self, other)  # pyright: ignore

    def __ne__(self, other: object) -> bool:
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def __lt__(self, other: Any) -> Any:
        if isinstance(other, float):
            return self < math.ceil(other) if math.isfinite(other) else other > 0
        return NotImplemented if _operand(other) is None else self.sizes.holds("<", self, other)

    def __gt__(self, other: Any) -> Any:
        if isinstance(other, float):
            return self > math.floor(other) if math.isfinite(other) else other < 0
        return NotImplemented if _operand(other) is None else self.sizes.holds("<", other, self)

    def __le__(self, other: Any) -> Any:
        if isinstance(other, float):
            return self <= math.floor(other) if math.isfinite(other) else other > 0
        return NotImplemented if _operand(other) is None else not (self > other)

    def __ge__(self, other: Any) -> Any:
        if isinstance(other, float):
            return self >= math.ceil(other) if math.isfinite(other) else other < 0
        return NotImplemented if _operand(other) is None else not (self < other)

    def __bool__(self) -> bool:
        return not self.sizes.holds("==", self, 0)

    # ---------------------------------------------------------------- looking at the number

    def __index__(self) -> int:
        return self.sizes.specialise(self)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __complex__(self) -> complex:
        return complex(self.__index__())

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None else round(self.__index__(), digits)

    def __trunc__(self) -> Size:
        return self

    __floor__ = __ceil__ = __trunc__

    def __hash__(self) -> int:
        return hash(self.__index__())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.__index__(), dtype)

    def __format__(self, spec: str) -> str:
        return format(self.__index__(), spec) if spec else repr(self)

    def __lshift__(self, other: Any) -> Any:
        return self * 2**other

    def __rshift__(self, other: Any) -> Any:
        return self // 2**other

    def __and__(self, other: Any) -> Any:
        return self.__index__() & other

    def __or__(self, other: Any) -> Any:
        return self.__index__() | other

    def __xor__(self, other: Any) -> Any:
        return self.__index__() ^ other

    def __invert__(self) -> Any:
        return -self - 1

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "negative": operator.neg,
    "absolute": operator.abs, "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
"""Functions that NumPy's scalars call instead of what Python's numbers do."""


def _operand(value: Any) -> polynomial.Length | None:
    if isinstance(value, Size):
        return value.sizes.known(value.terms)
    return (
        polynomial.constant(int(value)) if isinstance(value, int | np.integer | np.bool) else None
    )


def terms_of(length: int | Size) -> polynomial.Length:
    """A length as terms."""
    return length.terms if isinstance(length, Size) else polynomial.constant(length)


def lengths_in(params: Any) -> Iterator[Size]:
    """Symbolic lengths in parameters, however deep."""
    if isinstance(params, Size):
        yield params
    elif isinstance(params, dict):
        for item in params.values():
            yield from lengths_in(item)
    elif isinstance(params, tuple | list):
        for item in params:
            yield from lengths_in(item)
    elif isinstance(params, slice):
        yield from lengths_in((params.start, params.stop, params.step))


Length = int | Size
Shape = tuple[Length, ...]


def same(a: Length, b: Length) -> bool:
    """Whether two lengths are equal whatever the lengths of arguments are."""
    if isinstance(a, Size):
        return isinstance(b, Size) and a.sizes.known(a.terms) == b.sizes.known(b.terms)
    return not isinstance(b, Size) and a == b


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes are equal whatever the lengths of arguments are."""
    return len(a) == len(b) and all(map(same, a, b))


def broadcast(operation: str, shapes: Sequence[Shape]) -> Shape:
    """The shape NumPy's broadcasting gives; equalities that it needs become guards."""
    try:
        return broadcast_lengths(*shapes)
    except ValueError:
        listed = ", ".join(str(hinted(shape)) for shape in shapes)
        raise NumgradValueError(
            f"{operation}: shapes {listed} do not broadcast; axes are matched from the right and "
            "must be equal or 1"
        ) from None


def hinted(shape: Shape) -> tuple[int, ...]:
    """A shape in the call that is traced."""
    return tuple([n.sizes.hint(n) if isinstance(n, Size) else n for n in shape])


def specialised(shape: Shape) -> tuple[int, ...]:
    """A shape as numbers, which become part of what a kernel is made for."""
    return tuple([n.sizes.specialise(n) if isinstance(n, Size) else n for n in shape])
