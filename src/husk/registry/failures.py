"""Refusals of a registry, in the words that a docker user knows.

Pure. A registry says what is wrong in three places: the status, a Bearer challenge's `error`, and a JSON body with a
list of `{code, message}`. Which wins, and the sentence that comes of it, are dockerd's, because scripts match on it.
"""

from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from husk.errors import HuskError, NotFound, SystemFault
from husk.registry.challenges import Challenge
from husk.registry.reference import Reference
from husk.text.documents import MalformedDocument, decode
from husk.text.json_faults import in_go_words
from husk.text.terminals import visible

_LONGEST_QUOTE = 512
_MESSAGES = {
    "UNAUTHORIZED": "authentication required",
    "DENIED": "requested access to the resource is denied",
    "MANIFEST_UNKNOWN": "manifest unknown",
    "NAME_UNKNOWN": "repository name not known to registry",
    "BLOB_UNKNOWN": "blob unknown to registry",
    "TOOMANYREQUESTS": "too many requests",
}
# Refusals that may be gone a moment later.
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class Refusal(msgspec.Struct, frozen=True):
    """A registry's answer that is not what was asked for; `code` is empty if it gave no reason that can be read."""

    status: int
    code: str
    message: str

    @property
    def transient(self) -> bool:
        return self.status in _TRANSIENT

    def __str__(self) -> str:
        """Return what it says, as a client may print it: a registry is a stranger."""
        return visible(f"{self.code.lower().replace('_', ' ')}: {self.message}" if self.code else self.message)


class _Problem(msgspec.Struct):
    code: str = "UNKNOWN"
    message: str = ""


class _Problems(msgspec.Struct):
    errors: list[_Problem] = []
    details: str = ""


def read_refusal(status: int, challenges: Sequence[Challenge], body: bytes) -> Refusal:
    """Read a refusal out of an answer with this status, these challenges and this body."""
    if not 400 <= status < 500:
        return Refusal(status, "", f"received unexpected HTTP status: {status} {phrase(status)}")
    for challenge in challenges:
        reason = challenge.parameters.get("error") if challenge.scheme == "bearer" else None
        if reason in ("invalid_token", "insufficient_scope"):
            code = "UNAUTHORIZED" if reason == "invalid_token" else "DENIED"
            return Refusal(status, code, challenge.parameters.get("error_description") or _MESSAGES[code])
    return _from_body(status, body)


def _from_body(status: int, body: bytes) -> Refusal:
    try:
        problems = msgspec.convert(_with_small_names(decode(body)), _Problems)
    except MalformedDocument as error:
        why = said_of(body, error)
    except msgspec.ValidationError as error:
        why = str(error)
    else:
        if problems.errors:
            first = problems.errors[0]
            code = first.code.upper()
            return Refusal(status, code, first.message or _MESSAGES.get(code, "unknown error"))
        if problems.details:
            code = {401: "UNAUTHORIZED", 403: "DENIED", 429: "TOOMANYREQUESTS"}.get(status, "UNKNOWN")
            return Refusal(status, code, problems.details)
        why = "no error details found in HTTP response body"
    if status == 401:
        return Refusal(status, "UNAUTHORIZED", _MESSAGES["UNAUTHORIZED"])
    quoted = body[:_LONGEST_QUOTE].decode(errors="replace")
    shown = msgspec.json.encode(quoted).decode()
    return Refusal(status, "", f"error parsing HTTP {status} response body: {why}: {shown}")


def said_of(body: bytes, error: MalformedDocument) -> str:
    """Say what is wrong with the JSON of an answer, in the words of a client in Go, which has all of it."""
    why = in_go_words(body, str(error)).removeprefix("invalid JSON: ")
    return "unexpected end of JSON input" if why == "unexpected EOF" else why


def _with_small_names(document: object) -> object:
    """Go's registries and clients know names of fields in any case."""
    if isinstance(document, dict):
        return {str(name).lower(): _with_small_names(value) for name, value in document.items()}
    return [_with_small_names(each) for each in document] if isinstance(document, list) else document


def manifest_error(refusal: Refusal, ref: Reference) -> HuskError:
    """The error of a pull whose manifest was refused.

    Missing rights and missing images are the same 404, as registries do not tell them apart. Everything else is a 500,
    also wrong credentials: with a 401 the docker client would ask for a password in the middle of a pull.
    """
    if refusal.code == "DENIED":
        return NotFound(
            f"pull access denied for {ref.familiar_name}, "
            f"repository does not exist or may require 'docker login': {refusal}"
        )
    if refusal.code == "MANIFEST_UNKNOWN":
        return NotFound(f"manifest for {ref.familiar} not found: {refusal}")
    if refusal.code == "NAME_UNKNOWN":
        return NotFound(f"repository {ref.familiar_name} not found: {refusal}")
    return SystemFault(str(refusal))


def blob_error(refusal: Refusal, ref: Reference) -> HuskError:
    """The error of a pull whose blob was refused."""
    if refusal.status == 404:
        return NotFound("unknown blob")
    return manifest_error(refusal, ref)


def push_error(refusal: Refusal) -> HuskError:
    """The error of a push that was refused; it is told in the stream, so its kind matters to nobody."""
    return SystemFault(str(refusal))


def phrase(status: int) -> str:
    """The reason phrase that belongs to a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
