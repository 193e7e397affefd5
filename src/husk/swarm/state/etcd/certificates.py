"""The certificates by which etcd and its clients know each other."""

import ssl
from pathlib import Path
from typing import NamedTuple

from husk.errors import InvalidParameter


class CertificateFiles(NamedTuple):
    """Files in PEM: whom we believe, who we are, and the key to that."""

    ca: Path
    cert: Path
    key: Path


def tls_context(certificates: CertificateFiles) -> ssl.SSLContext:
    """InvalidParameter for files that cannot be used. Blocks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    try:
        context.load_verify_locations(certificates.ca)
    except (OSError, ssl.SSLError) as error:
        raise InvalidParameter(f"the CA certificate {certificates.ca} cannot be used: {error}") from None
    try:
        context.load_cert_chain(certificates.cert, certificates.key)
    except (OSError, ssl.SSLError) as error:
        told = f"the certificate {certificates.cert} with the key {certificates.key} cannot be used: {error}"
        raise InvalidParameter(told) from None
    return context
