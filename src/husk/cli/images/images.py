"""`husk images`: images, one line for each of their names."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from husk.cli.kit import words
from husk.cli.kit.command import HuskCommand, as_json, flag, many
from husk.cli.kit.complete import filters, formats
from husk.cli.kit.complete import images as complete
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import filters_of
from husk.cli.kit.tables import show
from husk.cli.kit.writing import document, say
from husk.client.client import Client

HEADINGS = {
    "Repository": "REPOSITORY",
    "Tag": "TAG",
    "Digest": "DIGEST",
    "ID": "IMAGE ID",
    "CreatedSince": "CREATED",
    "CreatedAt": "CREATED AT",
    "Size": "SIZE",
    "Containers": "CONTAINERS",
    "SharedSize": "SHARED SIZE",
    "UniqueSize": "UNIQUE SIZE",
}
_NONE = "<none>"


@click.command(cls=HuskCommand)
@flag("-a", "--all", "everything", help="Show all images (default hides intermediate images).")
@flag("--digests", help="Show digests.")
@many(
    *("-f", "--filter", "filters"),
    metavar="FILTER",
    help="Filter output based on conditions provided.",
    shell_complete=filters("before", "dangling", "label", "reference", "since", "until"),
)
@click.option(
    *("--format", "template"),
    metavar="STRING",
    help="'json', 'TEMPLATE' or 'table TEMPLATE' of Go's.",
    shell_complete=formats(HEADINGS),
)
@flag("--no-trunc", help="Don't truncate output.")
@flag("-q", "--quiet", help="Only show image IDs.")
@as_json
@click.argument("repository", required=False, metavar="[REPOSITORY[:TAG]]", shell_complete=complete)
@click.pass_obj
def images(place: HostChoice, /, **options: Any) -> None:
    """List images."""
    ask_plainly(place, lambda engine: _images(engine, **options))


async def _images(
    engine: Client,
    *,
    everything: bool,
    digests: bool,
    filters: Sequence[str],
    template: str | None,
    no_trunc: bool,
    quiet: bool,
    as_json: bool,
    repository: str | None,
) -> None:
    wanted = filters_of(filters)
    if repository:
        wanted.setdefault("reference", []).append(repository)
    found = await engine.images.list(all=everything, filters=wanted)
    if as_json:
        document([image.attrs for image in found])
        return
    now = time.time()
    lines = [row for image in found for row in rows(image.attrs, now, no_trunc, digests)]
    if quiet and not template:
        for line in lines:
            say(line["ID"])
        return
    fields = ("Repository", "Tag", *(("Digest",) if digests else ()), "ID", "CreatedSince", "Size")
    show(HEADINGS, fields, lines, template)


def rows(attrs: Mapping[str, Any], now: float, whole: bool = False, digests: bool = False) -> Iterator[dict[str, str]]:
    """Yield the columns of an image, out of its document in `GET /images/json`: a line for each name, at least one."""
    for repository, tag, digest in _names(attrs, digests):
        yield {
            "Repository": repository,
            "Tag": tag,
            "Digest": digest,
            "ID": str(attrs["Id"]) if whole else words.short_id(str(attrs["Id"])),
            "CreatedSince": words.ago(attrs["Created"], now) if attrs["Created"] > 0 else "N/A",
            "CreatedAt": words.moment(attrs["Created"]),
            "Size": words.size(attrs["Size"]),
            "Containers": _counted(attrs.get("Containers")),
            "SharedSize": _sized(attrs.get("SharedSize")),
            "UniqueSize": _sized(attrs["Size"] - attrs["SharedSize"] if (attrs.get("SharedSize") or -1) >= 0 else -1),
        }


def _names(attrs: Mapping[str, Any], digests: bool) -> list[tuple[str, str, str]]:
    by_repository = dict(each.split("@", 1) for each in attrs.get("RepoDigests") or [] if "@" in each)
    tags = [tag for tag in attrs.get("RepoTags") or [] if tag != "<none>:<none>"]
    found = [(*tag.rsplit(":", 1), by_repository.get(tag.rsplit(":", 1)[0], _NONE)) for tag in tags]
    tagged = {repository for repository, *_ in found}
    if digests or not found:
        found += [(name, _NONE, digest) for name, digest in by_repository.items() if name not in tagged]
    return [(name, tag, digest) for name, tag, digest in found] or [(_NONE, _NONE, _NONE)]


def _counted(count: int | None) -> str:
    return "N/A" if count is None or count < 0 else str(count)


def _sized(count: int | None) -> str:
    return "N/A" if count is None or count < 0 else words.size(count)
