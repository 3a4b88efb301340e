"""Lines that are like an earlier one of their function, translated as that was.

What a line becomes depends on its form, on the types of what it names and on nothing else, unless
it makes blocks or variables, or reads and writes memory in lanes. So the instructions for the first
line of a form are kept, with numbers for operands, and written again for others. Numbers known in
advance count as types: they may be folded.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import Any, NamedTuple

from numgrad.codegen.native.calls import CallWriter
from numgrad.codegen.native.ir import Note
from numgrad.codegen.native.values import Number

_NAME = re.compile(r"%[\w.]+")
_DIGITS = re.compile(r"(?<![\w.!%])\d+(?![\w.])")


class Recipe(NamedTuple):
    """The instructions of a line.

    Attributes
    ----------
    steps
        What writes each, its text in which ``{k}`` is operand ``k`` or what a step before made of
        them, and how far out it may stand.
    result
        The parts of the line's value, with its dtype and lanes; None if it has none.
    """

    steps: tuple[tuple[str, str, int], ...]
    result: tuple[tuple[int, ...], Any, int] | None


class Repetition:
    """The recipes of a function."""

    def __init__(self) -> None:
        self._recipes: dict[Any, Recipe | None] = {}

    def translate(self, body: CallWriter, statement: ast.stmt, form: Any) -> bool:
        """Translate a line as one before; False if it has to be looked at itself."""
        texts, parts, _ = form
        sets = type(statement) is ast.Assign
        names, operands, key = body.names, [], [texts, body.lanes is None]
        position = len(parts) - 3 if texts[-3:] == (", ", ", ", ")") else -1
        for k, field in enumerate(parts):
            if k == 0 and sets:
                continue
            value = names.get(field)
            if type(value) is Number:
                if value.literal is not None or value.step is not None:
                    return False
                if any([operand[0] != "%" for operand in value.parts]):
                    return False
                key.append((value.dtype, value.lanes))
                operands += value.parts
            elif field.isdigit():
                # a place in memory, before the array's number and how many there are
                free = k == position and field not in ("0", "1")
                key.append(None if free else field)
                if free:
                    operands.append(field)
            else:
                return False
        if (sets and parts[0] in body.variables) or len({*operands}) < len(operands):
            return False  # which of two equal operands an instruction has does not show
        known = tuple(key)
        if known not in self._recipes:
            self._record(body, statement, known, operands)
            return True
        recipe = self._recipes[known]
        if recipe is None:
            return False
        f = body.f
        for kind, text, least in recipe.steps:
            line = text.format(*operands)
            if kind == "pure":
                operands.append(f.pure(line, least))
            elif kind == "value":
                operands.append(f.value(line))
            else:
                f.effect(line)
        if recipe.result is not None:
            places, dtype, lanes = recipe.result
            names[parts[0]] = Number(dtype, tuple([operands[k] for k in places]), lanes)
        return True

    def _record(self, body: CallWriter, statement: Any, key: Any, operands: list[str]) -> None:
        """Translate a line, and keep how."""
        form = statement.form
        others = [name for name, _ in form.names if isinstance(name, str)]
        if any(name in body.names or name in body.slots for name in others):
            self._recipes[key] = None
            body.do(statement)
            return
        f, lanes = body.f, body.lanes
        accesses = 0 if lanes is None else len(lanes.accesses)
        around, f.notes = f.notes, []
        try:
            body.do(statement)
            notes = f.notes
        finally:
            f.notes = around
        if around is not None:
            around += notes
        in_memory = lanes is not None and len(lanes.accesses) > accesses
        value: Number | None = None
        if isinstance(statement, ast.Assign):
            made = body.names.get(form.parts[0])
            if not isinstance(made, Number) or made.literal is not None or made.step is not None:
                self._recipes[key] = None
                return
            value = made
        if in_memory or any(note.kind == "other" for note in notes):
            self._recipes[key] = None
            return
        recipe = _recipe(notes, operands, value)
        if recipe is not None:
            self._recipes[key] = recipe


def _recipe(notes: list[Note], operands: list[str], value: Number | None) -> Recipe | None:
    """How a line was translated; None if this one leaves open what is an operand."""
    places = {name: k for k, name in enumerate(operands)}
    literals = [operand for operand in operands if operand.isdigit()]
    counts = Counter(d for note in notes for d in _DIGITS.findall(note.text))
    steps, known = [], len(operands)
    for kind, text, least, made in notes:
        text = text.replace("{", "{{").replace("}", "}}")
        if any(name not in places for name in _NAME.findall(text)):
            return None
        text = _NAME.sub(lambda m: f"{{{places[m[0]]}}}", text)
        for literal in literals:
            if text.endswith(f" i64 {literal}") and counts[literal] == 1:
                text = f"{text[: -len(literal)]}{{{places[literal]}}}"
                counts[literal] = 0
        steps.append((kind, text, least))
        if made in operands:  # a step happens to make what the line is given, too
            return None
        if made:
            places.setdefault(made, known)
            known += 1
    if any(counts[literal] for literal in literals) or any(x not in counts for x in literals):
        return None
    if value is None:
        return Recipe(tuple(steps), None)
    if any(part not in places for part in value.parts):
        return None
    return Recipe(tuple(steps), (tuple(places[p] for p in value.parts), value.dtype, value.lanes))
