"""Files that are put on a host: the units that lie in packaging/, too, and those that shells and man read."""

from pathlib import Path

import click
import pytest

from husk.cli.commands import husk
from husk.cli.install import files

PACKAGING = Path(__file__).parents[4] / "packaging"


def test_the_units_of_the_packaging_are_these() -> None:
    assert (PACKAGING / "husk.service").read_text() == files.service(["/usr/local/bin/husk"])
    assert (PACKAGING / "husk.socket").read_text() == files.socket_unit("docker")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["/opt/husk/bin/husk"], "/opt/husk/bin/husk serve"),
        (["/opt/my husk/python", "-m", "husk"], '"/opt/my husk/python" -m husk serve'),
        (["/opt/100%/$x/husk"], '"/opt/100%%/$$x/husk" serve'),
    ],
)
def test_a_program_as_systemd_reads_it(words: list[str], line: str) -> None:
    assert f"ExecStart={line}\n" in files.service(words)


def test_shells_and_man_find_theirs() -> None:
    found = {file.path: file.text for file in files.reading(click.Context(husk, info_name="husk"), "/usr")}
    assert found["/usr/share/zsh/site-functions/_husk"].startswith("#compdef husk")
    assert "_HUSK_COMPLETE" in found["/usr/share/bash-completion/completions/husk"]
    assert "complete" in found["/usr/share/fish/vendor_completions.d/husk.fish"]
    assert found["/usr/share/man/man1/husk.1"].startswith(".TH HUSK 1")
