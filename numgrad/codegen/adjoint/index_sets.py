"""Innermost loops with places modulo a length, split where the modulus does nothing.

Note [Index sets]
-----------------
Of ``u[i, (j - 1) % m]`` and ``u[i, (j + 1) % m]`` in a loop over all ``j`` below ``m``, only the
first and last iteration need the modulus. Index-set splitting (Griebl, Feautrier and Lengauer,
"Index Set Splitting", 2000) makes three loops of such a one, in the order of its iterations: the
few at either end as they stand, and those between with ``u[i, j - 1]``, of which Note [Vector form]
in ``vectors`` can tell how far apart they are.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from numgrad.codegen.native.syntax import nodes


class Trips(NamedTuple):
    """The number of a loop's iterations as ``max(0, length + more)``."""

    length: str
    more: int


class SplitLoop(NamedTuple):
    """The iterations of a loop in the order in which they run: first ones, those between, last.

    ``length`` assigns the number of those between, from 0 on.
    """

    first: ast.For
    length: ast.stmt
    inner: ast.For
    last: ast.For


def moduli(body: Sequence[ast.stmt]) -> Iterator[ast.BinOp]:
    """The moduli in statements."""
    for s in body:
        for n in nodes(s):
            if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod):
                yield n


def split_loop(
    node: ast.For,
    downwards: bool,
    high: str,
    trips: Trips,
    offset: Callable[[ast.expr], int | None],
    number: int,
) -> SplitLoop | None:
    """A loop from 0 up to ``high``, or down to 0, in three; None if no modulus goes by that.

    ``offset`` gives the constant of an expression that is the loop's index and a constant.
    """
    low = above = 0
    replaced: set[str] = set()
    for modulus in moduli(node.body):
        shift = offset(modulus.left)
        if shift is not None and ast.unparse(modulus.right) == trips.length:
            low, above = max(low, -shift), max(above, trips.more + shift)
            replaced.add(ast.unparse(modulus))
    if not replaced:
        return None
    index, variable, count = ast.unparse(node.target), f"q{number}_", f"m{number}_"

    def loop(start: str, stop: str, place: str, inner: bool = False) -> ast.For:
        bounds = f"{stop} - 1, {start} - 1, -1" if downwards else f"{start}, {stop}"
        if start == "0":
            bounds = f"{stop} - 1, -1, -1" if downwards else stop
        made = ast.parse(f"for {variable} in range({bounds}):\n    {index} = {place}").body[0]
        assert isinstance(made, ast.For)
        body = copy.deepcopy(node.body)
        made.body += [_WithoutModuli(replaced).visit(s) for s in body] if inner else body
        return made

    ends = [
        loop("0", f"min({low}, {high})", variable),
        loop(f"max({low}, {high} - {above})", high, variable),
    ]
    between = loop("0", count, f"{low} + {variable}", inner=True)
    length = ast.parse(f"{count} = {high} - {low + above}").body[0]
    first, last = ends[::-1] if downwards else ends
    return SplitLoop(first, length, between, last)


class _WithoutModuli(ast.NodeTransformer):
    """Puts the left side in place of some moduli."""

    def __init__(self, texts: set[str]) -> None:
        self.texts = texts

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        is_one = isinstance(node.op, ast.Mod) and ast.unparse(node) in self.texts
        return node.left if is_one else self.generic_visit(node)
