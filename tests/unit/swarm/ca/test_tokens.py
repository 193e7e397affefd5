import hashlib

import pytest

from husk.errors import InvalidParameter
from husk.swarm.ca.tokens import JoinToken, new_token, read_token, root_digest, same


def test_a_token_has_dockers_form_and_names_the_root() -> None:
    text = new_token(b"root")
    prefix, version, digest, secret = text.split("-")
    assert (prefix, version, len(digest), len(secret)) == ("SWMTKN", "1", 50, 25)
    token = read_token(text)
    assert str(token) == text
    assert token.digest == hashlib.sha256(b"root").digest() == root_digest(b"root")
    assert token.fits(b"root") and not token.fits(b"other")
    assert new_token(b"root") != text and read_token(new_token(b"root")).digest == token.digest


def test_a_token_that_dockerd_made() -> None:
    text = "SWMTKN-1-3pu6hszjas19xyp7ghgosyx9k8atbfcr8p2is99znpy26u2lkl-1awxwuwd3z9j1z3puu7rcgdbx"
    assert str(read_token(text)) == text


def test_small_numbers_keep_their_length() -> None:
    assert str(JoinToken(bytes(32), "0" * 25)) == f"SWMTKN-1-{'0' * 50}-{'0' * 25}"
    assert read_token(str(JoinToken(bytes(31) + b"\1", "0" * 25))).digest[-1] == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "SWMTKN-2-" + "0" * 50 + "-" + "0" * 25,
        "SWMTKN-1-" + "0" * 49 + "-" + "0" * 25,
        "SWMTKN-1-" + "z" * 50 + "-" + "0" * 25,
        "SWMTKN-1-" + "0" * 50 + "-" + "0" * 26,
        "SWMTKN-1-" + "A" * 50 + "-" + "0" * 25,
        "SWMTKN-1-" + "0" * 50 + "-" + "0" * 25 + "\n",
    ],
)
def test_what_is_no_token(text: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid join token"):
        read_token(text)


def test_tokens_are_compared() -> None:
    assert same("a", "a") and not same("a", "b") and not same("a", "é")
