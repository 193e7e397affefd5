"""The unlock key, which opens a swarm with autolock, as Docker writes it: SWMKEY-1-<base64>. Pure."""

import base64
import secrets

from husk.errors import InvalidParameter
from husk.storage.secrets.locks import UNLOCK_KEY_BYTES

KEY_PREFIX = "SWMKEY-1-"


def write_key(key: bytes) -> str:
    return KEY_PREFIX + base64.b64encode(key).decode().rstrip("=")


def read_key(text: str) -> bytes:
    """Docker's form of an unlock key: SWMKEY-1-<base64>."""
    encoded = text.strip().removeprefix(KEY_PREFIX)
    try:
        if not text.strip().startswith(KEY_PREFIX) or not encoded:
            raise ValueError
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        raise InvalidParameter("invalid key string") from None


def new_key() -> bytes:
    return secrets.token_bytes(UNLOCK_KEY_BYTES)
