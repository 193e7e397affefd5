"""Another process in a container: its streams, its user, its end, and what is left of it."""

import hashlib
import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.daemon import Daemon
from tests.support.execs import create, detached, directories, inspect, ran, start
from tests.support.terminal import Terminal
from tests.support.waiting import until
from tests.support.wire import split_frames


@pytest.fixture
def box(daemon: Daemon) -> Iterator[str]:
    """A running container; afterwards no exec has left anything on disk."""
    yield daemon.docker("run", "-d", "--name", "box", "-e", "COLOUR=red", "busybox", "sleep", "1000").stdout.strip()
    daemon.remove_containers()
    until(lambda: not directories(daemon), "the directories of execs are gone")


# --- what runs, and how it ends


def test_output_and_exit_code(daemon: Daemon, box: str):
    assert ran(daemon, "box", "sh", "-c", "echo out; echo err >&2; exit 7") == (7, "out\n", "err\n")


def test_killed_by_a_signal(daemon: Daemon, box: str):
    assert ran(daemon, "box", "sh", "-c", "kill -9 $$")[0] == 137


FAILED = "OCI runtime exec failed: exec failed: unable to start container process: "


@pytest.mark.parametrize(
    "arguments, code, output",
    [
        (("box", "nosuch"), 127, FAILED + 'exec: "nosuch": executable file not found in $PATH: unknown\n'),
        (("box", "/etc/passwd"), 126, FAILED + 'exec: "/etc/passwd": permission denied: unknown\n'),
        (("-w", "/nosuch", "box", "true"), 127, FAILED + 'chdir to cwd ("/nosuch") set in config.json failed: no such '
                                                         "file or directory: unknown\n"),
    ],
)  # fmt: skip
def test_what_cannot_run_says_why(daemon: Daemon, box: str, arguments: tuple[str, ...], code: int, output: str):
    assert ran(daemon, *arguments) == (code, output, "")
    assert directories(daemon) == []


@pytest.mark.parametrize(
    "config, words",
    [
        ({"User": "nosuch"}, "unable to find user nosuch: no matching entries in passwd file"),
        ({"User": "5:nosuch"}, "unable to find group nosuch: no matching entries in group file"),
        ({"WorkingDir": "here"}, "the working directory 'here' is invalid: it must be an absolute path"),
    ],
)
def test_what_can_never_run_is_refused(daemon: Daemon, box: str, config: dict[str, str], words: str):
    answer = daemon.http("POST", f"/containers/{box}/exec", {"Cmd": ["true"], **config})
    assert (answer.status, answer.message) == (400, words)


def test_what_cannot_run_detached_is_a_bad_request(daemon: Daemon, box: str):
    exec_id = create(daemon, "nosuch")
    answer = detached(daemon, exec_id)
    assert (answer.status, answer.message) == (
        400,
        FAILED + 'exec: "nosuch": executable file not found in $PATH: unknown',
    )
    assert inspect(daemon, exec_id)["ExitCode"] == 127


def test_environment_directory_and_home(daemon: Daemon, box: str):
    script = "echo $COLOUR $SIZE $HOME $PATH; pwd; echo ${TERM:-none}"
    code, output, _ = ran(daemon, "-e", "SIZE=big", "-e", "COLOUR=blue", "-w", "/tmp", "box", "sh", "-c", script)
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert (code, output) == (0, f"blue big /root {path}\n/tmp\nnone\n")


def test_it_starts_where_the_container_does(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "there", "-w", "/usr", "-u", "daemon", "busybox", "sleep", "1000")
    assert ran(daemon, "there", "sh", "-c", "pwd; id -un")[1] == "/usr\ndaemon\n"


@pytest.mark.parametrize(
    "user, shown",
    [
        ("nobody", "65534 65534"),
        ("65534", "65534 65534"),
        ("1234", "1234 0"),
        ("1234:56", "1234 56"),
        ("nobody:daemon", "65534 1"),
        ("root", "0 0"),
    ],
)
def test_users_by_name_and_number(daemon: Daemon, box: str, user: str, shown: str):
    assert ran(daemon, "-u", user, "box", "sh", "-c", 'echo "$(id -u) $(id -g)"') == (0, shown + "\n", "")


def test_a_user_has_no_capabilities_and_root_has_the_containers(daemon: Daemon, box: str):
    assert ran(daemon, "-u", "nobody", "box", "grep", "CapEff", "/proc/self/status")[1].split()[1] == "0" * 16
    assert ran(daemon, "box", "grep", "CapEff", "/proc/self/status")[1].split()[1] == "00000000a80425fb"


def test_privileged(daemon: Daemon, box: str):
    mask = int(ran(daemon, "--privileged", "box", "grep", "CapEff", "/proc/self/status")[1].split()[1], 16)
    assert mask & (1 << 21), "CAP_SYS_ADMIN is missing"


# --- streams


def test_input_and_its_end(daemon: Daemon, box: str):
    assert ran(daemon, "-i", "box", "sort", input="b\na\n") == (0, "a\nb\n", "")


def test_without_i_there_is_no_input(daemon: Daemon, box: str):
    assert ran(daemon, "box", "sh", "-c", "cat; echo end", input="lost") == (0, "end\n", "")


def test_five_megabytes_through_cat(daemon: Daemon, box: str):
    data = random.Random(2).randbytes(5_000_000)
    command = ["docker", "exec", "-i", "box", "cat"]
    done = subprocess.run(command, input=data, capture_output=True, env=daemon.environment, timeout=60)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()


def test_a_child_that_stays_does_not_keep_the_client(daemon: Daemon, box: str):
    assert ran(daemon, "box", "sh", "-c", "sleep 1000 & echo done") == (0, "done\n", "")


def test_frames_and_half_close(daemon: Daemon, box: str):
    client, head = start(daemon, create(daemon, "sh", "-c", "cat; echo err >&2; echo out", AttachStdin=True))
    with client:
        assert (head.status, head.headers["Content-Type"]) == (101, "application/vnd.docker.multiplexed-stream")
        client.socket.sendall(b"hello")
        assert client.read_frame() == (1, b"hello")
        client.half_close()
        assert sorted(split_frames(client.read_to_end())) == [(1, b"out\n"), (2, b"err\n")]


def test_only_the_streams_asked_for(daemon: Daemon, box: str):
    exec_id = create(daemon, "sh", "-c", "echo out; echo err >&2", AttachStdout=False)
    client, _ = start(daemon, exec_id)
    with client:
        assert split_frames(client.read_to_end()) == [(2, b"err\n")]


def test_the_exit_code_is_there_when_the_stream_ends(daemon: Daemon, box: str):
    for code in range(10):
        exec_id = create(daemon, "sh", "-c", f"exit {code}")
        client, _ = start(daemon, exec_id)
        with client:
            client.read_to_end()
        assert inspect(daemon, exec_id)["ExitCode"] == code


def test_many_at_once(daemon: Daemon, box: str):
    with ThreadPoolExecutor(8) as pool:
        done = pool.map(lambda n: ran(daemon, "box", "sh", "-c", f"echo {n}; exit {n}"), range(24))
        assert list(done) == [(n, f"{n}\n", "") for n in range(24)]


def test_a_client_that_leaves_ends_nothing(daemon: Daemon, box: str):
    exec_id = create(daemon, "sh", "-c", "echo here; while true; do echo more; sleep 0.01; done")
    client, _ = start(daemon, exec_id)
    with client:
        client.read_frame()
    assert inspect(daemon, exec_id)["Running"] is True


# --- terminals


def test_a_shell_on_a_terminal(daemon: Daemon, box: str):
    command = ["docker", "exec", "-it", "box", "sh"]
    with Terminal(command, daemon.environment, rows=30, columns=100) as shell:
        shell.expect(b"/ # ")
        shell.type(b"tty; echo $TERM\n")
        shell.expect(b"/dev/pts/0\r\nxterm\r\n")
        shell.type(b"until test \"$(stty size)\" = '30 100'; do sleep 0.01; done; echo fi''rst\n")
        shell.expect(b"first")
        shell.resize(40, 120)
        shell.type(b"until test \"$(stty size)\" = '40 120'; do sleep 0.01; done; echo se''cond\n")
        shell.expect(b"second")
        shell.type(b"exit 5\n")
        assert shell.wait() == 5


def test_the_console_has_the_size_asked_for(daemon: Daemon, box: str):
    """With nobody resizing it. crun 1.8 sets the size while the program already starts, hence the loop."""
    script = 'until test "$(stty size 2> /dev/null)" = "12 34"; do sleep 0.01; done; echo sized'
    client, head = start(daemon, create(daemon, "sh", "-c", script, Tty=True, ConsoleSize=[12, 34]), Tty=True)
    with client:
        assert head.headers["Content-Type"] == "application/vnd.docker.raw-stream"
        assert client.read_to_end() == b"sized\r\n"


def test_short_output_on_a_terminal_is_never_lost(daemon: Daemon, box: str):
    for _ in range(20):
        client, _ = start(daemon, create(daemon, "echo", "hi", Tty=True), Tty=True)
        with client:
            assert client.read_to_end() == b"hi\r\n"


def test_detach_keys_leave_it_running(daemon: Daemon, box: str):
    command = ["docker", "exec", "-it", "--detach-keys", "ctrl-x,d", "box", "sh"]
    with Terminal(command, daemon.environment) as shell:
        shell.expect(b"/ # ")
        (exec_id,) = json.loads(daemon.docker("inspect", "box").stdout)[0]["ExecIDs"]
        shell.type(b"\x18d")
        shell.wait()
    found = inspect(daemon, exec_id)
    assert (found["Running"], found["DetachKeys"]) == (True, "GGQ=")


def test_detach_keys_that_the_daemon_sees(daemon: Daemon, box: str):
    """The docker command looks for the keys itself; others leave it to the daemon."""
    exec_id = create(daemon, "cat", Tty=True, AttachStdin=True)
    client, _ = start(daemon, exec_id, Tty=True)
    with client:
        client.socket.sendall(b"a\n")
        client.read_until(b"a\r\na\r\n")
        client.socket.sendall(b"\x10\x11")
        assert client.read_to_end() == b""
    assert inspect(daemon, exec_id)["Running"] is True
    filters = json.dumps({"container": [box], "event": ["exec_detach"]})
    (event,) = daemon.http("GET", f"/events?since=1&until={time.time() + 1}&filters={quote(filters)}").body.splitlines()
    assert json.loads(event)["Actor"]["Attributes"]["execID"] == exec_id


def test_resize_of_one_that_does_not_run(daemon: Daemon, box: str):
    assert daemon.http("POST", f"/exec/{create(daemon, 'true')}/resize?h=1&w=2").status == 409
    assert daemon.http("POST", "/exec/nosuch/resize?h=1&w=2").status == 404


# --- inspect, errors, events


def test_inspect_before_while_and_after(daemon: Daemon, box: str):
    exec_id = create(daemon, "sleep", "1000", User="nobody")
    assert inspect(daemon, exec_id) == {
        "ID": exec_id,
        "Running": False,
        "ExitCode": None,
        "ProcessConfig": {
            "tty": False, "entrypoint": "sleep", "arguments": ["1000"], "privileged": False, "user": "nobody",
        },
        "OpenStdin": False,
        "OpenStderr": True,
        "OpenStdout": True,
        "CanRemove": False,
        "ContainerID": box,
        "DetachKeys": "",
        "Pid": 0,
    }  # fmt: skip
    assert detached(daemon, exec_id).status == 200
    running = inspect(daemon, exec_id)
    assert (running["Running"], running["ExitCode"]) == (True, None)
    assert daemon.http("GET", f"/containers/{box}/json").json()["ExecIDs"] == [exec_id]
    os.kill(running["Pid"], 15)
    until(lambda: not inspect(daemon, exec_id)["Running"], "the exec has ended")
    assert inspect(daemon, exec_id)["ExitCode"] == 143
    assert daemon.http("GET", f"/containers/{box}/json").json()["ExecIDs"] is None


def test_it_starts_once(daemon: Daemon, box: str):
    running, ended = create(daemon, "sleep", "1000"), create(daemon, "true")
    assert detached(daemon, running).status == detached(daemon, ended).status == 200
    answer = detached(daemon, running)
    assert (answer.status, answer.message) == (409, f"exec command {running} is already running")
    until(lambda: inspect(daemon, ended)["ExitCode"] == 0, "the exec has ended")
    answer = detached(daemon, ended)
    assert (answer.status, answer.message) == (409, f"exec command {ended} has already run")


def test_what_does_not_exist(daemon: Daemon):
    for method, path in (("GET", "/exec/nosuch/json"), ("POST", "/exec/nosuch/start")):
        answer = daemon.http(method, path, {} if method == "POST" else None)
        assert (answer.status, answer.message) == (404, "No such exec instance: nosuch")
    assert daemon.http("POST", "/containers/nosuch/exec", {"Cmd": ["true"]}).message == "No such container: nosuch"


def test_bad_requests(daemon: Daemon, box: str):
    answer = daemon.http("POST", "/containers/box/exec", {"Cmd": []})
    assert (answer.status, answer.message) == (400, "No exec command specified")
    answer = daemon.http("POST", "/containers/box/exec", {"Cmd": ["true"], "DetachKeys": "ctrl-"})
    assert (answer.status, answer.message) == (400, "Invalid escape keys (ctrl-) provided")
    assert daemon.http("POST", "/containers/box/exec", {"Cmd": ["true"], "WorkingDir": "relative"}).status == 400


def test_a_container_that_cannot(daemon: Daemon, box: str):
    made = create(daemon, "true")
    daemon.docker("pause", "box")
    for path in ("/containers/box/exec", f"/exec/{made}/start"):
        answer = daemon.http("POST", path, {"Cmd": ["true"]})
        assert (answer.status, answer.message) == (409, "Container box is paused, unpause the container before exec")
    daemon.docker("unpause", "box")
    daemon.docker("stop", "-t", "0", "box")
    answer = daemon.http("POST", "/containers/box/exec", {"Cmd": ["true"]})
    assert (answer.status, answer.message) == (409, f"container {box} is not running")
    assert daemon.http("GET", f"/exec/{made}/json").status == 404


def test_events(daemon: Daemon, box: str):
    exec_id = create(daemon, "sh", "-c", "exit 3")
    client, _ = start(daemon, exec_id)
    with client:
        client.read_to_end()
    with closing(daemon.sdk()) as sdk:
        stream = sdk.events(since=1, filters={"container": box}, decode=True)
        seen: list[dict[str, Any]] = []
        while not seen or seen[-1]["Action"] != "exec_die":
            seen.append(next(stream))
        stream.close()
    execs = [event for event in seen if event["Action"].startswith("exec_")]
    assert [event["Action"] for event in execs] == ["exec_create: sh -c exit 3", "exec_start: sh -c exit 3", "exec_die"]
    assert {event["Actor"]["Attributes"]["execID"] for event in execs} == {exec_id}
    assert execs[-1]["Actor"]["Attributes"]["exitCode"] == "3"


# --- ends


@pytest.mark.parametrize("options", [(), ("--pid", "host")])
def test_it_ends_with_its_container(daemon: Daemon, options: tuple[str, ...]):
    daemon.docker("run", "-d", "--name", "short", *options, "busybox", "sleep", "1000")
    exec_id = create(daemon, "sleep", "1000", container="short")
    detached(daemon, exec_id)
    pid = inspect(daemon, exec_id)["Pid"]
    daemon.docker("stop", "-t", "0", "short")
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the process is gone")
    until(lambda: not directories(daemon), "its directory is gone")


def test_it_outlives_the_daemon(fresh_daemon: Daemon):
    daemon = fresh_daemon
    daemon.docker("run", "-d", "--name", "box", "busybox", "sleep", "1000")
    script = "until test -e /go; do sleep 0.01; done; for i in 1 2 3; do echo $i; done; echo done > /result; exit 4"
    stays, ends = create(daemon, "sh", "-c", script), create(daemon, "sleep", "1000")
    client, _ = start(daemon, stays)
    detached(daemon, ends)
    pid = inspect(daemon, ends)["Pid"]
    daemon.kill9()
    client.close()
    os.kill(pid, 9)
    daemon.start()
    assert inspect(daemon, stays)["Running"] is True
    assert inspect(daemon, ends)["ExitCode"] == 137
    daemon.docker("exec", "box", "touch", "/go")
    until(lambda: inspect(daemon, stays)["ExitCode"] == 4, "the exec has ended")
    assert daemon.docker("exec", "box", "cat", "/result").stdout == "done\n"
    until(lambda: not directories(daemon), "the directories are gone")


@pytest.mark.parametrize(
    ("program", "code", "words"), [("nosuch", 127, b"not found in $PATH"), ("/etc", 126, b"denied")]
)
def test_at_a_terminal_too_one_that_cannot_be_run_is_told_of(
    daemon: Daemon, box: str, program: str, code: int, words: bytes
):
    exec_id = create(daemon, program, Tty=True)
    client, _ = start(daemon, exec_id, Tty=True)
    with client:
        said = client.read_to_end()
    assert f'exec: "{program}": '.encode() in said and words in said
    assert inspect(daemon, exec_id)["ExitCode"] == code


def test_at_a_terminal_a_program_has_nothing_open_of_its_runtimes(daemon: Daemon, box: str):
    client, _ = start(daemon, create(daemon, "ls", "/proc/self/fd", Tty=True), Tty=True)
    with client:
        assert client.read_to_end().split() == [b"0", b"1", b"2", b"3"]


def test_runc(daemon: Daemon):
    daemon.docker("run", "-d", "--name", "box", "--runtime", "runc", "busybox", "sleep", "1000")
    assert ran(daemon, "-i", "-u", "nobody", "box", "sh", "-c", "cat; id -u; exit 3", input="in\n") == (
        3,
        "in\n65534\n",
        "",
    )
    code, output, _ = ran(daemon, "box", "nosuch")
    assert code == 127 and 'exec: "nosuch": executable file not found in $PATH: unknown' in output
    client, _ = start(daemon, create(daemon, "stty", "size", Tty=True, ConsoleSize=[12, 34]), Tty=True)
    with client:
        assert client.read_to_end() == b"12 34\r\n"


def test_a_terminal_has_its_size_before_the_program_runs(daemon: Daemon, box: str):
    """Each time, also where the processors are busy."""

    def size(number: int) -> bytes:
        client, _ = start(daemon, create(daemon, "stty", "size", Tty=True, ConsoleSize=[12, 34]), Tty=True)
        with client:
            return client.read_to_end()

    with ThreadPoolExecutor(8) as clients:
        assert set(clients.map(size, range(30))) == {b"12 34\r\n"}


def test_the_python_sdk(daemon: Daemon, box: str):
    with closing(daemon.sdk()) as sdk:
        container = sdk.containers.get("box")
        done = container.exec_run(["sh", "-c", "echo out; echo err >&2; exit 2"], demux=True)
        assert done.exit_code == 2
        assert list(done.output) == [b"out\n", b"err\n"]
        assert container.exec_run("tty", tty=True).output == b"/dev/pts/0\r\n"
