"""Lines of mountinfo: places with spaces, optional fields, what is mounted."""

from husk.kernel.mountinfo import Mounted, mounted, parse

TABLE = rb"""22 27 0:21 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
41 22 254:0 /a\040dir /proc/with\040space ro,relatime shared:1 master:2 - ext4 /dev/vda rw
"""


def test_a_line_is_read() -> None:
    proc, other = parse(TABLE)
    options = frozenset({"rw", "nosuid", "nodev", "noexec", "relatime"})
    assert proc == Mounted("/proc", "proc", "0:21", "/", options)
    assert other == Mounted("/proc/with space", "ext4", "254:0", "/a dir", frozenset({"ro", "relatime"}))


def test_what_is_somewhere_else_is_left_out() -> None:
    lines = b"51 22 0:3 / /processes rw - tmpfs tmpfs rw\n52 22 0:4 / /srv rw - tmpfs /proc rw\n"
    assert parse(TABLE + lines, "/proc") == parse(TABLE)


def test_this_process_has_a_proc() -> None:
    assert any(entry.point == "/proc" and entry.kind == "proc" for entry in mounted())
