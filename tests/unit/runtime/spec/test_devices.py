from pathlib import Path

import pytest

from husk.errors import InvalidParameter
from husk.runtime.spec.devices import from_host, host_devices
from husk.runtime.spec.document import DeviceRule


def test_a_device_keeps_its_numbers_under_another_name() -> None:
    (device,), rules = from_host("/dev/null", "/dev/nothing", "rw")
    assert (device.path, device.type, device.major, device.minor) == ("/dev/nothing", "c", 1, 3)
    assert rules == [DeviceRule(True, "c", 1, 3, "rw")]


@pytest.mark.parametrize(
    ("path", "reason"), [("/nonexistent", "no such file or directory"), ("/etc/passwd", "not a device node")]
)
def test_what_is_no_device_is_refused(path: str, reason: str) -> None:
    with pytest.raises(InvalidParameter, match=f'custom device "{path}": {reason}'):
        from_host(path)


def test_permissions_are_checked() -> None:
    with pytest.raises(InvalidParameter, match="invalid device mode: rx"):
        from_host("/dev/null", "", "rx")


def test_the_hosts_devices_are_found_without_those_that_the_runtime_makes(tmp_path: Path) -> None:
    paths = {device.path for device in host_devices()}
    assert "/dev/null" in paths
    assert not any(path.startswith(("/dev/pts/", "/dev/shm/")) for path in paths)
    assert host_devices(tmp_path) == ()
