"""Is the daemon there? What every client asks first, in a module of its own that loads little."""

from husk.api.call import Call
from husk.api.http.response import Answer, Response, fields
from husk.api.router import read

# 2 tells the docker command to build by BuildKit's protocol.
BUILDER_VERSION = "2"

_PING = {
    swarm: fields(
        {
            "Builder-Version": BUILDER_VERSION,
            "Cache-Control": "no-cache, no-store, must-revalidate",
            "Content-Type": "text/plain; charset=utf-8",
            "Pragma": "no-cache",
            "Swarm": swarm,
        }
    )
    for swarm in ("locked", "active/manager", "active/worker", "inactive", "pending")
}


def _ping_fields(call: Call) -> bytes:
    return _PING[call.engine.swarm_state] + call.common.fields


def ping(call: Call) -> Answer:
    return Response(200, b"OK", _ping_fields(call))


def ping_head(call: Call) -> Answer:
    return Response(200, b"", _ping_fields(call))


ROUTES = (
    read("/_ping", ping),
    read("/_ping", ping_head, method="HEAD"),
)
