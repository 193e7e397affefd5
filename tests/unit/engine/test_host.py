"""Demands of the daemon's settings on the host, refused at its start where the host cannot meet them."""

from pathlib import Path

import pytest

from husk.config import Config, ContainerDefaults
from husk.engine.host import EngineHost
from husk.errors import InvalidParameter


def probed(**settings: object) -> EngineHost:
    return EngineHost.probe("crun", settings=Config(containers=ContainerDefaults(**settings)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("setting", "kept"), [("builtin", ""), ("unconfined", "unconfined")])
def test_a_seccomp_profile_has_two_words(setting: str, kept: str) -> None:
    assert probed(seccomp_profile=setting).seccomp == kept


def test_any_other_is_a_file_that_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text('{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}')
    host = probed(seccomp_profile=str(path))
    path.unlink()
    assert host.seccomp == '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}'


def test_a_profile_that_is_not_there_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"^opening seccomp profile \(/nowhere\) failed: "):
        probed(seccomp_profile="/nowhere")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(InvalidParameter, match=r"^decoding seccomp profile "):
        probed(seccomp_profile=str(tmp_path / "broken.json"))


def test_an_init_needs_its_program() -> None:
    settings = Config(init_path="/nowhere/init", containers=ContainerDefaults(init=True))
    with pytest.raises(InvalidParameter, match="install tini"):
        EngineHost.probe("crun", settings=settings)


def test_settings_of_containers_are_kept(tmp_path: Path) -> None:
    host = probed(no_new_privileges=True)
    assert host.no_new_privileges and host.default_runtime == "crun"
