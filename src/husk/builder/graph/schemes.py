"""The identifiers of sources: what they begin with, by the kind of the source, and what of them others are told."""

from husk.builder.graph.operations import Source
from husk.errors import InvalidParameter
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
# Letters of an identifier, which is looked at whenever its build asks something; signed addresses have some thousands,
# what is here already has as many names as layers.
LONGEST, _LONGEST_GIVEN = 16_384, 65_536


def check_length(source: Source) -> None:
    """InvalidParameter for a source with an identifier that is too long."""
    most = _LONGEST_GIVEN if source.identifier.startswith(f"{GIVEN}://") else LONGEST
    if len(source.identifier) > most:
        raise InvalidParameter(f"the identifier of a source has {most} letters at most")


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
