"""Materials: the sources that a build had."""

from typing import Any

from husk.builder.attest.materials import Materials
from husk.builder.attest.slsa import Granted, Material
from husk.builder.graph.operations import (
    Exec,
    ExecMount,
    NestedBuild,
    Operation,
    ProcessSpec,
    SecretMount,
    SecretVariable,
    Source,
    SshMount,
)
from husk.builder.solver.source_policy import DescribedImage, Resolved, ResolvedFile
from husk.errors import NotFound
from husk.registry.manifest import Platform

HERE = Platform("amd64", "linux")
COMMIT = "1" * 40


class Sources:
    async def describe(self, name: str, platform: Platform, pull: bool, watcher: Any) -> DescribedImage:
        if "gone" in name:
            raise NotFound("it has gone")
        return DescribedImage(name, "sha256:" + "d" * 64, b"")

    async def resolve(self, source: Source, watcher: Any) -> Resolved:
        return Resolved("refs/heads/main", COMMIT, COMMIT)

    async def have(self, source: Source, watcher: Any) -> Any:
        return ResolvedFile("sha256:ee", "file"), None


def source(identifier: str, **attributes: str) -> Operation:
    given = {name.replace("__", "."): value for name, value in attributes.items()}
    return Operation(Source(identifier, given), [], HERE if identifier.startswith("docker-image") else None)


async def captured(*operations: Operation) -> Any:
    sources: Any = Sources()
    return await Materials(sources, lambda: sources, lambda: sources).of(operations, None)


async def test_each_kind_by_what_it_is_known_by():
    pinned = "sha256:" + "a" * 64
    found = await captured(
        source("docker-image://docker.io/library/here:1"),
        source(f"docker-image://docker.io/library/there:2@{pinned}"),
        source(f"docker-image://{pinned}"),
        source("git://host/x.git#main", git__fullurl="https://host/x.git", git__authtokensecret="TOKEN"),
        source("https://host/file"),
        source("local://context"),
        source("local://context"),
        source("internal://"),
    )
    assert found.materials == [
        Material("https://host/file", "sha256:ee"),
        Material("https://host/x.git#main", f"sha1:{COMMIT}"),
        Material("pkg:docker/here@1?platform=linux%2Famd64", "sha256:" + "d" * 64),
        Material("pkg:docker/there@2?platform=linux%2Famd64", pinned),
        Material(f"pkg:oci/image?digest={pinned}&platform=linux%2Famd64", pinned),
    ]
    assert found.locals == ["context"]
    assert found.secrets == [Granted("TOKEN", optional=True)]
    assert not found.network
    assert not found.incomplete


async def test_what_has_gone_is_named_and_makes_it_incomplete():
    found = await captured(source("docker-image://docker.io/library/gone:1"))
    assert found.materials == [Material("docker-image://docker.io/library/gone:1")]
    assert found.incomplete


async def test_what_is_made_by_a_build_within_is_not_known():
    assert (await captured(Operation(NestedBuild(0), []))).incomplete


async def test_what_steps_may_use():
    process = ProcessSpec(args=["x"])
    secrets = [
        ExecMount(target="/s", kind=SecretMount("key", optional=True)),
        ExecMount(target="/a", kind=SshMount("")),
    ]
    quiet = Exec(process=process, mounts=secrets, network="none")
    assert not (await captured(Operation(quiet))).network
    loud = Exec(process=process, mounts=[], secret_env=[SecretVariable("key", "KEY")])
    found = await captured(Operation(quiet), Operation(loud))
    assert found.network
    assert (found.secrets, found.agents) == ([Granted("key")], [Granted("default")])
