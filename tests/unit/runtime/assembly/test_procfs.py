"""Entries that may be on /proc, by name and by where they came to be."""

import pytest

from husk.errors import InvalidParameter
from husk.kernel.mount import Mounted
from husk.runtime.assembly.procfs import INFORMING, check_mounts, check_name, unsafe

SAFE = frozenset({"ro", "nosuid", "nodev", "noexec", "relatime"})
PROC = Mounted("/proc", "proc", "0:50", "/", SAFE)
MASKED = ["/proc/kcore", "/proc/acpi"]
READONLY = ["/proc/sys", "/proc/bus"]


def at(
    point: str, kind: str = "ext4", device: str = "254:0", root: str = "/x", options: frozenset[str] = SAFE
) -> Mounted:
    return Mounted(point, kind, device, root, options)


@pytest.mark.parametrize("kind", ["bind", "volume", "tmpfs", "image"])
@pytest.mark.parametrize("place", ["/proc/sys", "/proc/1/attr", "/proc/self", "/proc/sys/kernel/core_pattern"])
def test_a_place_inside_is_refused(kind: str, place: str) -> None:
    with pytest.raises(InvalidParameter, match="inside /proc"):
        check_name(kind, place)


@pytest.mark.parametrize("kind", ["volume", "tmpfs", "image"])
def test_nothing_but_a_bind_may_be_on_proc_itself(kind: str) -> None:
    with pytest.raises(InvalidParameter, match="not of type proc"):
        check_name(kind, "/proc")
    check_name("bind", "/proc")


@pytest.mark.parametrize("place", [*sorted(INFORMING), "/process", "/data/proc/sys", "/sys"])
def test_what_informs_and_what_is_elsewhere_is_taken(place: str) -> None:
    check_name("bind", place)


def test_what_the_runtime_mounts_is_in_order() -> None:
    table = [PROC, at("/"), at("/proc/sys", "proc"), at("/proc/kcore", "devtmpfs"), at("/proc/uptime"), at("/data")]
    check_mounts(table, MASKED, READONLY, list)


@pytest.mark.parametrize(
    "entry",
    [
        at("/proc"),
        at("/proc", "proc", root="/1/root"),
        at("/proc/1/attr"),
        at("/proc/sys", "proc"),  # beside the runtime's own
        at("/proc/kcore"),
    ],
)
def test_what_came_there_by_a_link_is_refused(entry: Mounted) -> None:
    table = [PROC, at("/proc/sys", "proc"), at("/proc/kcore", "devtmpfs"), entry]
    with pytest.raises(InvalidParameter, match="cannot be mounted"):
        check_mounts(table, MASKED, READONLY, list)


def test_what_the_host_has_on_its_proc_comes_along() -> None:
    binfmt = at("/proc/sys/fs/binfmt_misc", "binfmt_misc", "0:40", "/")
    check_mounts([PROC, binfmt], [], [], lambda: [binfmt])
    with pytest.raises(InvalidParameter):
        check_mounts([PROC, binfmt], [], [], list)


def test_read_only_places_without_the_flags_are_found() -> None:
    bare = frozenset({"ro", "relatime"})
    table = [PROC, at("/proc/sys", "proc", options=bare), at("/proc/bus", "proc"), at("/proc/uptime", options=bare)]
    assert unsafe(table, READONLY) == ["/proc/sys"]
