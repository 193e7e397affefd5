"""Tasks of services as rows: `husk service ps`, `node ps` and `stack ps` show the same table."""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from husk.cli.kit.command import Flag
from husk.cli.kit.read import moment_of
from husk.cli.kit.tables import show
from husk.cli.kit.words import ago, short_id, shortened
from husk.cli.kit.writing import document, say
from husk.client.client import Client
from husk.client.services import Task
from husk.errors import NotFound

HEADINGS = {
    "ID": "ID",
    "Name": "NAME",
    "Image": "IMAGE",
    "Node": "NODE",
    "DesiredState": "DESIRED STATE",
    "CurrentState": "CURRENT STATE",
    "Error": "ERROR",
    "Ports": "PORTS",
}
_LONGEST_ERROR = 30
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
FLAGS = (Flag(["--no-resolve"], help="Do not map IDs to Names."), Flag(["--no-trunc"], help="Do not truncate output."))


def with_flags(command: click.Command) -> click.Command:
    """Add the flags that all three have."""
    command.params.extend(FLAGS)
    return command


async def print_tasks(
    engine: Client,
    tasks: Sequence[Task],
    *,
    template: str | None,
    quiet: bool,
    as_json: bool,
    no_resolve: bool,
    no_trunc: bool,
) -> None:
    """Print tasks: those of one place below each other, the newest first."""
    if as_json:
        document([task.attrs for task in tasks])
        return
    names: dict[str, str] = {}
    if not no_resolve:
        names = {each.id: each.name for each in [*await engine.services.list(), *await engine.nodes.list()]}
    attrs = sorted((task.attrs for task in tasks), key=_created, reverse=True)
    attrs.sort(key=lambda each: (_name(each, names, False), each.get("Slot") or 0))
    rows, before = [], ""
    for each in attrs:
        name = _name(each, names, no_trunc)
        shown = f" \\_ {name}" if name == before and not (template or quiet) else name
        rows.append({**row(each, names, no_trunc, time.time()), "Name": shown})
        before = name
    if quiet and not template:
        for line in rows:
            say(line["ID"])
    else:
        show(HEADINGS, tuple(HEADINGS), rows, template)


def _created(attrs: Mapping[str, Any]) -> str:
    return str(attrs.get("CreatedAt") or "")


def _name(attrs: Mapping[str, Any], names: Mapping[str, str], whole: bool) -> str:
    """`web.1`; a task of a service that has one on each node is named by its node."""
    service, node = str(attrs.get("ServiceID") or ""), str(attrs.get("NodeID") or "")
    place = str(attrs.get("Slot") or (node if whole else short_id(node)))
    return f"{names.get(service, service)}.{place}"


def row(attrs: Mapping[str, Any], names: Mapping[str, str], whole: bool, now: float) -> dict[str, str]:
    """Return the columns of a task, out of its document in `GET /tasks`; its name depends on its neighbours."""
    status = attrs.get("Status") or {}
    node, said = str(attrs.get("NodeID") or ""), str(status.get("Err") or "")
    image = str(((attrs.get("Spec") or {}).get("ContainerSpec") or {}).get("Image") or "")
    at = moment_of(status.get("Timestamp"))
    since = f" {ago(at.timestamp(), now).lower()}" if isinstance(at, datetime) else ""
    return {
        "ID": str(attrs["ID"]) if whole else short_id(str(attrs["ID"])),
        "Name": "",
        "Image": image if whole else _DIGEST.sub("", image),
        "Node": names.get(node, node),
        "DesiredState": str(attrs.get("DesiredState") or "").capitalize(),
        "CurrentState": f"{str(status.get('State') or '').capitalize()}{since}",
        "Error": f'"{said if whole else shortened(said, _LONGEST_ERROR)}"' if said else "",
        "Ports": ports((status.get("PortStatus") or {}).get("Ports") or ()),
    }


def ports(given: Sequence[Mapping[str, Any]]) -> str:
    """`*:8080->80/tcp`"""
    found = []
    for port in given:
        target, published, protocol = port.get("TargetPort"), port.get("PublishedPort"), port.get("Protocol") or "tcp"
        found.append(f"*:{published}->{target}/{protocol}" if published else f"{target}/{protocol}")
    return ",".join(found)


async def tasks_of(engine: Client, filters: Mapping[str, list[str]], kind: str, names: Sequence[str]) -> list[Task]:
    """List the tasks of services or nodes by name; NotFound for one that is not there."""
    collection = engine.services if kind == "service" else engine.nodes
    ids = []
    for name in names:
        try:
            ids.append((await collection.get(name)).id)
        except NotFound:
            raise NotFound(f"no such {kind}: {name}") from None
    return await engine.tasks.list(filters={**filters, kind: ids})
