"""Gradient formulas in the language of LaTeX.

A formula of the operation table is a Python expression. What reads as mathematics (arithmetic,
elementary functions, conjugates, ``where``) is typeset; a formula with anything else, such as an
axis or an index, stays code, which says more than half a translation would.
"""

import ast
from collections.abc import Callable

FUNCTIONS = {
    **{name: rf"\{name}" for name in ("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "log")},
    **{f"arc{name}": rf"\arc{name}" for name in ("sin", "cos", "tan")},
    "expm1": r"\operatorname{expm1}",
    "log1p": r"\operatorname{log1p}",
    "sign": r"\operatorname{sign}",
    "real": r"\operatorname{Re}",
    "imag": r"\operatorname{Im}",
    "digamma": r"\psi",
    "gamma": r"\Gamma",
    "zeta": r"\zeta",
    "erf": r"\operatorname{erf}",
    "sigmoid": r"\sigma",
}
"""Functions of one or several arguments, by their names in formulas."""

AROUND: dict[str, Callable[[str], str]] = {
    "conj": lambda x: rf"\overline{{{x}}}",
    "sqrt": lambda x: rf"\sqrt{{{x}}}",
    "abs": lambda x: rf"\left|{x}\right|",
    "square": lambda x: rf"\left({x}\right)^2",
    "sum": lambda x: rf"\sum {x}",
}
"""Functions that are written around their argument."""

COMPARISONS = {
    ast.Lt: "<",
    ast.LtE: r"\le",
    ast.Gt: ">",
    ast.GtE: r"\ge",
    ast.Eq: "=",
    ast.NotEq: r"\ne",
}

LOOSE, SUM, PRODUCT, POWER, ATOM = range(5)
"""How strongly an expression holds together: brackets stand around looser ones."""


class Unwritten(Exception):
    """An expression that is no plain mathematics."""


def latex(formula: str) -> str | None:
    """A formula in LaTeX, or None where it is better read as code."""
    try:
        return _write(ast.parse(formula, mode="eval").body)[0]
    except (Unwritten, SyntaxError):
        return None


def _inside(node: ast.expr, least: int) -> str:
    """An operand, in brackets if it holds together less than that."""
    text, strength = _write(node)
    return text if strength >= least else rf"\left({text}\right)"


def _write(node: ast.expr) -> tuple[str, int]:
    """An expression and how strongly it holds together."""
    match node:
        case ast.Name(id=name):
            return _name(name), ATOM
        case ast.Constant(value=bool()):
            raise Unwritten
        case ast.Constant(value=int() | float() as value):
            return _number(value), ATOM
        case ast.Constant(value=complex() as value):
            return ("i" if value == 1j else f"{_number(value.imag)} i"), PRODUCT
        case ast.Attribute(value=ast.Name(id="np"), attr="pi"):
            return r"\pi", ATOM
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"-{_inside(operand, PRODUCT)}", SUM
        case ast.BinOp(op=ast.Div(), left=left, right=right):
            return rf"\frac{{{_write(left)[0]}}}{{{_write(right)[0]}}}", PRODUCT
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            return f"{_inside(left, ATOM)}^{{{_write(right)[0]}}}", POWER
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return rf"{_inside(left, PRODUCT)} \, {_inside(right, PRODUCT)}", PRODUCT
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return f"{_inside(left, SUM)} + {_inside(right, SUM)}", SUM
        case ast.BinOp(op=ast.Sub(), left=left, right=right):
            return f"{_inside(left, SUM)} - {_inside(right, PRODUCT)}", SUM
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in COMPARISONS:
            return f"{_inside(left, SUM)} {COMPARISONS[type(sign)]} {_inside(right, SUM)}", LOOSE
        case ast.Call(func=function, args=operands, keywords=[]) if operands:
            return _call(function, operands)
    raise Unwritten


def _call(function: ast.expr, operands: list[ast.expr]) -> tuple[str, int]:
    match function:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="np"), attr=name):
            pass
        case _:
            raise Unwritten
    if name == "where" and len(operands) == 3:
        return _cases(operands), ATOM
    if name in AROUND and len(operands) == 1:
        return AROUND[name](_write(operands[0])[0]), ATOM if name != "sum" else PRODUCT
    if name in FUNCTIONS:
        arguments = ", ".join(_write(operand)[0] for operand in operands)
        return rf"{FUNCTIONS[name]}\left({arguments}\right)", ATOM
    raise Unwritten


def _cases(operands: list[ast.expr]) -> str:
    """``where(c, a, b)``, and what is in the place of ``b`` of the same kind."""
    rows = []
    while True:
        condition, value, other = operands
        rows.append(rf"{_write(value)[0]} & \text{{if }} {_write(condition)[0]}")
        match other:
            case ast.Call(func=ast.Attribute(attr="where"), args=[_, _, _], keywords=[]):
                operands = other.args
            case _:
                break
    rows.append(rf"{_write(other)[0]} & \text{{else}}")
    lines = r" \\ ".join(rows)
    return rf"\begin{{cases}} {lines} \end{{cases}}"


def _name(name: str) -> str:
    escaped = name.replace("_", r"\_")
    return name if len(name) == 1 else rf"\mathrm{{{escaped}}}"


def _number(value: float) -> str:
    text = f"{value:g}" if float(f"{value:g}") == value else repr(value)
    base, _, exponent = text.partition("e")
    return rf"{base} \cdot 10^{{{int(exponent)}}}" if exponent else base
