"""Names for the shell to complete, asked of the daemon. One that does not answer at once completes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from husk.cli.kit.late import late
from husk.cli.kit.place import HostChoice
from husk.errors import HuskError
from husk.text.patterns import pattern

if TYPE_CHECKING:
    from husk.client.client import Client

_PATIENCE = 2.0
# Names as engines have them. A shell puts a completion on the line as it is: what it would take for more than a name,
# of an engine that lets it pass, is nobody's to type.
_NAME = pattern(r"[A-Za-z0-9_./:@-]+")
# With the client, which help and bad lines do without.
_asked = late("husk.cli.kit.asking:asked")


def containers(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Containers, whatever their state."""
    return _completed(context, begun, _containers)


def running(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return _completed(context, begun, _running)


def images(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return _completed(context, begun, _images)


def either(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [*containers(context, parameter, begun), *images(context, parameter, begun)]


def image_then_files(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The first word is an image; the others are the container's own."""
    return [] if context.params.get(parameter.name or "") else images(context, parameter, begun)


def filters(*names: str) -> Callable[..., list[CompletionItem]]:
    """Complete the names of conditions for `--filter`, up to the equals sign."""

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(f"{name}=") for name in names if name.startswith(begun)]

    return complete


def formats(fields: Iterable[str]) -> Callable[..., list[CompletionItem]]:
    """Complete what `--format` takes: its words, and a field of a row."""
    known = ["json", "table", *(f"{{{{.{name}}}}}" for name in fields)]

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in known if word.startswith(begun)]

    return complete


def named(names: Callable[[Client], Awaitable[list[str]]]) -> Callable[..., list[CompletionItem]]:
    """Complete the names that `names` asks for."""

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        return _completed(context, begun, names)

    return complete


async def _containers(engine: Client) -> list[str]:
    return [container.name for container in await engine.containers.list(all=True)]


async def _running(engine: Client) -> list[str]:
    return [container.name for container in await engine.containers.list()]


async def _images(engine: Client) -> list[str]:
    found = [tag for image in await engine.images.list() for tag in image.tags]
    return [*found, *(tag.removesuffix(":latest") for tag in found if tag.endswith(":latest"))]


def _completed(
    context: click.Context, begun: str, names: Callable[[Client], Awaitable[list[str]]]
) -> list[CompletionItem]:
    try:
        found = _asked(_place(context), names, _PATIENCE)
    except (HuskError, OSError):
        return []
    return [CompletionItem(name) for name in sorted(found) if name.startswith(begun) and _NAME.fullmatch(name)]


def _place(context: click.Context) -> HostChoice:
    """Commands are not run while a line is completed: what -H and --context say is in the root's parameters."""
    root = context.find_root().params
    return HostChoice(root.get("host") or "", root.get("context_name") or "")
