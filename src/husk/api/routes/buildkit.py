"""BuildKit's protocol: `POST /grpc` for a client's calls, `POST /session` for ours to the client."""

from husk.api.calls.call import Call, Common
from husk.api.calls.router import Route, stream
from husk.api.http import h2c
from husk.api.http.response import Answer, Unanswered
from husk.builder.protocol.server import BuildkitServer
from husk.builder.protocol.session.attach import attach
from husk.builder.protocol.worker import worker_record
from husk.errors import InvalidParameter


async def grpc(call: Call) -> Answer:
    await _require_upgrade(call)
    server = await server_of(call.common)
    await server.serve(h2c.upgrade(call.request))
    return Unanswered()


async def session(call: Call) -> Answer:
    await _require_upgrade(call)
    server = await server_of(call.common)
    await server.session(h2c.upgrade(call.request), call.request.all_headers())
    return Unanswered()


async def server_of(common: Common) -> BuildkitServer:
    """One for all connections: it remembers the builds that were."""
    engine = common.engine
    builder = await engine.builder.get()
    history = await common.history()
    if common.buildkit is None:
        id, networks = engine.system.info().engine_id, engine.networks
        common.buildkit = BuildkitServer(
            builder, lambda: worker_record(builder, id, networks.host_gateways), attach, history
        )
    return common.buildkit


async def _require_upgrade(call: Call) -> None:
    if not h2c.asked_for(call.request):
        protocol = call.request.header("upgrade")
        raise InvalidParameter(f"protocol {protocol} not supported" if protocol else "no upgrade proto in request")
    # Node's clients send a body without anything in it: what is behind its end is HTTP/2.
    async for _ in call.upload(1):
        raise InvalidParameter("a request to upgrade to h2c has no body")


ROUTES: tuple[Route, ...] = (
    stream("POST", "/grpc", grpc),
    stream("POST", "/session", session),
)
