"""Ties of parameters to others: arithmetic expressions of their names, or functions of them.

Note [Expressions of parameters]
--------------------------------
An expression is parsed by ``ast``, and nothing but a list of node kinds is evaluated: numbers,
names of parameters, arithmetic, and calls of ufuncs and elementwise operations. Its values are
whatever the parameters are, ndarrays, Tensors or traced ones, so derivatives go through a tie as
through any formula.
"""

import ast
import inspect
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from numgrad.core.arguments import signature_of
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError, NumgradValueError

OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.UAdd: operator.pos, ast.USub: operator.neg,
}  # fmt: skip
CONSTANTS = {"pi": np.pi, "e": np.e, "inf": np.inf}
MODULES = ("np", "numpy", "ng", "numgrad")
REDUCTIONS = ("sum", "mean", "prod")


class Tie(NamedTuple):
    """A parameter as a function of others.

    Attributes
    ----------
    target
        Name of the parameter that is tied.
    references
        Names of those it depends on.
    compute
        ``compute(values)``, of a dictionary from those names to their values.
    identity
        Text or function that it was made from, by which compiled programs are found again.
    """

    target: str
    references: tuple[str, ...]
    compute: Callable[[Mapping[str, Any]], Any]
    identity: Any


def tie(name: str, target: str, made_of: Any, known: Collection[str]) -> Tie:
    """Read the tie of a parameter, an expression or a function of parameters ``known``."""
    where = f"{name}: the tie of {target}"
    if isinstance(made_of, str):
        return _of_expression(where, target, made_of, known)
    if not callable(made_of):
        raise NumgradTypeError(
            f"{where} is a {type(made_of).__name__}; give an expression such as '2*a', or a "
            "function whose parameters have the names of those it depends on"
        )
    try:
        parameters = signature_of(made_of).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    references = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    unknown = [reference for reference in references if reference not in known]
    if unknown or not references:
        raise NumgradValueError(
            f"{where} is a function of {', '.join(references) or 'nothing that has a name'}; "
            f"its parameters are some of {_listed(known)}"
        )

    def compute(values: Mapping[str, Any]) -> Any:
        return made_of(**{reference: values[reference] for reference in references})

    return Tie(target, tuple(references), compute, made_of)


def _of_expression(where: str, target: str, text: str, known: Collection[str]) -> Tie:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise NumgradValueError(
            f"{where} is {text!r}, which is no expression: {error.msg}; write one such as '2*a'"
        ) from None
    references: list[str] = []

    def reader(node: ast.expr) -> Callable[[Mapping[str, Any]], Any]:
        """A function that evaluates a node: Note [Expressions of parameters]."""
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            spelled = ast.unparse(node)
            if spelled in known:
                references.append(spelled)
                return lambda values: values[spelled]
            constant = CONSTANTS.get(_without_module(spelled))
            if constant is not None:
                return lambda values: constant
            raise NumgradValueError(
                f"{where} is {text!r}, and there is no parameter {spelled!r}; there are "
                f"{_listed(known)}, and others where the start is a dict that has them"
            )
        value = getattr(node, "value", None)
        if isinstance(node, ast.Constant) and isinstance(value, int | float) and value is not True:
            number = float(value)  # of integers 9**9**9 would never end
            return lambda values: number
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            apply, left, right = OPERATORS[type(node.op)], reader(node.left), reader(node.right)
            return lambda values: apply(left(values), right(values))
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            apply, operand = OPERATORS[type(node.op)], reader(node.operand)
            return lambda values: apply(operand(values))
        if isinstance(node, ast.Call) and not node.keywords:
            function = _function(_without_module(ast.unparse(node.func)))
            if function is not None:
                operands = [reader(operand) for operand in node.args]
                return lambda values: function(*(operand(values) for operand in operands))
        raise NumgradValueError(
            f"{where} is {text!r}, where {ast.unparse(node)!r} is neither a number, a parameter, "
            "arithmetic nor a call of an elementwise function of NumPy or numgrad; give a function "
            "of the parameters in its place"
        )

    compute = reader(tree)
    return Tie(target, tuple(dict.fromkeys(references)), compute, ast.unparse(tree))


def _without_module(spelled: str) -> str:
    module, _, rest = spelled.rpartition(".")
    return rest if module in MODULES else spelled


def _function(spelled: str) -> Callable[..., Any] | None:
    """An elementwise function, or a sum, by name."""
    ufunc = getattr(np, spelled, None) if spelled.isidentifier() else None
    if isinstance(ufunc, np.ufunc):
        return ufunc
    op = OPS.get(spelled)
    return op if isinstance(op, Elementwise) or (op and spelled in REDUCTIONS) else None


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:12]) + (", ..." if len(shown) > 12 else "")
