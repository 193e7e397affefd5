"""A registry with images in it for tests: a real `docker-registry` on a free loopback port.

    with Registry() as registry:
        image = push_image(registry, "team/app", "1.0", layers=[tar_of({"etc/motd": b"hello"})])
        ...pull f"{registry.host}/team/app:1.0"...

`Registry(login=True)` asks for the htpasswd login USERNAME / PASSWORD. Everything here is synchronous and needs only
the standard library (and zstandard for zstd layers), so that any test can use it from any thread or fixture scope.
"""

import base64
import gzip
import hashlib
import http.client
import io
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import zstandard

from tests.support.machine import ARCHITECTURE
from tests.support.server import Server

Media = Literal["oci", "docker"]
Compression = Literal["gzip", "zstd", "none"]

USERNAME = "husk"
PASSWORD = "s3cret"
# bcrypt of PASSWORD at the lowest cost, written down so that tests need no htpasswd program
_HTPASSWD = f"{USERNAME}:$2b$04$UtZf3uSMaWMQqQdQf.nj.uLt.gptBYMPZe32w1sBquX40K6lMrvku\n"

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"

_CONFIG_TYPE: dict[Media, str] = {
    "oci": "application/vnd.oci.image.config.v1+json",
    "docker": "application/vnd.docker.container.image.v1+json",
}
_LAYER_TYPE: dict[Media, str] = {
    "oci": "application/vnd.oci.image.layer.v1.tar",
    "docker": "application/vnd.docker.image.rootfs.diff.tar",
}
_SUFFIX: dict[tuple[Media, Compression], str] = {
    ("oci", "gzip"): "+gzip",
    ("oci", "zstd"): "+zstd",
    ("oci", "none"): "",
    ("docker", "gzip"): ".gzip",
    ("docker", "zstd"): ".zstd",
    ("docker", "none"): "",
}


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """An archive, or an uncompressed layer, with these regular files (mode 0755, so that programs in it can run)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def compress(layer: bytes, compression: Compression) -> bytes:
    if compression == "gzip":
        return gzip.compress(layer, compresslevel=1, mtime=0)
    if compression == "zstd":
        return zstandard.compress(layer, level=1)
    return layer


@dataclass(frozen=True)
class Image:
    """A made-up image: its manifest and all the blobs that it names."""

    manifest: bytes
    media_type: str
    blobs: dict[str, bytes]
    config_digest: str
    layer_digests: list[str]
    platform: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return digest_of(self.manifest)


def make_image(
    layers: Sequence[bytes],
    config: Mapping[str, object] | None = None,
    *,
    media: Media = "oci",
    compression: Compression = "gzip",
    architecture: str = ARCHITECTURE,
    variant: str = "",
) -> Image:
    """An image of uncompressed tar `layers`; `config` is the image's `config` object (Cmd, Env, ...)."""
    platform = {"architecture": architecture, "os": "linux"} | ({"variant": variant} if variant else {})
    document = platform | {
        "created": "2024-01-02T03:04:05.678Z",
        "config": dict(config or {}),
        "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]},
        "history": [{"created": "2024-01-02T03:04:05.678Z", "created_by": f"layer {n}"} for n in range(len(layers))],
    }
    config_blob = json.dumps(document).encode()
    layer_type = _LAYER_TYPE[media] + _SUFFIX[media, compression]
    packed = [compress(layer, compression) for layer in layers]
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST if media == "oci" else DOCKER_MANIFEST,
        "config": _descriptor(_CONFIG_TYPE[media], config_blob),
        "layers": [_descriptor(layer_type, blob) for blob in packed],
    }
    return Image(
        manifest=json.dumps(manifest).encode(),
        media_type=OCI_MANIFEST if media == "oci" else DOCKER_MANIFEST,
        blobs={digest_of(blob): blob for blob in [config_blob, *packed]},
        config_digest=digest_of(config_blob),
        layer_digests=[digest_of(blob) for blob in packed],
        platform=platform,
    )


def make_index(images: Sequence[Image], media: Media = "oci") -> tuple[bytes, str]:
    """An image index (or Docker manifest list) of `images`, each under its own platform: (body, media type)."""
    media_type = OCI_INDEX if media == "oci" else DOCKER_LIST
    manifests = [_descriptor(image.media_type, image.manifest) | {"platform": image.platform} for image in images]
    body = {"schemaVersion": 2, "mediaType": media_type, "manifests": manifests}
    return json.dumps(body).encode(), media_type


def _descriptor(media_type: str, data: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": digest_of(data), "size": len(data)}


class Registry(Server):
    """A running `docker-registry serve` with an empty store, gone with everything in it when the context ends."""

    def __init__(
        self,
        *,
        login: bool = False,
        address: str = "127.0.0.1:0",
        tls: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
    ) -> None:
        """`tls` names the files of certificate and key as the registry's settings do. `wrapper` is a command that runs
        another one: on one of several hosts, for instance."""
        self._wrapper = wrapper
        self.login = login
        self._address = address
        self._tls = tls
        self.host = ""
        self._directory = Path()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        shutil.rmtree(self._directory, ignore_errors=True)

    def start(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="husk-registry-"))
        settings: dict[str, object] = {
            "version": 0.1,
            "log": {"accesslog": {"disabled": True}, "level": "info"},
            "storage": {
                "filesystem": {"rootdirectory": str(self._directory / "store")},
                "delete": {"enabled": True},
            },
            "http": {"addr": self._address} | ({"tls": dict(self._tls)} if self._tls else {}),
        }
        if self.login:
            (self._directory / "htpasswd").write_text(_HTPASSWD)
            settings["auth"] = {"htpasswd": {"realm": "husk tests", "path": str(self._directory / "htpasswd")}}
        config = self._directory / "config.yml"
        config.write_text(json.dumps(settings))  # JSON is YAML
        log = self._directory / "log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                # Installed, or in .venv/bin.
                [*self._wrapper, shutil.which("docker-registry") or "docker-registry", "serve", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={"PATH": "/usr/bin:/bin", "OTEL_TRACES_EXPORTER": "none"},
            )
        # Port 0 lets the kernel choose, so that parallel tests cannot collide; only the log tells the choice.
        deadline = time.monotonic() + 20
        while (found := re.search(rb"listening on ([\d.]+:\d+)", log.read_bytes())) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"docker-registry did not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.01)
        self.host = found[1].decode()

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """One HTTP exchange with the registry, logged in if it asks for that: (status, headers, body)."""
        sent = dict(headers or {})
        if self.login:
            sent["Authorization"] = "Basic " + base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def put_blob(self, name: str, blob: bytes) -> str:
        status, headers, answer = self.request("POST", f"/v2/{name}/blobs/uploads/", b"")
        if status != 202:
            raise RuntimeError(f"upload refused: {status} {answer!r}")
        location = urllib.parse.urlsplit(headers["Location"])
        query = urllib.parse.urlencode({**dict(urllib.parse.parse_qsl(location.query)), "digest": digest_of(blob)})
        status, _, answer = self.request(
            "PUT", f"{location.path}?{query}", blob, {"Content-Type": "application/octet-stream"}
        )
        if status != 201:
            raise RuntimeError(f"blob refused: {status} {answer!r}")
        return digest_of(blob)

    def put_manifest(self, name: str, reference: str, body: bytes, media_type: str) -> str:
        status, _, answer = self.request("PUT", f"/v2/{name}/manifests/{reference}", body, {"Content-Type": media_type})
        if status != 201:
            raise RuntimeError(f"manifest refused: {status} {answer!r}")
        return digest_of(body)


def push_image(
    registry: Registry,
    name: str,
    tag: str,
    layers: Sequence[bytes],
    config: Mapping[str, object] | None = None,
    media: Media = "oci",
    compression: Compression = "gzip",
) -> Image:
    """Make an image of uncompressed tar `layers` and put it into the registry as `name:tag`."""
    image = make_image(layers, config, media=media, compression=compression)
    upload(registry, name, tag, image)
    return image


def push_index(registry: Registry, name: str, tag: str, images: Sequence[Image], media: Media = "oci") -> str:
    """Put `images` and an index over them into the registry as `name:tag`; returns the index's digest."""
    for image in images:
        upload(registry, name, image.digest, image)
    body, media_type = make_index(images, media)
    return registry.put_manifest(name, tag, body, media_type)


def upload(registry: Registry, name: str, reference: str, image: Image) -> None:
    for blob in image.blobs.values():
        registry.put_blob(name, blob)
    registry.put_manifest(name, reference, image.manifest, image.media_type)
