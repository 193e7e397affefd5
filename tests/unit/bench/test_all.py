"""`make bench`: all scripts, one after the other."""

from pathlib import Path

import msgspec
import pytest

from bench import all as bench_all
from bench.figures import Collection, Report
from tests.unit.bench.test_tables import MACHINE

BENCH = Path(bench_all.__file__).parent


class FakeRun:
    """A script that is over at once: `api` fails, others have found something."""

    said = ""

    def __init__(self, name: str, output: Path, quick: bool, engine: str = "") -> None:
        self.name = name
        self.engine = engine
        self.engines = ["husk", "podman"] if name == "logs" and not engine else []

    def alive(self) -> bool:
        return False

    def taken(self) -> float:
        return 65.0

    def result(self) -> Report | str:
        return "there is no h2load" if self.name == "api" else Report(self.name, "Time of an exec", missing=["podman"])


def test_a_script_that_fails_stops_no_other_and_is_told(tmp_path, capsys) -> None:
    found = Collection(MACHINE)
    bench_all.run_all(["exec", "api", "logs"], tmp_path, True, found, FakeRun)  # type: ignore[arg-type]
    assert [report.script for report in found.reports] == ["exec", "logs"]
    assert bench_all.missing(found) == [
        "bench.api failed: there is no h2load (all of it in api.log)",
        "podman is not on this machine: left out of exec, logs",
    ]
    assert "[2/3] api: failed: there is no h2load, 1:05" in capsys.readouterr().err


class OneFails(FakeRun):
    """Of a script of two engines, podman fails, and with it all of it."""

    def result(self) -> Report | str:
        if self.engine != "husk":
            return "podman: no such thing"
        found = Report(self.name, "Time of an exec")
        found.add("husk", "read", "s", [1.0])
        return found


def test_an_engine_that_fails_costs_its_own_column(tmp_path, capsys) -> None:
    found = Collection(MACHINE)
    bench_all.run_all(["logs", "exec"], tmp_path, True, found, OneFails)  # type: ignore[arg-type]
    (report,) = found.reports
    assert report.lost == {"podman": "podman: no such thing"} and list(report.engines) == ["husk"]
    assert list(found.failed) == ["exec"]
    assert "podman failed in bench.logs: podman: no such thing" in bench_all.missing(found)
    said = capsys.readouterr().err
    assert "each engine alone now" in said and "done without podman" in said


def test_a_script_tells_its_engines_and_is_run_for_one(tmp_path) -> None:
    """A real process, which stands for a script."""
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/exec.py").write_text(
        "import sys\nprint('# engines: husk,podman')\nprint(sys.argv)\nsys.exit('podman: broken')\n"
    )
    run = bench_all.Run("exec", tmp_path, True, "husk", root=tmp_path)
    while run.alive():
        pass
    assert run.engines == ["husk", "podman"]
    assert run.result() == "podman: broken"
    assert "'--quick', '--engines', 'husk']" in (tmp_path / "exec-husk.log").read_text()


def test_what_was_found_is_written(tmp_path) -> None:
    found = Collection(MACHINE, [Report("exec", "Time of an exec")], quick=True)
    bench_all.write(found, tmp_path)
    assert msgspec.json.decode((tmp_path / "bench.json").read_bytes(), type=Collection) == found
    assert (tmp_path / "tables.md").read_text().startswith("# Figures")
    assert (tmp_path / "bench.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(("quick", "usual"), [(True, {"exec": 3.0}), (False, {})])
def test_how_long_a_script_takes_is_known_from_the_last_run_of_the_same_kind(tmp_path, quick, usual) -> None:
    report = Report("exec", "Time of an exec", seconds=3.0, quick=True)
    (tmp_path / "exec.json").write_bytes(msgspec.json.encode(report))
    bench_all.write(Collection(MACHINE, [report]), tmp_path)
    assert bench_all.usual_seconds(tmp_path, quick) == usual


def test_no_script_is_forgotten() -> None:
    scripts = {path.stem for path in BENCH.glob("*.py") if 'Sheet("' in path.read_text() and path.stem != "sheet"}
    assert scripts == set(bench_all.SCRIPTS)
