"""The sources that a build has used: images by their digests, commits, and files of the web.

A build has asked for all of them before, and what it was told then still holds for it (`per_build`): nothing is
fetched here.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct

from husk.builder.attest.slsa import Captured, Granted, Material, git_uri, image_uri
from husk.builder.dockerfile import git_refs
from husk.builder.graph import schemes
from husk.builder.graph.operations import Exec, NestedBuild, Operation, SecretMount, Source, SshMount
from husk.builder.graph.progress import Status
from husk.builder.graph.schemes import redacted
from husk.builder.solver.interfaces import Record, Watcher
from husk.builder.solver.sessions import Session
from husk.builder.solver.source_policy import DescribedImage, Resolved, ResolvedFile
from husk.errors import HuskError
from husk.registry import reference as references
from husk.registry.manifest import Platform, host_platform
from husk.registry.reference import Reference

_SHA1_LENGTH = 40
_ID = "sha256:"


class Images(Protocol):
    async def describe(self, name: str, platform: Platform, pull: bool, watcher: Watcher, /) -> DescribedImage: ...


class Repositories(Protocol):
    async def resolve(self, source: Source, watcher: Watcher, /) -> Resolved: ...


class Web(Protocol):
    async def have(self, source: Source, watcher: Watcher, /) -> tuple[ResolvedFile, Record]: ...


class Used(Struct):
    """Findings in the operations so far; each thing once."""

    materials: dict[str, Material] = {}
    locals: set[str] = set()
    secrets: dict[str, Granted] = {}
    agents: dict[str, Granted] = {}
    network: bool = False
    incomplete: bool = False


class Materials:
    def __init__(self, images: Images, git: Callable[[], Repositories], web: Callable[[], Web]) -> None:
        self._images = images
        self._git = git
        self._web = web

    async def of(self, operations: Iterable[Operation], session: Session | None) -> Captured:
        """Collect the sources, secrets and agents that these operations use; the session's client is told nothing."""
        used = Used()
        watcher = _Quiet(session)
        for operation in operations:
            match operation.body:
                case Source() as source:
                    await self._take(source, operation.platform, used, watcher)
                case Exec() as body:
                    _grant(body, used)
                case NestedBuild():
                    used.incomplete = True  # what it was made of is not told
        return Captured(
            materials=[used.materials[uri] for uri in sorted(used.materials)],
            locals=sorted(used.locals),
            secrets=[used.secrets[id] for id in sorted(used.secrets)],
            agents=[used.agents[id] for id in sorted(used.agents)],
            network=used.network,
            incomplete=used.incomplete,
        )

    async def _take(self, source: Source, platform: Platform | None, used: Used, watcher: Watcher) -> None:
        scheme, _, rest = source.identifier.partition("://")
        if scheme == schemes.LOCAL:
            used.locals.add(rest)
            return
        if scheme in (schemes.GIT, *schemes.WEB):
            for name in ("git.mountsshsock",):
                _add(used.agents, source.attributes.get(name, ""), optional=False)
            for name in ("git.authtokensecret", "git.authheadersecret", "http.authheadersecret"):
                _add(used.secrets, source.attributes.get(name, ""), optional=True)
        try:
            material = await self._material(scheme, rest, source, platform, watcher)
        except HuskError:
            # It has gone since: what it was is not known any more, and that is said.
            material = Material(redacted(source.identifier))
            used.incomplete = True
        if material is not None:
            used.materials[material.uri] = material

    async def _material(
        self, scheme: str, rest: str, source: Source, platform: Platform | None, watcher: Watcher
    ) -> Material | None:
        if scheme == schemes.IMAGE:
            return await self._image(rest, platform or host_platform(), watcher)
        if scheme == schemes.GIT:
            commit = (await self._git().resolve(source, watcher)).commit
            return Material(
                git_uri(git_refs.read(source)), f"{'sha1' if len(commit) == _SHA1_LENGTH else 'sha256'}:{commit}"
            )
        if scheme in schemes.WEB:
            found, _ = await self._web().have(source, watcher)
            return Material(redacted(source.identifier), found.digest)
        return None

    async def _image(self, name: str, platform: Platform, watcher: Watcher) -> Material:
        if name.startswith(_ID):
            # It came from a layout of the client's, and is known by its digest alone.
            return Material(image_uri(Reference("docker.io", "library/image", "", name), platform, "oci"), name)
        reference = references.parse(name).tagged()
        digest = reference.digest or (await self._images.describe(name, platform, False, watcher)).digest
        return Material(image_uri(reference, platform), digest)


def _grant(body: Exec, used: Used) -> None:
    used.network = used.network or body.network != "none"
    for mount in body.mounts:
        match mount.kind:
            case SecretMount(id=id, optional=optional):
                _add(used.secrets, id, optional=optional)
            case SshMount(id=id, optional=optional):
                _add(used.agents, id or "default", optional=optional)
    for variable in body.secret_env:
        _add(used.secrets, variable.id, optional=variable.optional)


def _add(known: dict[str, Granted], id: str, *, optional: bool) -> None:
    if id:
        before = known.get(id)
        known[id] = Granted(id, optional and (before is None or before.optional))


class _Quiet:
    """Asks on behalf of a client, and tells it nothing."""

    def __init__(self, session: Session | None) -> None:
        self.session = session

    def log(self, data: bytes, *, stderr: bool = False) -> None:
        pass

    def status(self, status: Status) -> None:
        pass
