"""Values as bytes where there is no room for them."""

import os
import resource

import msgspec

from husk.text.encoded import encoded

_WORKS, _NO_ROOM = 0, 7


def test_it_is_what_msgspec_makes():
    value = {"b": [1, "x" * 5000], "a": None}
    assert encoded(msgspec.json.Encoder(), value) == msgspec.json.encode(value)
    assert encoded(msgspec.msgpack.Encoder(), value) == msgspec.msgpack.encode(value)


def test_without_room_it_is_an_error_and_not_the_end_of_the_process():
    value = ["x" * 1000] * 100_000
    with open("/proc/self/statm") as file:
        own = int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    for room in (1 << 20, 4 << 20, 8 << 20, 16 << 20):
        assert _in_process(value, own + room) == _NO_ROOM
    assert _in_process(value, own + (1 << 30)) == _WORKS


def _in_process(value, most):
    if (pid := os.fork()) == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            encoded(msgspec.json.Encoder(), value)
            status = _WORKS
        except MemoryError:
            status = _NO_ROOM
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
