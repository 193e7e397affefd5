"""Questions to a registry about an image that is not here: its search, and a manifest with its platforms."""

import msgspec

from husk.engine.images.make import read_config_aside
from husk.engine.model.filters import Filters
from husk.errors import InvalidParameter
from husk.registry import reference as references
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from husk.registry.manifest import Descriptor, Index, Platform, parse_manifest
from husk.registry.search import MOST_RESULTS, SearchResult

SEARCH_FILTERS = ("is-automated", "is-official", "stars")
DEFAULT_RESULTS = 25


class Distribution(msgspec.Struct, frozen=True):
    """The content that a registry has under a name, and the platforms that it runs on."""

    descriptor: Descriptor
    platforms: list[Platform]


async def distribution(registry: RegistryClient, text: str, auth: Credentials | None) -> Distribution:
    reference = references.parse(text).tagged()
    fetched = await registry.manifest(reference, auth)
    parsed = parse_manifest(fetched.body, fetched.descriptor.media_type)
    descriptor = msgspec.structs.replace(fetched.descriptor, media_type=parsed.media_type)
    if isinstance(parsed, Index):
        return Distribution(descriptor, [entry.platform for entry in parsed.manifests if entry.platform is not None])
    document = await read_config_aside(await registry.blob_bytes(reference, parsed.config, auth))
    return Distribution(descriptor, [Platform(document.architecture, document.os, document.variant)])


async def search(
    registry: RegistryClient, term: str, limit: int, filters: Filters, auth: Credentials | None
) -> list[SearchResult]:
    if not term:
        raise InvalidParameter("search needs a term: name a repository or a part of its name")
    limit = limit or DEFAULT_RESULTS
    if not 1 <= limit <= MOST_RESULTS:
        raise InvalidParameter(f"limit {limit} is outside the range of [1, {MOST_RESULTS}]")
    stars = max(filters.numbers("stars"), default=0)
    flags = [(name, filters.boolean(name, False)) for name in ("is-official", "is-automated") if name in filters]

    def wanted(result: SearchResult) -> bool:
        facts = {"is-official": result.is_official, "is-automated": result.is_automated}
        return result.star_count >= stars and all(facts[name] == value for name, value in flags)

    return [result for result in await registry.search(term, limit, auth) if wanted(result)]
