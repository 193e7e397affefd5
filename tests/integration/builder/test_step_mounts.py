"""Mounts into a process of a build, and their results."""

import asyncio
import os

import pytest

from husk.aio.tasks import Tasks
from husk.builder.graph.operations import ExecMount, SecretMount, SecretVariable, SshMount, TmpfsMount
from husk.errors import InvalidParameter
from tests.support.steps import Bench, FakeSession, Listener, cache


async def test_another_stack_is_bound_read_only(bench: Bench) -> None:
    source = bench.stacks.add("other")
    (source / "a/b").mkdir(parents=True)
    (source / "a/b/file").write_text("text\n")
    words = {"inputs": ["diff:other"]}
    whole = ExecMount(target="/mnt/other", input=1, read_only=True)
    script = "cat /mnt/other/a/b/file; touch /mnt/other/x 2>/dev/null || echo refused"
    assert await bench.sh(script, mounts=[whole], **words) == "text\nrefused\n"
    part = ExecMount(target="/mnt/b", input=1, selector="/a/b", read_only=True)
    assert await bench.sh("ls /mnt/b; touch /mnt/b/x 2>/dev/null || echo refused", mounts=[part], **words) == (
        "file\nrefused\n"
    )
    file = ExecMount(target="/etc/one-file", input=1, selector="/a/b/file", read_only=True)
    assert await bench.sh("cat /etc/one-file; echo > /etc/x", mounts=[file], **words) == "text\n"
    missing = ExecMount(target="/mnt", input=1, selector="/no/such", read_only=True)
    with pytest.raises(InvalidParameter, match="failed to mount /mnt: /no/such: no such file or directory"):
        await bench.run("true", mounts=[missing], inputs=["diff:other"])


async def test_places_of_mounts_are_not_in_what_a_step_has_made(bench: Bench) -> None:
    bench.stacks.add("other")
    (bench.stacks.path("diff:busybox") / "etc/link").symlink_to("/run/led/here")
    mounts = [
        ExecMount(target="/new/place", input=1, read_only=True),
        ExecMount(target="/etc/link", input=1, read_only=True),
        ExecMount(target="/scratch", kind=TmpfsMount(1 << 20)),
        cache("/root/.cache/tool"),
    ]
    [stack], _ = await bench.run(
        "sh", "-c", "echo x > /root/x; ls -d /run/led/here", mounts=mounts, inputs=["diff:other"]
    )
    upper = bench.stacks.path(stack)
    assert sorted(str(path.relative_to(upper)) for path in upper.rglob("*")) == ["root", "root/x"]


async def test_changes_of_a_bound_stack_are_thrown_away_or_kept(bench: Bench) -> None:
    (bench.stacks.add("other") / "file").write_text("text\n")
    thrown = ExecMount(target="/mnt", input=1)
    stacks, _ = await bench.run("sh", "-c", "echo new > /mnt/file", mounts=[thrown], inputs=["diff:other"])
    assert stacks == ["diff:busybox"]
    assert bench.stacks.path("diff:other").joinpath("file").read_text() == "text\n"
    kept = ExecMount(target="/mnt", input=1, output=1)
    first, second = (await bench.run("sh", "-c", "echo new > /mnt/file", mounts=[kept], inputs=["diff:other"]))[0]
    assert first == "diff:busybox"
    assert second.startswith("diff:other diff:")
    assert bench.stacks.path(second).joinpath("file").read_text() == "new\n"
    empty = ExecMount(target="/out", output=1)
    _, made = (await bench.run("sh", "-c", "echo 1 > /out/one", mounts=[empty]))[0]
    assert bench.stacks.path(made).joinpath("one").read_text() == "1\n"


async def test_no_selector_and_no_target_leads_out(bench: Bench) -> None:
    source = bench.stacks.add("other")
    (source / "out").symlink_to("/../../../../../etc")
    (source / "etc").mkdir()
    (source / "etc/inside").touch()
    mount = ExecMount(target="/mnt", input=1, selector="/out", read_only=True)
    assert await bench.sh("ls /mnt", mounts=[mount], inputs=["diff:other"]) == "inside\n"
    root = bench.stacks.path("diff:busybox")
    (root / "trap").symlink_to("/../../../../../proc/sys")
    trap = ExecMount(target="/trap", input=1, read_only=True)
    assert "inside" not in await bench.sh("ls /proc/sys", mounts=[trap], inputs=["diff:other"])
    for target in ("/proc/sys", "/x/../proc", "/"):
        with pytest.raises(InvalidParameter):
            await bench.run("true", mounts=[ExecMount(target=target, input=1)], inputs=["diff:other"])
    assert not os.path.exists("/etc/inside")


async def test_what_is_mounted_below_dev_is_seen(bench: Bench) -> None:
    (bench.stacks.add("other") / "file").write_text("text\n")
    mounts = [
        ExecMount(target="/dev/shm", kind=TmpfsMount(4 << 20)),
        ExecMount(target="/dev/mine", input=1, read_only=True),
    ]
    shown = await bench.sh("cat /dev/mine/file; grep ' /dev/shm ' /proc/mounts", mounts=mounts, inputs=["diff:other"])
    assert shown.startswith("text\n")
    assert "size=4096k" in shown


async def test_tmpfs(bench: Bench) -> None:
    mounts = [ExecMount(target="/fast", kind=TmpfsMount(1 << 20))]
    assert "size=1024k" in await bench.sh("grep ' /fast ' /proc/mounts; touch /fast/x", mounts=mounts)


async def test_a_cache_outlives_steps_and_is_in_no_layer(bench: Bench) -> None:
    [stack], _ = await bench.run("sh", "-c", "echo warm > /cache/x", mounts=[cache("/cache")])
    assert stack == "diff:busybox"
    assert await bench.sh("cat /elsewhere/x", mounts=[cache("/elsewhere")]) == "warm\n"
    assert await bench.sh("ls /cache", mounts=[cache("/cache", "another")]) == ""
    read_only = await bench.sh("touch /cache/y 2>/dev/null || echo refused", mounts=[cache("/cache", read_only=True)])
    assert read_only == "refused\n"
    one, two = await bench.caches.items()
    assert {(item.type, item.in_use) for item in (one, two)} == {("exec.cachemount", False)}
    assert max(one, two, key=lambda item: item.size).uses == 3
    await bench.caches.prune(lambda item: item.size > 0)
    assert await bench.sh("ls /cache", mounts=[cache("/cache")]) == ""


async def test_the_first_content_of_a_cache(bench: Bench) -> None:
    source = bench.stacks.add("first") / "cache"
    source.mkdir()
    (source / "file").write_text("text\n")
    os.chown(source, 1000, 1000)
    source.chmod(0o700)
    mounts = [cache("/cache", input=1, selector="/cache")]
    script = "cat /cache/file; stat -c '%u %g %a' /cache; echo more >> /cache/file"
    shown = [await bench.sh(script, mounts=mounts, inputs=["diff:first"]) for _ in range(2)]
    assert shown == ["text\n1000 1000 700\n", "text\nmore\n1000 1000 700\n"]
    assert (source / "file").read_text() == "text\n"


async def test_a_locked_cache_has_one_user_at_a_time(bench: Bench) -> None:
    script = "test -e /cache/busy && echo clash; touch /cache/busy; sleep 0.05; rm /cache/busy"
    words = {"mounts": [cache("/cache", sharing="locked")]}
    assert set(await asyncio.gather(*(bench.sh(script, **words) for _ in range(4)))) == {""}


async def test_secrets(bench: Bench) -> None:
    session = FakeSession({"key": b"hush\n", "token": b"t0ken"})
    mounts = [ExecMount(target="/run/secrets/key", kind=SecretMount("key", uid=1000, gid=10, mode=0o440))]
    body = {"secret_env": [SecretVariable("token", "TOKEN")]}
    script = "cat /run/secrets/key; stat -c '%u %g %a' /run/secrets/key; echo $TOKEN; touch /made"
    _, said = (result := await bench.run("sh", "-c", script, mounts=mounts, session=session, body=body))
    assert said.stdout == b"hush\n1000 10 440\nt0ken\n"
    assert [path.name for path in bench.stacks.path(result[0][0]).iterdir()] == ["made"]
    absent = [ExecMount(target="/run/secrets/no", kind=SecretMount("no"))]
    with pytest.raises(InvalidParameter, match="secret no: not found"):
        await bench.run("true", mounts=absent, session=session)
    with pytest.raises(InvalidParameter, match="secret no: not found"):
        await bench.run("true", mounts=absent)
    optional = [ExecMount(target="/run/secrets/no", kind=SecretMount("no", optional=True))]
    assert await bench.sh("ls /run", mounts=optional, session=session) == ""


async def test_an_agent_of_the_client_s(bench: Bench) -> None:
    session = FakeSession(agents=["default", "other"])
    mounts = [
        ExecMount(target="/run/buildkit/ssh_agent.0", kind=SshMount("default", uid=1000, mode=0o600)),
        ExecMount(target="/run/buildkit/ssh_agent.1", kind=SshMount("other")),
    ]
    script = (
        "echo $SSH_AUTH_SOCK; stat -c '%u %a %F' $SSH_AUTH_SOCK; echo up; while test -e /cache/run; do sleep 0.1; done"
    )
    listener = Listener(session)  # type: ignore[arg-type]
    await bench.sh("touch /cache/run", mounts=[cache("/cache")])
    step = Tasks().spawn(
        bench.run("sh", "-c", script, mounts=[*mounts, cache("/cache")], listener=listener), "a step", awaited=True
    )
    await listener.hears(b"up")
    assert listener.stdout == b"/run/buildkit/ssh_agent.0\n1000 600 socket\nup\n"
    # busybox has no program that connects to one: we do, from outside.
    for number, agent in enumerate((b"default", b"other")):
        [path] = bench.paths.stagings.glob(f"*/private/{number}")
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"hello\n")
        assert await reader.readline() == agent + b" says hello\n"
        writer.close()
    await bench.sh("rm /cache/run", mounts=[cache("/cache")])
    assert (await step)[0] == ["diff:busybox"]
    with pytest.raises(InvalidParameter, match='no SSH key "third" forwarded from the client'):
        await bench.run("true", mounts=[ExecMount(target="/s", kind=SshMount("third"))], session=session)
    optional = [ExecMount(target="/s", kind=SshMount("third", optional=True))]
    assert await bench.sh("echo $SSH_AUTH_SOCK; ls -d /s 2>/dev/null || true", mounts=optional) == "\n"
