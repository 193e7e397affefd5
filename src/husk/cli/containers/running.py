"""The work of `husk run`: a container made, started, and spoken with until it ends; its exit code is ours."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from husk.cli.containers.creating import made, read
from husk.cli.containers.keys import sequence
from husk.cli.containers.settings import detach_keys_or
from husk.cli.containers.spec import attached
from husk.cli.containers.terminal import Taker, TerminalTalk, check_terminal, forwarded, passed_on
from husk.cli.kit.engine import NO_SUCH_COMMAND, NOT_EXECUTABLE, NOT_RUN, ask, told
from husk.cli.kit.place import HostChoice
from husk.cli.kit.plain import plainly
from husk.cli.kit.streams import StreamLines
from husk.cli.kit.writing import complain, document, line, say
from husk.client.client import Client
from husk.client.spec import ContainerSpec
from husk.errors import HuskError


def run(place: HostChoice, /, image: str, command: Sequence[str], detach: bool, detach_keys: str, **flags: Any) -> None:
    """Make a container, start it and speak with it; `flags` are those of `container_flags`."""
    spec = read(image, command, flags, detached=detach)
    if detach and flags["attach"]:
        complain("husk: conflicting options: cannot attach in detached mode")
        raise SystemExit(NOT_RUN)
    check_terminal(flags["interactive"] and not detach, flags["tty"])

    async def ran(engine: Client) -> int:
        try:
            if detach:
                return await _detached(engine, spec, flags)
            return await _attached(engine, spec, flags, detach_keys)
        except HuskError as error:
            if place.debug or "OCI runtime" not in error.message:
                complain(f"husk: {told(error, place.debug)}")
            else:
                complain(f"husk: {plainly(error.message, image, await _programs(engine, image))}")
            return code_of(error.message)

    ask(place, ran, NOT_RUN)


class _Output:
    """The container's output on its way to ours. Where nobody reads that any more, a `--rm` container is to end: it
    would go on for nobody, and could not be seen."""

    def __init__(self, take: Taker) -> None:
        self._take = take
        self.is_gone = False

    def take(self, stream: str, data: bytes) -> None:
        """Pass a piece on."""
        try:
            self._take(stream, data)
        except SystemExit:
            self.is_gone = True
            raise


async def _programs(engine: Client, image: str) -> list[str]:
    """Return names of programs that are likely in an image: those that it starts, and one of its own name."""
    try:
        config = (await engine.images.get(image)).attrs.get("Config") or {}
    except HuskError:
        return []
    words = [*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())]
    own = image.rpartition("/")[2].partition("@")[0].partition(":")[0]
    return [*dict.fromkeys([*(str(word).rpartition("/")[2] for word in words), own, "sh", "bash"])]


def code_of(message: str) -> int:
    """127 where there is no such program in the image, 126 where it cannot be run, 125 for all else."""
    said = message.lower()
    if "executable file not found" in said or "no such file or directory" in said:
        return NO_SUCH_COMMAND
    if "permission denied" in said or "is a directory" in said:
        return NOT_EXECUTABLE
    return NOT_RUN


async def _detached(engine: Client, spec: ContainerSpec, flags: Mapping[str, Any]) -> int:
    container = await made(engine, spec, flags)
    await container.start()
    if flags["as_json"]:
        document({"Id": container.id, "Warnings": container.attrs.get("Warnings") or []})
    else:
        say(container.id)
    return 0


async def _attached(engine: Client, spec: ContainerSpec, flags: Mapping[str, Any], detach_keys: str) -> int:
    keys = sequence(detach_keys_or(detach_keys))
    container = await made(engine, spec, flags)
    streams, lines = attached(flags, False), StreamLines()
    output = _Output(lines.add if flags["as_json"] else passed_on)
    signals = forwarded(container.kill) if flags["sig_proxy"] and not spec.tty else nullcontext()
    with signals:
        async with (
            container.attach(stdin=streams["stdin"], stdout=streams["stdout"], stderr=streams["stderr"]) as console,
            container.waiting("removed" if spec.auto_remove else "next-exit") as ended,
        ):
            await container.start()
            talk = TerminalTalk(
                console,
                stdin=streams["stdin"],
                tty=spec.tty,
                keys=keys,
                take=output.take,
            )
            await talk.resize()
            try:
                if await talk.hold():
                    return 0
            except BaseException:
                if output.is_gone and spec.auto_remove:
                    with suppress(HuskError):
                        await container.kill()
                raise
            code = await ended()
    if flags["as_json"]:
        lines.end()
        line({"Id": container.id, "ExitCode": code})
    return code
