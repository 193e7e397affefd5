"""The search of a registry by a word, in the old (v1) API, which Docker Hub still offers."""

from urllib.parse import urlencode

import msgspec

from husk.errors import InvalidParameter, SystemFault, Unavailable
from husk.registry.auth import Credentials
from husk.registry.failures import phrase
from husk.registry.reference import DOCKER_HUB
from husk.registry.transport import Transport, read_limited
from husk.text.documents import MalformedDocument, decode

HUB_INDEX = "index.docker.io"
MOST_RESULTS = 100
# Ten times of what 100 results have.
_LARGEST_ANSWER = 1024 * 1024


class SearchResult(msgspec.Struct, kw_only=True):
    """One repository, in the registry's own field names, which are also the API's."""

    star_count: int = 0
    is_official: bool = False
    name: str
    is_automated: bool = False
    description: str | None = ""


class _Results(msgspec.Struct):
    results: list[SearchResult] = []


def split_term(term: str) -> tuple[str, str]:
    """The registry's host and the word to search there: `quay.example/db` is `db` at `quay.example`."""
    if "://" in term:
        raise InvalidParameter(f"invalid repository name: repository name ({term}) should not have a scheme")
    first, slash, rest = term.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return ("" if first in (DOCKER_HUB, HUB_INDEX) else first), rest
    return "", term


async def search(transport: Transport, term: str, limit: int, who: Credentials | None) -> list[SearchResult]:
    host, word = split_term(term)
    base = await transport.locate(host or HUB_INDEX)
    if not host and "/" in word:
        word = word.removeprefix("library/")
    headers = {"X-Docker-Token": "true"} | ({"Authorization": who.basic()} if who and who.username else {})
    url = f"{base}/v1/search?{urlencode({'q': word, 'n': limit})}"
    async with transport.send("GET", url, headers) as response:
        body = await read_limited(response, _LARGEST_ANSWER)
        if response.status in (404, 405, 410, 501):
            raise Unavailable(
                f"the registry {host or DOCKER_HUB} does not offer search "
                f"(GET /v1/search answered {response.status} {phrase(response.status)})"
            )
        if response.status != 200:
            raise SystemFault(f"Unexpected status code {response.status} from search at {host or DOCKER_HUB}")
    try:
        return decode(body, _Results).results
    except MalformedDocument as error:
        raise Unavailable(
            f"the registry {host or DOCKER_HUB} does not offer search: its answer is not a list"
        ) from error
