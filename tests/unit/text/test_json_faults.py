"""Text that is no JSON is refused as Go refuses it: clients and tests of others match its words."""

import random

import msgspec
import pytest

from husk.errors import InvalidParameter
from husk.text.gojson import parse_document
from husk.text.json_faults import in_go_words

EOF = "unexpected EOF"
KEY, VALUE = "looking for beginning of object key string", "looking for beginning of value"
PAIR, ELEMENT, NUMBER = "after object key:value pair", "after array element", "in numeric literal"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"{", EOF),
        (b'{"a":', EOF),
        (b'{"a":"b', EOF),
        (b"[1,2", EOF),
        (b"nul", EOF),
        (b"x", f"invalid character 'x' {VALUE}"),
        (b'{"a":[1,]}', f"invalid character ']' {VALUE}"),
        (b"\xef\xbb\xbf{}", f"invalid character 'ï' {VALUE}"),
        (b'{"a":\x01}', f"invalid character '\\x01' {VALUE}"),
        (b'{"a":1,}', f"invalid character '}}' {KEY}"),
        (b"{'a':1}", f"invalid character '\\'' {KEY}"),
        (b"{a:1}", f"invalid character 'a' {KEY}"),
        (b"{,}", f"invalid character ',' {KEY}"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b":2}', f"invalid character '\"' {PAIR}"),
        (b"[1 2]", f"invalid character '2' {ELEMENT}"),
        (b'{"a":01}', f"invalid character '1' {PAIR}"),
        (b"[-01]", f"invalid character '1' {ELEMENT}"),
        (b'{"a":-}', f"invalid character '}}' {NUMBER}"),
        (b'{"a":1e}', f"invalid character '}}' {NUMBER}"),
        (b'{"a":1.}', f"invalid character '}}' {NUMBER}"),
        (b'{"a":tru}', "invalid character '}' in literal true (expecting 'e')"),
        (b"[fxlse]", "invalid character 'x' in literal false (expecting 'a')"),
        (b'{"a":"\n"}', "invalid character '\\n' in string literal"),
        (b'{"a":"\\q"}', "invalid character 'q' in string escape code"),
        (b'{"a":"\\u12"}', "invalid character '\"' in \\u hexadecimal character escape"),
        (b'{"a":"\xff"}', "it is not UTF-8"),
    ],
)
def test_faults_are_told_in_go_s_words(body: bytes, fault: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse_document(body)
    assert caught.value.message == f"invalid JSON: {fault}"


@pytest.mark.parametrize("body", [b"{} x", b'{"a":1}{}', b"{}]"])
def test_what_follows_a_document_is_told(body: bytes) -> None:
    with pytest.raises(InvalidParameter, match=r"^unexpected content after JSON$"):
        parse_document(body)


def test_whatever_is_wrong_has_words() -> None:
    chance = random.Random(1)
    pieces = [
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"a"',
        b'"',
        b"\\",
        b"tru",
        b"nul",
        b"1",
        b"-",
        b".",
        b"e",
        b"\0",
        b" ",
    ]
    for _ in range(20_000):
        body = b"".join(chance.choices(pieces, k=chance.randrange(1, 9)))
        try:
            msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            told = in_go_words(body, str(error))
            assert told.startswith(("invalid JSON: ", "unexpected content")), body
            assert "malformed" not in told, (body, told)
