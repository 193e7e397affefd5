"""Sockets that the API listens on: those of dead daemons are replaced and those of living ones not, and systemd's
are taken."""

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.api.edge import listen as module
from husk.api.edge.listen import listen
from husk.errors import HuskError, InvalidParameter, SystemFault


@pytest.fixture
def opened() -> Iterator[list[socket.socket]]:
    made: list[socket.socket] = []
    yield made
    for one in made:
        one.close()


def at(opened: list[socket.socket], host: str, group: str = "", loopback_only: bool = False) -> list[str]:
    found = listen(host, group, loopback_only)
    opened += [one for one, _ in found]
    return [address for _, address in found]


def test_a_unix_socket_is_for_root_and_its_group(opened: list[socket.socket], tmp_path: Path) -> None:
    path = tmp_path / "run" / "husk.sock"
    assert at(opened, f"unix://{path}", str(os.getgid())) == [f"unix://{path}"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o660 and path.stat().st_gid == os.getgid()
    other = tmp_path / "other.sock"
    with pytest.raises(InvalidParameter, match="there is no group no-such-group on this host: make it"):
        at(opened, f"unix://{other}", "no-such-group")
    assert not other.exists()


def test_a_host_need_not_have_the_usual_group(opened: list[socket.socket], tmp_path: Path) -> None:
    path = tmp_path / "husk.sock"
    opened += [one for one, _ in listen(f"unix://{path}", "no-such-group", usual_group="no-such-group")]
    assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_gid) == (0o660, os.getgid())


def test_the_socket_of_a_dead_daemon_is_replaced_and_a_living_one_not(
    opened: list[socket.socket], tmp_path: Path
) -> None:
    path = tmp_path / "husk.sock"
    at(opened, f"unix://{path}")
    opened[0].close()
    at(opened, f"unix://{path}")
    opened[1].listen()
    with pytest.raises(SystemFault, match="another daemon is listening there"):
        at(opened, f"unix://{path}")
    assert path.exists()


def test_a_file_in_its_place_is_not_touched(opened: list[socket.socket], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SystemFault, match=r"it exists and is no socket\. Move it away"):
        at(opened, f"unix://{tmp_path}/file")
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(SystemFault, match="cannot listen on"):
        at(opened, f"unix://{tmp_path}/{'n' * 100}/{'n' * 100}")


def test_tcp_with_and_without_an_address(opened: list[socket.socket]) -> None:
    (address,) = at(opened, "tcp://127.0.0.1:0")
    port = opened[0].getsockname()[1]
    assert address == f"tcp://127.0.0.1:{port}" and opened[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    with pytest.raises(SystemFault, match=r"another program has this port .* choose another port with -H"):
        opened[0].listen()
        at(opened, f"tcp://127.0.0.1:{port}")


def test_an_address_of_another_host(opened: list[socket.socket]) -> None:
    with pytest.raises(SystemFault, match="no interface of this host has this address"):
        at(opened, "tcp://192.0.2.1:0")


@pytest.mark.parametrize("host", ["http://x:1", "unix://relative", "tcp://x", "tcp://x:y", "tcp://x:70000", "fd", ""])
def test_what_is_no_host(opened: list[socket.socket], host: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid host"):
        at(opened, host)


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch, opened: list[socket.socket], tmp_path: Path) -> list[socket.socket]:
    """Two sockets as systemd passes them: a Unix one named `api`, and one of TCP that others reach."""
    unix, tcp = socket.socket(socket.AF_UNIX), socket.create_server(("0.0.0.0", 0))
    unix.bind(str(tmp_path / "api.sock"))
    opened += [unix, tcp]
    first = 200
    for position, one in enumerate((unix, tcp)):
        os.dup2(one.fileno(), first + position)
    monkeypatch.setattr(module, "_FIRST_PASSED", first)
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", "2")
    monkeypatch.setenv("LISTEN_FDNAMES", "api:web")
    return [unix, tcp]


@pytest.fixture(autouse=True)
def _passed_are_closed() -> Iterator[None]:
    yield
    for descriptor in (200, 201):
        try:
            os.close(descriptor)
        except OSError:
            continue


def test_systemds_sockets_by_name_by_number_and_all(
    opened: list[socket.socket], passed: list[socket.socket], tmp_path: Path
) -> None:
    unix, tcp = f"unix://{tmp_path}/api.sock", f"tcp://0.0.0.0:{passed[1].getsockname()[1]}"
    assert at(opened, "fd://") == at(opened, "fd://*") == [unix, tcp]
    assert at(opened, "fd://api") == at(opened, "fd://200") == [unix]
    assert at(opened, "fd://web") == [tcp]
    with pytest.raises(SystemFault, match="systemd passed none"):
        at(opened, "fd://other")


def test_one_that_others_reach_is_refused_where_only_the_host_may(
    opened: list[socket.socket], passed: list[socket.socket]
) -> None:
    at(opened, "fd://api", loopback_only=True)
    with pytest.raises(HuskError):
        at(opened, "fd://web", loopback_only=True)


def test_a_path_at_which_systemd_listens_is_taken_over(
    opened: list[socket.socket], passed: list[socket.socket], tmp_path: Path
) -> None:
    host = f"unix://{tmp_path}/api.sock"
    assert at(opened, host) == [host]
    assert opened[-1].getsockname() == f"{tmp_path}/api.sock"
    assert module.held_by_systemd(host) and module.held_by_systemd("fd://api")
    assert not module.held_by_systemd(f"unix://{tmp_path}/other.sock")


def test_without_systemd_there_are_none(opened: list[socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_PID", "1")
    monkeypatch.setenv("LISTEN_FDS", "1")
    with pytest.raises(SystemFault, match="it needs systemd's socket activation"):
        at(opened, "fd://")
