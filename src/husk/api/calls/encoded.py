"""Answers in their encoded form, kept until what they show has changed.

Lists and inspects are asked for far more often than containers and images change. What an answer was made of is its
stamp; it is used again only while the stamp is the same:

- one container: its whole record, encoded as the store has it (a few microseconds, whatever was changed and by whom),
  its unfinished execs, its names, and the revision of the images;
- all containers: how often any record has changed, the revision of the images, and the moment at which the first
  "Up 3 minutes" is to say something else; at most a second. Then each container that is as it was is still encoded;
- images: the revision of their names, records and layers.

Sizes on the disk change unseen: answers with them are not kept. Only what was asked for is here, up to `LIMIT` bytes in
all; what has not been used for longest goes first, as do answers about what is gone.
"""

import secrets
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import msgspec

from husk.api.versioning import Version
from husk.api.views import containers as container_views
from husk.api.views import images as image_views
from husk.composition import Engine
from husk.engine.images.listing import NamePatterns, name_patterns
from husk.engine.model.container import Container, changes
from husk.engine.model.filters import Filters
from husk.engine.model.image import Image
from husk.errors import HuskError
from husk.text.gojson import encode

T = TypeVar("T")

LIMIT = 8 << 20
# What one answer costs beside its bytes.
_OVERHEAD = 500
# Seconds that a list of containers is used again, though nothing seems to have changed.
LIST_LASTS = 1.0
WITH_DESCRIPTOR = Version(1, 48)

_record = msgspec.json.Encoder().encode
# Stands for the words of a status in the encoded form of a listed container; no client can guess it.
_STATUS = secrets.token_hex(16)
_STATUS_ENCODED = encode(_STATUS)


class KeptAnswers(Generic[T]):
    """Answers by what was asked, as many as fit; each with the stamp of what it was made of."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._entries: OrderedDict[Hashable, tuple[object, T, int]] = OrderedDict()
        self.size = 0

    def get(self, key: Hashable, stamp: object) -> T | None:
        if (entry := self._entries.get(key)) is None:
            return None
        if entry[0] != stamp:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, key: Hashable, stamp: object, answer: T, size: int) -> T:
        self._drop(key)
        size += _OVERHEAD
        if size <= self._limit // 4:
            self._entries[key] = (stamp, answer, size)
            self.size += size
            while self.size > self._limit:
                self._drop(next(iter(self._entries)))
        return answer

    def _drop(self, key: Hashable) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self.size -= entry[2]


class _Listed(msgspec.Struct, frozen=True):
    """A container in a list: what stands before and behind its status, and the parts of that."""

    head: bytes
    tail: bytes
    status: container_views.StatusText


class _List(msgspec.Struct, frozen=True):
    """All containers, from when and until when their words are right."""

    body: bytes
    made: float
    ends: float


class EncodedAnswers:
    """The kept answers of one engine. Bytes are whole documents with the newline that ends them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._bodies: KeptAnswers[bytes] = KeptAnswers()
        self._listed: KeptAnswers[_Listed] = KeptAnswers()
        self._lists: KeptAnswers[_List] = KeptAnswers()

    # --- containers

    def container(self, reference: str, version: Version) -> bytes:
        """Inspect, without sizes."""
        engine = self._engine
        container = engine.containers.find(reference)
        execs = engine.execs.unfinished(container.id)
        # Of all that may change, 64 bits: random for each process, and only ever compared with those of one container.
        stamp = (hash(_record(container)), execs, engine.images.revision)
        key = ("container", container.id, version)
        if (body := self._bodies.get(key, stamp)) is None:
            paths = engine.containers.host_paths(container)
            document = container_views.inspect(container, paths, version, None, execs)
            body = encode(document) + b"\n"
            self._bodies.put(key, stamp, body, len(body))
        return body

    def containers(self, all: bool, limit: int, filters: Filters, version: Version) -> bytes:
        """The list, without sizes."""
        now = time.time()
        plain = not limit and not filters
        key = (version, all)
        # Before anything is looked at: a change meanwhile makes the answer one that is not used again.
        stamp = (changes.count, self._engine.images.revision)
        if plain and (known := self._lists.get(key, stamp)) is not None and known.made <= now < known.ends:
            return known.body
        found = self._engine.containers.listing(all, limit, filters)
        names, images = self._engine.containers.names(), ImageNames(self._engine)
        pieces: list[bytes] = []
        ends = now + LIST_LASTS
        for container in found:
            listed = self._listed_container(container, names[container.id], images.of(container), version)
            words, seconds = listed.status.at(now)
            ends = min(ends, now + seconds)
            pieces += (listed.head, encode(words), listed.tail)
        body = b"[" + b"".join(pieces)[:-1] + b"]\n"
        if plain:
            self._lists.put(key, stamp, _List(body, now, ends), len(body))
        return body

    def _listed_container(self, container: Container, names: list[str], image: str, version: Version) -> _Listed:
        stamp = (hash(_record(container)), names, image)
        key = (container.id, version)
        if (listed := self._listed.get(key, stamp)) is None:
            document = container_views.summary(container, names, image, None, version)
            document.status = _STATUS
            head, _, tail = encode(document).partition(_STATUS_ENCODED)
            listed = _Listed(head, tail + b",", container_views.status_of(container.state))
            self._listed.put(key, stamp, listed, len(head) + len(tail))
        return listed

    # --- images

    def image(self, reference: str, version: Version) -> bytes:
        """Inspect of the image that this host runs best, without its manifests."""
        images = self._engine.images
        key, stamp = ("image", reference, version), images.revision
        if (body := self._bodies.get(key, stamp)) is None:
            image = images.find(reference)
            directories = images.directories(image.chain_ids)
            tags, digests = images.tags(image), images.digests(image)
            document = image_views.inspect(image, tags, digests, version, directories)
            if version >= WITH_DESCRIPTOR:
                document.descriptor = images.target(image)
            body = encode(document) + b"\n"
            self._bodies.put(key, stamp, body, len(body))
        return body

    def images(self, all: bool, filters: Filters, version: Version) -> bytes:
        """The list, without what images share and without manifests."""
        images = self._engine.images
        if filters:
            found = images.listing(all, filters)
            # Such a list shows only those names that match.
            if (patterns := name_patterns(filters)) is not None:
                return _joined(self._image_summary(image, version, patterns) for image in found)
            return _joined(self._listed_image(image, version) for image in found)
        key, stamp = ("images", all, version), images.revision
        if (body := self._bodies.get(key, stamp)) is None:
            body = _joined(self._listed_image(image, version) for image in images.listing(all, filters))
            self._bodies.put(key, stamp, body, len(body))
        return body

    def _listed_image(self, image: Image, version: Version) -> bytes:
        key, stamp = ("listed image", image.id, version), self._engine.images.revision
        if (body := self._bodies.get(key, stamp)) is None:
            body = self._image_summary(image, version)
            self._bodies.put(key, stamp, body, len(body))
        return body

    def _image_summary(self, image: Image, version: Version, patterns: NamePatterns | None = None) -> bytes:
        images = self._engine.images
        tags, digests = images.tags(image, patterns), images.digests(image, patterns)
        document = image_views.summary(image, tags, digests, version, size=images.size(image))
        if version >= WITH_DESCRIPTOR:
            document.descriptor = images.target(image)
        return encode(document)


class ImageNames:
    """The name to show for a container's image; each name is looked up once per answer."""

    def __init__(self, engine: Engine) -> None:
        self._images = engine.images
        self._ids: dict[str, set[str]] = {}

    def of(self, container: Container) -> str:
        name = container.config.image
        if name not in self._ids:
            try:
                self._ids[name] = self._images.meant_by(name)
            except HuskError:
                self._ids[name] = set()
        return name if container.image_id in self._ids[name] else container.image_id


def _joined(documents: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(documents) + b"]\n"
