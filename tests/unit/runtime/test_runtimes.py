from pathlib import Path

import pytest

from husk.config import Config, RuntimeConfig
from husk.errors import InvalidParameter, Unavailable
from husk.kernel import cgroups
from husk.runtime import runtimes as module
from husk.runtime.oci import OCIRuntime
from husk.runtime.runtimes import Runtimes, find_runtimes, knows_files


def runtimes() -> Runtimes:
    made = {name: OCIRuntime(name, f"/bin/{name}", (), Path("/r")) for name in ("crun", "runc")}
    return Runtimes(made, "crun")


def test_an_empty_name_is_the_default_and_dockers_own_name_is_runc() -> None:
    assert runtimes().get("").name == "crun"
    assert runtimes().get("runc").name == "runc"
    assert runtimes().get("io.containerd.runc.v2").name == "runc"


def test_dockers_own_name_is_the_default_where_there_is_no_runc() -> None:
    only = Runtimes({"crun": OCIRuntime("crun", "/bin/crun", (), Path("/r"))}, "crun")
    assert only.get("io.containerd.runc.v2").name == "crun"


def test_runtimes_are_told_as_settings_name_them() -> None:
    assert runtimes().settings() == {name: RuntimeConfig(f"/bin/{name}", ()) for name in ("crun", "runc")}


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"^unknown or invalid runtime name: kata$"):
        runtimes().get("kata")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the runtimes that the host seems to have."""
    names = {"crun", "runc"}
    monkeypatch.setattr("husk.runtime.runtimes.which", lambda name, path="": f"/opt/{name}" if name in names else None)
    monkeypatch.setattr(cgroups, "hybrid_blocker", lambda: ())
    monkeypatch.setattr(cgroups, "unmounted", lambda: ())
    monkeypatch.setattr(module, "_seal", lambda path: None)
    return names


async def test_crun_is_preferred(installed: set[str], tmp_path: Path) -> None:
    found = await find_runtimes(Config(exec_root=tmp_path))
    assert found.default.name == "crun"
    assert found.default.root.is_dir()


async def test_a_runtime_that_is_no_longer_named_is_there_for_its_containers_alone(
    installed: set[str], tmp_path: Path
) -> None:
    named = Config(exec_root=tmp_path, runtimes={"mine": RuntimeConfig("/opt/mine", ("--debug",))})
    found = await find_runtimes(named)
    mine = found.get("mine")
    found.reload(Config(exec_root=tmp_path))
    (mine.root / "a-container").mkdir()
    again = await find_runtimes(Config(exec_root=tmp_path))
    for known in (found, again):
        assert known.of("mine") == mine and mine in known.known() and "mine" not in known.all
        with pytest.raises(InvalidParameter, match="unknown or invalid runtime name: mine"):
            known.get("mine")
    again.reload(named)
    assert again.get("mine") == again.of("mine") == mine
    (mine.root / "a-container").rmdir()
    last = await find_runtimes(Config(exec_root=tmp_path))
    assert {runtime.name for runtime in last.known()} == installed


async def test_runc_is_taken_where_crun_cannot_work(
    installed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cgroups, "hybrid_blocker", lambda: ("hugetlb",))
    found = await find_runtimes(Config(exec_root=tmp_path))
    assert found.default.name == "runc"
    assert "hugetlb" in caplog.text


async def test_runc_is_taken_where_crun_would_mistake_a_directory_for_a_tree(
    installed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "unmounted", lambda: ("hugetlb",))
    assert (await find_runtimes(Config(exec_root=tmp_path))).default.name == "runc"


async def test_the_configured_default_wins(installed: set[str], tmp_path: Path) -> None:
    config = Config(exec_root=tmp_path, default_runtime="kata", runtimes={"kata": RuntimeConfig("/opt/kata", ("-x",))})
    found = await find_runtimes(config)
    assert found.default == OCIRuntime("kata", "/opt/kata", ("-x",), tmp_path / "runtimes" / "kata")
    assert found.default.global_args[0] == "-x"


async def test_a_default_that_does_not_exist_is_refused(installed: set[str], tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="kata"):
        await find_runtimes(Config(exec_root=tmp_path, default_runtime="kata"))


async def test_a_runtimes_name_cannot_leave_the_directory(installed: set[str], tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="invalid runtime name"):
        await find_runtimes(Config(exec_root=tmp_path, runtimes={"../x": RuntimeConfig("/opt/kata")}))


async def test_a_host_without_runtimes_is_told_what_to_install(installed: set[str], tmp_path: Path) -> None:
    installed.clear()
    with pytest.raises(Unavailable, match="install crun or runc"):
        await find_runtimes(Config(exec_root=tmp_path))


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("crun version 1.8.1", True),
        ("crun version 1.29.1-dirty", True),
        ("crun version 0.17", False),
        ("crun version 1.30", False),
        ("crun version 2.0", False),
        ("runc version 1.1.5", False),
        ("", False),
    ],
)
def test_the_private_files_of_crun_are_used_only_of_versions_that_are_known(version: str, known: bool) -> None:
    assert knows_files(version) is known


async def test_a_runtime_named_crun_that_is_another_is_started_for_every_verb(tmp_path: Path) -> None:
    program = tmp_path / "crun"
    program.write_text("#!/bin/sh\necho crun version 9.0\n")
    program.chmod(0o755)
    config = Config(exec_root=tmp_path / "run", runtimes={"new": RuntimeConfig(str(program), ())})
    found = await find_runtimes(config)
    try:
        assert not found.get("new").known_files
    finally:
        found.close()
