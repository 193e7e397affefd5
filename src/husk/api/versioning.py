"""The version of the API that a client speaks, read from the path's prefix; a version that is not served is refused."""

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


def minimum_version(text: str) -> Version:
    """The oldest version to serve, as the environment variable DOCKER_MIN_API_VERSION names it; empty for all."""
    if not text:
        return MINIMUM
    fault = ""
    if text[0] in "vV":
        fault = 'API version must be provided without "v" prefix'
    elif (parts := _numbers(text)) < MINIMUM:
        fault = f"minimum supported API version is {MINIMUM}: {text}"
    elif parts > CURRENT:
        fault = f"maximum supported API version is {CURRENT}: {text}"
    elif len(parts) > len(CURRENT):
        fault = f"it has the form {MINIMUM}: {text}"
    if fault:
        raise InvalidParameter(f"invalid DOCKER_MIN_API_VERSION: {fault}")
    return Version(*parts)


def split_version(path: str, minimum: Version = MINIMUM) -> tuple[Version, str]:
    """`/v1.41/info` -> (1.41, `/info`); a path without a prefix means the newest version."""
    if path[:2] != "/v":
        return CURRENT, path
    text, slash, rest = path[2:].partition("/")
    version = _SERVED.get(text)
    if version is None or version < minimum:
        if not text or text.strip("0123456789."):
            return CURRENT, path  # /version, /volumes: a word, not a version
        version = _check(text, minimum)
    return version, slash + rest


def _check(text: str, minimum: Version) -> Version:
    """Read a spelling that is not exactly a served version, such as `1.40.1`, as dockerd does; or refuse it."""
    parts = _numbers(text)
    if parts > CURRENT:
        raise InvalidParameter(f"client version {text} is too new. Maximum supported API version is {CURRENT}")
    if parts < minimum:
        raise InvalidParameter(
            f"client version {text} is too old. Minimum supported API version is {minimum}, "
            "please upgrade your client to a newer version"
        )
    return Version(parts[0], parts[1])


def _numbers(text: str) -> tuple[int, ...]:
    """At least two; what is no number counts as 0, and zeros at the end of more do not count."""
    parts = [int(part[:9]) if part.isascii() and part.isdigit() else 0 for part in text.split(".")]
    parts += [0] * (2 - len(parts))
    while len(parts) > 2 and not parts[-1]:
        parts.pop()
    return tuple(parts)
