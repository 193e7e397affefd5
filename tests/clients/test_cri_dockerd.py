"""Docker's API as cri-dockerd uses it for a kubelet: pods as a container that holds their network, and others in it.

Asked of dockerd, too: what is here is what holds there.
"""

import json
import os
import re
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.daemon import Daemon
from tests.support.dockerd import Dockerd
from tests.support.go_client import ApiError, GoClient, config, host_config
from tests.support.registry import Registry, push_image, tar_of
from tests.support.waiting import until
from tests.support.wire import split_frames, stream_of

UID = "0d6e0c4e-6c0a-4c0e-a2b6-8e0f5d1f2a30"
SANDBOX = f"k8s_POD_web_default_{UID}_0"
TYPE, OWNER, LOG = "io.kubernetes.docker.type", "io.kubernetes.sandbox.id", "io.kubernetes.container.logpath"
PARENT = f"/kubepods/besteffort/pod{UID}"
# How cri-dockerd knows who has a name already.
CONFLICT = re.compile(r'Conflict. (?:.)+ is already in use by container "?([0-9a-z]+)"?')
# A line of a log as a kubelet reads it from the file: its own format, or Docker's.
OWN_FORMAT = re.compile(r"(\S+) (stdout|stderr) ([FP]) (.*)")


def sandbox(**host: Any) -> dict[str, Any]:
    labels = {"app": "web", "annotation.note": "a=b", TYPE: "podsandbox", "io.kubernetes.pod.uid": UID}
    given = {
        "IpcMode": "shareable", "NetworkMode": "none", "OomScoreAdj": -998, "CpuShares": 2, "CgroupParent": PARENT,
        "SecurityOpt": ["no-new-privileges"], "PortBindings": {}, "ShmSize": 64 << 20,
        "Sysctls": {"net.ipv4.ip_unprivileged_port_start": "0"}, **host,
    }  # fmt: skip
    return {
        **config(Hostname="web", Cmd=["sleep", "1000"], Labels=labels, ExposedPorts={}),
        "HostConfig": host_config(**given),
        "NetworkingConfig": None,
    }


def container(pod: str, *command: str, name: str = "app", log: str = "", **more: Any) -> dict[str, Any]:
    """The fields in `host` are about the host, all others about the container."""
    host = {
        "NetworkMode": f"container:{pod}", "IpcMode": f"container:{pod}", "CgroupParent": PARENT,
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0}, "Memory": 64 << 20, "MemorySwap": 64 << 20,
        "CpuShares": 102, "CpuPeriod": 100_000, "OomScoreAdj": 999, "ShmSize": 64 << 20, "CapDrop": ["NET_RAW"],
        "SecurityOpt": ["seccomp=unconfined"], "Runtime": "",
        "MaskedPaths": ["/proc/acpi"], "ReadonlyPaths": ["/proc/sys"],
        **more.pop("host", {}),
    }  # fmt: skip
    labels = {"io.kubernetes.container.name": name, TYPE: "container", OWNER: pod, LOG: log}
    return {
        **config(
            Entrypoint=list(command), Env=["A=b"], Labels=labels, Healthcheck={"Test": ["NONE"]}, **more
        ),
        "HostConfig": host_config(**host),
        "NetworkingConfig": None,
    }  # fmt: skip


def run_pod(api: GoClient, **host: Any) -> str:
    if isinstance(api.engine, Dockerd) and not _may_protect():
        # Husk does without what the host forbids.
        host = {"OomScoreAdj": 0, **host}
    pod = str(api.post(f"/containers/create?name={SANDBOX}", sandbox(**host))["Id"])
    api.post(f"/containers/{pod}/start")
    return pod


def _may_protect() -> bool:
    """Tell if processes may be kept from the kernel's OOM killer (CAP_SYS_RESOURCE)."""
    found = re.search(r"CapEff:\t([0-9a-f]+)", Path("/proc/self/status").read_text())
    return found is not None and bool(int(found[1], 16) >> 24 & 1)


def _require(api: GoClient) -> None:
    if api.version < (1, 44):
        pytest.skip("this dockerd is older than what is asked for")


def make(api: GoClient, pod: str, *command: str, name: str = "app", **more: Any) -> str:
    wish = container(pod, *command, name=name, **more)
    return str(api.post(f"/containers/create?name=k8s_{name}_web_default_{UID}_0", wish)["Id"])


def run(api: GoClient, pod: str, *command: str, name: str = "app", **more: Any) -> str:
    made = make(api, pod, *command, name=name, **more)
    api.post(f"/containers/{made}/start")
    return made


def said(api: GoClient, container: str, *command: str) -> str:
    return api.engine.docker("exec", container, *command).stdout


def test_what_is_asked_of_a_node(api: GoClient) -> None:
    info, version = api.get("/info"), api.get("/version")
    assert info["CgroupDriver"] in ("cgroupfs", "systemd") and os.path.isdir(info["DockerRootDir"])
    assert tuple(map(int, version["ApiVersion"].split("."))) >= (1, 24) and version["Version"]
    assert {info["DefaultRuntime"], "runc"} <= set(info["Runtimes"]) and info["LoggingDriver"] == "json-file"


def test_mounts_that_a_runtime_can_make(api: GoClient) -> None:
    """A kubelet asks if mounts can be read-only all the way down, and refuses such mounts where it is not told."""
    _require(api)
    told = api.get("/info")["Runtimes"]["runc"].get("status")
    if told is None and isinstance(api.engine, Dockerd):
        pytest.skip("this dockerd tells of another runtime")
    assert "rro" in json.loads(told["org.opencontainers.runtime-spec.features"])["mountOptions"]


def test_a_pod_and_what_its_containers_share(api: GoClient) -> None:
    pod = run_pod(api)
    shown = api.inspect(pod)
    network = f"/proc/{shown['State']['Pid']}/ns/net"
    assert os.path.exists(network) and shown["HostConfig"]["NetworkMode"] == "none"
    first = run(api, pod, "sleep", "1000")
    second = run(api, pod, "sleep", "1000", name="side", host={"PidMode": f"container:{pod}"})
    here = os.stat(network)
    for one in (first, second):
        inside = os.stat(f"/proc/{api.inspect(one)['State']['Pid']}/ns/net")
        assert (inside.st_ino, inside.st_dev) == (here.st_ino, here.st_dev)
        assert said(api, one, "hostname") == "web\n"
    said(api, first, "sh", "-c", "echo shared > /dev/shm/x")
    assert said(api, second, "cat", "/dev/shm/x") == said(api, pod, "cat", "/dev/shm/x") == "shared\n"
    assert "sleep" in said(api, second, "cat", "/proc/1/cmdline") and "NoNewPrivs:\t1" in said(
        api, pod, "cat", "/proc/self/status"
    )
    groups = Path(f"/proc/{api.inspect(first)['State']['Pid']}/cgroup").read_text()
    assert f"{PARENT}/{first}" in groups or f"docker-{first}.scope" in groups


def test_names_that_a_pod_resolves_by(api: GoClient) -> None:
    """resolv.conf of the sandbox is written on the host, after it runs: all of the pod have that, and keep it."""
    pod = run_pod(api)
    path = Path(api.inspect(pod)["ResolvConfPath"])
    # As cri-dockerd does it: no file is created.
    text = "nameserver 192.0.2.53\nsearch default.svc.cluster.local\noptions ndots:5\n"
    with open(os.open(path, os.O_WRONLY | os.O_TRUNC), "w") as file:
        file.write(text)
    first = run(api, pod, "sleep", "1000")
    assert api.inspect(first)["ResolvConfPath"] == str(path)
    assert said(api, pod, "cat", "/etc/resolv.conf") == said(api, first, "cat", "/etc/resolv.conf") == text
    # A container of the pod that is made anew.
    api.post(f"/containers/{first}/stop?t=0")
    api.post(f"/containers/{first}/start")
    assert said(api, first, "cat", "/etc/resolv.conf") == text


def test_what_a_pod_resolves_by_stays_through_a_crash(daemon: Daemon) -> None:
    api = GoClient(daemon)
    pod = run_pod(api)
    path = Path(api.inspect(pod)["ResolvConfPath"])
    path.write_text("nameserver 192.0.2.53\n")
    first = run(api, pod, "sleep", "1000")
    daemon.kill9()
    daemon.start()
    assert said(api, first, "cat", "/etc/resolv.conf") == "nameserver 192.0.2.53\n" == path.read_text()
    late = run(api, pod, "sleep", "1000", name="late")
    assert said(api, late, "cat", "/etc/resolv.conf") == "nameserver 192.0.2.53\n"


def test_a_name_that_a_former_attempt_left(api: GoClient) -> None:
    """The kubelet reads the holder of the name from the message, removes it without force, and tries again."""
    first = api.post(f"/containers/create?name={SANDBOX}", sandbox())["Id"]
    with pytest.raises(ApiError) as taken:
        api.post(f"/containers/create?name={SANDBOX}", sandbox())
    found = CONFLICT.search(taken.value.message)
    assert found is not None and found[1] == first
    api.ask("DELETE", f"/containers/{found[1]}?v=1")
    with pytest.raises(ApiError) as gone:
        api.ask("DELETE", f"/containers/{found[1]}?v=1")
    # By these words it knows to take another name.
    assert re.search("No such container: [0-9a-z]+", gone.value.message) and gone.value.status == 404
    assert api.post(f"/containers/create?name={SANDBOX}", sandbox())["Id"] != first


def test_lists_by_labels_and_states(api: GoClient) -> None:
    pod = run_pod(api)
    running = run(api, pod, "sleep", "1000", name="running")
    ended = run(api, pod, "true", name="ended")
    created = make(api, pod, "true", name="created")
    assert api.waiting(ended).result() == 0
    pods = api.listed({"label": [f"{TYPE}=podsandbox"]}, all=True)
    assert [(one["Id"], one["Status"][:2], one["Labels"]["annotation.note"]) for one in pods] == [(pod, "Up", "a=b")]

    def found(**filters: list[str]) -> set[str]:
        return {one["Id"] for one in api.listed(filters, all=True)}

    mine = f"{OWNER}={pod}"
    assert found(label=[mine]) == {running, ended, created}
    assert found(label=[mine, f"{TYPE}=container"], status=["running"]) == {running}
    assert found(label=[mine], status=["exited"]) == {ended}
    assert found(label=[mine], status=["created"]) == {created}
    assert found(label=[mine], id=[ended]) == {ended} and found(label=[mine], id=["0" * 64]) == set()
    assert found(label=[f"{OWNER}=other"]) == found(label=["app=web", mine]) == set()
    status = {one["Id"]: one["Status"] for one in api.listed({"label": [mine]}, all=True)}
    assert status[running].startswith("Up") and status[ended].startswith("Exited") and status[created] == "Created"


def test_what_a_container_that_ended_tells(api: GoClient) -> None:
    pod = run_pod(api)
    ended = run(api, pod, "sh", "-c", "exit 3")
    assert api.waiting(ended).result() == 3
    shown = api.inspect(ended)
    state = shown["State"]
    times = [shown["Created"], state["StartedAt"], state["FinishedAt"]]
    moments = [datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text.replace("Z", "+00:00"))) for text in times]
    # dockerd takes the two times of one run by different clocks: of a short one the end may be the earlier.
    assert moments[0] == min(moments) and moments[0].year > 2020
    assert (state["Running"], state["ExitCode"], state["OOMKilled"], state["Error"], state["Pid"]) == (
        False,
        3,
        False,
        "",
        0,
    )
    image = api.get(f"/images/{shown['Image']}/json")
    assert image["Id"] == shown["Image"] and "busybox:latest" in image["RepoTags"]


@pytest.mark.parametrize(("command", "code"), [("/nowhere", 127), ("nowhere", 127), ("/etc/passwd", 126)])
def test_a_container_that_cannot_run(api: GoClient, command: str, code: int) -> None:
    """It has ended without having begun: no end, but a code, and why."""
    pod = run_pod(api)
    made = make(api, pod, command)
    with pytest.raises(ApiError) as failed:
        api.post(f"/containers/{made}/start")
    shown = api.inspect(made)
    assert shown["State"]["FinishedAt"] == shown["State"]["StartedAt"] == "0001-01-01T00:00:00Z"
    assert (shown["State"]["Running"], shown["State"]["ExitCode"]) == (False, code)
    assert failed.value.message.startswith(shown["State"]["Error"][:60]) and command in shown["State"]["Error"]


def test_the_log_that_a_kubelet_reads_itself(api: GoClient, tmp_path: Path) -> None:
    """A link to the file, made when it has started."""
    pod = run_pod(api)
    link = tmp_path / "0.log"
    made = run(api, pod, "sh", "-c", "echo out; echo err >&2; echo end", log=str(link))
    shown = api.inspect(made)
    assert shown["Config"]["Labels"][LOG] == str(link)
    link.symlink_to(shown["LogPath"])
    assert api.waiting(made).result() == 0
    lines = []
    for line in link.read_text().splitlines():
        if line.startswith("{"):
            told = json.loads(line)
            lines.append((told["stream"], told["log"].rstrip("\n"), told["time"]))
        else:
            own = OWN_FORMAT.fullmatch(line)
            assert own is not None, line
            lines.append((own[2], own[4], own[1]))
    assert {(stream, text) for stream, text, _ in lines} == {("stdout", "out"), ("stderr", "err"), ("stdout", "end")}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d)", time) for _, _, time in lines)
    api.ask("DELETE", f"/containers/{made}?v=1&force=1")
    assert not link.exists() and link.is_symlink()


def test_logs_by_the_api(api: GoClient) -> None:
    pod = run_pod(api)
    script = "for n in 1 2 3 4 5; do echo line $n; done; exec sleep 1000"
    made = run(api, pod, "sh", "-c", script)
    until(lambda: "5" in api.logs(made, "stderr=1&stdout=1&since=0")[0], "all lines")
    assert api.logs(made, "stderr=1&stdout=1&since=0&tail=2") == ("line 4\nline 5\n", "")
    assert api.logs(made, "stderr=1&stdout=1&since=0&tail=0") == ("", "")
    told, _ = api.logs(made, "stdout=1&since=0&timestamps=1&tail=1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z line 5\n", told)
    assert api.logs(made, f"stderr=1&stdout=1&since={int(time.time()) + 3600}") == ("", "")
    # A limit in bytes: the reader leaves in the middle, while the log goes on.
    for _ in range(20):
        with api.stream(f"/containers/{made}/logs?follow=1&stderr=1&stdout=1&since=0") as answer:
            assert answer.read(8 + 7) == b"\1\0\0\0\0\0\0\7line 1\n"
    assert api.inspect(made)["State"]["Running"]


def test_an_interactive_container(api: GoClient) -> None:
    """Its input is open until the first who is attached leaves."""
    pod = run_pod(api)
    made = make(api, pod, "sh", "-c", "cat; echo end", OpenStdin=True, StdinOnce=True)
    api.post(f"/containers/{made}/start")
    with api.hijacked(f"/containers/{made}/attach?stderr=1&stdin=1&stdout=1&stream=1") as line:
        line.socket.sendall(b"typed\n")
        assert line.read_frame() == (1, b"typed\n")
        line.half_close()
        assert stream_of(line.read_to_end(), 1) == b"end\n"
    assert api.waiting(made).result() == 0


def test_a_terminal_in_a_pod(api: GoClient) -> None:
    pod = run_pod(api)
    made = run(api, pod, "sh", OpenStdin=True, Tty=True)
    with api.hijacked(f"/containers/{made}/attach?stderr=1&stdin=1&stdout=1&stream=1") as line:
        api.post(f"/containers/{made}/resize?h=40&w=123")
        line.socket.sendall(b"stty size\n")
        assert b"40 123" in line.read_until(b"40 123")
        line.socket.sendall(b"exit 6\n")
        line.read_to_end()
    assert api.waiting(made).result() == 6


def test_a_probe_that_takes_too_long(api: GoClient) -> None:
    """The caller leaves; the process goes on and is told as running until it has ended."""
    pod = run_pod(api)
    made = run(api, pod, "sleep", "1000")
    wish = {
        "AttachStdin": False,
        "AttachStdout": True,
        "AttachStderr": True,
        "Cmd": ["sh", "-c", "echo a; cat /tmp/f; exit 9"],
    }
    said(api, made, "mkfifo", "/tmp/f")
    process = api.post(f"/containers/{made}/exec", wish)["Id"]
    with api.hijacked(f"/exec/{process}/start", {"Detach": False, "Tty": False}) as line:
        assert line.read_frame() == (1, b"a\n")
    assert api.get(f"/exec/{process}/json")["Running"] is True
    said(api, made, "sh", "-c", "echo b > /tmp/f")
    until(lambda: not api.get(f"/exec/{process}/json")["Running"], "its end")
    # Older dockerds take the end of who read it for a failure.
    assert api.get(f"/exec/{process}/json")["ExitCode"] in ((9, 126) if isinstance(api.engine, Dockerd) else (9,))


def test_many_probes_at_once(api: GoClient) -> None:
    pod = run_pod(api)
    made = run(api, pod, "sleep", "1000")
    codes: dict[int, Any] = {}

    def probe(number: int) -> None:
        wish = {"AttachStdout": True, "AttachStderr": True, "Cmd": ["sh", "-c", f"echo {number}; exit {number}"]}
        process = api.post(f"/containers/{made}/exec", wish)["Id"]
        with api.hijacked(f"/exec/{process}/start", {"Detach": False, "Tty": False}) as line:
            told = stream_of(line.read_to_end(), 1)
        shown = api.get(f"/exec/{process}/json")
        codes[number] = (told, shown["Running"], shown["ExitCode"])

    threads = [threading.Thread(target=probe, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == {number: (b"%d\n" % number, False, number) for number in range(16)}


def test_mounts_of_a_pod(api: GoClient, tmp_path: Path) -> None:
    _require(api)
    (tmp_path / "hosts").write_text("127.0.0.1 pod\n")
    pod = run_pod(api)
    mounts = [
        {
            "Type": "bind", "Source": str(tmp_path / "made"), "Target": "/made",
            "BindOptions": {"CreateMountpoint": True},
        },
        {
            "Type": "bind", "Source": str(tmp_path / "hosts"), "Target": "/etc/hosts",
            "BindOptions": {"CreateMountpoint": True},
        },
        {
            "Type": "bind", "Source": str(tmp_path), "Target": "/ro", "ReadOnly": True,
            "BindOptions": {"CreateMountpoint": True, "ReadOnlyNonRecursive": True, "Propagation": "rprivate"},
        },
    ]  # fmt: skip
    made = run(api, pod, "sleep", "1000", host={"Mounts": mounts})
    assert (tmp_path / "made").is_dir() and said(api, made, "cat", "/etc/hosts") == "127.0.0.1 pod\n"
    assert api.engine.docker("exec", made, "touch", "/ro/x", check=False).returncode != 0
    shown = {mount["Destination"]: (mount["Source"], mount["RW"]) for mount in api.inspect(made)["Mounts"]}
    assert shown == {
        "/made": (f"{tmp_path}/made", True), "/etc/hosts": (f"{tmp_path}/hosts", True), "/ro": (str(tmp_path), False),
    }  # fmt: skip


def test_statistics_and_sizes(api: GoClient) -> None:
    _require(api)
    pod = run_pod(api)
    made = run(api, pod, "sh", "-c", "head -c 200000 /dev/zero > /big; exec sleep 1000")
    until(lambda: "200000" in said(api, made, "wc", "-c", "/big"), "the file")
    told = api.get(f"/containers/{made}/stats?stream=0&one-shot=1")
    assert told["cpu_stats"]["cpu_usage"]["total_usage"] > 0 and told["memory_stats"]["usage"] > 0
    assert api.get(f"/containers/{made}/json?size=1")["SizeRw"] >= 200_000
    (listed,) = [one for one in api.get("/containers/json?size=1") if one["Id"] == made]
    assert listed["SizeRw"] >= 200_000
    images = api.get("/images/json?all=1&shared-size=1")
    assert all(0 <= image["SharedSize"] <= image["Size"] for image in images)


def test_limits_that_change(api: GoClient) -> None:
    pod = run_pod(api)
    made = run(api, pod, "sleep", "1000")
    wish = {
        "CpuShares": 512, "CpuPeriod": 100_000, "CpuQuota": 50_000, "Memory": 128 << 20, "MemorySwap": 128 << 20,
        "CpusetCpus": "", "CpusetMems": "", "CgroupParent": "", "BlkioWeight": 0, "BlkioWeightDevice": None,
        "BlkioDeviceReadBps": None, "BlkioDeviceWriteBps": None, "BlkioDeviceReadIOps": None,
        "BlkioDeviceWriteIOps": None, "CpuRealtimePeriod": 0, "CpuRealtimeRuntime": 0, "Devices": None,
        "DeviceCgroupRules": None, "DeviceRequests": None, "KernelMemoryTCP": 0, "MemoryReservation": 0,
        "MemorySwappiness": None, "NanoCpus": 0, "OomKillDisable": None, "PidsLimit": None, "Ulimits": None,
        "CpuCount": 0, "CpuPercent": 0, "IOMaximumIOps": 0, "IOMaximumBandwidth": 0,
        "RestartPolicy": {"Name": "", "MaximumRetryCount": 0},
    }  # fmt: skip
    api.post(f"/containers/{made}/update", wish)
    host = api.inspect(made)["HostConfig"]
    assert (host["Memory"], host["CpuShares"], host["CpuQuota"]) == (128 << 20, 512, 50_000)
    assert host["CgroupParent"] == PARENT and host["RestartPolicy"]["Name"] == "no"
    assert api.get(f"/containers/{made}/stats?stream=0&one-shot=1")["memory_stats"]["limit"] == 128 << 20


def test_the_end_of_a_pod(api: GoClient) -> None:
    """The sandbox is stopped first, then its containers are found by label and removed, twice."""
    pod = run_pod(api)
    made = [run(api, pod, "sleep", "1000", name=f"c{number}") for number in range(3)]
    for _ in range(2):
        for one in made:
            if api.inspect(one)["State"]["Running"]:
                api.post(f"/containers/{one}/stop?t=0")
        try:
            api.post(f"/containers/{pod}/stop?t=1")
        except ApiError as error:
            assert error.status == 304
    for listed in api.listed({"label": [f"{OWNER}={pod}"]}, all=True):
        api.ask("DELETE", f"/containers/{listed['Id']}?v=1&force=1")
    api.ask("DELETE", f"/containers/{pod}?v=1&force=1")
    for one in (pod, *made):
        with pytest.raises(ApiError) as gone:
            api.post(f"/containers/{one}/stop?t=0")
        assert gone.value.status == 404 and gone.value.message == f"No such container: {one}"
    assert api.listed(all=True) == []


def test_a_sandbox_that_is_removed_before_its_containers(api: GoClient) -> None:
    pod = run_pod(api)
    made = run(api, pod, "sleep", "1000")
    api.ask("DELETE", f"/containers/{pod}?v=1&force=1")
    shown = api.inspect(made)
    assert shown["State"]["Running"] and said(api, made, "echo", "here") == "here\n"
    api.ask("DELETE", f"/containers/{made}?v=1&force=1")


def test_images_by_every_name(daemon: Daemon) -> None:
    """A kubelet asks by tag, by digest and by id, and has each of the names removed."""
    api = GoClient(daemon)
    with Registry() as registry:
        image = push_image(registry, "team/app", "1", layers=[tar_of({"a": os.urandom(1000)})])
        api.ask(
            "POST", f"/images/create?fromImage={registry.host}%2Fteam%2Fapp&tag=1", headers={"X-Registry-Auth": "e30K"}
        )
        name, pinned = f"{registry.host}/team/app:1", f"{registry.host}/team/app@{image.digest}"
        shown = api.get(f"/images/{name}/json")
        assert (shown["RepoTags"], shown["RepoDigests"]) == ([name], [pinned])
        for other in (pinned, shown["Id"]):
            assert api.get(f"/images/{other}/json")["Id"] == shown["Id"]
        history = api.get(f"/images/{shown['Id']}/history")
        assert history and {"Created", "CreatedBy", "Comment", "Size"} <= history[0].keys()
        (listed,) = api.get("/images/json?filters=" + quote(json.dumps({"reference": {name: True}})))
        assert listed["Id"] == shown["Id"]
        api.ask("DELETE", f"/images/{name}")
        for other in (pinned, shown["Id"]):
            with pytest.raises(ApiError) as gone:
                api.ask("DELETE", f"/images/{other}")
            assert gone.value.status == 404 and "No such image" in gone.value.message
        with pytest.raises(ApiError) as missing:
            api.get(f"/images/{name}/json")
        assert missing.value.status == 404


def test_a_pull_that_needs_a_login(daemon: Daemon) -> None:
    """The failure is in the stream or in the status: both name the image's trouble and leave nothing."""
    api = GoClient(daemon)
    with Registry(login=True) as registry:
        path = f"/images/create?fromImage={registry.host}%2Fteam%2Fapp&tag=1"
        try:
            told = api.ask("POST", path, headers={"X-Registry-Auth": "e30K"}).body.splitlines()
            failure = json.loads(told[-1])["error"]
        except ApiError as error:
            failure = error.message
        assert "no basic auth credentials" in failure or "unauthorized" in failure
        assert not [one for one in api.get("/images/json") if registry.host in str(one["RepoTags"])]


def test_frames_of_a_long_line(api: GoClient) -> None:
    """Lines of many kilobytes come in frames that are put together again."""
    pod = run_pod(api)
    made = run(api, pod, "sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo; echo end")
    assert api.waiting(made).result() == 0
    with api.stream(f"/containers/{made}/logs?stdout=1&stderr=1") as answer:
        frames = split_frames(answer.read())
    assert b"".join(data for _, data in frames) == b"x" * 100_000 + b"\nend\n"
    assert max(len(data) for _, data in frames) <= 32 << 10
