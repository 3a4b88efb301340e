"""Random programs of loops, as text: what users may write for `ng.kernel`, in small.

`Writer(seed).write()` gives the same program for the same seed; whether it comes near a tie or jump
is measured when it runs (`hyperdual`). Expressions: `expression_writer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.codegen.adjoint.expression_writer import (
    COMPLEX_BOUNDED,
    HELPERS,
    Array,
    ExpressionWriter,
    Index,
    Parallel,
    Scope,
)
from tests.codegen.adjoint.programs import SHAPES, SIZES, Program


class Writer(ExpressionWriter):
    """Writes a random program; see ``ExpressionWriter``."""

    # statements

    def block(self, scope: Scope, depth: int, loop: bool, most: int = 4) -> list[str]:
        """Some statements; ``loop``: break and continue may stand here."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, most)):
            if self.budget <= 0:
                break
            self.budget -= 1
            lines += self.statement(scope, depth, loop)
        return lines or [f"{self.target(scope)} += 0.1 * {self.leaf(scope)}"]

    def target(self, scope: Scope) -> str:
        """A real variable that may be assigned, as a sum if it must be."""
        if self.parallel:
            return sorted(self.parallel.sums)[0]
        return self.random.choice([r for r in scope.reals if r not in scope.fixed])

    def statement(self, scope: Scope, depth: int, loop: bool) -> list[str]:
        deep = depth >= 3
        table: list[tuple[float, Callable[[], list[str] | None]]] = [
            (18, lambda: self.assign(scope)),
            (24, lambda: self.store(scope)),
            (0 if deep else 16, lambda: self.for_loop(scope, depth)),
            (0 if deep else 6, lambda: self.while_loop(scope, depth)),
            (10, lambda: self.branch(scope, depth, loop)),
            (4 if loop else 0, lambda: self.leave(scope)),
            (0 if self.parallel else 1.5, lambda: self.early_return(scope)),
            (5, lambda: self.local_array(scope)),
            (4, lambda: self.view(scope)),
            (0 if self.parallel else 4, lambda: self.slice_store(scope)),
            (3, lambda: self.several(scope)),
            (2, lambda: self.truth(scope)),
            (3, lambda: self.count(scope)),
            (0 if self.parallel or depth > 1 else 2, lambda: self.swap_arrays(scope)),
            (0 if self.parallel else 2, lambda: self.rows(scope, depth)),
            (0 if self.parallel or depth > 1 else 4, lambda: self.steps(scope, depth)),
            (0 if self.parallel else 1, lambda: self.in_place_helper(scope)),
            (0 if self.parallel else 4, lambda: self.chosen(scope)),
            (0 if self.parallel else 3, lambda: self.reduced(scope)),
            (2 if self.complex else 0, lambda: self.assign_complex(scope)),
            (8 if depth == 0 and self.uses_parallel else 0, lambda: self.parallel_loop(scope)),
        ]
        while True:
            make = self.random.choices([m for _, m in table], [w for w, _ in table])[0]
            lines = make()
            if lines:
                return lines

    def assign(self, scope: Scope) -> list[str]:
        if self.parallel and self.chance(0.35):
            op = self.random.choice(["+=", "-="])
            return [f"{sorted(self.parallel.sums)[0]} {op} {self.bounded(scope)}"]
        known = [r for r in scope.reals if r not in scope.fixed]
        if known and self.chance(0.65):
            name = self.random.choice(known)
            if self.chance(0.5):
                op = self.random.choice(["+= 0.3 *", "*= 0.6 +", "-= 0.4 *", "/= 1.5 +"])
                value = self.bounded(scope)
                if op == "*= 0.6 +" or op == "/= 1.5 +":
                    value = f"0.4 * math.sin({self.real(scope, 1)})"
                return [f"{name} {op} {value if op[-1] == '+' else f'({value})'}"]
        else:
            name = self.name("t")
        value = self.bounded(scope)
        if name not in scope.reals:
            scope.reals.append(name)
            if self.chance(0.08):  # starts as an int, becomes a float
                return [f"{name} = 0", f"{name} = {name} + {value}"]
        return [f"{name} = {value}"]

    def assign_complex(self, scope: Scope) -> list[str]:
        value = self.fill(self.draw(COMPLEX_BOUNDED), scope, 2)
        known = [c for c in scope.complexes if c not in scope.fixed]
        if known and self.chance(0.7):
            name = self.random.choice(known)
            return [f"{name} {self.random.choice(['=', '= 0.3 * ' + name + ' +'])} {value}"]
        name = self.name("c")
        if name not in scope.complexes:
            scope.complexes.append(name)
        return [f"{name} = {value} + 0.0j"]

    def writable(self, scope: Scope) -> list[Array]:
        arrays = scope.arrays
        if self.parallel:
            mine = self.parallel.owned
            arrays = [a for a in arrays if a.root in mine or a.root.startswith("inner")]
        return arrays

    def store(self, scope: Scope) -> list[str] | None:
        arrays = self.writable(scope)
        if not arrays:
            return None
        array = self.random.choice(arrays)
        self.written.add(array.root)
        where = self.element(array, scope)
        if array.kind == "complex":
            value = self.fill(self.draw(COMPLEX_BOUNDED), scope, 2)
            return [f"{where} {self.random.choice(['=', '=', '+= 0.2 *'])} ({value})"]
        op = self.random.choice(["=", "=", "=", "+=", "+=", "-=", "*=", "/="])
        if op == "*=":
            return [f"{where} *= 0.7 + 0.3 * math.sin({self.real(scope)})"]
        if op == "/=":
            return [f"{where} /= 1.6 + 0.5 * math.cos({self.real(scope)})"]
        if op == "=" and self.chance(0.06):
            plain = self.random.choice(["0.0", "0.25", "1", f"{self.whole(scope)} * 0.1"])
            return [f"{where} = {plain}"]
        return [f"{where} {op} {self.bounded(scope)}"]

    def head(self, scope: Scope) -> tuple[list[str], str, list[Index]]:
        """Lines before a loop, its head, and the indices that it gives."""
        v = self.name("i")
        length = self.random.choice(["n", "n", "n", "m", "l"])
        r = self.random.random()
        mine = [i for i in scope.indices if i.length == length]
        if r < 0.35:
            return [], f"for {v} in range({length}):", [Index(v, length)]
        if r < 0.5:
            low, high = self.random.choice([(1, 0), (0, 1), (1, 1)])
            stop = length if not high else f"{length} - 1"
            return [], f"for {v} in range({low}, {stop}):", [Index(v, length, low, high)]
        if r < 0.62:
            low, high = self.random.choice([(0, 0), (0, 1), (1, 0)])
            start = f"{length} - {1 + high}"
            return [], f"for {v} in range({start}, {low - 1}, -1):", [Index(v, length, low, high)]
        if r < 0.68:
            return [], f"for {v} in range(0, {length}, 2):", [Index(v, length)]
        if r < 0.78 and mine:
            i = self.random.choice(mine)
            form = self.random.choice(
                [f"range({i.name})", f"range({i.name} + 1)", f"range({i.name}, {length})"]
            )
            return [], f"for {v} in {form}:", [Index(v, length)]
        if r < 0.82:
            w = self.name("i")
            return (
                [],
                f"for {w}, {v} in enumerate(range(1, {length})):",
                [Index(v, length, 1, 0), Index(w, length, 0, 1)],
            )
        if r < 0.86:
            w = self.name("i")
            return (
                [],
                f"for {v}, {w} in zip(range({length}), range({length} - 1, -1, -1)):",
                [Index(v, length), Index(w, length)],
            )
        if r < 0.9:  # as many as a float says
            k = self.name("count")
            return (
                [f"{k} = 1 + int(2.0 * abs({self.leaf(scope)})) % 3"],
                f"for {v} in range({k}):",
                [Index(v, length)],
            )
        vectors = [a.name for a in self.readable(scope, "real") if a.lengths == ("n",) and a.own]
        if r < 0.96 and vectors and not self.parallel:
            value, of = self.name("v"), self.random.choice(vectors)
            if self.chance(0.5):
                return [], f"for {v}, {value} in enumerate({of}):", [Index(v, "n")]
            return [], f"for {v}, {value} in zip(range(n), {of}[::-1]):", [Index(v, "n")]
        if r < 0.98 and length == "n":
            return [], f"for {v} in range(q[{self.index('n', scope)}]):", [Index(v, length)]
        return [], f"for {v} in range(x.shape[0]):", [Index(v, "n")]

    def for_loop(self, scope: Scope, depth: int) -> list[str]:
        before, head, indices = self.head(scope)
        inner = scope.inner(indices=[*scope.indices, *indices])
        items = re.fullmatch(r"for .*?(v\d+) in (enumerate|zip)\(.*", head)
        if items:
            inner.reals.append(items[1])
        lines = self.block(inner, depth + 1, loop=True)
        if self.chance(0.3) and not self.parallel:  # what the last iteration leaves
            scope.reals += [r for r in inner.reals if r not in scope.reals]
        out = [*before, head, *indented(lines)]
        if self.chance(0.08) and not self.parallel:
            out += ["else:", f"    {self.target(scope)} += 0.1 * {self.leaf(scope)}"]
        return out

    def while_loop(self, scope: Scope, depth: int) -> list[str]:
        r = self.random.random()
        k = self.name("k")
        if r < 0.6:  # an index runs along an axis while elements are of a kind
            length = self.random.choice(["n", "m"])
            inner = scope.inner(indices=[*scope.indices, Index(k, length)], fixed=(*scope.fixed, k))
            only = scope.inner(indices=[Index(k, length)], reals=[], complexes=[])
            limit = self.random.choice(["0.9", "1.3", self.leaf(scope)])
            test = f"{k} < {length} and {self.leaf(only)} < {limit}"
            if self.chance(0.3):
                test = f"{k} < {length}"
            lines = self.block(inner, depth + 1, loop=False)
            return [f"{k} = 0", f"while {test}:", *indented(lines), f"    {k} += 1"]
        if r < 0.8 and not self.parallel:  # until a float is small
            e = self.name("t")
            inner = scope.inner(
                reals=[*scope.reals, e], wholes=[*scope.wholes, k], fixed=(*scope.fixed, k, e)
            )
            lines = self.block(inner, depth + 1, loop=False, most=2)
            return [
                f"{e} = 0.4 + {self.leaf(scope)} ** 2",
                f"{k} = 0",
                f"while {e} > 0.07 and {k} < 6:",
                *indented(
                    [
                        *lines,
                        f"{e} = 0.45 * {e} + 0.02 * math.sin({self.real(inner, 1)})",
                        f"{k} += 1",
                    ]
                ),
            ]
        inner = scope.inner(wholes=[*scope.wholes, k], fixed=(*scope.fixed, k))
        lines = self.block(inner, depth + 1, loop=False, most=3)
        stop = f"if {k} > {self.random.randint(1, 3)} or {self.condition(inner, simple=True)}:"
        return [f"{k} = 0", "while True:", *indented([f"{k} += 1", *lines, stop, "    break"])]

    def parallel_loop(self, scope: Scope) -> list[str] | None:
        length = self.random.choice(["n", "n", "m"])
        arrays = [a for a in scope.arrays if a.own and a.lengths[0] == length]
        owned = frozenset(
            a.root for a in self.random.sample(arrays, min(len(arrays), self.random.randint(0, 2)))
        )
        if len({a.root for a in scope.arrays if a.root in owned and a.own}) < len(owned):
            return None
        sums = [r for r in scope.reals if r not in scope.fixed]
        if not sums or any(owned & family for family in self.families):
            return None
        v = self.name("p")
        total = self.random.choice(sums)
        own_views = [a for a in scope.arrays if a.root in owned and not a.own]
        inner = scope.inner(
            indices=[Index(v, length)],
            arrays=[a for a in scope.arrays if a not in own_views],
            fixed=(*scope.reals, *scope.complexes, *scope.wholes, *scope.truths),
        )
        self.parallel = Parallel(v, owned, frozenset([total]))
        lines = self.block(inner, 1, loop=False)
        self.parallel = None
        return [f"for {v} in prange({length}):", *indented(lines)]

    def branch(self, scope: Scope, depth: int, loop: bool) -> list[str]:
        lines = [
            f"if {self.condition(scope)}:",
            *indented(self.block(scope.inner(), depth, loop, 2)),
        ]
        if self.chance(0.2):
            lines += [
                f"elif {self.condition(scope)}:",
                *indented(self.block(scope.inner(), depth, loop, 2)),
            ]
        if self.chance(0.45):
            lines += ["else:", *indented(self.block(scope.inner(), depth, loop, 2))]
        if self.chance(0.15) and not self.parallel:  # a name of both sides
            t = self.name("t")
            lines += [
                f"if {self.condition(scope)}:",
                f"    {t} = {self.bounded(scope)}",
                "else:",
                f"    {t} = {self.bounded(scope)}",
            ]
            scope.reals.append(t)
        return lines

    def leave(self, scope: Scope) -> list[str]:
        return [f"if {self.condition(scope)}:", f"    {self.random.choice(['break', 'continue'])}"]

    def early_return(self, scope: Scope) -> list[str]:
        return [f"if {self.leaf(scope)} > 1.1:", f"    {self.return_line(scope)}"]

    def return_line(self, scope: Scope) -> str:
        if self.returns == "nothing":
            return "return"
        value = f"{self.leaf(scope)} + 0.7 * t0 * s0"
        if self.returns == "pair":
            return f"return {value}, {self.leaf(scope)}"
        if self.returns == "array":
            return "return w0"
        return f"return {value}"

    def local_array(self, scope: Scope) -> list[str]:
        name = self.name("inner" if self.parallel else "local")
        own = scope.inner()
        whole = [
            a
            for a in scope.arrays
            if a.own and not (self.parallel and a.root in self.parallel.owned)
        ]
        real = [a for a in whole if a.kind == "real"]
        if real and self.chance(0.35):
            of = self.random.choice(real)
            form = self.random.choice(
                ["{}.copy()", "np.empty_like({})", "np.zeros_like({})", "np.copy({})"]
            )
            array = Array(name, of.lengths, "real", name, home=id(scope.arrays))
            lines = [f"{name} = {form.format(of.name)}"]
            filled = "empty" not in form
        else:
            lengths = self.random.choice(
                [("n",), ("n",), ("m",), ("n", "m"), ("m", "n"), ("2", "n")]
            )
            shape = (
                lengths[0]
                if len(lengths) == 1 and self.chance(0.7)
                else f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})"
            )
            form = self.random.choice(
                [
                    "np.zeros({})",
                    "np.empty({})",
                    "np.ones({})",
                    "np.full({}, 0.3)",
                    "np.zeros({}, dtype=np.float64)",
                ]
            )
            if form == "np.full({}, 0.3)" and self.chance(0.5):
                form = "np.full({}, " + self.leaf(scope) + ")"
            array = Array(name, lengths, "real", name, home=id(scope.arrays))
            lines = [f"{name} = {form.format(shape)}"]
            filled = "empty" not in form
        if not filled or self.chance(0.4):
            loops, places = [], []
            for depth, length in enumerate(array.lengths):
                v = self.name("i")
                places.append(v)
                if length.isidentifier():
                    own.indices.append(Index(v, length))
                loops.append("    " * depth + f"for {v} in range({length}):")
            pad = "    " * len(loops)
            lines += [*loops, f"{pad}{name}[{', '.join(places)}] = {self.bounded(own, 1)}"]
        scope.arrays.append(array)
        return lines

    def view(self, scope: Scope) -> list[str] | None:
        arrays = [
            a for a in scope.arrays
            if a.own
            and (not self.parallel or a.root.startswith("inner") or a.root in self.parallel.owned)
        ]  # fmt: skip
        if self.parallel:
            arrays = [a for a in arrays if len(a.lengths) > 1]
        if not arrays:
            return None
        array = self.random.choice(arrays)
        name = self.name("view")
        if len(array.lengths) == 1:
            if array.lengths[0] not in SIZES:
                return None
            part = self.random.choice(["1:", ":-1", "::2", "1:3", "::-1", ":"])
            lengths = (array.lengths[0],) if part in ("::-1", ":") else (f"{name}.shape[0]",)
            scope.arrays.append(Array(name, lengths, array.kind, array.root, False))
            return [f"{name} = {array.name}[{part}]"]
        places = self.places(array, scope)
        form = self.random.random()
        if form < 0.5 or self.parallel:
            scope.arrays.append(Array(name, array.lengths[1:], array.kind, array.root, False))
            more = self.random.choice(["", ", :" * (len(array.lengths) - 1)])
            return [f"{name} = {array.name}[{places[0]}{more}]"]
        if form < 0.75:
            scope.arrays.append(Array(name, array.lengths[:1], array.kind, array.root, False))
            return [f"{name} = {array.name}[:, {', '.join(places[1:])}]"]
        if form < 0.9 and len(array.lengths) == 2:
            scope.arrays.append(Array(name, array.lengths[::-1], array.kind, array.root, False))
            return [f"{name} = {array.name}.T"]
        scope.arrays.append(
            Array(name, (f"{name}.shape[0]", *array.lengths[1:]), array.kind, array.root, False)
        )
        return [f"{name} = {array.name}[1:]"]

    def slice_store(self, scope: Scope) -> list[str] | None:
        """A statement about parts of vectors."""
        vectors = [
            Array(
                f"{a.name}[{', '.join([*self.places(a, scope)[:-1], '{}'])}]",
                a.lengths[-1:],
                a.kind,
                a.root,
            )
            for a in scope.arrays
            if a.lengths[-1] in SIZES
        ]
        pairs = [
            (a, b)
            for a in vectors
            for b in vectors
            if a.lengths == b.lengths and a.kind == b.kind == "real"
        ]
        if not pairs:
            return None
        left, right = self.random.choice(pairs)
        self.written.add(left.root)
        to, of = self.random.choice(
            [(":", ":"), ("1:", ":-1"), (":-1", "1:"), ("1:-1", "2:"), ("::2", "::2")]
        )
        r = right.name.format(of)
        value = self.random.choice(
            [
                "0.6 * {r}",
                "0.9 * np.sin({r})",
                "0.5 * {r} * {r}",
                "{v} * 0.3",
                "0.4 * {r} + 0.2 * {v}",
            ]
        ).format(r=r, v=self.leaf(scope))
        if self.chance(0.15) and left.root != right.root:
            value = r
        op = self.random.choice(["=", "=", "+=", "-=", "*="])
        if op == "*=":
            value = f"(0.6 + 0.3 * {value})"
        return [f"{left.name.format(to)} {op} {value}"]

    def chosen(self, scope: Scope) -> list[str] | None:
        """A statement of elements that a mask or indices choose."""
        own = [a for a in self.readable(scope, "real") if a.lengths == ("n",) and a.own]
        if not own:
            return None
        a, b = (self.random.choice(own) for _ in "ab")
        limit = self.random.choice(["0.29", "-0.2", self.leaf_without_index(scope)])
        mask = self.random.choice(
            [f"{b.name} > {limit}", f"({b.name} < {limit}) | ({a.name} > 0.5)",
             f"~({a.name} > {limit})"]
        )  # fmt: skip
        if self.chance(0.25):
            name = self.name("local")
            scope.arrays.append(Array(name, ("n",), "real", name, home=id(scope.arrays)))
            form = self.random.choice(["{b}[q]", "np.where({m}, {a}, 0.4)"])
            return [f"{name} = " + form.format(a=a.name, b=b.name, m=mask)]
        self.written.add(a.root)
        form = self.random.choice(
            ["{a}[{m}] = 0.5 * {v}", "{a}[{m}] *= 0.7", "{a}[{m}] = 0.3 * {b}[{m}]", "{a}[q] = {b}",
             "{a}[q] += 0.2 * {b}", "{a}[:] = np.where({m}, 0.6 * {b}, 0.5 * {a} * {a})"]
        )  # fmt: skip
        return [form.format(a=a.name, b=b.name, m=mask, v=self.leaf_without_index(scope))]

    def reduced(self, scope: Scope) -> list[str] | None:
        """A sum, mean or maximum of an array."""
        arrays = [a for a in self.readable(scope, "real") if a.own]
        if not arrays:
            return None
        a = self.random.choice(arrays)
        vectors = [b for b in arrays if len(b.lengths) == 1]
        forms = ["0.1 * np.sum({a})", "0.3 * {a}.max()", "0.3 * np.mean({a} * {a})",
                 "0.1 * np.sum(0.5 * np.sin({a}))", "0.1 * np.min({a})"]  # fmt: skip
        if len(a.lengths) > 1:
            forms += ["0.1 * np.sum({a}, axis=0)" + "[0]" * (len(a.lengths) - 1)]
        elif vectors:
            forms += ["0.1 * np.cumsum({a})[1]", "0.1 * sum([u * u for u in {a}])",
                      "0.1 * np.sum({a}[{a} > 0.2] ** 2)", "0.2 * np.diff({a})[0]",
                      "0.1 * np.concatenate(({a}, {a}))[1]"]  # fmt: skip
        name = self.target(scope)
        return [f"{name} = 0.6 * {name} + {self.random.choice(forms).format(a=a.name)}"]

    def several(self, scope: Scope) -> list[str]:
        """Assignments of several names at once."""
        known = [r for r in scope.reals if r not in scope.fixed]
        if len(known) > 1 and self.chance(0.7):
            one, other = self.random.sample(known, 2)
            form = self.random.randint(0, 3)
            if form == 0:
                return [f"{one}, {other} = {other}, {one}"]
            if form == 1:
                return [f"{one}, {other} = {other}, {self.bounded(scope, 1)}"]
            if form == 2:
                self.helpers.add("pair")
                return [f"{one}, {other} = pair({self.real(scope, 1)}, {self.leaf(scope)})"]
            both = self.name("both")
            return [
                f"{both} = ({self.bounded(scope, 1)}, {self.leaf(scope)})",
                f"{one} = {both}[0] * 0.5 + 0.4 * {both}[1]",
            ]
        t, u = self.name("t"), self.name("t")
        scope.reals += [t, u]
        return [f"{t} = {u} = {self.bounded(scope.inner(reals=scope.reals[:-2]), 1)}"]

    def truth(self, scope: Scope) -> list[str]:
        name = self.name("flag")
        lines = [f"{name} = {self.condition(scope)}"]
        scope.truths.append(name)
        return lines

    def count(self, scope: Scope) -> list[str]:
        known = [k for k in scope.wholes if k not in scope.fixed]
        if known:
            k = self.random.choice(known)
            step = self.random.choice(["1", "1", "2", "3", f"int(abs({self.leaf(scope)}) > 0.5)"])
            return [
                self.random.choice(
                    [f"{k} += {step}", f"{k} = {k} + {step}", f"{k} = ({k} + 2) % n"]
                )
            ]
        k = self.name("whole")
        of = f"int(4.0 * abs({self.leaf(scope)})) % 5"
        scope.wholes.append(k)
        return [f"{k} = {self.random.choice(['0', '1', of, 'q[1]'])}"]

    def swap_arrays(self, scope: Scope) -> list[str] | None:
        arrays = [a for a in scope.arrays if a.own]
        pairs = [
            (a, b)
            for a in arrays
            for b in arrays
            if a.name < b.name and (a.lengths, a.kind, a.home) == (b.lengths, b.kind, b.home)
            and (a.name in self.parameters) == (b.name in self.parameters)
        ]  # fmt: skip
        if not pairs:
            return None
        a, b = self.random.choice(pairs)
        self.families.append({a.root, b.root})
        return [f"{a.name}, {b.name} = {b.name}, {a.name}"]

    def rows(self, scope: Scope, depth: int) -> list[str] | None:
        """A dynamic programme of two rows that are swapped."""
        if depth > 1:
            return None
        old, new = self.name("row"), self.name("row")
        i, j = self.name("i"), self.name("i")
        inner = scope.inner(
            indices=[*scope.indices, Index(i, "n"), Index(j, "m", 1, 0)],
            arrays=[a for a in scope.arrays if a.kind == "real"],
            reals=scope.reals,
        )
        return [
            f"{old} = np.zeros(m)",
            f"{new} = np.zeros(m)",
            f"for {i} in range({self.random.choice(['n', '3', 'n - 1'])}):",
            f"    for {j} in range(1, m):",
            f"        {new}[{j}] = 0.5 * {old}[{j} - 1] + 0.3 * {new}[{j} - 1] * {old}[{j}]",
            f"        {new}[{j}] += {self.bounded(inner, 1)}",
            f"    {old}, {new} = {new}, {old}",
            f"{self.target(scope)} += 0.5 * {old}[{self.random.choice(['m - 1', '1', '-1'])}]",
        ]

    def steps(self, scope: Scope, depth: int) -> list[str] | None:
        """Steps in time, each with an array of its own that branches read."""
        arrays = [a for a in self.writable(scope) if (a.kind, a.lengths) == ("real", ("n",))]
        if not arrays:
            return None
        state = self.random.choice(arrays)
        self.written.add(state.root)
        made, i, t = self.name("local"), self.name("i"), self.name("t")
        form = self.random.choice(["{} * 1.0", "{}.copy()", "0.5 * {} * {}", "np.sin({})"])
        lines = [f"{made} = {form.format(*[state.name] * 2)}"]
        if self.chance(0.3):
            lines = [f"{made} = np.zeros(n)", f"for {i} in range(n):",
                     f"    {made}[{i}] = 0.9 * {state.name}[{i}]"]  # fmt: skip
        own = scope.inner()
        own.arrays.append(Array(made, ("n",), "real", made, home=id(own.arrays)))
        if self.chance(0.5):
            lines += self.block(own, depth + 1, loop=False, most=2)
        inner = own.inner(indices=[*own.indices, Index(i, "n")])
        value, other = f"{made}[{i}]", f"({made}[{i}] - {made}[{i} - 1])"
        one, two = self.random.sample(
            [value, other, f"0.4 * {value} * {other}", "0.2", self.bounded(inner, 1)], 2
        )
        condition = self.condition(inner)
        branch = [f"if {condition}:", f"    {t} = {one}", "else:", f"    {t} = {two}"]
        if self.chance(0.5):
            branch = [f"{t} = {one} if {condition} else {two}"]
        rate = self.random.choice(["0.3", *scope.reals])
        update = self.random.choice(
            [f"+= {rate} * {t}", f"= math.sin({rate} * {t})", f"-= 0.3 * {t}"]
        )
        lines += [f"for {i} in range(n):", *indented([*branch, f"{state.name}[{i}] {update}"])]
        return [f"for {self.name('step')} in range({self.random.choice('23')}):", *indented(lines)]

    def in_place_helper(self, scope: Scope) -> list[str] | None:
        arrays = [a for a in self.writable(scope) if a.kind == "real"]
        if not arrays:
            return None
        array = self.random.choice(arrays)
        self.written.add(array.root)
        self.helpers.add("smooth")
        places = self.places(array, scope)[:-1]
        name = f"{array.name}[{', '.join(places)}]" if places else array.name
        return [
            f"smooth({name}, {self.random.choice(['0.3', f'0.5 * math.sin({self.leaf(scope)})'])})"
        ]

    # the program

    def write(self) -> Program:
        parameters: list[Array] = [Array("x", SHAPES[1], "real", "x")]
        for name, ndim, share in (("y", 1, 0.6), ("z", 2, 0.6), ("d", 3, 0.3), ("e", 4, 0.15)):
            if self.chance(share):
                parameters.append(Array(name, SHAPES[ndim], "real", name))
        if self.complex:
            parameters.append(Array("f", SHAPES[1], "complex", "f"))
            if self.chance(0.5):
                parameters.append(Array("g", SHAPES[2], "complex", "g"))
        self.mask = self.chance(0.3)
        self.parameters = [p.name for p in parameters]
        numbers = [name for name in ("a", "h") if self.chance(0.6)]
        scope = Scope(
            ["s0", "t0", *numbers], ["c0"] if self.complex else [], ["k0"], [], list(parameters)
        )
        scope.fixed = tuple(numbers) if self.chance(0.5) else ()
        body = ["n = x.shape[0]"]
        ranks = {len(p.lengths) for p in parameters if p.kind == "real"}
        if 2 in ranks and self.chance(0.5):
            body[0] = "n, m = z.shape"
        else:
            body.append("m = n - 1")
        body.append("l = 3")
        body += [
            f"s0 = {self.random.choice(['0.0', '0.2', *(['a'] if 'a' in numbers else [])])}",
            "t0 = 0.5 * x[0]",
        ]
        body.append(f"k0 = {self.random.choice(['0', '1', 'k', 'int(k)'])}")
        if self.complex:
            body.append("c0 = 0.3 * f[1]")
        if self.returns == "array":
            body += ["w0 = np.zeros(n)"]
            scope.arrays.append(Array("w0", ("n",), "real", "w0"))
        if self.chance(0.5):
            body += self.for_loop(scope, 0)
        while self.budget > 0:
            body += self.block(scope, 0, loop=False)
        body += self.closing(scope)
        arguments = [*self.parameters, "q", *(["b"] if self.mask else []), "k", *numbers]
        written = set(self.written)
        for family in self.families * len(self.families):
            if family & written:
                written |= family
        writes = [p for p in self.parameters if p in written]
        if self.returns == "nothing" and not writes:
            body.append("x[0] = 0.5 * s0 + 0.3 * t0 * t0")
            together = {"x"}.union(*[f for f in self.families if "x" in f])
            writes = [p for p in self.parameters if p in together]
        needed = [HELPERS[h].strip() for h in HELPERS if h in self.helpers]
        lines = [f"def program({', '.join(arguments)}):", *indented(body)]
        text = "\n\n\n".join([*needed, "\n".join(lines)]) + "\n"
        return Program(self.seed, text, tuple(arguments), tuple(writes), self.single)

    def closing(self, scope: Scope) -> list[str]:
        if self.returns == "nothing":
            return []
        if self.returns == "array":
            return ["w0[1] += 0.2 * s0 * t0", "return w0"]
        return [self.return_line(scope)]


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
