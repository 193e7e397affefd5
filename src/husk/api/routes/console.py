"""A container's output and input: logs, and attaching to its terminal or streams."""

import asyncio

from husk.aio.tasks import Tasks
from husk.api.calls.call import Call
from husk.api.calls.errors import status_of
from husk.api.calls.router import stream
from husk.api.http.hijack import HijackedStream, hijack
from husk.api.http.response import Answer, Response, Unanswered, fields
from husk.api.streams.closing import closing
from husk.api.streams.detach import DetachMatcher, parse_keys
from husk.api.streams.framing import MULTIPLEXED_STREAM, RAW_STREAM, LogEncoder, frame
from husk.api.versioning import Version
from husk.engine.containers.attach import Attachment
from husk.engine.logs.attributes import details
from husk.engine.logs.records import LogQuery
from husk.errors import HuskError, InvalidParameter

WITH_MULTIPLEXED_TYPE = Version(1, 42)


def content_type(tty: bool, version: Version) -> str:
    return RAW_STREAM if tty or version < WITH_MULTIPLEXED_TYPE else MULTIPLEXED_STREAM


def hijacked_type(call: Call, tty: bool) -> str:
    """dockerd tells only clients that ask to upgrade whether there will be frames."""
    return content_type(tty, call.version) if call.request.has("upgrade") else RAW_STREAM


def log_query(call: Call) -> LogQuery:
    stdout, stderr = call.flag("stdout"), call.flag("stderr")
    if not (stdout or stderr):
        raise InvalidParameter("Bad parameters: you must choose at least one stream")
    return LogQuery(
        stdout=stdout,
        stderr=stderr,
        follow=call.flag("follow"),
        tail=_tail(call.text("tail")),
        since_ns=call.timestamp("since"),
        until_ns=call.timestamp("until"),
    )


async def logs(call: Call) -> Answer:
    query = log_query(call)
    container = call.engine.containers.find(call.argument)
    tty = container.config.tty
    attributes = f"{details(container)} ".encode() if call.flag("details") else b""
    encoder = LogEncoder(multiplexed=not tty, timestamps=call.flag("timestamps"), attributes=attributes)
    batches = call.engine.containers.logs(call.argument, query, encoder)
    response = call.stream(content_type(tty, call.version))
    async with closing(batches):
        async for data in batches:
            await response.write(data)
    await response.write_eof()
    return response


def _tail(text: str) -> int | None:
    """Return the number of lines that are asked for; None for all, which any other text means, as dockerd has it."""
    digits = text.removeprefix("+")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


async def attach(call: Call) -> Answer:
    try:
        keys = parse_keys(call.text("detachKeys"))
        attachment = await call.engine.containers.attach(
            call.argument,
            stdin=call.flag("stdin"),
            stdout=call.flag("stdout"),
            stderr=call.flag("stderr"),
            logs=call.flag("logs"),
            stream=call.flag("stream"),
        )
    except HuskError as error:
        return _refusal(error)
    return await talk(call, attachment, DetachMatcher(keys) if attachment.tty else None)


def _refusal(error: HuskError) -> Response:
    """dockerd has left HTTP by then: it says why in plain text, and hangs up."""
    body = f"{error.message}\r\n".encode()
    return Response(status_of(error), body, fields({"Content-Type": RAW_STREAM}), close=True)


async def talk(call: Call, attachment: Attachment, detach: DetachMatcher | None) -> Answer:
    """Answer, then be the container's line on the client's connection until one of them is done."""
    try:
        connection = hijack(call.request, call.fields(hijacked_type(call, attachment.tty)))
        try:
            await converse(connection, attachment, detach)
            await connection.finish()
        except ConnectionError:
            connection.abort()
        except BaseException:
            # The answer has been sent: closing is all that is left to say.
            connection.abort()
            raise
    finally:
        await attachment.close()
    return Unanswered()


async def converse(connection: HijackedStream, attachment: Attachment, detach: DetachMatcher | None) -> None:
    """Carry bytes both ways until the output ends or the user detaches. The end of input ends nothing."""
    tasks = Tasks()
    output = tasks.spawn(_send(connection, attachment), "attach output", awaited=True)
    input = tasks.spawn(_receive(connection, attachment, detach), "attach input", awaited=True)
    dropped = tasks.spawn(attachment.dropped(), "attach dropped", awaited=True)
    try:
        await asyncio.wait({output, input, dropped}, return_when=asyncio.FIRST_COMPLETED)
        if not output.done() and input.done() and not input.result():
            await asyncio.wait({output, dropped}, return_when=asyncio.FIRST_COMPLETED)
        if output.done():
            await output
        elif dropped.done():
            raise ConnectionAbortedError("the client does not read")
    finally:
        await tasks.cancel_all()
        for task in (output, input, dropped):
            # A client that leaves ends both this and its output: then nobody asks any more why the output ended.
            _ = task.cancelled() or task.exception()


async def _send(connection: HijackedStream, attachment: Attachment) -> None:
    async with closing(attachment.output()) as output:
        async for source, data in output:
            await connection.write(data if attachment.tty else frame(source, data))


async def pass_on(data: bytes, attachment: Attachment, detach: DetachMatcher | None) -> bool:
    """Give the container what the user typed; True when those were the detach keys."""
    detached = False
    if detach is not None:
        data, detached = detach.feed(data)
    if data:
        await attachment.write(data)
    if detached:
        attachment.detached()
    return detached


async def _receive(connection: HijackedStream, attachment: Attachment, detach: DetachMatcher | None) -> bool:
    """True when the user typed the detach keys."""
    try:
        while data := await connection.read():
            if await pass_on(data, attachment, detach):
                return True
        if detach is not None and (held := detach.flush()):
            await attachment.write(held)
        await attachment.close_stdin()
    except ConnectionError:
        pass  # the container takes no more input; its output may still come
    return False


ROUTES = (
    stream("GET", "/containers/{id}/logs", logs),
    stream("POST", "/containers/{id}/attach", attach),
)
