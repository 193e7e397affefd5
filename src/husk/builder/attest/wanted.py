"""The statements that a client wants: the attributes `attest:provenance` and `attest:sbom` of a build. Pure."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from husk.builder.dockerfile.comma_fields import BadFields, comma_fields
from husk.errors import InvalidParameter
from husk.registry import reference as references

Version = Literal["v0.2", "v1"]
V02: Final = "v0.2"
V1: Final = "v1"
DEFAULT_GENERATOR = "docker/buildkit-syft-scanner:stable-1"
_PREFIXES = ("attest:", "build-arg:BUILDKIT_ATTEST_")
_MOST_FIELDS = 1000
_HISTORY_V1 = "build-arg:BUILDKIT_HISTORY_PROVENANCE_V1"
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


class Provenance(Struct, frozen=True, kw_only=True):
    version: Version = V02
    everything: bool = True  # `mode=max`: also the operations, and the values of arguments
    builder: str = ""
    reproducible: bool = False
    inline_only: bool = False


class Sbom(Struct, frozen=True, kw_only=True):
    generator: str = DEFAULT_GENERATOR
    parameters: dict[str, str] = {}  # for the generator, as BUILDKIT_SCAN_… in its environment
    ignore_cache: bool = False


class WantedAttestations(Struct, frozen=True, kw_only=True):
    provenance: Provenance | None = None
    sbom: Sbom | None = None
    history: Provenance = Provenance()


def read(attributes: Mapping[str, str]) -> WantedAttestations:
    """InvalidParameter for what makes no sense."""
    provenance: Provenance | None = None
    sbom: Sbom | None = None
    for name, text in attributes.items():
        prefix = next((one for one in _PREFIXES if name.startswith(one)), "")
        kind = name.removeprefix(prefix).lower()
        if not prefix:
            continue
        if kind == "provenance":
            provenance = _provenance(_fields(kind, text))
        elif kind == "sbom":
            sbom = _sbom(_fields(kind, text), attributes.get("no-cache") == "")
        else:
            raise InvalidParameter(f'unknown attestation type "{kind}"')
    version: Version = V1 if attributes.get(_HISTORY_V1) in _TRUE else V02
    history = Provenance(version=version, builder=provenance.builder if provenance else "")
    return WantedAttestations(provenance=provenance, sbom=sbom, history=history)


def _fields(kind: str, text: str) -> dict[str, str]:
    if not text:
        return {}
    if text.count(",") >= _MOST_FIELDS:
        raise InvalidParameter(f"failed to parse {kind}: it has more than {_MOST_FIELDS} fields")
    try:
        fields = comma_fields(text)
    except BadFields as error:
        raise InvalidParameter(f"failed to parse {kind}: {error}") from None
    pairs = (field.partition("=") for field in fields)
    return {name: value for name, _, value in pairs}


def _provenance(fields: Mapping[str, str]) -> Provenance:
    version = fields.get("version", V02)
    if version not in (V02, V1):
        raise InvalidParameter(f"invalid provenance SLSA version: {version}")
    mode = fields.get("mode", "max")
    if mode not in ("min", "max", "full"):
        raise InvalidParameter(f'invalid mode "{mode}"')
    reproducible = fields.get("reproducible", "false")
    if reproducible not in _TRUE + _FALSE:
        raise InvalidParameter(f'failed to parse reproducible flag "{reproducible}"')
    return Provenance(
        version=V1 if version == V1 else V02,
        everything=mode != "min",
        builder=fields.get("builder-id", ""),
        reproducible=reproducible in _TRUE,
        inline_only=fields.get("inline-only") in _TRUE,
    )


def _sbom(fields: Mapping[str, str], ignore_cache: bool) -> Sbom:
    generator = fields.get("generator", DEFAULT_GENERATOR)
    if not generator:
        raise InvalidParameter("sbom generator cannot be empty")
    try:
        generator = str(references.parse(generator).tagged())
    except InvalidParameter as error:
        raise error.within(f"failed to parse sbom generator {generator}") from None
    parameters = {name: value for name, value in fields.items() if name != "generator"}
    return Sbom(generator=generator, parameters=parameters, ignore_cache=ignore_cache)
