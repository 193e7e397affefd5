"""Limits of resources (`ulimits`), in a container's configuration and as defaults of the daemon. Pure."""

from husk.errors import InvalidParameter

_ULIMITS = "core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack"


def check_ulimit(name: str, soft: int, hard: int) -> None:
    """InvalidParameter for a name that is none, and for a soft limit above the hard one."""
    if name.lower() not in _ULIMITS.split():
        raise InvalidParameter(f"invalid ulimit type: {name}")
    if hard >= 0 and (soft < 0 or soft > hard):
        raise InvalidParameter(f"ulimit soft limit must be less than or equal to hard limit: {soft} > {hard}")
