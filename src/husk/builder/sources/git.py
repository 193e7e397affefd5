"""Repositories of git as sources of builds: contexts, named contexts and `ADD https://…/x.git`.

What a branch or a tag stands for is asked with every build; the files of a commit are got once. They are a record of
the cache, known by the commit, so a build finds them whatever the name was that led there.

The id of an object is computed from what is in it, so a commit or a tag is what it is whoever serves it. Which commit a
tag is, is only a server's word until the tag was here: the worker says what it checked out, a server that said
something else is refused, and nothing is in the cache under a commit that it is not of. A word is enough to look for
the files of that commit, but not where a build is pinned to the tag.
"""

import asyncio
import base64
import re
import secrets
from collections.abc import Sequence
from typing import Protocol
from weakref import WeakValueDictionary

from msgspec import Struct

from husk.builder.dockerfile import git_refs
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.git_refs import GitRef
from husk.builder.graph import cache_keys
from husk.builder.graph.operations import Operation, Source
from husk.builder.solver.interfaces import Record, Watcher
from husk.builder.solver.sessions import Session
from husk.builder.solver.source_policy import Resolved
from husk.builder.sources.per_build import PerBuild
from husk.builder.store.repositories import CheckedOut, Repository, WantedCommit
from husk.errors import InvalidParameter, NotFound, NotImplementedYet
from husk.registry.manifest import Platform
from husk.text.urls import split_url

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_CHECKSUM = re.compile(r"[0-9a-fA-F]{1,64}")
_HEAD_BRANCH = re.compile(r"^ref: (refs/heads/\S+)\tHEAD$", re.MULTILINE)
# Names of git have none of these, and nothing that begins with a dash may be taken for an option.
_NOT_IN_NAMES = re.compile(r"^-|[\x00-\x20\x7f~^:?*\\\[]|\.\.|@\{")
_LARGEST_HEADER = 16 << 10
# Tags of which the commit is known by their content: the oldest are forgotten.
_MOST_PEELED = 1000
_NOT_BUILT = ("git.bundle", "git.checkoutbundle", "git.sig.pubkey")


class FetchedTree(Struct, frozen=True):
    stack: str
    description: str
    made: list[str] = []
    type: str = "source.git.checkout"


class Repositories(Protocol):
    """Runs git: `husk.builder.store.repositories`."""

    async def names(self, repository: Repository, names: Sequence[str]) -> str: ...

    async def check_out(self, repository: Repository, wanted: WantedCommit) -> CheckedOut: ...


class BuildCache(Protocol):
    """The cache of builds."""

    async def find(self, key: str, /) -> Record | None: ...

    async def remember(self, keys: Sequence[str], record: Record, /) -> None: ...


class GitSource:
    def __init__(self, repositories: Repositories, cache: BuildCache) -> None:
        self._repositories = repositories
        self._cache = cache
        self._once: PerBuild[Resolved] = PerBuild()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._peeled: dict[str, str] = {}

    async def key(self, source: Source, platform: Platform | None, watcher: Watcher) -> str:
        """The files are got for it, unless they are here: what the name stands for may be another thing later."""
        key, record = await self._found(source, watcher)
        await self._cache.remember([cache_keys.by_definition(Operation(source, [], platform), [key])], record)
        return key

    async def fetch(self, source: Source, platform: Platform | None, watcher: Watcher) -> FetchedTree:
        record = await self.have(source, watcher)
        return FetchedTree(record.outputs[0], record.description)

    async def have(self, source: Source, watcher: Watcher) -> Record:
        """The files of the source; whoever uses them holds the record."""
        return (await self._found(source, watcher))[1]

    async def resolve(self, source: Source, watcher: Watcher) -> Resolved:
        """Ask for the object and the commit that the source is right now."""
        wanted = _read(source)
        return await self._resolve(wanted, await self._repository(source, wanted, watcher), watcher)

    async def _found(self, source: Source, watcher: Watcher) -> tuple[str, Record]:
        wanted = _read(source)
        repository = await self._repository(source, wanted, watcher)
        found = await self._resolve(wanted, repository, watcher)
        key = _key(wanted, found)
        async with self._turns.setdefault(key, asyncio.Lock()):
            known = None if self._is_pinned_to_a_word(wanted, found) else await self._cache.find(key)
            record = known or await self._get(wanted, found, repository, key, watcher)
        return key, record

    def _is_pinned_to_a_word(self, wanted: GitRef, found: Resolved) -> bool:
        """Return True if the build is pinned to a tag, and only the server says which commit that is."""
        by_tag = bool(wanted.checksum) and not found.commit.startswith(wanted.checksum.lower())
        return by_tag and self._peeled.get(found.id) != found.commit

    async def _repository(self, source: Source, wanted: GitRef, watcher: Watcher) -> Repository:
        return await _Asker(source, wanted.remote, watcher.session).repository()

    async def _get(self, wanted: GitRef, found: Resolved, repository: Repository, key: str, watcher: Watcher) -> Record:
        watcher.log(f"fetching {found.id} of {_shown(wanted.remote)}\n".encode(), stderr=True)
        made = await self._repositories.check_out(
            repository,
            WantedCommit(
                commit=found.id,
                reference=found.reference,
                said=found.commit if found.commit != found.id else "",
                directory=wanted.directory,
                keep=bool(wanted.keep_git_dir),
                submodules=wanted.submodules,
                time_of_commit=wanted.mtime == "commit",
            ),
        )
        # A server may have said nothing of what its tag is.
        found = Resolved(found.reference, found.id, made.commit)
        self._once.keep(watcher.session, _question(wanted), found)
        self._peeled[found.id] = found.commit
        while len(self._peeled) > _MOST_PEELED:
            del self._peeled[next(iter(self._peeled))]
        description = f"git snapshot for {_shown(wanted.remote)}#{wanted.ref or found.reference}"
        record = Record(secrets.token_hex(13)[:25], [made.stack], [made.stack], description, "source.git.checkout")
        await self._cache.remember(list(dict.fromkeys([key, _key(wanted, found)])), record)
        return record

    async def _resolve(self, wanted: GitRef, repository: Repository, watcher: Watcher) -> Resolved:
        found = self._once.get(watcher.session, _question(wanted))
        if found is None:
            found = await self._ask(wanted, repository)
            self._once.keep(watcher.session, _question(wanted), found)
        _check(wanted, found.id, found.commit)
        return found

    async def _ask(self, wanted: GitRef, repository: Repository) -> Resolved:
        if _COMMIT.fullmatch(wanted.ref):
            return Resolved("", wanted.ref, wanted.ref)
        if wanted.fetch_by_commit:
            if not _COMMIT.fullmatch(wanted.checksum):
                raise InvalidParameter(f'fetch-by-commit requires a full commit SHA checksum, got "{wanted.checksum}"')
            return Resolved("", wanted.checksum, wanted.checksum)
        ref = wanted.ref
        if not ref:
            found = _HEAD_BRANCH.search(await self._repositories.names(repository, ["HEAD"]))
            if found is None:
                raise InvalidParameter(f"could not find default branch for repository: {_shown(wanted.remote)}")
            ref = found[1]
        resolved = chosen(ref, await self._repositories.names(repository, [ref, f"{ref}^{{}}"]))
        if resolved is None:
            raise InvalidParameter(f"repository {_shown(wanted.remote)} does not contain ref {ref}")
        return resolved


class _Asker:
    """Asks the client of a build for what it has for a repository."""

    def __init__(self, source: Source, remote: str, session: Session | None) -> None:
        self._attributes = source.attributes
        self._remote = remote
        self._session = session

    async def repository(self) -> Repository:
        header = await self._header() if self._remote.startswith(("http://", "https://")) else ""
        agent = self._attributes.get("git.mountsshsock", "")
        if agent and self._session is None:
            raise InvalidParameter(f"{_shown(self._remote)} needs an SSH agent, and no client forwards one")
        if agent and self._session:
            await self._session.check_agent(agent)
        return Repository(
            remote=self._remote,
            header=header,
            scope=_scope(self._remote),
            known_hosts=self._attributes.get("git.knownsshhosts", ""),
            agent=self._serve if agent else None,
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._session
        await self._session.forward_agent(self._attributes["git.mountsshsock"], reader, writer)

    async def _header(self) -> str:
        """The secret for this very host first."""
        if self._session is None:
            return ""
        header, token = (self._attributes.get(f"git.auth{kind}secret", "") for kind in ("header", "token"))
        host = git_refs.host_of(self._remote)
        for suffix in (f".{host}", ""):
            if header and (value := await self._secret(header + suffix)):
                return value
            if token and (value := await self._secret(token + suffix)):
                return "basic " + base64.b64encode(f"x-access-token:{value}".encode()).decode()
        return ""

    async def _secret(self, id: str) -> str:
        assert self._session
        try:
            data = await self._session.secret(id)
        except NotFound:
            return ""
        value = data.decode("latin-1").strip()
        if len(value) > _LARGEST_HEADER or not value.isprintable():
            raise InvalidParameter(f"the secret {id} cannot be a header of HTTP")
        return value


def _read(source: Source) -> GitRef:
    for name in _NOT_BUILT:
        if source.attributes.get(name):
            raise NotImplementedYet(f"{name} of a git source is not implemented by Husk yet")
    try:
        wanted = git_refs.read(source)
        scheme = split_url(wanted.remote).scheme if "://" in wanted.remote else "ssh"
    except (DockerfileError, ValueError) as error:
        raise InvalidParameter(f"invalid git source {source.identifier}: {error}") from None
    if scheme not in git_refs.SCHEMES:
        raise InvalidParameter(f"invalid git source {source.identifier}: the protocol {scheme} is not allowed")
    if _NOT_IN_NAMES.search(wanted.ref):
        raise InvalidParameter(f'invalid git ref "{wanted.ref}"')
    if wanted.remote.startswith("-") or re.search(r"[\x00-\x20\x7f]", wanted.remote):
        raise InvalidParameter(f"invalid git source {source.identifier!r}")
    if wanted.checksum and not _CHECKSUM.fullmatch(wanted.checksum):
        raise InvalidParameter(f"invalid checksum {wanted.checksum} for Git URL, expected hex commit hash")
    return wanted


def chosen(ref: str, lines: str) -> Resolved | None:
    """Choose the object of a name among the lines of `git ls-remote`: it as written, else a branch, else a tag."""
    found = {name: id for id, _, name in (line.partition("\t") for line in lines.splitlines()) if _COMMIT.fullmatch(id)}
    in_full = "refs/" + ref.removeprefix("refs/")
    branch = "refs/heads/" + ref.removeprefix("refs/heads/")
    tag = "refs/tags/" + ref.removeprefix("refs/tags/")
    for name in (in_full, branch, tag):
        if id := found.get(name):
            return Resolved(name, id, found.get(f"{name}^{{}}", id))
    return None


def _question(wanted: GitRef) -> str:
    return f"{wanted.remote} {wanted.ref} {wanted.checksum if wanted.fetch_by_commit else ''}"


def _check(wanted: GitRef, *ids: str) -> None:
    checksum = wanted.checksum.lower()
    if checksum and not any(id.startswith(checksum) for id in ids):
        raise InvalidParameter(f"expected checksum to match {wanted.checksum}, got {' or '.join(dict.fromkeys(ids))}")


def _key(wanted: GitRef, found: Resolved) -> str:
    """All that makes one tree different from another; a tag matters only to who can see it."""
    kept = f".git#{found.reference or found.id}" if wanted.keep_git_dir and not wanted.directory else ""
    # The commit counts there, too: who is pinned to one does not get the files of what the tag was before.
    commit = f"{found.id} {found.commit}" if kept and found.commit != found.id else found.commit
    submodules = "" if wanted.submodules else "(skip-submodules)"
    mtime = f"(mtime={wanted.mtime})" if wanted.mtime not in ("", "checkout") else ""
    # Submodules may be addressed relative to it, and what is kept names it.
    place = _shown(wanted.remote) if kept or wanted.submodules else ""
    return f"git {commit}{kept}:{wanted.directory}{submodules}{mtime} {place}".strip()


def _scope(remote: str) -> str:
    """A token is for one repository; one of GitHub's is for its submodules there, too."""
    for prefix in ("https://github.com/", "https://www.github.com/"):
        if remote.startswith(prefix):
            return prefix
    return remote


def _shown(remote: str) -> str:
    """An address without a password that may be in it."""
    if "://" not in remote:
        return remote
    parts = split_url(remote)
    who, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"xxxxx:xxxxx@{host}").geturl() if at and ":" in who else remote
