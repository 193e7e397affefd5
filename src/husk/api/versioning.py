"""Which version of the API does the client speak? Reads the path's prefix and refuses what is not served."""

from typing import NamedTuple

from husk.errors import InvalidParameter


class Version(NamedTuple):
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


MINIMUM = Version(1, 24)
CURRENT = Version(1, 55)

_SERVED = {str(v): v for v in (Version(1, minor) for minor in range(MINIMUM.minor, CURRENT.minor + 1))}


def split_version(path: str) -> tuple[Version, str]:
    """`/v1.41/info` -> (1.41, `/info`); a path without a prefix means the newest version."""
    if path[:2] != "/v":
        return CURRENT, path
    text, slash, rest = path[2:].partition("/")
    version = _SERVED.get(text)
    if version is None:
        if not text or text.strip("0123456789."):
            return CURRENT, path  # /version, /volumes: a word, not a version
        version = _check(text)
    return version, slash + rest


def _check(text: str) -> Version:
    """What dockerd makes of a spelling that is not exactly a served version, such as `1.40.1`."""
    parts = [int(part[:9] or 0) for part in text.split(".")]
    parts += [0] * (2 - len(parts))
    while len(parts) > 2 and not parts[-1]:
        parts.pop()
    if tuple(parts) > CURRENT:
        raise InvalidParameter(f"client version {text} is too new. Maximum supported API version is {CURRENT}")
    if tuple(parts) < MINIMUM:
        raise InvalidParameter(
            f"client version {text} is too old. Minimum supported API version is {MINIMUM}, "
            "please upgrade your client to a newer version"
        )
    return Version(parts[0], parts[1])
