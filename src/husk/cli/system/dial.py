"""`husk system dial-stdio`: a connection to the engine on stdin and stdout, for `ssh`."""

import asyncio
import os
import threading

import click

from husk.cli.kit.command import HuskCommand
from husk.cli.kit.engine import run
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import write
from husk.client.address import resolve
from husk.client.dial import dialer_to
from husk.client.http import Connection

_PIECE = 1 << 16


@click.command("dial-stdio", cls=HuskCommand, hidden=True)
@click.pass_obj
def dial_stdio(place: HostChoice) -> None:
    """Proxy the stdio stream to the daemon connection."""
    run(_dialled(place))


async def _dialled(place: HostChoice) -> None:
    connection = await dialer_to(resolve(place.host, place.context))()
    loop = asyncio.get_running_loop()
    threading.Thread(target=_pass_on, args=(loop, connection), daemon=True).start()
    while data := await connection.reader.read(_PIECE):
        write(1, data)
    connection.close()


def _pass_on(loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
    """Pass on stdin until its end, which the engine hears of. In a thread, for stdin may be anything."""

    async def sent(data: bytes) -> None:
        if data:
            connection.writer.write(data)
            await connection.writer.drain()
        elif connection.writer.can_write_eof():
            connection.writer.write_eof()

    while True:
        data = os.read(0, _PIECE)
        asyncio.run_coroutine_threadsafe(sent(data), loop).result()
        if not data:
            return
