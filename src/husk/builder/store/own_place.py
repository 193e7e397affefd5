"""A context that holds the very directory it is written to: it would be sent again and again while it is written.

A client that builds from a directory with our data root in it sends that too, and what it has just sent with it. We
see no more of the client than the paths it tells of. So the directory `/srv/app/data/layers/l/7`, written to, is known
by a path that has the end of it twice, as `data/layers/l/7/data/layers/l/7`: then one copy of itself is in it.
"""

HOLDS_ITSELF = (
    "the context holds the engine's own data root, which would be sent again and again while it is written: "
    "name it in .dockerignore, or build from another directory"
)
# A single name may stand twice in anybody's context.
_FEWEST_NAMES = 2


def doubled(directory: str) -> frozenset[bytes]:
    """Relative paths of directories, any of which tells that what is written to `directory` holds it."""
    names = directory.strip("/").split("/")
    ends = ("/".join(names[start:]) for start in range(len(names) - _FEWEST_NAMES + 1))
    return frozenset(f"{end}/{end}".encode("utf-8", "surrogateescape") for end in ends)
