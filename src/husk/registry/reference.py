"""References, which are what image names mean: a registry, a repository, and a tag or digest.

Pure. The grammar and the normal forms are Docker's: `busybox` is `docker.io/library/busybox:latest`, a first component
with a dot, a colon or an upper case letter (or `localhost`) is a registry, everything else lives on Docker Hub.
"""

import hashlib
import ipaddress
from typing import Self

import msgspec
from msgspec.structs import replace

from husk.errors import InvalidParameter
from husk.text.patterns import pattern

DOCKER_HUB = "docker.io"
DEFAULT_TAG = "latest"

_LEGACY_HUB = "index.docker.io"
_OFFICIAL = "library/"
_LONGEST_NAME = 255
# Of a reference with its tag and digest; a longer one is not even looked at.
_LONGEST = 1024

_DOMAIN = pattern(
    r"(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
    r"(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*"
    r"|\[[a-fA-F0-9:]+\])"
    r"(?::[0-9]+)?"
)
_PATH = pattern(r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)*")
_TAG = pattern(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = pattern(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_SHA256 = pattern(r"sha256:[0-9a-f]{64}")
_IMAGE_ID = pattern(r"[0-9a-f]{64}")


class Reference(msgspec.Struct, frozen=True):
    """A normalised image name; `tag` and `digest` are empty where the name has none."""

    domain: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """The full repository name: `docker.io/library/busybox`."""
        return f"{self.domain}/{self.path}"

    @property
    def familiar_name(self) -> str:
        """The repository name as people write it: `busybox`."""
        if self.domain != DOCKER_HUB:
            return self.name
        short = self.path.removeprefix(_OFFICIAL)
        return self.path if "/" in short else short

    @property
    def familiar(self) -> str:
        """The whole reference as people write it: `busybox:latest`, `busybox@sha256:...`."""
        return self.familiar_name + self._suffix

    @property
    def _suffix(self) -> str:
        return (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")

    def __str__(self) -> str:
        return self.name + self._suffix

    def with_tag(self, tag: str) -> Self:
        """The same repository under this tag, without a digest."""
        return replace(self, tag=validate_tag(tag), digest="")

    def with_digest(self, digest: str) -> Self:
        """The same repository at this digest, without a tag."""
        return replace(self, tag="", digest=validate_digest(digest))

    def with_tag_or_digest(self, text: str) -> Self:
        """Return the reference with what the `tag` parameter of a pull holds: a tag, or a digest as well."""
        return self.with_digest(text) if _SHA256.fullmatch(text) else self.with_tag(text)

    def tagged(self) -> Self:
        """The reference itself if it names a tag or digest, else its `latest`."""
        return self if self.tag or self.digest else self.with_tag(DEFAULT_TAG)


def parse(text: str) -> Reference:
    """The reference that `text` means; `InvalidParameter` in Docker's words if it means none."""
    if len(text) > _LONGEST:
        raise InvalidParameter(f"repository name must not be more than {_LONGEST_NAME} characters")
    if _IMAGE_ID.fullmatch(text):
        raise InvalidParameter(f"invalid repository name ({text}), cannot specify 64-byte hexadecimal strings")
    domain, remainder = _split_domain(text)
    repository = remainder.partition(":")[0]
    if repository.lower() != repository:
        raise InvalidParameter(f"invalid reference format: repository name ({repository}) must be lowercase")
    rest, at, digest = remainder.partition("@")
    path, colon, tag = rest.partition(":")
    well_formed = (
        _is_domain(domain)
        and _PATH.fullmatch(path)
        and (not colon or _TAG.fullmatch(tag))
        and (not at or _DIGEST.fullmatch(digest))
    )
    if not well_formed:
        raise InvalidParameter("invalid reference format")
    if len(path) > _LONGEST_NAME:
        raise InvalidParameter(f"repository name must not be more than {_LONGEST_NAME} characters")
    return Reference(domain, path, tag, validate_digest(digest) if at else "")


def _split_domain(text: str) -> tuple[str, str]:
    first, slash, rest = text.partition("/")
    if slash and first == _LEGACY_HUB:
        domain, remainder = DOCKER_HUB, rest
    elif slash and (first == "localhost" or "." in first or ":" in first or first.lower() != first):
        domain, remainder = first, rest
    else:
        domain, remainder = DOCKER_HUB, text
    if domain == DOCKER_HUB and "/" not in remainder:
        remainder = _OFFICIAL + remainder
    return domain, remainder


def _is_domain(text: str) -> bool:
    if not _DOMAIN.fullmatch(text):
        return False
    if text.startswith("["):
        try:
            ipaddress.IPv6Address(text[1:].partition("]")[0])
        except ValueError:
            return False
    return True


def validate_domain(text: str) -> str:
    """`text` if it can be a registry's address (`host` or `host:port`)."""
    if not _is_domain(text):
        raise InvalidParameter(f"invalid registry address {text!r}: expected host or host:port")
    return text


def validate_tag(text: str) -> str:
    """`text` if it can be a tag."""
    if not _TAG.fullmatch(text):
        raise InvalidParameter("invalid tag format")
    return text


def validate_digest(text: str) -> str:
    """`text` if it is a digest that Husk can verify and use as a path: `sha256:` and 64 lower case hex digits."""
    if _SHA256.fullmatch(text):
        return text
    algorithm, colon, value = text.partition(":")
    if not colon or not value:
        raise InvalidParameter("invalid checksum digest format")
    if algorithm != "sha256":
        raise InvalidParameter(f"unsupported digest algorithm: {algorithm} (only sha256 is)")
    if len(value) != 64:
        raise InvalidParameter("invalid checksum digest length")
    raise InvalidParameter("invalid checksum digest format")


def digest_of(data: bytes) -> str:
    """The digest by which `data` is known."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
