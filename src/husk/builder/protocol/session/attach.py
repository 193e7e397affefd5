"""The life of a session: a client's connection comes, builds may ask it, and it goes.

A client that does not answer any more is noticed by asking it now and then how it is, as BuildKit does.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from husk.builder.protocol.session.client import ClientSession
from husk.builder.solver.sessions import Sessions
from husk.errors import InvalidParameter
from husk.rpc.grpc.connection import Bytes, GrpcConnection
from husk.rpc.grpc.status import UNIMPLEMENTED, GrpcError
from husk.rpc.grpc.stream import LARGEST_MESSAGE
from husk.rpc.http2.core import PeerLimits

ID = "x-docker-expose-session-uuid"
SHARED_KEY = "x-docker-expose-session-sharedkey"
METHODS = "x-docker-expose-session-grpc-method"

_HEALTH = "/grpc.health.v1.Health/Check"
# Much data on a slow line may be in the way of one.
_MOST_FAILURES = 2
# A context is sent as fast as it is taken: the client is to hear seldom that it may go on.
_LIMITS = PeerLimits(window=4 << 20)
# Of what a client answers in messages, to all calls at once. Contexts are passed on as they come, and do not count.
_MOST = 16 * LARGEST_MESSAGE

log = logging.getLogger(__name__)


class Heartbeat(NamedTuple):
    """Seconds until a client is asked again, and seconds that it may take to answer."""

    interval: float = 5.0
    slowest_answer: float = 15.0


_USUAL = Heartbeat()


async def attach(
    below: Bytes, headers: Mapping[str, Sequence[str]], sessions: Sessions, heartbeat: Heartbeat = _USUAL
) -> None:
    """Serve builds with a client's connection until it ends. `headers` have lower-case names."""
    id = "".join(headers.get(ID, ()))
    if not id:
        raise InvalidParameter(f"a session needs the header {ID}")
    async with GrpcConnection(below, client=True, limits=_LIMITS, most=_MOST) as connection:
        session = ClientSession(connection, id, "".join(headers.get(SHARED_KEY, ())), headers.get(METHODS, ()))
        await sessions.add(session)
        try:
            await _until_it_ends(connection, id, heartbeat)
        finally:
            sessions.remove(session)


async def _until_it_ends(connection: GrpcConnection, id: str, heartbeat: Heartbeat) -> None:
    failures = 0
    while not connection.closed and failures < _MOST_FAILURES:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(heartbeat.interval):
                await connection.wait_closed()
                return
        failures = 0 if await _is_well(connection, heartbeat.slowest_answer) else failures + 1
    if failures:
        log.warning("session %s: the client does not answer any more", id)


async def _is_well(connection: GrpcConnection, patience: float) -> bool:
    try:
        await connection.unary(_HEALTH, b"", timeout=patience)
    except GrpcError as error:
        return error.code == UNIMPLEMENTED
    return True
