"""A registry's refusals become the sentences that dockerd says."""

import json

import pytest

from husk.errors import NotFound, SystemFault
from husk.registry.challenges import Challenge
from husk.registry.failures import blob_error, manifest_error, read_refusal
from husk.registry.reference import parse

REF = parse("localhost:5000/team/app:1")


def body(code: str, message: str = "") -> bytes:
    return json.dumps({"errors": [{"code": code, "message": message, "detail": {"x": 1}}]}).encode()


@pytest.mark.parametrize(
    ("status", "text", "kind", "message"),
    [
        (
            404,
            body("MANIFEST_UNKNOWN", "manifest unknown"),
            NotFound,
            "manifest for localhost:5000/team/app:1 not found: manifest unknown: manifest unknown",
        ),
        (
            404,
            body("NAME_UNKNOWN"),
            NotFound,
            "repository localhost:5000/team/app not found: name unknown: repository name not known to registry",
        ),
        (
            403,
            body("DENIED", "requested access to the resource is denied"),
            NotFound,
            "pull access denied for localhost:5000/team/app, repository does not exist or may require 'docker login': "
            "denied: requested access to the resource is denied",
        ),
        (
            401,
            body("UNAUTHORIZED", "authentication required"),
            SystemFault,
            "unauthorized: authentication required",
        ),
        (401, b"", SystemFault, "unauthorized: authentication required"),
        (401, b'{"details": "no"}', SystemFault, "unauthorized: no"),
        (
            403,
            b'{"Errors": [{"CODE": "denied", "Message": "no"}]}',
            NotFound,
            "pull access denied for localhost:5000/team/app, repository does not exist or may require 'docker login': "
            "denied: no",
        ),
        (
            404,
            body("manifest_unknown", "gone"),
            NotFound,
            "manifest for localhost:5000/team/app:1 not found: manifest unknown: gone",
        ),
        (429, body("TOOMANYREQUESTS", "slow down"), SystemFault, "toomanyrequests: slow down"),
        (404, b'{"details": "x"}', SystemFault, "unknown: x"),
        (
            403,
            b'{"details": "too small a plan"}',
            NotFound,
            "pull access denied for localhost:5000/team/app, repository does not exist or may require 'docker login': "
            "denied: too small a plan",
        ),
        (
            403,
            b"plain\ntext",
            SystemFault,
            "error parsing HTTP 403 response body: invalid character 'p' looking for beginning of value: "
            '"plain\\ntext"',
        ),
        (418, b'{"errors": [{"message": "teapot"}]}', SystemFault, "unknown: teapot"),
        (
            404,
            b'{"errors":[]}',
            SystemFault,
            'error parsing HTTP 404 response body: no error details found in HTTP response body: "{\\"errors\\":[]}"',
        ),
        (500, body("DENIED"), SystemFault, "received unexpected HTTP status: 500 Internal Server Error"),
        (599, b"", SystemFault, "received unexpected HTTP status: 599 "),
    ],
)
def test_a_refused_manifest(status: int, text: bytes, kind: type[Exception], message: str) -> None:
    error = manifest_error(read_refusal(status, [], text), REF)
    assert type(error) is kind
    assert error.message == message


def test_a_body_that_is_not_json_is_quoted_but_not_at_length() -> None:
    refusal = read_refusal(403, [], b"<html>" + b"x" * 100_000 + b"\xff")
    assert str(refusal).startswith("error parsing HTTP 403 response body: ")
    assert '"<html>xxx' in str(refusal) and len(str(refusal)) < 1000
    assert str(read_refusal(403, [], b"")) == 'error parsing HTTP 403 response body: unexpected end of JSON input: ""'


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"error": "insufficient_scope"}, "denied: requested access to the resource is denied"),
        ({"error": "invalid_token"}, "unauthorized: authentication required"),
        ({"error": "invalid_token", "error_description": "expired"}, "unauthorized: expired"),
        ({"error": "something_else"}, "manifest unknown: manifest unknown"),
    ],
)
def test_what_a_bearer_challenge_says_comes_before_the_body(parameters: dict[str, str], expected: str) -> None:
    refusal = read_refusal(401, [Challenge("bearer", parameters)], body("MANIFEST_UNKNOWN"))
    assert str(refusal) == expected


def test_a_missing_blob_is_an_unknown_blob_and_a_denied_one_is_denied() -> None:
    assert blob_error(read_refusal(404, [], b""), REF).message == "unknown blob"
    assert "pull access denied" in blob_error(read_refusal(403, [], body("DENIED")), REF).message


def test_only_stumbles_are_worth_another_try() -> None:
    assert [status for status in (400, 401, 403, 404, 408, 416, 429, 500, 501, 502, 503, 504)
            if read_refusal(status, [], b"").transient] == [408, 429, 500, 502, 503, 504]  # fmt: skip


@pytest.mark.parametrize("status", [403, 404])
def test_a_terminal_obeys_nothing_that_a_registry_says(status: int) -> None:
    hostile = "\x1b]0;title\x07\x9b2J"
    told = str(read_refusal(status, [], body("DENIED" + hostile, hostile)))
    told += str(read_refusal(status, [], hostile.encode()))
    assert told.isprintable() and "title" in told
