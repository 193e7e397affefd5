"""An engine on another machine, reached by `ssh`: `system dial-stdio` over there passes the bytes on."""

import asyncio
import socket
from urllib.parse import urlsplit

from husk.client.http import Connection
from husk.errors import InvalidParameter, Unavailable

# The shell over there may be any: sh chooses which of both commands is there.
_THERE = "sh -c 'command -v husk >/dev/null && exec husk system dial-stdio; exec docker system dial-stdio'"
_PIECE = 1 << 18


def arguments(url: str) -> list[str]:
    """The command for `ssh://[USER@]HOST[:PORT]`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidParameter(f"invalid address {url!r}: {error}") from None
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.password:
        raise InvalidParameter(f"invalid address {url!r}: expected ssh://[USER@]HOST[:PORT]")
    who = ["-l", parts.username] if parts.username else []
    where = ["-p", str(port)] if port else []
    return ["ssh", *who, *where, "-o", "ConnectTimeout=30", "-T", "--", parts.hostname, _THERE]


async def dial(url: str) -> Connection:
    """A connection through a new `ssh`, which ends when it is closed. What ssh complains about goes to our stderr."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            await asyncio.create_subprocess_exec(
                *arguments(url), stdin=theirs.fileno(), stdout=theirs.fileno(), start_new_session=True
            )
        except FileNotFoundError:
            ours.close()
            raise Unavailable(f"cannot reach an engine at {url}: there is no `ssh` command here; install it") from None
    return Connection(*await asyncio.open_unix_connection(sock=ours, limit=_PIECE))
