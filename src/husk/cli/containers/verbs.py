"""Commands that do one thing to each of some containers: stop, restart, kill, pause, unpause, wait, rm, rename."""

from collections.abc import Awaitable, Callable
from typing import Any

import click

from husk.cli.kit.command import AnyFunction, HuskCommand, as_json, flag
from husk.cli.kit.complete import containers, running
from husk.cli.kit.engine import ask_plainly, each
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import document
from husk.client.client import Client
from husk.client.container import Container


def names(complete: Callable[..., Any]) -> Callable[[AnyFunction], AnyFunction]:
    return click.argument("names", nargs=-1, required=True, metavar="CONTAINER...", shell_complete=complete)


def _to_each(
    place: HostChoice,
    /,
    wanted: tuple[str, ...],
    as_json: bool,
    act: Callable[[Container], Awaitable[Any]],
    missing_is_well: bool = False,
) -> None:
    async def all_of_them(engine: Client) -> int:
        async def one(name: str) -> None:
            await act(await engine.containers.get(name))

        return await each(wanted, one, as_json, missing_is_well=missing_is_well)

    ask_plainly(place, all_of_them)


@click.command(cls=HuskCommand)
@click.option("-s", "--signal", metavar="STRING", help="Signal to send to the container.")
@click.option("-t", "--time", "--timeout", "timeout", type=int, help="Seconds to wait before killing the container.")
@as_json
@names(running)
@click.pass_obj
def stop(place: HostChoice, /, names: tuple[str, ...], signal: str | None, timeout: int | None, as_json: bool) -> None:
    """Stop one or more running containers."""
    _to_each(place, names, as_json, lambda container: container.stop(timeout, signal))


@click.command(cls=HuskCommand)
@click.option("-s", "--signal", metavar="STRING", help="Signal to send to the container.")
@click.option("-t", "--time", "--timeout", "timeout", type=int, help="Seconds to wait before killing the container.")
@as_json
@names(containers)
@click.pass_obj
def restart(
    place: HostChoice, /, names: tuple[str, ...], signal: str | None, timeout: int | None, as_json: bool
) -> None:
    """Restart one or more containers."""
    _to_each(place, names, as_json, lambda container: container.restart(timeout, signal))


@click.command(cls=HuskCommand)
@click.option("-s", "--signal", metavar="STRING", default="KILL", help="Signal to send to the container.")
@as_json
@names(running)
@click.pass_obj
def kill(place: HostChoice, /, names: tuple[str, ...], signal: str, as_json: bool) -> None:
    """Kill one or more running containers."""
    _to_each(place, names, as_json, lambda container: container.kill(signal))


@click.command(cls=HuskCommand)
@as_json
@names(running)
@click.pass_obj
def pause(place: HostChoice, /, names: tuple[str, ...], as_json: bool) -> None:
    """Pause all processes within one or more containers."""
    _to_each(place, names, as_json, lambda container: container.pause())


@click.command(cls=HuskCommand)
@as_json
@names(running)
@click.pass_obj
def unpause(place: HostChoice, /, names: tuple[str, ...], as_json: bool) -> None:
    """Unpause all processes within one or more containers."""
    _to_each(place, names, as_json, lambda container: container.unpause())


@click.command(cls=HuskCommand)
@flag("-f", "--force", help="Force the removal of a running container (uses SIGKILL).")
@flag("-l", "--link", help="Remove the specified link.")
@flag("-v", "--volumes", help="Remove anonymous volumes associated with the container.")
@as_json
@names(containers)
@click.pass_obj
def rm(place: HostChoice, /, names: tuple[str, ...], force: bool, link: bool, volumes: bool, as_json: bool) -> None:
    """Remove one or more containers."""

    def remove(container: Container) -> Awaitable[None]:
        return container.remove(force=force, volumes=volumes, link=link)

    _to_each(place, names, as_json, remove, missing_is_well=force)


@click.command(cls=HuskCommand)
@as_json
@click.argument("container", shell_complete=containers)
@click.argument("new_name")
@click.pass_obj
def rename(place: HostChoice, /, container: str, new_name: str, as_json: bool) -> None:
    """Rename a container."""

    async def renamed(engine: Client) -> None:
        found = await engine.containers.get(container)
        await found.rename(new_name)
        if as_json:
            document({"Id": found.id, "Name": found.name})

    ask_plainly(place, renamed)


@click.command(cls=HuskCommand)
@as_json
@names(running)
@click.pass_obj
def wait(place: HostChoice, /, names: tuple[str, ...], as_json: bool) -> None:
    """Block until one or more containers stop, then print their exit codes."""
    codes: dict[str, int] = {}

    async def waited(engine: Client) -> int:
        async def one(name: str) -> None:
            codes[name] = await (await engine.containers.get(name)).wait()

        if not as_json:
            return await each(names, one, False, lambda name: str(codes[name]))
        for name in names:
            await one(name)
        document([{"Name": name, "ExitCode": codes[name]} for name in names])
        return 0

    ask_plainly(place, waited)
