"""Names of images and platforms: what they are made of. Pure."""

import json

from husk.errors import InvalidParameter

# Where the files of docker's credentials have those of its own registry.
DOCKER_HUB = "https://index.docker.io/v1/"
# When an image is pulled before a container is made of it.
MISSING, ALWAYS, NEVER = "missing", "always", "never"


def split_tag(name: str) -> tuple[str, str]:
    """(repository, tag) of a name; a port of the registry is no tag."""
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "")


def with_tag(name: str) -> str:
    """The name with the tag that it means when it says none."""
    return name if "@" in name or split_tag(name)[1] else f"{name}:latest"


def registry_of(name: str) -> str:
    """The host that a name's image is at; the address by which credentials know it where that is Docker's own."""
    first, slash, _ = name.partition("/")
    is_host = slash and ("." in first or ":" in first or first == "localhost")
    return host_of(first) if is_host else DOCKER_HUB


def host_of(address: str) -> str:
    """An address as credentials know it: without scheme and path, one name for Docker's own registry."""
    host = address.removeprefix("https://").removeprefix("http://").partition("/")[0]
    return DOCKER_HUB if host in ("docker.io", "index.docker.io", "registry-1.docker.io", "") else host


def platform_document(platform: str) -> str | None:
    """A platform like `linux/arm64` or `linux/arm/v7` as newer parts of the API want it; None where none is given."""
    if not platform:
        return None
    parts = platform.split("/")
    if not 2 <= len(parts) <= 3 or not all(parts):
        raise InvalidParameter(f"invalid platform {platform!r}: expected for example linux/arm64")
    return json.dumps(dict(zip(("os", "architecture", "variant"), parts, strict=False)), separators=(",", ":"))
