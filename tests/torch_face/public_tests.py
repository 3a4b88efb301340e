"""Run PyTorch's public tests with the face as ``torch``.

``python tests/torch_face/public_tests.py --checkout PATH [FILE...]`` reads the files of a public
copy of PyTorch's ``test/`` (beside its ``torch/testing/``), runs each in a process of its own, and
prints counts by file, with ``--list`` what fails. ``--library torch`` runs PyTorch itself,
``--truth FILE`` reads what that wrote: a test that fails there too, or that ``EXCEPTIONS`` names
with a reason, is not counted.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import inspect
import io
import itertools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import traceback
import types
import unittest
import warnings
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).parent)]

from checkout import Absent, flags, install, load  # noqa: E402
from comparing import test_case  # noqa: E402
from exceptions import EXCEPTIONS, FILES, INTERNALS  # noqa: E402

BYTES = 9 << 30
"""Most memory of one process: some tests would take all of a machine's."""
MEMORY = 12 << 30
"""Most memory of a process, in bytes: some tests make arrays of more than a machine has."""
SECONDS = 20
"""Longest time of the CPU that one test takes."""


class Results(unittest.TestResult):
    """Keeps for each test its outcome and the last line of what went wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, tuple[str, str]] = {}

    def _keep(self, test: unittest.TestCase, outcome: str, detail: str = "") -> None:
        self.rows[test.id().partition(".")[2]] = (outcome, detail)

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(10 * SECONDS)  # for one that waits

    def stopTest(self, test: unittest.TestCase) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        super().stopTest(test)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._keep(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._keep(test, "internal" if "internal of PyTorch" in reason else "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._keep(test, "passed")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self._keep(test, "failed", "unexpected success")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        kind, error, trace = err
        where = [f for f in traceback.extract_tb(trace) if "/test/" in f.filename]
        line = f"{where[-1].lineno}: {where[-1].line}" if where else ""
        self._keep(test, "failed", f"{kind.__name__}: {str(error)[:300]} | {line}")

    addError = addFailure

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.addFailure(test, err)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def run_file(checkout: Path, file: str, library: str, pattern: str) -> dict[str, tuple[str, str]]:
    """Run the tests of one file in this process: name -> outcome and detail."""
    torch = importlib.import_module(library)
    torch.set_num_threads(1)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    bound = MEMORY if most == resource.RLIM_INFINITY else min(MEMORY, most)
    resource.setrlimit(resource.RLIMIT_AS, (bound, most))
    given = flags()
    tools = {"TestCase": test_case(torch), "freeze_rng_state": torch.random.fork_rng}
    given["torch.testing._internal.common_utils"].update(tools)
    install(torch, checkout, given)
    sys.path[:0] = [str(checkout / "test"), str((checkout / "test" / file).parent)]
    module = types.ModuleType(file.rpartition("/")[2][:-3])
    sys.modules[module.__name__] = module
    with _quiet():
        load(checkout / "test" / file, module)
    for name in ("_get_examples", "_get_bad_examples"):  # of distributions
        if name in vars(module):
            setattr(module, name, _without_absent(getattr(module, name)))
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _out_of_time)
    results = Results()
    for test, case in _tests(module):
        if not re.search(pattern, test.id()):
            continue
        name = test._testMethodName
        if reason := _is_internal(case.__name__ if name == "runTest" else name, case):
            results._keep(test, "internal", reason)
            continue
        _forget_hooks(torch)
        with _quiet(), warnings.catch_warnings():
            warnings.simplefilter("always")
            unittest.TestSuite([test]).run(results)
    absent = {k: v._reason for k, v in vars(module).items() if isinstance(v, Absent)}
    internal = [name for name, reason in absent.items() if "an internal of PyTorch" in reason]
    for statement in vars(module).get("failed_statements", ()):
        if not any(name in statement for name in internal):
            results.rows[f"{statement}.*"] = ("failed", statement)
    for name, reason in absent.items():
        if name in internal:
            results.rows[f"{name}.*"] = ("internal", reason)
        elif name.startswith("Test") and "No module named" not in reason:
            results.rows[f"{name}.*"] = ("failed", f"the class was not defined: {reason}")
    return results.rows


class _FunctionTest(unittest.FunctionTestCase):
    """A test that is a function, with values of its parameters."""

    def __init__(self, function: Any, given: dict[str, Any], number: int) -> None:
        super().__init__(lambda: function(**given))
        self._id = f"{function.__module__}.functions.{function.__name__}[{number}]"

    def id(self) -> str:
        return self._id

    def runTest(self) -> None:
        try:
            super().runTest()
        except pytest.skip.Exception as skipped:
            self.skipTest(str(skipped))


def _tests(module: types.ModuleType) -> Iterator[tuple[unittest.TestCase, Any]]:
    """Tests of a file with what each runs: methods of classes, functions of pytest."""
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and name != "TestCase":
            for test in unittest.defaultTestLoader.loadTestsFromTestCase(value):
                yield test, getattr(test, test._testMethodName)  # pyright: ignore
        elif name.startswith("test_") and inspect.isfunction(value):
            for number, given in enumerate(_parameter_values(value)):
                yield _FunctionTest(value, given, number), value


def _parameter_values(function: Any) -> Iterator[dict[str, Any]]:
    """Values by name, one dictionary for each case of a function of pytest."""
    marks = [m for m in getattr(function, "pytestmark", ()) if m.name == "parametrize"]
    for rows in itertools.product(*[m.args[1] for m in marks]):
        given: dict[str, Any] = {}
        for mark, row in zip(marks, rows, strict=True):
            if hasattr(row, "marks"):  # pytest.param
                if any(m.name == "skipif" and m.args[0] for m in row.marks):
                    break
                row = row.values if len(row.values) > 1 else row.values[0]
            names = mark.args[0]
            names = names.replace(" ", "").split(",") if isinstance(names, str) else names
            given |= dict(zip(names, row if len(names) > 1 else [row], strict=True))
        else:
            yield given


def _without_absent(examples: Any) -> Any:
    """Examples of distributions that there are."""
    return lambda: [e for e in examples() if not isinstance(e.Dist, Absent)]


def _forget_hooks(library: Any) -> None:
    """Forget hooks of all modules: a test that failed could not, and tests set private tables."""
    if library.__name__ != "torch":
        everywhere = importlib.import_module("numgrad.torch.nn.module").hooks.GLOBAL
        for table in ("forward_pre", "forward", "backward_pre", "backward"):
            getattr(everywhere, table).clear()


def _is_internal(name: str, case: Any) -> str:
    """The reason for which a test's name or text is about an internal, or nothing."""
    try:
        lines = inspect.getsource(inspect.unwrap(case)).splitlines()
        if not inspect.ismethod(case):  # of pytest: cases of other devices are marked
            lines = [line for line in lines if "cuda" not in line.lower()]
        text = "\n".join(lines)
    except (OSError, TypeError):
        return ""
    # decorators say what there are tests for, of which the name shows one
    text = f"{name}:" + re.split(r"^ *def ", text, maxsplit=1, flags=re.MULTILINE)[-1]
    return next((reason for reason, p in INTERNALS.items() if re.search(p, text)), "")


def _out_of_time(*_: Any) -> None:
    raise TimeoutError(f"longer than {SECONDS} s")


def reason_for(name: str) -> str:
    """The reason for which a failing test is a named exception, or nothing."""
    owner, _, method = name.rpartition(".")
    method = method.removeprefix("test_")
    names = (method, f"{owner.rpartition('.')[2]}.{method}")
    return next((EXCEPTIONS[p] for p in EXCEPTIONS if any(fnmatchcase(n, p) for n in names)), "")


def counts(rows: dict[str, tuple[str, str]], truth: dict[str, tuple[str, str]]) -> dict[str, int]:
    """How many of a file's tests passed, failed, are excepted, skipped or internals."""
    total: collections.Counter[str] = collections.Counter()
    for name, (outcome, _) in rows.items():
        total[_judged(name, outcome, truth)] += 1
    return dict(total)


def _judged(name: str, outcome: str, truth: dict[str, tuple[str, str]]) -> str:
    if outcome == "failed" and truth.get(name, ("passed",))[0] != "passed":
        return "fails with PyTorch too"
    if outcome == "failed" and reason_for(name):
        return "excepted"
    return outcome


def main() -> int:
    """Run files, print counts; the status is 1 where a test fails that is no exception."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", default=FILES)
    parser.add_argument("--checkout", default=os.environ.get("NUMGRAD_PYTORCH_TESTS"), type=Path)
    parser.add_argument("--library", default="numgrad.torch")
    parser.add_argument("-k", dest="pattern", default="")
    parser.add_argument("--truth", type=Path, help="what --library torch --json wrote")
    parser.add_argument("--json", type=Path, help="where to write every outcome")
    parser.add_argument("--list", action="store_true", help="print each test that fails")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.checkout is None:
        parser.error("give --checkout PATH or NUMGRAD_PYTORCH_TESTS")
    if options.here:
        (file,) = options.files
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (BYTES if most < 0 else min(BYTES, most), most))
        rows = run_file(options.checkout, file, options.library, options.pattern)
        options.json.write_text(json.dumps(rows))
        return 0
    truth = json.loads(options.truth.read_text()) if options.truth else {}
    everything, failing = {}, 0
    for file in options.files:
        rows = _in_process(options, file)
        everything[file] = rows
        table = counts(rows, truth.get(file, {}))
        failing += table.get("failed", 0)
        print(f"{file}: " + ", ".join(f"{n} {k}" for k, n in sorted(table.items())), flush=True)
        failures = [
            (name, detail)
            for name, (outcome, detail) in rows.items()
            if _judged(name, outcome, truth.get(file, {})) == "failed"
        ]
        if options.list:
            for name, detail in failures:
                print(f"    {name}: {detail}")
    if options.json:
        options.json.write_text(json.dumps(everything, indent=0))
    return int(failing > 0)


def _in_process(options: argparse.Namespace, file: str) -> dict[str, tuple[str, str]]:
    out = Path(f"{options.json or '/tmp/public_tests'}.{os.getpid()}.part")
    command = [sys.executable, __file__, "--here", "--checkout", str(options.checkout)]
    command += ["--library", options.library, "--json", str(out), "-k", options.pattern, file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    if done.returncode:
        return {"*": ("failed", f"exit status {done.returncode}: {done.stderr[-300:]}")}
    rows = json.loads(out.read_text())
    out.unlink()
    return rows


if __name__ == "__main__":
    sys.exit(main())
