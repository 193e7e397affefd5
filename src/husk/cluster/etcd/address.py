"""The address of etcd (`etcd://10.0.0.1,10.0.0.2:2379`), and the certificates by which both sides know each other."""

import ssl
from pathlib import Path
from typing import NamedTuple

from husk.cluster.endpoints import Endpoint as Endpoint
from husk.cluster.endpoints import read_endpoint
from husk.errors import InvalidParameter

PORT = 2379
_FORM = "etcd://HOST[:PORT][,HOST[:PORT]…]"


class Certificates(NamedTuple):
    """Files in PEM: whom we believe, who we are, and the key to that."""

    ca: Path
    cert: Path
    key: Path


def read_address(address: str) -> tuple[Endpoint, ...]:
    """The members that an address names."""
    rest = address.removeprefix("etcd://")
    if rest == address:
        raise InvalidParameter(f"the cluster store {address!r} is not of the form {_FORM}")
    found = tuple(_endpoint(part.strip(), address) for part in rest.rstrip("/").split(","))
    if len(set(found)) < len(found):
        raise InvalidParameter(f"the cluster store {address!r} names one member twice")
    return found


def _endpoint(part: str, address: str) -> Endpoint:
    try:
        return read_endpoint(part, PORT)
    except InvalidParameter as error:
        raise InvalidParameter(f"the cluster store {address!r} is not of the form {_FORM}: {error}") from None


def tls_context(certificates: Certificates) -> ssl.SSLContext:
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
