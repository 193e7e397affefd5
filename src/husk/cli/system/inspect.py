"""`husk inspect`: all that the engine knows of things, of whatever kind."""

from typing import Any

import click

from husk.cli.kit.command import HuskCommand, as_json
from husk.cli.kit.complete import either
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.templates import FormatTemplate
from husk.cli.kit.writing import complain, document, encoded, say
from husk.client.client import Client
from husk.errors import HuskError, InvalidParameter, NotFound

_KINDS = ("container", "image", "network", "volume", "service", "task", "node", "secret", "config")


@click.command(cls=HuskCommand)
@click.option("-f", "--format", "template", metavar="STRING", default="", help="'json' or a Go template.")
@click.option("--type", "kind", metavar="KIND", help="Only look for things of this kind.")
@as_json
@click.argument("names", nargs=-1, required=True, metavar="NAME|ID...", shell_complete=either)
@click.pass_obj
def inspect(place: HostChoice, /, names: tuple[str, ...], template: str, kind: str | None, as_json: bool) -> None:
    """Return low-level information on containers, images, networks, volumes and services."""

    if kind is not None and kind not in _KINDS:
        raise InvalidParameter(f'unknown type: "{kind}": must be one of {", ".join(sorted(_KINDS))}')
    shape = FormatTemplate("{{json .}}" if template == "json" else template) if template else None

    async def inspected(engine: Client) -> int:
        found, missing = [], []
        for name in names:
            attrs = await _found(engine, name, (kind,) if kind else _KINDS)
            if attrs is None:
                missing.append(name)
            else:
                found.append(attrs)
        if shape is not None:
            for attrs in found:
                say(shape.fill(attrs), exact=True)
        elif as_json:
            document(found)
        else:
            say(encoded(found, indent=4))
        for name in missing:
            said = "Error response from daemon" if kind else "Error"
            complain(f"{said}: No such {kind or 'object'}: {name}")
        return 1 if missing else 0

    ask_plainly(place, inspected)


async def _found(engine: Client, name: str, kinds: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the document of the first kind of thing with such a name; None if there is none."""
    for kind in kinds:
        try:
            # Only what is asked for is loaded: services and the like take longer than the answer.
            thing = await getattr(engine, f"{kind}s").get(name)
        except NotFound:
            continue
        except HuskError as error:
            # Services and the like can only be asked for in a swarm.
            if kind in ("container", "image", "network", "volume") or "swarm" not in str(error):
                raise
            continue
        attrs: dict[str, Any] = thing.attrs
        return attrs
    return None
