"""The surroundings of a process of a build and the files it leaves: its root, its user, its network, its limits."""

import asyncio
import os
import time

import pytest

from husk.aio.tasks import Tasks
from husk.builder.graph.operations import ExecMount, StepLimits, StepUlimit
from husk.builder.steps.plan import StepFailed
from husk.engine.model.events import Event
from husk.errors import InvalidParameter, Unavailable
from husk.registry.manifest import Platform
from tests.support.daemon import RUNTIME
from tests.support.steps import Bench, Listener


async def test_a_step_gives_what_it_has_written_and_tells_what_it_says(bench: Bench) -> None:
    [stack], said = await bench.run("sh", "-c", "echo hello; echo oh >&2; echo new > /etc/new; rm /etc/group")
    assert (said.stdout, said.stderr) == (b"hello\n", b"oh\n")
    assert stack.startswith("diff:busybox diff:")
    upper = bench.stacks.path(stack)
    assert sorted(str(path.relative_to(upper)) for path in upper.rglob("*")) == ["etc", "etc/group", "etc/new"]
    assert (upper / "etc/group").is_char_device()
    bench.root = stack
    assert await bench.sh("cat /etc/new; ls /etc") == "new\nhosts\nnew\npasswd\nresolv.conf\n"


async def test_a_step_that_writes_nothing_leaves_the_stack_as_it_was(bench: Bench) -> None:
    stacks, _ = await bench.run("true")
    assert stacks == ["diff:busybox"]


async def test_a_step_that_fails_tells_its_status(bench: Bench) -> None:
    with pytest.raises(StepFailed) as failed:
        await bench.run("/bin/sh", "-c", "exit 3")
    assert failed.value.message == 'process "/bin/sh -c exit 3" did not complete successfully: exit code: 3'
    assert failed.value.exit_code == 3
    with pytest.raises(StepFailed, match="exit code: 137"):
        await bench.run("sh", "-c", "sh -c 'kill -9 $$'; exit $?")
    assert (await bench.run("sh", "-c", "exit 3", valid_exit_codes=[3]))[0] == ["diff:busybox"]


async def test_a_program_that_is_not_there_is_told_of(bench: Bench) -> None:
    for program in ("/no/such", "nosuch"):
        listener = Listener()
        with pytest.raises(StepFailed, match="exit code: 127"):
            await bench.run(program, listener=listener)
        assert b"run failed: unable to start container process: exec: " in listener.stderr
    (bench.stacks.path("diff:busybox") / "plain").write_text("hello")
    listener = Listener()
    with pytest.raises(StepFailed, match="exit code: 126"):
        await bench.run("/plain", listener=listener)
    assert b"permission denied" in listener.stderr.lower()


async def test_nothing_of_ours_is_in_what_a_step_has_made(bench: Bench) -> None:
    """Also on an image that has none of the places for mounts, or hides them."""
    base = bench.stacks.path("diff:busybox")
    os.mknod(base / "etc/hosts", 0o600 | 0o020000, os.makedev(0, 0))
    (base / "etc/resolv.conf").symlink_to("../run/somewhere/resolv.conf")
    [stack], said = await bench.run("sh", "-c", "cat /etc/hosts /run/somewhere/resolv.conf; echo x > /made")
    assert b"localhost buildkitsandbox" in said.stdout
    assert b"nameserver" in said.stdout
    assert [path.name for path in bench.stacks.path(stack).iterdir()] == ["made"]


async def test_who_and_where_a_step_runs(bench: Bench) -> None:
    words = {"user": "ada", "cwd": "/work/here", "env": ["A=1", "PATH=/bin"], "hostname": "builder"}
    [stack], said = await bench.run("sh", "-c", "id; pwd; hostname; env", **words)  # type: ignore[arg-type]
    lines = said.stdout.decode().splitlines()
    assert lines[:3] == ["uid=1000(ada) gid=1000(ada) groups=10(wheel),1000(ada)", "/work/here", "builder"]
    assert {"A=1", "PATH=/bin", "HOME=/home/ada"} <= set(lines)
    made = bench.stacks.path(stack) / "work/here"
    assert (made.stat().st_uid, made.stat().st_gid) == (1000, 1000)
    assert await bench.sh("hostname; pwd; id -u") == "buildkitsandbox\n/\n0\n"
    with pytest.raises(InvalidParameter, match="unable to find user eve"):
        await bench.run("true", user="eve")


async def test_hosts_and_proxies(bench: Bench) -> None:
    shown = await bench.sh(
        "cat /etc/hosts; env",
        extra_hosts=[("db", "10.1.2.3")],
        proxy={"http_proxy": "http://p:1", "no_proxy": "x"},
    )
    assert "10.1.2.3\tdb\n" in shown
    assert {"http_proxy=http://p:1", "HTTP_PROXY=http://p:1", "NO_PROXY=x"} <= set(shown.splitlines())


async def test_a_step_has_the_rights_of_a_container(bench: Bench) -> None:
    script = "grep -E 'CapEff|CapBnd|Seccomp:|NoNewPrivs' /proc/self/status; mount | grep -c 'proc/kcore\\|proc/keys'"
    lines = (await bench.sh(script)).splitlines()
    assert lines[0].split() == ["CapBnd:" if "Bnd" in lines[0] else "CapEff:", "00000000a80425fb"]
    assert any(line.split() == ["Seccomp:", "2"] for line in lines)
    assert (await bench.sh("mount -t tmpfs none /tmp 2>&1 || echo refused")).endswith("refused\n")
    assert (await bench.sh("mount -t tmpfs none /tmp && echo mounted", body={"insecure": True})) == "mounted\n"


async def test_networks(bench: Bench) -> None:
    gateway = bench.config.bip.partition("/")[0]
    assert "1 packets received" in await bench.sh(f"ping -c 1 -W 5 {gateway}")
    none = await bench.sh("ls /sys/class/net", body={"network": "none"})
    assert none == "lo\n"
    host = await bench.sh("ls /sys/class/net", body={"network": "host"})
    assert bench.config.bridge_name in host.split()


async def test_nobody_sees_a_step(bench: Bench) -> None:
    heard: list[Event] = []
    bench.events.observe(heard.append)
    listener = Listener()
    task = Tasks().spawn(bench.run("sh", "-c", "echo up; sleep 60", listener=listener), "a step", awaited=True)
    await listener.hears(b"up")
    assert bench.networks.members(bench.networks.find("bridge")) == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard == []


async def test_limits(bench: Bench) -> None:
    files = "/sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max"
    script = f"ulimit -n; for f in {files}; do cat $f 2>/dev/null || true; done"
    shown = await bench.sh(script, ulimits=[StepUlimit("nofile", 99, 99)], limits=StepLimits(memory=64 << 20))
    assert shown.split() == ["99", str(64 << 20)]
    shown = await bench.sh("grep ' /dev/shm ' /proc/mounts", limits=StepLimits(shm_size=8 << 20))
    assert "size=8192k" in shown
    assert await bench.sh("true", cgroup_parent="/hs-named-parent") == ""


async def test_a_read_only_root(bench: Bench) -> None:
    root = ExecMount(target="/", input=0, read_only=True)
    assert await bench.sh("touch /x 2>&1 || echo refused", root=root) == "touch: /x: Read-only file system\nrefused\n"
    thrown_away = ExecMount(target="/", input=0)
    stacks, _ = await bench.run("touch", "/x", root=thrown_away)
    assert stacks == []


async def test_scratch(bench: Bench) -> None:
    """A root with nothing in it, and the program mounted into it."""
    mounts = [ExecMount(target="/tools", input=0, read_only=True)]
    root = ExecMount(target="/", output=0)
    [stack], said = await bench.run("/tools/bin/busybox", "ls", "/", root=root, mounts=mounts)
    assert said.stdout.split() == [b"dev", b"etc", b"proc", b"sys", b"tools"]
    assert stack == ""


async def test_a_platform_that_this_host_does_not_run(bench: Bench) -> None:
    with pytest.raises(Unavailable, match="install qemu-user-static"):
        await bench.run("true", platform=Platform(architecture="s390x", os="linux"))


async def test_output_of_a_megabyte_comes_whole(bench: Bench) -> None:
    _, said = await bench.run("sh", "-c", "seq 1 200000")
    assert said.stdout == b"".join(b"%d\n" % number for number in range(1, 200001))


async def test_the_next_step_finds_a_runtime_that_is_loaded(bench: Bench) -> None:
    if not bench.runtimes.get(RUNTIME).reads_pipes:
        pytest.skip("this runtime is started with its bundle alone")
    taken = []
    spares = bench.steps._spares
    spares._kept_for = 60

    async def spare() -> None:
        """Another step, which leaves one."""
        await bench.run("true")
        await spares._tasks.join()
        assert spares._spare is not None
        _, begun = spares._spare
        async with asyncio.timeout(30):
            while not begun.waits:
                await asyncio.sleep(0.005)
        taken.append(begun.container_id)

    await spare()
    # More than a pipe takes without being asked.
    _, said = await bench.run("sh", "-c", "echo one; echo two >&2; echo ${#LONG}", env=[f"LONG={'x' * 100_000}"])
    assert (said.stdout, said.stderr) == (b"one\n100000\n", b"two\n")
    await spare()
    with pytest.raises(StepFailed, match="exit code: 3"):
        await bench.run("sh", "-c", "exit 3")
    await spare()
    with pytest.raises(StepFailed, match="exit code: 127"):
        await bench.run("/missing")
    await spare()
    with pytest.raises(InvalidParameter, match="working directory"):
        await bench.run("true", cwd="/etc/passwd/x")
    await spares._tasks.join()
    known = [spares._spare[1].container_id] if spares._spare else []
    assert not set(known).intersection(taken[:-1]), "each was taken by the step behind it"


async def test_cancelled_at_any_moment_nothing_is_left(bench: Bench) -> None:
    """The fixture looks whether anything is."""
    started = time.monotonic()
    await bench.run("true")
    whole = time.monotonic() - started
    for number in range(24):
        task = Tasks().spawn(bench.run("sh", "-c", "sleep 600 & sleep 600"), "a step", awaited=True)
        await asyncio.sleep(whole * number / 16)
        task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled(), "it ends long before its processes would"
