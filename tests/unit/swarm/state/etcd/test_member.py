"""A port that another program has is named before anything is changed, and nothing stays of a member that goes."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from husk.errors import Unavailable
from husk.swarm.state.etcd.member import check_free, wipe
from husk.text.endpoints import HostPort


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=rf"another program has 127.0.0.1:{port} on .* --swarm-etcd-ports"):
            check_free([HostPort("127.0.0.1", port)])
    check_free([HostPort("127.0.0.1", 0), HostPort("::1", 0)])  # any that is free


def test_an_address_of_another_host_is_for_etcd_to_tell() -> None:
    check_free([HostPort("192.0.2.1", 2379)])


def test_nothing_stays_of_a_member_though_a_file_goes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, unlink = tmp_path / "member", os.unlink
    directory.mkdir()
    for name in ("root.json.new", "member.key"):
        (directory / name).touch()
    renamed = [True]

    def unlinked(name: str, **how: Any) -> None:
        """A thread renames the first one as it is to go."""
        if renamed:
            renamed.clear()
            raise FileNotFoundError(2, "No such file or directory", name)
        unlink(name, **how)

    monkeypatch.setattr(os, "unlink", unlinked)
    wipe(directory)
    assert not directory.exists()
