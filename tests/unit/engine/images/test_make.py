"""A configuration and layers become an image."""

from pathlib import Path

import msgspec
import pytest

from husk.engine.images.make import (
    MOST_LAYERS,
    chain_ids,
    image_record,
    make_image,
    read_config,
    read_config_aside,
    require_layers,
)
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import HistoryEntry, ImageConfig, RootFS
from husk.errors import InvalidParameter
from husk.storage.blobs import BlobStore
from husk.storage.layers.store import Layer
from tests.unit.engine.records import digest

A, B = digest("a"), digest("b")
CREATED = "2026-01-02T03:04:05Z"


def layer(diff_id: str) -> Layer:
    return Layer(
        chain_id=diff_id, diff_id=diff_id, parent="", directory="", size=10, blob=digest(diff_id), blob_size=4,
        media_type="application/vnd.docker.image.rootfs.diff.tar.gzip",
    )  # fmt: skip


def test_the_chain_of_one_layer_is_the_layer_and_each_next_hashes_the_rest() -> None:
    assert chain_ids([]) == []
    assert chain_ids([A, B]) == [A, digest(f"{A} {B}")]


async def test_an_image_is_named_by_its_configuration(tmp_path: Path) -> None:
    blobs = BlobStore.open(tmp_path)
    document = ImageConfig(
        architecture="amd64",
        os="linux",
        created=CREATED,
        config=ContainerConfig(cmd=["sh"]),
        rootfs=RootFS(diff_ids=[A, B]),
    )
    image = await make_image(blobs, document, [layer(A), layer(B)], parent=digest("parent"))
    assert read_config(await blobs.read(image.id)) == document
    assert (image.size, image.parent, image.chain_ids) == (20, digest("parent"), chain_ids([A, B]))
    manifest = msgspec.json.decode(await blobs.read(image.manifest))
    assert manifest["config"]["digest"] == image.id
    assert [one["digest"] for one in manifest["layers"]] == [digest(A), digest(B)]
    assert image.manifest_size == blobs.size(image.manifest)


async def test_an_image_without_layers_still_says_so(tmp_path: Path) -> None:
    blobs = BlobStore.open(tmp_path)
    image = await make_image(blobs, ImageConfig(architecture="amd64", os="linux"), [])
    assert msgspec.json.decode(await blobs.read(image.id))["rootfs"] == {"type": "layers", "diff_ids": []}


def test_a_configuration_is_read_as_go_reads_it() -> None:
    body = b'{"Architecture":"arm64","config":{"cmd":"sh","Env":null},"rootfs":{"diff_ids":null},"extra":[1]}'
    document = read_config(body)
    assert document.architecture == "arm64"
    assert document.config == ContainerConfig(cmd=["sh"])
    assert document.rootfs.diff_ids == []


@pytest.mark.parametrize("body", [b"", b"[]", b'{"rootfs": 5}', b'{"config": {"Env": "A=1"}}'])
def test_what_is_no_configuration_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidParameter):
        read_config(body)


@pytest.mark.parametrize("body", [b'{"history":[%s]}', b'{"config":{"OnBuild":[%s]}}', b'{"x":[%s]}'])
def test_a_configuration_of_more_values_than_any_image_has_is_refused(body: bytes) -> None:
    """Eight MiB of them took 8 s and 600 MiB, and nothing else was done meanwhile."""
    with pytest.raises(InvalidParameter, match="more than 262144 values"):
        read_config(body % b",".join([b"{}"] * (1 << 18)))


async def test_all_ports_of_three_protocols_can_be_exposed() -> None:
    ports = ",".join(f'"{port}/{protocol}":{{}}' for protocol in ("tcp", "udp", "sctp") for port in range(1, 65536))
    document = await read_config_aside(f'{{"config":{{"ExposedPorts":{{{ports}}}}}}}'.encode())
    assert document.config and len(document.config.exposed_ports or {}) == 3 * 65535


def record(document: ImageConfig) -> object:
    return image_record(A, document, size=0, manifest=None)


def test_an_image_that_could_never_be_listed_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="invalid time"):
        record(ImageConfig(created="yesterday"))


def test_only_layers_make_a_root_file_system() -> None:
    with pytest.raises(InvalidParameter, match="unsupported root file system type 'base'"):
        record(ImageConfig(rootfs=RootFS(type="base")))


def test_the_last_step_s_comment_is_the_image_s() -> None:
    steps = [HistoryEntry(comment="first"), HistoryEntry(comment="last")]
    assert image_record(A, ImageConfig(history=steps), size=0, manifest=None).comment == "last"
    assert image_record(A, ImageConfig(comment="own", history=steps), size=0, manifest=None).comment == "own"


def test_what_nobody_can_mount_is_no_image() -> None:
    deepest = ImageConfig(rootfs=RootFS(diff_ids=[A] * MOST_LAYERS), created=CREATED)
    require_layers(deepest, MOST_LAYERS)
    image_record("sha256:x", deepest, size=0, manifest=None)
    deeper = ImageConfig(rootfs=RootFS(diff_ids=[A] * (MOST_LAYERS + 1)), created=CREATED)
    with pytest.raises(InvalidParameter, match="max depth exceeded"):
        require_layers(deeper, MOST_LAYERS + 1)
    with pytest.raises(InvalidParameter, match="max depth exceeded"):
        image_record("sha256:x", deeper, size=0, manifest=None)


async def test_of_an_image_that_is_too_deep_nothing_is_written(tmp_path: Path) -> None:
    blobs = BlobStore.open(tmp_path)
    layers = [layer(A)] * (MOST_LAYERS + 1)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidParameter, match="max depth exceeded"):
        await make_image(blobs, ImageConfig(rootfs=RootFS(diff_ids=[A])), layers)
    assert sorted(tmp_path.rglob("*")) == before
