"""The cipher of all that is sealed: AES-256-GCM, with a nonce of its own each time, which stands before the rest."""

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES, _NONCE_BYTES = 32, 12


def encrypt(key: bytes, content: bytes, bound: bytes) -> bytes:
    """Seal content, bound to a text that stands elsewhere: neither is any use with another."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, content, bound)


def decrypt(key: bytes, sealed: bytes, bound: bytes) -> bytes | None:
    """Return None where the key or the text is another one, or something was changed; ValueError for what is too
    short to be sealed."""
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound)
    except InvalidTag:
        return None


def derived(key: bytes, purpose: bytes) -> bytes:
    """Return the key for one purpose that comes of another key (HKDF)."""
    return HKDF(SHA256(), KEY_BYTES, None, purpose).derive(key)
