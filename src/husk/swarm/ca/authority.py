"""The swarm's CA: ECDSA on P-256, certificates in PEM. It reads no clock and no file.

    root = new_root(now)
    key, request = new_request()
    chain = issue(request, Holder("<node>", "worker", "<swarm>"), Signer(root), expiry, now)

While a root is replaced the new one signs, and what it signs comes with a bridge: a certificate in which the old root
answers for the new one.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from husk.errors import InvalidParameter
from husk.swarm.ca.holders import Holder, role_of

ROOT_NAME = "swarm-ca"
ROOT_LIFE = timedelta(days=20 * 365)
# A root is believed by its digest: one that was made while the clock was ahead is good when that is mended.
ROOTS_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
# Clocks differ: a certificate is good already for those whose clock is late.
BACKDATED = timedelta(hours=1)
# A root that somebody brings must not end within this time.
_ROOT_LEFT = timedelta(days=365)
_LARGEST_REQUEST = 16 << 10
_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Root(NamedTuple):
    """A root certificate with its key, both in PEM."""

    certificate: bytes
    key: bytes


class Signer(NamedTuple):
    """The root that signs, and certificates by which those believe it who know an older one only."""

    root: Root
    bridges: tuple[bytes, ...] = ()


class Issued(NamedTuple):
    """The contents of a certificate; times in seconds since 1970."""

    holder: Holder | None
    begins: float
    ends: float
    issuer_subject: bytes
    issuer_key_id: bytes

    @property
    def made(self) -> float:
        """The moment at which the certificate was signed: it is good from before that on."""
        return self.begins + BACKDATED.total_seconds()


def new_root(now: float, common_name: str = ROOT_NAME) -> Root:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    begun = _begun(name, name, key.public_key(), own, now, ROOT_LIFE.total_seconds(), ROOTS_BEGIN)
    return Root(_pem(_authority(begun).sign(key, SHA256())), _key_pem(key))


def read_root(certificate: bytes, key: bytes, now: float) -> Root:
    """A root that somebody brings. InvalidParameter, in Docker's words where it has some, for one that will not do."""
    try:
        found = x509.load_pem_x509_certificates(certificate)
    except ValueError:
        raise InvalidParameter("no valid signing CA certificate found") from None
    if len(found) != 1:
        raise InvalidParameter("the desired CA certificate cannot contain multiple certificates")
    root = found[0]
    try:
        constraints = root.extensions.get_extension_for_class(x509.BasicConstraints).value
        if not constraints.ca or root.issuer != root.subject:
            raise InvalidParameter("the desired CA certificate is not the certificate of a root CA")
        root.verify_directly_issued_by(root)
    except (x509.ExtensionNotFound, ValueError, TypeError, InvalidSignature):
        raise InvalidParameter("the desired CA certificate is not the certificate of a root CA") from None
    if root.not_valid_after_utc < _moment(now) + _ROOT_LEFT:
        raise InvalidParameter("CA certificate expires too soon")
    if _load_key(key).public_key() != root.public_key():
        raise InvalidParameter("certificate key mismatch")
    return Root(_pem(root), key)


def bridge(new: Root, old: Root) -> bytes:
    """The new root as the old one signs it: who believes in the old one can then believe what the new one signs."""
    younger, older = (x509.load_pem_x509_certificate(root.certificate) for root in (new, old))
    key = _load_key(old.key)
    builder = (
        x509.CertificateBuilder()
        .subject_name(younger.subject)
        .issuer_name(older.subject)
        .public_key(younger.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(younger.not_valid_before_utc)
        .not_valid_after(min(younger.not_valid_after_utc, older.not_valid_after_utc))
        .add_extension(_subject_id(younger), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier(_subject_id(older).digest, None, None), critical=False)
    )
    return _pem(_authority(builder).sign(key, SHA256()))


def new_request() -> tuple[bytes, bytes]:
    """A new key, in PEM, and what a node sends to get a certificate for it. Who it is, the CA decides."""
    key = _key_pem(ec.generate_private_key(ec.SECP256R1()))
    return key, request_for(key)


def request_for(key: bytes) -> bytes:
    """Make the request, in DER, for another certificate for a key that one has, in PEM."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(_load_key(key), SHA256()).public_bytes(Encoding.DER)


def issue(request: bytes, holder: Holder, signer: Signer, expiry: float, now: float) -> bytes:
    """A certificate, good for `expiry` seconds, with those that it needs to be believed. InvalidParameter for a bad
    request, of which only the key counts."""
    root = x509.load_pem_x509_certificate(signer.root.certificate)
    names = [(NameOID.ORGANIZATION_NAME, holder.swarm), (NameOID.ORGANIZATIONAL_UNIT_NAME, holder.unit)]
    subject = x509.Name([x509.NameAttribute(o, value) for o, value in (*names, (NameOID.COMMON_NAME, holder.node))])
    ends = min(now + expiry, root.not_valid_after_utc.timestamp())
    builder = (
        _begun(subject, root.subject, _asked_key(request), _subject_id(root), now, ends - now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(holder.unit)]), critical=False)
    )
    return b"".join((_pem(builder.sign(_load_key(signer.root.key), SHA256())), *signer.bridges))


def new_serial() -> int:
    return x509.random_serial_number()


def serial_of(certificate: bytes) -> int:
    """Of the first in a chain, in PEM."""
    return x509.load_pem_x509_certificates(certificate)[0].serial_number


def revocation_list(serials: Iterable[int], key: bytes, now: float) -> bytes:
    """A list of certificates that are good for nothing, in DER. Who reads it believes the file, not the signature."""
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, ROOT_NAME)]))
        .last_update(_moment(now) - BACKDATED)
        .next_update(_moment(now) + ROOT_LIFE)
    )
    for serial in sorted(serials):
        one = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(_moment(now) - BACKDATED)
        builder = builder.add_revoked_certificate(one.build())
    return builder.sign(_load_key(key), SHA256()).public_bytes(Encoding.DER)


def revoked_in(listed: bytes) -> frozenset[int]:
    """The serial numbers in such a list."""
    return frozenset(one.serial_number for one in x509.load_der_x509_crl(listed))


def issue_for_host(
    request: bytes, name: str, host: str, root: Root, expiry: float, now: float, serial: int | None = None
) -> bytes:
    """A certificate for a program that others reach at an address or by the name of a host: both ends of TLS. Without
    a `serial` number it gets one of its own."""
    signing = x509.load_pem_x509_certificate(root.certificate)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    try:
        reached: x509.GeneralName = x509.IPAddress(ip_address(host))
    except ValueError:
        reached = x509.DNSName(host)
    ends = min(now + expiry, signing.not_valid_after_utc.timestamp())
    builder = (
        _begun(subject, signing.subject, _asked_key(request), _subject_id(signing), now, ends - now, serial=serial)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName([reached]), critical=False)
    )
    return _pem(builder.sign(_load_key(root.key), SHA256()))


def look(chain: bytes) -> Issued:
    """Read the holder, the times and the issuer of the first certificate of a chain."""
    found = x509.load_pem_x509_certificates(chain)[0]
    said = {attribute.oid: str(attribute.value) for attribute in found.subject}
    role = role_of(said.get(NameOID.ORGANIZATIONAL_UNIT_NAME, ""))
    node, swarm = said.get(NameOID.COMMON_NAME, ""), said.get(NameOID.ORGANIZATION_NAME, "")
    issuer = found.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    return Issued(
        Holder(node, role, swarm) if role and node and swarm else None,
        found.not_valid_before_utc.timestamp(),
        found.not_valid_after_utc.timestamp(),
        found.issuer.public_bytes(),
        issuer or b"",
    )


def key_ids(roots: bytes) -> frozenset[bytes]:
    """Return the ids by which certificates name the keys of these roots."""
    return frozenset(_subject_id(root).digest for root in x509.load_pem_x509_certificates(roots))


def issuer_of(certificate: bytes) -> bytes:
    """Return the id by which a certificate, in DER, names the key that signed it; empty if it names none."""
    try:
        found = x509.load_der_x509_certificate(certificate)
        return found.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier or b""
    except (ValueError, x509.ExtensionNotFound):
        return b""


class CertificateFacts(NamedTuple):
    """A root as clients are shown it, in DER; and how certificates name its key."""

    subject: bytes
    public_key: bytes
    key_id: bytes


def face(root: bytes) -> CertificateFacts:
    found = x509.load_pem_x509_certificate(root)
    key = found.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return CertificateFacts(found.subject.public_bytes(), key, _subject_id(found).digest)


def signed_by(chain: bytes, roots: Sequence[bytes]) -> bool:
    """Return True if one of these roots itself signed the first certificate of the chain."""
    found = x509.load_pem_x509_certificates(chain)[0]
    for root in roots:
        try:
            found.verify_directly_issued_by(x509.load_pem_x509_certificate(root))
            return True
        except (ValueError, TypeError, InvalidSignature):
            continue
    return False


def fits(chain: bytes, key: bytes) -> bool:
    """Return True if this is the key of the first certificate of the chain."""
    return x509.load_pem_x509_certificates(chain)[0].public_key() == _load_key(key).public_key()


def _asked_key(request: bytes) -> ec.EllipticCurvePublicKey:
    try:
        if len(request) > _LARGEST_REQUEST:
            raise ValueError
        asked = x509.load_der_x509_csr(request)
        key = asked.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != "secp256r1":
            raise ValueError
        if not asked.is_signature_valid:
            raise ValueError
    except Exception:  # whatever the library finds wrong with a stranger's bytes
        raise InvalidParameter("the request for a certificate is not one of a key on the curve P-256") from None
    return key


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_id: x509.SubjectKeyIdentifier,
    now: float,
    life: float,
    good_from: datetime | None = None,
    serial: int | None = None,
) -> x509.CertificateBuilder:
    begins = _moment(now)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(serial or x509.random_serial_number())
        .not_valid_before(good_from or begins - BACKDATED)
        .not_valid_after(begins + timedelta(seconds=life))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier(issuer_id.digest, None, None), critical=False)
    )


def _authority(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    return builder.add_extension(constraints, critical=True).add_extension(_usage(signs=True), critical=True)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _subject_id(certificate: x509.Certificate) -> x509.SubjectKeyIdentifier:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())


def _load_key(key: bytes) -> _Key:
    try:
        found = load_pem_private_key(key, None)
    except (ValueError, TypeError):
        raise InvalidParameter("the CA key cannot be read: one in PEM, without a password, is needed") from None
    if not isinstance(found, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise InvalidParameter("the CA key must be one of ECDSA or RSA")
    return found


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)
