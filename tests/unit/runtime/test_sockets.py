"""Sockets that are mounted into containers."""

import asyncio
import socket
from pathlib import Path

from husk.runtime.sockets import serving


async def _repeat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)


async def test_connections_are_served_while_the_block_lasts(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.setblocking(False)
        async with serving([listener], [_repeat]):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"hello\n")
            assert await reader.readline() == b"hello\n"
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()
