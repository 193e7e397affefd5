"""Option strings and the mount table, without mounting anything."""

from husk.kernel.mount import overlay_options, parse_mounts_below

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
