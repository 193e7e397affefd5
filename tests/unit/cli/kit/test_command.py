from ast import literal_eval

import click
import pytest
from click.testing import CliRunner

from husk.cli.kit.command import HuskCommand, flag, many


@click.command(cls=HuskCommand, own_words=True)
@flag("--rm", help="Remove.")
@flag("-i", "--interactive", help="Input.")
@flag("--sig-proxy", default=True, help="Signals.")
@many("-e", "--env", help="Variables.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def run(**values):
    click.echo(repr({name: value for name, value in values.items() if value not in ((), False)}))


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (["-i", "image", "-i", "--rm"], {"interactive": True, "sig_proxy": True, "words": ("image", "-i", "--rm")}),
        (["--rm=true", "--sig-proxy=false"], {"rm": True}),
        (["--rm=0", "-ie", "A=1"], {"interactive": True, "sig_proxy": True, "env": ("A=1",)}),
        (["-e=A=1", "-eB", "--env", "--rm", "x"], {"sig_proxy": True, "env": ("A=1", "B", "--rm"), "words": ("x",)}),
        (["--", "--rm"], {"sig_proxy": True, "words": ("--rm",)}),
        (["-"], {"sig_proxy": True, "words": ("-",)}),
    ],
)
def test_lines_are_read_as_docker_reads_them(line, read):
    assert literal_eval(CliRunner().invoke(run, line, catch_exceptions=False).output) == read


def test_what_is_no_truth():
    found = CliRunner().invoke(run, ["--rm=perhaps"])
    assert found.exit_code == 2 and "expected true or false" in found.output


def test_the_denial_of_a_truth_is_not_shown():
    told = CliRunner().invoke(run, ["--help"]).output
    assert "--rm " in told and ":false" not in told and "-i, --interactive" in told
