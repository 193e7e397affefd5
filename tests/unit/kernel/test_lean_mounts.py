"""Mounts of the host that a runtime is not to see when it makes a container."""

import os
from pathlib import Path

import pytest

from husk.kernel import lean_mounts
from husk.kernel.lean_mounts import Bring, Copies, superfluous

TABLE = b"""\
22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
24 22 0:22 / /sys rw - sysfs sysfs rw
25 24 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
26 22 0:24 / /var rw - ext4 /dev/vdb rw
27 26 0:25 / /var/lib/husk rw - ext4 /dev/vdc rw
28 27 0:26 / /var/lib/husk/containers/c1/rootfs rw - overlay overlay rw
29 22 0:27 / /run rw - tmpfs tmpfs rw
30 29 0:4 net:[1] /run/husk/netns/n1 rw - nsfs nsfs rw
31 22 0:28 / /mnt/usb\\040stick rw - vfat /dev/sda1 rw
32 31 0:29 / /mnt/usb\\040stick/inner rw - tmpfs tmpfs rw
33 22 0:30 / /usr/local rw - ext4 /dev/vdd rw
34 22 0:31 / /usrlocal rw - ext4 /dev/vde rw
"""


def test_what_containers_have_mounted_and_disks_of_others_go_the_deepest_first() -> None:
    gone = list(superfluous(TABLE, ["/var/lib/husk", "/run/husk", "/usr/bin/conmon"]))
    assert gone == [
        "/var/lib/husk/containers/c1/rootfs",
        "/run/husk/netns/n1",
        "/mnt/usb stick/inner",
        "/mnt/usb stick",
        "/usrlocal",
    ]


def test_the_way_to_what_is_needed_stays() -> None:
    assert "/var" not in list(superfluous(TABLE, ["/var/lib/husk"]))
    assert "/mnt/usb stick" not in list(superfluous(TABLE, ["/mnt/usb stick/husk"]))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Descriptors in place of copies of mounts, which take a capability to make."""
    made: list[int] = []

    def copies(sources: list[str]) -> list[int]:
        found = [os.open(source, os.O_RDONLY) for source in sources]
        made.extend(found)
        return found

    monkeypatch.setattr(lean_mounts, "_copies", copies)
    return made


def is_open(descriptor: int) -> bool:
    return os.path.exists(f"/proc/self/fd/{descriptor}")


def test_copies_are_there_until_they_are_closed(opened: list[int], tmp_path: Path) -> None:
    copies = Copies([Bring(str(tmp_path), "/a")])
    copies.make()
    assert copies.made and copies.trees() == opened and is_open(opened[0])
    copies.close()
    copies.close()
    assert not is_open(opened[0])


def test_copies_that_are_made_when_nobody_wants_them_any_more_are_let_go(opened: list[int], tmp_path: Path) -> None:
    copies = Copies([Bring(str(tmp_path), "/a")])
    copies.close()
    copies.make()
    assert copies.trees() == [] and not is_open(opened[0])


def test_who_uses_copies_hears_that_they_cannot_be_made(opened: list[int], tmp_path: Path) -> None:
    copies = Copies([Bring(str(tmp_path / "nowhere"), "/a")])
    copies.make()
    with pytest.raises(FileNotFoundError):
        copies.trees()
