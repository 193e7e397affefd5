"""`husk pull`: an image from its registry."""

import click

from husk.cli.images.names import whole
from husk.cli.kit.command import HuskCommand, as_json, flag
from husk.cli.kit.complete import images
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.progress import Silence, teller
from husk.cli.kit.writing import line, say
from husk.client.client import Client
from husk.client.names import with_tag
from husk.errors import InvalidParameter


@click.command(cls=HuskCommand)
@flag("-a", "--all-tags", help="Download all tagged images in the repository.")
@click.option("--platform", default="", metavar="STRING", help="Set platform if server is multi-platform capable.")
@flag("-q", "--quiet", help="Suppress verbose output.")
@as_json
@click.argument("name", metavar="NAME[:TAG|@DIGEST]", shell_complete=images)
@click.pass_obj
def pull(place: HostChoice, /, name: str, all_tags: bool, platform: str, quiet: bool, as_json: bool) -> None:
    """Download an image from a registry."""

    async def pulled(engine: Client) -> None:
        if all_tags and with_tag(name) == name:
            raise InvalidParameter("tag can't be used with --all-tags/-a")
        tagged = name if all_tags else with_tag(name)
        if tagged != name and not quiet and not as_json:
            say("Using default tag: latest")
        told = Silence() if quiet else teller(1, as_json)
        with told:
            async for step in engine.images.pulling(tagged, platform=platform, all_tags=all_tags):
                told.tell(step)
        if as_json:
            line({"Name": whole(name), "Id": "" if all_tags else (await engine.images.get(tagged)).id})
        else:
            say(whole(name).removesuffix(":latest") if all_tags else whole(name))

    ask(place, pulled)
