"""`husk node`: the hosts of a swarm."""

from collections.abc import Sequence
from typing import Any

import click

from husk.cli.kit.command import HuskCommand, as_json, flag, many, text
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.group import words
from husk.cli.kit.kinds import (
    Document,
    Shown,
    ThingKind,
    filtered,
    formatted,
    inspecting,
    listing,
    name_of,
    names_of,
    removing,
    to_each,
)
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import filters_of, mapping
from husk.cli.kit.writing import say
from husk.cli.swarm.tasks import print_tasks, tasks_of, with_flags
from husk.client.client import Client
from husk.client.swarm import Node
from husk.errors import InvalidParameter

HEADINGS = {
    "ID": "ID",
    "Hostname": "HOSTNAME",
    "Status": "STATUS",
    "Availability": "AVAILABILITY",
    "ManagerStatus": "MANAGER STATUS",
    "EngineVersion": "ENGINE VERSION",
    "TLSStatus": "TLS STATUS",
}
_COLUMNS = ("ID", "Hostname", "Status", "Availability", "ManagerStatus", "EngineVersion")


def row(attrs: Document, shown: Shown) -> dict[str, str]:
    described, manager = attrs.get("Description") or {}, attrs.get("ManagerStatus") or {}
    return {
        "ID": str(attrs["ID"]),
        "Name": str(described.get("Hostname") or attrs["ID"]),
        "Hostname": str(described.get("Hostname") or ""),
        "Status": str((attrs.get("Status") or {}).get("State") or "").capitalize(),
        "Availability": str((attrs.get("Spec") or {}).get("Availability") or "").capitalize(),
        "ManagerStatus": "Leader" if manager.get("Leader") else str(manager.get("Reachability") or "").capitalize(),
        "EngineVersion": str((described.get("Engine") or {}).get("EngineVersion") or ""),
        "TLSStatus": "Ready" if described.get("TLSInfo") else "Unknown",
    }


NODE = ThingKind("node", lambda engine: engine.nodes, HEADINGS, _COLUMNS, row, "ID", "Hostname")


@click.command(cls=HuskCommand)
@filtered
@formatted
@flag("-q", "--quiet", help="Only display task IDs.")
@as_json
@names_of(NODE, required=False)
@click.pass_obj
def ps(place: HostChoice, /, filters: Sequence[str], names: Sequence[str], **shown: Any) -> None:
    """List tasks running on one or more nodes, defaults to current node."""
    wanted = filters_of(filters)

    async def told(engine: Client) -> None:
        await print_tasks(engine, await tasks_of(engine, wanted, "node", names or ["self"]), **shown)

    ask_plainly(place, told)


@click.command(cls=HuskCommand)
@text("--availability", help="Availability of the node (active, pause, drain).")
@many("--label-add", help="Add or update a node label (key=value).")
@many("--label-rm", help="Remove a node label if exists.")
@text("--role", help="Role of the node (worker, manager).")
@name_of(NODE, "name")
@click.pass_obj
def update(
    place: HostChoice, /, name: str, availability: str, role: str, label_add: Sequence[str], label_rm: Sequence[str]
) -> None:
    """Update a node."""
    added = mapping("label-add", label_add, bare=True)

    async def updated(engine: Client) -> None:
        node = await engine.nodes.get(name)
        if missing := set(label_rm) - node.labels.keys():
            raise InvalidParameter(f"node {name} has no label {', '.join(sorted(missing))}")
        labels = {key: value for key, value in {**node.labels, **added}.items() if key not in label_rm}
        await node.update(availability=availability or None, role=role or None, labels=labels)
        say(name)

    ask_plainly(place, updated)


async def _promote(node: Node) -> None:
    await node.update(role="manager")


async def _demote(node: Node) -> None:
    await node.update(role="worker")


node = words(
    "node",
    "Manage Swarm nodes.",
    to_each(
        NODE,
        "demote",
        "Demote one or more nodes from manager in the swarm.",
        _demote,
        shown="Manager {name} demoted in the swarm.",
    ),
    inspecting(NODE, "Display detailed information on one or more nodes.", pretty=True),
    listing(NODE, "List nodes in the swarm.", truncates=False),
    to_each(
        NODE,
        "promote",
        "Promote one or more nodes to manager in the swarm.",
        _promote,
        shown="Node {name} promoted to a manager in the swarm.",
    ),
    with_flags(ps),
    removing(NODE, "Remove one or more nodes from the swarm.", "Force remove a node from the swarm."),
    update,
)
