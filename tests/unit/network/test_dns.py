"""DNS messages, byte by byte: what clients send is understood, what we send can be read, nonsense is refused."""

import struct
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.network import dns

OPTIONS = b"\0" + struct.pack("!HHIH", dns.OPT, 4096, 0x8000, 0)


def question(name: str, kind: int = dns.A, *, identity: int = 0x1234, edns: bool = False) -> bytes:
    body = dns.encode_name(name) + struct.pack("!HH", kind, 1)
    return struct.pack("!HHHHHH", identity, 0x0100, 1, 0, 0, 1 if edns else 0) + body + (OPTIONS if edns else b"")


def counts(response: bytes) -> tuple[int, int, int, int]:
    return struct.unpack_from("!HHHH", response, 4)


def flags(response: bytes) -> int:
    return int(struct.unpack_from("!H", response, 2)[0])


def test_a_question_is_read():
    query = dns.parse(question("Web.Example", dns.AAAA))
    assert (query.identity, query.name, query.kind, query.edns, query.size) == (0x1234, "web.example", 28, False, 512)


def test_a_question_with_edns_says_how_much_it_takes():
    query = dns.parse(question("web", edns=True))
    assert (query.edns, query.size) == (True, 4096)


def test_the_root_has_an_empty_name():
    data = struct.pack("!HHHHHH", 1, 0, 1, 0, 0, 0) + b"\0" + struct.pack("!HH", 2, 1)
    assert dns.parse(data).name == ""


def test_an_answer_repeats_the_question_and_gives_every_address():
    data = question("web")
    response = dns.addresses(dns.parse(data), [IPv4Address("10.0.0.2"), IPv4Address("10.0.0.3")])
    assert response == bytes.fromhex("1234 8180 0001 0002 0000 0000") + data[12:] + (
        bytes.fromhex("c00c 0001 0001 00000258 0004 0a000002") + bytes.fromhex("c00c 0001 0001 00000258 0004 0a000003")
    )


def test_a_known_name_without_addresses_is_no_error():
    response = dns.addresses(dns.parse(question("web", dns.AAAA)), [])
    assert (dns.code(response), counts(response)) == (0, (1, 0, 0, 0))


def test_edns_is_answered_with_edns():
    response = dns.addresses(dns.parse(question("web", edns=True)), [])
    assert counts(response) == (1, 0, 0, 1)
    assert response.endswith(b"\0" + struct.pack("!HHIH", dns.OPT, 1232, 0, 0))


def test_names_of_an_address():
    response = dns.names(dns.parse(question("2.0.17.172.in-addr.arpa", dns.PTR)), ["web.one"])
    assert response.endswith(struct.pack("!HHIH", dns.PTR, 1, 600, 9) + b"\3web\3one\0")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("2.0.17.172.in-addr.arpa", "172.17.0.2"),
        ("0.17.172.in-addr.arpa", None),
        ("2.0.17.999.in-addr.arpa", None),
        ("web", None),
        ("in-addr.arpa", None),
        ("2.0.17.172.in-addr.arpa.evil", None),
    ],
)
def test_which_address_is_asked_for(name, address):
    found = dns.reversed_address(name)
    assert (str(found) if found else None) == address


def test_what_does_not_fit_is_cut_to_a_hint():
    query = dns.parse(question("web"))
    large = dns.addresses(query, [IPv4Address(n) for n in range(1, 100)])
    cut = dns.fit(query, large)
    assert len(large) > 512 >= len(cut)
    assert flags(cut) & 0x0200 and counts(cut) == (1, 0, 0, 0)
    assert dns.fit(dns.parse(question("web", edns=True)), large) == large


def test_an_answer_to_another_question_is_no_answer():
    query = dns.parse(question("web"))
    answer = dns.addresses(query, [])
    assert dns.answers(query, answer)
    assert not dns.answers(query, question("web"))
    assert not dns.answers(query, dns.addresses(dns.parse(question("web", identity=9)), []))
    assert not dns.answers(query, dns.addresses(dns.parse(question("other")), []))
    assert not dns.answers(query, b"")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 11,
        struct.pack("!HHHHHH", 1, 0, 0, 0, 0, 0),
        struct.pack("!HHHHHH", 1, 0, 2, 0, 0, 0) + question("a")[12:] * 2,
        struct.pack("!HHHHHH", 1, 0x8000, 1, 0, 0, 0) + question("a")[12:],
        struct.pack("!HHHHHH", 1, 0x2800, 1, 0, 0, 0) + question("a")[12:],
        question("web")[:-1],
        question("web")[:14],
        struct.pack("!HHHHHH", 1, 0, 1, 0, 0, 0) + b"\xc0\x0c" + struct.pack("!HH", 1, 1),
        struct.pack("!HHHHHH", 1, 0, 1, 0, 0, 0) + b"\x3f" + b"a" * 63 * 5,
        question("web")[:-2] + b"\0\3",
    ],
)
def test_what_is_no_question_is_refused(data):
    with pytest.raises(dns.MalformedQuestion):
        dns.parse(data)


def test_a_refusal_is_never_sent_to_an_answer():
    assert dns.refusal(b"short") is None
    assert dns.refusal(struct.pack("!HHHHHH", 7, 0x8180, 0, 0, 0, 0)) is None
    assert dns.refusal(struct.pack("!HHHHHH", 7, 0x0100, 9, 0, 0, 0)) == bytes.fromhex("0007 8101 00000000 00000000")


@given(st.binary(max_size=600))
def test_nothing_that_arrives_does_harm(data):
    try:
        query = dns.parse(data)
    except dns.MalformedQuestion:
        dns.refusal(data)
        return
    response = dns.addresses(query, [IPv4Address("10.0.0.2")])
    assert dns.answers(query, response)
    assert len(dns.fit(query, response)) <= query.size


@pytest.mark.parametrize("name", ["", "a..b", "x" * 64, ".".join(["y" * 60] * 5)])
def test_a_name_that_cannot_be_written_is_refused(name):
    with pytest.raises(dns.MalformedQuestion):
        dns.encode_name(name)
