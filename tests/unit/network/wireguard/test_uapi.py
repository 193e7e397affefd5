"""Messages to wireguard-go, and its answers."""

import msgspec
import pytest

from husk.errors import InvalidParameter, SystemFault
from husk.network.wireguard.parties import DeviceChange, DeviceState, Party
from husk.network.wireguard.uapi import failure, parse, request

ONE, TWO, OWN = b"1" * 32, b"2" * 32, b"0" * 32
FOUR = Party(ONE, "fe80::1", "192.0.2.1", 51820)
SIX = Party(TWO, "fe80::2", "2001:db8::2", 51821)


def test_a_change_is_one_request():
    told = request(DeviceChange(OWN, 51820, (FOUR, SIX), (b"3" * 32,))).decode()
    assert told.startswith("set=1\nprivate_key=3030") and told.endswith("\n\n")
    lines = told.splitlines()
    assert lines.index("remove=true") < lines.index(f"public_key={ONE.hex()}"), "an address belongs to one party"
    assert {"endpoint=192.0.2.1:51820", "endpoint=[2001:db8::2]:51821", "allowed_ip=fe80::2/128"} <= set(lines)
    assert lines.count("replace_allowed_ips=true") == 2


def test_what_it_was_told_is_what_it_tells():
    told = f"""private_key={OWN.hex()}
listen_port=51820
public_key={ONE.hex()}
preshared_key={bytes(32).hex()}
endpoint=192.0.2.1:51820
allowed_ip=fe80::1/128
public_key={TWO.hex()}
endpoint=[2001:db8::2]:51821
tx_bytes=4
allowed_ip=fe80::2/128
errno=0

"""
    assert parse(told.encode()) == DeviceState(OWN, 51820, {ONE: FOUR, TWO: SIX})
    assert parse(b"listen_port=7\nerrno=0\n\n") == DeviceState(port=7)


@pytest.mark.parametrize("field", ["address", "inner"])
def test_an_address_brings_no_lines_of_its_own(field: str) -> None:
    forged = msgspec.structs.replace(SIX, **{field: "fe80::1%lo]:1\nremove=true\nendpoint=[fe80::2"})
    with pytest.raises(InvalidParameter, match="no address of a host"):
        request(DeviceChange(parties=(forged,)))


def test_a_host_that_was_heard_over_a_link_is_read_without_the_link():
    told = f"public_key={ONE.hex()}\nendpoint=[fe80::7%eth0]:9\nallowed_ip=fe80::1/128\nerrno=0\n\n"
    assert parse(told.encode()).parties == {ONE: Party(ONE, "fe80::1", "fe80::7", 9)}


def test_who_has_more_addresses_than_one_is_not_as_we_told():
    lines = [f"public_key={ONE.hex()}", "endpoint=192.0.2.1:51820", "allowed_ip=fe80::1/128", "allowed_ip=::/0"]
    assert parse("\n".join(lines).encode()).parties[ONE] != FOUR
    assert parse(lines[0].encode()).parties[ONE] == Party(ONE, "", "", 0)


@pytest.mark.parametrize(("answer", "number"), [(b"errno=0\n\n", 0), (b"errno=-98\n\n", 98), (b"errno=98\n\n", 98)])
def test_errors_are_numbers(answer, number):
    assert failure(answer) == number


def test_no_answer_is_an_error():
    with pytest.raises(SystemFault):
        failure(b"\n\n")
