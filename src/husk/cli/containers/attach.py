"""`husk attach` and `husk start`: containers that are there already."""

from contextlib import nullcontext
from typing import Any

import click

from husk.cli.containers.keys import sequence
from husk.cli.containers.settings import detach_keys_or
from husk.cli.containers.terminal import TerminalTalk, check_terminal, forwarded
from husk.cli.kit.command import HuskCommand, as_json, flag
from husk.cli.kit.complete import containers, running
from husk.cli.kit.engine import ask, each
from husk.cli.kit.place import HostChoice
from husk.client.client import Client
from husk.client.container import Container
from husk.errors import Conflict

_KEYS = click.option("--detach-keys", default="", metavar="STRING", help="Override the key sequence for detaching.")
_PROXY = flag("--sig-proxy", default=True, help="Proxy received signals to the process (default true).")


@click.command(cls=HuskCommand)
@_KEYS
@flag("--no-stdin", help="Do not attach STDIN.")
@_PROXY
@click.argument("container", shell_complete=running)
@click.pass_obj
def attach(place: HostChoice, /, container: str, no_stdin: bool, **options: Any) -> None:
    """Attach local standard input, output, and error streams to a running container."""

    async def attached(engine: Client) -> int:
        found = await engine.containers.get(container)
        if found.status == "paused":
            raise Conflict("cannot attach to a paused container, unpause it first")
        if found.status != "running":
            raise Conflict("cannot attach to a stopped container, start it first")
        return await _hold(found, stdin=not no_stdin, start=False, **options)

    ask(place, attached)


@click.command(cls=HuskCommand)
@flag("-a", "--attach", help="Attach STDOUT/STDERR and forward signals.")
@_KEYS
@flag("-i", "--interactive", "stdin", help="Attach container's STDIN.")
@_PROXY
@as_json
@click.argument("names", nargs=-1, required=True, metavar="CONTAINER...", shell_complete=containers)
@click.pass_obj
def start(
    place: HostChoice, /, names: tuple[str, ...], attach: bool, stdin: bool, as_json: bool, **options: Any
) -> None:
    """Start one or more stopped containers."""
    if (attach or stdin) and len(names) > 1:
        raise click.UsageError("you cannot start and attach multiple containers at once")

    async def started(engine: Client) -> int:
        if attach or stdin:
            return await _hold(await engine.containers.get(names[0]), stdin=stdin, start=True, **options)

        async def one(name: str) -> None:
            await (await engine.containers.get(name)).start()

        return await each(names, one, as_json)

    ask(place, started)


async def _hold(container: Container, *, stdin: bool, start: bool, detach_keys: str, sig_proxy: bool) -> int:
    """Speak with it until it ends or is left; its exit code."""

    config = container.attrs["Config"]
    tty, stdin = bool(config["Tty"]), stdin and bool(config["OpenStdin"])
    check_terminal(stdin, tty)
    gone = start and bool((container.attrs.get("HostConfig") or {}).get("AutoRemove"))
    condition = "removed" if gone else "next-exit" if start else "not-running"
    with forwarded(container.kill) if sig_proxy and not tty else nullcontext():
        async with container.attach(stdin=stdin) as console, container.waiting(condition) as ended:
            if start:
                await container.start()
            talk = TerminalTalk(console, stdin=stdin, tty=tty, keys=sequence(detach_keys_or(detach_keys)))
            await talk.resize()
            return 0 if await talk.hold() else await ended()
