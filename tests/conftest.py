"""Profiles of hypothesis, and a guard against tests that leave something behind."""

import gc
import os
import signal
import sys
import zlib
from collections import Counter
from functools import cache
from importlib.abc import MetaPathFinder
from types import CodeType, FunctionType, ModuleType

import pytest
from hypothesis import HealthCheck, Phase, settings

import numgrad as ng
import numgrad.nn
from numgrad.codegen import compile as compiler
from numgrad.core.interpreter import state
from numgrad.operations.lazy_operations import declare_all

declare_all()  # tests go through the whole table

FOR_NUMBA = ("hosted", "hosted_once", "refused", "unwritten")
"""Kernels of tests of what happens to a text that is not in the language of ``codegen.native``."""


def _only_for_users(kernel, *given, compile_hosted=compiler._hosted):
    """Numba compiles kernels that call functions which users compiled, and no others."""
    assert kernel.functions or kernel.name in FOR_NUMBA, (kernel.name, kernel.numba_reason)
    return compile_hosted(kernel, *given)


compiler._hosted = _only_for_users

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in what a shell runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests of Ctrl-C wait for it

settings.register_profile("ci", max_examples=40, deadline=None, derandomize=True)
settings.register_profile(
    "dev", max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", max_examples=1000, deadline=None)
# tests.mutation asks whether a test fails, not for the smallest example
settings.register_profile(
    "unshrunk", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Compilers make many objects that stay: looking for cycles among them took a twentieth of the time.
gc.set_threshold(50_000, 20, 20)


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run every case of the slow tests as well")
    parser.addoption("--left-out", action="store_true", help="run what is left out without --all")
    parser.addoption(
        "--peers", action="store_true", help="of these, run what compares with PyTorch or JAX"
    )
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="of these, run about one in N, always the same",
    )


class WithoutPeers(MetaPathFinder):
    """Makes PyTorch and JAX missing, so that a run of all tests does not load them."""

    def find_spec(self, fullname, path, target=None):
        if fullname in ("torch", "jax"):
            raise ModuleNotFoundError(f"{fullname} is for tests with --peers", name=fullname)
        return None


def pytest_configure(config):
    if not config.getoption("--peers"):
        sys.meta_path.insert(0, WithoutPeers())


@pytest.hookimpl(trylast=True)  # after the cases are known
def pytest_generate_tests(metafunc):
    """Of a slow test make only what will run: two thirds of all cases do not."""
    config = metafunc.config
    asked = config.getoption("--all") or config.getoption("--left-out")
    limits = _limits(metafunc.definition)
    if limits and not asked and not any("[" in name for name in config.args):
        del metafunc._calls[max(1, min(limits)) :]  # an empty list would mean a test without cases


def _limits(node):
    return [mark.kwargs.get("cases", 1) for mark in node.iter_markers("slow")]


def pytest_collection_modifyitems(config, items):
    """Without ``--all`` a slow test runs its first case, or none if marked ``slow(cases=0)``.

    ``--left-out`` runs the other cases: with a run without options before it, that is everything.
    ``--one-in N`` takes a sample of what would run, by checksums of the names; ``--peers`` what
    mentions PyTorch or JAX, in the test, its fixtures, or functions of tests that it calls.
    """
    changing = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if changing:
        raise pytest.UsageError(f"names that change from process to process: {changing}")
    kept, left_out = _by_options(config, items)
    sample = config.getoption("--one-in")
    taken = [item for item in kept if zlib.crc32(item.nodeid.encode()) % sample == 0]
    if config.getoption("--peers"):
        taken = [item for item in taken if _compares(item)]
    config.hook.pytest_deselected(items=[*left_out, *(set(kept) - set(taken))])
    items[:] = taken


def pytest_collection_finish(session):
    """What is there by now stays to the end: no collection of garbage goes through it again."""
    gc.collect()
    gc.freeze()


def _by_options(config, items):
    if config.getoption("--all"):
        return items, []
    met: Counter[tuple[pytest.Collector, str]] = Counter()
    kept, left_out = [], []
    for item in items:
        limits = _limits(item)
        test = item.parent, item.originalname
        met[test] += 1
        (left_out if limits and met[test] > min(limits) else kept).append(item)
    return (left_out, kept) if config.getoption("--left-out") else (kept, left_out)


def _compares(item):
    fixtures = [d.func for known in item._fixtureinfo.name2fixturedefs.values() for d in known]
    return any(map(_mentions_peers, [item.function, *fixtures]))


@cache
def _mentions_peers(function):
    waiting, seen = [function], set()
    while waiting:
        f = waiting.pop()
        f = getattr(getattr(f, "hypothesis", f), "inner_test", f)
        if isinstance(f, type) and f.__module__.startswith("tests"):
            waiting.extend(vars(f).values())
        if not isinstance(f, FunctionType) or f in seen:
            continue
        seen.add(f)
        for code in _codes(f.__code__):
            words = {w.partition(".")[0] for w in code.co_consts if isinstance(w, str)}
            if not {"torch", "jax"}.isdisjoint(words.union(code.co_names)):
                return True
            values = [f.__globals__[name] for name in code.co_names if name in f.__globals__]
            for module in [v for v in values if isinstance(v, ModuleType)]:
                values += [vars(module)[name] for name in code.co_names if name in vars(module)]
            ours = [v for v in values if isinstance(v, type | FunctionType)]
            waiting.extend(v for v in ours if v.__module__.startswith("tests"))
    return False


def _codes(code):
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _global_state():
    return {
        "number of threads": ng.get_num_threads(),
    }


@pytest.fixture(autouse=True, scope="module")
def collections_look_at_few_modules():
    """What modules of tests leave stays to the end, so that ``gc.collect()`` remains cheap."""
    yield
    if any(gc.get_count()[1:]):  # 50,000 objects and more since the last time
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def leaves_global_state_alone():
    before, modes = _global_state(), dict(vars(state))
    yield
    after = _global_state()
    leaked = {name for name in before if before[name] != after[name]}
    modes["ground"] = state.ground  # which the first trace of a thread sets
    leaked |= {name for name, value in vars(state).items() if value is not modes.get(name)}
    if leaked:  # put it back for the next test
        ng.set_num_threads(before["number of threads"])
        state.put(modes)
    assert not leaked, f"the test changed {', '.join(sorted(leaked))}"
