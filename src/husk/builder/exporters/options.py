"""The options of a client for an exporter of images: words and values, as BuildKit's clients send them. Pure."""

from collections.abc import Mapping

from msgspec import Struct, field

from husk.builder.store.compressions import GZIP, PLAIN, ZSTD, Compression
from husk.engine.images.tag import parse_target
from husk.errors import InvalidParameter, NotImplementedYet
from husk.registry.manifest import Platform, parse_platform
from husk.registry.reference import Reference
from husk.text.patterns import pattern

IMAGE_NAME = "image.name"
EPOCH = "source.date.epoch"
_ANY_NAME = "*"
_MOST_NAMES = 1000
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")
_ANNOTATION = pattern(r"annotation(?:-([a-z-]+))?(?:\[([A-Za-z0-9_/-]+)\])?\.(\S+)")
_PLACES = ("index", "index-descriptor", "manifest", "manifest-descriptor")
_HIGHEST = {GZIP: 9, ZSTD: 22, PLAIN: 0}


class Annotations(Struct, frozen=True):
    """Annotations of manifests and indexes, and of the descriptors that name them."""

    index: dict[str, str] = field(default_factory=dict)
    index_descriptor: dict[str, str] = field(default_factory=dict)
    manifest: dict[str, str] = field(default_factory=dict)
    manifest_descriptor: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.index or self.index_descriptor or self.manifest or self.manifest_descriptor)


class ExportOptions(Struct, frozen=True, kw_only=True):
    names: list[Reference] = []
    push: bool = False
    by_digest: bool = False  # the push gives no tag
    insecure: bool = False  # the push needs no verified TLS
    artifact: bool = False  # attestations are OCI artifacts
    canonical: bool = False  # the image gets a name with its digest, too
    store: bool = True
    compression: Compression = Compression()
    force_compression: bool = False  # of layers that are compressed already, too
    oci: bool | None = None  # OCI's media types; None: where something needs them
    annotations: dict[str, Annotations] = {}  # by platform, "" for all
    epoch: int | None = None
    rewrite_times: bool = True  # no file of a layer is later than the epoch
    tar: bool = True
    exact: bool = False  # the client cares for what manifests look like

    def annotations_for(self, platform: Platform | None = None) -> Annotations:
        """Those of all platforms, and those of this one over them."""
        common = self.annotations.get("", Annotations())
        own = self.annotations.get(str(platform), Annotations()) if platform else Annotations()
        return Annotations(
            common.index | own.index,
            common.index_descriptor | own.index_descriptor,
            common.manifest | own.manifest,
            common.manifest_descriptor | own.manifest_descriptor,
        )

    @property
    def clamp(self) -> int | None:
        return self.epoch if self.rewrite_times else None


def read(attributes: Mapping[str, str], metadata: Mapping[str, bytes]) -> ExportOptions:
    """`metadata` is what is known of the result: its frontend may have words of its own."""
    words = _Words(attributes)
    compression = _compression(words)
    oci = words.maybe("oci-mediatypes")
    if oci is False and compression.kind == ZSTD:
        raise InvalidParameter('exporter option "compression=zstd" conflicts with "oci-mediatypes=false"')
    known = {key: value.decode("utf-8", "replace") for key, value in metadata.items()}
    annotations = _annotations({**known, **attributes})
    if oci is False and any(one for one in annotations.values()):
        raise InvalidParameter('cannot export annotations with "oci-mediatypes=false"')
    return ExportOptions(
        names=names_of(attributes, metadata),
        push=words.flag("push"),
        by_digest=words.flag("push-by-digest"),
        insecure=words.flag("registry.insecure"),
        artifact=words.flag("oci-artifact"),
        canonical=words.flag("name-canonical"),
        store=words.flag("store", default=True),
        compression=compression,
        force_compression=words.flag("force-compression"),
        oci=oci,
        annotations=annotations,
        epoch=epoch_of(attributes, metadata),
        rewrite_times=words.flag("rewrite-timestamp", default=True),
        tar=words.flag("tar", default=True),
        exact=bool(annotations) or oci is not None or "compression" in attributes or words.flag("force-compression"),
    )


def epoch_of(attributes: Mapping[str, str], metadata: Mapping[str, bytes]) -> int | None:
    """SOURCE_DATE_EPOCH, as the client tells the exporter or the frontend has found it."""
    text = attributes.get("source-date-epoch", "") or metadata.get(EPOCH, b"").decode("ascii", "replace")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(f"invalid SOURCE_DATE_EPOCH: {text!r} is no number of seconds") from None


def names_of(attributes: Mapping[str, str], metadata: Mapping[str, bytes]) -> list[Reference]:
    texts = attributes.get("name", "")
    if texts == _ANY_NAME:
        texts = metadata.get(IMAGE_NAME, b"").decode("utf-8", "replace")
    if texts.count(",") >= _MOST_NAMES:
        raise InvalidParameter(f"an image gets {_MOST_NAMES} names at most")
    names = [name for text in texts.split(",") if (name := parse_target(text.strip(), ""))]
    return list(dict.fromkeys(names))


class _Words:
    def __init__(self, attributes: Mapping[str, str]) -> None:
        self._attributes = attributes

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A word without a value says yes."""
        said = self.maybe(name)
        return default if said is None else said

    def maybe(self, name: str) -> bool | None:
        if name not in self._attributes:
            return None
        value = self._attributes[name]
        if value in (*_TRUE, ""):
            return True
        if value in _FALSE:
            return False
        raise InvalidParameter(f"non-bool value specified for {name}: {value!r}")

    def text(self, name: str) -> str:
        return self._attributes.get(name, "")


def _compression(words: _Words) -> Compression:
    kind = words.text("compression") or GZIP
    if kind == "estargz":
        raise NotImplementedYet("compression=estargz is not implemented by Husk yet: gzip, zstd and uncompressed are")
    if kind not in _HIGHEST:
        raise InvalidParameter(f"unsupported layer compression type {kind!r}: gzip, zstd and uncompressed are known")
    text = words.text("compression-level")
    if not text:
        return Compression(kind)
    try:
        level = int(text)
    except ValueError:
        raise InvalidParameter(f"non-integer value {text!r} specified for compression-level") from None
    if not 0 <= level <= _HIGHEST[kind]:
        raise InvalidParameter(f"compression-level {level}: {kind} has levels from 0 to {_HIGHEST[kind]}")
    return Compression(kind, level if kind != PLAIN else None)


def _annotations(words: Mapping[str, str]) -> dict[str, Annotations]:
    """`annotation-manifest[linux/arm64].key`; without a place it is the manifest's."""
    found: dict[str, Annotations] = {}
    for word, value in words.items():
        if (match := _ANNOTATION.fullmatch(word)) is None:
            continue
        place, platform, key = match[1] or "manifest", match[2], match[3]
        if place not in _PLACES:
            raise InvalidParameter(f"unrecognized annotation type {place}")
        group = found.setdefault(str(parse_platform(platform)) if platform else "", Annotations())
        getattr(group, place.replace("-", "_"))[key] = value
    return found
