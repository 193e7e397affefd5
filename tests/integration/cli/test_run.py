"""`husk run`, `exec`, `attach` and `start` with real containers: terminals, pipes, signals and exit codes."""

import json
import os
import signal
import subprocess

from tests.support.daemon import Daemon
from tests.support.husk import at_terminal, command, environment, husk
from tests.support.waiting import wait_until


def test_the_output_and_exit_code_are_those_of_the_container(daemon: Daemon) -> None:
    done = husk(daemon, "run", "--rm", "busybox", "sh", "-c", "echo out; echo err >&2; exit 7", code=7)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert (
        husk(daemon, "run", "--rm", "busybox", "nosuch", code=127).stderr
        == 'husk: "nosuch" is not in the image busybox\n'
    )
    assert "permission denied" in husk(daemon, "run", "--rm", "busybox", "/etc/passwd", code=126).stderr.lower()
    for bad in (["-m", "lots"], ["--nosuch"], ["-p", "1:2:3:4:5"], ["--gpus", "all"]):
        assert len(husk(daemon, "run", *bad, "busybox", code=125).stderr.splitlines()) == 1
    assert husk(daemon, "ps", "-aq").stdout.count("\n") == 1  # what cannot be started is left, without --rm


def test_what_is_piped_in_ends_with_the_pipe(daemon: Daemon) -> None:
    script = "sort; sleep 0.1; echo later"
    assert husk(daemon, "run", "--rm", "-i", "busybox", "sh", "-c", script, input="b\na\n").stdout == "a\nb\nlater\n"
    husk(daemon, "run", "-d", "--name", "web", "-e", "A=1", "busybox", "sleep", "1000")
    assert husk(daemon, "exec", "-i", "web", "cat", input="in").stdout == "in"
    assert husk(daemon, "exec", "-e", "B=2", "web", "sh", "-c", "echo $A$B; exit 3", code=3).stdout == "12\n"
    assert "not a TTY" in husk(daemon, "exec", "-it", "web", "sh", code=1).stderr
    events = [json.loads(line) for line in husk(daemon, "exec", "--json", "web", "echo", "hi").stdout.splitlines()]
    assert events[0] == {"Stream": "stdout", "Line": "hi"} and events[1]["ExitCode"] == 0


def test_a_terminal(daemon: Daemon) -> None:
    with at_terminal(daemon, "run", "-it", "--name", "box", "busybox", "sh", rows=31, columns=97) as terminal:
        terminal.expect(b"# ")
        terminal.type(b"stty size\n")
        terminal.expect(b"31 97")
        terminal.resize(22, 66)
        wait_until(lambda: _typed(terminal, b"stty size\n", b"22 66"), "the window's size arrives")
        terminal.type(b"sh -c \"trap 'echo go''t; exit' INT; echo wai''ts; while :; do sleep 0.1; done\"\n")
        terminal.expect(b"waits")
        terminal.type(b"\x03")  # the container's, not ours
        terminal.expect(b"got")
        terminal.expect(b"# ")
        terminal.type(b"\x10\x11")
        assert terminal.wait() == 0
    assert husk(daemon, "ps", "--format", "{{.Names}}").stdout == "box\n"
    with at_terminal(daemon, "exec", "-it", "box", "sh") as terminal:
        terminal.expect(b"# ")
        terminal.type(b"exit 5\n")
        assert terminal.wait() == 5
    with at_terminal(daemon, "attach", "box") as terminal:
        terminal.type(b"echo he''re\n")
        terminal.expect(b"here")
        terminal.type(b"exit 6\n")
        assert terminal.wait() == 6
    with at_terminal(daemon, "start", "-ai", "box") as terminal:
        terminal.expect(b"# ")
        terminal.type(b"exit 4\n")
        assert terminal.wait() == 4


def _typed(terminal, keys: bytes, answer: bytes) -> bool:
    terminal.type(keys)
    return answer in terminal.expect(b"# ")


def test_signals_go_to_the_container(daemon: Daemon) -> None:
    script = "trap 'echo got it; exit 9' INT; echo ready; while :; do sleep 0.1; done"
    arguments = command("run", "--rm", "busybox", "sh", "-c", script)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, env=environment(daemon)) as client:
        assert client.stdout is not None and client.stdout.readline() == b"ready\n"
        client.send_signal(signal.SIGINT)
        assert client.stdout.read() == b"got it\n"
    assert client.returncode == 9


def test_ctrl_c_ends_logs_and_a_closed_pipe_ends_quietly(daemon: Daemon) -> None:
    endless = "while :; do echo line; sleep 0.01; done"
    husk(daemon, "run", "-d", "--name", "talker", "busybox", "sh", "-c", endless)
    for end in ("signal", "pipe"):
        with subprocess.Popen(
            command("logs", "-f", "talker"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(daemon),
            process_group=0,
        ) as client:
            assert client.stdout is not None and client.stderr is not None
            assert client.stdout.readline() == b"line\n"
            if end == "signal":
                os.kill(client.pid, signal.SIGINT)
                client.stdout.read()
            client.stdout.close()
            assert client.stderr.read() == b""
            assert client.wait() == (130 if end == "signal" else 141)


def test_detached_and_in_json(daemon: Daemon) -> None:
    made = json.loads(husk(daemon, "run", "-d", "--json", "--name", "web", "-l", "a=b", "busybox", "sleep", "9").stdout)
    assert made["Warnings"] == []
    [listed] = json.loads(husk(daemon, "ps", "--json").stdout)
    assert (listed["Id"], listed["Names"], listed["Labels"]) == (made["Id"], ["/web"], {"a": "b"})
    lines = husk(daemon, "run", "--rm", "--json", "busybox", "sh", "-c", "echo a; echo b >&2; exit 2", code=2).stdout
    *output, ended = [json.loads(line) for line in lines.splitlines()]
    assert {(line["Stream"], line["Line"]) for line in output} == {("stdout", "a"), ("stderr", "b")}
    assert ended["ExitCode"] == 2
    assert json.loads(husk(daemon, "stop", "-t", "0", "web", "nope", "--json", code=1).stdout) == [
        {"Name": "web", "Error": None},
        {"Name": "nope", "Error": "No such container: nope"},
    ]


def test_who_leaves_an_exec_ends_the_client_alone(daemon: Daemon) -> None:
    husk(daemon, "run", "-d", "--name", "box", "busybox", "sleep", "1000")
    script = "echo ready; while :; do sleep 0.1; done"
    for number in (signal.SIGINT, signal.SIGTERM):
        arguments = command("exec", "box", "sh", "-c", script)
        with subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(daemon), process_group=0
        ) as client:
            assert client.stdout is not None and client.stderr is not None
            assert client.stdout.readline() == b"ready\n"
            client.send_signal(number)
            assert (client.wait(), client.stderr.read()) == (0, b"")
    assert husk(daemon, "top", "box").stdout.count(script) == 2


def test_a_container_that_removes_itself_ends_with_who_reads_its_output(daemon: Daemon) -> None:
    client = subprocess.Popen(
        command("run", "--rm", "--name", "talker", "busybox", "yes"), stdout=subprocess.PIPE, env=environment(daemon)
    )
    assert client.stdout is not None and client.stdout.readline() == b"y\n"
    client.stdout.close()
    assert client.wait(20) == 141
    daemon.docker("wait", "talker", check=False)
    assert "talker" not in daemon.docker("ps", "--format", "{{.Names}}").stdout
