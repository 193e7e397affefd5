"""Certificates of a test: an authority, and what it signs for servers and clients.

authority = Authority(directory)
server = authority.issue("server", addresses=["127.0.0.1"])
client = authority.issue("client")
"""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = datetime.timedelta(days=1)
# What an authority may do with its key.
_SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class Pair(NamedTuple):
    """A directory with `ca.pem`, `cert.pem` and `key.pem`, as docker's clients want it."""

    directory: Path

    @property
    def ca(self) -> str:
        return str(self.directory / "ca.pem")

    @property
    def cert(self) -> str:
        return str(self.directory / "cert.pem")

    @property
    def key(self) -> str:
        return str(self.directory / "key.pem")

    @property
    def flags(self) -> tuple[str, ...]:
        """For the daemon, and for the docker command."""
        return ("--tlscacert", self.ca, "--tlscert", self.cert, "--tlskey", self.key)


class Authority:
    """A certificate authority; each one signs for itself. One that is not `complete` leaves out the extensions that
    RFC 5280 wants and most programs do without."""

    def __init__(self, directory: Path, name: str = "ca", *, complete: bool = True) -> None:
        self._directory = directory
        self._complete = complete
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = self._begun(self._name, self._key.public_key(), expired=False)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        if complete:
            own = own.add_extension(_SIGNS, critical=True)
        self._certificate = own.sign(self._key, hashes.SHA256())

    def issue(self, name: str, addresses: Sequence[str] = (), expired: bool = False, both: bool = False) -> Pair:
        """A server's certificate when there are addresses or names, else a client's; `both`: it calls too."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH if addresses else ExtendedKeyUsageOID.CLIENT_AUTH]
        usages += [ExtendedKeyUsageOID.CLIENT_AUTH] if both and addresses else []
        builder = self._begun(subject, key.public_key(), expired)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if addresses:
            names = [_general(address) for address in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        directory = self._directory / name
        directory.mkdir(parents=True)
        pem = serialization.Encoding.PEM
        form, bare = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        (directory / "ca.pem").write_bytes(self._certificate.public_bytes(pem))
        (directory / "cert.pem").write_bytes(certificate.public_bytes(pem))
        (directory / "key.pem").write_bytes(key.private_bytes(pem, form, bare))
        return Pair(directory)

    def _begun(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, expired: bool) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        begun = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * _DAY)
            .not_valid_after(now - _DAY if expired else now + _DAY)
        )
        if not self._complete:
            return begun
        begun = begun.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return begun.add_extension(signer, critical=False)


def _general(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)
