"""Results of a Dockerfile, in the words that exporters and clients know."""

import json
from typing import Any

from husk.builder.graph.graph import SourceFile
from husk.builder.jobs.results import CONFIG, EPOCH, PLATFORMS, FrontendResult, PlatformResult, Result, result_of
from husk.engine.model.image import ImageConfig
from husk.registry.manifest import Platform

ONE, OTHER = Platform("amd64", "linux"), Platform("arm", "linux", "v7")
FILE = SourceFile("Dockerfile", b"")
REF: Any = object()


def built(platform: Platform) -> PlatformResult:
    return PlatformResult(platform, REF, ImageConfig(architecture=platform.architecture, os="linux"))


def test_one_platform_is_one_ref() -> None:
    result = result_of(FrontendResult([built(ONE)], False, FILE, [], epoch=5))
    assert result.all == [REF] and result.ref is REF
    assert json.loads(result.metadata[CONFIG])["architecture"] == "amd64"
    assert result.metadata[EPOCH] == b"5"


def test_several_platforms_have_refs_and_configurations_by_their_names() -> None:
    result = result_of(FrontendResult([built(ONE), built(OTHER)], True, FILE, []))
    assert list(result.refs) == ["linux/amd64", "linux/arm/v7"] and result.ref is None
    assert json.loads(result.metadata[f"{CONFIG}/linux/arm/v7"])["architecture"] == "arm"
    platforms = json.loads(result.metadata[PLATFORMS])["Platforms"]
    assert platforms[1] == {"ID": "linux/arm/v7", "Platform": {"architecture": "arm", "os": "linux", "variant": "v7"}}
    assert EPOCH not in result.metadata


def test_an_answer_is_all_that_there_is() -> None:
    result = result_of(FrontendResult([], False, FILE, [], answer={"result.txt": b"x"}))
    assert result == Result(metadata={"result.txt": b"x"})
