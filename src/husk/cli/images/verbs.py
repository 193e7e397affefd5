"""Commands that do one thing to images: rmi, tag, push."""

from collections.abc import Sequence
from typing import Any

import click

from husk.cli.images.names import whole
from husk.cli.kit.command import HuskCommand, as_json, flag, many
from husk.cli.kit.complete import images
from husk.cli.kit.engine import ask, ask_plainly, told
from husk.cli.kit.place import HostChoice
from husk.cli.kit.progress import Silence, teller
from husk.cli.kit.writing import complain, document, line, say
from husk.client.client import Client
from husk.client.names import with_tag
from husk.errors import HuskError, InvalidParameter, NotFound


@click.command(cls=HuskCommand)
@flag("-f", "--force", help="Force removal of the image.")
@flag("--no-prune", help="Do not delete untagged parents.")
@many("--platform", metavar="STRING", help="Remove only the given platform, as linux/amd64.")
@as_json
@click.argument("names", nargs=-1, required=True, metavar="IMAGE...", shell_complete=images)
@click.pass_obj
def rmi(
    place: HostChoice, /, names: tuple[str, ...], force: bool, no_prune: bool, platform: Sequence[str], as_json: bool
) -> None:
    """Remove one or more images."""

    async def removed(engine: Client) -> int:
        results: list[dict[str, Any]] = []
        failed = False
        platforms = [part for each in platform for part in each.split(",")]
        for name in names:
            try:
                done = await engine.images.remove(name, force=force, noprune=no_prune, platforms=platforms)
            except HuskError as error:
                complain(told(error))
                failed = failed or not (force and isinstance(error, NotFound))
                results.append({"Name": name, "Error": error.message})
                continue
            results.append({"Name": name, "Error": None, "Removed": done})
            for each in () if as_json else done:
                for what, which in each.items():
                    say(f"{what}: {which}")
        if as_json:
            document(results)
        return 1 if failed else 0

    ask_plainly(place, removed)


@click.command(cls=HuskCommand)
@as_json
@click.argument("source", metavar="SOURCE_IMAGE[:TAG]", shell_complete=images)
@click.argument("target", metavar="TARGET_IMAGE[:TAG]", shell_complete=images)
@click.pass_obj
def tag(place: HostChoice, /, source: str, target: str, as_json: bool) -> None:
    """Create a tag TARGET_IMAGE that refers to SOURCE_IMAGE."""

    async def tagged(engine: Client) -> None:
        await engine.images.tag(source, target)
        if as_json:
            document({"Name": target, "Id": (await engine.images.get(target)).id})

    ask(place, tagged)


@click.command(cls=HuskCommand)
@flag("-a", "--all-tags", help="Push all tags of an image to the repository.")
@click.option("--platform", default="", metavar="STRING", help="Push one platform of an image with several.")
@flag("-q", "--quiet", help="Suppress verbose output.")
@as_json
@click.argument("name", metavar="NAME[:TAG]", shell_complete=images)
@click.pass_obj
def push(place: HostChoice, /, name: str, all_tags: bool, platform: str, quiet: bool, as_json: bool) -> None:
    """Upload an image to a registry."""

    async def pushed(engine: Client) -> None:
        if all_tags and with_tag(name) == name:
            raise InvalidParameter("tag can't be used with --all-tags/-a")
        tagged = name if all_tags else with_tag(name)
        if tagged != name and not quiet and not as_json:
            say("Using default tag: latest")
        digest = ""
        telling = Silence() if quiet else teller(1, as_json)
        with telling:
            async for step in engine.images.pushing(tagged, platform=platform, all_tags=all_tags):
                digest = step.digest or digest
                if step.status:
                    telling.tell(step)
        if as_json:
            line({"Name": whole(name), "Digest": digest})
        elif quiet:
            say(whole(name))

    ask(place, pushed)
