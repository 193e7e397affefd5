"""A server leaves the file of its socket alone, and need not find it."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from husk.aio.listening import KEEP_FILE


@pytest.mark.parametrize("through_descriptor", [False, True])
async def test_the_file_stays(tmp_path: Path, through_descriptor: bool) -> None:
    listener = socket.socket(socket.AF_UNIX)
    directory = os.open(tmp_path, os.O_RDONLY)
    listener.bind(f"/proc/self/fd/{directory}/s" if through_descriptor else str(tmp_path / "s"))
    with (tmp_path / "taken").open("w") as taken:
        # The descriptor means something else from now on.
        os.dup2(taken.fileno(), directory)
    try:
        server = await asyncio.start_unix_server(lambda *_: None, sock=listener, **KEEP_FILE)
        server.close()
    finally:
        os.close(directory)
    assert (tmp_path / "s").is_socket()
