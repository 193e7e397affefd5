"""`husk version`: prints the version of Husk."""

import click

from husk.version import __version__


@click.command()
def version() -> None:
    """Print the version of Husk."""
    click.echo(f"husk {__version__}")
