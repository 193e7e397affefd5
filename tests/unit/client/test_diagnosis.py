"""Reasons why a container does not run: every rule, from what the API tells to what to do."""

from typing import Any

import pytest

from husk.client.diagnosis import ContainerFacts, Reason, explain, listeners

HOST = {"Architecture": "x86_64"}
IMAGE = {"Architecture": "amd64"}


def container(status: str = "exited", code: int = 0, **more: Any) -> dict[str, Any]:
    state = {"Status": status, "ExitCode": code, "Running": status == "running", "StartedAt": "T1", "FinishedAt": "T2"}
    return {
        "Id": "c1",
        "Name": "/web",
        "State": {**state, **more.pop("state", {})},
        "Config": {"Image": "app", "Cmd": ["serve"], **more.pop("config", {})},
        "HostConfig": {"RestartPolicy": {"Name": "no"}, **more.pop("host", {})},
        **more,
    }


def told(found: dict[str, Any], **more: Any) -> dict[str, Reason]:
    return {reason.name: reason for reason in explain(ContainerFacts(found, more.pop("image", IMAGE), HOST, **more))}


def test_one_that_runs() -> None:
    assert [reason.verdict for reason in told(container("running")).values()] == ["ok"]


@pytest.mark.parametrize(
    ("status", "cure"), [("paused", "husk unpause web"), ("created", "husk start web"), ("restarting", "husk logs web")]
)
def test_states_with_a_cure(status: str, cure: str) -> None:
    assert told(container(status))["state"].cure == cure


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ('exec: "serv": executable file not found in $PATH', "program"),
        ("exec /app: no such file or directory", "program"),
        ("exec /app: exec format error", "program"),
        ("crun: open executable: Permission denied: exec", "program"),
        ("driver failed: Bind for 0.0.0.0:80 failed: port is already allocated", "ports"),
        ("listen tcp4 0.0.0.0:80: bind: address already in use", "ports"),
        ("invalid mount config for type bind: bind source path does not exist: /srv/x", "mounts"),
        ("unable to find user bob: no matching entries in passwd file", "user"),
        ("write /x: no space left on device", "disk"),
        ("network abc not found", "network"),
        ("something else", "start"),
    ],
)
def test_what_the_engine_said(error: str, name: str) -> None:
    found = told(container("created", 127, state={"Error": error}))
    assert found[name].verdict == "bad" and error in found[name].detail
    assert found["state"].detail == "it was made, and could not be started"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1, "status 1, which is its program's own word"),
        (125, "the engine could not start it"),
        (126, "serve is there and cannot be executed"),
        (127, "serve, or a command in it, is not there"),
        (137, "killed (SIGKILL)"),
        (139, "crashed (SIGSEGV)"),
        (143, "ended by SIGTERM"),
        (162, "SIGRTMIN"),
        (255, "status 255"),
    ],
)
def test_exit_codes(code: int, said: str) -> None:
    reason = told(container(code=code))["exit"]
    assert reason.verdict == "bad" and (said in reason.detail or str(code) in reason.detail)


def test_a_code_that_the_engines_word_explains_is_not_told_twice() -> None:
    assert "exit" not in told(container(code=127, state={"Error": "exec: no such file or directory"}))


def test_the_end_of_a_program_that_had_no_more_to_do() -> None:
    assert told(container())["exit"].verdict == "poor"
    shell = told(container(config={"Cmd": ["/bin/bash"]}))["exit"]
    assert shell.verdict == "bad" and shell.cure.startswith("husk run -it")
    assert told(container(config={"Cmd": ["sh"], "OpenStdin": True}))["exit"].verdict == "poor"


def test_memory() -> None:
    limited = told(container(code=137, state={"OOMKilled": True}, host={"Memory": 64 << 20}))
    assert "its limit is 64 MiB" in limited["memory"].detail and "exit" not in limited
    assert "the host's" in told(container(code=137, state={"OOMKilled": True}))["memory"].detail


def test_a_loop_of_restarts() -> None:
    found = told(container("restarting", 1, RestartCount=7, host={"RestartPolicy": {"Name": "always"}}))
    assert "restarted 7 times (--restart always)" in found["restarts"].detail and found["exit"].verdict == "bad"
    again = told(container("running", RestartCount=1, host={"RestartPolicy": {"Name": "always"}}))
    assert again["restarts"].verdict == "poor"


def test_architectures() -> None:
    wrong = told(container(code=1), image={"Architecture": "arm64"})["architecture"]
    assert wrong.detail == "the image is for arm64, this host is amd64" and "--platform linux/amd64" in wrong.cure
    assert "architecture" not in told(container(), image={"Architecture": "386"})
    assert told(container(), image=None)["image"].cure == "husk pull app"


def test_mounts_that_are_gone() -> None:
    assert told(container(), gone=["/srv/x"])["mounts"].detail.endswith(": /srv/x")


def test_ports_that_another_container_has() -> None:
    wants = container(
        host={"PortBindings": {"80/tcp": [{"HostPort": "8080"}], "81/tcp": [{"HostPort": ""}], "82/tcp": None}}
    )
    other = {"Id": "c2", "Names": ["/old"], "Ports": [{"PublicPort": 8080, "Type": "tcp"}, {"PrivatePort": 1}]}
    assert "8080/tcp that it publishes is taken by old" in told(wants, others=[other])["ports"].detail
    assert "ports" not in told(wants, others=[{**other, "Id": "c1"}])
    assert "ports" not in told({**wants, "State": {"Status": "running", "Running": True}}, others=[other])


def test_health() -> None:
    health = {"Status": "unhealthy", "FailingStreak": 3, "Log": [{"Output": "connection\nrefused"}]}
    reason = told(container("running", state={"Health": health}))["health"]
    assert "the last 3 times: connection refused" in reason.detail
    silent = told(container("running", state={"Health": {"Status": "unhealthy"}}))["health"]
    assert "without a word" in silent.detail


TABLE = """  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
   2: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 1
   0: 00000000000000000000000001000000:0051 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 1
nonsense
"""


def test_who_is_listened_for() -> None:
    assert list(listeners(TABLE)) == [("127.0.0.1", 8080), ("0.0.0.0", 80), ("::1", 81)]


@pytest.mark.parametrize(
    ("port", "detail"),
    [
        ("80/tcp", None),
        ("8080/tcp", "its program listens on 127.0.0.1 only, so that the published port 9000 reaches nobody"),
        ("99/tcp", "nothing in it listens on port 99, which is published as 9000; it listens on 80"),
        ("99/udp", None),
    ],
)
def test_published_ports_that_lead_to_nobody(port: str, detail: str | None) -> None:
    box = container("running", NetworkSettings={"Ports": {port: [{"HostPort": "9000"}]}})
    found = told(box, listening=list(listeners(TABLE)))
    assert (found["ports"].detail if detail else found.get("ports")) == detail
    assert "ports" not in told(box), "nothing is known of it"


@pytest.mark.parametrize(
    ("interpreter", "detail"),
    [
        ("/bin/bash", "the script /run.sh wants /bin/bash, which is not in the image"),
        ("/bin/sh\r", "the script /run.sh has Windows' ends of lines"),
    ],
)
def test_a_script_without_its_interpreter(interpreter: str, detail: str) -> None:
    assert told(container(code=127), script="/run.sh", interpreter=interpreter)["program"].detail == detail


@pytest.mark.parametrize(
    "output",
    [
        'OCI runtime exec failed: exec: "curl": executable file not found in $PATH',
        "/bin/sh: curl: not found",
        "bash: line 1: curl: command not found",
        "sh: 1: curl: not found",
    ],
)
def test_a_health_check_whose_program_is_missing(output: str) -> None:
    health = {"Status": "unhealthy", "FailingStreak": 3, "Log": [{"Output": output, "ExitCode": 127}]}
    assert (
        "runs curl, which is not in the image" in told(container("running", state={"Health": health}))["health"].detail
    )
