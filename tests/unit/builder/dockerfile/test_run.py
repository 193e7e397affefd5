"""RUN: the command, its mounts and secrets, and the limits that the client set."""

from typing import Any

from husk.builder.graph.operations import (
    BindMount,
    CacheMount,
    Exec,
    ExecMount,
    Files,
    SecretMount,
    SecretVariable,
    SshMount,
    TmpfsMount,
)
from husk.builder.store.file_actions import MakeDirectory, Owner
from tests.unit.builder.dockerfile.building import bodies, build, names, refusal


def test_mounts():
    result = build(
        "FROM busybox AS b\nFROM busybox\nWORKDIR /w\n"
        "RUN --mount=type=cache,target=/c,sharing=locked --mount=from=b,src=/x,target=y "
        "--mount=type=tmpfs,target=/t,size=1k "
        "--mount=type=secret,id=s --mount=type=secret,id=e,env=E,required --mount=type=ssh --mount=target=/ctx,rw make",
        cache_namespace="ns",
    )
    run = bodies(result)[-1]
    assert run.mounts == [
        ExecMount(target="/", input=0, output=0),
        ExecMount(target="/c", kind=CacheMount("ns//c", "locked")),
        ExecMount(target="/ctx", kind=BindMount(), input=1),
        ExecMount(target="/t", kind=TmpfsMount(1024)),
        ExecMount(target="/w/y", kind=BindMount(), input=2, selector="/x", read_only=True),
        ExecMount(target="/run/secrets/s", kind=SecretMount("s", optional=True)),
        ExecMount(target="/run/buildkit/ssh_agent.0", kind=SshMount("default", optional=True)),
    ]
    assert run.secret_env == [SecretVariable("e", "E")]


def test_the_same_mounts_in_another_order_are_the_same_step():
    one, other = (
        build(f"FROM busybox\nRUN {first} {second} make")
        for first, second in [
            ("--mount=target=/a", "--mount=target=/b,src=x"),
            ("--mount=target=/b,src=x", "--mount=target=/a"),
        ]
    )
    assert bodies(one)[-1] == bodies(other)[-1]
    assert [mount.input for mount in bodies(one)[-1].mounts] == [0, 1, 1]


def test_a_cache_with_an_owner():
    result = build("FROM busybox\nRUN --mount=type=cache,target=/c,uid=5,mode=0700 x")
    made = bodies(result)[1].actions[0].action
    assert made == MakeDirectory(path="/cache", mode=0o700, user=Owner(number=5), group=Owner(number=0))
    assert bodies(result)[-1].mounts[1].selector == "/cache"


def test_scripts():
    script = build("FROM busybox\nRUN <<EOF\n#!/bin/awk\nx\nEOF")
    assert bodies(script)[-1].process.args == ["/bin/sh", "-c", "/dev/pipes/EOF"]
    assert bodies(script)[-1].mounts[1] == ExecMount(target="/dev/pipes", input=1, read_only=True)
    plain = build("FROM busybox\nRUN <<-EOF\n\ta\n\tb\nEOF")
    assert bodies(plain)[-1].process.args == ["/bin/sh", "-c", "a\nb\n"]
    assert names(plain)[-1] == "[2/2] RUN <<-EOF (a...)"
    shell = build("FROM busybox\nRUN cat <<EOF > x\na\nEOF")
    assert bodies(shell)[-1].process.args == ["/bin/sh", "-c", "cat <<EOF > x\na\nEOF"]


def test_limits_networks_and_proxies():
    result = build(
        "FROM busybox\nRUN a\nRUN --network=none --security=insecure b",
        network="host",
        hostname="h",
        extra_hosts=[("x", "1.2.3.4")],
        shm_size=5,
        build_args={"HTTP_PROXY": "p"},
        no_cache=True,
    )
    first, second = bodies(result)[1:]
    assert (first.network, second.network, second.insecure) == ("host", "none", True)
    assert (first.process.hostname, first.process.extra_hosts, first.process.proxy) == (
        "h",
        [("x", "1.2.3.4")],
        {"http_proxy": "p"},
    )
    assert first.mounts[-1] == ExecMount(target="/dev/shm", kind=TmpfsMount(5))
    assert all(vertex.ignore_cache for vertex in list(result.graph)[1:])


def run(line: str, **options: Any) -> Exec:
    body = bodies(build(f"FROM busybox\nWORKDIR /w\n{line}", **options))[-1]
    assert isinstance(body, Exec)
    return body


def test_a_command_runs_in_the_shell_or_as_it_is() -> None:
    assert run("RUN a  b").process.args == ["/bin/sh", "-c", "a  b"]
    assert run('RUN ["a", "b c"]').process.args == ["a", "b c"]
    assert run('SHELL ["bash", "-e"]\nRUN a').process.args == ["bash", "-e", "a"]


def test_where_secrets_and_agents_are() -> None:
    mounts = run(
        "RUN --mount=type=secret,id=a/b --mount=type=secret,id=c,target=here,uid=5,mode=0440,required "
        "--mount=type=secret,id=d,env=D,target=/d --mount=type=ssh --mount=type=ssh,id=other,required "
        "--mount=type=ssh,target=agent x"
    )
    assert mounts.mounts[1:] == [
        ExecMount(target="/run/secrets/b", kind=SecretMount("a/b", optional=True)),
        ExecMount(target="/w/here", kind=SecretMount("c", uid=5, mode=0o440)),
        ExecMount(target="/d", kind=SecretMount("d", optional=True)),
        ExecMount(target="/run/buildkit/ssh_agent.0", kind=SshMount("default", optional=True)),
        ExecMount(target="/run/buildkit/ssh_agent.1", kind=SshMount("other")),
        ExecMount(target="/w/agent", kind=SshMount("default", optional=True)),
    ]
    assert mounts.secret_env == [SecretVariable("d", "D", optional=True)]


def test_the_value_of_a_secret_is_stars_in_the_name_of_its_step() -> None:
    result = build("FROM busybox\nRUN --mount=type=secret,id=t,env=TOKEN curl $TOKEN $OTHER")
    assert names(result)[-1].endswith("curl **** $OTHER")


def test_caches_are_one_by_their_names_in_the_clients_namespace() -> None:
    kinds = [
        mount.kind
        for mount in run(
            "RUN --mount=type=cache,target=/a/../c --mount=type=cache,id=n,target=/d x", cache_namespace="ns"
        ).mounts[1:]
    ]
    assert kinds == [CacheMount("ns//c", "shared"), CacheMount("ns/n", "shared")]


def test_a_cache_with_a_first_content_and_an_owner() -> None:
    result = build("FROM busybox AS b\nFROM busybox\nRUN --mount=type=cache,target=/c,from=b,gid=7 x")
    made = next(body for body in bodies(result) if isinstance(body, Files))
    assert made.actions[0].input == 0 and made.actions[0].action == MakeDirectory(
        path="/cache", mode=0o755, user=Owner(number=0), group=Owner(number=7)
    )
    result = build("FROM busybox AS b\nFROM busybox\nRUN --mount=type=cache,target=/c,from=b,source=/s,gid=7 x")
    assert bodies(result)[-1].mounts[1].selector == "/s", "only a cache that begins empty can be given away"


def test_where_a_mount_may_not_be() -> None:
    for target in ("/", "..", "/x/.."):
        assert "invalid mount target" in refusal(f"FROM busybox\nWORKDIR /w\nRUN --mount=target={target} x")


def test_the_network_is_what_the_line_says_or_the_client() -> None:
    said = {"": "sandbox", "none": "none", "host": "host", "default": "sandbox"}
    assert {name: run("RUN x", network=name).network for name in said} == said
    assert run("RUN --network=default x", network="none").network == "sandbox"


def test_a_step_of_a_trigger_says_so() -> None:
    result = build("FROM busybox AS a\nONBUILD RUN x\nFROM a")
    assert names(result)[-1] == "[stage-1 1/1] ONBUILD RUN x"


def test_a_text_of_one_line_is_shown_whole() -> None:
    assert names(build("FROM busybox\nRUN <<EOF\na\nEOF"))[-1] == "[2/2] RUN <<EOF (a)"


def test_a_cache_with_an_owner_is_new_without_a_cache() -> None:
    result = build("FROM busybox\nRUN --mount=type=cache,target=/c,mode=0700 make\n", no_cache=True)
    (place,) = [vertex for vertex in result.graph if isinstance(vertex.operation.body, Files)]
    assert place.ignore_cache
