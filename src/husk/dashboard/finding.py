"""A search over everything that has a page: names, images, ports, labels and ids, the best match first."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from husk.client.client import Client
from husk.dashboard.grouping import group_of, row
from husk.dashboard.navigation import NAVIGATION
from husk.dashboard.secret_words import masked_values

# What is shown of all that is found.
MOST = 30
# Seconds for which what is known is good: as long as somebody takes to write a word.
_KEPT = 2.0
_MOST_WORDS = 8
_LONGEST_WORD = 256


class Hit(NamedTuple):
    """A thing that has a page. `words` are all that it can be found by, in small letters."""

    kind: str
    name: str
    path: str
    note: str
    words: str


class SearchIndex:
    """All things of one engine, as they were seconds ago at most."""

    def __init__(self, engine: Client, *, with_secrets: bool = True) -> None:
        """Without secrets: what looks like one in a label can be found by nobody, who would learn it by guesses."""
        self._engine = engine
        self._with_secrets = with_secrets
        self._found: list[Hit] = []
        self._made = float("-inf")
        self._making = asyncio.Lock()

    async def find(self, text: str) -> list[Hit]:
        """The things that have every word of a text somewhere; nothing for a text without words."""
        words = [word[:_LONGEST_WORD] for word in text.lower().split()[:_MOST_WORDS]]
        if not words:
            return []
        async with self._making:
            if time.monotonic() - self._made > _KEPT:
                self._found = await _everything(self._engine, self._with_secrets)
                self._made = time.monotonic()
        return ranked(self._found, words)


def ranked(things: Iterable[Hit], words: list[str]) -> list[Hit]:
    """Sort what has all words: those whose name is the first word, begins with it, has it; then all others."""
    found = [each for each in things if all(word in each.words for word in words)]

    def rank(each: Hit) -> tuple[int, int, str]:
        name = each.name.lower()
        place = name.find(words[0])
        return (0 if name == words[0] else 1 if place == 0 else 2 if place > 0 else 3), len(name), name

    return sorted(found, key=rank)[:MOST]


async def _everything(engine: Client, with_secrets: bool) -> list[Hit]:
    containers, images, volumes, networks, info = await asyncio.gather(
        engine.containers.list(all=True),
        engine.images.list(),
        engine.volumes.list(),
        engine.networks.list(),
        engine.info(),
    )
    found = [_hit("page", part.title, part.path) for part in NAVIGATION]
    found += _of_containers([each.attrs if with_secrets else _masked(each.attrs) for each in containers])
    for image in images:
        name = ", ".join(image.tags) or image.short_id
        found.append(_hit("image", name, f"/images/{image.short_id}", "", image.id))
    found += [_hit("volume", each.name, f"/volumes/{each.name}", each.driver) for each in volumes]
    found += [
        _hit("network", each.name, f"/networks/{quote(each.name, safe='')}", each.driver, each.id) for each in networks
    ]
    if (info.get("Swarm") or {}).get("ControlAvailable"):
        services, nodes = await asyncio.gather(engine.services.list(), engine.nodes.list())
        found += [_hit("service", each.name, f"/services/{each.name}", "", each.id) for each in services]
        found += [_hit("node", each.name, "/nodes", "", each.id) for each in nodes]
    return found


def _of_containers(containers: list[Mapping[str, Any]]) -> list[Hit]:
    projects = sorted({name for kind, name in map(group_of, containers) if kind == "project"})
    found = [_hit("project", each, f"/containers#project-{each}") for each in projects]
    for attrs in containers:
        each = row(attrs, "")
        found.append(
            Hit("container", each.name, f"/containers/{each.name}", f"{each.word} · {each.image}", each.haystack)
        )
    return found


def _masked(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**attrs, "Labels": masked_values(attrs.get("Labels") or {})}


def _hit(kind: str, name: str, path: str, note: str = "", more: str = "") -> Hit:
    return Hit(kind, name, path, note, f"{kind} {name} {note} {more}".lower())
