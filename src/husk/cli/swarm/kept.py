"""`husk secret` and `husk config`: values that a swarm keeps for its services."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import click

from husk.cli.kit.command import HuskCommand, as_json, many, text
from husk.cli.kit.engine import ask
from husk.cli.kit.files import content_of
from husk.cli.kit.group import WordGroup, words
from husk.cli.kit.kinds import Document, Shown, ThingKind, inspecting, listing, removing
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import mapping, moment_of
from husk.cli.kit.words import ago, pairs
from husk.cli.kit.writing import document, say
from husk.client.client import Client

HEADINGS = {
    "ID": "ID",
    "Name": "NAME",
    "Driver": "DRIVER",
    "CreatedAt": "CREATED",
    "UpdatedAt": "UPDATED",
    "Labels": "LABELS",
}


def row(attrs: Document, shown: Shown) -> dict[str, str]:
    spec = attrs.get("Spec") or {}
    return {
        "ID": str(attrs["ID"]),
        "Name": str(spec.get("Name") or ""),
        "Driver": str((spec.get("Driver") or {}).get("Name") or ""),
        "CreatedAt": _since(attrs.get("CreatedAt"), shown.now or time.time()),
        "UpdatedAt": _since(attrs.get("UpdatedAt"), shown.now or time.time()),
        "Labels": pairs(spec.get("Labels")),
    }


def _since(said: object, now: float) -> str:
    at = moment_of(said)
    return ago(at.timestamp(), now) if isinstance(at, datetime) else ""


def _group(name: str, things: Callable[[Client], Any], columns: Sequence[str], file: str) -> WordGroup:
    kind = ThingKind(name, things, HEADINGS, columns, row, "ID", "Name")

    @click.command("create", cls=HuskCommand, help=f"Create a {name} from a file or STDIN as content.")
    @many("-l", "--label", help=f"{name.capitalize()} labels.")
    @text("--template-driver", help="Template driver.")
    @as_json
    @click.argument("name", metavar=name.upper())
    @click.argument("source", metavar=file, required=False, default="-")
    @click.pass_obj
    def create(
        place: HostChoice, /, name: str, source: str, label: Sequence[str], template_driver: str, as_json: bool
    ) -> None:
        labels, data = mapping("label", label, bare=True), content_of(source)

        async def created(engine: Client) -> None:
            made = await things(engine).create(name, data, labels=labels, templating=template_driver)
            document(made.attrs) if as_json else say(made.id)

        ask(place, created)

    return words(
        name,
        f"Manage Swarm {name}s.",
        create,
        inspecting(kind, f"Display detailed information on one or more {name}s.", pretty=True),
        listing(kind, f"List {name}s.", truncates=False),
        removing(kind, f"Remove one or more {name}s."),
    )


secret = _group("secret", lambda engine: engine.secrets, ("ID", "Name", "Driver", "CreatedAt", "UpdatedAt"), "[FILE|-]")
config = _group("config", lambda engine: engine.configs, ("ID", "Name", "CreatedAt", "UpdatedAt"), "FILE|-")
