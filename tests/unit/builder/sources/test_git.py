"""Repositories as sources, with doubles of git, the client and the cache."""

import base64
from typing import Any

import pytest

from husk.builder.dockerfile.git_refs import GitRef, source_of
from husk.builder.graph import cache_keys
from husk.builder.graph.operations import Operation, Source
from husk.builder.solver.source_policy import Resolved
from husk.builder.sources.git import GitSource, chosen
from husk.builder.store.repositories import CheckedOut
from husk.errors import InvalidParameter, NotFound, NotImplementedYet

ONE, TWO, TAG = "1" * 40, "2" * 40, "a" * 40
REMOTE = "https://host.example/app.git"


class Repositories:
    """Repositories that are served: names and what they stand for."""

    def __init__(self):
        self.served = {"refs/heads/main": ONE, "refs/tags/v1": TAG, "refs/tags/v1^{}": ONE}
        self.commits = {TAG: ONE}  # what tags are, whatever is said of them
        self.asked: list[Any] = []
        self.checked_out: list[Any] = []

    async def names(self, repository, names):
        self.asked.append((repository, list(names)))
        if names == ["HEAD"]:
            return f"ref: refs/heads/main\tHEAD\n{ONE}\tHEAD\n"
        found = {
            name: id
            for name, id in self.served.items()
            if any(name.endswith(f"/{asked}") or name == asked for asked in names)
        }
        return "".join(f"{id}\t{name}\n" for name, id in found.items())

    async def check_out(self, repository, wanted):
        self.checked_out.append(wanted)
        commit = self.commits.get(wanted.commit, wanted.commit)
        if wanted.said not in ("", commit):
            raise InvalidParameter(f"said {wanted.said}, is {commit}")
        return CheckedOut(f"diff:{len(self.checked_out)}", commit)


class Cache:
    def __init__(self):
        self.records = {}

    async def find(self, key):
        return self.records.get(key)

    async def remember(self, keys, record):
        self.records.update(dict.fromkeys(keys, record))


class Session:
    def __init__(self, id="one", secrets=(), agents=()):
        self.id = id
        self._secrets = dict(secrets)
        self._agents = agents

    async def secret(self, id):
        if id not in self._secrets:
            raise NotFound(id)
        return self._secrets[id]

    async def check_agent(self, id):
        if id not in self._agents:
            raise NotFound(f"no SSH key {id!r} forwarded from the client")


class Watcher:
    def __init__(self, session=None):
        self.session = session
        self.said = []

    def log(self, data, *, stderr=False):
        self.said.append(data)


class Bench:
    def __init__(self):
        self.git, self.cache = Repositories(), Cache()
        parts: Any = (self.git, self.cache)
        self.source = GitSource(*parts)

    async def key(self, session=None, **wanted):
        watcher: Any = Watcher(session)
        return await self.source.key(source_of(GitRef(**{"remote": REMOTE, **wanted})), None, watcher)


@pytest.fixture
def bench():
    return Bench()


async def test_the_files_of_a_commit_are_got_once(bench):
    key = await bench.key(ref="main")
    operation = Operation(source_of(GitRef(remote=REMOTE, ref="main")))
    assert bench.cache.records[cache_keys.by_definition(operation, [key])].outputs == ["diff:1"], "the solver finds it"
    assert await bench.key() == await bench.key(ref="refs/heads/main") == key
    assert await bench.key(ref="v1") == await bench.key(ref=ONE) == key, "whatever the name was"
    assert len(bench.git.checked_out) == 1
    bench.git.served["refs/heads/main"] = TWO
    assert await bench.key(ref="main") != key
    assert bench.git.checked_out[1].commit == TWO


async def test_what_makes_another_tree(bench):
    keys = {
        await bench.key(ref="main"),
        await bench.key(ref="main", directory="d"),
        await bench.key(ref="main", keep_git_dir=True),
        await bench.key(ref="v1", keep_git_dir=True),
        await bench.key(ref="main", submodules=False),
        await bench.key(ref="main", mtime="commit"),
        await bench.key(ref="main", remote="https://elsewhere.example/app.git"),
    }
    assert len(keys) == 7
    assert await bench.key(ref="main", directory="d", keep_git_dir=True) in keys, "of a directory nothing is kept"


async def test_for_one_build_a_name_stands_for_one_thing(bench):
    session = Session()
    key = await bench.key(session, ref="main")
    bench.git.served["refs/heads/main"] = TWO
    assert await bench.key(session, ref="main") == key
    assert await bench.key(Session("another"), ref="main") != key


async def test_a_commit_is_not_asked_for(bench):
    await bench.key(ref=ONE)
    await bench.key(ref="main", checksum=TWO, fetch_by_commit=True)
    assert bench.git.asked == []
    assert [(wanted.commit, wanted.reference) for wanted in bench.git.checked_out] == [(ONE, ""), (TWO, "")]


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"ref": "nowhere"}, "does not contain ref nowhere"),
        ({"ref": "--upload-pack=x"}, "invalid git ref"),
        ({"ref": "a b"}, "invalid git ref"),
        ({"ref": "main", "checksum": "zz"}, "expected hex commit hash"),
        ({"ref": "main", "checksum": "22"}, f"expected checksum to match 22, got {ONE}"),
        ({"ref": "v1", "checksum": "22"}, f"got {TAG} or {ONE}"),
        ({"ref": ONE, "checksum": "22"}, "expected checksum to match 22"),
        ({"checksum": "11", "fetch_by_commit": True}, "requires a full commit SHA"),
        ({"remote": "file:///etc"}, "the protocol file is not allowed"),
        ({"remote": "ext::sh -c id://"}, "invalid git source"),
        ({"remote": "ssh://-oProxyCommand=x y/z"}, "invalid git source"),
        ({"remote": "git@host.example:app.git"}, "no client forwards one"),
    ],
)
async def test_what_cannot_be_is_refused(bench, wanted, why):
    with pytest.raises(InvalidParameter, match=why):
        await bench.key(**wanted)
    assert bench.git.checked_out == []


async def test_what_is_not_built(bench):
    watcher: Any = Watcher()
    with pytest.raises(NotImplementedYet):
        await bench.source.key(Source("git://x/y", {"git.bundle": "docker-image+blob://x"}), None, watcher)


async def test_checksums(bench):
    await bench.key(ref="main", checksum="11")
    await bench.key(ref="v1", checksum="aa")
    await bench.key(ref="v1", checksum=ONE)


async def test_a_server_that_says_something_else_of_a_tag_is_refused(bench):
    bench.git.served["refs/tags/v1^{}"] = TWO
    for pinned in ({}, {"checksum": TWO}, {"checksum": TAG}):
        with pytest.raises(InvalidParameter, match=f"said {TWO}, is {ONE}"):
            await bench.key(ref="v1", **pinned)
    assert bench.cache.records == {}
    bench.git.served["refs/heads/main^{}"] = TWO
    with pytest.raises(InvalidParameter, match=f"said {TWO}, is {ONE}"):
        await bench.key(ref="main", checksum=TWO)
    assert bench.cache.records == {}, "an honest repository's files are got from there"


async def test_a_word_does_not_bring_other_files_to_who_is_pinned_to_a_tag(bench):
    other = await bench.key(ref=TWO)
    bench.git.served["refs/tags/v1^{}"] = TWO
    assert await bench.key(ref="v1") == other, "the files of that very commit"
    with pytest.raises(InvalidParameter, match=f"said {TWO}, is {ONE}"):
        await bench.key(ref="v1", checksum=TAG)
    bench.git.served["refs/tags/v1^{}"] = ONE
    honest = await bench.key(ref="v1", checksum=TAG)
    seen = len(bench.git.checked_out)
    assert await bench.key(ref="v1", checksum=TAG) == honest != other
    assert len(bench.git.checked_out) == seen, "once it was here its commit is known"


async def test_a_word_does_not_bring_a_kept_repository_to_who_is_pinned_to_another_commit(bench):
    honest = await bench.key(ref="v1", keep_git_dir=True)
    assert await bench.key(ref="v1", keep_git_dir=True, checksum=ONE) == honest
    bench.git.served["refs/tags/v1^{}"] = TWO
    with pytest.raises(InvalidParameter, match=f"said {TWO}, is {ONE}"):
        await bench.key(ref="v1", keep_git_dir=True, checksum=TWO)
    del bench.git.served["refs/tags/v1^{}"]
    seen = len(bench.git.checked_out)
    assert await bench.key(ref="v1", keep_git_dir=True, checksum=TAG) != honest, "nothing is said of it"
    assert len(bench.git.checked_out) == seen + 1


async def test_what_was_checked_out_is_what_it_was(bench):
    """For the provenance, too, where a server says nothing of its tags."""
    del bench.git.served["refs/tags/v1^{}"]
    session = Session()
    watcher: Any = Watcher(session)
    source = source_of(GitRef(remote=REMOTE, ref="v1"))
    assert (await bench.source.resolve(source, watcher)).commit == TAG
    await bench.key(session, ref="v1")
    assert (await bench.source.resolve(source, watcher)).commit == ONE
    checked_out = len(bench.git.checked_out)
    assert await bench.key(ref=ONE)
    assert len(bench.git.checked_out) == checked_out, "the files are known by their commit"


@pytest.mark.parametrize(
    ("secrets", "header"),
    [
        ({}, ""),
        ({"GIT_AUTH_HEADER": b"bearer x\n"}, "bearer x"),
        ({"GIT_AUTH_TOKEN": b"x"}, "basic " + base64.b64encode(b"x-access-token:x").decode()),
        ({"GIT_AUTH_HEADER": b"all", "GIT_AUTH_HEADER.host.example": b"this"}, "this"),
    ],
)
async def test_private_repositories(bench, secrets, header):
    await bench.key(Session(secrets=secrets), ref="main")
    repository, _ = bench.git.asked[0]
    assert (repository.header, repository.scope) == (header, REMOTE)


async def test_a_secret_that_is_no_header(bench):
    with pytest.raises(InvalidParameter, match="cannot be a header"):
        await bench.key(Session(secrets={"GIT_AUTH_HEADER": b"a\r\nHost: x"}), ref="main")


async def test_a_token_of_github_is_for_all_of_it(bench):
    await bench.key(Session(secrets={"GIT_AUTH_TOKEN": b"x"}), remote="https://github.com/a/b.git", ref="main")
    assert bench.git.asked[0][0].scope == "https://github.com/"


async def test_ssh_needs_an_agent(bench):
    with pytest.raises(NotFound, match="no SSH key 'default'"):
        await bench.key(Session(), remote="git@host.example:app.git", ref="main")
    await bench.key(Session(agents=["default"]), remote="git@host.example:app.git", ref="main")
    repository, _ = bench.git.asked[0]
    assert repository.agent
    assert repository.header == ""


async def test_files_without_the_cache_and_what_a_name_is(bench):
    watcher: Any = Watcher()
    source = source_of(GitRef(remote="https://me:pw@host.example/app.git", ref="v1"))
    fetched = await bench.source.fetch(source, None, watcher)
    assert (fetched.stack, fetched.type) == ("diff:1", "source.git.checkout")
    assert "pw" not in fetched.description
    assert b"pw" not in b"".join(watcher.said)
    assert await bench.source.resolve(source, watcher) == Resolved("refs/tags/v1", TAG, ONE)


@pytest.mark.parametrize(
    ("ref", "lines", "found"),
    [
        ("x", f"{ONE}\trefs/heads/x\n{TWO}\trefs/tags/x\n", Resolved("refs/heads/x", ONE, ONE)),
        ("x", f"{TWO}\trefs/tags/x\n", Resolved("refs/tags/x", TWO, TWO)),
        ("heads/x", f"{ONE}\trefs/heads/x\n", Resolved("refs/heads/x", ONE, ONE)),
        ("pull/1/head", f"{ONE}\trefs/pull/1/head\n", Resolved("refs/pull/1/head", ONE, ONE)),
        ("x", f"{ONE}\trefs/heads/other/x\n", None),
        ("x", "nonsense\trefs/heads/x\n", None),
        ("x", "", None),
    ],
)
def test_names(ref, lines, found):
    assert chosen(ref, lines) == found
