"""The sandbox of examples/sandbox.py holds: what hostile snippets try, and what they get."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from examples.sandbox import Sandbox
from husk.library.embedded import Engine
from tests.support.engines import Place

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs real containers"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    with Place() as place:
        async with Engine.open(place.config) as engine:
            yield Sandbox(engine, seconds=20)
            assert await engine.containers.list(all=True) == []
            assert place.traces.settle(os.getpid()) == []


async def test_an_honest_snippet(sandbox: Sandbox):
    result = await sandbox.run("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")


async def test_endless_work_ends_in_time(sandbox: Sandbox):
    quick = Sandbox(sandbox._engine, seconds=0.3)
    result = await quick.run("trap '' TERM INT HUP; while :; do :; done")
    assert result.timed_out and result.exit_code == 137


async def test_a_fork_bomb_stays_small(sandbox: Sandbox):
    # The first shell's end is the end of all: others have two seconds to get to where they cannot fork, unless it is
    # the first that cannot.
    result = await sandbox.run("bomb() { bomb | bomb & }; bomb; sleep 2")
    # Each shell that cannot fork begins to say so; it may be in the middle of a line when all end.
    assert b"sh: " in result.stderr or result.timed_out
    assert (await sandbox.run("echo fine")).stdout == b"fine\n"


async def test_memory_is_limited(sandbox: Sandbox):
    result = await sandbox.run("x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done")
    assert result.oom_killed and not result.timed_out


async def test_a_file_in_memory_counts(sandbox: Sandbox):
    result = await sandbox.run("dd if=/dev/zero of=/tmp/big bs=1M count=64; ls -l /tmp/big | awk '{print $5}'")
    assert b"No space left" in result.stderr
    assert int(result.stdout) <= 4 << 20


async def test_nothing_else_can_be_written(sandbox: Sandbox):
    places = "/ /etc /usr /bin /dev /dev/shm /var /proc /proc/sys/kernel /sys /run /root /home"
    result = await sandbox.run(
        f'for each in {places}; do echo x 2>/dev/null > "$each/file" && echo "$each"; done; true'
    )
    assert (result.stdout, result.exit_code) == (b"", 0)
    # With control groups of version 1 crun has everybody write there, up to a mebibyte.
    result = await sandbox.run("cat /dev/zero > /sys/fs/cgroup/big; du -s /sys/fs/cgroup 2>/dev/null | cut -f 1")
    assert int(result.stdout) <= 1024


async def test_endless_output_ends_it(sandbox: Sandbox):
    result = await sandbox.run("yes")
    assert result.truncated and not result.timed_out
    assert len(result.stdout) == 65536


async def test_there_is_no_network(sandbox: Sandbox):
    result = await sandbox.run("ls /sys/class/net; wget -q -T 1 -O - http://1.1.1.1/; echo $?; nslookup example.com")
    lines = result.stdout.split()
    assert lines[0] == b"lo" and lines[1] != b"0" and len(lines) == 2, result
    assert b"unreachable" in result.stderr


async def test_the_host_is_not_seen(sandbox: Sandbox):
    secret = Path("/tmp/husk-sandbox-secret")
    secret.write_text("secret")
    try:
        result = await sandbox.run(
            "cat /proc/*/comm | sort -u; cat /proc/kcore /proc/timer_list /proc/keys 2>/dev/null | head -c 10;"
            f"cat {secret} /proc/1/root{secret}; mount | grep -c ' / '; hostname; id -u;"
            "grep -c CapEff.*0000 /proc/1/status"
        )
    finally:
        secret.unlink()
    words = set(result.stdout.split())
    assert words <= {b"sh", b"cat", b"sort", b"1", b"sandbox", b"65534"}, result
    assert b"secret" not in result.stdout


async def test_rights_cannot_be_won(sandbox: Sandbox):
    tries = [
        "mount -t tmpfs none /tmp",
        "mount --bind / /tmp",
        "umount /proc",
        "chroot / true",
        "mknod /tmp/null c 1 3",
        "chown 0 /tmp",
        "su -c true",
        "unshare -r true",
        "unshare -m true",
        "nsenter -t 1 -m true",
        "echo 1 > /proc/sys/kernel/core_pattern",
        "echo b > /proc/sysrq-trigger",
        "echo -500 > /proc/1/oom_score_adj",
        "echo '|/bin/sh' > /sys/kernel/uevent_helper",
        "mkdir /sys/fs/cgroup/memory/mine",
        "renice -n -5 -p 1",
        "adjtimex -t 10001",
        "hostname mine",
        "cp /bin/busybox /tmp/own && chmod 4755 /tmp/own && /tmp/own true",
        "kill -9 -1 && sleep 1",
    ]
    results = await asyncio.gather(*(sandbox.run(f"( {each} ) 2>/dev/null && echo won") for each in tries))
    assert [each for each, result in zip(tries, results, strict=True) if b"won" in result.stdout] == []


async def test_snippets_do_not_see_each_other(sandbox: Sandbox):
    snippet = "echo {0} > /tmp/mine; cat /tmp/*; ls /tmp"
    results = await asyncio.gather(*(sandbox.run(snippet.format(number)) for number in range(6)))
    assert [each.stdout for each in results] == [f"{number}\nmine\n".encode() for number in range(6)]
