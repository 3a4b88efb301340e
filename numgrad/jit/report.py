"""What became of a jitted function, for people."""

from __future__ import annotations

from collections.abc import Sequence

from numgrad.jit.layout import Input, Layout
from numgrad.jit.specialise import Specialisation
from numgrad.jit.stats import Statistics


def report(name: str, found: Sequence[Specialisation], statistics: Statistics) -> str:
    """A text on all specialisations of a function."""
    s = statistics
    lines = [
        f"{name}: {s.calls} calls, {s.traces} traces, {s.compiles} kernels "
        f"({s.cache_hits} from disk), {s.seconds:.2f} s"
    ]
    for number, specialisation in enumerate(found):
        lines += ["", f"specialisation {number}"]
        if specialisation.reason:
            lines.append(f"  made because {specialisation.reason}")
        lines += _of_layout(specialisation.layout)
        for program in specialisation.programs:
            text = getattr(program, "report", None)
            if text is not None:
                lines += [f"  {line}" for line in text().splitlines()]
    return "\n".join(lines)


def _of_layout(layout: Layout) -> list[str]:
    lines = ["  inputs"]
    lines += [f"    {_of_input(entry, layout)}" for entry in layout.inputs]
    lengths = [g.text(lambda k: f"n{k}") for g in layout.sizes.relations()]
    around = [f"{place.name} = {place.value!r}" for place in layout.guards]
    if lengths or around:
        lines.append("  guards")
        lines += [
            f"    {text if len(text) < 80 else text[:76] + ' ...'}" for text in lengths + around
        ]
    return lines


def _of_input(entry: Input, layout: Layout) -> str:
    value = entry.value
    lengths = ", ".join(str(layout.sizes.resolve(n)) for n in value.shape)
    written = ", written" if layout.inputs.index(entry) in layout.writes else ""
    origin = "" if entry.leaf is not None else ", read at each call"
    if entry.leaf is None and entry.place is None:
        origin = ", held"
    return f"{entry.name}: {value.dtype}[{lengths}]{origin}{written}"
