"""Images as archives: what is in them."""

import io
import json
import tarfile
from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.exporters.archive import ArchiveExport, docker_manifest, layout_index
from husk.builder.exporters.bundle import Bundler
from husk.builder.exporters.options import read
from husk.builder.jobs.results import Predicate
from husk.builder.jobs.status_log import StatusLog
from husk.builder.store.layer_packing import LayerPacker
from husk.errors import InvalidParameter
from husk.storage.blobs import BlobStore
from tests.unit.builder.exporters.test_bundle import PLAIN, Layers, Store, bundled, layer, one, two


class Session:
    id = "s"

    def __init__(self) -> None:
        self.archive = b""
        self.told: Any = None
        self.blobs: dict[str, bytes] = {}

    async def send_file(self, number, chunks, metadata):
        self.archive = b"".join([chunk async for chunk in chunks])
        self.told = metadata
        return True

    def content(self, store):
        assert store == "export"
        return self

    async def write(self, digest, size, chunks):
        self.blobs[digest] = b"".join([chunk async for chunk in chunks])
        assert len(self.blobs[digest]) == size


class Bench:
    def __init__(self, blobs: BlobStore, plain: str) -> None:
        self.blobs = blobs
        self.session = Session()
        store: Any = Store()
        store.put = blobs.put
        made = layer("a", PLAIN)
        made = type(made)(**{field: getattr(made, field) for field in made.__struct_fields__} | {"blob": plain})
        layers: Any = Layers(made)
        self.bundler = Bundler(store, layers, LayerPacker(blobs))

    async def export(self, kind, result, **attributes):
        job: Any = SimpleNamespace(log=StatusLog(), session=self.session)
        return await ArchiveExport(self.bundler, self.blobs, kind).export(job, result, attributes, 0)

    def files(self):
        with tarfile.open(fileobj=io.BytesIO(self.session.archive)) as archive:
            return {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]


@pytest.fixture
async def bench(tmp_path) -> Bench:
    blobs = BlobStore.open(tmp_path / "blobs")
    return Bench(blobs, await blobs.put(b"a layer" * 100))


async def test_a_layout(bench):
    told = await bench.export("oci", two(), name="a:1,b:2")
    assert bench.session.told == told
    files = bench.files()
    index = json.loads(files["index.json"])
    names = [each["annotations"]["io.containerd.image.name"] for each in index["manifests"]]
    assert names == ["docker.io/library/a:1", "docker.io/library/b:2"]
    assert {each["digest"] for each in index["manifests"]} == {told["containerimage.digest"]}
    assert "manifest.json" not in files
    # An index, two manifests, two configurations, one layer.
    assert len([name for name in files if name.startswith("blobs/sha256/")]) == 6


async def test_an_archive_for_docker(bench):
    await bench.export("docker", one(), name="a:1")
    files = bench.files()
    (listed,) = json.loads(files["manifest.json"])
    assert listed["RepoTags"] == ["a:1"]
    assert {listed["Config"], *listed["Layers"]} <= set(files)


async def test_a_directory_of_the_client(bench):
    told = await bench.export("oci", one(), tar="false")
    assert told["containerimage.digest"] in bench.session.blobs
    assert len(bench.session.blobs) == 3


async def test_what_nobody_has_asked_for_is_left_out_of_one_platform(bench):
    said = Predicate(type="t", body=b"{}", inline_only=True)
    assert "containerimage.config.digest" in await bench.export("oci", one(predicates={"linux/amd64": [said]}))


async def test_what_cannot_be(bench):
    with pytest.raises(InvalidParameter, match="manifest lists"):
        await bench.export("docker", two())
    bench.session = None
    with pytest.raises(InvalidParameter, match="session"):
        await bench.export("oci", one())


async def test_without_a_name():
    bundle = (await bundled(one(), None, layer("a", PLAIN))).bundle
    (named,) = json.loads(layout_index(bundle, read({"source-date-epoch": "0"}, {})))["manifests"]
    assert named["annotations"] == {"org.opencontainers.image.created": "1970-01-01T00:00:00Z"}
    assert json.loads(docker_manifest(bundle, []))[0]["RepoTags"] is None
