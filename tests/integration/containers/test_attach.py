"""Talking to a container: pipes and terminals, before and after its start, one client and several."""

import hashlib
import random
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.terminal import Terminal
from tests.support.waiting import until
from tests.support.wire import Head, RawClient, split_frames, stream_of

UPGRADE = {"Connection": "Upgrade", "Upgrade": "tcp"}
CTRL_P, CTRL_Q = b"\x10", b"\x11"


def create(daemon: Daemon, *command: str, **config: Any) -> str:
    answer = daemon.http("POST", "/containers/create", {"Image": "busybox", "Cmd": list(command), **config})
    assert answer.status == 201, answer.body
    return str(answer.json()["Id"])


def start(daemon: Daemon, container: str) -> None:
    assert daemon.http("POST", f"/containers/{container}/start").status == 204


def attach(
    daemon: Daemon, container: str, query: str = "stream=1&stdin=1&stdout=1&stderr=1", upgrade: bool = True
) -> tuple[RawClient, Head]:
    client = RawClient(daemon.raw(20))
    client.request("POST", f"/containers/{container}/attach?{query}", headers=UPGRADE if upgrade else {})
    return client, client.head()


def pipe_through(daemon: Daemon, data: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = ["docker", "run", "--rm", "-i", *arguments]
    return subprocess.run(command, input=data, capture_output=True, env=daemon.environment, timeout=60)


# --- pipes


def test_input_goes_in_and_output_comes_out(daemon: Daemon):
    done = pipe_through(daemon, b"b\na\n", "busybox", "sort")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a\nb\n", b"")


def test_twenty_megabytes_through_cat(daemon: Daemon):
    data = random.Random(1).randbytes(20_000_000)
    done = pipe_through(daemon, data, "busybox", "cat")
    assert len(done.stdout) == len(data)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()


def test_a_big_input_is_read_to_its_end(daemon: Daemon):
    data = bytes(5_000_000)
    assert pipe_through(daemon, data, "busybox", "wc", "-c").stdout == b"5000000\n"


def test_empty_input_is_end_of_file(daemon: Daemon):
    done = pipe_through(daemon, b"", "busybox", "sh", "-c", "cat; echo end")
    assert done.stdout == b"end\n"


def test_stdout_and_stderr_stay_apart(daemon: Daemon):
    done = pipe_through(daemon, b"", "busybox", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")


def test_big_output_on_both_streams(daemon: Daemon):
    script = "head -c 3000000 /dev/zero & head -c 2000000 /dev/zero >&2; wait"
    done = pipe_through(daemon, b"", "busybox", "sh", "-c", script)
    assert (len(done.stdout), len(done.stderr)) == (3_000_000, 2_000_000)


def test_without_i_there_is_no_input(daemon: Daemon):
    assert daemon.docker("run", "--rm", "busybox", "sh", "-c", "cat; echo end", input="lost").stdout == "end\n"


def test_a_program_that_does_not_read_its_input_ends_anyway(daemon: Daemon):
    done = pipe_through(daemon, bytes(3_000_000), "busybox", "echo", "done")
    assert (done.returncode, done.stdout) == (0, b"done\n")


def test_output_after_the_input_has_ended(daemon: Daemon):
    done = pipe_through(daemon, b"x", "busybox", "sh", "-c", "cat > /dev/null; sleep 0.2; echo late")
    assert done.stdout == b"late\n"


def test_many_at_once(daemon: Daemon):
    children = [daemon.docker_process("run", "--rm", "-i", "busybox", "cat") for _ in range(6)]
    for number, child in enumerate(children):
        output, _ = child.communicate(b"%d\n" % number * 1000, timeout=60)
        assert output == b"%d\n" % number * 1000


# --- raw: headers, framing, half-close


def test_upgrade_answers_101(daemon: Daemon):
    container = create(daemon, "cat", OpenStdin=True, StdinOnce=True)
    client, head = attach(daemon, container)
    with client:
        assert (head.status, head.headers["Connection"], head.headers["Upgrade"]) == (101, "Upgrade", "tcp")
        assert head.headers["Content-Type"] == "application/vnd.docker.multiplexed-stream"
        assert "Transfer-Encoding" not in head.headers and "Api-Version" in head.headers
        start(daemon, container)
        client.socket.sendall(b"hello\n")
        assert client.read_frame() == (1, b"hello\n")
        client.half_close()
        assert client.read_to_end() == b""


def test_without_upgrade_it_answers_200_and_hijacks_all_the_same(daemon: Daemon):
    container = create(daemon, "sh", "-c", "cat; echo err >&2", OpenStdin=True, StdinOnce=True)
    client, head = attach(daemon, container, upgrade=False)
    with client:
        assert (head.status, "Transfer-Encoding" in head.headers, "Content-Length" in head.headers) == (
            200,
            False,
            False,
        )
        start(daemon, container)
        client.socket.sendall(b"hello\n")
        client.half_close()
        assert split_frames(client.read_to_end()) == [(1, b"hello\n"), (2, b"err\n")]


def test_old_api_versions_call_it_raw(daemon: Daemon):
    container = create(daemon, "true")
    with RawClient(daemon.raw()) as client:
        client.request("POST", f"/v1.41/containers/{container}/attach?stream=1&stdout=1", headers=UPGRADE)
        assert client.head().headers["Content-Type"] == "application/vnd.docker.raw-stream"


def test_input_sent_with_the_request_is_not_lost(daemon: Daemon):
    container = create(daemon, "cat", OpenStdin=True, StdinOnce=True)
    with RawClient(daemon.raw(20)) as client:
        request = f"POST /containers/{container}/attach?stream=1&stdin=1&stdout=1 HTTP/1.1\r\nHost: x\r\n"
        client.socket.sendall(request.encode() + b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\nearly\n")
        assert client.head().status == 101
        start(daemon, container)
        assert client.read_frame() == (1, b"early\n")
        client.half_close()
        assert client.read_to_end() == b""


def test_the_body_of_an_attach_is_no_input(daemon: Daemon):
    """dockerode sends the query once more."""
    container = create(daemon, "cat", OpenStdin=True, StdinOnce=True)
    with RawClient(daemon.raw(20)) as client:
        query, headers = "stream=1&stdin=1&stdout=1", {**UPGRADE, "Content-Type": "application/json"}
        client.request("POST", f"/containers/{container}/attach?{query}", b'{"stream":true,"stdin":true}', headers)
        assert client.head().status == 101
        start(daemon, container)
        client.socket.sendall(b"input\n")
        assert client.read_frame() == (1, b"input\n")
        client.half_close()
        assert client.read_to_end() == b""


def test_only_the_streams_that_were_asked_for(daemon: Daemon):
    container = create(daemon, "sh", "-c", "echo out; echo err >&2")
    client, _ = attach(daemon, container, "stream=1&stderr=1")
    with client:
        start(daemon, container)
        assert split_frames(client.read_to_end()) == [(2, b"err\n")]


def test_input_without_open_stdin_goes_nowhere(daemon: Daemon):
    container = create(daemon, "sh", "-c", "cat; echo end")
    client, _ = attach(daemon, container)
    with client:
        client.socket.sendall(b"ignored")
        start(daemon, container)
        assert stream_of(client.read_to_end(), 1) == b"end\n"


def test_a_client_that_leaves_before_the_start(daemon: Daemon):
    container = create(daemon, "echo", "hi")
    attach(daemon, container)[0].close()
    start(daemon, container)
    assert daemon.docker("wait", container).stdout == "0\n"
    assert daemon.docker("logs", container).stdout == "hi\n"


def test_a_failed_start_ends_the_attachment(daemon: Daemon):
    container = create(daemon, "no-such-program")
    client, _ = attach(daemon, container)
    with client:
        assert daemon.http("POST", f"/containers/{container}/start").status == 400
        assert client.read_to_end() == b""


def test_removal_ends_the_attachment(daemon: Daemon):
    container = create(daemon, "true")
    client, _ = attach(daemon, container)
    with client:
        assert daemon.http("DELETE", f"/containers/{container}").status == 204
        assert client.read_to_end() == b""


def test_attach_again_and_again(daemon: Daemon):
    container = create(daemon, "sh", "-c", "while read l; do echo got $l; done", OpenStdin=True)
    start(daemon, container)
    for n in range(5):
        client, _ = attach(daemon, container)
        with client:
            client.socket.sendall(b"%d\n" % n)
            assert client.read_frame() == (1, b"got %d\n" % n)
    assert daemon.http("GET", f"/containers/{container}/json").json()["State"]["Running"]


def test_two_clients_see_the_same(daemon: Daemon):
    container = create(daemon, "cat", OpenStdin=True)
    start(daemon, container)
    one, _ = attach(daemon, container)
    two, _ = attach(daemon, container)
    with one, two:
        one.socket.sendall(b"from one\n")
        assert (one.read_frame(), two.read_frame()) == ((1, b"from one\n"), (1, b"from one\n"))
        two.socket.sendall(b"from two\n")
        assert (one.read_frame(), two.read_frame()) == ((1, b"from two\n"), (1, b"from two\n"))
        one.close()
        two.socket.sendall(b"alone\n")
        assert two.read_frame() == (1, b"alone\n")


def test_logs_first_then_the_stream(daemon: Daemon):
    container = create(daemon, "sh", "-c", "echo before; while read l; do echo $l; done", OpenStdin=True)
    start(daemon, container)
    until(lambda: daemon.docker("logs", container).stdout == "before\n", "the first line is logged")
    client, _ = attach(daemon, container, "logs=1&stream=1&stdin=1&stdout=1")
    with client:
        assert client.read_frame() == (1, b"before\n")
        client.socket.sendall(b"after\n")
        assert client.read_frame() == (1, b"after\n")


def test_logs_alone_end_at_once(daemon: Daemon):
    container = create(daemon, "sh", "-c", "echo before; exec sleep 1000")
    start(daemon, container)
    until(lambda: daemon.docker("logs", container).stdout == "before\n", "the first line is logged")
    client, _ = attach(daemon, container, "logs=1&stdout=1")
    with client:
        assert split_frames(client.read_to_end()) == [(1, b"before\n")]


def test_attach_to_a_paused_container_is_409(daemon: Daemon):
    container = create(daemon, "sleep", "1000")
    start(daemon, container)
    daemon.docker("pause", container)
    client, head = attach(daemon, container)
    with client:
        assert head.status == 409
        assert b"is paused, unpause the container before attach" in client.read_until(b"\r\n")


def test_a_slow_client_does_not_hold_up_the_others(daemon: Daemon):
    """Its own container waits for it; everything else goes on."""
    container = create(daemon, "sh", "-c", "cat /dev/zero")
    client, _ = attach(daemon, container, "stream=1&stdout=1")
    with client:
        start(daemon, container)
        assert client.socket.recv(1) == b"\x01"
        assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\n"
    daemon.docker("rm", "-f", container)


def test_docker_attach_and_its_exit_status(daemon: Daemon):
    daemon.docker("run", "-d", "-i", "--name", "target", "busybox", "sh", "-c", "read l; echo $l; exit 9")
    with daemon.docker_process("attach", "target") as child:
        output, _ = child.communicate(b"word\n", timeout=20)
    assert (child.returncode, output) == (9, b"word\n")


def test_docker_start_attached(daemon: Daemon):
    container = create(daemon, "sh", "-c", "echo out; exit 4")
    done = daemon.docker("start", "-a", container, check=False)
    assert (done.returncode, done.stdout) == (4, "out\n")


def test_a_signal_to_the_client_reaches_the_container(daemon: Daemon):
    script = "trap 'echo got it; exit 8' INT; echo ready; while true; do sleep 0.02; done"
    with daemon.docker_process("run", "--rm", "busybox", "sh", "-c", script) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        child.send_signal(2)
        assert child.communicate(timeout=20)[0] == b"got it\n"
    assert child.returncode == 8


# --- terminals


@pytest.fixture
def shell(daemon: Daemon) -> Iterator[Terminal]:
    """`docker run -it --name shell busybox` in a window of 30 by 100."""
    command = ["docker", "run", "-it", "--name", "shell", "busybox", "sh"]
    with Terminal(command, daemon.environment, rows=30, columns=100) as terminal:
        terminal.expect(b"/ # ")
        yield terminal


def test_a_shell_on_a_terminal(shell: Terminal):
    shell.type(b"tty; echo $TERM; exit 3\n")
    assert b"/dev/pts/0\r\nxterm\r\n" in shell.expect(b"xterm\r\n")
    assert shell.wait() == 3


def test_the_window_has_its_size_and_follows_it(shell: Terminal):
    shell.type(b"until test \"$(stty size)\" = '30 100'; do sleep 0.01; done; echo fi''rst\n")
    shell.expect(b"first")
    shell.resize(50, 120)
    shell.type(b"until test \"$(stty size)\" = '50 120'; do sleep 0.01; done; echo sec''ond\n")
    shell.expect(b"second")


def test_resize_by_the_api(daemon: Daemon):
    script = "until test \"$(stty size)\" = '33 77'; do sleep 0.01; done; echo resized"
    container = create(daemon, "sh", "-c", script, Tty=True, OpenStdin=True)
    assert daemon.http("POST", f"/containers/{container}/resize?h=1&w=1").status == 409
    start(daemon, container)
    assert daemon.http("POST", f"/containers/{container}/resize?h=33&w=77").status == 200
    assert daemon.docker("wait", container).stdout == "0\n"
    for query in ("", "?h=1", "?h=x&w=1", "?h=-1&w=1", "?h=70000&w=1"):
        assert daemon.http("POST", f"/containers/{container}/resize{query}").status == 400


def test_control_c_interrupts_the_program_only(shell: Terminal):
    shell.type(b"echo beg''in; cat\n")
    shell.expect(b"begin\r\n")
    shell.type(b"echoed by cat\n")
    shell.expect(b"echoed by cat\r\nechoed by cat\r\n")
    shell.type(b"\x03")
    shell.expect(b"/ # ")
    shell.type(b"echo al''ive\n")
    shell.expect(b"alive")


def test_detach_and_attach_again(daemon: Daemon, shell: Terminal):
    shell.type(b"word=kept\n")
    shell.expect(b"/ # ")
    shell.type(CTRL_P)
    shell.type(CTRL_Q)
    assert shell.wait() == 0
    assert daemon.docker("inspect", "-f", "{{.State.Status}}", "shell").stdout == "running\n"
    with Terminal(["docker", "attach", "shell"], daemon.environment) as again:
        again.type(b"echo it was $word\n")
        again.expect(b"it was kept")
        again.type(b"exit 6\n")
        assert again.wait() == 6


def test_detach_keys_of_ones_own(daemon: Daemon):
    command = ["docker", "run", "-it", "--detach-keys", "ctrl-x,d", "--name", "own", "busybox", "sh"]
    with Terminal(command, daemon.environment) as terminal:
        terminal.expect(b"/ # ")
        terminal.type(b"\x18d")
        assert terminal.wait() == 0
    assert daemon.docker("inspect", "-f", "{{.State.Status}}", "own").stdout == "running\n"


def test_control_p_alone_reaches_the_program(shell: Terminal):
    shell.type(b"echo on''ce\n")
    shell.expect(b"once\r\n")
    shell.type(CTRL_P + b"\n")  # the line before, again
    shell.expect(b"once\r\n")


def test_end_of_file_on_a_terminal(daemon: Daemon, shell: Terminal):
    shell.type(b"\x04")
    assert shell.wait() == 0


def test_a_terminal_over_the_raw_socket_has_no_frames(daemon: Daemon):
    container = create(daemon, "sh", "-c", "echo out; echo err >&2", Tty=True)
    client, head = attach(daemon, container)
    with client:
        assert head.headers["Content-Type"] == "application/vnd.docker.raw-stream"
        start(daemon, container)
        assert client.read_to_end() == b"out\r\nerr\r\n"


def test_big_output_on_a_terminal(daemon: Daemon):
    container = create(daemon, "seq", "100000", Tty=True)
    client, _ = attach(daemon, container, "stream=1&stdout=1")
    with client:
        start(daemon, container)
        assert client.read_to_end() == b"".join(b"%d\r\n" % n for n in range(1, 100_001))


def test_wrong_detach_keys_are_400(daemon: Daemon):
    container = create(daemon, "true")
    client, head = attach(daemon, container, "stream=1&detachKeys=ctrl-nonsense")
    with client:
        assert head.status == 400


@pytest.mark.parametrize("upgrade", [True, False])
def test_the_end_of_the_output_comes_when_the_container_has_exited_and_left_its_network(daemon: Daemon, upgrade: bool):
    for code in (7, 8, 9):
        network = daemon.http("POST", "/networks/create", {"Name": f"ends-{code}"}).json()["Id"]
        command = ("sh", "-c", f"echo x; exit {code}")
        container = create(daemon, *command, HostConfig={"NetworkMode": network})
        client, _ = attach(daemon, container, "stream=1&stdout=1", upgrade)
        with client:
            start(daemon, container)
            assert stream_of(client.read_to_end(), 1) == b"x\n"
        state = daemon.http("GET", f"/containers/{container}/json").json()["State"]
        assert (state["Status"], state["Running"], state["ExitCode"]) == ("exited", False, code)
        assert daemon.http("DELETE", f"/networks/{network}").status == 204
