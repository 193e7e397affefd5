"""A value that only the holder of a certificate can read: sealed for its key, on the curve P-256 (ECDH, AES-256-GCM).

Each envelope has a key of its own, made for it alone. The functions block for a moment: call them from a thread.
"""

import secrets

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from husk.errors import SystemFault

_PURPOSE = b"husk: what managers of a swarm share"
_POINT_BYTES, _NONCE_BYTES = 65, 12


def seal_for(certificate: bytes, value: bytes) -> bytes:
    """For the holder of a certificate, in DER, with a key on P-256."""
    theirs = x509.load_der_x509_certificate(certificate).public_key()
    assert isinstance(theirs, ec.EllipticCurvePublicKey), "the swarm's CA signs for no other"
    ours = ec.generate_private_key(ec.SECP256R1())
    point = ours.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return point + nonce + _cipher(ours, theirs, point).encrypt(nonce, value, _PURPOSE)


def open_sealed(key: bytes, sealed: bytes) -> bytes:
    """With the key of the certificate, in PEM. SystemFault for what was not sealed for it."""
    ours = load_pem_private_key(key, None)
    assert isinstance(ours, ec.EllipticCurvePrivateKey), "keys of nodes are on P-256"
    point, nonce, rest = (
        sealed[:_POINT_BYTES],
        sealed[_POINT_BYTES : _POINT_BYTES + _NONCE_BYTES],
        sealed[_POINT_BYTES + _NONCE_BYTES :],
    )
    try:
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        return _cipher(ours, theirs, point).decrypt(nonce, rest, _PURPOSE)
    except (ValueError, InvalidTag):
        raise SystemFault("the manager sent what is not sealed for this node") from None


def _cipher(own: ec.EllipticCurvePrivateKey, other: ec.EllipticCurvePublicKey, point: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, point, _PURPOSE).derive(own.exchange(ec.ECDH(), other)))
