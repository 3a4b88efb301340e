"""``python -m tests.torch_face.op_db [NAME ...] [--checks value,first] [--samples N]``.

Prints for each name in what the two libraries differ first, by check, then how many names agree in
each. ``--part K/N`` runs every N-th name from the K-th; ``--new`` leaves out what is named as a
known difference.
"""

import argparse
import warnings
from collections import Counter

from tests.torch_face.op_db import ALL, database, dtype_for, name_of, run
from tests.torch_face.op_db.exceptions import EXCEPTIONS


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--checks", default=",".join(ALL))
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--new", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    checks = tuple(options.checks.split(","))
    part, parts = map(int, options.part.split("/"))
    good: Counter[str] = Counter()
    total = 0
    for op in database()[part::parts]:
        name, dtype = name_of(op), dtype_for(op, options.dtype)
        if dtype is None or (options.names and not {name, op.name} & {*options.names}):
            continue
        shown: set[str] = set()
        found = run(op, dtype, options.samples, checks)
        total += 1
        for check in checks:
            needed = {"value", check, "first" if check == "second" else check}
            good[check] += needed.isdisjoint(found)
        for check, text in found.items():
            if text not in shown and not (options.new and check in EXCEPTIONS.get(name, ())):
                shown.add(text)
                print(f"{name:40} {check:7} {text}", flush=True)
    print({check: good[check] for check in checks}, "of", total)


if __name__ == "__main__":
    main()
