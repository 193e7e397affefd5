"""The records of pax headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.storage.tar.entry import TarError
from husk.storage.tar.pax import parse_pax


@pytest.mark.parametrize(
    "data", [b"x", b"5 a=b", b"999 a=b\n", b"6 ab\n\n", b"-6 a=b\n", b"3 =\n", b"0 a=b\n", b"6 a=bc"]
)
def test_malformed_pax_records_are_refused(data: bytes):
    with pytest.raises(TarError):
        parse_pax(data)


@given(st.dictionaries(st.binary(min_size=1).filter(lambda key: b"=" not in key and key[:1] != b"G"), st.binary()))
def test_pax_records_come_out_as_they_went_in(records: dict[bytes, bytes]):
    data = b""
    for key, value in records.items():
        rest = b" " + key + b"=" + value + b"\n"
        length = len(rest)
        while len(str(length)) + len(rest) != length:
            length = len(str(length)) + len(rest)
        data += str(length).encode() + rest
    assert parse_pax(data) == records
