"""A terminal, and the log, of a container of a real daemon, through the dashboard."""

import json

from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.support.daemon import Daemon
from tests.support.dashboard import Browser
from tests.support.waiting import until


def opened(browser: Browser, path: str) -> ClientConnection:
    address = browser.origin.replace("http", "ws", 1) + browser.root + path
    told = {"Cookie": browser.cookie}
    return connect(address, origin=Origin(browser.origin), additional_headers=told, open_timeout=30)


def heard(line: ClientConnection, wanted: bytes) -> bytes:
    said = b""
    while wanted not in said:
        message = line.recv(timeout=30)
        assert isinstance(message, bytes), (message, said)
        said += message
    return said


def test_a_shell_is_typed_at_and_knows_its_size(shown: Daemon, browser: Browser) -> None:
    shown.docker("run", "-d", "--name", "box", "busybox", "sleep", "600")
    with opened(browser, "/containers/box/terminal/socket") as line:
        line.send(json.dumps({"resize": [91, 33]}))
        line.send("nonsense")
        line.send(b"stty size; echo $TERM\n")
        assert b"33 91" in heard(line, b"xterm-256color")
        line.send(b"exit 7\n")
        while isinstance(message := line.recv(timeout=30), bytes):
            pass
        assert json.loads(message) == {"exit": 7}


def test_a_command_that_cannot_run_is_told(shown: Daemon, browser: Browser) -> None:
    shown.docker("run", "-d", "--name", "box", "busybox", "sleep", "600")
    for query, word in (("command=%22", "cannot be read"), ("user=nobody-there", "nobody-there")):
        with opened(browser, f"/containers/box/terminal/socket?{query}") as line:
            while isinstance(message := line.recv(timeout=30), bytes):
                pass
            assert word in json.loads(message)["error"]
    with opened(browser, "/containers/none/terminal/socket") as line:
        assert "No such container" in str(line.recv(timeout=30))


def test_a_process_ends_with_its_terminal(shown: Daemon, browser: Browser) -> None:
    shown.docker("run", "-d", "--name", "box", "busybox", "sleep", "600")
    with opened(browser, "/containers/box/terminal/socket?command=cat") as line:
        line.send(b"hello\n")
        heard(line, b"hello")
        assert "cat" in browser.get("/containers/box/processes").text
    until(lambda: "cat" not in browser.get("/containers/box/processes", x_region="processes").text, "cat has ended")


def test_a_log_is_followed(shown: Daemon, browser: Browser) -> None:
    script = "echo first; read line; echo second >&2"
    shown.docker("run", "-di", "--name", "box", "busybox", "sh", "-c", script)
    connection, answer = browser.open("GET", "/containers/box/logs/lines")
    try:
        said = b""
        while b"first" not in said:
            said += answer.readline()
        shown.docker("kill", "box")
        while b"event: end" not in said:
            piece = answer.readline()
            assert piece, said
            said += piece
        assert b'"stdout","first"' in said
    finally:
        connection.close()
    assert browser.get("/containers/box/logs/file").text.endswith(" first\n")
