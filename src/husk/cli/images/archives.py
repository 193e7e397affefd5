"""Commands for images in files: save, load and import."""

from collections.abc import Sequence

import click

from husk.cli.kit.command import HuskCommand, as_json, flag, many
from husk.cli.kit.complete import images
from husk.cli.kit.engine import ask
from husk.cli.kit.files import read_from, written_to
from husk.cli.kit.place import HostChoice
from husk.cli.kit.progress import Silence, teller
from husk.cli.kit.writing import at_terminal, document, say
from husk.client.client import Client
from husk.errors import InvalidParameter

_FOR_THESE = many("--platform", help="Only the given platforms, as linux/amd64.", metavar="STRING")


def _apart(given: Sequence[str]) -> list[str]:
    return [part for text in given for part in text.split(",")]


@click.command(cls=HuskCommand)
@click.option("-o", "--output", metavar="STRING", default="", help="Write to a file, instead of STDOUT.")
@_FOR_THESE
@click.argument("names", nargs=-1, required=True, metavar="IMAGE...", shell_complete=images)
@click.pass_obj
def save(place: HostChoice, /, names: tuple[str, ...], output: str, platform: Sequence[str]) -> None:
    """Save images to a tar archive (streamed to STDOUT by default)."""

    async def saved(engine: Client) -> None:
        await written_to(output, engine.images.save(*names, platforms=_apart(platform)))

    ask(place, saved)


@click.command(cls=HuskCommand)
@click.option("-i", "--input", "source", metavar="STRING", default="", help="Read from a file, instead of STDIN.")
@_FOR_THESE
@flag("-q", "--quiet", help="Suppress the load output.")
@as_json
@click.pass_obj
def load(place: HostChoice, /, source: str, platform: Sequence[str], quiet: bool, as_json: bool) -> None:
    """Load an image from a tar archive or STDIN."""
    if not source and at_terminal(0):
        raise InvalidParameter("requested load from stdin, but stdin is empty: -i names a file")

    async def loaded(engine: Client) -> None:
        names: list[str] = []
        with Silence() if quiet or as_json else teller(2) as told:
            async for step in engine.images.loading(read_from(source), platforms=_apart(platform)):
                if step.image:
                    names.append(step.image)
                elif step.id or step.total:
                    told.tell(step)
        if as_json:
            document([{"Name": name} for name in names])
            return
        for name in names:
            say(f"Loaded image{' ID' if name.startswith('sha256:') else ''}: {name}")

    ask(place, loaded)


@click.command("import", cls=HuskCommand)
@many("-c", "--change", help="Apply Dockerfile instruction to the created image.")
@click.option("-m", "--message", metavar="STRING", default="", help="Set commit message for imported image.")
@click.option("--platform", metavar="STRING", default="", help="Set platform if server is multi-platform capable.")
@as_json
@click.argument("source", metavar="FILE|URL|-", type=click.Path())
@click.argument("name", metavar="[REPOSITORY[:TAG]]", default="")
@click.pass_obj
def import_(
    place: HostChoice, /, source: str, name: str, change: Sequence[str], message: str, platform: str, as_json: bool
) -> None:
    """Import the contents from a tarball to create a filesystem image."""

    async def imported(engine: Client) -> None:
        given = source if "://" in source else read_from(source)
        image = await engine.images.import_image(given, name, changes=change, message=message, platform=platform)
        document({"Id": image.id, "Name": name}) if as_json else say(image.id)

    ask(place, imported)
