"""Option strings and the mount table, without mounting anything."""

import pytest

from husk.kernel.mount import overlay_options, parse_mounts_below, parse_overlaid, parse_shared_of

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


def test_separators_in_directory_names_are_escaped_in_overlay_options():
    options = overlay_options(["/a:b", "/c,d"], "/u,p:q", "/w\\x")
    assert options.startswith(r"lowerdir=/a\:b:/c\,d,upperdir=/u\,p:q,workdir=/w\\x,")


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
