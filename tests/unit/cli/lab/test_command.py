"""`husk lab`, as far as it goes without root."""

import errno
import json
import signal
import socket
import threading
from ipaddress import IPv4Interface, IPv4Network

from husk.cli.lab import command, holder, used
from husk.cli.lab.layout import Lab, read, written


def test_who_is_not_root_is_told(typed, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for words in (("up",), ("down",)):
        said = typed("lab", *words)
        assert (said.code, said.err) == (1, "husk: hosts of a lab are root's: run it with sudo\n")


def test_what_cannot_be_made(typed, lab, monkeypatch):
    assert "has 1 to 50 hosts" in typed("lab", "up", "0").err
    monkeypatch.setattr(used, "own_interfaces", lambda: [IPv4Interface("10.99.0.7/24")])
    assert "choose another --subnet" in typed("lab", "up", "2", "--subnet", "10.99.0.0/24").err
    monkeypatch.setattr(command, "is_up", lambda lab: True)
    assert "is up: end it with `husk lab down`" in typed("lab", "up").err
    assert not lab.run.exists()


def test_a_former_lab_is_gone_before_addresses_are_looked_at(typed, lab, monkeypatch):
    there = [IPv4Interface("10.99.0.1/24")]
    monkeypatch.setattr(command, "take_back", lambda lab: there.clear())
    monkeypatch.setattr(used, "own_interfaces", lambda: there)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: lab.log.write_text("it cannot be\n"))
    assert "it cannot be" in typed("lab", "up", "2", "--subnet", "10.99.0.0/24").err


def test_a_lab_that_does_not_start_is_taken_back(typed, lab, monkeypatch):
    ended: list[str] = []
    monkeypatch.setattr(command, "take_back", lambda lab: ended.append(lab.name))

    def start(words: list[str], **_: object) -> None:
        assert words[-4:] == [lab.mark, "husk-lab", "2", "10.99.0.0/24"]
        lab.log.write_text("first\nit cannot be\n")

    monkeypatch.setattr(used, "own_interfaces", lambda: [])
    monkeypatch.setattr("subprocess.run", start)
    assert typed("lab", "up", "2", "--subnet", "10.99.0.0/24").err == "husk: host1 does not start: it cannot be\n"
    assert ended == ["husk-lab", "husk-lab"], "what a former one left, and this one"


def test_addresses_that_this_machine_uses_are_left_to_it(typed, lab, monkeypatch):
    """A mirror of packages in the usual subnet would be hidden."""
    monkeypatch.setattr(used, "own_interfaces", lambda: [])
    monkeypatch.setattr(used, "in_use", lambda: [IPv4Network("198.51.100.7"), IPv4Network("203.0.113.0/25")])
    started: list[str] = []

    def start(words: list[str], **_: object) -> None:
        started.append(words[-1])
        assert read("husk-lab", lab.record.read_bytes()).subnet == IPv4Network(words[-1])
        lab.log.write_text("no\n")

    monkeypatch.setattr("subprocess.run", start)
    typed("lab", "up", "2")
    assert started == ["192.0.2.0/24"]


def test_hosts_are_listed_with_how_they_are(typed, lab):
    assert "there is no lab husk-lab" in typed("lab", "ls").err
    lab.run.mkdir(parents=True)
    lab.record.write_bytes(b'{"Hosts":2,"Subnet":"10.99.0.0/24"}')
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(lab.hosts[0].socket))
        daemon.listen()

        def answer() -> None:
            for _ in range(2):
                with daemon.accept()[0] as line:
                    line.recv(1000)
                    line.sendall(b"HTTP/1.0 200 OK\r\n\r\nOK")

        thread = threading.Thread(target=answer)
        thread.start()
        shown = typed("lab", "ls").out.splitlines()
        told = json.loads(typed("lab", "ls", "--json").out)
        thread.join()
    assert [line.split()[:3] for line in shown[1:]] == [["host1", "10.99.0.11", "up"], ["host2", "10.99.0.12", "down"]]
    assert [(host["Name"], host["Answers"]) for host in told] == [("host1", True), ("host2", False)]


def test_who_may_not_ask_a_host_is_told(typed, lab, monkeypatch):

    def refuse(*_: object) -> bytes:
        raise PermissionError(errno.EACCES, "no")

    class Closed(socket.socket):
        connect = refuse  # type: ignore[assignment]

    lab.run.mkdir(parents=True)
    lab.record.write_bytes(written(lab))
    with monkeypatch.context() as there:
        there.setattr("socket.socket", Closed)
        assert "root's: run it with sudo" in typed("lab", "ls").err
    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert "root's: run it with sudo" in typed("lab", "ls").err


def test_a_lab_of_which_nothing_is_known_is_taken_back_all_the_same(typed, lab, monkeypatch):
    ended: list[Lab] = []
    monkeypatch.setattr(command, "take_back", ended.append)
    assert typed("lab", "down").code == 0
    assert [each.size for each in ended] == [50]


def test_a_daemon_is_told_once_to_end(typed, lab, monkeypatch):
    lab.run.mkdir(parents=True)
    lab.record.write_bytes(written(lab))
    lab.wish(lab.hosts[0]).touch()
    sent: list[tuple[int, int]] = []
    running = iter([{7}] * 5)
    monkeypatch.setattr(command, "PATIENCE", 30.0)
    monkeypatch.setattr(command, "daemons_of", lambda host: next(running, set()))
    monkeypatch.setattr("os.kill", lambda *call: sent.append(call))
    assert typed("lab", "stop", "host1").code == 0
    assert sent == [(7, signal.SIGTERM)] and next(running, None) is None
    assert not lab.wish(lab.hosts[0]).exists(), "nobody wants it any more"


def test_only_its_daemon_is_told(lab, monkeypatch):
    first, second = lab.hosts
    words = {
        1: holder.command(lab, first),
        2: ["/elsewhere/python", *holder.command(lab, first)[1:], "--debug"],
        3: holder.command(lab, second),
        4: ["du", str(first.data_root)],
        5: ["python", "-m", "husk", "serve", str(first.data_root)],
    }
    monkeypatch.setattr("husk.cli.lab.command.given", lambda arguments: list(words))
    monkeypatch.setattr("husk.cli.lab.command.arguments_of", lambda pid: [word.encode() for word in words[pid]])
    assert command.daemons_of(first) == {1, 2}


def test_a_wish_lasts_as_long_as_somebody_waits(typed, lab, monkeypatch):
    lab.run.mkdir(parents=True)
    lab.record.write_bytes(written(lab))
    lab.log.touch()
    monkeypatch.setattr("husk.cli.lab.command.given", lambda arguments: [7])
    monkeypatch.setattr(command, "is_up", lambda lab: True)
    seen: list[bool] = []
    monkeypatch.setattr("os.kill", lambda *call: seen.append(lab.wish(lab.hosts[0]).exists()))
    assert "host1 does not start" in typed("lab", "start", "host1").err
    assert seen == [True] and not lab.wish(lab.hosts[0]).exists()
