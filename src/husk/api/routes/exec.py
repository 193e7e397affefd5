"""Execs: run another process in a container, talk to it, ask how it ended."""

from msgspec import UNSET

from husk.api.calls.adapting import WITH_CONSOLE_SIZE
from husk.api.calls.call import Call
from husk.api.calls.router import change, read, stream
from husk.api.http.hijack import hijack
from husk.api.http.response import Answer, Unanswered
from husk.api.routes.console import hijacked_type, talk
from husk.api.routes.containers import dimension
from husk.api.streams.detach import DetachMatcher, parse_keys
from husk.api.streams.framing import frame
from husk.api.types.exec import ExecCreated, ExecInspect, ExecStart, ProcessConfig
from husk.engine.containers.exec import CannotRun
from husk.engine.logs.records import STDOUT
from husk.engine.model.container_config import ExecConfig
from husk.text.gojson import Reader

_config = Reader(ExecConfig)
_start = Reader(ExecStart)


async def create(call: Call) -> Answer:
    config = await call.body(_config)
    call.request.meant = config
    parse_keys(config.detach_keys, "escape")
    if config.user and config.cmd:
        await call.engine.execs.check_user(call.argument, config.user)
    exec_id = await call.engine.execs.create(call.argument, config)
    call.request.meant = call.engine.execs.inspect(exec_id)
    return call.json(ExecCreated(id=exec_id), status=201)


async def start(call: Call) -> Answer:
    request = await call.body(_start)
    execs, exec_id = call.engine.execs, call.argument
    call.request.meant = execs.inspect(exec_id)
    if request.detach:
        await execs.start(exec_id, attach=False)
        return call.empty(200)
    size = request.console_size if request.tty and call.version >= WITH_CONSOLE_SIZE else None
    try:
        attachment = await execs.start(exec_id, attach=True, tty=request.tty, size=size)
    except CannotRun as error:
        return await _say(call, error.message + "\r\n", request.tty)
    config = execs.inspect(exec_id).config
    return await talk(call, attachment, DetachMatcher(parse_keys(config.detach_keys)) if config.tty else None)


async def _say(call: Call, text: str, tty: bool) -> Answer:
    """dockerd has taken the connection before it knows that there is no process: the reason is all the output."""
    connection = hijack(call.request, call.fields(hijacked_type(call, tty)))
    data = text.encode()
    try:
        await connection.write(data if tty else frame(STDOUT, data))
        await connection.finish()
    except ConnectionError:
        connection.abort()
    return Unanswered()


async def resize(call: Call) -> Answer:
    await call.engine.execs.resize(call.argument, dimension(call, "h"), dimension(call, "w"))
    return call.empty(200)


async def remove(call: Call) -> Answer:
    """Husk's own: a program that is cancelled takes its processes with it."""
    await call.engine.execs.remove(call.argument)
    return call.empty(204)


def inspect(call: Call) -> Answer:
    record = call.engine.execs.inspect(call.argument)
    config = record.config
    return call.json(
        ExecInspect(
            id=record.id,
            running=record.running,
            exit_code=record.exit_code,
            process_config=ProcessConfig(
                tty=config.tty,
                entrypoint=config.cmd[0],
                arguments=config.cmd[1:],
                privileged=config.privileged,
                user=config.user or UNSET,
            ),
            open_stdin=config.attach_stdin,
            open_stderr=config.attach_stderr,
            open_stdout=config.attach_stdout,
            can_remove=False,
            container_id=record.container_id,
            detach_keys=parse_keys(config.detach_keys) if config.detach_keys else b"",
            pid=record.pid,
        )
    )


ROUTES = (
    change("POST", "/containers/{id}/exec", create),
    stream("POST", "/exec/{id}/start", start),
    change("POST", "/exec/{id}/resize", resize),
    read("/exec/{id}/json", inspect),
    change("DELETE", "/exec/{id}", remove),
)
