"""The ping that every client sends first, in a module of its own that loads little."""

from husk.api.calls.call import Call
from husk.api.calls.router import read
from husk.api.http.response import Answer, Response, fields

# 2 tells the docker command to build by BuildKit's protocol, 1 to send a context to the classic builder.
_VERSIONS = {True: "2", False: "1"}

_PING = {
    (swarm, buildkit): fields(
        {
            "Builder-Version": version,
            "Cache-Control": "no-cache, no-store, must-revalidate",
            "Content-Type": "text/plain; charset=utf-8",
            "Pragma": "no-cache",
            "Swarm": swarm,
        }
    )
    for swarm in ("locked", "active/manager", "active/worker", "inactive", "pending")
    for buildkit, version in _VERSIONS.items()
}


def _ping_fields(call: Call) -> bytes:
    engine = call.engine
    return _PING[engine.swarm_state, engine.config.features.get("buildkit", True)] + call.common.fields


def ping(call: Call) -> Answer:
    return Response(200, b"OK", _ping_fields(call))


def ping_head(call: Call) -> Answer:
    return Response(200, b"", _ping_fields(call))


ROUTES = (
    read("/_ping", ping),
    read("/_ping", ping_head, method="HEAD"),
)
