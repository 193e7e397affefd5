"""The sheet of a script: its options, what it says on its way, and what it hands out at its end.

    sheet = Sheet("exec", __doc__, engines="husk,dockerd-new")
    sheet.option("rounds", 50, quick=5)
    options = sheet.read()
    with sheet.running() as engines:
        for engine in engines:
            sheet.add(engine, "exec of true", "ms", [...])
    sheet.finish()

`--quick` chooses the second number of each option, `--json FILE` writes the figures (`bench.figures`) beside the table
that is printed.
"""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from bench.engines import Engine, engines, installed
from bench.figures import Better, Report
from bench.tables import table

# How the line begins that tells which engines are measured.
ENGINES = "engines: "
Value = TypeVar("Value", int, float, str)


class Sheet:
    """The options and the figures of one script."""

    def __init__(self, script: str, doc: str | None, engines: str = "") -> None:
        text = doc or ""
        self.parser = argparse.ArgumentParser(
            f"python -m bench.{script}", description=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        self.parser.add_argument("--quick", action="store_true", help="little of everything, to see that it works")
        self.parser.add_argument("--json", metavar="FILE", help="write the figures there")
        if engines:
            self.parser.add_argument("--engines", default=engines, help=f"{engines} unless said; the first is compared")
        self._values: dict[str, tuple[object, object]] = {}
        self._report = Report(script, text.partition("\n")[0])
        self._begun = time.monotonic()

    def option(self, name: str, usual: Value, quick: Value, about: str = "") -> None:
        """An option `--name`, and what it is unless it is given: usually, and with `--quick`."""
        self._values[name.replace("-", "_")] = usual, quick
        told = f"{about + '; ' if about else ''}{usual} unless said, {quick} with --quick"
        self.parser.add_argument(f"--{name}", type=type(usual), help=told)

    def read(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        options = self.parser.parse_args(arguments)
        for name, (usual, quick) in self._values.items():
            if getattr(options, name) is None:
                setattr(options, name, quick if options.quick else usual)
        self.options = options
        self._report.quick = options.quick
        self._report.load.append(os.getloadavg()[0])
        return options

    @property
    def wanted(self) -> list[str]:
        """The engines of `--engines` that this machine has; the others are noted."""
        asked = self.options.engines.split(",")
        there = installed(asked)
        self._report.missing = [name for name in asked if name not in there]
        if not there:
            raise SystemExit(f"none of {', '.join(asked)} is on this machine: see bench/fetch-peers")
        # `bench.all` reads it: where the script fails, each of them is measured alone.
        self.say(f"{ENGINES}{','.join(there)}")
        return there

    @contextlib.contextmanager
    def running(self, *names: str, network: bool = True, directory: str = "/tmp") -> Iterator[list[Engine]]:
        """The engines of `--engines`, or those that are named, running."""
        with engines(list(names) or self.wanted, network=network, directory=directory) as started:
            for engine in started:
                self.title(engine.name, engine.title())
            yield started

    def title(self, engine: str, title: str) -> None:
        """Set the title of an engine's column; columns come in the order of their titles."""
        self._report.engines[engine] = title

    def add(
        self,
        engine: Engine | str,
        name: str,
        unit: str,
        taken: Sequence[float] | float,
        *,
        of: str = "",
        better: Better = "lower",
    ) -> None:
        """Note what was measured, once or in each round."""
        rounds = [taken] if isinstance(taken, int | float) else taken
        column = engine if isinstance(engine, str) else engine.name
        self._report.add(column, name, unit, rounds, of=of, better=better)

    def lose(self, engine: str, why: str) -> None:
        """An engine has failed, and the rest goes on without it."""
        self._report.lost[engine] = why
        self.say(f"{engine} failed: {why}")

    def say(self, text: str) -> None:
        """Print how far the script is."""
        print(f"# {text}", file=sys.stderr, flush=True)

    def finish(self) -> Report:
        """Print the table, and write what `--json` asks for."""
        self._report.load.append(os.getloadavg()[0])
        self._report.seconds = time.monotonic() - self._begun
        print(table(self._report))
        print(f"load average: {' to '.join(f'{each:.1f}' for each in self._report.load)}")
        if self.options.json:
            Path(self.options.json).write_bytes(msgspec.json.encode(self._report))
        return self._report
