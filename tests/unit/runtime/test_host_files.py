"""Facts of the host: what of its hardware containers must not read."""

from pathlib import Path

from husk.runtime.host_files import disk, throttles


def test_the_throttling_of_each_processor_is_found_in_order(tmp_path: Path) -> None:
    for name in ("cpu10", "cpu2", "cpufreq", "cpu3"):
        (tmp_path / name).mkdir()
    for name in ("cpu10", "cpu2", "cpufreq"):
        (tmp_path / name / "thermal_throttle").mkdir()
    assert throttles(tmp_path) == [f"{tmp_path}/cpu2/thermal_throttle", f"{tmp_path}/cpu10/thermal_throttle"]


def test_the_disk_of_a_path_has_a_size_and_less_that_is_free(tmp_path: Path) -> None:
    size, free = disk(tmp_path)
    assert size >= free > 0
