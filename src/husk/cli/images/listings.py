"""Commands that list what is around images: history and search, and prune of those that nobody uses."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from husk.cli.kit.command import Flag, HuskCommand, as_json, flag
from husk.cli.kit.complete import images
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.kinds import Pruning, filtered, formatted, pruning
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import filters_of
from husk.cli.kit.tables import show
from husk.cli.kit.words import ago, rfc3339, short_id, shortened, size
from husk.cli.kit.writing import document, say
from husk.client.client import Client

_HISTORY = {
    "ID": "IMAGE",
    "CreatedSince": "CREATED",
    "CreatedAt": "CREATED AT",
    "CreatedBy": "CREATED BY",
    "Size": "SIZE",
    "Comment": "COMMENT",
}
_SEARCH = {
    "Name": "NAME",
    "Description": "DESCRIPTION",
    "StarCount": "STARS",
    "IsOfficial": "OFFICIAL",
    "IsAutomated": "AUTOMATED",
}
_LONGEST = 45


@click.command(cls=HuskCommand)
@formatted
@flag("-H", "--human", default=True, help="Print sizes and dates in human readable format (default true).")
@flag("--no-trunc", help="Don't truncate output.")
@click.option("--platform", metavar="STRING", default="", help="Show history for the given platform.")
@flag("-q", "--quiet", help="Only show image IDs.")
@as_json
@click.argument("image", shell_complete=images)
@click.pass_obj
def history(
    place: HostChoice,
    /,
    image: str,
    template: str | None,
    human: bool,
    no_trunc: bool,
    platform: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show the history of an image."""

    async def told(engine: Client) -> None:
        found = await (await engine.images.get(image)).history(platform=platform)
        if as_json:
            document(found)
            return
        rows = [step(each, time.time(), human, no_trunc) for each in found]
        if quiet and not template:
            for row in rows:
                say(row["ID"])
            return
        fields = ("ID", "CreatedSince" if human else "CreatedAt", "CreatedBy", "Size", "Comment")
        show(_HISTORY, fields, rows, template)

    ask_plainly(place, told)


def step(attrs: Mapping[str, Any], now: float, human: bool, whole: bool) -> dict[str, str]:
    """Return the columns of one step, out of its document in `GET /images/NAME/history`."""
    identity, by = str(attrs.get("Id") or "<missing>"), str(attrs.get("CreatedBy") or "").replace("\t", " ")
    made = int(attrs.get("Created") or 0)
    return {
        "ID": identity if whole else short_id(identity),
        "CreatedSince": ago(made, now) if made > 0 else "N/A",
        "CreatedAt": rfc3339(made),
        "CreatedBy": by if whole else shortened(by, _LONGEST),
        "Size": size(attrs.get("Size") or 0) if human else str(attrs.get("Size") or 0),
        "Comment": str(attrs.get("Comment") or ""),
    }


@click.command(cls=HuskCommand)
@filtered
@formatted
@click.option("--limit", type=int, default=0, metavar="INT", help="Max number of search results.")
@flag("--no-trunc", help="Don't truncate output.")
@as_json
@click.argument("term")
@click.pass_obj
def search(
    place: HostChoice,
    /,
    term: str,
    filters: Sequence[str],
    template: str | None,
    limit: int,
    no_trunc: bool,
    as_json: bool,
) -> None:
    """Search Docker Hub for images."""

    async def told(engine: Client) -> None:
        found = await engine.images.search(term, limit=limit, filters=filters_of(filters))
        found.sort(key=lambda each: -int(each.get("star_count") or 0))
        if as_json:
            document(found)
        else:
            show(_SEARCH, tuple(_SEARCH)[:4], [result(each, no_trunc) for each in found], template)

    ask_plainly(place, told)


def result(attrs: Mapping[str, Any], whole: bool) -> dict[str, str]:
    """Return the columns of one find of a search."""
    told = " ".join(str(attrs.get("description") or "").split())
    return {
        "Name": str(attrs.get("name") or ""),
        "Description": told if whole else shortened(told, _LONGEST),
        "StarCount": str(attrs.get("star_count") or 0),
        "IsOfficial": "[OK]" if attrs.get("is_official") else "",
        "IsAutomated": "[OK]" if attrs.get("is_automated") else "",
    }


async def _prune(engine: Client, filters: Mapping[str, Any], everything: bool) -> Any:
    return await engine.images.prune({**filters, "dangling": [str(not everything).lower()]})


def _warning(flags: Mapping[str, Any]) -> str:
    if flags["everything"]:
        return "This will remove all images without at least one container associated to them."
    return "This will remove all dangling images."


prune = pruning(
    Pruning(_prune, _warning, "Deleted Images:", "ImagesDeleted"),
    "Remove unused images.",
    Flag(["-a", "--all", "everything"], help="Remove all unused images, not just dangling ones."),
)
