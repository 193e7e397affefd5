"""`husk plugin`: plugins of the engine, as far as engines of this kind have them."""

from collections.abc import Sequence
from typing import Any

import click

from husk.cli.kit.command import Flag, HuskCommand
from husk.cli.kit.engine import ask_plainly
from husk.cli.kit.group import words
from husk.cli.kit.kinds import Document, Shown, ThingKind, inspecting, listing, name_of, removing
from husk.cli.kit.place import HostChoice
from husk.cli.kit.words import short_id, shortened
from husk.cli.kit.writing import say
from husk.client.client import Client

_HEADINGS = {
    "ID": "ID",
    "Name": "NAME",
    "Description": "DESCRIPTION",
    "Enabled": "ENABLED",
    "PluginReference": "PLUGIN REFERENCE",
}


def row(attrs: Document, shown: Shown) -> dict[str, str]:
    told = " ".join(str((attrs.get("Config") or {}).get("Description") or "").split())
    return {
        "ID": str(attrs["Id"]) if shown.whole else short_id(str(attrs["Id"])),
        "Name": str(attrs.get("Name") or ""),
        "Description": told if shown.whole else shortened(told, 45),
        "Enabled": str(bool(attrs.get("Enabled"))).lower(),
        "PluginReference": str(attrs.get("PluginReference") or ""),
    }


PLUGIN = ThingKind("plugin", lambda engine: engine.plugins, _HEADINGS, tuple(_HEADINGS)[:4], row)


def _to_one(word: str, help: str, act: str, *more: click.Option) -> click.Command:
    @click.command(word, cls=HuskCommand, help=help)
    @name_of(PLUGIN, "plugin")
    @click.pass_obj
    def command(place: HostChoice, /, plugin: str, **flags: Any) -> None:
        async def done(engine: Client) -> None:
            await getattr(await engine.plugins.get(plugin), act)(**flags)
            say(plugin)

        ask_plainly(place, done)

    command.params[:0] = more
    return command


@click.command("set", cls=HuskCommand)
@name_of(PLUGIN, "plugin")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@click.pass_obj
def set_(place: HostChoice, /, plugin: str, settings: Sequence[str]) -> None:
    """Change settings for a plugin."""

    async def done(engine: Client) -> None:
        await (await engine.plugins.get(plugin)).configure(list(settings))

    ask_plainly(place, done)


plugin = words(
    "plugin",
    "Manage plugins.",
    _to_one(
        "disable",
        "Disable a plugin.",
        "disable",
        Flag(["-f", "--force"], help="Force the disable of an active plugin."),
    ),
    _to_one(
        "enable",
        "Enable a plugin.",
        "enable",
        click.Option(["--timeout"], type=int, default=30, metavar="INT", help="HTTP client timeout (in seconds)."),
    ),
    inspecting(PLUGIN, "Display detailed information on one or more plugins."),
    listing(PLUGIN, "List plugins."),
    _to_one("push", "Push a plugin to a registry.", "push"),
    removing(PLUGIN, "Remove one or more plugins.", "Force the removal of an active plugin."),
    set_,
)
