"""The commands, as click reads them: help, complaints about what cannot be read, and all that is not a plain start."""

import click

from husk.cli.doctor import doctor
from husk.cli.serve import serve
from husk.cli.version import version
from husk.version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-v", "--version", message="husk %(version)s")
def husk() -> None:
    """Husk, a container engine that speaks the Docker Engine API."""


husk.add_command(serve)
husk.add_command(doctor)
husk.add_command(version)
