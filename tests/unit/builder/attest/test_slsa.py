"""Documents of provenance."""

import json

import pytest
from msgspec import structs

from husk.builder.attest.slsa import Captured, Granted, Material, ProvenanceRun, document, image_uri, type_of
from husk.builder.attest.wanted import Provenance
from husk.registry import reference
from husk.registry.manifest import Descriptor, Platform

RUN = ProvenanceRun(id="r", platform="linux/amd64", started=10**18, finished=10**18 + 1, config={"llbDefinition": [1]})
CAPTURED = Captured(
    frontend="dockerfile.v0",
    attributes={
        "filename": "Dockerfile",
        "build-arg:A": "1",
        "label:l": "m",
        "target": "t",
        "platform": "linux/amd64",
        "attest:provenance": "mode=min",
        "vcs:revision": "abc",
        "vcs:source": "https://me:secret@host/x",
        "vcs:localdir:context": "",
    },
    materials=[Material("pkg:docker/x@1", "sha256:aa"), Material("gone")],
    locals=["context"],
    secrets=[Granted("key", optional=True)],
    agents=[Granted("default")],
    network=True,
)
MIN = Provenance(everything=False)


def told(wanted: Provenance, captured: Captured = CAPTURED, run: ProvenanceRun = RUN, **more):
    return json.loads(document(wanted, captured, run, **more))


def test_everything_in_the_older_form():
    said = told(Provenance(builder="me", reproducible=True))
    assert said["builder"] == {"id": "me"}
    assert said["materials"] == [{"uri": "pkg:docker/x@1", "digest": {"sha256": "aa"}}, {"uri": "gone"}]
    assert said["invocation"] == {
        "configSource": {"entryPoint": "Dockerfile"},
        "parameters": {
            "frontend": "dockerfile.v0",
            "args": {"build-arg:A": "1", "label:l": "m", "target": "t"},
            "secrets": [{"id": "key", "optional": True}],
            "ssh": [{"id": "default"}],
            "locals": [{"name": "context"}],
        },
        "environment": {"platform": "linux/amd64"},
    }
    assert said["buildConfig"] == {"llbDefinition": [1]}
    metadata = said["metadata"]
    assert metadata["completeness"] == {"parameters": True, "environment": True, "materials": False}
    assert (metadata["buildInvocationID"], metadata["reproducible"]) == ("r", True)
    vcs = metadata["https://mobyproject.org/buildkit@v1#metadata"]["vcs"]
    assert vcs == {"revision": "abc", "source": "https://xxxxx:xxxxx@host/x"}
    assert "https://mobyproject.org/buildkit@v1#hermetic" not in metadata


def test_as_little_as_possible_in_the_newer_form():
    wanted = structs.replace(MIN, version="v1")
    assert type_of(wanted) == "https://slsa.dev/provenance/v1"
    said = told(wanted, run=structs.replace(RUN, config={}))
    external = said["buildDefinition"]["externalParameters"]
    assert external["configSource"] == {"path": "Dockerfile"}
    assert external["request"] == {
        "frontend": "dockerfile.v0",
        "args": {"target": "t"},
        "locals": [{"name": "context"}],
    }
    assert said["buildDefinition"]["internalParameters"] == {"builderPlatform": "linux/amd64"}
    metadata = said["runDetails"]["metadata"]
    assert metadata["buildkit_completeness"] == {"request": False, "resolvedDependencies": False}


def test_a_build_of_nothing_but_what_has_digests_is_hermetic():
    captured = Captured(frontend="dockerfile.v0", materials=[Material("pkg:docker/x@1", "sha256:aa")])
    metadata = told(MIN, captured)["metadata"]
    assert metadata["completeness"] == {"parameters": True, "environment": True, "materials": True}
    assert metadata["https://mobyproject.org/buildkit@v1#hermetic"] is True


@pytest.mark.parametrize(
    ("context", "uri", "shown"),
    [
        ("https://host/x.git#main:sub", "https://host/x.git#main", "https://host/x.git#main:sub"),
        ("https://me:secret@host/x.tar", "https://xxxxx:xxxxx@host/x.tar", "https://xxxxx:xxxxx@host/x.tar"),
    ],
)
def test_the_context_is_where_the_configuration_comes_from(context, uri, shown):
    captured = Captured(frontend="f", attributes={"context": context}, materials=[Material(uri, "sha1:bb")])
    invocation = told(MIN, captured)["invocation"]
    assert invocation["configSource"] == {"uri": shown, "digest": {"sha1": "bb"}}
    assert "args" not in invocation["parameters"]


def test_layers_of_outputs():
    layer = Descriptor(media_type="m", digest="sha256:cc", size=3)
    metadata = told(Provenance(), layers={"step0:0": [layer]})["metadata"]
    layers = metadata["https://mobyproject.org/buildkit@v1#metadata"]["layers"]
    assert layers == {"step0:0": [[{"mediaType": "m", "digest": "sha256:cc", "size": 3}]]}


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("busybox:1", "pkg:docker/busybox@1?platform=linux%2Farm64%2Fv8"),
        (
            f"h:5000/a/b@sha256:{'a' * 64}",
            f"pkg:docker/h:5000/a/b?digest=sha256:{'a' * 64}&platform=linux%2Farm64%2Fv8",
        ),
    ],
)
def test_names_of_images(name, uri):
    assert image_uri(reference.parse(name), Platform("arm64", "linux", "v8")) == uri
