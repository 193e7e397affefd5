"""`husk ps`: containers, one line each."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from husk.cli.kit import words
from husk.cli.kit.command import HuskCommand, as_json, flag, many
from husk.cli.kit.complete import filters, formats
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import filters_of
from husk.cli.kit.tables import show
from husk.cli.kit.writing import at_terminal, document, say
from husk.client.client import Client

HEADINGS = {
    "ID": "CONTAINER ID",
    "Image": "IMAGE",
    "Command": "COMMAND",
    "CreatedAt": "CREATED AT",
    "RunningFor": "CREATED",
    "Ports": "PORTS",
    "State": "STATE",
    "Status": "STATUS",
    "Size": "SIZE",
    "Names": "NAMES",
    "Labels": "LABELS",
    "LocalVolumes": "LOCAL VOLUMES",
    "Mounts": "MOUNTS",
    "Networks": "NETWORKS",
}
_CONDITIONS = (
    *("ancestor", "before", "exited", "expose", "health", "id", "is-task", "label", "name", "network", "publish"),
    *("since", "status", "volume"),
)
_FIELDS = ("ID", "Image", "Command", "RunningFor", "Status", "Ports", "Names")


@click.command(cls=HuskCommand)
@flag("-a", "--all", "everything", help="Show all containers (default shows just running).")
@many(
    *("-f", "--filter", "filters"),
    metavar="FILTER",
    help="Filter output based on conditions provided.",
    shell_complete=filters(*_CONDITIONS),
)
@click.option(
    *("--format", "template"),
    metavar="STRING",
    help="'json', 'TEMPLATE' or 'table TEMPLATE' of Go's.",
    shell_complete=formats(HEADINGS),
)
@click.option("-n", "--last", type=int, default=-1, help="Show n last created containers (includes all states).")
@flag("-l", "--latest", help="Show the latest created container (includes all states).")
@flag("--no-trunc", help="Don't truncate output.")
@flag("-q", "--quiet", help="Only display container IDs.")
@flag("-s", "--size", help="Display total file sizes.")
@as_json
@click.pass_obj
def ps(place: HostChoice, /, last: int, latest: bool, **options: Any) -> None:
    """List containers."""
    ask_plainly(place, lambda engine: _ps(engine, limit=1 if latest and last < 0 else last, **options))


async def _ps(
    engine: Client,
    *,
    limit: int,
    everything: bool,
    filters: Sequence[str],
    template: str | None,
    no_trunc: bool,
    quiet: bool,
    size: bool,
    as_json: bool,
) -> None:
    size = size or ".Size" in (template or "")
    wanted = filters_of(filters)
    found = await engine.containers.list(all=everything or limit > 0, limit=max(limit, 0), size=size, filters=wanted)
    if as_json:
        document([container.attrs for container in found])
    elif quiet and not template:
        for container in found:
            say(container.id if no_trunc else container.short_id)
    else:
        now = time.time()
        rows = [row(container.attrs, now, no_trunc) for container in found]
        if at_terminal() and not template and not no_trunc:
            for line, container in zip(rows, found, strict=True):
                line["Names"] = task_name(container.attrs) or line["Names"]
        show(HEADINGS, (*_FIELDS, "Size") if size else _FIELDS, rows, template)


def task_name(attrs: Mapping[str, Any]) -> str:
    """Return the name of a service's task without the task's id: `billing_jobs.1`; empty for other containers."""
    labels = attrs.get("Labels") or {}
    whole, identity = labels.get("com.docker.swarm.task.name", ""), labels.get("com.docker.swarm.task.id", "")
    return str(whole).removesuffix(f".{identity}") if identity else ""


def row(attrs: Mapping[str, Any], now: float, whole: bool = False) -> dict[str, str]:
    """Return the columns of a container, out of its document in `GET /containers/json`."""
    names = [name.removeprefix("/") for name in attrs.get("Names") or []]
    mounts = [str(mount.get("Name") or mount.get("Source") or "") for mount in attrs.get("Mounts") or []]
    image, identity = str(attrs.get("Image") or "<no image>"), str(attrs.get("ImageID") or "")
    if not whole and image == identity:
        image = words.short_id(image)
    own = words.size(attrs.get("SizeRw") or 0)
    root = attrs.get("SizeRootFs") or 0
    command = str(attrs.get("Command") or "")
    return {
        "ID": str(attrs["Id"]) if whole else words.short_id(str(attrs["Id"])),
        "Image": image,
        "Command": words.quoted(command if whole else words.shortened(command, 20)),
        "CreatedAt": words.moment(attrs["Created"]),
        "RunningFor": words.ago(attrs["Created"], now),
        "Ports": words.ports(attrs.get("Ports") or []),
        "State": str(attrs.get("State") or ""),
        "Status": str(attrs.get("Status") or ""),
        "Size": f"{own} (virtual {words.size(root)})" if root else own,
        "Names": ",".join(name for name in names if whole or "/" not in name),
        "Labels": words.pairs(attrs.get("Labels")),
        "LocalVolumes": str(sum(mount.get("Driver") == "local" for mount in attrs.get("Mounts") or [])),
        "Mounts": ",".join(mounts if whole else [words.shortened(mount, 15) for mount in mounts]),
        "Networks": ",".join((attrs.get("NetworkSettings") or {}).get("Networks") or {}),
    }
