"""Random programs whose loops over ranges are written with ``prange``, and have reductions in them.

Any loop may be: what it gives is what the plain function gives, be its iterations independent of
each other or not.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

from tests.codegen.adjoint.programs import Program
from tests.codegen.adjoint.writer import Writer

_HEAD = re.compile(r"^( *)for (\w+) in (p?range)\((.*)\):$")
_START = [
    "add0, product0, top0, low0 = 0.1, 1.0, -0.3, 0.4",
    "bins0 = np.zeros(4)",
    "rows0 = np.zeros((40, 2))",
    "count0 = 0",
]
_STATEMENTS = (
    ["add0 += 0.3 * {value}"],
    ["add0 -= {value} * {value}"],
    ["product0 *= 1.0 + 0.1 * {value}"],
    ["top0 = max(top0, 0.4 * {value})"],
    ["low0 = min(low0, {value})"],
    ["low0 = min({value}, low0)"],
    ["bins0[int(5.0 * abs({value})) % 4] += {value}"],
    ["bins0[{k} % 4] -= 0.2 * {value}"],
    ["bins0[3] = 0.5 * bins0[3] + {value}"],
    ["rows0[{k} % 40, 0] = {value}", "rows0[{k} % 40, 1] += rows0[{k} % 40, 0] ** 2"],
    ["rows0[abs({k}), 1] = 0.1 + {value}"],
    ["if {value} > 0.2:", "    count0 += 1", "    add0 += 0.2 * {value}"],
    ["own0 = np.zeros(3)", "own0[{k} % 3] = {value}", "add0 += own0[0] * own0[1] + own0[2]"],
    [
        "part0 = {value}",
        "for step0 in range(({k} + 7) % 4):",
        "    part0 = math.sin(part0) + 0.2 * {value}",
        "add0 += part0",
    ],
    [
        "part0 = 0.3 + {value} ** 2",
        "turn0 = 0",
        "while turn0 < 4 and part0 > 0.4:",
        "    part0 *= 0.7",
        "    turn0 += 1",
        "product0 *= 1.0 + 0.1 * part0",
    ],
)
_SUM = (
    "0.2 * (add0 + product0 * top0 + low0 * bins0[0] + bins0[1] * bins0[3] + rows0[1, 0] "
    "+ rows0[2, 1] * count0)"
)


def write(seed: int, small: bool = False) -> Program:
    """A program of ``Writer`` with parallel loops."""
    program = Writer(seed, small).write()
    draw = random.Random(seed + 1)
    before, definition, text = program.text.rpartition("def program(")
    lines = text.rstrip("\n").split("\n")
    lines = [lines[0], *[f"    {line}" for line in _START], *lines[1:]]
    out: list[str] = []
    for place, line in enumerate(lines):
        match = _HEAD.match(line)
        if match is None or match[3] == "prange" or draw.random() < 0.2:
            out.append(line)
            if match is not None and match[3] == "prange":
                out += _drawn(draw, match)
            continue
        depth = len(match[1])
        body = []
        for inner in lines[place + 1 :]:
            if len(inner) - len(inner.lstrip()) <= depth:
                break
            body.append(inner.strip())
        leaves = any(inner.startswith(("break", "return")) for inner in body)
        word = "range" if leaves else "prange"
        out += [f"{match[1]}for {match[2]} in {word}({match[4]}):", *_drawn(draw, match)]
    *out, last = out
    if last.startswith("    return"):
        out += [f"    s0 = s0 + {_SUM}", last]
    else:
        out += [last, f"    x[0] = 0.7 * x[0] + {_SUM}"]
        if "x" not in program.writes:
            names = {*program.writes, "x"}
            program = replace(program, writes=tuple(n for n in program.arguments if n in names))
    return replace(program, text=before + definition + "\n".join(out) + "\n")


def _drawn(draw: random.Random, head: re.Match[str]) -> list[str]:
    """Statements at the beginning of a loop's body."""
    if draw.random() < 0.25:
        return []
    margin, k = head[1] + "    ", head[2]
    lines = []
    for statements in draw.sample(_STATEMENTS, draw.randint(1, 2)):
        value = draw.choice(
            [f"x[{k} % n]", f"x[({k} + 1) % n] * x[0]", f"math.sin(0.7 * {k} + x[1])"]
        )
        lines += [margin + line.format(k=k, value=value) for line in statements]
    return lines
