"""A container's streams through conmon's attach socket, and what happens to them when somebody dies."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

from husk.kernel import cgroups, process
from husk.runtime.supervise.console import Console

from .conftest import Workshop, open_workshop


async def everything(console: Console) -> dict[int, bytes]:
    """All that comes until the monitor's end, by stream."""
    streams = {1: b"", 2: b""}
    async with asyncio.timeout(60):
        while (piece := await console.read()) is not None:
            streams[piece[0]] += piece[1]
    console.close()
    return streams


async def until(console: Console, wanted: bytes) -> bytes:
    """Output up to the wanted text."""
    seen = b""
    async with asyncio.timeout(30):
        while wanted not in seen:
            piece = await console.read()
            assert piece is not None, seen
            seen += piece[1]
    return seen


async def test_both_streams_arrive_apart_and_whole(workshop: Workshop) -> None:
    box = await workshop.make("sh", "-c", "echo out; echo err >&2")
    console = await box.attach()
    await box.start()
    assert await everything(console) == {1: b"out\n", 2: b"err\n"}
    assert await box.ended() == 0


@pytest.mark.parametrize("name", ["crun", "runc"])
def test_the_daemons_own_event_loop_does_it_too(name: str, busybox: Path, tmp_path: Path) -> None:
    async def echo() -> None:
        async with open_workshop(name, busybox, tmp_path) as workshop:
            box = await workshop.make("cat", stdin_open=True, stdin_once=True)
            console = await box.attach()
            await box.start()
            reading = asyncio.ensure_future(everything(console))  # noqa: TID251 - in a test
            await console.write(bytes(1_000_000))
            console.close_stdin()
            assert await reading == {1: bytes(1_000_000), 2: b""}
            assert await box.ended() == 0

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(echo())


async def test_large_output_is_complete_at_exit(workshop: Workshop) -> None:
    size = 5_000_000
    box = await workshop.make("sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x")
    console = await box.attach()
    await box.start()
    assert (await everything(console))[1] == b"x" * size
    assert await box.ended() == 0
    assert box.log() == b"x" * size


async def test_two_clients_see_the_same(workshop: Workshop) -> None:
    box = await workshop.make("sh", "-c", "head -c 300000 /dev/zero")
    consoles = [await box.attach(), await box.attach()]
    await box.start()
    first, second = await asyncio.gather(*(everything(console) for console in consoles))
    assert first == second == {1: bytes(300_000), 2: b""}
    await box.ended()


async def test_the_end_of_input_reaches_the_container(workshop: Workshop) -> None:
    box = await workshop.make("wc", "-c", stdin_open=True, stdin_once=True)
    console = await box.attach()
    await box.start()
    await console.write(bytes(3_000_000))
    console.close_stdin()
    assert (await everything(console))[1] == b"3000000\n"
    assert await box.ended() == 0


async def test_input_before_the_start_is_not_lost(workshop: Workshop) -> None:
    box = await workshop.make("cat", stdin_open=True, stdin_once=True)
    console = await box.attach()
    await console.write(b"early")
    console.close_stdin()
    await box.start()
    assert (await everything(console))[1] == b"early"
    await box.ended()


async def test_output_goes_on_after_the_end_of_input(workshop: Workshop) -> None:
    box = await workshop.make("sh", "-c", "cat; sleep 0.05; echo later", stdin_open=True, stdin_once=True)
    console = await box.attach()
    await box.start()
    console.close_stdin()
    assert (await everything(console))[1] == b"later\n"
    await box.ended()


async def test_input_stays_open_for_the_next_client_unless_it_is_for_once(workshop: Workshop) -> None:
    box = await workshop.make("cat", stdin_open=True)
    first = await box.attach()
    await box.start()
    await first.write(b"one\n")
    assert await until(first, b"one\n") == b"one\n"
    first.close_stdin()
    first.close()
    second = await box.attach()
    await second.write(b"two\n")
    assert await until(second, b"two\n") == b"two\n"
    second.close()


async def test_without_input_the_container_reads_the_end_at_once(workshop: Workshop) -> None:
    assert await workshop.run("cat") == (0, b"")


async def test_output_survives_input_that_nobody_reads(workshop: Workshop) -> None:
    box = await workshop.make("sh", "-c", "head -c 1 >/dev/null; echo bye", stdin_open=True, stdin_once=True)
    console = await box.attach()
    await box.start()
    writing = asyncio.ensure_future(console.write(bytes(5_000_000)))  # noqa: TID251 - in a test
    assert (await everything(console))[1] == b"bye\n"
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert await box.ended() == 0


async def test_a_terminal_echoes_and_has_the_size_it_is_given(workshop: Workshop) -> None:
    box = await workshop.make("sh", terminal=True, stdin_open=True, stdin_once=True)
    console = await box.attach()
    await box.start()
    await box.monitor.resize(box.bundle, 33, 111)
    await console.write(b"stty size; echo do''ne\n")
    assert b"33 111" in await until(console, b"done")
    console.close_stdin()
    await console.write(b"exit 5\n")
    await everything(console)
    assert await box.ended() == 5


async def test_paths_longer_than_a_sockets_address_work(workshop: Workshop) -> None:
    deep = workshop.root / ("d" * 100) / ("e" * 100)
    for number, terminal in enumerate((False, True)):
        spec = workshop.spec("sh", "-c", "read x; echo got $x", terminal=terminal)
        box = await workshop.create(workshop.bundle(spec, deep / str(number), stdin_open=True))
        console = await box.attach()
        await box.start()
        await console.write(b"it\n")
        await until(console, b"got it")
        console.close()
        assert await box.ended() == 0


async def test_a_client_that_does_not_read_stops_the_output_until_it_goes(workshop: Workshop) -> None:
    box = await workshop.make("sh", "-c", "head -c 2000000 /dev/zero; echo end")
    lazy = await box.attach()
    await box.start()
    await lazy.read()
    assert box.monitor.exit_status(box.bundle) is None
    lazy.close()
    assert await box.ended() == 0
    assert len(box.log()) == 2_000_004


async def test_a_killed_monitor_leaves_no_status_and_can_be_cleaned_up(workshop: Workshop) -> None:
    box = await workshop.make("sleep", "1000")
    console = await box.attach()
    await box.start()
    process.send_signal(box.pidfd, signal.SIGKILL)
    assert await box.ended() is None
    assert await console.read() is None
    console.close()
    assert process.start_time(box.created.pid) is not None
    await box.runtime.delete(box.bundle.container_id, force=True)
    assert cgroups.processes(workshop.cgroup) == set()


CLIENT = """
import asyncio, sys
from pathlib import Path
from husk.runtime.supervise.conmon import Bundle, connect

async def main():
    console = await connect(Bundle("x", Path(sys.argv[1])))
    print("attached", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


async def test_a_daemon_killed_while_attached_costs_no_output(workshop: Workshop) -> None:
    box = await workshop.make("sh", "-c", "read x; head -c 2000000 /dev/zero; echo end", stdin_open=True)
    source = str(Path(__file__).parents[3] / "src")
    daemon = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(box.bundle.directory)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )
    try:
        assert daemon.stdout
        assert await asyncio.to_thread(daemon.stdout.readline) == b"attached\n"
        await box.start()
        other = await box.attach()
        await other.write(b"go\n")
        # The output is now blocked by the other client, which does not read.
        await other.read()
    finally:
        daemon.kill()
        await asyncio.to_thread(daemon.communicate)
    assert len((await everything(other))[1]) > 1_900_000
    assert await box.ended() == 0
    assert len(box.log()) == 2_000_004


async def test_a_client_is_attached_when_the_monitor_has_accepted_it(workshop: Workshop) -> None:
    box = await workshop.make("echo", "hi")
    # A host so busy that the monitor does not come to accept anybody.
    os.kill(box.created.monitor_pid, signal.SIGSTOP)
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await box.attach()
    finally:
        os.kill(box.created.monitor_pid, signal.SIGCONT)
    console = await box.attach()
    await box.start()
    assert (await everything(console))[1] == b"hi\n"
    await box.ended()
