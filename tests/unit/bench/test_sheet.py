"""The common part of the scripts of bench."""

import msgspec
import pytest

from bench.figures import Report
from bench.sheet import Sheet


def sheet(*arguments: str) -> Sheet:
    found = Sheet("exec", "Time of an exec\n\nMore words.", engines="husk,nobody-has-this")
    found.option("rounds", 50, quick=5)
    found.option("containers", "0,50", quick="0,5")
    found.read(arguments)
    return found


@pytest.mark.parametrize(
    ("arguments", "rounds", "containers"),
    [((), 50, "0,50"), (("--quick",), 5, "0,5"), (("--quick", "--rounds", "7"), 7, "0,5")],
)
def test_an_option_is_smaller_in_a_quick_run_unless_it_is_given(arguments, rounds, containers) -> None:
    options = sheet(*arguments).options
    assert (options.rounds, options.containers) == (rounds, containers)


def test_figures_are_printed_and_written(tmp_path, capsys) -> None:
    script = sheet("--quick", "--json", str(tmp_path / "exec.json"))
    script.title("husk", "husk 0.1")
    script.add("husk", "exec", "ms", [1.0, 2.0, 3.0])
    script.add("husk", "memory", "MiB", 40)
    script.finish()
    written = msgspec.json.decode((tmp_path / "exec.json").read_bytes(), type=Report)
    assert (written.script, written.title, written.quick) == ("exec", "Time of an exec", True)
    assert [figure.values["husk"].rounds for figure in written.figures] == [3, 1]
    assert len(written.load) == 2
    assert "| exec | 2.0 ms (1.0) |" in capsys.readouterr().out


def test_an_engine_that_is_not_here_is_left_out_and_told() -> None:
    script = sheet("--engines", "husk,nobody-has-this")
    assert script.wanted == ["husk"]
    assert script.finish().missing == ["nobody-has-this"]


def test_without_any_engine_there_is_nothing_to_do() -> None:
    with pytest.raises(SystemExit, match="none of nobody-has-this is on this machine"):
        _ = sheet("--engines", "nobody-has-this").wanted
