import os
from pathlib import Path

import pytest

from husk.cli.system.docker_plugins import environment
from husk.client.address import Address


@pytest.fixture
def ran(monkeypatch):
    """Take the program, words and variables that a plugin is run with."""
    found = []
    monkeypatch.setattr(os, "execve", lambda *given: found.append(given))
    return found


def test_a_plugin_is_run_with_the_engine(typed, ran, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    program = tmp_path / "cli-plugins/docker-compose"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert typed("-H", "unix:///x.sock", "compose", "-f", "a.yaml", "up", "--help").code == 0
    [(path, words, variables)] = ran
    assert path == str(program) and words == [str(program), "compose", "-f", "a.yaml", "up", "--help"]
    assert variables["DOCKER_HOST"] == "unix:///x.sock"


def test_a_plugin_that_is_not_there(typed, ran, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setattr("husk.cli.system.docker_plugins._SYSTEM", ())
    told = typed("buildx", "ls")
    assert told.code == 1 and "Install the package docker-buildx" in told.err and str(tmp_path) in told.err
    (tmp_path / "config.json").write_text('{"cliPluginsExtraDirs": ["/nowhere"]}')
    assert typed("buildx", "ls").code == 1


def test_a_plugin_that_is_no_program(typed, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    program = tmp_path / "cli-plugins/docker-compose"
    program.parent.mkdir()
    program.write_text("no program")
    program.chmod(0o755)
    told = typed("-H", "unix:///x.sock", "compose", "ps")
    assert told.code == 1 and told.err == f"husk: the plugin {program} cannot be run: Exec format error\n"


def test_the_address_in_dockers_variables():
    given = {"HUSK_HOST": "x", "DOCKER_CONTEXT": "y", "HOME": "/h"}
    assert environment(Address("unix:///s"), given) == {"HOME": "/h", "DOCKER_HOST": "unix:///s"}
    secure = environment(Address("tcp://h:2376", Path("/certs"), verify=True), {})
    assert secure == {"DOCKER_HOST": "tcp://h:2376", "DOCKER_CERT_PATH": "/certs", "DOCKER_TLS_VERIFY": "1"}
