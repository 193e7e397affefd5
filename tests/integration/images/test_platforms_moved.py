"""An image for several platforms goes in and out, whole or in part: layouts, archives, registries, skopeo."""

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.daemon import Answer, Daemon
from tests.support.machine import FOREIGN
from tests.support.platforms import OTHER, OWN, S390X, Platforms, blobs_of, in_registry, inspect, load, push, save
from tests.support.registry import (
    OCI_INDEX,
    OCI_MANIFEST,
    Registry,
    digest_of,
    make_image,
    make_index,
    tar_of,
)

pytestmark = pytest.mark.usefixtures("all_gone")


def test_a_layout_comes_out_as_it_went_in(daemon: Daemon) -> None:
    both = Platforms(attested=True)
    told = load(daemon, both.layout("docker.io/library/laid:1"))
    assert told.status == 200 and b"Loaded image: laid:1" in told.body
    files = save(daemon, "laid:1")
    assert blobs_of(files) == both.blobs()
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert (entry["digest"], entry["mediaType"]) == (both.digest, OCI_INDEX)
    (docker,) = json.loads(files["manifest.json"])
    assert docker["Config"] == "blobs/sha256/" + both.own.config_digest[7:]
    assert docker["RepoTags"] == ["laid:1"]
    kinds = [(m["Kind"], m["Available"]) for m in inspect(daemon, "laid:1", "?manifests=1")["Manifests"]]
    assert kinds == [("image", True), ("image", True), ("attestation", True)]
    daemon.docker("rmi", "laid:1")
    archive = daemon.directory / "again.tar"
    with tarfile.open(archive, "w") as tar:
        for path, body in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    daemon.docker("load", "-i", str(archive))
    assert blobs_of(save(daemon, "laid:1")) == both.blobs()
    archive.unlink()


def test_what_is_missing_in_a_layout_stays_a_reference(daemon: Daemon) -> None:
    both = Platforms()
    load(daemon, both.layout("docker.io/library/half:1", both.other))
    shown = inspect(daemon, "half:1", "?manifests=1")
    assert shown["Id"] == both.other.config_digest, "the only one that is here"
    assert [m["Available"] for m in shown["Manifests"]] == [False, True]
    assert blobs_of(save(daemon, "half:1")) == both.blobs(both.other)
    load(daemon, both.layout("docker.io/library/half:1", both.own))
    shown = inspect(daemon, "half:1", "?manifests=1")
    assert shown["Id"] == both.own.config_digest
    assert [m["Available"] for m in shown["Manifests"]] == [True, True]


def test_statements_about_an_image(daemon: Daemon) -> None:
    both = Platforms(attested=True)
    load(daemon, both.layout("docker.io/library/attested:1"))
    (statement,) = [body for body in both.attestation.values() if b"predicateType" in body]
    kind = "https://slsa.dev/provenance/v0.2"

    def ask(query: str = "", name: str = "attested:1") -> Answer:
        return daemon.http("GET", f"/images/{name}/attestations{query}")

    (shown,) = ask().json()
    assert shown == {
        "Descriptor": {
            "mediaType": "application/vnd.in-toto+json", "digest": digest_of(statement), "size": len(statement),
            "annotations": {"in-toto.io/predicate-type": kind},
        },
        "PredicateType": kind,
    }  # fmt: skip
    assert ask(f"?statement=1&type={kind}&platform={OWN}").json() == [shown | {"Statement": json.loads(statement)}]
    assert ask("?type=another").json() == ask(f"?platform={OTHER}").json() == ask(name="busybox").json() == []
    assert (ask(f"?platform={S390X}").status, ask(name="nobody").status) == (404, 404)
    assert (ask("?platform=x").status, ask(f"?platform={OWN}&platform={OTHER}").status) == (400, 400)


def test_some_platforms_can_be_saved_and_loaded(daemon: Daemon) -> None:
    both = Platforms()
    archive = both.layout("docker.io/library/some:1")
    load(daemon, archive)
    alone = save(daemon, "some:1", OTHER)
    assert blobs_of(alone) == {both.other.digest: both.other.manifest} | both.other.blobs
    (entry,) = json.loads(alone["index.json"])["manifests"]
    assert entry["digest"] == both.other.digest
    assert blobs_of(save(daemon, "some:1", OTHER, OWN)) == both.blobs()
    assert daemon.http("GET", f"/images/some:1/get?platform={S390X}").status == 404
    daemon.docker("rmi", "some:1")
    load(daemon, archive, f"?platform={OTHER}")
    assert [m["Available"] for m in inspect(daemon, "some:1", "?manifests=1")["Manifests"]] == [False, True]
    refused = load(daemon, archive, f"?platform={S390X}&quiet=1")
    assert refused.json()["error"] == "requested platform (linux/s390x) not found"
    load(daemon, archive, f"?platform={OTHER}&platform={OWN}")
    assert [m["Available"] for m in inspect(daemon, "some:1", "?manifests=1")["Manifests"]] == [True, True]


def test_a_push_of_all_platforms_keeps_the_index(daemon: Daemon, registry: Registry) -> None:
    both = Platforms(attested=True)
    name = f"{registry.host}/pushed/all:1"
    load(daemon, both.layout(name))
    told = push(daemon, f"{registry.host}/pushed/all", "?tag=1")
    assert told[-1]["aux"] == {"Tag": "1", "Digest": both.digest, "Size": len(both.index)}
    assert in_registry(registry, "pushed/all", "1") == (both.digest, OCI_INDEX)
    for digest in (both.own.digest, both.other.digest, *both.attestation):
        found = any(
            registry.request("GET", f"/v2/pushed/all/{kind}/{digest}", headers={"Accept": OCI_MANIFEST})[0] == 200
            for kind in ("manifests", "blobs")
        )
        assert found, digest
    assert inspect(daemon, name)["RepoDigests"] == [f"{registry.host}/pushed/all@{both.digest}"]
    daemon.docker("rmi", name)
    daemon.docker("pull", "--platform", f"linux/{FOREIGN}", name)
    assert inspect(daemon, name)["Id"] == both.other.config_digest


def test_a_push_without_all_platforms_sends_one(daemon: Daemon, registry: Registry) -> None:
    both = Platforms()
    daemon.docker("pull", both.put(registry, "source", "1"))
    name = f"{registry.host}/pushed/part"
    daemon.docker("tag", f"{registry.host}/source:1", f"{name}:1")
    told = push(daemon, name, "?tag=1")
    (instead,) = [t["aux"] for t in told if "aux" in t and "manifestPushedInsteadOfIndex" in t["aux"]]
    assert instead["originalIndex"]["digest"] == both.digest
    assert instead["selectedManifest"]["digest"] == both.own.digest
    assert in_registry(registry, "pushed/part", "1") == (both.own.digest, OCI_MANIFEST)
    refused = push(daemon, name, f"?tag=1&platform={OTHER}")
    assert f"does not provide the specified platform (linux/{FOREIGN})" in refused[-1]["error"]
    daemon.docker("pull", "--platform", f"linux/{FOREIGN}", f"{registry.host}/source:1")
    daemon.docker("tag", f"{name}:1", f"{name}:other")
    push(daemon, name, f"?tag=other&platform={OTHER}")
    assert in_registry(registry, "pushed/part", "other") == (both.other.digest, OCI_MANIFEST)
    push(daemon, name, "?tag=1")
    assert in_registry(registry, "pushed/part", "1") == (both.digest, OCI_INDEX), "all of it is here now"


def test_a_push_does_not_guess_between_foreign_platforms(daemon: Daemon, registry: Registry) -> None:
    three = Platforms()
    s390x = make_image([tar_of({"platform": b"s390x"})], architecture="s390x")
    three.index = make_index([three.own, three.other, s390x])[0]
    name = f"{registry.host}/pushed/guess"
    load(daemon, three.layout(f"{name}:1", three.other, s390x))
    told = push(daemon, name, "?tag=1")
    assert told[-1]["error"] == "multiple matching manifests found but no specific platform requested"
    push(daemon, name, f"?tag=1&platform={S390X}")
    assert in_registry(registry, "pushed/guess", "1") == (s390x.digest, OCI_MANIFEST)


def test_skopeo_copies_all_platforms_both_ways(daemon: Daemon, registry: Registry, tmp_path: Path) -> None:
    both = Platforms()
    name = both.put(registry, "copied", "1")

    def skopeo(*arguments: str) -> None:
        done = subprocess.run(["skopeo", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    archive, back = tmp_path / "a.tar", tmp_path / "b.tar"
    insecure = ["--src-tls-verify=false", "--dest-tls-verify=false"]
    skopeo("copy", "--all", *insecure, f"docker://{name}", f"oci-archive:{archive}:docker.io/library/copied:1")
    daemon.docker("load", "-i", str(archive))
    assert inspect(daemon, "copied:1")["Descriptor"]["digest"] == both.digest
    daemon.docker("save", "-o", str(back), "copied:1")
    target = f"docker://{registry.host}/copied:back"
    skopeo("copy", "--all", *insecure, f"oci-archive:{back}", target)
    assert in_registry(registry, "copied", "back") == (both.digest, OCI_INDEX)
