"""Run all of bench/ side by side with dockerd and podman, and write what was found: `make bench`, `make bench QUICK=1`.

    sudo .venv/bin/python -m bench.all [--quick] [--only exec,api] [--output build/bench] [--no-fetch]

Peers that are missing are fetched first and kept (`bench/fetch-peers`). While it runs, the last line tells which script
is at work, how far it is, how long it has taken, and how long it took the last time. A script that fails is told at
the end and stops none of the others; where it measures several engines, each of them is measured alone first, so that
one that fails costs its own column. The directory gets bench.json, tables.md, bench.svg, and of each script its
figures (NAME.json) and all it said (NAME.log).
"""

import argparse
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.chart import chart
from bench.figures import Collection, Machine, Report, joined
from bench.peers import KEPT
from bench.sheet import ENGINES
from bench.tables import page

ROOT = Path(__file__).resolve().parents[1]
# In this order; what a script is told unless the run is quick. 1,000 containers of dockerd take 5 GB.
SCRIPTS: dict[str, tuple[str, ...]] = {
    "containers": (),
    "exec": (),
    "images": ("--rounds", "2"),
    "build": ("--rounds", "4"),
    "logs": (),
    "startup": (),
    "api": (),
    "copies": (),
    "crowd": ("--many", "200"),
    "command": (),
    "fixtures": (),
    "sandbox": (),
    "floor": (),
    "steps": (),
    "network": (),
    "contexts": (),
    "hostile_builds": (),
    "dashboard": (),
    "swarm": (),
}
# Seconds after which a script is given up.
LIMIT = 3600


class Screen:
    """One line that tells how far the run is; where nobody can see it change, a line for each script instead."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._live = sys.stderr.isatty()
        self._begun = time.monotonic()

    def show(self, number: int, name: str, taken: float, usual: float, said: str) -> None:
        if self._live:
            usually = f" of about {_clock(usual)}" if usual else ""
            whole = _clock(time.monotonic() - self._begun)
            line = f"[{number}/{self._total}] {name} {_clock(taken)}{usually} (in all {whole}) {said}"
            print(f"\r\033[K{line[: os.get_terminal_size(2).columns - 1]}", end="", file=sys.stderr, flush=True)

    def end(self, number: int, name: str, taken: float, result: str) -> None:
        begin = "\r\033[K" if self._live else ""
        print(f"{begin}[{number}/{self._total}] {name}: {result}, {_clock(taken)}", file=sys.stderr, flush=True)


class Run:
    """One script at work. `said` is the last that it told of its way."""

    def __init__(self, name: str, output: Path, quick: bool, engine: str = "", root: Path = ROOT) -> None:
        """Of all its engines, or of one alone."""
        file = f"{name}-{engine}" if engine else name
        self.figures = output / f"{file}.json"
        self.figures.unlink(missing_ok=True)
        self.log = output / f"{file}.log"
        self.said = ""
        # Those that it measures, once it has said so.
        self.engines: list[str] = []
        self._last = ""
        self._begun = time.monotonic()
        arguments = ("--quick",) if quick else SCRIPTS[name]
        alone = ("--engines", engine) if engine else ()
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", f"bench.{name}", "--json", str(self.figures), *arguments, *alone],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self.log.open("w") as log:
            for line in self._process.stdout:
                log.write(line)
                log.flush()
                self._last = line.strip() or self._last
                if line.startswith("# "):
                    self.said = line[2:].strip()
                    if self.said.startswith(ENGINES):
                        self.engines = self.said.removeprefix(ENGINES).split(",")

    def alive(self) -> bool:
        """Tell if the script still works, after a moment of waiting; at its limit it is ended."""
        self._reader.join(0.25)
        if self._reader.is_alive() and self.taken() > LIMIT:
            self.end()
            return False
        return self._reader.is_alive()

    def end(self) -> None:
        """Let it clean up, and go."""
        self._process.send_signal(signal.SIGTERM)
        self._reader.join()
        self._process.wait()

    def taken(self) -> float:
        return time.monotonic() - self._begun

    def result(self) -> Report | str:
        """Return the figures that the script has found, or the reason why it has none."""
        status = self._process.wait()
        if status != 0 or not self.figures.exists():
            return self._last or f"ended with status {status}"
        return read_report(self.figures)


def read_report(path: Path) -> Report:
    return msgspec.json.decode(path.read_bytes(), type=Report)


def fetch() -> None:
    """Bring what is missing; a run goes on without it, and says so."""
    done = subprocess.run([str(ROOT / "bench/fetch-peers"), str(KEPT)], stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        print("not all peers could be fetched: columns will be missing", file=sys.stderr)


def machine() -> Machine:
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return Machine(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        processors=os.cpu_count() or 0,
        memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        kernel=platform.release(),
        python=platform.python_version(),
        commit=asked.stdout.strip() or "unknown",
    )


def usual_seconds(output: Path, quick: bool) -> dict[str, float]:
    """Return the seconds that each script took the last time that it was run in this way."""
    reports = [read_report(path) for path in output.glob("*.json") if path.stem in SCRIPTS]
    return {report.script: report.seconds for report in reports if report.quick == quick}


def run_all(
    names: list[str], output: Path, quick: bool, collection: Collection, start: Callable[..., Run] = Run
) -> None:
    screen, usual = Screen(len(names)), usual_seconds(output, quick)
    for number, name in enumerate(names, 1):
        run = start(name, output, quick)
        found = watched(run, screen, number, name, usual.get(name, 0))
        if isinstance(found, str) and len(run.engines) > 1:
            screen.end(number, name, run.taken(), f"failed: {found}; each engine alone now")
            found = one_by_one(name, output, quick, run.engines, screen, number, start) or found
        if isinstance(found, Report):
            collection.reports.append(found)
            screen.end(number, name, run.taken(), f"done without {', '.join(found.lost)}" if found.lost else "done")
        else:
            collection.failed[name] = found
            screen.end(number, name, run.taken(), f"failed: {found}")


def one_by_one(
    name: str,
    output: Path,
    quick: bool,
    engines: list[str],
    screen: Screen,
    number: int,
    start: Callable[..., Run] = Run,
) -> Report | None:
    """Return what a script finds of each engine alone, with those that fail told; None if all do."""
    reports, lost = [], {}
    for engine in engines:
        found = watched(start(name, output, quick, engine), screen, number, f"{name}, {engine} alone", 0)
        if isinstance(found, Report):
            reports.append(found)
        else:
            lost[engine] = found
    if not reports:
        return None
    whole = joined(reports)
    whole.lost |= lost
    return whole


def watched(run: Run, screen: Screen, number: int, name: str, usual: float) -> Report | str:
    """Show how far a script is, to its end."""
    try:
        while run.alive():
            screen.show(number, name, run.taken(), usual, run.said)
    except KeyboardInterrupt:
        run.end()
        raise
    return run.result()


def write(collection: Collection, output: Path) -> None:
    (output / "bench.json").write_bytes(msgspec.json.format(msgspec.json.encode(collection)))
    (output / "tables.md").write_text(page(collection))
    (output / "bench.svg").write_text(chart(collection))


def missing(collection: Collection) -> list[str]:
    """List what the tables lack, and why."""
    said = [f"bench.{name} failed: {why} (all of it in {name}.log)" for name, why in collection.failed.items()]
    lacking: dict[str, list[str]] = {}
    for report in collection.reports:
        for engine in report.missing:
            lacking.setdefault(engine, []).append(report.script)
        said += [f"{engine} failed in bench.{report.script}: {why}" for engine, why in report.lost.items()]
    return said + [f"{engine} is not on this machine: left out of {', '.join(of)}" for engine, of in lacking.items()]


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="little of everything, in about two minutes")
    parser.add_argument("--only", default=",".join(SCRIPTS), help="scripts, as a,b")
    parser.add_argument("--output", type=Path, default=ROOT / "build/bench", help="build/bench unless said")
    parser.add_argument("--no-fetch", action="store_true", help="take the peers that there are")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := [name for name in names if name not in SCRIPTS]:
        parser.error(f"no such script: {', '.join(unknown)}; there are {', '.join(SCRIPTS)}")
    if os.geteuid() != 0:
        parser.error("containers need root: sudo make bench")
    options.output.mkdir(parents=True, exist_ok=True)
    if not options.no_fetch:
        fetch()
    collection = Collection(machine(), quick=options.quick)
    begun = time.monotonic()
    try:
        run_all(names, options.output, options.quick, collection)
    except KeyboardInterrupt:
        print("\nended by you: what there is gets written", file=sys.stderr)
    write(collection, options.output)
    for line in missing(collection):
        print(line, file=sys.stderr)
    print(f"{_clock(time.monotonic() - begun)}; see {options.output}/tables.md, bench.svg and bench.json")
    lost = any(report.lost for report in collection.reports)
    return 1 if collection.failed or lost or len(collection.reports) < len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
