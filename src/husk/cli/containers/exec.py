"""`husk exec`: another process in a running container."""

from typing import Any

import click

from husk.cli.containers.environment import environment
from husk.cli.containers.keys import DEFAULT, sequence
from husk.cli.containers.terminal import TerminalTalk, check_terminal, passed_on, unless_left
from husk.cli.kit.command import HuskCommand, as_json, flag, many
from husk.cli.kit.complete import running
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.streams import StreamLines
from husk.cli.kit.writing import line
from husk.client.client import Client


@click.command("exec", cls=HuskCommand, own_words=True)
@flag("-d", "--detach", help="Detached mode: run command in the background.")
@click.option("--detach-keys", metavar="STRING", help="Override the key sequence for detaching a container.")
@many("-e", "--env", help="Set environment variables.")
@many("--env-file", help="Read in a file of environment variables.", type=click.Path())
@flag("-i", "--interactive", "stdin", help="Keep STDIN open even if not attached.")
@flag("--privileged", help="Give extended privileges to the command.")
@flag("-t", "--tty", help="Allocate a pseudo-TTY.")
@click.option("-u", "--user", default="", metavar="STRING", help="Username or UID (format: <name|uid>[:<group|gid>]).")
@click.option("-w", "--workdir", default="", metavar="STRING", help="Working directory inside the container.")
@as_json
@click.argument("container", shell_complete=running)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def exec_(place: HostChoice, /, env: tuple[str, ...], env_file: tuple[str, ...], **options: Any) -> None:
    """Execute a command in a running container."""

    options["environment"] = environment(env_file, env)
    ask(place, lambda engine: _exec(engine, **options))


async def _exec(
    engine: Client,
    *,
    container: str,
    command: tuple[str, ...],
    detach: bool,
    detach_keys: str | None,
    stdin: bool,
    tty: bool,
    workdir: str,
    as_json: bool,
    **options: Any,
) -> int:
    check_terminal(stdin and not detach, tty)
    keys = sequence(detach_keys or DEFAULT)
    box = await engine.containers.get(container)
    process = box.exec(list(command), stdin=stdin and not detach, tty=tty, working_dir=workdir, **options)
    if detach:
        await process.start()
        if as_json:
            line({"Id": process.id})
        return 0

    async def attached() -> int:
        lines = StreamLines()
        async with await process.open() as console:
            talk = TerminalTalk(console, stdin=stdin, tty=tty, keys=keys, take=lines.add if as_json else passed_on)
            await talk.resize()
            if await talk.hold():
                return 0
        code = int((await process.inspect())["ExitCode"] or 0)
        if as_json:
            lines.end()
            line({"Id": process.id, "ExitCode": code})
        return code

    # As with docker's client, who leaves ends the client alone, and that is no failure.
    return await unless_left(attached()) or 0
