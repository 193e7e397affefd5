"""Facts about the daemon and its host."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from husk.config import Config, RuntimeConfig
from husk.engine.host import EngineHost
from husk.engine.system import System, engine_id, filesystem_of, is_contained, read_version

MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /var/lib rw shared:2 - xfs /dev/sdb rw
23 21 0:21 / /var/lib/husk/containers/x rw - overlay overlay rw
"""
HOST = replace(EngineHost.probe("crun"), init_path="", conmon_path="/nowhere/conmon")


def test_the_deepest_mount_decides_the_filesystem() -> None:
    assert filesystem_of("/var/lib/husk", MOUNTS) == "xfs"
    assert filesystem_of("/var/library", MOUNTS) == "extfs"
    assert filesystem_of("/x", "") == "unknown"


def test_a_daemon_keeps_its_id_and_another_root_has_another() -> None:
    assert engine_id("m\n", "/a") == engine_id("m", "/a") != engine_id("m", "/b")
    assert [len(part) for part in engine_id("m", "/a").split("-")] == [8, 4, 4, 4, 12]


def test_versions_are_read_from_what_programs_print() -> None:
    crun = read_version("crun", "crun version 1.8.1\ncommit: f8a096be\nrundir: /run/crun\n")
    assert (crun.version, crun.commit) == ("1.8.1", "f8a096be")
    assert read_version("tini", "tini version 0.19.0\n").version == "0.19.0"
    assert read_version("odd", "hello").version == ""


def test_reload_takes_the_new_settings() -> None:
    system = System(Config(), HOST, {})
    assert not any("tcp" in warning or "http" in warning for warning in system.info().warnings)
    system.reload(Config(hosts=("tcp://0.0.0.0:2375",)))
    assert any("http://0.0.0.0:2375" in warning for warning in system.info().warnings)


async def test_a_program_that_cannot_run_has_no_version(tmp_path: Path) -> None:
    system = System(Config(data_root=tmp_path), HOST, {"crun": RuntimeConfig(str(tmp_path / "crun"))})
    async with asyncio.timeout(10):
        components = {component.name: component.version for component in await system.components()}
    assert (components["conmon"], components["crun"]) == ("", "")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("""[ "$1 $2" = "-v features" ] && echo '{ "mountOptions": ["rro"] }'""", '{"mountOptions":["rro"]}'),
        ("echo '[1]'", ""),
        ("echo no JSON", ""),
        ("echo '{}'; exit 1", ""),
    ],
)
async def test_runtimes_tell_what_they_can_do(script: str, told: str, tmp_path: Path) -> None:
    program = tmp_path / "runtime"
    program.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/times\n{script}\n")
    program.chmod(0o755)
    known = {"mine": RuntimeConfig(str(program), ("-v",)), "gone": RuntimeConfig(str(tmp_path / "gone"))}
    system = System(Config(data_root=tmp_path), HOST, known)
    for _ in range(2):
        assert await system.features() == ({"mine": told} if told else {})
    assert (tmp_path / "times").read_text() == "asked\n", "it is asked once"


def test_a_first_process_in_a_cgroup_of_somebody_is_in_a_container() -> None:
    assert not is_contained("12:pids:/\n0::/init.scope\n")
    assert is_contained("12:pids:/docker/abc\n0::/\n")
