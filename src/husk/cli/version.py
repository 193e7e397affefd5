"""`husk version`: the version of this command, and of the engine that it speaks to."""

import platform
from collections.abc import Iterator, Mapping
from typing import Any

import click

from husk.cli.kit.command import HuskCommand, as_json
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.templates import FormatTemplate
from husk.cli.kit.writing import document, say
from husk.client.calls import NEWEST
from husk.client.client import Client
from husk.version import __version__

_TITLES = {"Version": "Version", "ApiVersion": "API version", "PythonVersion": "Python version"}


@click.command(cls=HuskCommand)
@click.option("-f", "--format", "template", metavar="STRING", default="", help="'json' or a Go template.")
@as_json
@click.pass_obj
def version(place: HostChoice, /, template: str, as_json: bool) -> None:
    """Show the versions of this command and of the engine."""
    shape = FormatTemplate(template) if template and template != "json" else None
    found: dict[str, Any] = {"Client": client(), "Server": None}

    def tell() -> None:
        if as_json or template == "json":
            document(found)
        elif shape is not None:
            say(shape.fill(found), exact=True)
        else:
            for line in lines(found):
                say(line)

    async def told(engine: Client) -> None:
        found["Server"] = await engine.version()
        tell()

    try:
        ask_plainly(place, told)
    except SystemExit:
        if shape is None and found["Server"] is None:
            tell()  # of this command it can be told without an engine
        raise


def client() -> dict[str, str]:
    """Describe this command."""
    return {
        "Version": __version__,
        "ApiVersion": ".".join(map(str, NEWEST)),
        "PythonVersion": platform.python_version(),
        "Os": platform.system().lower(),
        "Arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
    }


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield it for people: the command, then the engine with its parts."""
    ours = found["Client"]
    yield "Client: Husk"
    for name, title in _TITLES.items():
        yield f" {title + ':':<19}{ours[name]}"
    yield f" {'OS/Arch:':<19}{ours['Os']}/{ours['Arch']}"
    if (server := found["Server"]) is None:
        return
    yield ""
    yield f"Server: {(server.get('Platform') or {}).get('Name') or 'Docker Engine'}"
    yield " Engine:"
    yield f"  {'Version:':<17}{server.get('Version')}"
    yield f"  {'API version:':<17}{server.get('ApiVersion')} (minimum version {server.get('MinAPIVersion')})"
    yield f"  {'OS/Arch:':<17}{server.get('Os')}/{server.get('Arch')}"
    yield f"  {'Kernel version:':<17}{server.get('KernelVersion')}"
    for part in server.get("Components") or ():
        if part.get("Name") not in ("Engine", None):
            yield f" {part['Name']}:"
            yield f"  {'Version:':<17}{part.get('Version')}"
