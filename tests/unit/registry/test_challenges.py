"""WWW-Authenticate headers are read whole, however they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.registry.challenges import Challenge, parse_challenges


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], []),
        ([""], []),
        (["Basic"], [Challenge("basic", {})]),
        (['Basic realm="x"'], [Challenge("basic", {"realm": "x"})]),
        (['BEARER Realm = "https://a/t?x=1,2" , service=reg'],
         [Challenge("bearer", {"realm": "https://a/t?x=1,2", "service": "reg"})]),
        (['Bearer realm="r",scope="repository:a/b:pull,push"'],
         [Challenge("bearer", {"realm": "r", "scope": "repository:a/b:pull,push"})]),
        (['Bearer realm="r", Basic realm="b"'],
         [Challenge("bearer", {"realm": "r"}), Challenge("basic", {"realm": "b"})]),
        (["Negotiate", 'Basic realm="b"'], [Challenge("negotiate", {}), Challenge("basic", {"realm": "b"})]),
        ([r'Basic realm="say \"hi\""'], [Challenge("basic", {"realm": 'say "hi"'})]),
        (['Basic realm="never closed'], [Challenge("basic", {"realm": ""})]),
    ],
)  # fmt: skip
def test_challenges_are_found(headers: list[str], expected: list[Challenge]) -> None:
    found = parse_challenges(headers)
    assert [one.scheme for one in found][: len(expected)] == [one.scheme for one in expected]
    assert [dict(one.parameters) for one in found][: len(expected)] == [dict(one.parameters) for one in expected]


@given(st.text(alphabet='Bearer realm="x,\\ =;é\x00', max_size=200))
def test_no_header_breaks_or_stalls_the_parser(header: str) -> None:
    parse_challenges([header])


TOKEN = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,8}", fullmatch=True)


@given(
    TOKEN, st.dictionaries(TOKEN.map(str.lower), st.text(alphabet='ab:/,= "\\', max_size=10), min_size=1, max_size=4)
)
def test_what_is_quoted_properly_is_read_exactly(scheme: str, parameters: dict[str, str]) -> None:
    def quote(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    header = scheme + " " + ",".join(f"{name}={quote(value)}" for name, value in parameters.items())
    assert parse_challenges([header]) == [Challenge(scheme.lower(), parameters)]


def test_a_word_that_means_nothing_is_skipped_whole():
    header = 'Bearer realm="a"' + "0" * 100_000 + '"' + ', Basic realm="b"'
    assert [challenge.scheme for challenge in parse_challenges([header])][-1] == "basic"


def test_of_many_headers_the_first_are_read():
    found = parse_challenges(["a " * 4000] * 128)
    assert len(found) <= 3 * 4000
