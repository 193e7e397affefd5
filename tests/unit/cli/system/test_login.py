import json
import os

import pytest

from husk.cli.system.login import remember
from husk.errors import HuskError, InvalidParameter
from tests.support.fake_engine import failed


def test_who_is_believed_is_remembered(engine, typed, tmp_path):
    engine.answers("POST", "/auth", {"Status": "Login Succeeded"})
    done = typed("login", "-u", "me", "--password-stdin", "r.io", given="secret\n")
    assert done.out == "Login Succeeded\n"
    assert engine.last("POST", "/auth").document["password"] == "secret"
    file = tmp_path / "config.json"
    assert json.loads(file.read_text()) == {"auths": {"r.io": {"auth": "bWU6c2VjcmV0"}}}
    assert file.stat().st_mode & 0o777 == 0o600
    assert typed("logout", "r.io").code == 0
    assert json.loads(file.read_text()) == {"auths": {}}
    engine.answers("POST", "/auth", failed(401, "wrong password"))
    assert typed("login", "-u", "me", "-p", "x", "--json").err == "Error response from daemon: wrong password\n"
    assert typed("login", "--password-stdin").code == 1


def test_nobody_is_asked_without_a_terminal(typed):
    code, _, err = typed("login", "-u", "me")
    assert code == 1 and err.startswith("Error: Cannot perform an interactive login from a non TTY device")


def test_helpers(tmp_path, monkeypatch):
    helper = tmp_path / "docker-credential-x"
    helper.write_text(f"#!/bin/sh\n[ $1 = erase ] && exit 1\ncat > {tmp_path}/told\n")
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    file = tmp_path / "config.json"
    file.write_text('{"credsStore": "x"}')
    remember(file, "r.io", "me", "secret")
    assert json.loads((tmp_path / "told").read_text()) == {"ServerURL": "r.io", "Username": "me", "Secret": "secret"}
    with pytest.raises(HuskError, match="erase failed"):
        remember(file, "r.io", "", "")
    file.write_text('{"credHelpers": {"r.io": "nosuch"}}')
    with pytest.raises(InvalidParameter, match="cannot be run"):
        remember(file, "r.io", "me", "secret")
