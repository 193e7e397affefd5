"""The records of what steps of builds have changed: their directories are beside those of layers, and may be shared."""

import msgspec


class Packing(msgspec.Struct, frozen=True):
    """The tar of a diff: its digest, which is its diff id and its blob's name, and its size."""

    digest: str
    size: int


class DiffRecord(msgspec.Struct, frozen=True):
    """The changes of one step. `size` counts the bytes of regular files.

    `packings` has a packing for each latest time (seconds, or "" for none) that was asked for.
    """

    id: str
    directory: str
    size: int
    synced: bool = False
    packings: dict[str, Packing] = {}
