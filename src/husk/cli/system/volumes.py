"""`husk volume`: volumes."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from husk.cli.kit.command import Flag, HuskCommand, as_json, many
from husk.cli.kit.engine import ask
from husk.cli.kit.group import words
from husk.cli.kit.kinds import Document, Pruning, Shown, ThingKind, inspecting, listing, pruning, removing
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import mapping
from husk.cli.kit.words import pairs, size
from husk.cli.kit.writing import document, say
from husk.client.client import Client

HEADINGS = {
    "Driver": "DRIVER",
    "Name": "VOLUME NAME",
    "Scope": "SCOPE",
    "Mountpoint": "MOUNTPOINT",
    "Labels": "LABELS",
    "Links": "LINKS",
    "Size": "SIZE",
    "Availability": "AVAILABILITY",
    "Group": "GROUP",
    "Status": "STATUS",
}


def row(attrs: Document, shown: Shown) -> dict[str, str]:
    usage = attrs.get("UsageData") or {}
    return {
        **dict.fromkeys(HEADINGS, "N/A"),
        **{name: str(attrs.get(name) or "") for name in ("Driver", "Name", "Scope", "Mountpoint")},
        "Labels": pairs(attrs.get("Labels")),
        "Links": str(usage["RefCount"]) if usage else "N/A",
        "Size": size(usage["Size"]) if usage else "N/A",
    }


_CONDITIONS = ("dangling", "driver", "label", "name")
VOLUME = ThingKind(
    "volume", lambda engine: engine.volumes, HEADINGS, ("Driver", "Name"), row, "Name", "Name", _CONDITIONS
)


@click.command(cls=HuskCommand)
@click.option("-d", "--driver", metavar="STRING", default="local", help="Specify volume driver name.")
@many("--label", help="Set metadata for a volume.")
@many("-o", "--opt", metavar="MAP", help="Set driver specific options.")
@as_json
@click.argument("name", metavar="[VOLUME]", default="")
@click.pass_obj
def create(
    place: HostChoice, /, name: str, driver: str, label: Sequence[str], opt: Sequence[str], as_json: bool
) -> None:
    """Create a volume."""
    options, labels = mapping("opt", opt), mapping("label", label, bare=True)

    async def created(engine: Client) -> None:
        made = await engine.volumes.create(name, driver=driver, driver_opts=options, labels=labels)
        document(made.attrs) if as_json else say(made.name)

    ask(place, created)


async def _prune(engine: Client, filters: Mapping[str, Any], everything: bool) -> Any:
    return await engine.volumes.prune({**filters, **({"all": ["true"]} if everything else {})})


def _warning(flags: Mapping[str, Any]) -> str:
    which = "" if flags["everything"] else "anonymous "
    return f"This will remove {which}local volumes not used by at least one container."


volume = words(
    "volume",
    "Manage volumes.",
    create,
    listing(VOLUME, "List volumes.", truncates=False),
    inspecting(VOLUME, "Display detailed information on one or more volumes."),
    removing(VOLUME, "Remove one or more volumes.", "Force the removal of one or more volumes.", missing_is_well=True),
    pruning(
        Pruning(_prune, _warning, "Deleted Volumes:", "VolumesDeleted"),
        "Remove unused local volumes.",
        Flag(["-a", "--all", "everything"], help="Remove all unused volumes, not just anonymous ones."),
    ),
)
