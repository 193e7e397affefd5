"""`husk service`: what shall run in a swarm, and how often."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from husk.cli.kit.command import HuskCommand, as_json, flag
from husk.cli.kit.complete import images
from husk.cli.kit.engine import ask, ask_plainly, each
from husk.cli.kit.group import words
from husk.cli.kit.kinds import (
    Document,
    Shown,
    ThingKind,
    filtered,
    formatted,
    inspecting,
    name_of,
    names_of,
    print_things,
    removing,
)
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import filters_of
from husk.cli.kit.words import short_id
from husk.cli.kit.writing import document, say
from husk.cli.swarm.converging import converge
from husk.cli.swarm.flags import create_flags, created, update_flags, updated
from husk.cli.swarm.logs import logs
from husk.cli.swarm.tasks import ports, print_tasks, tasks_of, with_flags
from husk.client.client import Client
from husk.client.credentials import Keychain
from husk.client.names import registry_of
from husk.client.service_spec import ServiceSpec
from husk.client.services import Service
from husk.errors import InvalidParameter
from husk.text.digits import read_number

HEADINGS = {
    "ID": "ID",
    "Name": "NAME",
    "Mode": "MODE",
    "Replicas": "REPLICAS",
    "Image": "IMAGE",
    "Ports": "PORTS",
}
_MODES = {
    "Replicated": "replicated",
    "Global": "global",
    "ReplicatedJob": "replicated job",
    "GlobalJob": "global job",
}
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")


def row(attrs: Document, shown: Shown) -> dict[str, str]:
    spec = attrs.get("Spec") or {}
    template = spec.get("TaskTemplate") or {}
    endpoint = attrs.get("Endpoint") or {}
    return {
        "ID": str(attrs["ID"]) if shown.whole else short_id(str(attrs["ID"])),
        "Name": str(spec.get("Name") or ""),
        "Mode": next((word for name, word in _MODES.items() if name in (spec.get("Mode") or {})), ""),
        "Replicas": replicas(attrs),
        "Image": _DIGEST.sub("", str((template.get("ContainerSpec") or {}).get("Image") or "")),
        "Ports": ", ".join(ports([each]) for each in endpoint.get("Ports") or () if each.get("PublishedPort")),
    }


def replicas(attrs: Document) -> str:
    """`2/3`, with the limit of a node; of jobs how many tasks are done."""
    status, spec = attrs.get("ServiceStatus") or {}, attrs.get("Spec") or {}
    found = f"{status.get('RunningTasks', 0)}/{status.get('DesiredTasks', 0)}"
    job = (spec.get("Mode") or {}).get("ReplicatedJob")
    if job is not None:
        return f"{found} ({status.get('CompletedTasks', 0)}/{job.get('TotalCompletions', 0)} completed)"
    most = ((spec.get("TaskTemplate") or {}).get("Placement") or {}).get("MaxReplicas")
    return f"{found} (max {most} per node)" if most else found


SERVICE = ThingKind("service", lambda engine: engine.services, HEADINGS, tuple(HEADINGS), row, "ID", "Name")


async def list_services(
    engine: Client, filters: Mapping[str, list[str]], template: str | None, quiet: bool, as_json: bool
) -> None:
    found = await engine.services.list(filters=filters, status=True)
    print_things(SERVICE, [each.attrs for each in found], template, quiet, as_json)


@click.command(cls=HuskCommand)
@filtered
@formatted
@flag("-q", "--quiet", help="Only display IDs.")
@as_json
@click.pass_obj
def ls(place: HostChoice, /, filters: Sequence[str], template: str | None, quiet: bool, as_json: bool) -> None:
    """List services."""
    wanted = filters_of(filters)
    ask_plainly(place, lambda engine: list_services(engine, wanted, template, quiet, as_json))


@click.command(cls=HuskCommand)
@filtered
@formatted
@flag("-q", "--quiet", help="Only display task IDs.")
@as_json
@names_of(SERVICE)
@click.pass_obj
def ps(place: HostChoice, /, filters: Sequence[str], names: Sequence[str], **shown: Any) -> None:
    """List the tasks of one or more services."""
    wanted = filters_of(filters)

    async def told(engine: Client) -> None:
        await print_tasks(engine, await tasks_of(engine, wanted, "service", names), **shown)

    ask_plainly(place, told)


@click.command(cls=HuskCommand, own_words=True)
@as_json
@click.argument("image", shell_complete=images)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def create(place: HostChoice, /, image: str, command: Sequence[str], as_json: bool, **flags: Any) -> None:
    """Create a new service."""
    wanted = created(flags)
    spec = ServiceSpec(image=image, command=list(command) or None, extra=wanted)

    async def made(engine: Client) -> int:
        await _look_up(engine, wanted)
        service = await engine.services.create(spec, auth=None if flags["with_registry_auth"] else {})
        document(service.attrs) if as_json else say(service.id)
        return 0 if flags["detach"] else await converge(engine, service, flags["quiet"] or as_json)

    ask(place, made)


create.params[:0] = create_flags()


@click.command(cls=HuskCommand)
@as_json
@name_of(SERVICE, "name")
@click.pass_obj
def update(place: HostChoice, /, name: str, as_json: bool, **flags: Any) -> None:
    """Update a service."""

    async def changed(engine: Client) -> int:
        service = await engine.services.get(name)
        if flags["rollback"]:
            await service.rollback()
        else:
            wanted = updated(service.attrs.get("Spec") or {}, flags)
            await _look_up(engine, wanted)
            references = (wanted.get("TaskTemplate") or {}).get("ContainerSpec") or {}

            def change(spec: Mapping[str, Any]) -> dict[str, Any]:
                found = updated(spec, flags)
                container = found.setdefault("TaskTemplate", {}).setdefault("ContainerSpec", {})
                container |= {key: references[key] for key in ("Secrets", "Configs") if key in references}
                return found

            image = str(references.get("Image") or "")
            await service.edit(
                change, auth=await Keychain().of(registry_of(image)) if flags["with_registry_auth"] else None
            )
        document(service.attrs) if as_json else say(name)
        return 0 if flags["detach"] else await converge(engine, service, flags["quiet"] or as_json)

    ask(place, changed)


update.params[:0] = update_flags()


async def _look_up(engine: Client, spec: Mapping[str, Any]) -> None:
    """Put the ids of secrets and configs beside their names."""
    container = (spec.get("TaskTemplate") or {}).get("ContainerSpec") or {}
    for kind, collection in (("Secret", engine.secrets), ("Config", engine.configs)):
        for reference in container.get(f"{kind}s") or ():
            if not reference.get(f"{kind}ID"):
                reference[f"{kind}ID"] = (await collection.get(reference[f"{kind}Name"])).id


@click.command(cls=HuskCommand)
@flag("-d", "--detach", help="Exit immediately instead of waiting for the service to converge.")
@flag("-q", "--quiet", help="Suppress progress output.")
@name_of(SERVICE, "name")
@click.pass_obj
def rollback(place: HostChoice, /, name: str, detach: bool, quiet: bool) -> None:
    """Revert changes to a service's configuration."""

    async def reverted(engine: Client) -> int:
        service = await engine.services.get(name)
        await service.rollback()
        say(name)
        return 0 if detach else await converge(engine, service, quiet)

    ask(place, reverted)


@click.command(cls=HuskCommand)
@flag("-d", "--detach", help="Exit immediately instead of waiting for the service to converge.")
@click.argument("wanted", nargs=-1, required=True, metavar="SERVICE=REPLICAS...")
@click.pass_obj
def scale(place: HostChoice, /, wanted: Sequence[str], detach: bool) -> None:
    """Scale one or multiple replicated services."""
    numbers = dict(_scaled(text) for text in wanted)

    async def scaled(engine: Client) -> int:
        services: list[Service] = []

        async def one(name: str) -> None:
            service = await engine.services.get(name)
            await service.scale(numbers[name])
            services.append(service)

        failed = await each(list(numbers), one, False, lambda name: f"{name} scaled to {numbers[name]}")
        for service in () if detach else services:
            failed = await converge(engine, service, False) or failed
        return failed

    ask(place, scaled)


def _scaled(text: str) -> tuple[str, int]:
    name, equals, count = text.rpartition("=")
    number = read_number(count)
    if not equals or not name or number is None:
        raise InvalidParameter(f"invalid scale specifier {text!r}: expected SERVICE=REPLICAS, as web=3")
    return name, number


service = words(
    "service",
    "Manage Swarm services.",
    create,
    inspecting(SERVICE, "Display detailed information on one or more services.", pretty=True),
    logs,
    ls,
    with_flags(ps),
    removing(SERVICE, "Remove one or more services."),
    rollback,
    scale,
    update,
)
