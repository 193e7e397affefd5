import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from husk.cli import dashboard as module
from husk.cli.dashboard import dashboard
from husk.cli.kit.place import HostChoice
from husk.errors import InvalidParameter


def run(*arguments: str) -> object:
    return CliRunner().invoke(dashboard, arguments, obj=HostChoice("unix:///nowhere"), catch_exceptions=True).exception


def test_an_address_that_others_reach_needs_tls() -> None:
    failed = run("--listen", "0.0.0.0:2380")
    assert isinstance(failed, InvalidParameter) and "without TLS" in failed.message


def test_a_certificate_that_is_not_there_is_named() -> None:
    failed = run("--tlscert", "/nowhere/cert.pem", "--tlskey", "/nowhere/key.pem")
    assert isinstance(failed, InvalidParameter) and "/nowhere/cert.pem" in failed.message


def test_a_browser_is_opened_only_on_a_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not module._has_desktop()
    monkeypatch.setenv("DISPLAY", ":0")
    assert module._has_desktop()


def test_a_browser_is_given_a_file_and_not_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody on the host reads the arguments of commands."""
    opened: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: opened.append(command))
    module._open(Path("/run/user/1000/open.html"))
    assert opened == [["xdg-open", "/run/user/1000/open.html"]]


def test_a_desktop_without_xdg_open_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    module._open(Path("/nowhere/open.html"))
