"""The browser of a desktop is opened, if there is one."""

from pathlib import Path

import pytest

from husk.cli import desktop
from tests.support.programs import WrittenPrograms


def test_a_browser_is_opened_only_on_a_desktop() -> None:
    assert not desktop.present({"TERM": "xterm", "DISPLAY": ""})
    assert desktop.present({"DISPLAY": ":0"}) and desktop.present({"WAYLAND_DISPLAY": "wayland-0"})


def test_a_browser_is_given_a_file_and_not_the_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody on the host reads the arguments of commands."""
    programs = WrittenPrograms(tmp_path / "programs")
    programs.add("xdg-open")
    monkeypatch.setenv("PATH", str(programs.directory))
    opened = desktop.show(Path("/run/user/1000/open.html"))
    assert opened is not None and opened.wait(30) == 0
    assert programs.told == ["xdg-open /run/user/1000/open.html"]


def test_a_desktop_without_xdg_open_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert desktop.show(Path("/nowhere/open.html")) is None
