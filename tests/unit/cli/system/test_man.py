import shlex
import shutil
import subprocess

import click
import pytest

from husk.cli.commands import husk
from husk.cli.system.man import EXAMPLES


def test_every_command_is_in_it(typed):
    page = typed("man").out
    for section in ("NAME", "SYNOPSIS", "OPTIONS", "COMMANDS", "ENVIRONMENT", "FILES", "EXAMPLES", "EXIT STATUS"):
        assert f".SH {section}" in page
    for command in ("run", "ps", "build", "serve", "top"):
        assert f".SS husk {command}" in page
    assert ".B \\-e, \\-\\-env LIST" in page
    assert "dial" not in page
    assert "husk container prune" in page and "husk container run" not in page, "what is there already is not repeated"


def test_its_examples_are_lines_that_are_understood():
    for line in EXAMPLES:
        context = click.Context(husk, info_name="husk")
        _, *words = shlex.split(line)
        command: click.Command = husk
        while isinstance(command, click.Group):
            name, found, words = command.resolve_command(context, words)
            assert found is not None
            command = found
        command.make_context(name, words)


@pytest.mark.skipif(shutil.which("man") is None, reason="no man here")
def test_man_can_read_it(typed):
    done = subprocess.run(["man", "--warnings", "-l", "-"], input=typed("man").out, capture_output=True, text=True)
    assert "husk run" in done.stdout


def test_completions(typed):
    for shell in ("bash", "zsh", "fish"):
        assert "_HUSK_COMPLETE" in typed("completion", shell).out
    assert typed("completion", "tcsh").code == 125
