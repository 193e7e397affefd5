"""Settings that Husk takes in part: what fits is explained, the rest is refused with the reason."""

import pytest

from husk.config.remarks import judge
from husk.config.settings import Settings
from husk.errors import InvalidParameter


@pytest.mark.parametrize("name", ["overlay2", "overlayfs"])
def test_the_storage_driver_that_husk_has(name: str) -> None:
    assert judge(Settings(storage_driver=name))[0].startswith(f"storage-driver: {name} is what Husk uses")


@pytest.mark.parametrize("name", ["btrfs", "zfs", "vfs", "devicemapper", "fuse-overlayfs"])
def test_other_storage_drivers_are_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match=f"no driver '{name}'"):
        judge(Settings(storage_driver=name))


def test_quotas_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="it sets no quotas"):
        judge(Settings(storage_opts=["overlay2.size=10G"]))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("native.cgroupdriver=systemd", "Husk makes control groups itself"),
        ("isolation=hyperv", "unknown option: 'isolation'"),
        ("nonsense", "must be formatted 'opt=value'"),
    ],
)
def test_other_ways_to_run_are_refused(option: str, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        judge(Settings(exec_opts=[option]))


def test_features_are_explained_by_name() -> None:
    remarks = judge(Settings(features={"buildkit": True, "containerd-snapshotter": False, "cdi": False, "x": True}))
    assert [remark.split(":")[1].strip() for remark in remarks] == [
        "containerd-snapshotter",
        "Husk knows no feature 'x'",
    ]
    with pytest.raises(InvalidParameter, match="features: cdi: Husk injects no CDI devices yet"):
        judge(Settings(features={"cdi": True}))
