"""Machine code reads slots of objects: an empty one is an error of Python's, and ends no process.

Everything runs in a process of its own. There each slot of each kind of object that machine code
follows is emptied, before a call or a backward, which machine code and Python then do.
"""

import json
import subprocess
import sys

import numgrad as ng
from numgrad.autograd.node import Node
from numgrad.autograd.versions import Version

SCRIPT = '''
import copy, faulthandler, json
import numpy as np
import numgrad as ng
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Parameter, Tensor, Version, shared_version
from tests.python_paths import machine_code, python_paths

faulthandler.enable()
machine_code()


def leaf():
    return ng.tensor([1.0, 2.0], requires_grad=True)


def parameter():
    return ng.nn.Parameter(ng.tensor([1.0, 2.0]))


def constant():
    return ng.tensor([1.0, 2.0])


def result():
    return leaf() * 3.0


def view():
    return (leaf() * 1.0)[:2]


def written():
    x = leaf() * 1.0
    x.mul_(2.0)
    return x


def view_of_written():
    x = ng.tensor([1.0, 2.0, 3.0])
    x.mul_(2.0)
    return x[:2]


def new(cls):
    return lambda: cls.__new__(cls)


OTHER = leaf()
CALLS = {
    "exp": lambda t: ng.exp(t),
    "t + 1.0": lambda t: t + 1.0,
    "2 * t": lambda t: 2 * t,
    "t * t": lambda t: t * t,
    "other - t": lambda t: OTHER - t,
    "sum": lambda t: ng.sum(t),
}


def chain(t):
    """Nodes that keep their operand, their result, and neither; of elements and along axes."""
    return ng.sum(ng.exp(ng.sin(t * t) + t) * 2.0)


def nodes_of(loss):
    found, stack = {}, [loss.grad_fn]
    while stack:
        node = stack.pop()
        if type(node) is Node and id(node) not in found:
            found[id(node)] = node
            stack += node.edges
    return list(found.values())


def backward(loss, x):
    loss.backward()


def wanted(loss, x):
    return ng.autograd.grad(loss, x)


def outcome(run):
    try:
        found = run()
        return "fine" if found is None else repr(found)
    except Exception as error:
        return type(error).__name__ + ": " + str(error).partition(";")[0]


CASES = {}


def case(name):
    return lambda run: CASES.setdefault(name, run)


MAKERS = [leaf, parameter, constant, result, view, written, view_of_written]
for make in MAKERS:
    for slot in Tensor.__slots__[1:]:
        for name, call in CALLS.items():

            @case(f"call {make.__name__} {slot} {name}")
            def run(make=make, slot=slot, call=call):
                t = make()
                delattr(t, slot)
                return call(t)

    for slot in Version.__slots__:
        for name, call in CALLS.items():

            @case(f"version {make.__name__} {slot} {name}")
            def run(make=make, slot=slot, call=call):
                t = make()
                delattr(shared_version(t), slot)
                return call(t)

    for slot in Tensor.__slots__[1:]:

        @case(f"root of {make.__name__} {slot}")
        def run(make=make, slot=slot):
            t = make()
            root = t._memory
            if isinstance(root, Tensor):
                delattr(root, slot)
            return t * t


for cls in (Tensor, Parameter, type("Own", (Tensor,), {})):
    for name, call in CALLS.items():

        @case(f"new {cls.__name__} {name}")
        def run(cls=cls, call=call):
            return call(cls.__new__(cls))


for walk in (backward, wanted):
    for slot in Tensor.__slots__[1:]:
        for which in ("leaf", "saved"):

            @case(f"{walk.__name__} {which} {slot}")
            def run(walk=walk, slot=slot, which=which):
                x = leaf()
                y = ng.sin(x * x)
                loss = ng.sum(ng.exp(y * x))
                target = x if which == "leaf" else y
                delattr(target, slot)
                walk(loss, x)

    for slot in Version.__slots__:

        @case(f"{walk.__name__} version {slot}")
        def run(walk=walk, slot=slot):
            x = leaf()
            y = ng.sin(x * 2.0)
            version = shared_version(y)
            loss = ng.sum(y * y[:2] * x)
            delattr(version, slot)
            walk(loss, x)

    for k in range(len(nodes_of(chain(leaf())))):
        for slot in Node.__slots__[1:]:

            @case(f"{walk.__name__} node {k} {slot}")
            def run(walk=walk, slot=slot, k=k):
                x = leaf()
                loss = chain(x)
                delattr(nodes_of(loss)[k], slot)
                walk(loss, x)

        for name, value in {
            "saved": ((Tensor.__new__(Tensor),), (Parameter.__new__(Parameter),) * 2, (), None, []),
            "edges": ((Node.__new__(Node),) * 2, (Tensor.__new__(Tensor),), (), [], None),
        }.items():
            for number, replacement in enumerate(value):

                @case(f"{walk.__name__} node {k} {name} {number}")
                def run(walk=walk, k=k, name=name, replacement=replacement):
                    x = leaf()
                    loss = chain(x)
                    setattr(nodes_of(loss)[k], name, replacement)
                    walk(loss, x)

        @case(f"{walk.__name__} steps of node {k}")
        def run(walk=walk, k=k):
            x = leaf()
            loss = chain(x)
            node = nodes_of(loss)[k]
            node.call = copy.copy(node.call)
            del node.call.steps
            walk(loss, x)

        @case(f"{walk.__name__} plan of node {k}")
        def run(walk=walk, k=k):
            x = leaf()
            loss = chain(x)
            node = nodes_of(loss)[k]
            node.call = type(node.call).__new__(type(node.call))
            walk(loss, x)


@case("root is new")
def run():
    Tensor.__new__(Tensor).backward()


@case("root of a new node")
def run():
    Tensor(np.ones(()), True, Node.__new__(Node)).backward()


for make in MAKERS:  # now there are records and steps
    for call in CALLS.values():
        for _ in range(2):
            call(make())
for walk in (backward, wanted):
    x = leaf()
    walk(chain(x), x)
found = {}
for name, run in CASES.items():
    print(name, flush=True)
    first = outcome(run)
    with python_paths():
        second = outcome(run)
    found[name] = first, second
print(json.dumps(found))
'''


def test_empty_slots_are_errors_of_python():
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    found = json.loads(lines[-1])
    # which slots there are is read from the classes, so that none that is added is forgotten
    assert len(found) > 10 * len((*ng.Tensor.__slots__, *Node.__slots__, *Version.__slots__))
    outcomes = {name: [each.partition(":")[0] for each in pair] for name, pair in found.items()}
    assert not {name: pair for name, pair in found.items() if len(set(outcomes[name])) != 1}
    assert not {name for name, (kind, _) in outcomes.items() if kind == "SystemError"}
    for name in ("call leaf _memory t + 1.0", "new Tensor exp", "backward node 1 call"):
        assert outcomes[name][0] == "AttributeError"
