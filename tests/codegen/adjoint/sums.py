"""Drawn programs as sums over iterations, most of which can be reversed one by one."""

import ast

import numpy as np

from tests.codegen.adjoint.programs import Program


def as_sum(program: Program) -> Program | None:
    """The number that a program returns, summed over a loop around it; None if it returns early.

    What the program overwrites is made new in each iteration, or, by chance, once before the loop,
    so that iterations depend on one another; by chance something is computed of the sum.
    """
    module = ast.parse(program.text)
    function = next(
        s for s in module.body if isinstance(s, ast.FunctionDef) and s.name == "program"
    )
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
    if len(returns) != 1 or function.body[-1] is not returns[0] or returns[0].value is None:
        return None
    value = returns[0].value
    terms = value.elts if isinstance(value, ast.Tuple) else [value]
    terms = [t for t in terms if not isinstance(t, ast.Name) or t.id[0] in "stah"]  # no arrays
    rng = np.random.default_rng(program.seed)
    assigned = {
        n.id
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in program.arguments
    }
    if not terms or assigned.intersection("xyzdefg"):  # arrays that are exchanged
        return None
    before, within, names = [], [], []
    for name in program.arguments:
        if name not in program.writes and name not in assigned:
            names.append(name)
            continue
        names.append(f"{name}_given")
        is_array = name in program.writes
        copy = f"{name} = {name}_given.copy()" if is_array else f"{name} = {name}_given"
        (before if rng.random() < 0.25 else within).append(copy)
    summands = []
    for k, term in enumerate(terms):
        text = ast.unparse(term)
        summands.append(f"value{k} = {text}")
    total = " + ".join(f"{0.4 + 0.3 * k} * value{k}.real" for k in range(len(terms)))
    body = [line for s in function.body[:-1] for line in ast.unparse(s).splitlines()]
    inner = [*within, *body, *summands, f"total += (1.0 + 0.5 * lap) * ({total})"]
    if rng.random() < 0.3:
        inner = [*inner[:-1], "if lap != 1:", f"    {inner[-1]}"]
    loop = "prange" if rng.random() < 0.3 else "range"
    ends = [
        "return total",
        "return 0.5 * total - 0.25",
        "return total * total",
        "return total / 3.0",
    ]
    lines = [
        *before, "total = 0.0", f"for lap in {loop}({rng.integers(1, 4)}):",
        *[f"    {line}" for line in inner], str(rng.choice(ends)),
    ]  # fmt: skip
    others = [ast.unparse(s) for s in module.body if s is not function]
    text = f"def program({', '.join(names)}):\n" + "\n".join(f"    {line}" for line in lines)
    return Program(
        program.seed, "\n".join([*others, text]) + "\n", program.arguments, (), program.single
    )
