"""The one shape of what all scripts here measure: JSON for `bench.all`, tables and the chart.

    {"script": "exec", "title": "Time of an exec", "engines": {"husk": "husk 1.0", …}, "quick": false,
     "figures": [{"name": "exec of true", "unit": "ms", "of": "", "better": "lower",
                  "values": {"husk": {"median": 15.9, "best": 10.5, "rounds": 50}, …}}],
     "missing": ["podman"], "load": [0.2, 1.1], "seconds": 31.0}

`of` says of how much a figure is (50 containers, 200 MB); `load` is the machine's load average before and after;
`missing` are engines that were wanted and are not on this machine, `lost` those that failed, with the reason.
"""

import statistics
from collections.abc import Sequence
from typing import Literal

import msgspec

Better = Literal["lower", "higher"]


class Measured(msgspec.Struct):
    """One figure of one engine."""

    median: float
    best: float
    rounds: int


class Figure(msgspec.Struct):
    """A figure that was measured, by engine."""

    name: str
    unit: str
    values: dict[str, Measured] = {}
    of: str = ""
    better: Better = "lower"


class Report(msgspec.Struct):
    """All that one script has found."""

    script: str
    title: str
    engines: dict[str, str] = {}
    figures: list[Figure] = []
    missing: list[str] = []
    load: list[float] = []
    seconds: float = 0.0
    quick: bool = False
    lost: dict[str, str] = {}

    def add(
        self, engine: str, name: str, unit: str, taken: Sequence[float], *, of: str = "", better: Better = "lower"
    ) -> None:
        """Note what an engine took in each round; the figure is made when its first engine comes."""
        key = (name, unit, of)
        figure = next((each for each in self.figures if (each.name, each.unit, each.of) == key), None)
        if figure is None:
            figure = Figure(name, unit, of=of, better=better)
            self.figures.append(figure)
        best = min(taken) if better == "lower" else max(taken)
        figure.values[engine] = Measured(statistics.median(taken), best, len(taken))
        self.engines.setdefault(engine, engine)


def joined(reports: Sequence[Report]) -> Report:
    """Reports of one script, each with other engines, as one."""
    first = reports[0]
    whole = msgspec.structs.replace(first, engines={}, figures=[], load=[*first.load[:1], *reports[-1].load[-1:]])
    whole.seconds = sum(report.seconds for report in reports)
    whole.lost = {engine: why for report in reports for engine, why in report.lost.items()}
    figures: dict[tuple[str, str, str], Figure] = {}
    for report in reports:
        whole.engines |= report.engines
        for figure in report.figures:
            key = (figure.name, figure.unit, figure.of)
            known = figures.setdefault(key, msgspec.structs.replace(figure, values={}))
            known.values |= figure.values
    whole.figures = list(figures.values())
    return whole


class Machine(msgspec.Struct):
    """The machine on which figures were taken."""

    date: str
    processors: int
    memory: int  # MiB
    kernel: str
    python: str
    commit: str


class Collection(msgspec.Struct):
    """A whole run of `bench.all`, as its bench.json has it."""

    machine: Machine
    reports: list[Report] = []
    failed: dict[str, str] = {}  # why, by script
    quick: bool = False


def times_as_much(figure: Figure, engine: str, first: str) -> float | None:
    """Compute how many times as good the first engine is; None where one of them has no figure, or it is nothing."""
    own, other = figure.values.get(first), figure.values.get(engine)
    if own is None or other is None or engine == first:
        return None
    above, below = (other.median, own.median) if figure.better == "lower" else (own.median, other.median)
    return above / below if below > 0 else None


def shown(value: float, unit: str) -> str:
    """With as many digits as tell something: 0.24 s, 3.1 ms, 19 ms, 26,100 /s."""
    digits = 2 if abs(value) < 1 else 1 if abs(value) < 10 else 0
    return f"{value:,.{digits}f} {unit}"
