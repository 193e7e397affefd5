"""The server of clients: a handler, the crowd of those who are connected, and the refusal of what is no request.

One client's connection: heads come in, handlers are called, answers go out in the same order.

    idle ──head──> busy ──answer──> idle …            a request that came meanwhile waits behind the one that is served
                     ├── hijacked: the bytes are the handler's, both ways, to the end
                     └── lingering: the last answer is said; the client may read it while what it sends is forgotten

A client that sends no more has left, or only half-closed: on a Unix socket, and behind a request to upgrade, it still
gets its answer. Whether it then leaves for good is watched.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from husk.aio.tasks import Tasks
from husk.api.http import h2c
from husk.api.http.channel import Channel, Taker
from husk.api.http.crowd import Crowd
from husk.api.http.errors import BadRequest, Http2Preface
from husk.api.http.limits import HttpLimits
from husk.api.http.parser import HeadParser
from husk.api.http.request import Request
from husk.api.http.response import CLOSE, STATUS_LINES, Answer, Response, StreamedResponse
from husk.api.http.upload import UploadedBody
from husk.watch import serving

log = logging.getLogger(__name__)

# What may wait behind the request that is served.
_MOST_AHEAD = 1 << 18
# Seconds for which requests that came together are served, before others have their turn.
_TURN = 0.01
# What of a body that nobody wanted is read for the sake of the next request.
_MOST_DISCARDED = 1 << 18

# What answers requests: at once, or with a coroutine that ends with its client, or with a task that goes on.
Handler = Callable[[Request], "Answer | Coroutine[Any, Any, Answer] | asyncio.Task[Answer]"]
# What takes a connection that begins with HTTP/2 (`h2c.begin`).
Http2Handler = Callable[[Request], Coroutine[Any, Any, Answer]]
# Headers and body of the answer to what is no request.
Refusal = Callable[[BadRequest], tuple[bytes, bytes]]


class HttpConnection(Channel):
    """The protocol of one client."""

    def __init__(
        self, handler: Handler, crowd: Crowd, tasks: Tasks, refusal: Refusal, http2: Http2Handler | None = None
    ) -> None:
        super().__init__()
        self._handler = handler
        self._http2 = http2
        self._crowd = crowd
        self._tasks = tasks
        self._refusal = refusal
        self._limits = crowd.limits
        self.linger_time = crowd.limits.linger_time
        self._parser = HeadParser(crowd.limits, crowd.known_heads)
        self._request: Request | None = None
        self._body: UploadedBody | None = None
        self._task: asyncio.Task[Answer] | None = None
        self._taker: Taker | None = None
        self._ahead: list[bytes] = []
        self._ahead_size = 0
        self._discarded = 0
        # Since when the client owes us something: the rest of a head, or a request. None while it waits for us.
        self._waiting_since: float | None = None
        self._head_begun = True
        self._admitted = False
        self._closing = False
        self._lingering = False
        # Others have their turn, though more requests are here.
        self._resting = False

    # what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._waiting_since = time.monotonic()
        self._admitted = self._crowd.admit(self)
        if not self._admitted:
            self._crowd.turned_away(self)
            self._refuse(BadRequest("too many connections", 503))

    def data_received(self, data: bytes) -> None:
        if self._taker is not None:
            if self._body is not None:
                self._body.feed(data)
                data = self._behind_body()
            if data:
                self._taker.feed(data)
        elif self._body is not None:
            self._body.feed(data)
            if self._request is None:
                self._discard_body()
                if self._can_serve:
                    self._serve(self._take_ahead())
        elif self._lingering:
            return
        elif self._request is not None or self.write_paused or self._resting:
            self._keep(data)
        else:
            self._serve(data)

    def eof_received(self) -> bool:
        self.ended = True
        if self._taker is not None:
            self._taker.end_input()
        elif self._lingering or not self._owes_answers:
            return False
        elif not (self.is_local or (self._request is not None and self._request.has("upgrade"))):
            return False  # over TCP a client that leaves looks like one that half-closes, and most leave
        elif self._body is not None:
            self._body.cut_off()
        self.watch_hangup()
        return True

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._can_serve:
            self._serve(self._take_ahead())

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = self.ended = True
        self._waiting_since = None
        if self._writable is not None:
            self._writable.set()
        self.forget_hangup()
        if self._body is not None:
            if rest := self.rest_of_input():
                self._body.feed(rest)
            self._body.cut_off()
        if self._taker is not None:
            self._taker.end_input()
        if self._task is not None:
            self._task.cancel()
        if self._admitted:
            self._admitted = False
            self._crowd.leave(self)
        else:
            self._crowd.forget(self)

    # requests

    def _serve(self, data: bytes) -> None:
        """Serve what has come; what cannot be answered at once is gone on with when it is."""
        parser = self._parser
        until = 0.0
        while True:
            try:
                head = parser.feed(data)
            except Http2Preface as error:
                self._begin_http2(error)
                return
            except BadRequest as error:
                self._refuse(error)
                return
            if head is None:
                if self.ended:
                    self.close()
                elif parser.begun and not self._head_begun:
                    # From the first byte of a head its time runs, however slowly the rest drips in.
                    self._head_begun = True
                    self._waiting_since = time.monotonic()
                return
            self._waiting_since = None
            self._head_begun = False
            self.answer_begun = False
            request = self._request = Request(head, self)
            if head.has_body:
                self._begin_body(request)
            if head.expect and head.expect != b"100-continue":
                self._refuse(BadRequest("Expectation Failed", 417))
                return
            # What the handler logs, and the tasks and threads that it starts, has the request's id. One to be read
            # is mostly answered at once, without a word: it enters where it waits, or fails.
            if head.method != b"GET":
                request.enter()
            try:
                answer = self._handler(request)
            except Exception as error:
                request.enter()
                log.error("a handler failed", exc_info=error)
                self._refuse(BadRequest("Internal Server Error", 500))
                answer = None
            if not isinstance(answer, Answer):
                if answer is not None:
                    self._wait_for(answer)
                serving.set(None)  # connections may share this context
                return
            if request.serving is not None:
                request.leave()
            if not self._answer(request, answer) or not (self._ahead or parser.begun or self.ended):
                return
            data = self._take_ahead()
            now = time.monotonic()
            if not until:
                until = now + _TURN
            elif now >= until:
                self._rest(data)
                return

    def _rest(self, data: bytes) -> None:
        """Go on with that when others had their turn: many small requests that come together may be much work."""
        self._resting = True
        if data:
            self._keep(data)
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._resting = False
        if self._can_serve:
            self._serve(self._take_ahead())

    @property
    def _owes_answers(self) -> bool:
        """True while a request of the client is not answered yet, or may be here unread."""
        if self._request is not None or self._ahead:
            return True
        # The parser may have whole requests.
        return self._body is None and (self.write_paused or self._resting)

    def _begin_http2(self, error: Http2Preface) -> None:
        if self._http2 is None:
            self._refuse(error)
            return

        self._waiting_since = None
        request = self._request = Request(h2c.preface(), self)
        self._wait_for(self._http2(request))
        serving.set(None)

    def _begin_body(self, request: Request) -> None:
        self._discarded = 0
        self._body = request.body = UploadedBody(self, request.head)
        if rest := self._parser.rest:
            self._body.feed(rest)

    def _wait_for(self, answer: "Coroutine[Any, Any, Answer] | asyncio.Task[Answer]") -> None:
        """A coroutine ends with its client; a task is somebody else's, and goes on."""
        assert self._request is not None
        self._request.enter()
        if isinstance(answer, asyncio.Task):
            answer.add_done_callback(self._answered)
            return
        self._task = self._tasks.spawn(answer, "request", awaited=True)
        self._task.add_done_callback(self._answered)

    def _answered(self, task: "asyncio.Task[Answer]") -> None:
        self._task = None
        request = self._request
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a handler failed", exc_info=error)
        if request is not None:
            request.leave()
        if error is not None or task.cancelled():
            self.close()
            return
        if self.gone or request is None:
            return
        if self._answer(request, task.result()):
            self._serve(self._take_ahead())

    def _answer(self, request: Request, answer: Answer) -> bool:
        """Send it; whether the connection can be gone on with now."""
        if isinstance(answer, Response):
            keep_alive = not answer.close and self.will_keep_alive()
            head, body = answer.encode(request, self._crowd.date(), keep_alive)
            if body:
                self._transport.writelines([head, body])
            else:
                self._transport.write(head)
        elif isinstance(answer, StreamedResponse):
            if not answer.ended:
                with contextlib.suppress(ConnectionError):
                    answer.finish()
            keep_alive = answer.keep_alive
        else:
            if self._taker is None:
                self.close()
            return False
        body_left = self._body
        self._request = None
        if not keep_alive or self._closing or self.gone:
            if body_left is None and not self._ahead:
                self.close()
            else:
                self._linger()
            return False
        if body_left is not None:
            self._discard_body()
        else:
            self._waiting_since = time.monotonic()
        return self._can_serve

    def will_keep_alive(self) -> bool:
        request = self._request
        if self._closing or request is None or not request.head.keep_alive:
            return False
        if self.ended and not self._ahead and not self._parser.begun:
            return False
        # A client that was not asked for its body may send it or not; what a worker reads is nobody's to go on with.
        body = request.body
        return body is None or not (body.expected or body.with_worker or body.broken)

    def _discard_body(self) -> None:
        """Nobody wants the rest of a body: read it, if it is not much, for a request may follow."""
        body = self._body
        assert body is not None
        try:
            self._discarded += body.discard()
        except BadRequest:
            self._linger()
            return
        if self._body is not None:
            if self._discarded > _MOST_DISCARDED:
                self._linger()
            else:
                self.let_input_go_on()
                self._waiting_since = time.monotonic()
        else:
            self._waiting_since = time.monotonic()

    @property
    def _can_serve(self) -> bool:
        """True while nothing is between us and the next request."""
        waited_for = self._request or self._body or self._taker
        return not (waited_for is not None or self._lingering or self.write_paused or self._resting or self.gone)

    def stamp(self) -> bytes:
        request, date = self._request, self._crowd.date()
        return date if request is None else date + request.id_field

    def body_ended(self, behind: bytes) -> None:
        self._body = None
        if behind:
            self._keep(behind)
        self.let_input_go_on()

    def _keep(self, data: bytes) -> None:
        self._ahead.append(data)
        self._ahead_size += len(data)
        if self._ahead_size > _MOST_AHEAD:
            self.hold_input()

    def _take_ahead(self) -> bytes:
        if not self._ahead:
            return b""
        data = b"".join(self._ahead)
        self._ahead.clear()
        self._ahead_size = 0
        self.let_input_go_on()
        return data

    def _refuse(self, error: BadRequest) -> None:
        """Say what is wrong, and no more: where the next request begins nobody knows."""
        log.debug("a client was refused: %s", error.reason)
        if isinstance(error, Http2Preface):
            self._transport.write(h2c.GO_AWAY)
        else:
            fields, body = self._refusal(error)
            line = STATUS_LINES.get(error.status, STATUS_LINES[400]) + fields + self.stamp() + CLOSE
            self._transport.write(b"%bContent-Length: %d\r\n\r\n%b" % (line, len(body), body))
        self._request = None
        self._linger()

    def take(self, taker: Taker, head: bytes) -> bytes:
        self.begin_answer(head)
        self._taker = taker
        begun = self._parser.rest
        if self._body is not None and self._body.expected:
            self._body = None  # the client was not asked for it, and sends none
        if self._body is not None:
            begun += self._behind_body()
        return begun + self._take_ahead()

    def _behind_body(self) -> bytes:
        """Drop a body that nobody wanted to read, and return the input behind it; the body itself is no input."""
        assert self._body is not None
        try:
            self._body.discard()
        except BadRequest as error:
            log.debug("a client was refused: %s", error.reason)
            self._body = None
            self.abort()
        self.let_input_go_on()
        return self._take_ahead() if self._body is None else b""

    # ends

    def overdue(self, now: float) -> bool:
        limits = self._limits
        since = self._waiting_since
        return since is not None and now - since > (limits.head_time if self._head_begun else limits.idle_time)

    @property
    def waiting(self) -> bool:
        return self._waiting_since is not None or self._lingering

    @property
    def busy(self) -> bool:
        return self._request is not None or self._taker is not None

    def finish(self) -> None:
        self._closing = True
        if not self.busy:
            self.close()

    def give_up_on(self) -> None:
        if self._head_begun and self._parser.begun:
            self._refuse(BadRequest("Request Timeout", 408))
        else:
            self.close()

    def _linger(self) -> None:
        """Everything is said: let the client read it all before the connection goes.

        Closing while bytes of the client are unread makes the kernel throw away what the client has not read yet.
        """
        self._lingering = True
        self._input_lent = False
        self._crowd.settled()
        self._body = None
        self._waiting_since = None
        if self.ended or not self.end_output():
            self.close()
            return
        self.let_input_go_on()
        asyncio.get_running_loop().call_later(self.linger_time, self.abort)


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
