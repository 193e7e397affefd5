"""The name that a client gives to a new image: a repository and a tag. Pure."""

from husk.errors import InvalidParameter
from husk.registry import reference as references
from husk.registry.reference import Reference


def parse_target(repo: str, tag: str) -> Reference | None:
    """The name that the client wants, if any."""
    if not repo:
        return None
    reference = references.parse(repo)
    if reference.digest:
        raise InvalidParameter("cannot import digest reference")
    refuse_ambiguous(reference)
    if tag:
        reference = reference.with_tag(tag)
    return reference.tagged()


def refuse_ambiguous(reference: Reference) -> None:
    """Of a repository `sha256` nobody could tell a tag from an image's id."""
    if reference.familiar_name == "sha256":
        raise InvalidParameter("refusing to create an ambiguous tag using digest algorithm as name")
