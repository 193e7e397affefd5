"""Answers of `top`, `update` and `prune` of containers."""

from msgspec import Struct


class TopResponse(Struct, kw_only=True, rename="pascal"):
    processes: list[list[str]] | None
    titles: list[str]


class UpdateResponse(Struct, kw_only=True, rename="pascal"):
    warnings: list[str] | None


class PruneResponse(Struct, kw_only=True, rename="pascal"):
    containers_deleted: list[str] | None
    space_reclaimed: int
