"""`husk doctor CONTAINER`: ask the engine all that tells why a container does not run, and its last lines."""

import asyncio
import os

from husk.cli.kit.place import HostChoice
from husk.client.address import resolve
from husk.client.client import Client
from husk.client.container import Container
from husk.client.diagnosis import Reason, examine, explain, last_lines, listeners
from husk.errors import HuskError, NotFound

# What a script ends with whose interpreter is not there: crun, dockerd and shells differ.
_NOT_RUN = (1, 126, 127)
_PATIENCE = 5.0
_LARGEST_TABLE = 1 << 20
# A header of a tar archive, and the begin of a script behind it.
_HEADER, _BEGIN = 512, 1024


async def why(engine: Client, name: str, place: HostChoice) -> tuple[list[Reason], list[str]]:
    """The reasons, and the container's last lines; NotFound where there is no such container."""
    container = await engine.containers.get(name)
    script, interpreter = await _interpreter(container)
    facts = (await examine(engine, container))._replace(
        gone=gone(container, place), listening=await _listening(container), script=script, interpreter=interpreter
    )
    return explain(facts), await last_lines(container)


async def _listening(container: Container) -> list[tuple[str, int]] | None:
    """Ask the container where it listens; None where it has no program that can tell, or publishes no port."""
    ports = (container.attrs.get("NetworkSettings") or {}).get("Ports") or {}
    if not (container.attrs.get("State") or {}).get("Running") or not any(ports.values()):
        return None
    found = b""
    try:
        async with asyncio.timeout(_PATIENCE):
            async for _, data in container.exec(["cat", "/proc/net/tcp", "/proc/net/tcp6"], user="0"):
                found += data
                if len(found) > _LARGEST_TABLE:
                    break
    except (HuskError, TimeoutError):
        return None
    text = found.decode(errors="replace")
    return list(listeners(text)) if "local_address" in text else None


async def _interpreter(container: Container) -> tuple[str, str]:
    """Return a script and its interpreter where the container did not start because that is not there."""
    state, config = container.attrs.get("State") or {}, container.attrs.get("Config") or {}
    command = [*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())]
    if state.get("ExitCode") not in _NOT_RUN or not command or not str(command[0]).startswith("/"):
        return "", ""
    script, interpreter, begin = str(command[0]), "", b""
    try:
        async for piece in container.get_archive(script):
            begin += piece
            if len(begin) >= _BEGIN:
                break
        line = begin[_HEADER:_BEGIN].split(b"\n", 1)[0]
        if not line.startswith(b"#!"):
            return "", ""
        interpreter = line[2:].decode(errors="replace").lstrip().split(" ")[0]
        if not interpreter.endswith("\r"):
            await container.stat(interpreter)
            return "", ""
    except NotFound:
        return (script, interpreter) if interpreter else ("", "")
    except HuskError:
        return "", ""
    return script, interpreter


def gone(container: Container, place: HostChoice) -> list[str]:
    """Sources of bind mounts that are not there; nothing where the engine may be on another host."""

    if not resolve(place.host, place.context).url.startswith("unix://"):
        return []
    binds = [each for each in container.attrs.get("Mounts") or () if each.get("Type") == "bind"]
    return [str(each["Source"]) for each in binds if not os.path.lexists(str(each.get("Source")))]
