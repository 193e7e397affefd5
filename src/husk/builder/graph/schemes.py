"""The identifiers of sources: what they begin with, by the kind of the source, and what of them others are told."""

from husk.builder.graph.operations import Source
from husk.text.urls import split_url

IMAGE = "docker-image"
LOCAL = "local"
GIVEN = "stack"
PROOF = "stack.proof"  # an attribute of these (`given`), which is no part of what the source is
# Attributes that say whose a source is.
OF_SESSION = ("local.session", "local.unique", "oci.session", PROOF)
GIT = "git"
LAYOUT = "oci-layout"
WEB = ("http", "https")


def shown(source: Source) -> Source:
    """Return the source as others may see it: neither whose it is, nor passwords."""
    attributes = {name: redacted(value) for name, value in source.attributes.items() if name not in OF_SESSION}
    return Source(redacted(source.identifier), attributes)


def redacted(address: str) -> str:
    """An address without the password that may be in it."""
    try:
        parts = split_url(address)
    except ValueError:
        return address
    who, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"xxxxx:xxxxx@{host}").geturl() if at and ":" in who else address
