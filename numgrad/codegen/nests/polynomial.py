"""Polynomials with integer coefficients over lengths of axes, quotients and remainders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

Atom = tuple[Any, ...]
"""``("axis", k)``, or ``("//", a, b)`` and ``("%", a, b)`` where ``a`` and ``b`` are lengths."""
Length = tuple[tuple[tuple[Atom, ...], int], ...]
"""A polynomial: products of atoms with their coefficients, sorted; the constant has no atom."""


def _sorted(factors: dict[tuple[Atom, ...], int]) -> Length:
    if len(factors) < 2:
        return tuple([(k, c) for k, c in factors.items() if c])
    return tuple(sorted(((k, c) for k, c in factors.items() if c), key=repr))


def constant(value: int) -> Length:
    """A number as a polynomial."""
    return (((), value),) if value else ()


@lru_cache(8192)
def add(a: Length, b: Length, factor: int = 1) -> Length:
    """``a + factor * b``."""
    if not b:
        return a
    total = dict(a)
    for product, coefficient in b:
        total[product] = total.get(product, 0) + factor * coefficient
    return _sorted(total)


@lru_cache(8192)
def multiply(a: Length, b: Length) -> Length:
    """``a * b``."""
    if not a or not b:
        return ()
    if len(b) == 1 and not b[0][0]:
        a, b = b, a
    if len(a) == 1 and not a[0][0]:
        factor = a[0][1]
        return b if factor == 1 else tuple([(q, factor * d) for q, d in b])
    total: dict[tuple[Atom, ...], int] = {}
    for p, c in a:
        for q, d in b:
            product = tuple(sorted((*p, *q), key=repr)) if p and q else p or q
            total[product] = total.get(product, 0) + c * d
    return _sorted(total)


def value_of(terms: Length) -> int | None:
    """The number, if there is no atom."""
    if not terms:
        return 0
    return terms[0][1] if len(terms) == 1 and not terms[0][0] else None


def axis_of(terms: Length) -> Atom | None:
    """The axis that the terms are, if they are nothing else."""
    if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1:
        atom = terms[0][0][0]
        return atom if atom[0] == "axis" else None
    return None


def atoms_of(terms: Length) -> set[Atom]:
    """Every axis that the terms depend on."""
    atoms: set[Atom] = set()
    for product, _ in terms:
        for atom in product:
            atoms |= {atom} if atom[0] == "axis" else atoms_of(atom[1]) | atoms_of(atom[2])
    return atoms


def evaluate(terms: Length, lengths: Mapping[int, int] | Sequence[int]) -> int:
    """The number that the terms are where axis ``k`` has the length ``lengths[k]``."""
    total = 0
    for product, coefficient in terms:
        term = coefficient
        for atom in product:
            if atom[0] == "axis":
                term *= lengths[atom[1]]
            else:
                a, b = (evaluate(side, lengths) for side in atom[1:])
                term *= a // b if atom[0] == "//" else a % b
        total += term
    return total


def least(terms: Length, bounds: Mapping[Atom, int]) -> int | None:
    """A bound from below, where it is plain: axes are at least 2, or what ``bounds`` says."""
    total = 0
    for product, coefficient in terms:
        term = coefficient
        for atom in product:
            bound = _least_of(atom, bounds)
            if bound is None:
                return None
            term *= bound
        if product and coefficient < 0:
            return None
        total += term
    return total


def _least_of(atom: Atom, bounds: Mapping[Atom, int]) -> int | None:
    """A bound from below that is not negative."""
    if atom[0] == "axis":
        return bounds.get(atom, 2)
    a, b = (least(side, bounds) for side in atom[1:])
    fits = b is not None and b > 0 and (atom[0] == "%" or (a is not None and a >= 0))
    return 0 if fits else None


def solve(terms: Length) -> tuple[Atom, Length] | None:
    """An atom, and what it equals where the terms are 0.

    Axes come before quotients and remainders, of several axes the last one.
    """
    solution = None
    for product, coefficient in terms:
        if len(product) != 1:
            continue
        (atom,) = product
        rest = tuple(t for t in terms if t[0] != product)
        if _contains(rest, atom) or any(c % coefficient for _, c in rest):
            continue
        if solution is None or _rank(atom) > _rank(solution[0]):
            solution = atom, _sorted({p: -c // coefficient for p, c in rest})
    return solution


def _rank(atom: Atom) -> int:
    return atom[1] if atom[0] == "axis" else -1


def _contains(terms: Length, wanted: Atom) -> bool:
    return any(
        atom == wanted or (atom[0] != "axis" and any(_contains(side, wanted) for side in atom[1:]))
        for product, _ in terms
        for atom in product
    )


def divide(sign: str, a: Length, b: Length) -> Length:
    """Quotient rounded down, or remainder, done as far as coefficients go."""
    x, y = value_of(a), value_of(b)
    if x is not None and y is not None:
        return constant(x // y if sign == "//" else x % y)
    if a == b:
        return constant(1 if sign == "//" else 0)
    if y is not None and y > 0:
        if y == 1:
            return a if sign == "//" else ()
        whole = tuple((p, c // y) for p, c in a if c % y == 0)
        rest = tuple((p, c) for p, c in a if c % y)
        if whole:
            if sign == "%":
                return divide(sign, rest, b)
            return add(whole, divide(sign, rest, b))
        if not rest:
            return ()
    quotient = _exact(a, b)
    if quotient is not None:
        return quotient if sign == "//" else ()
    return ((((sign, a, b),), 1),)


def _exact(a: Length, b: Length) -> Length | None:
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
    return _sorted(dict(out))


def substitute(terms: Length, values: Mapping[Atom, Length]) -> Length:
    """Replace some atoms by terms, until none of these atoms is left."""
    total: Length = ()
    for product, coefficient in terms:
        term = constant(coefficient)
        for atom in product:
            term = multiply(term, _substitute(atom, values))
        total = add(total, term)
    return total


def _substitute(atom: Atom, values: Mapping[Atom, Length]) -> Length:
    if atom[0] != "axis":
        terms = divide(atom[0], *(substitute(side, values) for side in atom[1:]))
        if len(terms) != 1 or len(terms[0][0]) != 1 or terms[0][1] != 1:
            return terms
        (atom,) = terms[0][0]
    value = values.get(atom)
    return (((atom,), 1),) if value is None else substitute(value, values)


def text_of(terms: Length, names: Callable[[int], str]) -> str:
    """Terms as an expression that Python and Numba read alike."""
    if not terms:
        return "0"
    parts = []
    for product, coefficient in terms:
        factors = [
            names(atom[1])
            if atom[0] == "axis"
            else f"(({text_of(atom[1], names)}) {atom[0]} ({text_of(atom[2], names)}))"
            for atom in product
        ]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        parts.append(("-" if coefficient < 0 else "") + "*".join(factors))
    return " + ".join(parts).replace("+ -", "- ")
