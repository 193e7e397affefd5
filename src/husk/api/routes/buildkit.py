"""BuildKit's protocol: `POST /grpc` for a client's calls, `POST /session` for ours to the client."""

from husk.api.buildkit.doors import BuildkitServer
from husk.api.buildkit.engine_backend import EngineBackend
from husk.api.buildkit.session.attach import attach
from husk.api.call import Call
from husk.api.http import h2c
from husk.api.http.response import Answer, Unanswered
from husk.api.router import Route, stream
from husk.engine.engine import Engine
from husk.errors import InvalidParameter


async def grpc(call: Call) -> Answer:
    _require_upgrade(call)
    server = await server_of(call.engine)
    await server.serve(h2c.upgrade(call.request))
    return Unanswered()


async def session(call: Call) -> Answer:
    _require_upgrade(call)
    server = await server_of(call.engine)
    await server.session(h2c.upgrade(call.request), call.request.all_headers())
    return Unanswered()


async def server_of(engine: Engine) -> BuildkitServer:
    return BuildkitServer(EngineBackend(await engine.builder.get(), engine.system.info().engine_id), attach)


def _require_upgrade(call: Call) -> None:
    if not h2c.asked_for(call.request):
        raise InvalidParameter("this operation needs a connection that is upgraded to h2c")


ROUTES: tuple[Route, ...] = (
    stream("POST", "/grpc", grpc),
    stream("POST", "/session", session),
)
