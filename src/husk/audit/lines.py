"""What stands in a line of the audit log: who asked for which change, and what became of it.

No body is ever looked at, and no header but those that name the request and the visitor of a dashboard. Of the query
only values of parameters that hold no secret are told: what is not known is hidden.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import parse_qsl

import msgspec

from husk.api.http.channel import Channel
from husk.api.http.request import Request
from husk.api.observed import Seen

HIDDEN = "(hidden)"
# How much of what a client made up is told.
_LONGEST = 1024
_MOST_PARAMETERS = 64
_READING = frozenset({b"GET", b"HEAD"})
# A GET that changes all the same: what is typed there reaches a container.
_ALSO = frozenset({"/containers/{id}/attach/ws"})
# What names the object where the path does not.
_NAMES = ("name", "fromImage", "t", "repo", "container", "id", "names")
# Parameters that hold no secret. Not here: build arguments, labels and changes (`ENV` among them), addresses that may
# have a password in them (remote, fromSrc, cachefrom, outputs), messages.
_TOLD = frozenset({
    "all", "allPlatforms", "checkpoint", "condition", "container", "copyUIDGID", "cpuperiod", "cpuquota",
    "cpusetcpus", "cpusetmems", "cpushares", "detachKeys", "dockerfile", "filters", "follow", "force", "forcerm",
    "fromImage", "h", "id", "keep-storage", "kill", "limit", "link", "logs", "memory", "memswap", "name", "names",
    "networkmode", "no-prune", "nocache", "noOverwriteDirNonDir", "noprune", "path", "pause", "platform",
    "platforms", "pull", "q", "quiet", "registryAuthFrom", "repo", "reserved-space", "rm", "rollback",
    "rotateManagerUnlockKey", "rotateManagerToken", "rotateWorkerToken", "shmsize", "signal", "size", "squash",
    "stderr", "stdin", "stdout", "stream", "t", "tag", "target", "timeout", "type", "until", "v", "version",
    "volumes", "w",
})  # fmt: skip


class AuditLog:
    """Looks on at requests, and writes a line about each that changes something."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write

    def begun(self, seen: Seen) -> None:
        if seen.request.method not in _READING or seen.route in _ALSO:
            # Now: a client that has gone cannot be asked.
            seen.notes["audit"] = who(seen.request)

    def entered(self, seen: Seen) -> None:
        pass

    def done(self, seen: Seen) -> None:
        if (asked := seen.notes.get("audit")) is not None:
            self._write(line(seen, asked, time.time() - seen.seconds))


def who(request: Request) -> dict[str, object]:
    """A process of this host by its uid and pid; a client elsewhere by its address and certificate."""
    channel = request.connection
    if channel.behind is not None:
        told: dict[str, object] = dict(channel.behind)
        if "dashboard" in told and (visitor := request.header("x-husk-visitor")):
            told["dashboard"] = _short(visitor)
        return told
    return _peer(channel)


def _peer(channel: Channel) -> dict[str, object]:
    if (credentials := channel.credentials) is not None:
        pid, uid, gid = credentials
        return {"uid": uid, "gid": gid, "pid": pid}
    return {"address": channel.peer or "unknown"}


def line(seen: Seen, asked: dict[str, object], begun: float) -> bytes:
    request = seen.request
    query = dict(parse_qsl(request.query_text, keep_blank_values=True)[:_MOST_PARAMETERS])
    told: dict[str, object] = {
        "time": datetime.fromtimestamp(begun, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "request_id": request.id,
        "who": asked,
        "method": _short(request.method.decode(errors="replace")),
        "route": seen.route,
        "path": _short(request.raw_path.decode(errors="replace")),
        "object": _short(seen.argument or next((query[name] for name in _NAMES if query.get(name)), "")),
    }
    if query:
        told["query"] = {_short(name): _short(value) if name in _TOLD else HIDDEN for name, value in query.items()}
    told["status"] = seen.status
    if seen.error:
        told["error"] = _short(seen.error)
    told["seconds"] = round(seen.seconds, 6)
    return msgspec.json.encode(told)


def _short(text: str) -> str:
    """As much of it as a line should hold, and nothing that is no text."""
    return text[:_LONGEST].encode(errors="replace").decode()
