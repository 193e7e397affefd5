"""A console on a pair of sockets: the other end plays the monitor."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.runtime.supervise.console import Console


@pytest.fixture
def ends() -> Iterator[tuple[Console, socket.socket]]:
    ours, monitors = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, monitors):
        end.setblocking(False)
    with ours, monitors:
        yield Console(ours, closes_stdin=True), monitors


async def test_output_comes_with_its_stream_until_the_monitor_ends(ends: tuple[Console, socket.socket]) -> None:
    console, monitor = ends
    monitor.send(b"\x02out")
    monitor.send(b"\x03err")
    monitor.close()
    assert [await console.read() for _ in range(3)] == [(1, b"out"), (2, b"err"), None]


async def test_input_is_cut_into_what_a_monitor_reads_at_once(ends: tuple[Console, socket.socket]) -> None:
    console, monitor = ends
    sent = bytes(range(256)) * 200
    await console.write(sent)
    pieces = [monitor.recv(1 << 20) for _ in range(4)]
    assert b"".join(pieces) == sent and max(map(len, pieces)) <= 32 * 1024


async def test_the_end_of_input_leaves_output(ends: tuple[Console, socket.socket]) -> None:
    console, monitor = ends
    console.close_stdin()
    assert monitor.recv(10) == b""
    monitor.send(b"\x02late")
    assert await console.read() == (1, b"late")


async def test_input_that_nobody_reads_any_more_is_dropped(ends: tuple[Console, socket.socket]) -> None:
    console, monitor = ends
    monitor.close()
    await console.write(b"x" * 100_000)
    assert await console.read() is None


async def test_a_client_that_leaves_before_it_is_accepted_does_no_harm(tmp_path: Path) -> None:
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ours,
    ):
        listener.bind(str(tmp_path / "attach"))
        listener.listen()
        ours.connect(str(tmp_path / "attach"))
        console = Console(ours, closes_stdin=False)
        asyncio.get_running_loop().call_later(0.01, console.close)
        await console.accepted()
