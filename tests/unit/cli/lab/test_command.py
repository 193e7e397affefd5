"""`husk lab`, as far as it goes without root."""

import json
import socket
import threading
from typing import Any

import pytest

from husk.cli.lab.command import show
from husk.cli.lab.layout import Lab


def test_what_cannot_be_is_one_line(typed: Any) -> None:
    said = typed("lab", "up", "0")
    assert said.code == 1 and said.err.startswith("husk: a lab has 1 to 50 hosts")
    assert "there is no lab no-such-lab" in typed("lab", "ls", "--name", "no-such-lab").err


def test_hosts_are_listed_with_how_they_are(machine: Any, known: Lab, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(known.hosts[0].socket))
        daemon.listen()

        def answer() -> None:
            for _ in range(2):
                with daemon.accept()[0] as line:
                    line.recv(1000)
                    line.sendall(b"HTTP/1.0 200 OK\r\n\r\nOK")

        thread = threading.Thread(target=answer)
        thread.start()
        show(machine, known, as_json=False)
        shown = capfd.readouterr().out.splitlines()
        show(machine, known, as_json=True)
        told = json.loads(capfd.readouterr().out)
        thread.join()
    assert [line.split()[:3] for line in shown[1:]] == [["host1", "10.99.0.11", "up"], ["host2", "10.99.0.12", "down"]]
    assert [(host["Name"], host["Answers"]) for host in told] == [("host1", True), ("host2", False)]
