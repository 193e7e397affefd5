"""Docker's API as Nomad's docker driver uses it: its calls, in its order, by what it relies on in their answers.

Asked of dockerd, too: what is here is what holds there.
"""

import os
import subprocess
import threading
import time
from typing import Any

import pytest

from tests.support.daemon import Daemon, unused_subnet
from tests.support.go_client import ApiError, GoClient, config, host_config
from tests.support.pulling import records
from tests.support.registry import Registry, push_image, tar_of
from tests.support.waiting import until
from tests.support.wire import stream_of

ALLOC = "8e1c9a2e-0c5f-4b6e-9d40-6c1f2a7b9f10"
LABEL = "com.hashicorp.nomad.alloc_id"
NAME = f"web-{ALLOC}"
# What Nomad takes away from Docker's capabilities unless a job says otherwise.
DROPPED = ["NET_RAW"]
MAC = "02:42:ac:11:00:77"


def task(*command: str, **host: Any) -> dict[str, Any]:
    """A task's container as the driver writes it."""
    given = {
        "NetworkMode": "default",
        "LogConfig": {"Type": "json-file", "Config": {"max-file": "2", "max-size": "2m"}},
        "CapDrop": DROPPED, "CpuShares": 100, "Memory": 64 << 20, "MemorySwap": 64 << 20, "PidsLimit": -1,
        "PortBindings": {}, **host,
    }  # fmt: skip
    return {
        **config(
            Image=host.pop("Image", "busybox:latest"), Cmd=list(command), Labels={LABEL: ALLOC}, ExposedPorts={},
            Env=[f"NOMAD_ALLOC_ID={ALLOC}", "NOMAD_TASK_DIR=/local"],
        ),
        "HostConfig": host_config(**given),
        "NetworkingConfig": {"EndpointsConfig": None},
    }  # fmt: skip


def by_name(api: GoClient, name: str) -> dict[str, Any] | None:
    """The driver never asks for a name: it lists all containers, and inspects the one."""
    found = [each["Id"] for each in api.listed(all=True) if f"/{name}" in each["Names"]]
    return api.inspect(found[0]) if found else None


def run_task(api: GoClient, *command: str, name: str = NAME, **host: Any) -> str:
    api.post(f"/containers/create?name={name}", task(*command, **host))
    made = by_name(api, name)
    assert made is not None and not made["State"]["Running"]
    api.post(f"/containers/{made['Id']}/start")
    assert api.inspect(made["Id"])["State"]["Running"]
    return str(made["Id"])


def test_what_is_asked_of_a_node(api: GoClient) -> None:
    version = api.get("/version")
    assert version["Version"] and version["Os"] == "linux" and "Name" in version["Platform"]
    assert all(set(part) >= {"Name", "Version"} for part in version["Components"])
    (bridge,) = [each for each in api.get("/networks") if each["Name"] == "bridge"]
    assert bridge["IPAM"]["Config"][0]["Gateway"].count(".") == 3
    info = api.get("/info")
    assert info["OSType"] == "linux" and info["CgroupDriver"] in ("cgroupfs", "systemd")
    assert "runc" in info["Runtimes"] and info["LoggingDriver"] == "json-file"


def test_a_task_from_its_creation_to_its_end(api: GoClient, tmp_path: Any) -> None:
    (tmp_path / "alloc").mkdir()
    assert api.get("/images/busybox:latest/json")["Config"]["User"] == ""
    script = "trap 'echo last; exit 5' TERM; echo out; echo err >&2; while :; do sleep 0.05; done"
    whole = {"Type": "bind", "Source": str(tmp_path), "Target": "/all", "BindOptions": {"Propagation": "rprivate"}}
    free = [{"HostIp": "127.0.0.1", "HostPort": ""}]
    container = run_task(
        api, *("sh", "-c", script),
        Binds=[f"{tmp_path}/alloc:/alloc", f"{tmp_path}/alloc:/local:ro"],
        Mounts=[whole], PortBindings={"80/tcp": free, "80/udp": free},
        Ulimits=[{"Name": "nofile", "Soft": 512, "Hard": 1024}], ExtraHosts=["db:192.0.2.9"],
    )  # fmt: skip
    shown = api.inspect(container)
    assert shown["HostConfig"]["LogConfig"] == {"Type": "json-file", "Config": {"max-file": "2", "max-size": "2m"}}
    assert next(net["IPAddress"] for net in shown["NetworkSettings"]["Networks"].values())
    assert os.path.exists(shown["NetworkSettings"]["SandboxKey"])
    wait = api.waiting(container)
    logged: list[bytes] = []
    with api.stream(f"/containers/{container}/logs?follow=1&since=0.000000000&stderr=1&stdout=1&tail=") as answer:
        reader = threading.Thread(target=lambda: logged.append(answer.read()), daemon=True)
        reader.start()
        until(lambda: api.logs(container, "stderr=1")[1], "what it writes first")
        assert not wait.ended
        with pytest.raises(ApiError) as refused:
            api.ask("DELETE", f"/containers/{container}")
        assert refused.value.status == 409
        api.post(f"/containers/{container}/stop?t=10")
        assert wait.result() == 5
        reader.join(30)
    assert stream_of(logged[0], 1) == b"out\nlast\n" and stream_of(logged[0], 2) == b"err\n"
    ended = api.inspect(container)
    assert (ended["State"]["Running"], ended["State"]["ExitCode"], ended["State"]["OOMKilled"]) == (False, 5, False)
    # The driver stops it once more, in case the wait was wrong.
    with pytest.raises(ApiError) as again:
        api.post(f"/containers/{container}/stop?t=0")
    assert again.value.status == 304
    with pytest.raises(ApiError) as late:
        api.post(f"/containers/{container}/kill?signal=SIGTERM")
    assert late.value.status == 409 and "is not running" in late.value.message
    assert api.waiting(container).result() == 5
    api.ask("DELETE", f"/containers/{container}?force=1")
    for gone in (f"/containers/{container}/stop?t=0", f"/containers/{container}/kill?signal=SIGTERM"):
        with pytest.raises(ApiError) as missing:
            api.post(gone)
        assert missing.value.status == 404
    assert by_name(api, NAME) is None


def test_a_name_that_is_taken(api: GoClient) -> None:
    """One that runs is taken over, one that has ended is removed, and its name is free at once."""
    running = run_task(api, "sleep", "1000")
    with pytest.raises(ApiError) as taken:
        api.post(f"/containers/create?name={NAME}", task("true"))
    assert taken.value.status == 409
    found = by_name(api, NAME)
    assert found is not None and found["Id"] == running and found["State"]["Running"]
    with pytest.raises(ApiError) as started:
        api.post(f"/containers/{running}/start")
    assert started.value.status == 304
    for _ in range(5):
        api.ask("DELETE", f"/containers/{running}?force=1")
        running = run_task(api, "sleep", "1000")


def test_the_same_name_from_many_at_once(api: GoClient) -> None:
    """A client that was restarted may have two drivers for a moment: one gets the name."""
    ends: list[int] = []

    def create() -> None:
        try:
            api.post(f"/containers/create?name={NAME}", task("true"))
            ends.append(201)
        except ApiError as error:
            ends.append(error.status)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == [201] + [409] * 7
    assert len(api.listed(all=True)) == 1


def test_an_image_that_is_gone(api: GoClient) -> None:
    with pytest.raises(ApiError) as missing:
        api.post(f"/containers/create?name={NAME}", task("true", Image="sha256:" + "0" * 64))
    assert missing.value.status == 404 and "No such image" in missing.value.message
    assert by_name(api, NAME) is None


def test_a_signal_before_the_stop(api: GoClient) -> None:
    """`kill_signal` of a job: that signal first, then stop without patience."""
    script = "trap 'echo got; ' INT; echo ready; while :; do sleep 0.05; done"
    container = run_task(api, "sh", "-c", script)
    wait = api.waiting(container)
    until(lambda: "ready" in api.logs(container, "stdout=1&stderr=1")[0], "the trap")
    api.post(f"/containers/{container}/kill?signal=SIGINT")
    until(lambda: "got" in api.logs(container, "stdout=1&stderr=1")[0], "the signal")
    assert not wait.ended
    api.post(f"/containers/{container}/stop?t=0")
    assert wait.result() == 137
    assert api.inspect(container)["State"]["OOMKilled"] is False


def test_a_task_that_takes_too_much_memory(api: GoClient) -> None:
    container = run_task(api, "sh", "-c", "sleep 0.2; tail /dev/zero", Memory=16 << 20, MemorySwap=16 << 20)
    assert api.waiting(container).result() == 137
    assert api.inspect(container)["State"]["OOMKilled"] is True


def test_removed_by_somebody_else(api: GoClient) -> None:
    """The wait and the log end when the container is removed under them."""
    container = run_task(api, "sh", "-c", "echo here; sleep 1000")
    wait = api.waiting(container)
    with api.stream(f"/containers/{container}/logs?follow=1&since=0.000000000&stderr=1&stdout=1") as answer:
        assert answer.read(13) == b"\1\0\0\0\0\0\0\5here\n"
        api.engine.docker("rm", "-f", container)
        assert answer.read() == b""
    assert wait.result() == 137
    with pytest.raises(ApiError) as gone:
        api.inspect(container)
    assert gone.value.status == 404 and gone.value.message == f"No such container: {container}"


def test_logs_that_are_read_on(api: GoClient) -> None:
    """A log reader that was restarted asks for what came since, by the second."""
    container = run_task(api, "sh", "-c", "trap 'echo second; exit' TERM; echo first; while :; do sleep 0.05; done")
    until(lambda: api.logs(container, "stdout=1")[0], "the first line")
    since = int(time.time()) + 1
    until(lambda: time.time() >= since, "the next second")
    assert api.logs(container, f"since={since}.000000000&stderr=1&stdout=1") == ("", "")
    api.post(f"/containers/{container}/stop?t=10")
    assert api.logs(container, f"follow=1&since={since}.000000000&stderr=1&stdout=1") == ("second\n", "")


def test_a_log_driver_that_cannot_be_read(api: GoClient) -> None:
    """The driver gives up for good when it hears these words."""
    container = run_task(api, "sleep", "1000", LogConfig={"Type": "none", "Config": {}})
    with api.stream(f"/containers/{container}/logs?follow=1&stdout=1&stderr=1") as answer:
        assert answer.status == 501
        assert b"configured logging driver does not support reading" in answer.read()


def test_statistics_with_the_sample_before(api: GoClient) -> None:
    """One at a time, each on a request of its own: a share of the processor needs two samples."""
    container = run_task(api, "sh", "-c", "while :; do :; done")
    told = api.get(f"/containers/{container}/stats?stream=0")
    cpu, before = told["cpu_stats"], told["precpu_stats"]
    assert cpu["cpu_usage"]["total_usage"] > before["cpu_usage"]["total_usage"] > 0
    assert cpu["system_cpu_usage"] > before["system_cpu_usage"] > 0 and cpu["online_cpus"] > 0
    assert {"throttled_periods", "throttled_time"} <= cpu["throttling_data"].keys()
    assert told["memory_stats"]["usage"] > 0 and told["memory_stats"]["limit"] == 64 << 20
    assert told["read"] > told["preread"] > "2"
    api.post(f"/containers/{container}/stop?t=0")
    assert api.get(f"/containers/{container}/stats?stream=0")["cpu_stats"]["cpu_usage"]["total_usage"] == 0


def test_a_check_is_run_and_its_status_read_at_once(api: GoClient) -> None:
    container = run_task(api, "sleep", "1000")
    for number in range(20):
        wish = {"AttachStdout": True, "AttachStderr": True, "Cmd": ["sh", "-c", f"echo o; echo e >&2; exit {number}"]}
        process = api.post(f"/containers/{container}/exec", wish)["Id"]
        with api.hijacked(f"/exec/{process}/start", {"Tty": False}) as line:
            told = line.read_to_end()
        assert (stream_of(told, 1), stream_of(told, 2)) == (b"o\n", b"e\n")
        shown = api.get(f"/exec/{process}/json")
        assert (shown["Running"], shown["ExitCode"]) == (False, number)


def test_a_shell_in_a_task(api: GoClient) -> None:
    """Sizes are sent as soon as there is an exec, and so before it runs."""
    container = run_task(api, "sleep", "1000")
    wish = {"AttachStdin": True, "AttachStdout": True, "AttachStderr": True, "Tty": True, "Cmd": ["sh"]}
    process = api.post(f"/containers/{container}/exec", wish)["Id"]
    with pytest.raises(ApiError) as early:
        api.post(f"/exec/{process}/resize?h=33&w=111")
    assert early.value.status in (409, 500)
    with api.hijacked(f"/exec/{process}/start", {"Tty": True}) as line:
        api.post(f"/exec/{process}/resize?h=33&w=111")
        line.socket.sendall(b"stty size; exit 4\n")
        assert b"33 111" in line.read_to_end()
    assert api.get(f"/exec/{process}/json")["ExitCode"] == 4


def test_input_that_ends(api: GoClient) -> None:
    container = run_task(api, "sleep", "1000")
    wish = {"AttachStdin": True, "AttachStdout": True, "AttachStderr": True, "Cmd": ["sh", "-c", "wc -c; exit 3"]}
    process = api.post(f"/containers/{container}/exec", wish)["Id"]
    with api.hijacked(f"/exec/{process}/start", {"Tty": False}) as line:
        line.socket.sendall(b"x" * 100_000)
        line.half_close()
        assert stream_of(line.read_to_end(), 1).strip() == b"100000"
    assert api.get(f"/exec/{process}/json")["ExitCode"] == 3


def test_a_group_of_tasks_with_one_network(api: GoClient) -> None:
    """A container that does nothing holds the network; others put an interface into it by its path, tasks join it."""
    name = f"nomad_init_{ALLOC}"
    holder = {
        **config(Cmd=["sleep", "1000"], Hostname="group", Labels={LABEL: ALLOC}),
        "HostConfig": host_config(NetworkMode="none", RestartPolicy={"Name": "unless-stopped", "MaximumRetryCount": 0}),
        "NetworkingConfig": {"EndpointsConfig": None},
    }
    api.post(f"/containers/create?name={name}", holder)
    found = by_name(api, name)
    assert found is not None
    pause = found["Id"]
    api.post(f"/containers/{pause}/start")
    key = api.inspect(pause)["NetworkSettings"]["SandboxKey"]
    # As a CNI plugin does it.
    subprocess.run(["nsenter", f"--net={key}", "ip", "link", "add", "cni0", "type", "veth"], check=True)
    subprocess.run(["nsenter", f"--net={key}", "ip", "address", "add", "192.0.2.77/24", "dev", "cni0"], check=True)
    container = run_task(api, "sleep", "1000", NetworkMode=f"container:{pause}")
    assert "192.0.2.77" in api.engine.docker("exec", container, "ip", "address", "show", "cni0").stdout
    assert api.inspect(container)["NetworkSettings"]["SandboxKey"] == ""
    assert api.engine.docker("exec", container, "hostname").stdout == "group\n"
    # A driver that was restarted finds it by label and name.
    (again,) = [
        each
        for each in api.listed({"label": [LABEL]})
        if each["Labels"][LABEL] == ALLOC and each["Names"] == [f"/{name}"]
    ]
    assert again["Id"] == pause
    holders, tasks = api.inspect(pause), api.inspect(container)
    for path in ("ResolvConfPath", "HostsPath", "HostnamePath"):
        assert tasks[path] == holders[path]
    api.ask("DELETE", f"/containers/{container}?force=1")
    api.post(f"/containers/{pause}/stop?t=1")
    api.ask("DELETE", f"/containers/{pause}?force=1")
    assert not api.listed(all=True)


def test_a_task_after_its_network_has_gone(api: GoClient) -> None:
    pause = run_task(api, "sleep", "1000", name="pause", NetworkMode="none")
    api.post(f"/containers/create?name={NAME}", task("true", NetworkMode=f"container:{pause}"))
    api.ask("DELETE", f"/containers/{pause}?force=1")
    with pytest.raises(ApiError) as lost:
        api.post(f"/containers/{NAME}/start")
    # The 500 of dockerd 28 has the driver try it five times more, the 404 of older ones take the task for missing.
    assert lost.value.status in (400, 404, 500) and pause in lost.value.message


def test_containers_that_nobody_knows_any_more(api: GoClient, tmp_path: Any) -> None:
    """They are known by labels, names and mounts of the list, and by when they were made."""
    before = int(time.time())
    container = run_task(api, "sleep", "1000", Binds=[f"{tmp_path}:/alloc", f"{tmp_path}:/secrets"])
    (listed,) = api.listed()
    assert {mount["Destination"] for mount in listed["Mounts"]} == {"/alloc", "/secrets"}
    assert listed["Names"] == [f"/{NAME}"] and before <= listed["Created"] <= int(time.time())
    assert (listed["Id"], listed["State"], listed["Labels"][LABEL]) == (container, "running", ALLOC)


def test_images_that_no_task_needs(api: GoClient) -> None:
    """By id and by force, whatever names there are; not while a container has it."""
    image = api.get("/images/busybox:latest/json")["Id"]
    container = run_task(api, "sleep", "1000")
    with pytest.raises(ApiError) as used:
        api.ask("DELETE", f"/images/{image}?force=1")
    assert used.value.status == 409
    api.ask("DELETE", f"/containers/{container}?force=1")
    with pytest.raises(ApiError) as missing:
        api.ask("DELETE", f"/images/sha256:{'0' * 64}?force=1")
    assert missing.value.status == 404


def test_a_pull_whose_progress_is_watched(daemon: Daemon) -> None:
    """The driver counts layers by these words, and gives up when none comes for minutes."""
    api = GoClient(daemon)
    with Registry() as registry:
        push_image(registry, "app", "1", layers=[tar_of({"a": os.urandom(3 << 20)}), tar_of({"b": b"b"})])
        answer = api.ask(
            "POST", f"/images/create?fromImage={registry.host}/app&tag=1", headers={"X-Registry-Auth": "e30="}
        )
        told = records(answer)
        layers = {line["id"] for line in told if line.get("status") == "Pulling fs layer"}
        assert len(layers) == 2
        for status in ("Download complete", "Pull complete"):
            assert {line["id"] for line in told if line.get("status") == status} == layers
        bars = [line["progressDetail"] for line in told if line.get("status") == "Downloading"]
        assert all(0 < bar["current"] <= bar["total"] for bar in bars if bar)
        assert api.get(f"/images/{registry.host}/app:1/json")["Id"]
        api.ask("DELETE", f"/images/{registry.host}/app:1?force=1")


def test_an_agent_whose_engine_is_restarted(daemon: Daemon) -> None:
    """A wait that was cut off is begun again, the log is read on, the holder of a network is the same."""
    api = GoClient(daemon)
    pause = run_task(api, "sleep", "1000", name="pause", NetworkMode="none")
    container = run_task(api, "sh", "-c", "echo one; sleep 1000", NetworkMode=f"container:{pause}")
    key = api.inspect(pause)["NetworkSettings"]["SandboxKey"]
    daemon.kill9()
    daemon.start()
    assert api.inspect(pause)["NetworkSettings"]["SandboxKey"] == key and os.path.exists(key)
    wait = api.waiting(container)
    assert api.logs(container, "stdout=1")[0] == "one\n"
    api.post(f"/containers/{container}/stop?t=0")
    assert wait.result() == 137


def test_an_image_from_an_archive(api: GoClient) -> None:
    """`load` of a job: the answer is not read, the image is looked up by the job's name of it."""
    archive = api.engine.docker_bytes("save", "busybox:latest").stdout
    with api.engine.raw() as line:
        head = f"POST {api.prefix}/images/load?quiet=1 HTTP/1.1\r\nHost: docker\r\nContent-Type: application/x-tar\r\n"
        line.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for at in range(0, len(archive), 32 << 10):
            piece = archive[at : at + (32 << 10)]
            line.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        line.sendall(b"0\r\n\r\n")
        assert line.recv(15) == b"HTTP/1.1 200 OK"
    until(lambda: api.get("/images/busybox:latest/json")["Id"].startswith("sha256:"), "the image")


def test_files_of_the_driver_in_the_place_of_the_engines(api: GoClient, tmp_path: Any) -> None:
    """A group has one /etc/hosts and resolv.conf, which the driver writes and mounts into each of its tasks."""
    pause = run_task(api, "sleep", "1000", name="pause", NetworkMode="none")
    mounts = []
    for name in ("hosts", "resolv.conf"):
        (tmp_path / name).write_text(f"# {name} of the group\n")
        mounts.append({
            "Type": "bind", "Source": str(tmp_path / name), "Target": f"/etc/{name}", "ReadOnly": name != "hosts",
            "BindOptions": {"Propagation": "private"},
        })  # fmt: skip
    container = run_task(api, "sleep", "1000", NetworkMode=f"container:{pause}", Mounts=mounts)
    for name in ("hosts", "resolv.conf"):
        assert api.engine.docker("exec", container, "cat", f"/etc/{name}").stdout == f"# {name} of the group\n"
    # As it is written anew when tasks come and go.
    (tmp_path / "hosts").write_text("192.0.2.1 another\n")
    assert api.engine.docker("exec", container, "cat", "/etc/hosts").stdout == "192.0.2.1 another\n"


def test_wishes_for_a_network_by_the_name_of_its_mode(api: GoClient) -> None:
    """Aliases, addresses and a MAC are for the network that `NetworkMode` names, `default` among them."""
    if api.version >= (1, 44):
        wish = {**task("sleep", "1000"), "NetworkingConfig": {"EndpointsConfig": {"default": {"MacAddress": MAC}}}}
        api.post(f"/containers/create?name={NAME}", wish)
        api.post(f"/containers/{NAME}/start")
        assert MAC in api.engine.docker("exec", NAME, "ip", "link", "show", "eth0").stdout
        networks = api.inspect(NAME)["NetworkSettings"]["Networks"]
        assert list(networks) == ["bridge"] and networks["bridge"]["MacAddress"] == MAC
    subnet = unused_subnet().rpartition(".")[0]
    made = api.post("/networks/create", {"Name": "jobs", "IPAM": {"Config": [{"Subnet": f"{subnet}.0/24"}]}})["Id"]
    try:
        wish = task("sleep", "1000", NetworkMode="jobs")
        endpoint = {"Aliases": ["web", "api"], "IPAMConfig": {"IPv4Address": f"{subnet}.77"}}
        wish["NetworkingConfig"] = {"EndpointsConfig": {"jobs": endpoint}}
        other = api.post("/containers/create?name=other", wish)["Id"]
        api.post(f"/containers/{other}/start")
        shown = api.inspect(other)["NetworkSettings"]["Networks"]["jobs"]
        assert shown["IPAddress"] == f"{subnet}.77" and {"web", "api"} <= set(shown["Aliases"])
        api.ask("DELETE", f"/containers/{other}?force=1")
    finally:
        api.engine.docker("network", "rm", "-f", made)


def test_statistics_of_what_has_gone(api: GoClient) -> None:
    container = run_task(api, "sleep", "1000")
    api.ask("DELETE", f"/containers/{container}?force=1")
    with pytest.raises(ApiError) as gone:
        api.get(f"/containers/{container}/stats?stream=0")
    assert gone.value.status == 404


def test_a_pull_that_takes_too_long_is_given_up_and_tried_again(daemon: Daemon) -> None:
    """Its client leaves in the middle, at the end of the job's patience; the next pull is whole."""
    api = GoClient(daemon)
    with Registry() as registry:
        push_image(registry, "app", "1", layers=[tar_of({"a": os.urandom(8 << 20)})])
        path = f"/images/create?fromImage={registry.host}/app&tag=1"
        with api.stream(path, "POST") as answer:
            assert answer.status == 200 and answer.read(1)
        told = records(api.ask("POST", path))
        assert not [line for line in told if "error" in line]
        assert api.get(f"/images/{registry.host}/app:1/json")["Id"]
        api.ask("DELETE", f"/images/{registry.host}/app:1?force=1")


def test_a_task_that_is_found_again(api: GoClient) -> None:
    """After a restart of the agent: what the engine is, the container by its id, then the wait and the log anew."""
    container = run_task(api, "sh", "-c", "trap 'exit 3' TERM; echo up; while :; do sleep 0.05; done")
    assert api.get("/info")["CgroupDriver"] in ("cgroupfs", "systemd")
    shown = api.inspect(container)
    assert shown["State"]["Running"] and shown["HostConfig"]["Cgroup"] == "" and shown["Image"].startswith("sha256:")
    waits = [api.waiting(container) for _ in range(3)]
    api.post(f"/containers/{container}/stop?t=10")
    assert [wait.result() for wait in waits] == [3, 3, 3]
