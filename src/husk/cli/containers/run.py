"""`husk run` and `husk create`, as they are typed. Their work is loaded when a line is read and found good: help, and a
flag that is not known, do without."""

from typing import Any

import click

from husk.cli.containers.flags import container_flags
from husk.cli.kit.command import HuskCommand, as_json, flag, text
from husk.cli.kit.complete import image_then_files
from husk.cli.kit.late import late
from husk.cli.kit.place import HostChoice

_OWN_HELP = {"help_option_names": ["--help"]}
_run = late("husk.cli.containers.running:run")
_create = late("husk.cli.containers.creating:create")


def image_and_command(function: Any) -> Any:
    """Add the arguments behind the flags: the image, and a command for it."""
    command = click.argument("command", nargs=-1, type=click.UNPROCESSED)
    return click.argument("image", shell_complete=image_then_files)(command(function))


@click.command(cls=HuskCommand, own_words=True, context_settings=_OWN_HELP)
@flag("-d", "--detach", help="Run container in background and print container ID.")
@text("--detach-keys", help="Override the key sequence for detaching.")
@flag("--sig-proxy", default=True, help="Proxy received signals to the process (default true).")
@container_flags
@as_json
@image_and_command
@click.pass_obj
def run(place: HostChoice, /, **flags: Any) -> None:
    """Create and run a new container from an image."""
    _run(place, **flags)


@click.command(cls=HuskCommand, own_words=True, context_settings=_OWN_HELP)
@container_flags
@as_json
@image_and_command
@click.pass_obj
def create(place: HostChoice, /, **flags: Any) -> None:
    """Create a new container."""
    _create(place, **flags)
