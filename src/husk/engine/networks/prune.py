"""Removal of the networks that nobody uses."""

import logging
from collections.abc import Awaitable, Callable, Iterable

from husk.engine.model.clock import parse_rfc3339
from husk.engine.model.filters import Filters
from husk.engine.networks.live import LiveNetwork
from husk.errors import Conflict, HuskError, NotFound

log = logging.getLogger(__name__)


async def prune(lives: Iterable[LiveNetwork], filters: Filters, remove: Callable[[str], Awaitable[None]]) -> list[str]:
    """`remove` the networks that no running container is on; the names of those that have gone."""
    until = filters.until()
    removed = []
    for live in list(lives):
        network = live.record
        if network.builtin or network.config_only or live.members or not filters.matches_labels(network.labels):
            continue
        if until is not None and parse_rfc3339(network.created) > until:
            continue
        try:
            await remove(network.id)
            removed.append(network.name)
        except (Conflict, NotFound):
            continue  # somebody needs it, or has removed it
        except HuskError as error:
            log.warning("network %s is not pruned: %s", network.name, error.message)
    return removed
