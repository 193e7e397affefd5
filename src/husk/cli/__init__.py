"""The `husk` command: serve, doctor, version. Containers are handled with the `docker` client.

Commands import what they need when they run, so that `husk --help` and `husk version` answer at once.
"""

import os
import sys

import click

from husk.cli.doctor import doctor
from husk.cli.serve import dockerd, serve
from husk.cli.version import version
from husk.errors import HuskError
from husk.version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-v", "--version", message="husk %(version)s")
def husk() -> None:
    """Husk, a container engine that speaks the Docker Engine API."""


husk.add_command(serve)
husk.add_command(doctor)
husk.add_command(version)


def main() -> None:
    """Entry point: errors that the user can mend are one line, not a traceback. A link called `dockerd` is one."""
    name = os.path.basename(sys.argv[0])
    try:
        if name == "dockerd":
            dockerd(prog_name=name)
        else:
            husk()
    except HuskError as error:
        click.echo(f"{name if name == 'dockerd' else 'husk'}: {error.message}", err=True)
        sys.exit(1)
