"""`husk inspect`: all that the engine knows of things, of whatever kind."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from husk.cli.kit.command import Flag, HuskCommand, as_json
from husk.cli.kit.complete import containers, either, images
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.place import HostChoice
from husk.cli.kit.templates import FormatTemplate
from husk.cli.kit.writing import complain, document, encoded, say
from husk.client.client import Client
from husk.errors import HuskError, InvalidParameter, NotFound

# Flags that one kind alone knows.
_KNOWN = (("container", "size"), ("image", "platform"))
_KINDS = ("container", "image", "network", "volume", "service", "task", "node", "secret", "config")


def _command(kinds: tuple[str, ...], help: str, complete: Callable[..., Any]) -> click.Command:
    @click.command("inspect", cls=HuskCommand, help=help)
    @click.option("-f", "--format", "template", metavar="STRING", default="", help="'json' or a Go template.")
    @as_json
    @click.argument("names", nargs=-1, required=True, metavar="NAME|ID...", shell_complete=complete)
    @click.pass_obj
    def command(
        place: HostChoice,
        /,
        names: tuple[str, ...],
        template: str,
        as_json: bool,
        kind: str | None = None,
        **asked: Any,
    ) -> None:
        if kind is not None and kind not in _KINDS:
            raise InvalidParameter(f'unknown type: "{kind}": must be one of {", ".join(sorted(_KINDS))}')
        wanted = (kind,) if kind else kinds
        shape = FormatTemplate("{{json .}}" if template == "json" else template) if template else None

        async def inspected(engine: Client) -> int:
            found, missing = [], []
            for name in names:
                attrs = await _found(engine, name, wanted, asked)
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
                single = wanted[0] if len(wanted) == 1 else ""
                said = "Error response from daemon" if single else "Error"
                complain(f"{said}: No such {single or 'object'}: {name}")
            return 1 if missing else 0

        ask_plainly(place, inspected)

    return command


async def _found(engine: Client, name: str, kinds: tuple[str, ...], asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the document of the first kind of thing with such a name; None if there is none."""
    for kind in kinds:
        known = {word: value for word, value in asked.items() if value and (kind, word) in _KNOWN}
        try:
            # Only what is asked for is loaded: services and the like take longer than the answer.
            thing = await getattr(engine, f"{kind}s").get(name, **known)
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


_SIZE = Flag(["-s", "--size"], help="Display total file sizes if the type is container.")
inspect = _command(
    _KINDS, "Return low-level information on containers, images, networks, volumes and services.", either
)
inspect.params[1:1] = [_SIZE, click.Option(["--type", "kind"], metavar="KIND", help="Only look for this kind.")]
container = _command(("container",), "Display detailed information on one or more containers.", containers)
container.params.insert(1, _SIZE)
image = _command(("image",), "Display detailed information on one or more images.", images)
image.params.insert(1, click.Option(["--platform"], metavar="STRING", default="", help="Inspect one platform of it."))
