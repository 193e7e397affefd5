import json
import os
from pathlib import Path

import pytest

from husk.config import Config, RuntimeConfig
from husk.errors import InvalidParameter, Unavailable
from husk.kernel import cgroups, process
from husk.runtime import oci
from husk.runtime.oci import OCIRuntime, Runtimes, exit_code, fault, find_runtimes

FRAME = "failed to create task for container: failed to create shim task: OCI runtime create failed: "


def line(message: str, level: str = "error") -> str:
    return json.dumps({"msg": message, "level": level, "time": "now"}) + "\n"


@pytest.mark.parametrize(
    ("runtime", "stderr", "expected", "code"),
    [
        (
            "runc",
            line(
                'runc create failed: unable to start container process: exec: "x": executable file not found in $PATH'
            ),
            'runc create failed: unable to start container process: exec: "x": executable file not found in $PATH',
            127,
        ),
        (
            "crun",
            line("executable file `x` not found in $PATH: No such file or directory"),
            'crun create failed: unable to start container process: exec: "x": executable file not found in $PATH',
            127,
        ),
        (
            "crun",
            line("executable file `/x` not found in $PATH: No such file or directory"),
            'crun create failed: unable to start container process: exec: "/x": stat /x: no such file or directory',
            127,
        ),
        (
            "crun",
            line("open executable: Operation not permitted"),
            'crun create failed: unable to start container process: exec: "/etc": permission denied',
            126,
        ),
        ("crun", line("something else"), "crun create failed: something else", 128),
        ("crun", line("careful", "warning") + line("broken"), "crun create failed: broken", 128),
        ("odd", "plain words\nmore\n", "odd create failed: plain words; more", 128),
        ("odd", "", "odd create failed: no message", 128),
    ],
)
def test_a_failed_create_is_told_in_dockers_frame(runtime: str, stderr: str, expected: str, code: int) -> None:
    message = fault(runtime, "create", stderr, "/etc")
    assert message == f"{FRAME}{expected}: unknown"
    assert exit_code(message) == code


def test_other_verbs_have_their_own_frame() -> None:
    assert fault("crun", "pause", line("no")) == "OCI runtime pause failed: crun pause failed: no: unknown"


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
    monkeypatch.setattr("husk.runtime.oci.which", lambda name, path="": f"/opt/{name}" if name in names else None)
    monkeypatch.setattr(cgroups, "hybrid_blocker", lambda: ())
    monkeypatch.setattr(cgroups, "unmounted", lambda: ())
    monkeypatch.setattr(oci, "_seal", lambda path: None)
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


async def test_deleting_what_does_not_exist_is_no_error(tmp_path: Path) -> None:
    runtime = OCIRuntime("crun", "/nonexistent/crun", (), tmp_path)
    await runtime.delete("abc")
    await runtime.delete("abc", force=True)
    assert runtime.known() == []


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
    assert oci.knows_files(version) is known


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


def _crun(root: Path, known: bool = True) -> OCIRuntime:
    return OCIRuntime("crun", "/usr/bin/crun", (), root, known_files=known)


def _status(root: Path, **fields: object) -> Path:
    directory = root / "one"
    directory.mkdir()
    (directory / "status").write_text(json.dumps({"pid": os.getpid(), "process-start-time": 1, **fields}))
    return directory


def test_one_that_has_ended_is_forgotten_without_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(cgroups, "remove", removed.append)
    directory = _status(tmp_path, **{"cgroup-path": "/husk/one"})
    assert _crun(tmp_path).has_ended("one") and directory.exists() and removed == []
    assert _crun(tmp_path).forget_ended("one") and not directory.exists() and removed == ["/husk/one"]
    _status(tmp_path, **{"cgroup-path": "/husk/one"})
    assert _crun(tmp_path).forget_ended("one", spared="/husk/one") and removed == ["/husk/one"]
    # Safe to repeat.
    assert _crun(tmp_path).has_ended("one") and _crun(tmp_path).forget_ended("one")


def test_it_takes_the_program_for_one_that_runs_and_for_files_that_are_not_known(tmp_path: Path) -> None:
    started = process.start_time(os.getpid())
    directory = _status(tmp_path, **{"process-start-time": started})
    assert not _crun(tmp_path).has_ended("one") and not _crun(tmp_path).forget_ended("one")
    (directory / "status").write_text(json.dumps({"pid": os.getpid(), "process-start-time": 1}))
    assert _crun(tmp_path).has_ended("one") and not _crun(tmp_path, known=False).has_ended("one")
    for text in ("", json.dumps({"pid": 1, "systemd-cgroup": True})):
        (directory / "status").write_text(text)
        assert not _crun(tmp_path).has_ended("one") and not _crun(tmp_path).forget_ended("one")
    assert directory.exists()
