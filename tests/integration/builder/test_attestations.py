"""Statements about results, with the stock buildx and a real registry: provenance, and what is in an image."""

import hashlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.building import Builds, Context, buildkit_builds, needs_buildx
from tests.support.daemon import Daemon
from tests.support.machine import ARCHITECTURE
from tests.support.registry import Registry
from tests.support.repositories import Repository, git_daemon
from tests.support.web import WebServer

pytestmark = needs_buildx

DOCKERFILE = """FROM busybox
ARG A
RUN --network=none --mount=type=secret,id=key,required=false true
COPY a /
"""
PLATFORM = f"?platform=linux%2F{ARCHITECTURE}"
SPDX = "https://spdx.dev/Document"
SCANNER = """FROM busybox
COPY <<EOF /statement
{"_type": "https://in-toto.io/Statement/v0.1", "predicateType": "https://spdx.dev/Document", "predicate": {"name": "N"}}
EOF
ENTRYPOINT ["sh", "-c", "sed s/N/$(cat $BUILDKIT_SCAN_SOURCE/a)$BUILDKIT_SCAN_MORE/ /statement \
  > $BUILDKIT_SCAN_DESTINATION/sbom.spdx.json"]
"""
# One that tells of all that it is shown.
MANY_SCANNER = """FROM busybox
COPY <<EOF /statement
{"_type": "https://in-toto.io/Statement/v0.1", "predicateType": "https://spdx.dev/Document", "predicate": {"name": "N"}}
EOF
COPY --chmod=755 <<"EOF" /scan
#!/bin/sh
cp /statement $BUILDKIT_SCAN_DESTINATION/sbom.spdx.json
for one in $BUILDKIT_SCAN_SOURCE_EXTRAS/*; do
  sed "s/N/$(cat $one/name)/" /statement > $BUILDKIT_SCAN_DESTINATION/$(basename $one).spdx.json
done
EOF
ENTRYPOINT ["/scan"]
"""
STAGES = """FROM busybox AS one
ARG BUILDKIT_SBOM_SCAN_STAGE=true
RUN echo -n of one > /name
FROM scratch
COPY --from=one /name /a
COPY a /
"""


@pytest.fixture
def builds(daemon: Daemon, tmp_path: Path) -> Iterator[Builds]:
    with buildkit_builds(daemon, tmp_path, {"Dockerfile": DOCKERFILE, "a": "content"}) as builds:
        yield builds


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


def build(builds: Builds, *options: str, **more: Any) -> Any:
    return builds.docker("build", "--progress=plain", *options, str(builds.context.path), **more)


def stated(archive: Path) -> dict[str, Any]:
    """The statements of an image in an archive, by their types."""
    with tarfile.open(archive) as tar:
        blobs = [tar.extractfile(one) for one in tar if one.isfile() and "blobs/" in one.name]
        bodies = [file.read() for file in blobs if file]
    found = [json.loads(body) for body in bodies if body.startswith(b'{"_type"')]
    return {one["predicateType"]: one for one in found}


def test_a_push_tells_where_it_comes_from(builds, registry, tmp_path):
    """Without being asked, as buildx wants it: but no values of arguments."""
    name, told = f"{registry.host}/attested:1", tmp_path / "told"
    build(builds, "-t", name, "--push", "--build-arg", "A=value", "--metadata-file", str(told))
    shown = builds.docker("buildx", "imagetools", "inspect", name, "--format", "{{json .Provenance}}").stdout
    provenance = json.loads(shown)["SLSA"]
    (material,) = provenance["materials"]
    assert material["uri"] == f"pkg:docker/busybox@latest{PLATFORM}"
    assert len(material["digest"]["sha256"]) == 64
    parameters = provenance["invocation"]["parameters"]
    assert parameters == {"frontend": "dockerfile.v0", "locals": [{"name": "context"}, {"name": "dockerfile"}]}
    assert provenance["metadata"]["completeness"] == {"parameters": False, "environment": True, "materials": False}
    assert json.loads(told.read_text())["buildx.build.provenance"]["materials"] == [material]
    history = builds.docker("buildx", "history", "inspect").stdout
    assert [material["uri"], f"sha256:{material['digest']['sha256']}"] in [
        line.split() for line in history.splitlines()
    ]
    build(builds, "-t", name, "--push", "--provenance=false")
    raw = json.loads(builds.docker("buildx", "imagetools", "inspect", "--raw", name).stdout)
    assert "manifests" not in raw


def test_everything_about_a_build(builds, tmp_path):
    out = tmp_path / "out.tar"
    asked = "--attest=type=provenance,mode=max,builder-id=urn:me,version=v1"
    build(builds, asked, "--build-arg", "A=value", "-o", f"type=oci,dest={out}")
    provenance = stated(out)["https://slsa.dev/provenance/v1"]["predicate"]
    definition, run = provenance["buildDefinition"], provenance["runDetails"]
    request = definition["externalParameters"]["request"]
    assert request["args"] == {"build-arg:A": "value"}
    assert request["secrets"] == [{"id": "key", "optional": True}]
    steps = {one["id"]: one for one in definition["internalParameters"]["buildConfig"]["llbDefinition"]}
    step = next(one for one in steps.values() if "exec" in one["op"]["Op"])
    assert step["inputs"] == ["step0:0"]
    assert "A=value" in step["op"]["Op"]["exec"]["meta"]["env"]
    metadata = run["metadata"]["buildkit_metadata"]
    assert run["builder"] == {"id": "urn:me"}
    lines = metadata["source"]["locations"][step["id"]]["locations"][0]["ranges"]
    assert lines == [{"start": {"line": 3}, "end": {"line": 3}}]
    ((layers,),) = (metadata["layers"][output] for output in (f"step{len(steps) - 2}:0",))
    with tarfile.open(out) as tar:
        assert f"blobs/sha256/{layers[-1]['digest'][7:]}" in tar.getnames()


def test_what_is_in_an_image(builds, tmp_path):
    scanner = tmp_path / "scanner"
    Context(scanner).write({"Dockerfile": SCANNER})
    builds.docker("build", "-t", "scanner", str(scanner))
    out = tmp_path / "out.tar"
    build(builds, "--attest=type=sbom,generator=scanner,MORE=more", "-o", f"type=oci,dest={out}")
    statement = stated(out)[SPDX]
    assert statement["predicate"] == {"name": "contentmore"}
    failed = build(builds, "--sbom=generator=127.0.0.1:1/none", check=False)
    assert "the SBOM generator 127.0.0.1:1/none:latest cannot be had: " in failed.stderr
    failed = build(builds, "--sbom=generator=busybox", "-o", f"type=oci,dest={out}", check=False)
    assert failed.returncode == 0, failed.stderr  # it writes nothing, so nothing is stated


def test_an_image_that_stays_here_is_plain(builds, daemon):
    build(builds, "-t", "built")
    plain = builds.inspect()
    assert "exporting manifest" not in build(builds, "-t", "built").stderr
    assert builds.inspect()["Id"] == plain["Id"]
    failed = build(builds, "--provenance=mode=some", check=False)
    assert 'invalid mode "some"' in failed.stderr


def test_sources_from_elsewhere_are_materials(builds, tmp_path):
    place = tmp_path / "served"
    place.mkdir()
    repository = Repository(place, "app")
    with WebServer() as web, git_daemon(place) as address:
        web.files["/file"] = b"of the web"
        commit = repository.commit({"Dockerfile": f"FROM scratch\nADD {web.url}/file /\nCOPY Dockerfile /\n"})
        out, context = tmp_path / "out.tar", f"{address}/app.git"
        builds.docker("build", "--provenance=mode=max", "-o", f"type=oci,dest={out}", context)
        expected = [
            {"uri": context, "digest": {"sha1": commit}},
            {"uri": f"{web.url}/file", "digest": {"sha256": hashlib.sha256(b"of the web").hexdigest()}},
        ]
    provenance = stated(out)["https://slsa.dev/provenance/v0.2"]["predicate"]
    assert provenance["materials"] == expected
    assert provenance["invocation"]["configSource"] == {
        "uri": context,
        "digest": {"sha1": commit},
        "entryPoint": "Dockerfile",
    }
    assert provenance["metadata"]["completeness"]["materials"] is True
    assert provenance["metadata"]["https://mobyproject.org/buildkit@v1#hermetic"] is True


def test_statements_lie_beside_the_files_that_they_are_about(builds, tmp_path):
    scanner = tmp_path / "scanner"
    Context(scanner).write({"Dockerfile": MANY_SCANNER})
    builds.docker("build", "-t", "scanner", str(scanner))
    builds.context.write({"Dockerfile": STAGES})
    attest = ("--provenance=true", "--attest=type=sbom,generator=scanner")
    build(builds, *attest, "-o", f"type=local,dest={tmp_path}/out,attestation-prefix=p-")
    stated = sorted(one.name for one in (tmp_path / "out").iterdir())
    assert stated == ["a", "p-provenance.json", "p-sbom-one.spdx.json", "p-sbom.spdx.json"]
    about = json.loads((tmp_path / "out/p-sbom-one.spdx.json").read_text())
    assert about["predicate"] == {"name": "of one"}
    assert about["subject"] == [{"name": "a", "digest": {"sha256": hashlib.sha256(b"content").hexdigest()}}]
    build(builds, *attest, "-o", f"type=tar,dest={tmp_path}/out.tar")
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert [one.name for one in tar] == ["a", "provenance.json", "sbom-one.spdx.json", "sbom.spdx.json"]
    builds.context.write({"Dockerfile": "FROM scratch\nARG TARGETARCH\nCOPY a /$TARGETARCH\n"})
    both = ("--platform=linux/amd64,linux/arm64", "--provenance=true")
    build(builds, *both, "-o", f"type=local,dest={tmp_path}/flat,platform-split=false")
    flat = sorted(one.name for one in (tmp_path / "flat").iterdir())
    assert flat == ["amd64", "arm64", "provenance.linux_amd64.json", "provenance.linux_arm64.json"]
    builds.context.write({"Dockerfile": "FROM scratch\nCOPY a /\n"})
    done = build(builds, *both, "-o", f"type=local,dest={tmp_path}/same,platform-split=false", check=False)
    assert "cannot overwrite a from linux/amd64 with linux/arm64" in done.stderr
