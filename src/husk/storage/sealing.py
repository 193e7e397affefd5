"""How are values kept that nobody may read from the disk? Sealed with a key of this data root: AES-256-GCM.

The key lies in a file of its own, readable by root alone, so that the state file can be copied, shown and backed up
without giving the values away. Each value is bound to its context: one cannot be put in another's place.
"""

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from husk.errors import SystemFault

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_KEY_BYTES = 32
_NONCE_BYTES = 12


class Sealer:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = b""

    def seal(self, value: bytes, context: str) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher().encrypt(nonce, value, context.encode())

    def unseal(self, sealed: bytes, context: str) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context.encode())
        except InvalidTag:
            raise SystemFault(f"{context} cannot be unsealed: {self._path} is not the key it was sealed with") from None

    def _cipher(self) -> "AESGCM":
        # Importing it costs some 20 ms and 5 MiB, which daemons without secrets need not pay.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._load())

    def _load(self) -> bytes:
        if not self._key:
            try:
                self._key = self._path.read_bytes()
            except FileNotFoundError:
                self._key = _make_key(self._path)
            if len(self._key) != _KEY_BYTES:
                raise SystemFault(f"{self._path} is not a key of {_KEY_BYTES} bytes")
        return self._key


def _make_key(path: Path) -> bytes:
    key = secrets.token_bytes(_KEY_BYTES)
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, key)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    fresh.rename(path)
    return key
