"""The options of local volumes: those of mount(8), taken apart for mount(2)."""

import pytest

from husk.errors import InvalidParameter, SystemFault
from husk.kernel.mount import MS_BIND, MS_NOEXEC, MS_PRIVATE, MS_RDONLY, MS_REC
from husk.storage.volumes.options import address_of, check_options, mount_call, resolve, with_address
from husk.storage.volumes.store import MountCall


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": "y"}, 'invalid option: "x"'),
        ({"type": "tmpfs"}, 'missing required option: "device"'),
        ({"device": "tmpfs"}, 'missing required option: "type"'),
        ({"o": "bind"}, 'missing required option: "device"'),
        ({"o": "bind", "device": "/x"}, 'missing required option: "type"'),
        ({"size": "1m"}, "quota size requested but no quota support"),
        ({"type": "none", "device": "/a\0b"}, "a volume option contains a NUL character"),
    ],
)
def test_options_that_mean_nothing(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        check_options(options)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("options", "call"),
    [
        (None, None),
        ({}, None),
        ({"type": "tmpfs", "device": "tmpfs"}, MountCall("tmpfs", "tmpfs")),
        ({"type": "none", "device": "/a", "o": "bind"}, MountCall("/a", "none", MS_BIND)),
        ({"type": "none", "device": "/a", "o": "rbind,ro"}, MountCall("/a", "none", MS_BIND | MS_REC | MS_RDONLY)),
        ({"type": "none", "device": "/a", "o": "ro,rw,,bind"}, MountCall("/a", "none", MS_BIND)),
        (
            {"type": "tmpfs", "device": "t", "o": "size=1m,noexec,uid=7,defaults,rprivate"},
            MountCall("t", "tmpfs", MS_NOEXEC, "size=1m,uid=7", MS_PRIVATE | MS_REC),
        ),
        (
            {"type": "nfs", "device": ":/x", "o": "addr=host,rw,nfsvers=4"},
            MountCall(":/x", "nfs", 0, "addr=host,nfsvers=4"),
        ),
    ],
)
def test_what_mount_is_told(options: dict[str, str] | None, call: MountCall | None) -> None:
    if options:
        check_options(options)
    assert mount_call(options) == call


def test_the_kernel_gets_addresses_not_names() -> None:
    call = MountCall(":/x", "nfs", 0, "soft,addr=host.example,timeo=5")
    assert address_of(call) == "host.example"
    assert with_address(call, "10.1.2.3").data == "soft,addr=10.1.2.3,timeo=5"
    assert address_of(MountCall("/a", "none", MS_BIND, "addr=x")) == ""
    assert address_of(MountCall(":/x", "nfs")) == ""


@pytest.mark.parametrize("host", ["a" + "\u0300\u0316" * 10_000, "a..b", "\u0661" * 64 + ".example"])
def test_a_name_that_no_host_can_have_is_not_looked_up(host: str) -> None:
    with pytest.raises(SystemFault, match="no such host"):
        resolve(host)
