"""Random expressions over the variables of a program of loops, as text.

Values stay near one; indices are in range by construction.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.codegen.adjoint.programs import SIZES


@dataclass(frozen=True)
class Array:
    """A variable that is an array.

    Attributes
    ----------
    lengths
        Its axes, as text.
    root
        The argument or local array whose memory it is.
    """

    name: str
    lengths: tuple[str, ...]
    kind: str  # "real", "complex"
    root: str
    own: bool = True  # all of its memory, not a view
    home: int = 0  # of which block it is a variable


@dataclass(frozen=True)
class Index:
    """A variable that runs through an axis; so many places before and after are in range too."""

    name: str
    length: str
    before: int = 0
    after: int = 0


@dataclass
class Scope:
    reals: list[str] = field(default_factory=list)
    complexes: list[str] = field(default_factory=list)
    wholes: list[str] = field(default_factory=list)
    truths: list[str] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    indices: list[Index] = field(default_factory=list)
    fixed: tuple[str, ...] = ()  # names that may not be assigned here

    def inner(self, **changes: Any) -> Scope:
        copies = {
            name: list(value) if isinstance(value, list) else value
            for name, value in vars(self).items()
        }
        return replace(self, **(copies | changes))


@dataclass(frozen=True)
class Parallel:
    """A ``prange`` being written: arrays of which an iteration touches its own part, and sums."""

    variable: str
    owned: frozenset[str]
    sums: frozenset[str]


HELPERS = {
    "bend": """
def bend(u, v):
    if u < 0.1:
        return u * v
    return math.sin(u) + 0.5 * v * v
""",
    "pair": """
def pair(u, v):
    w = 0.5 * (u + v)
    return w, math.tanh(u * v)
""",
    "power": """
def power(u, k):
    out = 1.0
    while k > 0:
        out = out * u
        k -= 1
    return out
""",
    "nearest": """
def nearest(values, at):
    best = 10.0
    for i in range(len(values)):
        gap = (values[i] - at) ** 2
        if gap < 0.01:
            return 0.3 * gap
        if gap < best:
            best = gap
    return best / (1.0 + best)
""",
    "smooth": """
def smooth(values, rate):
    for i in range(1, len(values)):
        values[i] += rate * (values[i - 1] - values[i])
""",
    "nested": """
def bent(u, v):
    if u < 0.1:
        return u * v
    return math.cos(u) - 0.4 * v


def nested(u, v):
    one, two = bent(u, v), bent(v, u)
    if one < two:
        one, two = two, one
    return one - 0.3 * two
""",
}

REAL = [  # (weight, text); r: real, v: a leaf, p: at least 0.2, c: complex, b: a condition, k: int
    (8, "({r} + {r})"),
    (5, "({r} - 0.5 * {r})"),
    (12, "{r} * {r}"),
    (4, "math.sin({r})"),
    (3, "np.cos({r})"),
    (3, "math.tanh({r})"),
    (4, "{r} / (1.5 + math.cos({r}))"),
    (2, "max({r}, {r})"),
    (1, "max({r}, {r}, 0.1)"),
    (1, "np.minimum({r}, {r})"),
    (2, "min({r}, 0.4)"),
    (2, "abs({r})"),
    (1, "math.fabs({r})"),
    (2, "math.sqrt({p})"),
    (2, "math.log({p})"),
    (2, "math.exp(-({v} ** 2))"),
    (2, "np.exp(0.5 * math.sin({r}))"),
    (3, "{v} ** 2"),
    (1, "{v} ** 3"),
    (1, "{p} ** 1.5"),
    (1, "{p} ** (0.5 * {v})"),
    (1, "{p} ** -1"),
    (1, "1.0 / {p}"),
    (1, "math.atan2({r}, {p})"),
    (1, "math.hypot({r}, {p})"),
    (2, "({r} if {b} else {r})"),
    (1, "math.erf({v})"),
    (1, "math.expm1(0.2 * {v})"),
    (1, "math.log1p({v} ** 2)"),
    (1, "(-{r})"),
    (1, "(2.5 * {v}) % 1.7"),
    (1, "np.sign({v})"),
    (1, "math.floor(3.0 * {v})"),
    (1, "LEVEL * {r}"),
    (1, "0.1 * {k}"),
    (1, "float({k}) * {r}"),
    (2, "({p} / 2.5) ** {k}"),
]
BOUNDED = [  # of any real expression, something near one
    (6, "0.9 * math.sin({r})"),
    (3, "math.tanh({r})"),
    (1, "{r} / (1.0 + abs({r}))"),
    (1, "math.exp(-abs({r}))"),
    (4, "0.4 * {v} + 0.5 * {v}"),
    (3, "0.7 * {v} * {v}"),
    (2, "0.5 * ({v} - {v})"),
    (1, "{v}"),
    (1, "0.3"),
    (1, "-0.0"),
]
COMPLEX = [
    (4, "({c} + {c})"),
    (2, "({c} - {r} * {c})"),
    (5, "{c} * {c}"),
    (2, "{c} / (2.5 + {r} ** 2)"),
    (1, "{c} / (3.0 + 0.5j * {v})"),
    (2, "np.exp(0.3j * {v})"),
    (1, "np.sin(0.5 * {u})"),
    (2, "np.conj({c})"),
    (2, "complex({r}, {r})"),
    (1, "{u} ** 2"),
    (1, "({c} if {b} else {c})"),
]
COMPLEX_BOUNDED = [
    (4, "{c} / (1.0 + abs({c}) ** 2)"),
    (4, "0.4 * {u} + 0.5j * {u}"),
    (2, "0.6 * {u} * {u}"),
    (1, "(0.2 - 0.1j)"),
]
CONDITION = [
    (6, "{v} < {v}"),
    (4, "{v} > 0.29"),
    (2, "{r} <= {r}"),
    (2, "({s} and {s})"),
    (2, "({s} or {s})"),
    (1, "not {s}"),
    (1, "-0.4 < {v} < 0.9"),
    (3, "{k} % 2 == 0"),
    (1, "{k} != 1"),
    (1, "{k} > {k}"),
]


class ExpressionWriter:
    """Writes random expressions; ``Writer`` writes the program around them.

    Parameters
    ----------
    small
        Few statements.
    """

    def __init__(self, seed: int, small: bool = False):
        self.random = random.Random(seed)
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self.budget = self.random.randint(4, 8) if small else self.random.randint(6, 24)
        self.parallel: Parallel | None = None
        self.written: set[str] = set()
        self.families: list[set[str]] = []
        self.helpers: set[str] = set()
        self.returns = self.random.choice(["scalar"] * 4 + ["pair", "nothing", "array"])
        self.complex = self.random.random() < 0.25
        self.single = self.random.random() < 0.15
        self.uses_parallel = self.random.random() < 0.4
        self.mask = False

    # choices

    def draw(self, table: list[tuple[int, str]]) -> str:
        return self.random.choices([t for _, t in table], [w for w, _ in table])[0]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self, stem: str) -> str:
        self.counts[stem] += 1
        return f"{stem}{self.counts[stem]}"

    # expressions

    def fill(self, text: str, scope: Scope, depth: int) -> str:
        """The text with a new expression in each place."""
        writers: dict[str, Callable[[], str]] = {
            "r": lambda: self.real(scope, depth - 1),
            "v": lambda: self.leaf(scope),
            "p": lambda: self.positive(scope, depth - 1),
            "c": lambda: self.complex_number(scope, depth - 1),
            "u": lambda: self.complex_leaf(scope),
            "b": lambda: self.condition(scope),
            "s": lambda: self.condition(scope, simple=True),
            "k": lambda: self.whole(scope),
        }
        out, rest = "", text
        while "{" in rest:
            before, _, rest = rest.partition("{")
            out += before + writers[rest[0]]()
            rest = rest[2:]
        return out + rest

    def real(self, scope: Scope, depth: int = 2) -> str:
        if depth <= 0 or self.chance(0.2):
            return self.leaf(scope)
        r = self.random.random()
        if r < 0.06:
            return self.helper_call(scope, depth)
        if r < 0.09:
            product = self.product(scope)
            if product:
                return product
        return self.fill(self.draw(REAL), scope, depth)

    def bounded(self, scope: Scope, depth: int = 2) -> str:
        return self.fill(self.draw(BOUNDED), scope, depth)

    def positive(self, scope: Scope, depth: int) -> str:
        r = self.real(scope, depth)
        return self.random.choice([f"(1.3 + math.sin({r}))", f"(0.4 + {self.leaf(scope)} ** 2)"])

    def leaf(self, scope: Scope) -> str:
        """A real variable or element."""
        r = self.random.random()
        usable = [s for s in scope.reals if not (self.parallel and s in self.parallel.sums)]
        if usable and r < 0.4:
            return self.random.choice(usable)
        if scope.complexes and r < 0.45:
            return self.random.choice(scope.complexes) + self.random.choice([".real", ".imag"])
        arrays = self.readable(scope, "real")
        if arrays:
            return self.element(self.random.choice(arrays), scope)
        return self.random.choice(usable) if usable else "0.7"

    def complex_number(self, scope: Scope, depth: int = 2) -> str:
        if depth <= 0 or self.chance(0.25):
            return self.complex_leaf(scope)
        return self.fill(self.draw(COMPLEX), scope, depth)

    def complex_leaf(self, scope: Scope) -> str:
        arrays = self.readable(scope, "complex")
        if arrays and (self.chance(0.6) or not scope.complexes):
            return self.element(self.random.choice(arrays), scope)
        if scope.complexes:
            return self.random.choice(scope.complexes)
        return f"complex({self.leaf(scope)}, 0.3)"

    def whole(self, scope: Scope) -> str:
        """An int from 0 to about ten."""
        choices = [i.name for i in scope.indices] + scope.wholes
        r = self.random.random()
        if choices and r < 0.7:
            return self.random.choice(choices)
        if scope.indices and r < 0.85:
            i = self.random.choice([i for i in scope.indices])
            return f"q[{i.name}]" if i.length == "n" else i.name
        return self.random.choice(["n", "len(x)", "2", "3"])

    def condition(self, scope: Scope, simple: bool = False) -> str:
        if scope.truths and self.chance(0.15):
            return self.random.choice(["", "not "]) + self.random.choice(scope.truths)
        if self.mask and self.chance(0.06):
            return f"b[{self.index('n', scope)}]"
        return self.fill(self.draw(CONDITION[:3] if simple else CONDITION), scope, 1)

    def index(self, length: str, scope: Scope) -> str:
        """An int that is in range of an axis."""
        mine = [i for i in scope.indices if i.length == length]
        r = self.random.random()
        if mine and r < 0.55:
            i = self.random.choice(mine)
            shift = self.random.randint(-i.before, i.after) if self.chance(0.6) else 0
            if shift == 0 and self.chance(0.05):
                return f"{length} - 1 - {i.name}" if not (i.before or i.after) else i.name
            return i.name if shift == 0 else f"{i.name} {'+' if shift > 0 else '-'} {abs(shift)}"
        if mine and r < 0.62 and length == "n":
            return f"q[{self.random.choice(mine).name}]"
        if mine and r < 0.7:
            i = self.random.choice(mine)
            return f"({i.name} + {self.random.randint(1, 3)}) % {length}"
        wholes = scope.wholes + [i.name for i in scope.indices]
        if wholes and r < 0.8:
            k = self.random.choice(wholes)
            return self.random.choice([f"{k} % {length}", f"(2 * {k} + 1) % {length}"])
        if r < 0.84:
            return f"int(3.0 * abs({self.leaf_without_index(scope)})) % {length}"
        if r < 0.87:
            return "-1"
        return str(self.random.randint(0, 2 if length in SIZES else 1))

    def leaf_without_index(self, scope: Scope) -> str:
        usable = [s for s in scope.reals if not (self.parallel and s in self.parallel.sums)]
        return self.random.choice(usable) if usable else "0.7"

    def readable(self, scope: Scope, kind: str) -> list[Array]:
        return [a for a in scope.arrays if a.kind == kind]

    def element(self, array: Array, scope: Scope) -> str:
        return f"{array.name}[{', '.join(self.places(array, scope))}]"

    def places(self, array: Array, scope: Scope) -> list[str]:
        places = [self.index(length, scope) for length in array.lengths]
        if self.parallel and array.root in self.parallel.owned and array.own:
            places[0] = self.parallel.variable
        return places

    def product(self, scope: Scope) -> str | None:
        """A product of whole vectors."""
        if self.parallel:
            return None
        vectors = [a for a in self.readable(scope, "real") if len(a.lengths) == 1]
        pairs = [(a, b) for a in vectors for b in vectors if a.lengths == b.lengths]
        if not pairs:
            return None
        a, b = self.random.choice(pairs)
        return (
            f"0.2 * {self.random.choice([f'np.dot({a.name}, {b.name})', f'({a.name} @ {b.name})'])}"
        )

    def helper_call(self, scope: Scope, depth: int) -> str:
        name = self.random.choice(["bend", "bend", "power", "nested", "nearest", "pair"])
        if name == "nearest":
            vectors = [
                a for a in self.readable(scope, "real")
                if len(a.lengths) == 1 and not (self.parallel and a.root in self.parallel.owned)
            ]  # fmt: skip
            if not vectors:
                return self.leaf(scope)
            self.helpers.add(name)
            return f"nearest({self.random.choice(vectors).name}, {self.leaf(scope)})"
        self.helpers.add(name)
        if name == "power":
            times = self.random.choice(["2", "3", f"{self.whole(scope)} % 4"])
            return f"power({self.leaf(scope)}, {times})"
        r = self.real(scope, depth - 1)
        if name == "pair":
            return f"pair({r}, {self.leaf(scope)})[{self.random.randint(0, 1)}]"
        return f"{name}({r}, {self.leaf(scope)})"
