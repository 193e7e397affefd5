"""The server of clients: a handler, the crowd of those who are connected, and the refusal of what is no request."""

import asyncio
import logging

from husk.aio.tasks import Tasks
from husk.api.http.connection import Handler, Http2Handler, HttpConnection, Refusal
from husk.api.http.crowd import Crowd
from husk.api.http.errors import BadRequest
from husk.api.http.limits import HttpLimits

log = logging.getLogger(__name__)


def plain_refusal(error: BadRequest) -> tuple[bytes, bytes]:
    """(headers, body) of the answer to what is no request."""
    return b"Content-Type: text/plain; charset=utf-8\r\n", f"{error.status}: {error.reason}\n".encode()


class Server:
    """Serves requests with `handler`. Called, it makes the protocol of one more connection."""

    def __init__(
        self,
        handler: Handler,
        limits: HttpLimits | None = None,
        refusal: Refusal = plain_refusal,
        http2: Http2Handler | None = None,
    ) -> None:
        """`http2` takes connections that begin with HTTP/2; without it they are refused."""
        self._handler = handler
        self._http2 = http2
        self._refusal = refusal
        self._tasks = Tasks()
        self.crowd = Crowd(limits or HttpLimits())

    def __call__(self) -> HttpConnection:
        return HttpConnection(self._handler, self.crowd, self._tasks, self._refusal, self._http2)

    async def close(self, grace: float) -> None:
        """Give what is under way that many seconds, then end it all."""
        self.crowd.finish()
        try:
            async with asyncio.timeout(grace):
                await self.crowd.quiet()
        except TimeoutError:
            log.warning("%d clients are cut off", len(self.crowd))
        await self._tasks.cancel_all()
        await self.crowd.close()
