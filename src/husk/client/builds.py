"""Builds: what they may be told, and how the API is told it."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypedDict

import msgspec

from husk.client.calls import Calls
from husk.client.context import Context, dockerfile_alone
from husk.client.credentials import Auth
from husk.client.http import Content
from husk.client.image import Image
from husk.client.misspelt import require_known
from husk.client.progress import BuildProgress, build_progress
from husk.client.spec import Size, size, ulimit
from husk.errors import BuildError, CommandFailed, HuskError, InvalidParameter

_TAR = {"Content-Type": "application/x-tar"}
_ADDRESSES = ("http://", "https://", "git://", "git@", "github.com/", "ssh://")
# Limits of the containers that steps run in: docker-py's names, which are the API's.
_LIMITS = ("memory", "memswap", "cpushares", "cpusetcpus", "cpusetmems", "cpuperiod", "cpuquota")
_SIZES = ("memory", "memswap")


class BuildOptions(TypedDict, total=False):
    """The options of `images.build` and `images.building`, by docker-py's names.

    options: husk.BuildOptions = {"path": ".", "tag": "mine:1", "nocache": True}
    image = await engine.images.build(**options)
    """

    path: str | PathLike[str]  #: The directory of the context, or the address of a repository or archive
    #: The Dockerfile; with `custom_context` the whole context as a tar archive
    fileobj: bytes | str | BinaryIO | AsyncIterable[bytes]
    custom_context: bool  #: True if `fileobj` is a context
    dockerfile: str  #: The Dockerfile: its path below `path`, or an absolute one
    tag: str | Sequence[str]  #: The name of the image, or several
    target: str  #: The stage to build
    platform: str  #: The platform, as `linux/arm64`
    labels: Mapping[str, str]  #: Labels
    buildargs: Mapping[str, str | None]  #: Values of `ARG`
    nocache: bool  #: True to run all steps anew
    pull: bool  #: True to ask registries for newer base images
    cache_from: Sequence[str]  #: Images that serve as a cache
    squash: bool  #: True to make one layer of those that are new
    quiet: bool  #: True to tell the id of the image alone
    network_mode: str  #: The network of steps: `default`, `host` or `none`
    extra_hosts: Mapping[str, str] | Sequence[str]  #: More lines for `/etc/hosts`
    shmsize: Size  #: The size of `/dev/shm`: bytes, or with a unit as `64m`
    ulimits: Mapping[str, int | tuple[int, int]]  #: Limits of steps by name: a number, or (soft, hard)
    container_limits: Mapping[str, int | str]  #: Limits of steps: `memory`, `memswap`, `cpushares` and so on
    cgroup_parent: str  #: The control group above that of steps
    security_opt: Sequence[str]  #: `seccomp=…` and so on
    auths: Mapping[str, Auth]  #: `username` and `password` for each registry; docker's own files say the others


class _Images(Protocol):
    async def get(self, name: str) -> Image: ...


class Builds:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def building(self, options: BuildOptions, headers: Mapping[str, str]) -> AsyncIterator[BuildProgress]:
        """Build, and tell how it goes."""
        require_known(options, BuildOptions.__annotations__, "a build", "BuildOptions")
        content, place = source(options)
        async for line in self._calls.lines(
            "POST", "/build", {**query(options), **place}, content, {**_TAR, **headers}
        ):
            yield build_progress(line)

    async def built(self, images: _Images, lines: AsyncIterator[BuildProgress]) -> Image:
        """The image that a build makes; BuildError with what was told before it failed."""
        told: list[str] = []
        image = ""
        try:
            async for line in lines:
                told.append(line.text)
                image = line.image or image
        except CommandFailed as error:
            raise BuildError(error.message, error.code, "".join(told)) from error
        except HuskError as error:
            if not told:
                raise
            raise BuildError(error.message, 1, "".join(told)) from error
        return await images.get(image)


def source(options: BuildOptions) -> tuple[Content, dict[str, str]]:
    """Return the content to send, and the query that tells the engine the Dockerfile's path or the remote context."""
    path, given = options.get("path"), options.get("fileobj")
    dockerfile = options.get("dockerfile", "")
    if (path is None) == (given is None):
        raise InvalidParameter("a build needs path= or fileobj=, and not both")
    if given is not None:
        return _given(given, options.get("custom_context", False)), {"dockerfile": dockerfile} if dockerfile else {}
    if isinstance(path, str) and path.startswith(_ADDRESSES):
        return b"", {"remote": path, **({"dockerfile": dockerfile} if dockerfile else {})}
    assert path is not None
    context = Context(Path(path), dockerfile)
    return context.pieces(), {"dockerfile": context.dockerfile}


def query(options: BuildOptions) -> dict[str, Any]:
    """The options as the query of `POST /build` has them."""
    tags = options.get("tag", ())
    hosts = options.get("extra_hosts", ())
    limits = dict(options.get("container_limits", {}))
    if unknown := limits.keys() - set(_LIMITS):
        raise InvalidParameter(f"container_limits knows no {', '.join(sorted(unknown))}. It knows {', '.join(_LIMITS)}")
    found: dict[str, Any] = {
        "t": [tags] if isinstance(tags, str) else list(tags),
        "target": options.get("target"),
        "platform": options.get("platform"),
        "labels": _document(options.get("labels")),
        "buildargs": _document(options.get("buildargs")),
        "nocache": options.get("nocache"),
        "pull": options.get("pull"),
        "cachefrom": _document(options.get("cache_from")),
        "squash": options.get("squash"),
        "q": options.get("quiet"),
        "networkmode": options.get("network_mode"),
        "extrahosts": [f"{name}:{at}" for name, at in hosts.items()] if isinstance(hosts, Mapping) else list(hosts),
        "shmsize": size(options.get("shmsize", 0)) or None,
        "ulimits": _document([ulimit(name, limit) for name, limit in options.get("ulimits", {}).items()]),
        "cgroupparent": options.get("cgroup_parent"),
        "securityopt": _document(options.get("security_opt")),
        **{name: size(value) if name in _SIZES else value for name, value in limits.items()},
    }
    return {name: value for name, value in found.items() if value not in (None, "", [], False)}


def _given(given: bytes | str | BinaryIO | AsyncIterable[bytes], is_context: bool) -> Content:
    if isinstance(given, AsyncIterable):
        if not is_context:
            raise InvalidParameter("a Dockerfile cannot come in pieces: give its text, or custom_context=True")
        return given
    content = given.encode() if isinstance(given, str) else given if isinstance(given, bytes) else given.read()
    return content if is_context else dockerfile_alone(content)


def _document(value: object) -> str | None:
    """JSON in the query; nothing where there is nothing to say."""
    return msgspec.json.encode(value).decode() if value else None
