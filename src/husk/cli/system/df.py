"""`husk df`: what takes how much room."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from husk.cli.containers import ps
from husk.cli.images import images
from husk.cli.kit.command import HuskCommand, as_json, flag
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.tables import show
from husk.cli.kit.words import short_id, size
from husk.cli.kit.writing import document, say
from husk.client.client import Client

_HEADINGS = {"Type": "TYPE", "TotalCount": "TOTAL", "Active": "ACTIVE", "Size": "SIZE", "Reclaimable": "RECLAIMABLE"}
_ALIVE = ("running", "paused", "restarting")
_VOLUMES = {"Name": "VOLUME NAME", "Links": "LINKS", "Size": "SIZE"}
_CACHE = {"ID": "CACHE ID", "CacheType": "CACHE TYPE", "Size": "SIZE", "UsageCount": "USAGE", "Shared": "SHARED"}


@click.command(cls=HuskCommand)
@click.option("--format", "template", metavar="STRING", help="'json', 'TEMPLATE' or 'table TEMPLATE' of Go's.")
@flag("-v", "--verbose", help="Show detailed information on space usage.")
@as_json
@click.pass_obj
def df(place: HostChoice, /, template: str | None, verbose: bool, as_json: bool) -> None:
    """Show disk usage."""

    async def shown(engine: Client) -> None:
        found = await engine.df()
        if as_json:
            document(found)
        elif verbose:
            _details(found)
        else:
            show(_HEADINGS, tuple(_HEADINGS), rows(found), template)

    ask_plainly(place, shown)


def rows(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """A line for each kind of thing, out of `GET /system/df`."""
    kept = found.get("Images") or []
    used = [image for image in kept if image.get("Containers")]
    layers = int(found.get("LayersSize") or 0)
    needed = sum(_own(image) for image in used)
    boxes = found.get("Containers") or []
    idle = [box for box in boxes if box.get("State") not in _ALIVE]
    volumes = [_usage(volume) for volume in found.get("Volumes") or []]
    cache = found.get("BuildCache") or []
    own_cache = [each for each in cache if not each.get("Shared")]
    return [
        _row("Images", len(kept), len(used), layers, layers - needed if layers else 0),
        _row("Containers", len(boxes), len(boxes) - len(idle), _written(boxes), _written(idle)),
        _row(
            "Local Volumes",
            len(volumes),
            sum(links > 0 for links, _ in volumes),
            sum(room for _, room in volumes),
            sum(room for links, room in volumes if links == 0),
        ),
        _row(
            "Build Cache",
            len(cache),
            sum(bool(each.get("InUse")) for each in cache),
            _sizes(own_cache),
            _sizes([each for each in own_cache if not each.get("InUse")]),
            share=False,
        ),
    ]


def _row(kind: str, count: int, active: int, room: int, free: int, share: bool = True) -> dict[str, str]:
    part = f" ({free * 100 // room}%)" if room > 0 and share else ""
    return {
        "Type": kind,
        "TotalCount": str(count),
        "Active": str(active),
        "Size": size(room, 4),
        "Reclaimable": size(free, 4) + part,
    }


def _own(image: Mapping[str, Any]) -> int:
    shared = int(image.get("SharedSize") or 0)
    return int(image["Size"]) - max(shared, 0)


def _usage(volume: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of a volume's users, and its size; 0 for what is not known."""
    usage = volume.get("UsageData") or {}
    return int(usage.get("RefCount") or 0), max(int(usage.get("Size") or 0), 0)


def _written(boxes: Sequence[Mapping[str, Any]]) -> int:
    return sum(int(box.get("SizeRw") or 0) for box in boxes)


def _sizes(cache: Sequence[Mapping[str, Any]]) -> int:
    return sum(int(each.get("Size") or 0) for each in cache)


def _details(found: Mapping[str, Any]) -> None:
    now = time.time()
    say("Images space usage:\n")
    fields = ("Repository", "Tag", "ID", "CreatedSince", "Size", "SharedSize", "UniqueSize", "Containers")
    show(images.HEADINGS, fields, [row for each in found.get("Images") or [] for row in images.rows(each, now)])
    say("\nContainers space usage:\n")
    fields = ("ID", "Image", "Command", "LocalVolumes", "Size", "RunningFor", "Status", "Names")
    show(ps.HEADINGS, fields, [ps.row({**each, "SizeRootFs": 0}, now) for each in found.get("Containers") or []])
    say("\nLocal Volumes space usage:\n")
    volumes = [(each["Name"], *_usage(each)) for each in found.get("Volumes") or []]
    lines = [{"Name": name, "Links": str(links), "Size": size(room)} for name, links, room in volumes]
    show(_VOLUMES, tuple(_VOLUMES), lines)
    cache = found.get("BuildCache") or []
    say(f"\nBuild cache usage: {size(_sizes(cache), 4)}\n")
    lines = [
        {
            "ID": short_id(str(each.get("ID"))),
            "CacheType": str(each.get("Type")),
            "Size": size(each.get("Size") or 0),
            "UsageCount": str(each.get("UsageCount") or 0),
            "Shared": str(bool(each.get("Shared"))).lower(),
        }
        for each in cache
    ]
    show(_CACHE, tuple(_CACHE), lines)
