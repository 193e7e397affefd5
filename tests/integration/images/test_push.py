"""Push to a real registry: digests that stay, layers that are not sent twice, logins, tokens and broken connections."""

import base64
import contextlib
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon import Answer, Daemon
from tests.support.images import busybox_layer, forget_images
from tests.support.registry import PASSWORD, USERNAME, Compression, Media, Registry, push_image, tar_of

MANIFESTS = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"


@pytest.fixture(autouse=True)
def only_busybox(daemon: Daemon) -> Iterator[None]:
    yield
    forget_images(daemon)


def push(daemon: Daemon, name: str, tag: str = "", auth: dict[str, str] | None = None) -> list[dict[str, Any]]:
    headers = {"X-Registry-Auth": base64.urlsafe_b64encode(json.dumps(auth or {}).encode()).decode()}
    answer = daemon.http("POST", f"/v1.47/images/{name}/push" + (f"?tag={tag}" if tag else ""), headers=headers)
    assert answer.status == 200, answer.body
    return records(answer)


def records(answer: Answer) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.body.splitlines()]


def statuses(told: list[dict[str, Any]]) -> list[str]:
    return [record["status"] for record in told if "status" in record]


def manifest(registry: Registry, name: str, tag: str) -> tuple[str, dict[str, Any]]:
    status, headers, body = registry.request("GET", f"/v2/{name}/manifests/{tag}", headers={"Accept": MANIFESTS})
    assert status == 200, body
    return headers["Docker-Content-Digest"], json.loads(body)


def committed(daemon: Daemon, name: str, script: str = "echo new > /new", base: str = "busybox") -> None:
    daemon.docker("run", "--name", "made", base, "sh", "-c", script)
    daemon.docker("commit", "made", name)
    daemon.remove_containers()


@pytest.mark.parametrize("compression", ["gzip", "zstd", "none"])
@pytest.mark.parametrize("media", ["oci", "docker"])
def test_a_pulled_image_keeps_its_digests(
    daemon: Daemon, registry: Registry, media: Media, compression: Compression
) -> None:
    layers = [busybox_layer(), tar_of({f"etc/{media}": compression.encode()})]
    image = push_image(registry, f"same/{media}-{compression}", "1", layers, media=media, compression=compression)
    daemon.docker("pull", "-q", f"{registry.host}/same/{media}-{compression}:1")
    copy = f"{registry.host}/copy/{media}-{compression}"
    daemon.docker("tag", f"{registry.host}/same/{media}-{compression}:1", f"{copy}:2")
    told = push(daemon, copy, "2")
    assert told[-1]["aux"] == {"Tag": "2", "Digest": image.digest, "Size": len(image.manifest)}
    assert manifest(registry, f"copy/{media}-{compression}", "2")[0] == image.digest
    assert f"{copy}@{image.digest}" in daemon.http("GET", f"/images/{copy}:2/json").json()["RepoDigests"]


def test_the_records_of_a_push(daemon: Daemon, registry: Registry) -> None:
    name = f"{registry.host}/told/app"
    committed(daemon, f"{name}:1")
    told = push(daemon, name, "1")
    layers = [layer.removeprefix("sha256:")[:12] for layer in layers_of(daemon, f"{name}:1")]
    assert told[0] == {"status": f"The push refers to repository [{name}]"}
    for layer in layers:
        own = [record for record in told if record.get("id") == layer]
        assert own[0] == {"status": "Preparing", "progressDetail": {}, "id": layer}
        assert own[-1] == {"status": "Pushed", "progressDetail": {}, "id": layer}
        pushing = [record for record in own if record["status"] == "Pushing"]
        assert all(set(record["progressDetail"]) == {"current", "total"} for record in pushing)
    aux = told[-1]["aux"]
    assert told[-1] == {"progressDetail": {}, "aux": {"Tag": "1", "Digest": aux["Digest"], "Size": aux["Size"]}}
    assert told[-2] == {"status": f"1: digest: {aux['Digest']} size: {aux['Size']}"}
    again = push(daemon, name, "1")
    assert statuses(again).count("Layer already exists") == len(layers)
    assert again[-1] == told[-1]


def layers_of(daemon: Daemon, name: str) -> list[str]:
    layers: list[str] = daemon.http("GET", f"/images/{name}/json").json()["RootFS"]["Layers"]
    return layers


def test_a_committed_image_is_compressed_always_alike(daemon: Daemon, registry: Registry) -> None:
    name = f"{registry.host}/made/app"
    committed(daemon, f"{name}:1", "head -c 3000000 /dev/zero > /zeros")
    digest = push(daemon, name, "1")[-1]["aux"]["Digest"]
    found, document = manifest(registry, "made/app", "1")
    assert found == digest
    assert document["mediaType"] == "application/vnd.docker.distribution.manifest.v2+json"
    assert {layer["mediaType"] for layer in document["layers"]} == {"application/vnd.docker.image.rootfs.diff.tar.gzip"}
    assert document["layers"][-1]["size"] < 100_000
    with Registry() as other:
        daemon.docker("tag", f"{name}:1", f"{other.host}/elsewhere:1")
        assert push(daemon, f"{other.host}/elsewhere", "1")[-1]["aux"]["Digest"] == digest, "it was compressed anew"
    image_id = daemon.http("GET", f"/images/{name}:1/json").json()["Id"]
    forget_images(daemon)
    daemon.docker("pull", "-q", f"{name}:1")
    assert daemon.http("GET", f"/images/{name}:1/json").json()["Id"] == image_id
    assert daemon.docker("run", "--rm", f"{name}:1", "wc", "-c", "/zeros").stdout.split()[0] == "3000000"


def test_a_layer_of_another_repository_is_mounted(daemon: Daemon, registry: Registry) -> None:
    push_image(registry, "base/app", "1", [busybox_layer(), tar_of({"etc/mount": b"me"})])
    daemon.docker("pull", "-q", f"{registry.host}/base/app:1")
    committed(daemon, f"{registry.host}/upon/it:1", base=f"{registry.host}/base/app:1")
    told = statuses(push(daemon, f"{registry.host}/upon/it", "1"))
    assert told.count("Mounted from base/app") == 2
    assert told.count("Pushed") == 1


def test_all_tags_at_once(daemon: Daemon, registry: Registry) -> None:
    name = f"{registry.host}/many/tags"
    for tag in ("1", "2", "latest"):
        committed(daemon, f"{name}:{tag}", f"echo {tag} > /tag")
    daemon.docker("tag", f"{name}:1", f"{registry.host}/many/other:9")
    done = daemon.docker("push", "--all-tags", name)
    assert all(f"{tag}: digest: sha256:" in done.stdout for tag in ("1", "2", "latest"))
    status, _, body = registry.request("GET", "/v2/many/tags/tags/list")
    assert status == 200 and sorted(json.loads(body)["tags"]) == ["1", "2", "latest"]
    assert registry.request("GET", "/v2/many/other/tags/list")[0] == 404


def test_what_is_not_here_cannot_be_pushed(daemon: Daemon, registry: Registry) -> None:
    failed = daemon.docker("push", f"{registry.host}/no/such:1", check=False)
    assert failed.returncode == 1
    assert f"An image does not exist locally with the tag: {registry.host}/no/such" in failed.stderr
    daemon.docker("tag", "busybox", f"{registry.host}/has/one:1")
    failed = daemon.docker("push", f"{registry.host}/has/one:2", check=False)
    assert f"tag does not exist: {registry.host}/has/one:2" in failed.stderr
    assert daemon.http("POST", f"/images/busybox@sha256:{'0' * 64}/push").status == 400


def test_a_registry_that_wants_a_login(daemon: Daemon) -> None:
    with Registry(login=True) as closed:
        name = f"{closed.host}/secret/app"
        daemon.docker("tag", "busybox", f"{name}:1")
        assert "no basic auth credentials" in push(daemon, name, "1")[-1]["error"]
        wrong = push(daemon, name, "1", {"username": USERNAME, "password": "wr0ng-pass"})
        assert wrong[-1]["error"] == "unauthorized: authentication required"
        told = push(daemon, name, "1", {"username": USERNAME, "password": PASSWORD, "serveraddress": closed.host})
        assert told[-1]["aux"]["Tag"] == "1"
        daemon.docker("login", "-u", USERNAME, "--password-stdin", closed.host, input=PASSWORD)
        assert "2: digest: sha256:" in daemon.docker("push", retag(daemon, f"{name}:1", f"{name}:2")).stdout
    log = daemon.log_path.read_text()
    assert PASSWORD not in log and "wr0ng-pass" not in log
    assert base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode() not in log


def retag(daemon: Daemon, old: str, new: str) -> str:
    daemon.docker("tag", old, new)
    return new


def test_the_sdk_pushes(daemon: Daemon, registry: Registry) -> None:
    with contextlib.closing(daemon.sdk()) as client:
        client.images.get("busybox").tag(f"{registry.host}/sdk/app", "7")
        told = list(client.images.push(f"{registry.host}/sdk/app", tag="7", stream=True, decode=True))
    assert any("aux" in record for record in told)


def test_skopeo_takes_what_husk_pushed_and_husk_what_skopeo_copied(daemon: Daemon, registry: Registry) -> None:
    name = f"{registry.host}/skopeo/app"
    committed(daemon, f"{name}:1")
    push(daemon, name, "1")
    skopeo("copy", "--src-tls-verify=false", "--dest-tls-verify=false", f"docker://{name}:1", f"docker://{name}:2")
    seen = json.loads(skopeo("inspect", "--tls-verify=false", f"docker://{name}:2"))
    assert len(seen["Layers"]) == 2
    skopeo(
        "copy", "-f", "oci", "--src-tls-verify=false", "--dest-tls-verify=false", f"docker://{name}:1",
        f"docker://{name}:oci",
    )  # fmt: skip
    daemon.docker("pull", "-q", f"{name}:oci")
    assert daemon.docker("run", "--rm", f"{name}:oci", "cat", "/new").stdout == "new\n"


def skopeo(*arguments: str) -> str:
    done = subprocess.run(["skopeo", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
