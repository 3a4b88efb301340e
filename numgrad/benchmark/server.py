"""A process of one side: a script by itself, since the other side may have another numgrad.

It reads the benchmarks of a file by the numgrad that it finds, and answers requests, one of JSON a
line, on what was standard output; what benchmarks print goes to standard error.
"""

import functools
import gc
import inspect
import json
import os
import sys
import time
import timeit
from pathlib import Path

SAMPLE_SECONDS = 0.001
CLOCK = time.process_time if os.name == "posix" else time.perf_counter  # in steps of 16 ms there


class TimedCall:
    """A form of a benchmark, with operands of its own."""

    def __init__(self, benchmark, form):
        function = benchmark.function
        arguments = benchmark.arguments()
        benchmark.check(function, arguments)
        if form == "compiled":
            import numgrad

            function = numgrad.jit(function)
        result = function(**arguments)  # compiles  # pyright: ignore[reportCallIssue]
        if inspect.isroutine(result) or isinstance(result, functools.partial):
            raise TypeError("returns a function, which nothing calls; call it in the benchmark")
        call = functools.partial(function, **arguments)
        # timeit switches the cycle collector off; users have it on
        self.timer = timeit.Timer(call, gc.enable, CLOCK)
        self.timer.timeit(2)
        self.number = 1
        while min(self.timer.timeit(self.number) for _ in range(3)) < SAMPLE_SECONDS / 4:
            self.number *= 2

    def fastest(self):
        """The smallest time of a call in some samples."""
        return min(self.samples(4, self.number))

    def samples(self, count, number):
        """Seconds a call, in ``count`` samples of ``number`` calls."""
        return [self.timer.timeit(number) / number for _ in range(count)]


def main(path):
    """Answer requests until the input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    benchmarks, calls = {}, {}

    def answer(do, name="", form="", count=0, number=0):
        if do == "read":
            from numgrad.benchmark.declaration import collect

            benchmarks.update(collect(Path(path)))
            return list(benchmarks)
        if do == "prepare":
            calls.clear()  # what was there is gone before there is something new
            if name not in benchmarks:
                return False
            calls[name, form] = TimedCall(benchmarks[name], form)
            return True
        call = calls[name, form]
        return call.fastest() if do == "fastest" else call.samples(count, number)

    for line in sys.stdin:
        try:
            reply = {"result": answer(**json.loads(line))}
        except (Exception, SystemExit) as error:
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
