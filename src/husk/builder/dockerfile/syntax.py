"""The frontend that reads a file: our own, or one that is an image (`# syntax=`, BUILDKIT_SYNTAX). Pure."""

import re
from collections.abc import Mapping

from msgspec import Struct

from husk.builder.dockerfile import directives
from husk.errors import HuskError
from husk.registry import reference as references

ARGUMENT = "BUILDKIT_SYNTAX"
OWN = ("docker.io/docker/dockerfile", "docker.io/docker/dockerfile-upstream")
# The release of Docker's frontend that ours does the same as.
KNOWN = (1, 20)
_VERSION = re.compile(r"(\d+)(?:\.(\d+))?(?:\.\d+)?(?:-.*)?")


class Syntax(Struct, frozen=True):
    """A frontend that is an image."""

    image: str
    command: str  # all that stands behind `syntax=`
    line: int = 0  # of the file, 0 if the client has said it


def asked_for(text: str, build_args: Mapping[str, str]) -> Syntax | None:
    """Return the frontend that the client wants, else the one that the file asks for; None if neither names one."""
    if command := build_args.get(ARGUMENT, "").strip():
        return Syntax(command.split()[0], command)
    found = directives.syntax_of(text)
    if found is None or not found.value.split():
        return None
    return Syntax(found.value.split()[0], found.value, found.line)


def is_own(image: str) -> bool:
    """Return True if it is Docker's frontend for Dockerfiles: ours does what that one does."""
    try:
        return references.parse(image).name in OWN
    except HuskError:
        return False


def notice(image: str) -> str:
    """A warning about a version that ours may not know all of; empty if there is none."""
    tag = references.parse(image).tag or ""
    found = _VERSION.fullmatch(tag)
    if found is None or (int(found[1]), int(found[2] or 0)) <= KNOWN:
        return ""
    known = ".".join(map(str, KNOWN))
    return f"{image} is newer than the frontend that is built in, which knows {known}: what is new is not understood"
