"""Answers GET /metrics on an address of its own, as dockerd does: Prometheus' text, for whoever reaches the port."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from husk.api.edge.listen import listen
from husk.api.http.limits import HttpLimits
from husk.api.http.request import Request
from husk.api.http.response import Answer, Response, fields
from husk.api.http.server import Server
from husk.composition import Engine
from husk.observe.metrics.facts import FactCollector, Gathered, gather
from husk.observe.metrics.families import Families
from husk.observe.metrics.loop_delay import LoopDelay
from husk.observe.metrics.observe import EngineMetrics

_GRACE = 1.0
# Whoever reaches the port may ask: he costs few descriptors, which the engine needs for its containers.
LIMITS = HttpLimits(
    head_size=16 << 10,
    head_lines=64,
    head_time=20.0,
    idle_time=300.0,
    connections=128,
    remote_connections=128,
    peer_connections=64,
    makes_room=True,
)
_TEXT = fields({"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"})
_METRICS = fields({"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


class Exporter:
    """Makes the text, for one who asks at a time: the next one gets what is true then."""

    def __init__(self, engine: Engine, families: Families, limit: int) -> None:
        self._engine = engine
        self._families = families
        self._facts = FactCollector(engine, limit)
        families.registry.register(self._facts)
        self._turn = asyncio.Lock()

    async def handle(self, request: Request) -> Answer:
        if request.path != "/metrics":
            return Response(404, b"404 page not found\n", _TEXT)
        if request.method not in (b"GET", b"HEAD"):
            return Response(405, b"Method Not Allowed\n", _TEXT + fields({"Allow": "GET, HEAD"}))
        async with self._turn:
            self._families.scrapes.inc()
            gathered = gather(self._engine)
            body = await asyncio.to_thread(self._text, gathered)
        return Response(200, body, _METRICS)

    def _text(self, gathered: Gathered) -> bytes:
        self._facts.look(gathered)
        return generate_latest(self._families.registry)


@contextlib.asynccontextmanager
async def serve(engine: Engine, families: Families, address: str, limit: int) -> AsyncIterator[str]:
    """Measure, and answer on `address` (`host:port`), until the context ends; gives the address in use. Of at most
    `limit` containers their own numbers are told. SystemFault when nobody can listen there."""
    exporter = Exporter(engine, families, limit)
    server = Server(exporter.handle, LIMITS)
    ((listener, told),) = listen(f"tcp://{address}", "", flag="--metrics-addr")
    door = await asyncio.get_running_loop().create_server(server, sock=listener)
    engine.watch.watchers += (EngineMetrics(families),)
    engine.events.observe(lambda event: families.events.inc())
    delay = LoopDelay(families.loop_delay.observe)
    try:
        yield told.removeprefix("tcp://")
    finally:
        delay.close()
        door.close()
        await server.close(_GRACE)
