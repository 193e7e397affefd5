"""Credentials are read from whatever clients send, and never shown."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import Forbidden, InvalidParameter, SystemFault, Unauthorized
from husk.registry.auth import Credentials, parse_auth_header, token_refused
from husk.registry.failures import Refusal


def encode(document: object, alphabet: bytes = b"-_", padded: bool = True) -> str:
    text = base64.b64encode(json.dumps(document, ensure_ascii=False).encode(), alphabet).decode()
    return text if padded else text.rstrip("=")


@given(st.text(min_size=1), st.text(), st.sampled_from([b"-_", b"+/"]), st.booleans())
def test_either_base64_alphabet_with_or_without_padding(name: str, password: str, alphabet: bytes, pad: bool) -> None:
    document = {"username": name, "password": password, "serveraddress": "reg:5000"}
    try:
        header = encode(document, alphabet, pad)
    except UnicodeEncodeError:
        return  # lone surrogates
    assert parse_auth_header(header) == Credentials(name, password, server_address="reg:5000")


def test_field_names_in_any_case_and_nulls() -> None:
    header = encode({"Username": "u", "Password": "p", "IdentityToken": None, "email": "e", "ServerAddress": "s"})
    assert parse_auth_header(header) == Credentials("u", "p", server_address="s")


def test_tokens_are_credentials_too() -> None:
    assert parse_auth_header(encode({"identitytoken": "i"})) == Credentials(identity_token="i")
    assert parse_auth_header(encode({"registrytoken": "r"})) == Credentials(registry_token="r")


def test_name_and_password_may_come_joined() -> None:
    joined = base64.b64encode(b"u:p:q").decode()
    assert parse_auth_header(encode({"auth": joined})) == Credentials("u", "p:q")


@pytest.mark.parametrize("header", ["", "  ", encode({}), encode(None), encode({"username": "", "password": ""})])
def test_a_header_that_names_nobody_is_nobody(header: str) -> None:
    assert parse_auth_header(header) is None


@pytest.mark.parametrize(
    "header",
    ["!!!", "é", "A", encode([1]), encode("x"), encode({"username": 1}), base64.b64encode(b"{").decode(),
     base64.b64encode(b"\xff\xfe").decode(), encode({"auth": "!!"})],
)  # fmt: skip
def test_a_malformed_header_is_refused(header: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid X-Registry-Auth header"):
        parse_auth_header(header)


def test_secrets_do_not_show_in_logs() -> None:
    shown = repr(Credentials("u", "secret-p", "secret-i", "secret-r", "s"))
    assert "secret" not in shown and "u" in shown


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [(401, "UNAUTHORIZED", Unauthorized), (403, "DENIED", Forbidden), (403, "UNAUTHORIZED", Unauthorized)]
    + [(status, code, SystemFault) for status, code in ((401, "UNKNOWN"), (403, ""), (400, ""), (429, "X"), (500, ""))],
)
def test_a_token_that_is_not_given_is_the_error_that_dockerd_makes_of_it(status, code, kind):
    error = token_refused("http://r/v2/", Refusal(status, code, "no"))
    assert isinstance(error, kind) and error.message.startswith('Get "http://r/v2/": ')
