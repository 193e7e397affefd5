"""Every command: loaded when it is used, told of in docs/cli.md, and with `--json` where there is something to tell."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from husk.cli.commands import husk
from husk.cli.kit.group import LazyGroup

DOCS = (Path(__file__).parents[3] / "docs/cli.md").read_text()
CONTEXT = click.Context(husk, info_name="husk")
OURS = [name for name in husk.list_commands(CONTEXT) if name not in ("container", "image", "system")]
# What speaks with a terminal, or tells of Husk itself.
WITHOUT_JSON = {
    "attach",
    "builder",  # its commands have, as those of the groups below
    "buildx",
    "completion",
    "compose",
    "config",
    "context",
    "dashboard",
    "doctor",
    "export",
    "help",
    "install",
    "lab",  # its commands have
    "logout",
    "man",
    "migrate",
    "network",
    "node",
    "plugin",
    "save",
    "secret",
    "serve",
    "service",
    "stack",
    "swarm",  # its commands have
    "uninstall",
    "volume",
}


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_documented(name):
    command = husk.get_command(CONTEXT, name)
    assert command is not None and command.help
    assert f"`{name}" in DOCS or f"husk {name}" in DOCS
    names = {each for option in command.params for each in option.opts}
    assert ("--json" in names) == (name not in WITHOUT_JSON)


def test_dockers_longer_names(typed, engine):
    engine.answers("GET", "/containers/json", [])
    assert typed("container", "ls").out == typed("ps").out
    for name in ("container", "image", "system"):
        group = husk.get_command(CONTEXT, name)
        assert isinstance(group, click.Group)
        assert all(group.get_command(CONTEXT, each) for each in group.list_commands(CONTEXT))


def test_asking_for_one_loads_few(tmp_path):

    code = "import sys, husk.cli.containers.ps; print(*(m for m in sys.modules if m in %r))"
    heavy = ("rich", "asyncio", "ssl", "aiohttp", "husk.engine", "husk.cli.containers.run")
    done = subprocess.run([sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_what_help_says_of_a_command_is_what_it_says_of_itself():
    names = ("builder", "container", "image", "lab", "swarm", "system")
    groups = [husk, *(husk.get_command(CONTEXT, name) for name in names)]
    for group in groups:
        assert isinstance(group, LazyGroup)
        for name, (_, said) in group.places.items():
            command = group.get_command(CONTEXT, name)
            assert command is not None
            assert said == ("" if command.hidden else command.get_short_help_str(200))


def test_a_fault_of_ours_says_nothing_that_a_terminal_obeys():
    fault = "raise ValueError('an engine said \\x1b]0;title\\x07')"
    code = f"import husk.cli\ndef fail(*_, **__): {fault}\nhusk.cli._ask_click = fail\nhusk.cli.main()"
    done = subprocess.run([sys.executable, "-c", code, "ps"], capture_output=True, check=False)
    assert done.returncode == 1 and b"Traceback" in done.stderr
    assert done.stderr.endswith(b"ValueError: an engine said \\x1b]0;title\\x07\n")
