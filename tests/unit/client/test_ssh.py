import os

import pytest

from husk.client import ssh
from husk.client.dial import dialer
from husk.errors import InvalidParameter, Unavailable


def test_the_command():
    assert ssh.arguments("ssh://me@far:22")[:5] == ["ssh", "-l", "me", "-p", "22"]
    assert ssh.arguments("ssh://far")[:2] == ["ssh", "-o"]
    assert ssh.arguments("ssh://far")[-2] == "far"
    assert "husk system dial-stdio" in ssh.arguments("ssh://far")[-1]
    for wrong in ("ssh://far/path", "ssh://me:secret@far", "ssh://far:port", "ssh://?x"):
        with pytest.raises(InvalidParameter, match="invalid address"):
            ssh.arguments(wrong)
    with pytest.raises(InvalidParameter):
        dialer("ssh://far/path")


async def test_bytes_go_through_the_program(tmp_path, monkeypatch):
    program = tmp_path / "ssh"
    program.write_text("#!/bin/sh\nread line\nprintf 'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    connection = await dialer("ssh://far")()
    response = await connection.request("GET", "/", {}, b"")
    assert response.status == 200
    connection.close()


async def test_no_ssh_here(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="no `ssh` command"):
        await dialer("ssh://far")()
