import pytest

from husk.cli.containers.keys import KeyWatch, sequence
from husk.errors import InvalidParameter


def test_sequences():
    assert sequence("ctrl-p,ctrl-q") == b"\x10\x11"
    assert sequence("a,ctrl-@,ctrl-_,DEL,ctrl-A") == b"a\x00\x1f\x7f\x01"
    for wrong in ("", "ctrl-", "ctrl-1", "word", "a,,b"):
        with pytest.raises(InvalidParameter, match="invalid detach keys"):
            sequence(wrong)


def test_what_is_typed_passes_but_for_the_keys():
    watch = KeyWatch(b"\x10\x11")
    assert watch.feed(b"ab\x10") == b"ab"
    assert watch.feed(b"c") == b"\x10c"
    assert watch.feed(b"\x10\x10") == b"\x10"
    assert watch.feed(b"\x11rest") == b"" and watch.detached


def test_keys_that_begin_alike():
    watch = KeyWatch(b"aab")
    assert watch.feed(b"aaa") == b"a"
    assert watch.feed(b"b") == b"" and watch.detached


def test_without_keys_all_passes():
    assert KeyWatch(b"").feed(b"\x10\x11") == b"\x10\x11"
