import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from husk.errors import SystemFault
from husk.swarm.ca import authority
from husk.swarm.ca.authority import Signer
from husk.swarm.ca.envelope import open_sealed, seal_for
from husk.swarm.ca.holders import Holder

NOW = 1_800_000_000.0


def certified() -> tuple[bytes, bytes]:
    """A key, and its certificate in DER."""
    key, request = authority.new_request()
    chain = authority.issue(request, Holder("n", "manager", "s"), Signer(authority.new_root(NOW)), 3600.0, NOW)
    return key, x509.load_pem_x509_certificate(chain).public_bytes(Encoding.DER)


def test_only_the_holder_of_the_certificate_reads_it() -> None:
    key, certificate = certified()
    sealed = seal_for(certificate, b"the key of all")
    assert open_sealed(key, sealed) == b"the key of all" and b"the key" not in sealed
    assert seal_for(certificate, b"the key of all") != sealed
    for wrong in (certified()[0],):
        with pytest.raises(SystemFault, match="not sealed for this node"):
            open_sealed(wrong, sealed)
    for broken in (b"", sealed[:-1], b"\0" * len(sealed), sealed[:80] + bytes([sealed[80] ^ 1]) + sealed[81:]):
        with pytest.raises(SystemFault):
            open_sealed(key, broken)
