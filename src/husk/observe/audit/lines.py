"""Lines of the audit log: who asked for which change, and what became of it.

A line says what the engine understood: of a parameter that comes twice the value that counts, of a body what its
handler made of it (`powers`). No header is looked at but those that name the request and the visitor of a dashboard. Of
the query only values of parameters that hold no secret are told: what is not known is hidden. What is told is not cut:
the head of a request is bounded (`husk.api.http.limits`), and behind a bound of our own somebody could hide.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

from husk.api.edge.observed import SeenRequest
from husk.api.http.channel import Channel
from husk.api.http.request import Query, Request
from husk.observe.audit.powers import powers
from husk.text.gojson import encode
from husk.text.patterns import pattern

HIDDEN = "(hidden)"
# How many parameters that no operation knows are named; behind those that are known.
_MOST_UNKNOWN = 64
# What is no visible letter of ASCII.
_OTHERS = pattern(r"[^ -~]+")
_READING = frozenset({b"GET", b"HEAD"})
# A GET that changes all the same: what is typed there reaches a container.
_ALSO = frozenset({"/containers/{id}/attach/ws"})
# What names the object where the path does not.
_NAMES = ("name", "fromImage", "t", "repo", "container", "id", "names")
# Those of which the engine takes all values, where it takes the first of the others.
_ALL_COUNT = frozenset({"names", "platforms", "t", "type"})
# The same of one operation alone.
_ALL_COUNT_THERE = frozenset({("/images/load", "platform")})
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

    def begun(self, seen: SeenRequest) -> None:
        if seen.request.method not in _READING or seen.route in _ALSO:
            # Now: a client that has gone cannot be asked.
            seen.notes["audit"] = who(seen.request)

    def entered(self, seen: SeenRequest) -> None:
        pass

    def done(self, seen: SeenRequest) -> None:
        if (asked := seen.notes.get("audit")) is not None:
            self._write(line(seen, asked, time.time() - seen.seconds))


def who(request: Request) -> dict[str, object]:
    """A process of this host by its uid and pid; a client elsewhere by its address and certificate."""
    channel = request.connection
    if channel.behind is not None:
        told: dict[str, object] = dict(channel.behind)
        if "dashboard" in told and (visitor := request.header("x-husk-visitor")):
            told["dashboard"] = _text(visitor)
        return told
    return _peer(channel)


def _peer(channel: Channel) -> dict[str, object]:
    if (credentials := channel.credentials) is not None:
        pid, uid, gid = credentials
        return {"uid": uid, "gid": gid, "pid": pid}
    return {"address": channel.peer or "unknown"}


def line(seen: SeenRequest, asked: dict[str, object], begun: float) -> bytes:
    request = seen.request
    query = request.query
    told: dict[str, object] = {
        "time": datetime.fromtimestamp(begun, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "request_id": request.id,
        "who": asked,
        "method": request.method.decode(errors="replace"),
        "route": seen.route,
        "path": request.raw_path.decode(errors="replace"),
        "object": seen.argument or next((value for name in _NAMES if (value := _value(query, name))), ""),
    }
    if names := query.names():
        told["query"], left_out = _parameters(query, names, seen.route)
        if left_out:
            told["query_left_out"] = left_out
    if meant := powers(request.meant):
        told["asked"] = meant
    told["status"] = seen.status
    if seen.error:
        told["error"] = _text(seen.error)
    told["seconds"] = round(seen.seconds, 6)
    # In ASCII: nothing in a name turns or breaks a line, or means something to a terminal.
    return in_ascii(told)


def in_ascii(told: dict[str, object]) -> bytes:
    """Its JSON, in letters that nothing takes for more than letters. `json` takes ten times as long for much."""
    document = encode(told).decode()
    if document.isascii() and "\x7f" not in document:
        return document.encode()
    return _OTHERS.sub(lambda found: json.dumps(found[0])[1:-1], document).encode()


def _parameters(query: Query, names: list[str], route: str) -> tuple[dict[str, object], int]:
    """Return the parameters to tell, the known ones first, and the number of those that are not even named."""
    known = [name for name in names if name in _TOLD]
    unknown = [name for name in names if name not in _TOLD]
    told: dict[str, object] = {}
    for name in known:
        values = [_text(value) for value in query.file_names(name)]
        all_count = name in _ALL_COUNT or (route, name) in _ALL_COUNT_THERE
        told[name] = values if all_count and len(values) > 1 else values[0]
    return told | dict.fromkeys(map(_text, unknown[:_MOST_UNKNOWN]), HIDDEN), len(unknown[_MOST_UNKNOWN:])


def _value(query: Query, name: str) -> str:
    return _text(query.file_name(name))


def _text(value: str) -> str:
    """The value without what is no text, as names of files may have it."""
    return value.encode(errors="replace").decode()
