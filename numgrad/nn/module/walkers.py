"""Finding members of modules by dotted names, and walking over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradAttributeError, NumgradValueError
from numgrad.nn.module.members import Members
from numgrad.nn.module.parameter import Parameter

if TYPE_CHECKING:
    from numgrad.nn.module.module import Module


class Walkers(Members):
    """Iterators over the members of a module and of the modules inside it."""

    def get_submodule(self, target: str) -> Module:
        """The submodule with a dotted name; the module itself for an empty one.

        Raises
        ------
        NumgradAttributeError
            If there is none, or the name leads to something else.

        Examples
        --------
        >>> from numgrad import nn
        >>> model = nn.Sequential(nn.Sequential(nn.Linear(2, 3)))
        >>> model.get_submodule("0.0")
        Linear(in_features=2, out_features=3, bias=True)
        """
        found: Any = self
        path = target.split(".") if target else []
        for depth, name in enumerate(path):
            where = ".".join(path[:depth])
            if not hasattr(found, name):
                raise NumgradAttributeError(
                    f"get_submodule: {type(found).__name__}{f' at {where!r}' if where else ''} has "
                    f"nothing called {name!r}; submodules there are "
                    f"{', '.join(found._modules) or 'none'}"
                )
            found = getattr(found, name)
            if not isinstance(found, Members):
                raise NumgradAttributeError(
                    f"get_submodule: {'.'.join(path[: depth + 1])!r} is no Module but "
                    f"{type(found).__name__}"
                )
        return found  # pyright: ignore

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module in the place with a dotted name.

        With ``strict`` there must be one already.

        Raises
        ------
        NumgradValueError
            If ``target`` is empty or ``module`` is no Module.
        NumgradAttributeError
            If the place does not exist, or holds something else.
        """
        where, _, name = target.rpartition(".")
        if not name:
            raise NumgradValueError("set_submodule: the name of the place is empty")
        if not isinstance(module, Members):
            raise NumgradValueError(
                f"set_submodule: {target!r} is to be a Module, got {type(module).__name__}"
            )
        parent = self.get_submodule(where)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def _get_member(self, what: str, kind: str, target: str) -> Any:
        where, _, name = target.rpartition(".")
        members = self.get_submodule(where).__dict__[kind]
        if name not in members:
            raise NumgradAttributeError(
                f"get_{what}: there is no {what} {target!r}; those there are "
                f"{', '.join(members) or 'none'}"
            )
        return members[name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name.

        Raises
        ------
        NumgradAttributeError
            If there is none.
        """
        return self._get_member("parameter", "_parameters", target)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name.

        Raises
        ------
        NumgradAttributeError
            If there is none.
        """
        return self._get_member("buffer", "_buffers", target)

    # ------------------------------------------------------------------------------- walking

    def _named_members(
        self,
        members_of: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Dotted names and members, ``members_of(module)`` of this module and those inside."""
        seen: set[int] = set()
        modules: Any = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for where, module in modules:
            for name, member in members_of(module):
                if member is None or (remove_duplicate and id(member) in seen):
                    continue
                seen.add(id(member))
                yield f"{where}.{name}" if where else name, member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, those of submodules too unless ``recurse`` is False; each once."""
        return (param for _, param in self.named_parameters(recurse=recurse))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Dotted names and parameters.

        Parameters
        ----------
        prefix
            What all names begin with.
        recurse
            Whether to go into submodules.
        remove_duplicate
            Whether one that has several names comes once, with the first of them.

        Examples
        --------
        >>> from numgrad import nn
        >>> [name for name, _ in nn.Sequential(nn.Linear(1, 1)).named_parameters()]
        ['0.weight', '0.bias']
        """
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, those of submodules too unless ``recurse`` is False; each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Dotted names and buffers; parameters as for ``named_parameters``."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def children(self) -> Iterator[Module]:
        """The modules that are members of this one; each once."""
        return (module for _, module in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Names and modules that are members of this one; each once."""
        return self._named_members(lambda module: module._modules.items(), recurse=False)

    def modules(self) -> Iterator[Module]:
        """The module itself and all inside; each once."""
        return (module for _, module in self.named_modules())

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Dotted names and modules, this one first.

        Parameters
        ----------
        memo
            Modules to leave out; those that come are added.
        prefix
            What all names begin with.
        remove_duplicate
            Whether one that has several names comes once, with the first of them.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self  # pyright: ignore
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call ``fn`` with each module inside, children before parents, and with this one.

        Examples
        --------
        >>> from numgrad import nn
        >>> model = nn.Sequential(nn.Identity(), nn.Flatten())
        >>> _ = model.apply(lambda module: print(type(module).__name__))
        Identity
        Flatten
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)  # pyright: ignore
        return self
