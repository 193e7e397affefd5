import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from husk.errors import InvalidParameter
from husk.swarm.ca import authority
from husk.swarm.ca.authority import Root, Signer
from husk.swarm.ca.holders import Holder
from tests.support.certificates import Authority

NOW = 1_800_000_000.0
HOUR = 3600.0
HOLDER = Holder("n0de", "worker", "swarm1")


@pytest.fixture(scope="module")
def root() -> Root:
    return authority.new_root(NOW)


@pytest.fixture(scope="module")
def request_() -> tuple[bytes, bytes]:
    return authority.new_request()


def verify(directory: Path, root: bytes, chain: bytes) -> bool:
    """Openssl's word on it."""
    first, _, rest = chain.partition(b"-----END CERTIFICATE-----\n")
    for name, content in (("root", root), ("cert", first + b"-----END CERTIFICATE-----\n"), ("rest", rest)):
        (directory / name).write_bytes(content)
    more = ["-untrusted", str(directory / "rest")] if rest else []
    command = ["openssl", "verify", "-attime", str(int(NOW)), "-x509_strict", "-purpose", "sslserver"]
    command += ["-verify_hostname", "swarm-worker", "-CAfile", str(directory / "root"), *more, str(directory / "cert")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_root_signs_itself_for_twenty_years(root: Root) -> None:
    found = x509.load_pem_x509_certificate(root.certificate)
    found.verify_directly_issued_by(found)
    assert isinstance(found.public_key(), ec.EllipticCurvePublicKey)
    assert found.subject.rfc4514_string() == "CN=swarm-ca"
    assert found.not_valid_after_utc.timestamp() - NOW == 20 * 365 * 86400
    assert found.not_valid_before_utc.year == 2000, "whatever the clock was when it was made"
    assert authority.read_root(root.certificate, root.key, NOW) == root


def test_a_nodes_certificate(tmp_path: Path, root: Root, request_: tuple[bytes, bytes]) -> None:
    key, request = request_
    chain = authority.issue(request, HOLDER, Signer(root), HOUR, NOW)
    said = authority.look(chain)
    assert said.holder == HOLDER
    assert (said.begins, said.made, said.ends) == (NOW - 3600, NOW, NOW + HOUR)
    seen = authority.face(root.certificate)
    assert (said.issuer_subject, said.issuer_key_id) == (seen.subject, seen.key_id)
    assert authority.signed_by(chain, [root.certificate]) and authority.fits(chain, key)
    assert verify(tmp_path, root.certificate, chain)
    other = authority.new_root(NOW)
    assert not authority.signed_by(chain, [other.certificate]) and not authority.fits(chain, other.key)
    assert not verify(tmp_path, other.certificate, chain)


def test_no_certificate_is_good_for_longer_than_its_root(root: Root, request_: tuple[bytes, bytes]) -> None:
    chain = authority.issue(request_[1], HOLDER, Signer(root), 10**9, NOW)
    assert (
        authority.look(chain).ends == x509.load_pem_x509_certificate(root.certificate).not_valid_after_utc.timestamp()
    )


def test_a_request_says_nothing_but_its_key(root: Root) -> None:
    """A node that asks to be a manager of another swarm is what the CA says, and gets no name of its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    wish = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATIONAL_UNIT_NAME, "swarm-manager")])
    )
    wish = wish.add_extension(x509.SubjectAlternativeName([x509.DNSName("swarm-manager")]), critical=False)
    wish = wish.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    request = wish.sign(key, SHA256()).public_bytes(Encoding.DER)
    found = x509.load_pem_x509_certificate(authority.issue(request, HOLDER, Signer(root), HOUR, NOW))
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["swarm-worker"]
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert found.subject.rfc4514_string() == "CN=n0de,OU=swarm-worker,O=swarm1"


def test_requests_that_are_none(root: Root, request_: tuple[bytes, bytes]) -> None:
    request = request_[1]
    weak = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    for wrong in (
        b"",
        b"garbage",
        request[:-8] + bytes(8),
        bytes(20 << 10),
        weak.sign(ec.generate_private_key(ec.SECP384R1()), SHA256()).public_bytes(Encoding.DER),
    ):
        with pytest.raises(InvalidParameter, match="P-256"):
            authority.issue(wrong, HOLDER, Signer(root), HOUR, NOW)


def test_who_believes_in_either_root_believes_a_new_certificate(
    tmp_path: Path, root: Root, request_: tuple[bytes, bytes]
) -> None:
    new = authority.new_root(NOW)
    bridges = (authority.bridge(new, root),)
    chain = authority.issue(request_[1], HOLDER, Signer(new, bridges), HOUR, NOW)
    assert verify(tmp_path, root.certificate, chain)
    assert verify(tmp_path, new.certificate, chain)
    assert authority.signed_by(chain, [new.certificate]) and not authority.signed_by(chain, [root.certificate])
    assert not verify(tmp_path, root.certificate, authority.issue(request_[1], HOLDER, Signer(new), HOUR, NOW))


def openssl_root(directory: Path, *more: str, algorithm: str = "ec", days: int = 3000) -> Root:
    kind = ["-newkey", "rsa:2048"] if algorithm == "rsa" else ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    key, certificate = directory / "own.key", directory / "own.pem"
    command = ["openssl", "req", "-x509", *kind, "-nodes", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, "-subj", "/CN=own", "-days", str(days), *more], check=True, capture_output=True)
    return Root(certificate.read_bytes(), key.read_bytes())


def now_of(root: Root) -> float:
    return x509.load_pem_x509_certificate(root.certificate).not_valid_before_utc.timestamp() + 1


@pytest.mark.parametrize("algorithm", ["ec", "rsa"])
def test_a_root_of_ones_own(tmp_path: Path, request_: tuple[bytes, bytes], algorithm: str) -> None:
    own = openssl_root(tmp_path, algorithm=algorithm)
    read = authority.read_root(b"some words\n" + own.certificate, own.key, now_of(own))
    assert read == own
    chain = authority.issue(
        request_[1], HOLDER, Signer(own, (authority.bridge(authority.new_root(NOW), own),)), HOUR, NOW
    )
    assert authority.signed_by(chain, [own.certificate])


def test_roots_that_will_not_do(tmp_path: Path, root: Root) -> None:
    own = openssl_root(tmp_path)
    now = now_of(own)

    def refused(certificate: bytes, key: bytes, said: str) -> None:
        with pytest.raises(InvalidParameter, match=said):
            authority.read_root(certificate, key, now)

    refused(b"x", own.key, "no valid signing CA certificate found")
    refused(own.certificate, b"x", "key cannot be read")
    refused(own.certificate, root.key, "certificate key mismatch")
    refused(own.certificate + root.certificate, own.key, "multiple certificates")
    leaf = openssl_root(tmp_path, "-addext", "basicConstraints=CA:FALSE")
    refused(leaf.certificate, leaf.key, "not the certificate of a root CA")
    short = openssl_root(tmp_path, days=30)
    refused(short.certificate, short.key, "expires too soon")
    below = Path(Authority(tmp_path).issue("below").cert).read_bytes()
    refused(below, own.key, "not the certificate of a root CA")


def test_who_signed_is_named_by_its_key(root: Root, request_: tuple[bytes, bytes]) -> None:
    chain = authority.issue(request_[1], HOLDER, Signer(root), HOUR, NOW)
    shown = x509.load_pem_x509_certificates(chain)[0].public_bytes(Encoding.DER)
    other = authority.new_root(NOW)
    assert authority.key_ids(root.certificate) == {authority.issuer_of(shown)} == {authority.look(chain).issuer_key_id}
    assert authority.issuer_of(shown) in authority.key_ids(other.certificate + root.certificate)
    assert authority.issuer_of(shown) not in authority.key_ids(other.certificate)
    assert authority.issuer_of(b"") == authority.issuer_of(b"x") == b""
