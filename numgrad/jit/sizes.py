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

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numgrad.op.abstract import AbstractLength

Atom = tuple[Any, ...]
"""``("axis", k)``, or ``("//", a, b)`` and ``("%", a, b)`` where ``a`` and ``b`` are terms."""
Terms = tuple[tuple[tuple[Atom, ...], int], ...]
"""Products of atoms with their coefficients, sorted; the constant belongs to the empty product."""


def _terms(found: dict[tuple[Atom, ...], int]) -> Terms:
    return tuple(sorted(((k, c) for k, c in found.items() if c), key=repr))


def _constant(value: int) -> Terms:
    return (((), value),) if value else ()


def _add(a: Terms, b: Terms, factor: int = 1) -> Terms:
    found = dict(a)
    for product, coefficient in b:
        found[product] = found.get(product, 0) + factor * coefficient
    return _terms(found)


def _multiply(a: Terms, b: Terms) -> Terms:
    found: dict[tuple[Atom, ...], int] = {}
    for p, c in a:
        for q, d in b:
            product = tuple(sorted((*p, *q), key=repr))
            found[product] = found.get(product, 0) + c * d
    return _terms(found)


def _value(terms: Terms) -> int | None:
    """The number, if there is no atom."""
    if not terms:
        return 0
    return terms[0][1] if len(terms) == 1 and not terms[0][0] else None


def _axis(terms: Terms) -> Atom | None:
    """The axis that the terms are, if they are nothing else."""
    if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1:
        atom = terms[0][0][0]
        return atom if atom[0] == "axis" else None
    return None


def _atoms(terms: Terms) -> set[Atom]:
    """Every axis that the terms depend on."""
    found: set[Atom] = set()
    for product, _ in terms:
        for atom in product:
            found |= {atom} if atom[0] == "axis" else _atoms(atom[1]) | _atoms(atom[2])
    return found


@dataclass(frozen=True)
class Guard:
    """A relation between sizes that a kernel relies on: ``left sign right``."""

    sign: str
    left: Terms
    right: Terms

    def text(self, names: Callable[[int], str]) -> str:
        """The relation as a Python expression."""
        return f"{_text(self.left, names)} {self.sign} {_text(self.right, names)}"


@dataclass
class Sizes:
    """The lengths of axes in one trace, and what was noted about them.

    Attributes
    ----------
    hints
        Length of every symbolic axis in the call that is traced.
    guards
        Relations noted so far, in order.
    """

    hints: list[int] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    on_number: Callable[[Size], Any] | None = None
    """Makes a traced number of a size, for true division."""
    _known: dict[Atom, Terms] = field(default_factory=dict)

    def axis(self, length: int) -> int | Size:
        """A new symbol for the length of an axis; 0 and 1 stay what they are."""
        if length < 2:
            return length
        self.hints.append(length)
        return Size(self, (((("axis", len(self.hints) - 1),), 1),))

    def resolve(self, length: int | Size) -> int | Size:
        """A length with all that is known by now put in."""
        if not isinstance(length, Size):
            return length
        terms = self.known(length.terms)
        value = _value(terms)
        return Size(self, terms) if value is None else value

    def known(self, terms: Terms) -> Terms:
        """Terms with axes replaced by what they were found to equal."""
        if not self._known:
            return terms
        total: Terms = ()
        for product, coefficient in terms:
            part = _constant(coefficient)
            for atom in product:
                part = _multiply(part, self._known_atom(atom))
            total = _add(total, part)
        return total

    def _known_atom(self, atom: Atom) -> Terms:
        if atom[0] == "axis":
            found = self._known.get(atom)
            return (((atom,), 1),) if found is None else self.known(found)
        return _divide(atom[0], self.known(atom[1]), self.known(atom[2]))

    def hint(self, length: int | Size) -> int:
        """The length in the call that is traced."""
        return self._hint(length.terms) if isinstance(length, Size) else length

    def _hint(self, terms: Terms) -> int:
        total = 0
        for product, coefficient in terms:
            part = coefficient
            for atom in product:
                if atom[0] == "axis":
                    part *= self.hints[atom[1]]
                elif atom[0] == "//":
                    part *= self._hint(atom[1]) // self._hint(atom[2])
                else:
                    part *= self._hint(atom[1]) % self._hint(atom[2])
            total += part
        return total

    def holds(self, sign: str, a: int | Size, b: int | Size) -> bool:
        """Whether ``a sign b`` (``==`` or ``<``), noted as a guard unless it always holds."""
        left, right = (self.known(_as_terms(x)) for x in (a, b))
        difference = _add(left, right, -1)
        value = _value(difference)
        if value is not None:
            return value == 0 if sign == "==" else value < 0
        least = self._least(difference)
        if least is not None and (least > 0 if sign == "==" else least >= 0):
            return False
        opposite = self._least(_add(right, left, -1))
        if opposite is not None and opposite > 0:
            return sign == "<"
        x, y = self._hint(left), self._hint(right)
        if sign == "<":
            self._note("<" if x < y else ">=", left, right)
            return x < y
        if x == y:
            self.equate(left, right)
        else:
            self._note("!=", left, right)
        return x == y

    def _least(self, terms: Terms) -> int | None:
        """A bound from below, if no term but the constant is negative: axes are at least 2."""
        total = 0
        for product, coefficient in terms:
            if not product:
                total += coefficient
            elif coefficient < 0:
                return None
            elif all(atom[0] == "axis" for atom in product):
                total += coefficient * 2 ** len(product)
        return total

    def _note(self, sign: str, left: Terms, right: Terms) -> None:
        guard = Guard(sign, left, right)
        if guard not in self.guards:
            self.guards.append(guard)

    def equate(self, left: Terms, right: Terms) -> None:
        """Rely on the equality of two lengths from now on."""
        self._note("==", left, right)
        pairs = ((left, right), (right, left))
        # of two axes the later one goes
        for mine, other in sorted(pairs, key=lambda p: repr(_axis(p[0]) or ()), reverse=True):
            axis = _axis(mine)
            if axis is not None and axis not in _atoms(other):
                self._known[axis] = other
                return

    def specialise(self, length: int | Size) -> int:
        """The length as a number, which becomes part of what the kernel is made for."""
        terms = self.known(_as_terms(length))
        value = _value(terms)
        if value is not None:
            return value
        value = self._hint(terms)
        self.equate(terms, _constant(value))
        return value

    def text(self, length: int | Size, names: Callable[[int], str]) -> str:
        """A length as a Python expression; ``names`` gives that of axis ``k``."""
        return _text(self.known(_as_terms(length)), names)

    def axes(self, lengths: Iterable[int | Size]) -> set[int]:
        """Numbers of the symbolic axes that lengths depend on."""
        return {atom[1] for length in lengths for atom in _atoms(self.known(_as_terms(length)))}


class Size(AbstractLength):
    """A length that a compiled function reads when it is called: Note [Sizes]."""

    __slots__ = ("sizes", "terms")

    def __init__(self, sizes: Sizes, terms: Terms) -> None:
        self.sizes, self.terms = sizes, terms

    def _of(self, terms: Terms) -> int | Size:
        return self.sizes.resolve(Size(self.sizes, terms))

    def __repr__(self) -> str:
        return self.sizes.text(self, lambda k: f"n{k}")

    # ------------------------------------------------------------------------- arithmetic

    def __add__(self, other: Any) -> Any:
        terms = _operand(other)
        if terms is None:
            return self.as_number() + other if isinstance(other, _FLOATS) else NotImplemented
        return self._of(_add(self.terms, terms))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        terms = _operand(other)
        if terms is None:
            return self.as_number() - other if isinstance(other, _FLOATS) else NotImplemented
        return self._of(_add(self.terms, terms, -1))

    def __rsub__(self, other: Any) -> Any:
        terms = _operand(other)
        if terms is None:
            return other - self.as_number() if isinstance(other, _FLOATS) else NotImplemented
        return self._of(_add(terms, self.terms, -1))

    def __mul__(self, other: Any) -> Any:
        terms = _operand(other)
        if terms is None:
            return self.as_number() * other if isinstance(other, _FLOATS) else NotImplemented
        return self._of(_multiply(self.terms, terms))

    __rmul__ = __mul__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        given = [x.as_number() if isinstance(x, Size) else x for x in operands]
        return getattr(ufunc, method)(*given, **options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.__index__(), dtype)

    def __neg__(self) -> Any:
        return self._of(_multiply(self.terms, _constant(-1)))

    def __pos__(self) -> Size:
        return self

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

    def _divided(self, sign: str, a: Any, b: Any) -> Any:
        left, right = _operand(a), _operand(b)
        if left is None or right is None:
            return NotImplemented
        known = self.sizes.known
        left, right = known(left), known(right)
        if self.sizes.holds("==", Size(self.sizes, right), 0):
            raise ZeroDivisionError("division of a length by zero")
        return self._of(_divide(sign, left, right))

    def __truediv__(self, other: Any) -> Any:
        return self.as_number() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.as_number()

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and 0 <= other <= 8:
            terms = _constant(1)
            for _ in range(other):
                terms = _multiply(terms, self.terms)
            return self._of(terms)
        return self.as_number() ** other

    def __rpow__(self, other: Any) -> Any:
        return other ** self.as_number()

    def as_number(self) -> Any:
        """The length as a traced number."""
        make = self.sizes.on_number
        return self.__index__() if make is None else make(self)

    # ------------------------------------------------------------------------- comparisons

    def __eq__(self, other: object) -> bool:
        if _operand(other) is None:
            return NotImplemented
        return self.sizes.holds("==", self, other)  # pyright: ignore

    def __ne__(self, other: object) -> bool:
        if _operand(other) is None:
            return NotImplemented
        return not self.sizes.holds("==", self, other)  # pyright: ignore

    def __lt__(self, other: Any) -> Any:
        return NotImplemented if _operand(other) is None else self.sizes.holds("<", self, other)

    def __gt__(self, other: Any) -> Any:
        return NotImplemented if _operand(other) is None else self.sizes.holds("<", other, self)

    def __le__(self, other: Any) -> Any:
        return NotImplemented if _operand(other) is None else not (self > other)

    def __ge__(self, other: Any) -> Any:
        return NotImplemented if _operand(other) is None else not (self < other)

    def __bool__(self) -> bool:
        return not self.sizes.holds("==", self, 0)

    def __abs__(self) -> Any:
        return -self if self < 0 else self

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


_FLOATS = (float, complex)


def _operand(value: Any) -> Terms | None:
    if isinstance(value, Size):
        return value.sizes.known(value.terms)
    return _constant(int(value)) if isinstance(value, int | np.integer) else None


def _as_terms(length: int | Size) -> Terms:
    return length.terms if isinstance(length, Size) else _constant(length)


def _divide(sign: str, a: Terms, b: Terms) -> Terms:
    """Quotient rounded down, or remainder, done as far as coefficients go."""
    x, y = _value(a), _value(b)
    if x is not None and y is not None:
        return _constant(x // y if sign == "//" else x % y)
    if a == b:
        return _constant(1 if sign == "//" else 0)
    if y is not None and y > 0:
        if y == 1:
            return a if sign == "//" else ()
        whole = tuple((p, c // y) for p, c in a if c % y == 0)
        rest = tuple((p, c) for p, c in a if c % y)
        if whole:
            if sign == "%":
                return _divide(sign, rest, b)
            return _add(whole, _divide(sign, rest, b))
        if not rest:
            return ()
    quotient = _exact(a, b)
    if quotient is not None:
        return quotient if sign == "//" else ()
    return ((((sign, a, b),), 1),)


def _exact(a: Terms, b: Terms) -> Terms | None:
    """``a / b`` for a product ``b`` that every term of ``a`` contains."""
    if len(b) != 1:
        return None
    product, coefficient = b[0]
    out = []
    for p, c in a:
        left = list(p)
        for atom in product:
            if atom not in left:
                return None
            left.remove(atom)
        if c % coefficient:
            return None
        out.append((tuple(left), c // coefficient))
    return _terms(dict(out))


def _text(terms: Terms, names: Callable[[int], str]) -> str:
    """Terms as an expression that Python and Numba read alike."""
    if not terms:
        return "0"
    parts = []
    for product, coefficient in terms:
        factors = [
            names(atom[1])
            if atom[0] == "axis"
            else f"(({_text(atom[1], names)}) {atom[0]} ({_text(atom[2], names)}))"
            for atom in product
        ]
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient))
        parts.append("*".join(factors))
    return " + ".join(parts) if len(parts) > 1 else parts[0]
