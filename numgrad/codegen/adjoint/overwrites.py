"""Overwrites: which reads find something else when the backward sweep comes to them."""

from __future__ import annotations

from typing import Any

from numgrad.codegen.adjoint.representation import (
    Expression,
    KernelFunction,
    KernelLoop,
    Load,
    Store,
    affine,
    walk,
)


class Overwrites:
    """Tells whether an element that was read may be written before its read is reversed.

    Indices that are sums of one name and a constant are compared; of others nothing is known, and
    unknown means overwritten.
    """

    def __init__(self, function: KernelFunction) -> None:
        self.function = function
        self.stores: dict[str, list[Store]] = {}
        self._known: dict[Load, bool] = {}
        for s in walk(function.body):
            if isinstance(s, Store):
                self.stores.setdefault(s.array, []).append(s)

    def __call__(self, load: Load) -> bool:
        if load not in self._known:
            stores = self.stores.get(load.array, ())
            self._known[load] = any(self._hits(store, load) for store in stores)
        return self._known[load]

    def _is_fixed(self, name: Any) -> bool:
        """Whether a name means the same throughout the function."""
        if name is None or isinstance(name, Expression):
            return True
        return not self.function.homes[name].loops()

    def _common_loops(self, store: Store, load: Load) -> list[KernelLoop]:
        """The loops around both, within the life of the array."""
        home = self.function.arrays[load.array].home
        outer = [] if home is None else home.loops()
        pairs = zip(load.home.loops(), store.home.loops(), strict=False)
        both = [a for a, b in pairs if a is b]
        return both[len(outer) :]

    def _hits(self, store: Store, load: Load) -> bool:
        pairs = [(affine(a), affine(b)) for a, b in zip(load.index, store.index, strict=True)]
        for a, b in pairs:
            if a and b and a[0] == b[0] and a[1] != b[1] and self._is_fixed(a[0]):
                return False
        for loop in self._common_loops(store, load):
            distance = None
            for a, b in pairs:
                if not a or not b or not isinstance(loop.step, int):
                    continue
                if loop.test is None and a[0] is not None and a[0] == b[0] == loop.variable:
                    if (a[1] - b[1]) % loop.step:
                        return False
                    distance = (a[1] - b[1]) // loop.step
                    break
            if distance is None:
                return True
            if distance:
                return distance > 0
        return store.place > load.place
