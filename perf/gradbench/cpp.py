"""GradBench's tools in C++: what they need, how they are built and run; as a script, one such tool.

They are compiled as GradBench's makefiles do, but for the clock: theirs is a wall clock, and here
all tools are timed by that of the CPU, so that other processes disturb less.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

CLOCK = """\
#pragma once
#include <chrono>
#include <ctime>
namespace std::chrono {
struct cpu_clock {
  using duration = nanoseconds;
  using time_point = std::chrono::time_point<cpu_clock>;
  static time_point now() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return time_point(seconds(t.tv_sec) + nanoseconds(t.tv_nsec));
  }
};
}
#define steady_clock cpu_clock
"""


def environment(checkout: Path) -> dict[str, str]:
    """Variables for evals and tools: where GradBench is, and one thread for every library."""
    own = Path(__file__).resolve().parents[2]
    paths = [str(checkout / "python/gradbench"), str(own), os.environ.get("PYTHONPATH", "")]
    one = ("NUMGRAD_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        **os.environ,
        **dict.fromkeys(one, "1"),
        "GRADBENCH": str(checkout),
        "PYTHONPATH": os.pathsep.join(p for p in paths if p),
    }


def processor() -> str:
    """The name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "an unknown CPU"


def include_paths() -> list[str]:
    """Folders of headers, as ``CPATH`` has them; Debian's nlohmann-json3-dev is found by itself."""
    packaged = ["/usr/include/nlohmann"]
    return [*os.environ.get("CPATH", "").split(os.pathsep), *packaged]


def _has(header: str, checkout: Path) -> bool:
    folders = [*include_paths(), str(checkout / "cpp")]
    return any((Path(folder) / header).exists() for folder in folders if folder)


def lacking(tool: str, checkout: Path) -> str | None:
    """Why a tool cannot be built; None if it can."""
    if not (shutil.which("c++") and shutil.which("make")):
        return "there is no C++ compiler (c++), or no make"
    if not _has("json.hpp", checkout):
        return "json.hpp is missing: install nlohmann-json3-dev, or run make -C cpp in the checkout"
    if tool == "codipack" and not _has("codi.hpp", checkout):
        return "CoDiPack is missing: name the folder include of a clone of it in CPATH"
    return None


def build(tool: str, module: str, checkout: Path) -> str | None:
    """Compile one eval of a tool unless that was done; returns the compiler's words if it fails."""
    binary = checkout / "tools" / tool / "bin" / module
    if lacking(tool, checkout) or not (checkout / "tools" / tool / f"{module}.cpp").exists():
        return f"{tool} has no {module} that can be built here"
    stamp = binary.with_suffix(".cpu_clock")
    if binary.exists() and stamp.exists():
        return None
    header = checkout / "cpp/cpu_clock.hpp"
    header.write_text(CLOCK)
    made = subprocess.run(
        ["make", "-C", f"tools/{tool}", f"bin/{module}", "-B", "MULTITHREADED=no"],
        cwd=checkout,
        env={
            **os.environ,
            "CPATH": os.pathsep.join(include_paths()),
            "CXXFLAGS": f"-std=c++17 -O3 -I../../cpp -include {header}",
        },
        text=True,
        capture_output=True,
    )
    if made.returncode:
        return made.stderr
    stamp.touch()
    return None


def answer(message: dict, tool: str, checkout: Path) -> dict:
    """The response to one message, but for its number."""
    sys.path.insert(0, str(checkout / "python/gradbench"))
    from gradbench import cpp

    if message["kind"] == "start":
        return {"tool": tool}
    if message["kind"] == "define":
        error = build(tool, message["module"], checkout)
        return {"success": error is None, "error": error}
    if message["kind"] == "evaluate":
        names = ("module", "function", "input")
        return cpp.evaluate(tool=tool, **{name: message[name] for name in names})
    return {}


def main() -> None:
    """Answer messages until the end of input."""
    for line in sys.stdin:
        message = json.loads(line)
        response = answer(message, sys.argv[1], Path(os.environ["GRADBENCH"]))
        print(json.dumps({"id": message["id"], **response}), flush=True)


if __name__ == "__main__":
    main()
