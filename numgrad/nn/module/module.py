"""``Module``: parameters, submodules and a ``forward`` that uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradAttributeError, NumgradValueError
from numgrad.nn.module.hooks import Hooked
from numgrad.nn.module.members import KINDS, Converted, Parameter, Registry
from numgrad.nn.module.state_dict import Stateful

_ABSENT = {
    "cuda": "numgrad computes on the CPU",
    "share_memory": "parameters are ordinary arrays of one process",
    "half": "there are no kernels for float16; use float()",
    "bfloat16": "there are no kernels for bfloat16; use float()",
}
"""Methods of PyTorch's modules that cannot be, and why."""


class Module(Hooked, Stateful, Converted):
    """A function with parameters: derive a class, make members in ``__init__``, write ``forward``.

    Parameters, Buffers and Modules that are assigned to attributes become members, which
    ``parameters()``, ``state_dict()`` and others walk over. Calling the module runs ``forward``
    and the hooks.

    Attributes
    ----------
    training
        Whether the module is being trained; ``train()`` and ``eval()`` set it for all inside.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Line(ng.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = ng.nn.Parameter(ng.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return self.slope * x
    >>> line = Line()
    >>> line(ng.tensor([1.0, 2.0])).sum().backward()
    >>> line.slope.grad
    tensor(3.)
    """

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result: to be overridden."""
        raise NotImplementedError(
            f"{type(self).__name__}: defines no forward, so it cannot be called"
        )

    def __getattr__(self, name: str) -> Any:
        # found only what is nowhere else: Note [Members are attributes]
        if "_modules" not in self.__dict__ and not name.startswith("__"):
            reason = "; was super().__init__() called in its __init__?"
        else:
            reason = f": {_ABSENT[name]}" if name in _ABSENT else ""
        raise NumgradAttributeError(
            f"{type(self).__name__} has no attribute {name!r}{reason}", name=name, obj=self
        )

    def __dir__(self) -> list[str]:
        return sorted(name for name in super().__dir__() if not name[0].isdigit())

    # ---------------------------------------------------------------------------- dotted names

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
        module: Any = self
        path = target.split(".") if target else []
        for depth, name in enumerate(path):
            where = ".".join(path[:depth])
            if not hasattr(module, name):
                raise NumgradAttributeError(
                    f"get_submodule: {type(module).__name__}{f' at {where!r}' if where else ''} "
                    f"has nothing called {name!r}; submodules there are "
                    f"{', '.join(module._modules) or 'none'}"
                )
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise NumgradAttributeError(
                    f"get_submodule: {'.'.join(path[: depth + 1])!r} is no Module but "
                    f"{type(module).__name__}"
                )
        return module

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
        if not isinstance(module, Module):
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
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                if module._modules or type(module).named_modules is not Module.named_modules:
                    yield from module.named_modules(memo, inner, remove_duplicate)
                elif module not in memo:  # alone, as most are: no generator for it
                    if remove_duplicate:
                        memo.add(module)
                    yield inner, module

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
        fn(self)
        return self

    # ------------------------------------------------------------------------------- switches

    def train(self, mode: bool = True) -> Self:
        """Set ``training`` of this module and all inside.

        Raises
        ------
        NumgradValueError
            If ``mode`` is no bool.
        """
        if not isinstance(mode, bool):
            raise NumgradValueError(f"train: mode is True or False, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set ``training`` to False in this module and all inside."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of all parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zeros."""
        for param in self.parameters():
            if set_to_none:
                param.grad = None
                continue
            g = param.grad
            if g is None:
                continue
            if g.grad_fn is not None:
                g.detach_()
            else:
                g.requires_grad_(False)
            g.zero_()

    # --------------------------------------------------------------------------------- copies

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for kind in KINDS:
            for name in state.get(kind, ()):
                state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for kind in KINDS:
            members = self.__dict__.get(kind)
            if members is not None and getattr(members, "owner", None) is not self:
                self.__dict__[kind] = Registry(self, members)

    # --------------------------------------------------------------------------------- texts

    def extra_repr(self) -> str:
        """Text that ``repr`` shows of this module besides its submodules: to be overridden."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        single = len(lines) == 1 and not self._modules
        lines += _described(self._modules.items())
        if not lines:
            body = ""
        else:
            body = lines[0] if single else "\n  " + "\n  ".join(lines) + "\n"
        return f"{self._get_name()}({body})"


def _described(modules: Iterable[tuple[str, Any]]) -> list[str]:
    """A line, or several, for each submodule."""
    return [f"({name}): {indented(repr(module))}" for name, module in modules]


def indented(text: str) -> str:
    """A text whose lines but the first are moved in."""
    return text.replace("\n", "\n  ")
