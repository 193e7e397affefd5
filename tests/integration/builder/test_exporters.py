"""Exports of results, with the stock buildx, a real registry, and skopeo to read what was written."""

import asyncio
import base64
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from husk.runtime.emulators import registered
from tests.support.building import Builds, buildkit_builds, needs_buildx
from tests.support.daemon import Daemon
from tests.support.fake_registry import FakeRegistry, Tokens
from tests.support.images import settled, stored
from tests.support.machine import ARCHITECTURE
from tests.support.registry import PASSWORD, USERNAME, Registry, make_image, tar_of
from tests.support.waiting import wait_until

pytestmark = needs_buildx

BOTH = ("--platform", "linux/amd64,linux/arm64")
FILES = "FROM scratch\nCOPY a /\nARG TARGETARCH\nENV ARCH=$TARGETARCH\n"


@pytest.fixture
def builds(daemon: Daemon, tmp_path: Path) -> Iterator[Builds]:
    with buildkit_builds(daemon, tmp_path, {"Dockerfile": FILES, "a": "content"}) as builds:
        yield builds


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


def build(builds, *options, **more):
    return builds.docker("build", "--progress=plain", *options, str(builds.context.path), **more)


def skopeo(*arguments):
    done = subprocess.run(["skopeo", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def raw(image):
    insecure = ["--tls-verify=false"] if image.startswith("docker:") else []
    return json.loads(skopeo("inspect", "--raw", *insecure, image))


def archs(index):
    return [each["platform"]["architecture"] for each in index["manifests"]]


def test_several_outputs_of_several_platforms(builds, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    build(
        builds, *BOTH, "-t", "app:1",
        "-o", f"type=tar,dest={out}/files.tar", "-o", f"type=local,dest={out}/files",
        "-o", f"type=oci,dest={out}/oci.tar", "-o", f"type=oci,dest={out}/layout,tar=false",
    )  # fmt: skip
    with tarfile.open(out / "files.tar") as archive:
        assert {"linux_amd64/a", "linux_arm64/a"} <= set(archive.getnames())
    assert (out / "files/linux_arm64/a").read_text() == "content"
    in_tar, in_directory = raw(f"oci-archive:{out}/oci.tar"), raw(f"oci:{out}/layout")
    # Of several platforms each has what is stated about it, as buildx asks for.
    assert archs(in_tar) == archs(in_directory) == ["amd64", "arm64", "unknown", "unknown"]
    assert "docker.io/library/app:1" in (out / "layout/index.json").read_text()
    skopeo("copy", "--all", f"oci-archive:{out}/oci.tar", f"dir:{out}/copied")
    assert "Loaded image: app:1" in builds.docker("load", "-i", f"{out}/oci.tar").stdout


def test_archives_for_docker_and_for_standard_output(builds, tmp_path):
    build(builds, "-o", f"type=docker,dest={tmp_path}/app.tar,name=app:2")
    assert "Loaded image: app:2" in builds.docker("load", "-i", f"{tmp_path}/app.tar").stdout
    assert "ARCH=" in skopeo("inspect", "--config", f"docker-archive:{tmp_path}/app.tar")
    for output in ("-", "type=tar,dest=-"):
        files = build(builds, "-o", output).stdout
        assert files.startswith("a\0") and "content" in files
    refused = build(builds, *BOTH, "-o", f"type=docker,dest={tmp_path}/no.tar", check=False)
    assert "manifest lists" in refused.stderr


def test_an_index_in_the_store(builds, daemon, registry, tmp_path):
    before = settled(daemon)
    name = f"{registry.host}/several:1"
    build(builds, *BOTH, "-t", name, "--iidfile", f"{tmp_path}/iid")
    digest = (tmp_path / "iid").read_text()
    assert builds.config(name)["Env"][-1] == f"ARCH={ARCHITECTURE}"
    assert builds.inspect(digest)["RepoTags"] == [name]
    tree = builds.docker("images", "--tree", name).stdout
    assert "linux/amd64" in tree and "linux/arm64" in tree
    builds.docker("push", name)
    assert archs(raw(f"docker://{name}")) == ["amd64", "arm64"]
    pushed = json.loads(skopeo("inspect", "--tls-verify=false", f"docker://{name}"))
    assert f"{registry.host}/several@{pushed['Digest']}" in builds.inspect(name)["RepoDigests"]
    assert pushed["Digest"] == digest
    with open(tmp_path / "saved.tar", "wb") as file:
        subprocess.run(["docker", "-H", daemon.host, "save", name], stdout=file, check=True, timeout=60)
    assert archs(raw(f"oci-archive:{tmp_path}/saved.tar")) == ["amd64", "arm64"]
    builds.docker("rmi", name)
    builds.docker("builder", "prune", "-af")
    wait_until(lambda: stored(daemon) == before, "what was before")


def test_a_push_by_the_builder(builds, registry, tmp_path):
    first, second = f"{registry.host}/pushed:1", f"{registry.host}/again:2"
    told = build(builds, *BOTH, "-t", first, "-t", second, "--push", "--metadata-file", f"{tmp_path}/told").stderr
    assert f"pushing manifest for {second}@sha256:" in told
    told = json.loads((tmp_path / "told").read_text())
    assert told["containerimage.descriptor"]["digest"] == told["containerimage.digest"]
    assert told["image.name"] == f"{first},{second}"
    assert raw(f"docker://{first}") == raw(f"docker://{second}")
    build(builds, "-t", first, "--push", "--provenance=false", "--metadata-file", f"{tmp_path}/told")
    told = json.loads((tmp_path / "told").read_text())
    inspected = json.loads(skopeo("inspect", "--tls-verify=false", f"docker://{first}"))
    assert inspected["Digest"] == told["containerimage.digest"]
    assert raw(f"docker://{first}")["config"]["digest"] == told["containerimage.config.digest"]


def test_what_manifests_look_like(builds, registry):
    name = f"{registry.host}/looks:1"
    wishes = "oci-mediatypes=true,compression=zstd,compression-level=5"
    build(
        builds, "--provenance=false", "-o", f"type=image,push=true,{wishes},name={name}",
        "--annotation", "org.example.a=1", "--annotation", "manifest-descriptor:org.example.b=2",
    )  # fmt: skip
    manifest = raw(f"docker://{name}")
    assert manifest["annotations"] == {"org.example.a": "1"}
    assert manifest["mediaType"].startswith("application/vnd.oci.")
    assert [each["mediaType"].rpartition("+")[2] for each in manifest["layers"]] == ["zstd"]
    builds.docker("push", name)
    assert raw(f"docker://{name}") == manifest
    annotated = ("--annotation", "index:c=3", "--annotation", "manifest[linux/arm64]:d=4")
    build(builds, *BOTH, *annotated, "-o", f"type=image,push=true,name={name},compression=uncompressed")
    index = raw(f"docker://{name}")
    assert index["annotations"] == {"c": "3"}
    arm = raw(f"docker://{registry.host}/looks@{index['manifests'][1]['digest']}")
    assert (arm["annotations"], arm["layers"][0]["mediaType"].endswith("tar")) == ({"d": "4"}, True)


def test_pushes_without_a_tag_and_without_a_place_in_the_store(builds, daemon, registry, tmp_path):
    builds.docker("buildx", "create", "--name", "remote", "--driver", "remote", daemon.host)
    output = f"type=image,name={registry.host}/nameless,push=true,push-by-digest=true,name-canonical=true,store=false"
    build(builds, "--builder", "remote", "--provenance=false", "-o", output, "--metadata-file", f"{tmp_path}/told")
    digest = json.loads((tmp_path / "told").read_text())["containerimage.digest"]
    assert raw(f"docker://{registry.host}/nameless@{digest}")["config"]
    assert "nameless" not in builds.docker("images", "-a").stdout


def test_credentials_are_the_client_s(builds, tmp_path):
    with Registry(login=True) as registry:
        name = f"{registry.host}/private:1"
        refused = build(builds, "-t", name, "--push", check=False)
        assert f"failed to push {name}" in refused.stderr
        builds.docker("login", "-u", USERNAME, "--password-stdin", registry.host, input=PASSWORD)
        build(builds, "-t", name, "--push")
        builds.docker("rmi", name)
        builds.run(f"FROM {name}\nENV based=on\n")
        assert builds.config()["Env"][-1] == "based=on"


async def test_tokens_are_fetched_by_the_client(builds):
    async with FakeRegistry(tokens=Tokens("u", "secret")) as fake:
        fake.add("base", "1", make_image([tar_of({"a": b"b"})]))
        auth = base64.b64encode(b"u:secret").decode()
        config = {"auths": {fake.host: {"auth": auth}}}
        (builds.config_directory / "config.json").write_text(json.dumps(config))
        await asyncio.to_thread(builds.run, f"FROM {fake.host}/base:1\nENV based=on\n")
        asked = fake.asked("/token")
    assert builds.config()["Env"][-1] == "based=on"
    assert asked and not any("husk" in headers.get("User-Agent", "").lower() for headers in asked)


def test_the_same_image_whenever_it_is_built(builds):
    dockerfile = "FROM busybox\nRUN date +%N > /dev/null; mkdir /new; echo x > /new/x\nCOPY a /copied/\n"
    epoch = {"SOURCE_DATE_EPOCH": "1700000000"}
    ids = set()
    for content in ("content", "content"):
        builds.context.write({"Dockerfile": dockerfile, "a": content})
        build(builds, "--no-cache", "-t", "same", env=epoch)
        ids.add(builds.inspect("same")["Id"])
    classic = {"DOCKER_BUILDKIT": "0", **epoch}
    argument = f"SOURCE_DATE_EPOCH={epoch['SOURCE_DATE_EPOCH']}"
    build_classic = ("build", "--no-cache", "--build-arg", argument, "-t", "classic", str(builds.context.path))
    builds.docker(*build_classic, env=classic)
    ids.add(builds.inspect("classic")["Id"])
    assert len(ids) == 1
    assert builds.inspect("same")["Created"] == "2023-11-14T22:13:20Z"
    assert set(builds.sh("stat -c %Y /new /new/x /copied /copied/a", "same").split()) == {"1700000000"}
    build(builds, "-o", "type=image,name=kept,rewrite-timestamp=false", env=epoch)
    assert "1700000000" not in builds.sh("stat -c %Y /new", "kept")


def test_what_cannot_be_is_told(builds, daemon):
    before = settled(daemon)
    for output, complaint in (
        ("type=image,name=x,compression=lzma", "unsupported layer compression type"),
        ("type=image,name=x,annotation-index.a=b", "index annotations not supported"),
        ("type=image,name=x,store=perhaps", "non-bool value"),
    ):
        assert complaint in build(builds, "-o", output, check=False).stderr
    builds.context.write({"Dockerfile": 'FROM scratch\nCOPY a /\nRUN ["/a"]\n'})
    if "qemu-s390x" not in registered():
        foreign = build(builds, "--platform", "linux/s390x", check=False)
        assert "install qemu-user-static" in foreign.stderr
    builds.docker("builder", "prune", "-af")
    wait_until(lambda: stored(daemon) == before, "what was before")


def test_the_platforms_of_the_host_are_listed(builds):
    assert f"linux/{ARCHITECTURE}" in builds.docker("buildx", "inspect").stdout
