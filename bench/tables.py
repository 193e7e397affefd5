"""Figures as Markdown tables: one script's, and a whole run's.

.venv/bin/python -m bench.tables build/bench/bench.json
"""

import sys
from pathlib import Path

import msgspec

from bench.figures import Collection, Figure, Report, shown, times_as_much


def table(report: Report) -> str:
    """A row for each figure, a column for each engine; `x` is how many times as good the first one is."""
    names = list(report.engines)
    lines = ["| what | " + " | ".join(report.engines.values()) + " |", "| --- |" + " --- |" * len(names)]
    lines += [
        f"| {_what(figure)} | " + " | ".join(_cell(figure, name, names[0]) for name in names) + " |"
        for figure in report.figures
    ]
    return "\n".join(lines)


def page(collection: Collection) -> str:
    """All tables of a run, and what is missing in them."""
    machine = collection.machine
    parts = [
        "# Figures",
        f"{machine.date}, commit {machine.commit}, {machine.processors} processors, {machine.memory:,} MiB, "
        f"Linux {machine.kernel}, Python {machine.python}."
        + (" A quick run: few rounds of little work, to see that all of it works." if collection.quick else ""),
        "Medians, the best round in brackets where there were more than one. `x` is how many times as good as this "
        "engine the first one is. Compare the columns of one row: machines differ.",
    ]
    for report in collection.reports:
        load = " to ".join(f"{each:.1f}" for each in report.load)
        about = [f"`python -m bench.{report.script}`, {report.seconds:.0f} s, load average {load}."]
        if report.missing:
            about.append(f"Not on this machine: {', '.join(report.missing)}.")
        if report.lost:
            about.append(f"Failed, so that the others were measured one after the other: {', '.join(report.lost)}.")
        parts += [f"## {report.title}", " ".join(about), table(report)]
    if collection.failed:
        parts += ["## What failed", "\n".join(f"- `bench.{name}`: {why}" for name, why in collection.failed.items())]
    return "\n\n".join(parts) + "\n"


def _what(figure: Figure) -> str:
    return (f"{figure.name}, {figure.of}" if figure.of else figure.name).replace("|", "\\|")


def _cell(figure: Figure, engine: str, first: str) -> str:
    if (value := figure.values.get(engine)) is None:
        return "-"
    best = f" ({shown(value.best, '').strip()})" if value.rounds > 1 else ""
    factor = times_as_much(figure, engine, first)
    return shown(value.median, figure.unit) + best + (f" {factor:.1f}x" if factor is not None else "")


if __name__ == "__main__":
    print(page(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Collection)))
