"""The model of a volume: its record in the store."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from husk.errors import InvalidParameter
from husk.text.patterns import pattern

DRIVER = "local"
ANONYMOUS_LABEL = "com.docker.volume.anonymous"
_NAME = pattern(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*", re.ASCII)
_LONGEST = 255


class Volume(Struct, kw_only=True, frozen=True):
    """The record of one volume."""

    name: str
    created: str
    driver: str = DRIVER
    labels: Mapping[str, str] | None = None
    options: Mapping[str, str] | None = None

    @property
    def anonymous(self) -> bool:
        return self.labels is not None and ANONYMOUS_LABEL in self.labels


class VolumeUsage(msgspec.Struct, frozen=True):
    """The size of a volume on disk, and the number of containers that have it."""

    volume: Volume
    size: int
    containers: int


def check_name(name: str) -> None:
    """Raise InvalidParameter if this may not be the name of a volume. It becomes the name of a directory."""
    if len(name) == 1:
        raise InvalidParameter("volume name is too short, names should be at least two alphanumeric characters")
    if _NAME.fullmatch(name) is None or len(name) > _LONGEST:
        raise InvalidParameter(
            f'"{name}" includes invalid characters for a local volume name, only "[a-zA-Z0-9][a-zA-Z0-9_.-]" are '
            "allowed. If you intended to pass a host directory, use absolute path"
        )
