"""`husk prune`: remove what nobody uses."""

from collections.abc import Sequence

import click

from husk.cli.kit.command import HuskCommand, as_json, flag, many
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.kinds import agreed
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import filters_of
from husk.cli.kit.words import size
from husk.cli.kit.writing import document, say
from husk.client.client import Client
from husk.client.prune import Pruned


@click.command(cls=HuskCommand)
@flag("-a", "--all", "everything", help="Remove all unused images not just dangling ones.")
@many("--filter", "filters", metavar="FILTER", help='Provide filter values (e.g. "label=<key>=<value>").')
@flag("-f", "--force", help="Do not prompt for confirmation.")
@flag("--volumes", help="Prune anonymous volumes.")
@as_json
@click.pass_obj
def prune(
    place: HostChoice, /, everything: bool, filters: Sequence[str], force: bool, volumes: bool, as_json: bool
) -> None:
    """Remove unused data."""
    wanted = filters_of(filters)
    if not force and not agreed(warning(everything, volumes)):
        return

    async def done(engine: Client) -> None:
        found = await engine.prune(all=everything, volumes=volumes, filters=wanted)
        if as_json:
            document(fields(found))
        else:
            _tell(found)

    ask_plainly(place, done)


def warning(everything: bool, volumes: bool) -> str:
    """Return the list of what will be removed, with the question to the user."""
    unused = "images without at least one container associated to them" if everything else "dangling images"
    removed = [
        "all stopped containers",
        "all networks not used by at least one container",
        *(["all anonymous volumes not used by at least one container"] if volumes else []),
        f"all {unused}",
        "all build cache" if everything else "unused build cache",
    ]
    told = "\n".join(f"  - {each}" for each in removed)
    return f"WARNING! This will remove:\n{told}\n\nAre you sure you want to continue?"


def fields(found: Pruned) -> dict[str, object]:
    return {
        "ContainersDeleted": found.containers,
        "NetworksDeleted": found.networks,
        "VolumesDeleted": found.volumes,
        "ImagesDeleted": found.images,
        "CachesDeleted": found.build_cache,
        "SpaceReclaimed": found.space_reclaimed,
    }


def _tell(found: Pruned) -> None:
    kinds = {
        "Deleted Containers:": found.containers,
        "Deleted Networks:": found.networks,
        "Deleted Volumes:": found.volumes,
        "Deleted Images:": [f"deleted: {each}" for each in found.images],
        "Deleted build cache objects:": found.build_cache,
    }
    for title, gone in kinds.items():
        if gone:
            say("\n".join([title, *gone, ""]))
    say(f"Total reclaimed space: {size(found.space_reclaimed, 4)}")
