"""`husk builder prune`: what builds have kept for later ones."""

from collections.abc import Mapping
from typing import Any

import click

from husk.cli.kit.command import Flag
from husk.cli.kit.kinds import Pruning, pruning
from husk.client.client import Client
from husk.client.spec import size as bytes_of


async def _prune(engine: Client, filters: Mapping[str, Any], everything: bool, keep_storage: str) -> Any:
    keep = bytes_of(keep_storage) if keep_storage else 0
    return await engine.images.prune_builds(all=everything, keep=keep, filters=filters)


def _warning(flags: Mapping[str, Any]) -> str:
    return "This will remove all build cache." if flags["everything"] else "This will remove all dangling build cache."


prune = pruning(
    Pruning(_prune, _warning, "Deleted build cache objects:", "CachesDeleted"),
    "Remove build cache.",
    Flag(["-a", "--all", "everything"], help="Remove all unused build cache, not just dangling ones."),
    click.Option(["--keep-storage"], metavar="BYTES", default="", help="Amount of disk space to keep for cache."),
)
