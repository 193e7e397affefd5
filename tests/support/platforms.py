"""An image for several platforms: in a registry, and as an OCI layout in one tar."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tests.support.daemon import Answer, Daemon
from tests.support.images import busybox_layer
from tests.support.machine import ARCHITECTURE, FOREIGN, FOREIGN_VARIANT
from tests.support.registry import (
    OCI_INDEX,
    OCI_MANIFEST,
    Image,
    Registry,
    digest_of,
    make_image,
    make_index,
    push_index,
    tar_of,
)
from tests.support.tars import files_of

OWN = quote(json.dumps({"os": "linux", "architecture": ARCHITECTURE}))
OTHER = quote(json.dumps({"os": "linux", "architecture": FOREIGN}))
S390X = quote('{"os": "linux", "architecture": "s390x"}')


@dataclass
class Platforms:
    """One that runs here, and one that does not; both with a layer of their own."""

    mark: str = "0"
    attested: bool = False
    own: Image = field(init=False)
    other: Image = field(init=False)
    index: bytes = field(init=False)
    attestation: dict[str, bytes] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        shared = tar_of({"shared": self.mark.encode() * 2000})
        own, other = (tar_of({"platform": f"{name} {self.mark}".encode()}) for name in (ARCHITECTURE, FOREIGN))
        self.own = make_image([busybox_layer(), shared, own], {"Cmd": ["cat", "/platform"]})
        self.other = make_image([shared, other], architecture=FOREIGN, variant=FOREIGN_VARIANT)
        self.index = make_index([self.own, self.other])[0]
        if self.attested:
            self._attest()

    def _attest(self) -> None:
        """As BuildKit does it: one more manifest, whose layer is a statement in JSON."""
        statement = json.dumps({"predicateType": "https://slsa.dev/provenance/v0.2", "mark": self.mark}).encode()
        config = json.dumps({"architecture": "unknown", "os": "unknown", "rootfs": {"diff_ids": []}}).encode()
        described = [{"mediaType": kind, "digest": digest_of(body), "size": len(body)} for kind, body in (
            ("application/vnd.oci.image.config.v1+json", config), ("application/vnd.in-toto+json", statement),
        )]  # fmt: skip
        described[1]["annotations"] = {"in-toto.io/predicate-type": "https://slsa.dev/provenance/v0.2"}
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": described[0], "layers": [described[1]],
        }).encode()  # fmt: skip
        self.attestation = {digest_of(body): body for body in (manifest, config, statement)}
        index = json.loads(self.index)
        index["manifests"].append({
            "mediaType": OCI_MANIFEST, "digest": digest_of(manifest), "size": len(manifest),
            "platform": {"architecture": "unknown", "os": "unknown"},
            "annotations": {
                "vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": self.own.digest,
            },
        })  # fmt: skip
        self.index = json.dumps(index).encode()

    @property
    def digest(self) -> str:
        return digest_of(self.index)

    def blobs(self, *images: Image) -> dict[str, bytes]:
        """All content by digest, of all platforms or of some."""
        chosen = images or (self.own, self.other)
        found = {self.digest: self.index} | {image.digest: image.manifest for image in chosen} | self.attestation
        return found | {digest: blob for image in chosen for digest, blob in image.blobs.items()}

    def put(self, registry: Registry, name: str, tag: str) -> str:
        """Into a registry (without an attestation); the full name."""
        assert push_index(registry, name, tag, [self.own, self.other]) == self.digest
        return f"{registry.host}/{name}:{tag}"

    def layout(self, name: str = "", *images: Image) -> bytes:
        """The OCI layout in a tar, with all platforms or only some."""
        entry: dict[str, object] = {"mediaType": OCI_INDEX, "digest": self.digest, "size": len(self.index)}
        if name:
            entry["annotations"] = {"io.containerd.image.name": name}
        files = {
            "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
            "index.json": json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode(),
        }
        files |= {"blobs/sha256/" + digest[7:]: blob for digest, blob in self.blobs(*images).items()}
        return tar_of(files)


def load(daemon: Daemon, archive: bytes, query: str = "?quiet=1") -> Answer:
    return daemon.http("POST", f"/images/load{query}", archive, {"Content-Type": "application/x-tar"})


def save(daemon: Daemon, name: str, *platforms: str) -> dict[str, bytes]:
    query = "&".join([f"names={quote(name)}", *(f"platform={platform}" for platform in platforms)])
    answer = daemon.http("GET", f"/images/get?{query}")
    assert answer.status == 200, answer.body
    return files_of(answer.body)


def blobs_of(files: dict[str, bytes]) -> dict[str, bytes]:
    head = "blobs/sha256/"
    return {"sha256:" + name.removeprefix(head): body for name, body in files.items() if name.startswith(head)}


def inspect(daemon: Daemon, name: str, query: str = "") -> dict[str, Any]:
    answer = daemon.http("GET", f"/v1.51/images/{name}/json{query}")
    assert answer.status == 200, answer.body
    shown: dict[str, Any] = answer.json()
    return shown


def push(daemon: Daemon, name: str, query: str = "") -> list[dict[str, Any]]:
    answer = daemon.http("POST", f"/images/{name}/push{query}", headers={"X-Registry-Auth": "e30="})
    assert answer.status == 200, answer.body
    return [json.loads(line) for line in answer.body.splitlines()]


def in_registry(registry: Registry, name: str, tag: str) -> tuple[str, str]:
    """(digest, media type) of what a tag has."""
    headers = {"Accept": f"{OCI_INDEX}, {OCI_MANIFEST}"}
    status, answered, body = registry.request("GET", f"/v2/{name}/manifests/{tag}", headers=headers)
    assert status == 200, body
    return answered["Docker-Content-Digest"], answered["Content-Type"]
