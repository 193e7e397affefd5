"""The Python SDK (`docker` on PyPI) against a real daemon: what its users do, and the errors that they catch."""

import contextlib
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from docker import DockerClient
from docker.errors import APIError, ContainerError, ImageNotFound, NotFound
from docker.models.containers import Container

from tests.support.daemon import Daemon
from tests.support.registry import PASSWORD, USERNAME, Registry, push_image, tar_of
from tests.support.waiting import until

COUNT = "n=0; while :; do n=$((n+1)); echo $n; sleep 0.02; done"


@pytest.fixture
def client(daemon: Daemon) -> Iterator[DockerClient]:
    connected = daemon.sdk()
    yield connected
    connected.close()


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        push_image(registry, "team/app", "1", [tar_of({"one": b"1"})], {"Labels": {"of": "app"}})
        push_image(registry, "team/app", "2", [tar_of({"two": b"2"})], {"Labels": {"of": "app"}})
        yield registry


@pytest.fixture(scope="module")
def locked() -> Iterator[Registry]:
    with Registry(login=True) as registry:
        push_image(registry, "app", "1", [tar_of({"locked": b""})])
        yield registry


# -- containers --------------------------------------------------------------------------------------------------------


def test_run_returns_the_output(client: Any) -> None:
    assert client.containers.run("busybox", ["echo", "hi"], remove=True) == b"hi\n"
    assert client.containers.run("busybox", "echo one two", remove=True) == b"one two\n"
    both = client.containers.run(
        "busybox", ["sh", "-c", "echo out; echo err >&2"], stdout=True, stderr=True, remove=True
    )
    assert sorted(both.splitlines()) == [b"err", b"out"]
    lines = client.containers.run("busybox", ["sh", "-c", "echo a; echo b"], stream=True, remove=False)
    assert list(lines) == [b"a\n", b"b\n"]


def test_run_takes_the_usual_options(client: Any) -> None:
    output = client.containers.run(
        "busybox",
        ["sh", "-c", "echo $A; id -u; hostname; pwd; cat /sys/class/net/*/operstate | wc -l"],
        environment={"A": "b"},
        user="33",
        hostname="box",
        working_dir="/tmp",
        network_mode="none",
        labels={"x": "y"},
        mem_limit="64m",
        remove=True,
    )
    assert output == b"b\n33\nbox\n/tmp\n1\n"


def test_a_failed_run_is_a_container_error(client: Any) -> None:
    with pytest.raises(ContainerError) as error:
        client.containers.run("busybox", ["sh", "-c", "echo because >&2; exit 3"], remove=True)
    assert error.value.exit_status == 3
    assert str(error.value.stderr) == str(b"because\n")
    assert client.containers.list(all=True) == []


def test_a_detached_run_lives_its_life(client: Any) -> None:
    container = client.containers.run("busybox", ["sleep", "600"], detach=True, name="life", labels={"a": "b"})
    assert container.name == "life" and container.short_id == container.id[:12]
    assert client.containers.get("life").id == container.id
    assert [c.id for c in client.containers.list(filters={"label": "a=b"})] == [container.id]
    container.reload()
    assert container.status == "running"
    assert container.attrs["State"]["Pid"] > 0
    assert container.image.tags == ["busybox:latest"]
    container.pause()
    container.reload()
    assert container.status == "paused"
    container.unpause()
    container.stop(timeout=0)
    container.reload()
    assert container.status == "exited"
    assert client.containers.list() == []
    container.start()
    container.rename("other")
    container.restart(timeout=0)
    container.kill()
    assert container.wait() == {"StatusCode": 137}
    container.remove()
    with pytest.raises(NotFound, match="No such container: life"):
        client.containers.get("life")


def test_wait_and_its_conditions(client: Any) -> None:
    container = client.containers.create("busybox", ["sh", "-c", "exit 5"])
    results: list[Any] = []
    waiting = threading.Thread(
        daemon=True, target=lambda: results.append(container.wait(condition="not-running", timeout=30))
    )
    waiting.start()
    # Nothing tells that the daemon has the wait; it must be right whichever of the two comes first.
    container.start()
    waiting.join()
    # A created container does not run: the answer may be of before its start.
    assert results in ([{"StatusCode": 5}], [{"StatusCode": 0}])
    assert container.wait(timeout=30) == {"StatusCode": 5}
    running = client.containers.run("busybox", ["sleep", "600"], detach=True)
    with pytest.raises(Exception, match=r"(?i)timed out"):
        running.wait(timeout=1)


def test_logs(client: Any) -> None:
    script = "echo out; echo err >&2; echo last"
    container = client.containers.run("busybox", ["sh", "-c", script], detach=True)
    container.wait()
    assert sorted(container.logs().splitlines()) == [b"err", b"last", b"out"]
    assert container.logs(stderr=False) == b"out\nlast\n"
    assert container.logs(stdout=False) == b"err\n"
    assert container.logs(stderr=False, timestamps=True).splitlines()[0][:3] == b"202"
    assert container.logs(since=int(time.time()) + 60) == b""
    assert list(container.logs(stream=True, stderr=False)) == [b"out\n", b"last\n"]


def test_logs_follow_while_the_container_runs(client: Any) -> None:
    container = client.containers.run("busybox", ["sh", "-c", COUNT], detach=True)
    followed = b""
    stream = container.logs(stream=True, follow=True)
    for piece in stream:
        followed += piece
        if followed.count(b"\n") >= 5:
            break
    container.kill()
    followed += b"".join(stream)
    assert [int(line) for line in followed.split()] == list(range(1, followed.count(b"\n") + 1))
    assert container.logs(tail=2).splitlines() == followed.splitlines()[-2:]
    terminal = client.containers.run("busybox", ["sh", "-c", "echo a; echo b"], detach=True, tty=True)
    assert b"".join(terminal.logs(stream=True, follow=True)) == b"a\r\nb\r\n"


def test_attach_as_a_stream(client: Any) -> None:
    container = client.containers.create("busybox", ["sh", "-c", "echo out; echo err >&2"])
    stream = container.attach(stream=True, stdout=True, stderr=True, logs=False)
    container.start()
    assert sorted(b"".join(stream).splitlines()) == [b"err", b"out"]
    assert sorted(container.attach(logs=True, stream=False).splitlines()) == [b"err", b"out"]
    split = client.containers.create("busybox", ["sh", "-c", "echo out; echo err >&2"])
    pairs = split.attach(stream=True, demux=True)
    split.start()
    assert sorted(pairs, key=str) == [(None, b"err\n"), (b"out\n", None)]


def test_attach_as_a_socket(client: Any) -> None:
    container = client.containers.create("busybox", ["cat"], stdin_open=True, tty=False)
    attached = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
    raw: socket.socket = attached._sock
    container.start()
    raw.settimeout(20)
    raw.sendall(b"ping\n")
    header = _exactly(raw, 8)
    assert header[:4] == b"\x01\0\0\0"
    assert _exactly(raw, struct.unpack(">I", header[4:])[0]) == b"ping\n"
    # The SDK makes such a container with StdinOnce: the end of the input is the end of `cat`.
    attached.close()
    raw.close()
    assert container.wait(timeout=20) == {"StatusCode": 0}


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = channel.recv(size - len(data))
        assert piece, "the stream ended early"
        data += piece
    return data


def test_half_closing_the_socket_ends_the_input(client: Any) -> None:
    api = client.api
    made = api.create_container_from_config(
        {"Image": "busybox", "Cmd": ["sh", "-c", "cat; echo end"], "OpenStdin": True, "StdinOnce": True}
    )
    attached = api.attach_socket(made["Id"], params={"stdin": 1, "stdout": 1, "stream": 1})
    raw: socket.socket = attached._sock
    raw.settimeout(20)
    api.start(made["Id"])
    raw.sendall(b"word\n")
    raw.shutdown(socket.SHUT_WR)
    received = b""
    while piece := raw.recv(4096):
        received += piece
    # One frame or two, as the container's writes happen to be seen.
    assert re.sub(rb"\x01\0{6}[\x04\x05\x09]", b"", received) == b"word\nend\n"
    attached.close()
    raw.close()


def test_resize(client: Any) -> None:
    script = "trap 'stty size' WINCH; echo up; while :; do sleep 0.02; done"
    container = client.containers.run("busybox", ["sh", "-c", script], detach=True, tty=True)
    until(lambda: container.logs() == b"up\r\n", "it runs")
    container.resize(height=40, width=100)
    until(lambda: b"40 100" in container.logs(), "the terminal has its size")
    container.kill()


def test_the_low_level_client_with_a_host_config(client: Any, tmp_path: Any) -> None:
    (tmp_path / "file").write_text("from outside")
    api = client.api
    host_config = api.create_host_config(
        binds={str(tmp_path): {"bind": "/in", "mode": "ro"}},
        mem_limit="32m",
        memswap_limit="64m",
        pids_limit=20,
        network_mode="none",
        cap_drop=["ALL"],
        restart_policy={"Name": "on-failure", "MaximumRetryCount": 2},
        extra_hosts={"db": "10.1.2.3"},
    )
    made = api.create_container(
        "busybox", ["sh", "-c", "cat /in/file; touch /in/x 2>/dev/null && echo writable; true"], host_config=host_config
    )
    api.start(made["Id"])
    api.wait(made["Id"])
    assert api.logs(made["Id"]) == b"from outside"
    shown = api.inspect_container(made["Id"])["HostConfig"]
    assert shown["Memory"] == 32 << 20 and shown["PidsLimit"] == 20 and shown["CapDrop"] == ["ALL"]
    assert shown["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 2}
    assert api.containers(all=True)[0]["Id"] == made["Id"]


def test_commit(client: Any) -> None:
    container = client.containers.run("busybox", ["sh", "-c", "echo made > /made"], detach=True)
    container.wait()
    image = container.commit("sdk/made", "1", message="why", author="who", changes='CMD ["cat", "/made"]')
    assert image.tags == ["sdk/made:1"]
    assert client.containers.run("sdk/made:1", remove=True) == b"made\n"
    client.images.remove("sdk/made:1", force=True)


def test_containers_that_are_not_there(client: Any) -> None:
    for call in (client.api.start, client.api.stop, client.api.kill, client.api.logs, client.api.remove_container):
        with pytest.raises(NotFound) as error:
            call("nobody")
        assert str(error.value.explanation).endswith("No such container: nobody")
    with pytest.raises(ImageNotFound):
        client.containers.create("no/such-image")


def test_conflicts_are_api_errors(client: Any) -> None:
    container = client.containers.create("busybox", ["true"], name="taken")
    with pytest.raises(APIError) as error:
        client.containers.create("busybox", ["true"], name="taken")
    assert error.value.status_code == 409
    assert f'is already in use by container "{container.id}"' in str(error.value.explanation)
    with pytest.raises(APIError) as stopped:
        container.kill()
    assert stopped.value.status_code == 409 and stopped.value.is_client_error()
    with pytest.raises(APIError) as nothing:
        client.containers.run("busybox", ["/no/such/program"], remove=True)
    assert nothing.value.status_code == 400


# -- images ------------------------------------------------------------------------------------------------------------


def test_images(client: Any, registry: Registry) -> None:
    name = f"{registry.host}/team/app"
    image = client.images.pull(name, tag="1")
    assert image.tags == [f"{name}:1"] and image.labels == {"of": "app"}
    assert client.images.get(f"{name}:1").id == image.id
    assert client.images.get(image.short_id).id == image.id
    assert [found.id for found in client.images.list(filters={"label": "of=app"})] == [image.id]
    assert [found.id for found in client.images.list(name=name)] == [image.id]
    assert image.tag("mine", tag="x") is True
    image.reload()
    assert sorted(image.tags) == sorted([f"{name}:1", "mine:x"])
    client.images.remove("mine:x")
    client.images.remove(image.id, force=True)
    with pytest.raises(ImageNotFound):
        client.images.get(image.id)
    with pytest.raises(ImageNotFound):
        client.images.remove("mine:x")


def test_all_tags(client: Any, registry: Registry) -> None:
    name = f"{registry.host}/team/app"
    images = client.images.pull(name, all_tags=True)
    assert sorted(tag for image in images for tag in image.tags) == [f"{name}:1", f"{name}:2"]
    for image in images:
        client.images.remove(image.id, force=True)


def test_the_stream_of_a_pull(client: Any, registry: Registry) -> None:
    name = f"{registry.host}/team/app"
    records = list(client.api.pull(name, tag="1", stream=True, decode=True))
    assert records[0] == {"status": "Pulling from team/app", "id": "1"}
    assert records[-1] == {"status": f"Status: Downloaded newer image for {name}:1"}
    client.images.remove(f"{name}:1")


def test_images_that_are_not_there(client: Any, registry: Registry) -> None:
    with pytest.raises(ImageNotFound):
        client.images.get("no/such-image")
    with pytest.raises(NotFound):
        client.images.pull(f"{registry.host}/team/nothing", tag="1")
    with pytest.raises(APIError):
        client.images.pull("127.0.0.1:1/app", tag="1")


def test_login(client: Any, locked: Registry) -> None:
    name = f"{locked.host}/app"
    with pytest.raises(APIError):
        client.images.pull(name, tag="1")
    with pytest.raises(APIError) as error:
        client.login(USERNAME, "guess", registry=locked.host)
    assert error.value.status_code == 401
    assert client.login(USERNAME, PASSWORD, registry=locked.host)["Status"] == "Login Succeeded"
    image = client.images.pull(name, tag="1")
    other = client.images.pull(name, tag="1", auth_config={"username": USERNAME, "password": PASSWORD})
    assert other.id == image.id
    client.images.remove(image.id, force=True)


# -- the daemon --------------------------------------------------------------------------------------------------------


def test_the_daemon_tells_about_itself(client: Any, daemon: Daemon) -> None:
    assert client.ping() is True
    version = client.version()
    assert (version["ApiVersion"], version["Os"]) == (client.api.api_version, "linux")
    info = client.info()
    assert info["OSType"] == "linux" and info["Images"] >= 1
    with contextlib.closing(DockerClient(base_url=daemon.host, version="1.99")) as future:
        with pytest.raises(APIError) as error:
            future.info()
        assert error.value.status_code == 400 and "client version 1.99 is too new" in str(error.value.explanation)


def test_events(client: Any) -> None:
    since = time.time()
    seen: list[dict[str, Any]] = []
    live = client.events(decode=True, filters={"type": "container"})
    reader = threading.Thread(daemon=True, target=lambda: seen.extend(live))
    reader.start()
    container: Container = client.containers.run("busybox", ["true"], detach=True)
    container.wait()
    container.remove()
    until(lambda: any(event["Action"] == "destroy" for event in list(seen)), "the events arrive")
    live.close()
    reader.join(20)
    actions = [event["Action"] for event in seen if event["Actor"]["ID"] == container.id]
    assert actions == ["create", "start", "die", "destroy"]
    past = list(client.events(since=since, until=time.time(), decode=True, filters={"container": container.id}))
    assert [event["Action"] for event in past] == actions
