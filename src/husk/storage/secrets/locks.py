"""Lock files, for a key that only another key gives back: the key, wrapped once for each key that opens it.

Unlock keys are 32 random bytes, so what wraps is derived from them without stretching. The newest one is kept in the
file too, sealed with the wrapped key: whoever has opened the lock may ask for it. Pure.
"""

import msgspec

from husk.errors import SystemFault
from husk.storage import secrets
from husk.text.documents import MalformedDocument, decode

UNLOCK_KEY_BYTES = 32
_PURPOSE = b"husk: unlock the keys of a swarm"


class _Lock(msgspec.Struct):
    wrapped: list[bytes]
    newest: bytes


def make(key: bytes, unlock_keys: list[bytes]) -> bytes:
    """A lock file that each of the unlock keys opens; the first is the newest."""
    return msgspec.json.encode(
        _Lock([_encrypt(_derived(unlock_key), key) for unlock_key in unlock_keys], _encrypt(key, unlock_keys[0]))
    )


def open_with(content: bytes, unlock_key: bytes) -> bytes | None:
    """Return the key that a lock file wraps; None when `unlock_key` is not one of its keys."""
    deriving = _derived(unlock_key)
    return next((key for wrapped in _read(content).wrapped if (key := _decrypt(deriving, wrapped)) is not None), None)


def newest_key(content: bytes, key: bytes) -> bytes:
    found = _decrypt(key, _read(content).newest)
    if found is None:
        raise SystemFault("the lock file of the swarm does not belong to its key")
    return found


def has_others(content: bytes) -> bool:
    """Tell if another key than the newest opens the lock file."""
    return len(_read(content).wrapped) > 1


def _read(content: bytes) -> _Lock:
    try:
        return decode(content, _Lock)
    except MalformedDocument as error:
        raise SystemFault(f"the lock file of the swarm is damaged: {error}") from error


def _derived(unlock_key: bytes) -> bytes:
    return secrets.ciphers.derived(unlock_key, _PURPOSE)


def _encrypt(key: bytes, value: bytes) -> bytes:
    return secrets.ciphers.encrypt(key, value, _PURPOSE)


def _decrypt(key: bytes, sealed: bytes) -> bytes | None:
    return secrets.ciphers.decrypt(key, sealed, _PURPOSE)
