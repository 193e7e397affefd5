"""Checks of `husk doctor`: each finds what is missing, and names the cure."""

import os
from pathlib import Path
from typing import Any

import pytest

from husk.cli import checks, packages
from husk.cli.checks import Fix
from husk.errors import HuskError
from husk.kernel import cgroups, mount, namespaces
from husk.network.drop_policies import DropPolicy
from husk.network.legacy_rules import LegacyRules
from husk.storage.state.store import Change, StateStore


def status(effective: int) -> str:
    return f"Name:\tx\nCapEff:\t{effective:016x}\n"


def test_without_root_the_doctor_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    first, *_ = checks.examine(Path("/var/lib/husk"))
    assert (first.name, first.verdict) == ("root", "bad")


def test_missing_rights_are_named() -> None:
    everything = (1 << 41) - 1
    assert [f.verdict for f in checks._rights(status(everything))] == ["ok"]
    without_resource = list(checks._rights(status(everything & ~(1 << 24))))
    assert without_resource[0].verdict == "poor" and "CAP_SYS_RESOURCE" in without_resource[0].detail
    without_admin = list(checks._rights(status(everything & ~(1 << 21))))
    assert without_admin[0].verdict == "bad" and "CAP_SYS_ADMIN" in without_admin[0].detail


def test_a_hybrid_host_with_controllers_in_v2_has_a_cure_that_can_be_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "hybrid_blocker", lambda: ("hugetlb",))
    assert Fix("controller", "hugetlb") in [finding.fix for finding in checks._cgroups()]


def test_a_tree_that_is_mounted_elsewhere_only_has_a_cure_that_can_be_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "unmounted", lambda: ("hugetlb",))
    assert Fix("controller", "hugetlb") in [finding.fix for finding in checks._cgroups()]


@pytest.mark.parametrize(
    ("installed", "verdicts"),
    [({"crun", "runc"}, ["ok"]), ({"runc"}, ["ok", "poor"]), (set(), ["bad"])],
)
def test_one_runtime_is_enough_and_crun_is_better(installed: set[str], verdicts: list[str]) -> None:
    found = checks._runtimes(lambda name: f"/usr/bin/{name}" if name in installed else None)
    assert [finding.verdict for finding in found] == verdicts


def test_missing_programs_are_packages_to_install() -> None:
    fixes = [finding.fix for finding in checks._helpers(lambda name: None)]
    assert fixes == [Fix("package", name) for name in ("conmon", "init", "procps", "busybox")]


def test_a_script_is_no_static_program(tmp_path: Path) -> None:
    script = tmp_path / "busybox"
    script.write_text("#!/bin/sh\n")
    assert not checks._is_static(script)
    script.write_bytes(b"\x7fELF")
    assert not checks._is_static(script)


def elf(*kinds: int) -> bytes:
    """A program of 64 bits with these entries in its table."""
    head = b"\x7fELF\x02\x01".ljust(32, b"\0") + (64).to_bytes(8, "little")
    head = head.ljust(54, b"\0") + (56).to_bytes(2, "little") + len(kinds).to_bytes(2, "little")
    return head.ljust(64, b"\0") + b"".join(kind.to_bytes(4, "little").ljust(56, b"\0") for kind in kinds)


def test_a_program_with_an_interpreter_needs_libraries(tmp_path: Path) -> None:
    program = tmp_path / "busybox"
    program.write_bytes(elf(1, 2))
    assert checks._is_static(program)
    program.write_bytes(elf(1, 3))
    assert not checks._is_static(program)


def test_a_busybox_that_needs_libraries_is_none(tmp_path: Path) -> None:
    program = tmp_path / "busybox"
    program.write_bytes(elf(3))
    found = {finding.name: finding for finding in checks._helpers(lambda name: str(program))}
    assert (found["conmon"].verdict, found["busybox"].verdict) == ("ok", "poor")
    assert found["busybox"].fix == Fix("package", "busybox")


def test_any_client_will_do() -> None:
    assert [finding.verdict for finding in checks._clients(lambda name: None)] == ["poor"]
    assert [finding.verdict for finding in checks._clients(lambda name: "/usr/bin/docker")] == ["ok"]


def test_records_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    assert list(checks._records(tmp_path)) == []
    state = StateStore.open(tmp_path / "state.db")
    state.close()
    assert [finding.verdict for finding in checks._records(tmp_path)] == ["ok"]
    (tmp_path / "state.db").write_bytes(b"no database" * 1000)
    [finding] = checks._records(tmp_path)
    assert finding.verdict == "bad" and "--check-store" in finding.cure


async def test_one_bad_record_costs_only_itself(tmp_path: Path) -> None:
    state = StateStore.open(tmp_path / "state.db")
    await state.commit(Change("network", "abc", b"[]"))
    state.close()
    [finding] = checks._records(tmp_path)
    assert finding.verdict == "poor" and "network abc" in finding.detail


def test_what_was_put_aside_is_told(tmp_path: Path) -> None:
    assert list(checks._lost(tmp_path)) == []
    for name in ("one", "two"):
        (tmp_path / "lost" / name).mkdir(parents=True)
    [finding] = checks._lost(tmp_path)
    assert finding.verdict == "poor" and "2 put aside" in finding.detail and finding.detail.endswith(", ...")


def test_what_the_kernel_lacks_is_named(tmp_path: Path) -> None:
    for name in ("mnt", "pid", "net", "uts", "ipc"):
        (tmp_path / name).touch()
    finding = checks._namespaces(tmp_path)
    assert finding.verdict == "bad" and finding.detail.endswith("lacks cgroup")
    (tmp_path / "cgroup").touch()
    assert checks._namespaces(tmp_path).verdict == "ok"
    assert (checks._seccomp(tmp_path / "cgroup").verdict, checks._seccomp(tmp_path / "none").verdict) == ("ok", "poor")


@pytest.mark.parametrize(
    ("hierarchies", "controllers", "verdict"),
    [([], [], "bad"), (["/sys/fs/cgroup"], ["cpu", "memory", "pids"], "ok"), (["/sys/fs/cgroup"], ["cpu"], "poor")],
)
def test_limits_need_their_controllers(
    monkeypatch: pytest.MonkeyPatch, hierarchies: list[str], controllers: list[str], verdict: str
) -> None:
    monkeypatch.setattr(cgroups, "hierarchies", lambda: hierarchies)
    monkeypatch.setattr(cgroups, "controllers", lambda: controllers)
    monkeypatch.setattr(cgroups, "detect", lambda: "v2")
    monkeypatch.setattr(cgroups, "hybrid_blocker", lambda: ())
    monkeypatch.setattr(cgroups, "unmounted", lambda: ())
    assert [finding.verdict for finding in checks._cgroups()] == [verdict]


def test_an_overlay_is_tried_where_the_data_will_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unmounted: list[str] = []
    monkeypatch.setattr(mount, "mount_overlay", lambda lower, upper, work, merged: None)
    monkeypatch.setattr(mount, "unmount", unmounted.append)
    finding = checks._overlay(tmp_path / "not" / "yet")
    assert (finding.verdict, finding.detail) == ("ok", f"works in {tmp_path}")
    assert len(unmounted) == 1 and os.listdir(tmp_path) == []

    def refuse(*_: object) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(mount, "mount_overlay", refuse)
    finding = checks._overlay(tmp_path)
    assert finding.verdict == "bad" and "cannot be mounted" in finding.detail and os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "fix", "cure"),
    [
        (OSError(95, "Operation not supported"), None, "bridge and veth"),
        (
            HuskError("libnftables.so.1 cannot be loaded"),
            Fix("package", "nftables"),
            packages.cure("nftables", packages.here()),
        ),
        (HuskError("nft: no such chain type"), None, "nf_tables"),
        (None, None, ""),
    ],
)
def test_the_network_is_tried_in_a_namespace_of_its_own(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, fix: Fix | None, cure: str
) -> None:
    def create(holder: Path, build: Any) -> None:
        if error is not None:
            raise error

    removed: list[Path] = []
    monkeypatch.setattr(namespaces, "create", create)
    monkeypatch.setattr(namespaces, "remove", removed.append)
    finding = checks._network()
    assert (finding.verdict, finding.fix) == ("bad" if error else "ok", fix)
    assert cure in finding.cure and len(removed) == (not error)


@pytest.mark.parametrize(
    ("mark", "bridge"), [(None, "husk0"), ("", "husk0"), ("husk bridge of husk", "docker0"), ("of husk-1", "husk0")]
)
def test_the_default_bridge_is_known_by_its_mark(mark: str | None, bridge: str, tmp_path: Path) -> None:
    if mark is not None:
        (tmp_path / "docker0").mkdir()
        (tmp_path / "docker0/ifalias").write_text(f"{mark}\n")
    assert checks._bridge(tmp_path) == bridge


def test_other_firewalls_are_told() -> None:
    assert not list(checks._firewalls([], [LegacyRules("iptables-legacy", False)]))
    (chain,) = checks._firewalls([DropPolicy("ip", "filter", "FORWARD")], [])
    assert chain.verdict == "poor" and "have it accept what goes over husk0" in chain.cure
    assert "chain FORWARD of the nftables table ip filter drops" in chain.detail
    (chain,) = checks._firewalls([DropPolicy("ip", "filter", "FORWARD", "ufw")], [])
    assert chain.cure.startswith("run ufw route allow in on husk0 && ufw route allow out on husk0")
    old, unseen = checks._firewalls(
        [], [LegacyRules("iptables-legacy", True, "iptables-legacy"), LegacyRules("ip6tables-legacy", None)]
    )
    assert "iptables-legacy -I FORWARD -i husk0 -j ACCEPT" in old.cure
    assert "ip6tables-legacy -S FORWARD" in unseen.cure
