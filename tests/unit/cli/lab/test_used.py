"""Names and addresses that this machine uses: told by its files, its connections and its routes."""

import socket
import threading
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from husk.cli.lab import used


def test_addresses_in_files() -> None:
    hosts = (
        "127.0.0.1 localhost\n198.51.100.7 mirror.example # 198.51.100.8\n::1 localhost\nnameserver 203.0.113.1\n1.2 x"
    )
    assert [str(each) for each in used.told_in([hosts])] == ["127.0.0.1", "198.51.100.7", "198.51.100.8", "203.0.113.1"]


def test_names_of_servers() -> None:
    texts = [
        "deb [signed-by=/x] http://mirror.example:8080/debian stable main\nURIs: https://user:word@b.example/x",
        '{"registry-mirrors": ["https://hub.example"]} http://mirror.example/again file:///opt ftp://no.example',
    ]
    assert used.names_in(texts) == ["mirror.example", "b.example", "hub.example"]
    assert len(used.names_in([" ".join(f"http://h{number}.example" for number in range(1000))])) == 32


def test_names_are_looked_up_and_not_waited_for() -> None:
    never = threading.Event()

    def look_up(name: str) -> list[IPv4Address]:
        if name == "slow.example":
            never.wait()
        if name == "none.example":
            raise socket.gaierror
        return [IPv4Address("198.51.100.7")]

    try:
        assert used.resolved(["slow.example", "none.example", "mirror.example"], 0.05, look_up) <= {
            IPv4Address("198.51.100.7")
        }
        assert used.resolved(["none.example", "mirror.example"], 30.0, look_up) == {IPv4Address("198.51.100.7")}
    finally:
        never.set()


def test_a_name_of_this_machine_is_looked_up() -> None:
    assert used.resolved(["localhost", "no such name"], 30.0) == {IPv4Address("127.0.0.1")}


def test_what_a_machine_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/a.list").write_text("deb http://mirror.example/ x y")
    (tmp_path / "hosts").write_text("198.51.100.9 name")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    asked: list[str] = []

    def resolved(names: list[str]) -> set[IPv4Address]:
        asked.extend(names)
        return {IPv4Address("203.0.113.9")}

    names = [str(tmp_path / "lists"), str(tmp_path / "none")]
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        found = used.in_use([str(tmp_path / "hosts")], names, resolved)
    assert {"mirror.example", "proxy.example"} <= set(asked)
    assert {IPv4Network("127.0.0.0/8"), *map(IPv4Network, ("198.51.100.9", "203.0.113.9", "127.0.0.1"))} <= set(found)
    assert IPv4Network("0.0.0.0/0") not in found, "the way to anywhere is no use of an address"
