"""Obstacles that keep a daemon from running containers are said before it begins, with what to do."""

import os
from pathlib import Path

import pytest

from husk.errors import Forbidden, SystemFault
from husk.kernel import needs

ALL = "Name:\thusk\nCapEff:\t000001ffffffffff\n"
GROUPS = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
LOCKED = "30 24 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n"


def rights_without(bit: int) -> str:
    return f"CapEff:\t{0x1FFFFFFFFFF & ~(1 << bit):016x}\n"


def test_a_host_that_has_all() -> None:
    needs.require(ALL, GROUPS)
    assert list(needs.remarks(GROUPS)) == []


@pytest.mark.parametrize(("bit", "name"), [(21, "CAP_SYS_ADMIN"), (12, "CAP_NET_ADMIN"), (18, "CAP_SYS_CHROOT")])
def test_rights_that_are_missing(bit: int, name: str) -> None:
    with pytest.raises(Forbidden, match=f"lacks the right {name}.*--privileged"):
        needs.require(rights_without(bit), GROUPS)


def test_no_control_groups() -> None:
    with pytest.raises(SystemFault, match="mount -t cgroup2 none /sys/fs/cgroup"):
        needs.require(ALL, "24 1 0:22 / / rw - ext4 /dev/sda rw\n")
    with pytest.raises(SystemFault):
        needs.require(ALL, "not a line of mountinfo\n")


def test_control_groups_that_cannot_be_changed() -> None:
    needs.require(ALL, LOCKED)
    (remark,) = needs.remarks(LOCKED)
    assert "mount -o remount,rw /sys/fs/cgroup" in remark


@pytest.mark.parametrize("part", ["", "containers", "layers"])
def test_file_systems_of_the_data_root(tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are poor for it are tried: some do, with some kernels."""
    tried: list[Path] = []

    def refused(place: Path) -> OSError:
        tried.append(place)
        return OSError(22, "Invalid argument")

    monkeypatch.setattr(needs, "overlay_fault", refused)
    (tmp_path / part).mkdir(exist_ok=True)
    device = os.stat(tmp_path).st_dev
    line = f"40 24 {os.major(device)}:{os.minor(device)} / /srv rw - {{}} x rw\n"
    needs.require_files(GROUPS + line.format("ext4"), tmp_path)
    assert tried == []
    for kind in ("overlay", "nfs4"):
        with pytest.raises(SystemFault, match=f"is on {kind}.*invalid argument.*ext4, xfs or btrfs with --data-root"):
            needs.require_files(GROUPS + line.format(kind), tmp_path)
    monkeypatch.setattr(needs, "overlay_fault", lambda _: None)
    needs.require_files(GROUPS + line.format("virtiofs"), tmp_path / "not" / "yet")


def test_what_keeps_an_overlay_away_is_told_and_nothing_left(tmp_path: Path) -> None:
    fault = needs.overlay_fault(tmp_path / "not" / "yet")
    assert fault is None or fault.errno
    assert os.listdir(tmp_path) == []
