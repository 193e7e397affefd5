"""Join tokens: `SWMTKN-1-<digest of the root certificate>-<secret>`, both numbers in base 36 of a fixed length. Pure.

The digest lets a new node know the swarm that it was told to join; the secret lets the swarm know the node.
"""

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

from husk.errors import InvalidParameter
from husk.text.patterns import pattern

# Docker's words.
WRONG_TOKEN = "rpc error: code = InvalidArgument desc = A valid join token is necessary to join this cluster"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_DIGEST_BYTES, _DIGEST_DIGITS = 32, 50
_SECRET_BYTES, _SECRET_DIGITS = 16, 25
_FORM = pattern(rf"SWMTKN-1-([0-9a-z]{{{_DIGEST_DIGITS}}})-([0-9a-z]{{{_SECRET_DIGITS}}})", re.ASCII)


class JoinToken(NamedTuple):
    digest: bytes
    secret: str

    def __str__(self) -> str:
        return f"SWMTKN-1-{_base36(self.digest, _DIGEST_DIGITS)}-{self.secret}"

    def fits(self, root: bytes) -> bool:
        """Return True if this is the root certificate that the token is for."""
        return hmac.compare_digest(self.digest, root_digest(root))


def new_token(root: bytes) -> str:
    """A token with a new secret for the swarm with this root certificate, in PEM as nodes are given it."""
    return str(JoinToken(root_digest(root), _base36(secrets.token_bytes(_SECRET_BYTES), _SECRET_DIGITS)))


def read_token(text: str) -> JoinToken:
    """InvalidParameter for what is none, in Docker's words."""
    found = _FORM.fullmatch(text)
    number = int(found[1], 36) if found else 0
    if found is None or number >= 1 << (8 * _DIGEST_BYTES):
        raise InvalidParameter("invalid join token")
    return JoinToken(number.to_bytes(_DIGEST_BYTES, "big"), found[2])


def same(one: str, other: str) -> bool:
    """Takes as long for any two tokens, so that nobody finds out how much of one is right."""
    return hmac.compare_digest(one.encode(), other.encode())


def root_digest(root: bytes) -> bytes:
    return hashlib.sha256(root).digest()


def _base36(value: bytes, length: int) -> str:
    number, digits = int.from_bytes(value, "big"), []
    for _ in range(length):
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
