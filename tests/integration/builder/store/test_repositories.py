"""Repositories on loopback: what their names stand for, and the files of commits."""

import asyncio
import os
import socket
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from husk.aio.tasks import Tasks
from husk.builder.store.repositories import Repositories, Repository, WantedCommit, proxy_environment
from husk.config import Proxies
from husk.errors import InvalidParameter
from tests.support.repositories import Repository as Made
from tests.support.repositories import git_daemon
from tests.support.waiting import until_async
from tests.support.web import WebServer
from tests.support.workers import workers_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def made(tmp_path):
    served = tmp_path / "served"
    served.mkdir()
    repository = Made(served, "app")
    repository.commit({"Dockerfile": "FROM scratch\n", "sub/file": "1"}, tag="v1")
    return repository


@pytest.fixture
def server(made):
    with git_daemon(made.bare.parent) as address:
        yield address


@pytest.fixture
def repositories(store):
    return Repositories(store.diffs, store.nursery)


async def stack_of(repositories, *wanted):
    return (await repositories.check_out(*wanted)).stack


def files_of(store, stack):
    """All files but those of .git, by their names."""
    (top,) = map(Path, store.diffs.lower(stack))
    found = {str(path.relative_to(top)): path for path in sorted(top.rglob("*"))}
    return {name: path for name, path in found.items() if not name.startswith(".git/") and name != ".git"}


async def test_names_and_files(store, repositories, made, server):
    app = Repository(remote=f"{server}/app.git")
    head = await repositories.names(app, ["HEAD"])
    assert head.startswith("ref: refs/heads/main\tHEAD\n")
    lines = (await repositories.names(app, ["v1", "v1^{}"])).splitlines()
    tag, commit = (line.split("\t")[0] for line in lines)
    assert commit == made.run("rev-parse", "HEAD")
    os.chmod(made.tree / "sub/file", 0o755)
    newer = made.commit({"later": "2"})
    for wanted in (WantedCommit(commit=tag, reference="refs/tags/v1"), WantedCommit(commit=commit)):
        found = files_of(store, await stack_of(repositories, app, wanted))
        assert sorted(found) == ["Dockerfile", "sub", "sub/file"]
        assert stat.S_IMODE(found["sub/file"].stat().st_mode) == 0o644
        assert found["Dockerfile"].stat().st_uid == 0
    part = await stack_of(repositories, app, WantedCommit(commit=newer, directory="sub", time_of_commit=True))
    found = files_of(store, part)
    assert sorted(found) == ["file"]
    assert (stat.S_IMODE(found["file"].stat().st_mode), found["file"].stat().st_mtime) == (0o755, 981173106)
    await until_async(lambda: not workers_of(os.getpid()), "the workers have gone")


async def test_a_checkout_takes_no_more_than_the_disk_can_spare(store, repositories, made, server, monkeypatch):
    """Though no file of it is too large by itself."""
    commit = made.commit({f"file{number}": f"{number}" * 300_000 for number in range(4)})
    wanted = Repository(remote=f"{server}/app.git"), WantedCommit(commit=commit, reference="refs/heads/main")
    monkeypatch.setattr("husk.builder.store.repositories.room_left", lambda path: 1_000_000)
    with pytest.raises(InvalidParameter, match=r"app\.git is larger than what the disk has room for"):
        await stack_of(repositories, *wanted)
    assert store.diffs.all() == []
    monkeypatch.setattr("husk.builder.store.repositories.room_left", lambda path: 1 << 30)
    assert len(files_of(store, await stack_of(repositories, *wanted))) == 7
    await until_async(lambda: not workers_of(os.getpid()), "the workers have gone")


async def test_trees_that_name_each_other_are_not_billions_of_files(store, repositories, made, server, monkeypatch):
    """Seven kilobytes of objects; git lists all files in its memory before it writes the first."""
    listed = made.run("ls-tree", "HEAD", "Dockerfile")
    for _ in range(10):
        (made.tree / "listed").write_text("".join(listed.replace("Dockerfile", f"n{one}") + "\n" for one in range(10)))
        with (made.tree / "listed").open() as lines:
            done = subprocess.run(
                ["git", "mktree"], cwd=made.tree, stdin=lines, capture_output=True, text=True, check=True
            )
        listed = f"040000 tree {done.stdout.strip()}\tDockerfile"
    commit = made.run("commit-tree", "-m", "many", done.stdout.strip())
    made.run("push", "--quiet", "--force", str(made.bare), f"{commit}:refs/heads/main")
    monkeypatch.setattr("husk.builder.store.repositories.memory_of_git", lambda: 32 << 20)
    with pytest.raises(InvalidParameter, match=r"[Oo]ut of memory"):
        await stack_of(repositories, Repository(remote=f"{server}/app.git"), WantedCommit(commit=commit))
    assert store.diffs.all() == []
    await until_async(lambda: not workers_of(os.getpid()), "the workers have gone")


async def test_what_is_kept_of_the_repository(store, repositories, made, server):
    app = Repository(remote=f"{server}/app.git")
    commit = made.run("rev-parse", "HEAD")
    stack = await stack_of(repositories, app, WantedCommit(commit=commit, reference="refs/heads/main", keep=True))
    git = files_of(store, stack)["Dockerfile"].parent / ".git"
    assert (git / "HEAD").read_text().strip() == commit
    assert f"url = {server}/app.git" in (git / "config").read_text()
    assert not (git / "FETCH_HEAD").exists()
    assert not (git / "hooks").exists()


async def test_the_commit_is_what_git_computes_and_not_what_a_server_says(store, repositories, made, server):
    first, tag = made.run("rev-parse", "HEAD"), made.run("rev-parse", "v1")
    second = made.commit({"evil": "x"})
    app = Repository(remote=f"{server}/app.git")
    before = set(os.listdir(store.diffs.directories.path))
    for said in (second, "0" * 40):
        with pytest.raises(InvalidParameter, match=f"says that {tag} is the commit {said}, and it is {first}"):
            await repositories.check_out(app, WantedCommit(commit=tag, reference="refs/tags/v1", said=said))
    assert set(os.listdir(store.diffs.directories.path)) == before
    for wanted in (
        WantedCommit(commit=tag, reference="refs/tags/v1", said=first),
        WantedCommit(commit=tag, reference="refs/tags/v1", keep=True),
        WantedCommit(commit=first),
    ):
        made_of = await repositories.check_out(app, wanted)
        assert made_of.commit == first and "evil" not in files_of(store, made_of.stack)


async def test_a_repository_may_not_replace_a_commit(store, repositories, made, server):
    first = made.run("rev-parse", "HEAD")
    second = made.commit({"evil": "x"})
    name = f"refs/replace/{second}"
    made.run("update-ref", name, first)
    made.run("push", "--quiet", str(made.bare), name)
    app = Repository(remote=f"{server}/app.git")
    found = await repositories.check_out(app, WantedCommit(commit=second, reference=name, keep=True))
    assert found.commit == second and "evil" in files_of(store, found.stack)


async def test_submodules(store, repositories, made, server):
    library = Made(made.bare.parent, "library")
    library.commit({"lib": "x"})
    made.run("submodule", "add", "--quiet", str(library.bare), "lib")
    # Beside it, wherever it is fetched from.
    made.run("config", "-f", ".gitmodules", "submodule.lib.url", "../library.git")
    commit = made.commit({})
    app = Repository(remote=f"{server}/app.git")
    found = files_of(store, await stack_of(repositories, app, WantedCommit(commit=commit)))
    assert "lib/lib" in found
    assert "lib/.git" not in found
    found = files_of(store, await stack_of(repositories, app, WantedCommit(commit=commit, submodules=False)))
    assert "lib" in found
    assert "lib/lib" not in found


async def test_submodules_that_lead_elsewhere_are_not_followed(repositories, made, server, tmp_path):
    secret = Made(tmp_path, "secret")
    secret.commit({"key": "x"})
    made.run("submodule", "add", "--quiet", f"file://{secret.bare}", "lib")
    commit = made.commit({})
    with pytest.raises(InvalidParameter, match="transport 'file' not allowed"):
        await stack_of(repositories, Repository(remote=f"{server}/app.git"), WantedCommit(commit=commit))


async def test_addresses_that_lead_nowhere(repositories, made, server, tmp_path):
    for remote, why in (
        (f"{server}/none.git", "access denied or repository not exported"),
        (f"file://{made.bare}", "transport 'file' not allowed"),
        ("ext::sh -c id", "transport 'ext' not allowed"),
        ("https://me:hidden@127.0.0.1:1/x.git", "xxxxx:xxxxx@127.0.0.1:1"),
    ):
        with pytest.raises(InvalidParameter) as refused:
            await repositories.names(Repository(remote=remote), ["HEAD"])
        assert why in refused.value.message
        assert "hidden" not in refused.value.message
    for wanted in (
        WantedCommit(commit="0" * 40),
        WantedCommit(commit=made.run("rev-parse", "HEAD"), directory="nowhere"),
    ):
        with pytest.raises(InvalidParameter):
            await stack_of(repositories, Repository(remote=f"{server}/app.git"), wanted)


async def test_hooks_and_filters_of_a_repository_are_not_run(store, repositories, made, server, tmp_path):
    evidence = tmp_path / "evidence"
    for name in ("post-checkout", "post-merge"):
        hook = made.bare / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {evidence}\n")
        hook.chmod(0o755)
    commit = made.commit({".gitattributes": "* filter=evil\n", "link": ""})
    (made.tree / "link").unlink()
    (made.tree / "link").symlink_to("/etc/passwd")
    commit = made.commit({})
    stack = await stack_of(repositories, Repository(remote=f"{server}/app.git"), WantedCommit(commit=commit))
    assert files_of(store, stack)["link"].is_symlink()
    assert not evidence.exists()


async def test_a_private_repository_on_plain_files(store, repositories, made):
    with WebServer() as web:
        web.directories["/app.git"] = made.bare
        web.authorization = "basic c2VjcmV0"
        remote = f"{web.url}/app.git"
        with pytest.raises(InvalidParameter, match="could not read Username"):
            await repositories.names(Repository(remote=remote), ["HEAD"])
        known = Repository(remote=remote, header="basic c2VjcmV0", scope=remote)
        assert "refs/heads/main" in await repositories.names(known, ["refs/heads/main"])
        commit = made.run("rev-parse", "HEAD")
        stack = await stack_of(repositories, known, WantedCommit(commit=commit, reference="refs/heads/main"))
        assert "Dockerfile" in files_of(store, stack)


async def test_a_server_that_hangs_up_or_sends_nonsense(repositories):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            for answer in (b"", b"zzzz", b"HTTP/1.1 200 OK\r\n\r\n"):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        for _ in range(3):
            with pytest.raises(InvalidParameter, match="failed to fetch remote"):
                await repositories.names(Repository(remote=f"git://127.0.0.1:{listener.getsockname()[1]}/x"), ["HEAD"])
        thread.join(5)


async def test_who_is_cancelled_leaves_nothing(store, repositories):
    before = set(os.listdir(store.diffs.directories.path))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        remote = f"git://127.0.0.1:{listener.getsockname()[1]}/x"
        task = Tasks().spawn(repositories.names(Repository(remote=remote), ["HEAD"]), "ask", awaited=True)
        await until_async(lambda: workers_of(os.getpid()), "a worker runs git")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await until_async(lambda: not workers_of(os.getpid()), "the worker has gone")
    await until_async(lambda: not _processes_with(remote), "git has gone")
    assert set(os.listdir(store.diffs.directories.path)) == before


def _processes_with(argument):
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if argument.encode() in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            continue
    return found


def test_proxies_are_told_to_programs():
    assert proxy_environment(Proxies(), {}) == {}
    found = proxy_environment(Proxies(https_proxy="http://a:1"), {"HTTP_PROXY": "http://b:2", "no_proxy": "c"})
    assert found == {"http_proxy": "http://b:2", "https_proxy": "http://a:1", "no_proxy": "c"}
