"""`husk stack`: the services of a Compose file in a swarm, known by their label."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from husk.cli.kit.command import HuskCommand, as_json, flag
from husk.cli.kit.engine import ask, ask_plainly
from husk.cli.kit.group import words
from husk.cli.kit.kinds import filtered, formatted
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import filters_of
from husk.cli.kit.tables import show
from husk.cli.kit.writing import complain, document, say
from husk.cli.swarm.services import list_services
from husk.cli.swarm.tasks import print_tasks, with_flags
from husk.client.client import Client
from husk.errors import CommandFailed

LABEL = "com.docker.stack.namespace"
_HEADINGS = {"Name": "NAME", "Services": "SERVICES", "Orchestrator": "ORCHESTRATOR"}


def _of(stack: str, filters: Mapping[str, list[str]] = {}) -> dict[str, list[str]]:
    return {**filters, "label": [*filters.get("label", ()), f"{LABEL}={stack}"]}


@click.command(cls=HuskCommand)
@formatted
@as_json
@click.pass_obj
def ls(place: HostChoice, /, template: str | None, as_json: bool) -> None:
    """List stacks."""

    async def told(engine: Client) -> None:
        found = Counter(each.labels[LABEL] for each in await engine.services.list(filters={"label": [LABEL]}))
        rows = [{"Name": name, "Services": str(found[name]), "Orchestrator": "Swarm"} for name in sorted(found)]
        if as_json:
            document([{"Name": name, "Services": found[name]} for name in sorted(found)])
        else:
            show(_HEADINGS, ("Name", "Services"), rows, template)

    ask_plainly(place, told)


@click.command(cls=HuskCommand)
@filtered
@formatted
@flag("-q", "--quiet", help="Only display IDs.")
@as_json
@click.argument("stack")
@click.pass_obj
def services(
    place: HostChoice, /, stack: str, filters: Sequence[str], template: str | None, quiet: bool, as_json: bool
) -> None:
    """List the services in the stack."""
    wanted = _of(stack, filters_of(filters))
    ask_plainly(place, lambda engine: list_services(engine, wanted, template, quiet, as_json))


@click.command(cls=HuskCommand)
@filtered
@formatted
@flag("-q", "--quiet", help="Only display task IDs.")
@as_json
@click.argument("stack")
@click.pass_obj
def ps(place: HostChoice, /, stack: str, filters: Sequence[str], **shown: Any) -> None:
    """List the tasks in the stack."""
    wanted = _of(stack, filters_of(filters))

    async def told(engine: Client) -> None:
        found = await engine.tasks.list(filters=wanted)
        if not found:
            raise CommandFailed(f"nothing found in stack: {stack}", 1)
        await print_tasks(engine, found, **shown)

    ask_plainly(place, told)


@click.command(cls=HuskCommand)
@flag("-d", "--detach", default=True, help="Do not wait for stack removal (default true).")
@click.argument("stacks", nargs=-1, required=True, metavar="STACK...")
@click.pass_obj
def rm(place: HostChoice, /, stacks: Sequence[str], detach: bool) -> None:
    """Remove one or more stacks."""

    async def removed(engine: Client) -> None:
        for stack in stacks:
            gone = 0
            for word, things in (
                ("service", engine.services),
                ("secret", engine.secrets),
                ("config", engine.configs),
                ("network", engine.networks),
            ):
                for thing in await things.list(filters=_of(stack)):
                    say(f"Removing {word} {thing.name}")
                    await thing.remove()
                    gone += 1
            while not detach:
                if not await engine.tasks.list(filters=_of(stack)):
                    break
                await asyncio.sleep(0.5)
            if not gone:
                complain(f"Nothing found in stack: {stack}")

    ask(place, removed)


stack = words("stack", "Manage Swarm stacks.", ls, with_flags(ps), rm, services)
