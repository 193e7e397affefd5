"""Option strings and the mount table, without mounting anything."""

import errno
import os
from pathlib import Path

import pytest

from husk.kernel.mount import (
    MOST_LOWER,
    Mounted,
    fitted_options,
    mounted,
    mounts_below,
    overlay_options,
    parse_mountinfo,
    parse_mounts_below,
    parse_overlaid,
    parse_shared_of,
)

TABLE = rb"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:25 / /data rw - tmpfs tmpfs rw
31 30 0:26 / /data/a\040b rw - tmpfs tmpfs rw
32 31 0:27 / /data/a\040b/deep/er rw - tmpfs tmpfs rw
33 22 0:28 / /database rw - tmpfs tmpfs rw
34 30 0:29 / /data rw - tmpfs tmpfs rw
"""


def test_mounts_are_listed_deepest_first_and_stacked_ones_twice():
    assert parse_mounts_below(TABLE, "/data") == ["/data/a b/deep/er", "/data/a b", "/data", "/data"]


def test_a_directory_that_only_begins_with_the_same_letters_is_not_below():
    assert "/database" not in parse_mounts_below(TABLE, "/data/")


def test_everything_is_below_the_root():
    assert len(parse_mounts_below(TABLE, "/")) == 6


def test_nothing_is_mounted_below_an_ordinary_directory():
    assert parse_mounts_below(TABLE, "/data/a b/deep") == ["/data/a b/deep/er"]
    assert parse_mounts_below(TABLE, "/nowhere") == []


def test_mounts_behind_a_link_are_named_as_they_were_asked_for(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    assert f"{tmp_path}/link/proc" in mounts_below(f"{tmp_path}/link/proc")
    assert not mounts_below(f"{tmp_path}/link"), "the link itself is none"
    assert "/proc" in mounts_below("/")


def test_separators_in_directory_names_are_escaped_in_overlay_options():
    options = overlay_options(["/a:b", "/c,d"], "/u,p:q", "/w\\x")
    assert options.startswith(r"lowerdir=/a\:b:/c\,d,upperdir=/u\,p:q,workdir=/w\\x,")


ROOT = "/var/lib/husk"
LAYERS = [f"{ROOT}/layers/l/{number:x}" for number in range(MOST_LOWER)]


@pytest.mark.parametrize("above", [[], [f"{ROOT}/step-mount-points", "/run/husk/steps/abcdef/points"]])
@pytest.mark.parametrize("count", [1, 80, 320, 340, 480, 498])
def test_an_overlay_names_all_of_its_directories_however_many(count: int, above: list[str]) -> None:
    directory = f"{ROOT}/containers/{'c' * 64}"
    lower = [*above, *LAYERS[:count]]
    base, data = fitted_options(lower, f"{directory}/diff", f"{directory}/work", ",volatile")
    assert len(data) < 4096, "the kernel cuts off the rest of a page without a word"
    named = data.removeprefix("lowerdir=").partition(",")[0].split(":")
    assert [os.path.normpath(os.path.join(base, name)) for name in named] == lower


@pytest.mark.parametrize(
    ("lower", "upper"), [([*LAYERS, "/one/more"], "/u"), (LAYERS, "/" + "long/" * 700), (["/" + "x" * 5000], "/u")]
)
def test_what_does_not_go_into_one_mount_is_not_mounted_in_part(lower: list[str], upper: str) -> None:
    with pytest.raises(OSError, match="max depth exceeded") as caught:
        fitted_options(lower, upper, "/w")
    assert caught.value.errno == errno.E2BIG


OVERLAYS = rb"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:30 / /r1 rw - overlay overlay rw,lowerdir=/data/l/2:/data/l/1,upperdir=/data/u,workdir=/data/w,index=off
41 22 0:31 / /r2 rw shared:3 - overlay none rw,lowerdir=layers/l/3,upperdir=/data/u:v
42 22 0:32 / /r3 rw - overlay overlay rw,lowerdir=/a\134:b:/c\134,d:/e\040f,upperdir=/lowerdir=/no
43 22 0:33 / /r4 rw - overlay overlay rw,lowerdir+=/g\072h,lowerdir+=/i
"""


def test_the_directories_that_overlay_mounts_stand_on_are_told_as_they_were_named():
    named = {"/data/l/2", "/data/l/1", "layers/l/3", "/a:b", "/c,d", "/e f", "/g:h", "/i"}
    assert parse_overlaid(OVERLAYS) == named


SHARED = b"""\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw
22 21 0:5 / /run rw - tmpfs tmpfs rw
23 22 0:6 / /run/a\\040b rw master:3 shared:9 - tmpfs tmpfs rw
24 22 0:7 / /run/over rw shared:4 - tmpfs tmpfs rw
25 24 0:8 / /run/over rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "place", "tags"),
    [
        ("/", "/", {"shared"}),
        ("/runner", "/", {"shared"}),
        ("/run/x", "/run", set()),
        ("/run/a b/c", "/run/a b", {"master", "shared"}),
        ("/run/over/x", "/run/over", set()),
    ],
)
def test_how_the_mount_of_a_path_propagates(path: str, place: str, tags: set[str]) -> None:
    assert parse_shared_of(SHARED, path) == (place, frozenset(tags))


def test_an_overlay_without_a_writable_directory() -> None:
    assert overlay_options(["/a", "/b"], "", "").startswith("lowerdir=/a:/b,index=off")


MOUNTINFO_TABLE = rb"""22 27 0:21 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
41 22 254:0 /a\040dir /proc/with\040space ro,relatime shared:1 master:2 - ext4 /dev/vda rw
"""


def test_a_line_is_read() -> None:
    proc, other = parse_mountinfo(MOUNTINFO_TABLE)
    options = frozenset({"rw", "nosuid", "nodev", "noexec", "relatime"})
    assert proc == Mounted("/proc", "proc", "0:21", "/", options)
    assert other == Mounted("/proc/with space", "ext4", "254:0", "/a dir", frozenset({"ro", "relatime"}))


def test_what_is_somewhere_else_is_left_out() -> None:
    lines = b"51 22 0:3 / /processes rw - tmpfs tmpfs rw\n52 22 0:4 / /srv rw - tmpfs /proc rw\n"
    assert parse_mountinfo(MOUNTINFO_TABLE + lines, "/proc") == parse_mountinfo(MOUNTINFO_TABLE)


def test_this_process_has_a_proc() -> None:
    assert any(entry.point == "/proc" and entry.kind == "proc" for entry in mounted())
