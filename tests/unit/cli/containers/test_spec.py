"""Flags of `husk run`, as the engine gets them."""

import click
import pytest
from click.testing import CliRunner

from husk.cli.containers.flags import container_flags
from husk.cli.containers.spec import attached, spec_of
from husk.cli.kit.command import HuskCommand
from husk.client.spec import document
from husk.errors import InvalidParameter


def flags(*line: str) -> dict:
    found: dict = {}

    @click.command(cls=HuskCommand, own_words=True, context_settings={"help_option_names": ["--help"]})
    @container_flags
    def read(**values):
        found.update(values)

    assert CliRunner().invoke(read, list(line), catch_exceptions=False).exit_code == 0
    return found


def body(*line: str, detached: bool = False) -> dict:
    return document(spec_of("busybox", ["echo", "hi"], flags(*line), detached))


def test_nothing_said():
    said = {name: value for name, value in body().items() if value}
    assert said == {"Image": "busybox", "Cmd": ["echo", "hi"], "AttachStdout": True, "AttachStderr": True}


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("-e A=1 -e B=", "Env", ["A=1", "B="]),
        ("-w /src", "WorkingDir", "/src"),
        ("-u 1:2", "User", "1:2"),
        ("-h me", "Hostname", "me"),
        ("--entrypoint sh", "Entrypoint", ["sh"]),
        ("-l a=b -l c", "Labels", {"a": "b", "c": ""}),
        ("-v /data", "Volumes", {"/data": {}}),
        ("--expose 90", "ExposedPorts", {"90/tcp": {}}),
        ("--stop-signal USR1", "StopSignal", "USR1"),
        ("--stop-timeout 0", "StopTimeout", 0),
        ("--no-healthcheck", "Healthcheck", {"Test": ["NONE"]}),
        ("--health-interval 1m", "Healthcheck", {"Interval": 60_000_000_000}),
        ("--health-cmd true --health-retries 2", "Healthcheck", {"Test": ["CMD-SHELL", "true"], "Retries": 2}),
    ],
)
def test_what_the_process_is(line, field, value):
    assert body(*line.split())[field] == value


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("-m 64m", "Memory", 64 << 20),
        ("--memory-swap -1", "MemorySwap", -1),
        ("--cpus 1.5", "NanoCpus", 1_500_000_000),
        ("-c 512", "CpuShares", 512),
        ("--pids-limit -1", "PidsLimit", -1),
        ("-v /a:/b:ro", "Binds", ["/a:/b:ro"]),
        ("-p 8080:80", "PortBindings", {"80/tcp": [{"HostIp": "", "HostPort": "8080"}]}),
        ("-P", "PublishAllPorts", True),
        ("--network host", "NetworkMode", "host"),
        ("--net none", "NetworkMode", "none"),
        ("--restart on-failure:3", "RestartPolicy", {"Name": "on-failure", "MaximumRetryCount": 3}),
        ("--read-only", "ReadonlyRootfs", True),
        ("--cap-add NET_ADMIN --cap-add SYS_TIME", "CapAdd", ["NET_ADMIN", "SYS_TIME"]),
        ("--cap-drop ALL", "CapDrop", ["ALL"]),
        ("--security-opt no-new-privileges", "SecurityOpt", ["no-new-privileges"]),
        ("--security-opt seccomp=unconfined", "SecurityOpt", ["seccomp=unconfined"]),
        ("--security-opt systempaths=unconfined", "MaskedPaths", []),
        ("--tmpfs /run:size=1m", "Tmpfs", {"/run": "size=1m"}),
        ("--shm-size 1g", "ShmSize", 1 << 30),
        ("--ulimit nofile=10:20", "Ulimits", [{"Name": "nofile", "Soft": 10, "Hard": 20}]),
        ("--init", "Init", True),
        ("--init=false", "Init", False),
        ("--add-host a:1.2.3.4 --add-host b=::1", "ExtraHosts", ["a:1.2.3.4", "b:::1"]),
        ("--dns 1.1.1.1", "Dns", ["1.1.1.1"]),
        (
            "--device /dev/fuse",
            "Devices",
            [{"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse", "CgroupPermissions": "rwm"}],
        ),
        ("--privileged", "Privileged", True),
        ("--rm", "AutoRemove", True),
        ("--log-driver none", "LogConfig", {"Type": "none", "Config": {}}),
        ("--log-opt max-size=1m", "LogConfig", {"Type": "", "Config": {"max-size": "1m"}}),
        ("--sysctl net.x=1", "Sysctls", {"net.x": "1"}),
        ("--cpu-period 5", "CpuPeriod", 5),
        ("--annotation a=b", "Annotations", {"a": "b"}),
    ],
)
def test_what_the_host_gives(line, field, value):
    assert body(*line.split())["HostConfig"].get(field) == value


def test_gpus_are_asked_for():
    [request] = body("--gpus", "all")["HostConfig"]["DeviceRequests"]
    assert (request["Count"], request["Capabilities"]) == (-1, [["gpu"]])
    [request] = body("--gpus", "device=0,driver=x,count=2")["HostConfig"]["DeviceRequests"]
    assert (request["DeviceIDs"], request["Driver"], request["Count"]) == (["0"], "x", 2)


def test_a_profile_is_read_here(tmp_path):
    (tmp_path / "profile").write_text("{}")
    assert body("--security-opt", f"seccomp={tmp_path}/profile")["HostConfig"]["SecurityOpt"] == ["seccomp={}"]
    with pytest.raises(InvalidParameter, match="seccomp profile"):
        body("--security-opt", "seccomp=/nosuch")


def test_networks_with_addresses():
    said = body("--network", "one", "--ip", "10.0.0.2", "--network", "two")
    assert said["HostConfig"]["NetworkMode"] == "one"
    assert list(said["NetworkingConfig"]["EndpointsConfig"]) == ["one", "two"]


def test_streams():
    assert attached(flags("-i"), False) == {"stdin": True, "stdout": True, "stderr": True}
    assert attached(flags("-a", "STDERR"), False) == {"stdin": False, "stdout": False, "stderr": True}
    assert not any(attached(flags("-i"), True).values())
    detached = body("-i", detached=True)
    assert detached["OpenStdin"] and not detached.get("StdinOnce") and not detached.get("AttachStdout")
    with pytest.raises(InvalidParameter, match="valid streams"):
        attached(flags("-a", "x"), False)


@pytest.mark.parametrize(
    "line",
    [
        "-m lots",
        "--cpus many",
        "--ulimit nofile=x",
        "--sysctl x",
        "--add-host x",
        "--restart on-failure:x",
        "--no-healthcheck --health-cmd true",
        "-p x",
        "-e =x",
    ],
)
def test_what_cannot_be_understood(line):
    with pytest.raises(InvalidParameter):
        body(*line.split())
