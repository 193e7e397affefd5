"""Contexts that are no directories: repositories of git, files of the web, standard input; and ADD of them."""

import bz2
import gzip
import io
import json
import lzma
import os
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import zstandard

from tests.support.building import Builds, Context, buildkit_builds, needs_buildx
from tests.support.daemon import Daemon
from tests.support.images import forget_images
from tests.support.repositories import Repository, git_daemon
from tests.support.sshd import PROGRAM, sshd
from tests.support.waiting import until
from tests.support.web import WebServer

pytestmark = needs_buildx

DOCKERFILE = "FROM busybox\nCOPY a /a\nCOPY sub /sub\n"


@pytest.fixture
def builds(daemon: Daemon, tmp_path: Path) -> Iterator[Builds]:
    with buildkit_builds(daemon, tmp_path) as builds:
        yield builds


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.fixture
def app(tmp_path: Path) -> Repository:
    place = tmp_path / "served"
    place.mkdir()
    repository = Repository(place, "app")
    repository.commit({"Dockerfile": DOCKERFILE, "a": "one", "sub/b": "b"}, tag="v1")
    return repository


@pytest.fixture
def git(app: Repository) -> Iterator[str]:
    with git_daemon(app.bare.parent) as address:
        yield f"{address}/app.git"


def archive(**files: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def build(builds: Builds, *arguments: str, check: bool = True, **more: Any) -> "subprocess.CompletedProcess[str]":
    return builds.docker("build", "--progress=plain", "-t", "built", *arguments, check=check, **more)


def classic(daemon: Daemon, remote: str, **more: str) -> list[dict[str, Any]]:
    """`POST /build?remote=…`, which no client of today sends."""
    answer = daemon.http("POST", f"/build?{urlencode({'remote': remote, 't': 'built', **more})}")
    return [json.loads(line) for line in answer.body.splitlines()]


# --- git -------------------------------------------------------------------------------------------------------------


def test_a_repository_is_a_context(builds, app, git):
    done = build(builds, f"{git}#v1")
    assert "load git source" in done.stderr
    assert builds.sh("cat /a /sub/b") == "oneb"
    again = build(builds, f"{git}#main")
    assert "fetching" not in again.stderr, "it is the same commit"
    assert again.stderr.count("CACHED") >= 2
    app.commit({"a": "two", "sub/Dockerfile": "FROM busybox\nCOPY . /\n"})
    build(builds, git)
    assert builds.sh("cat /a") == "two"
    build(builds, f"{git}#:sub")
    assert builds.sh("cat /b; ls -a / | grep -c git || true") == "b0\n"
    build(builds, f"{git}?tag=v1", "--build-arg", "BUILDKIT_CONTEXT_KEEP_GIT_DIR=1", "-f", "sub/../Dockerfile")
    assert builds.sh("cat /a") == "one"


def test_add_takes_repositories_and_files_of_the_web(builds, app, git, web):
    web.files["/x/file.txt"] = b"from the web"
    web.headers["/x/file.txt"] = {"ETag": '"1"', "Last-Modified": "Sat, 03 Feb 2001 04:05:06 GMT"}
    commit = app.run("rev-parse", "HEAD")
    dockerfile = (
        f"FROM busybox\nADD {git}#v1:sub /sub\nADD --keep-git-dir --checksum={commit} {git} /all\n"
        f"ADD {web.url}/x/file.txt /d/\nCOPY --from=named a /named\nCOPY --from=file context /file\n"
    )
    named = ["--build-context", f"named={git}", "--build-context", f"file={web.url}/x/file.txt"]
    builds.run(dockerfile, *named)
    assert builds.sh("cat /sub/b /all/a /named /file /d/file.txt; cat /all/.git/HEAD; stat -c %Y /d/file.txt") == (
        f"boneonefrom the webfrom the web{commit}\n981173106\n"
    )
    assert "CACHED" in builds.run(dockerfile, *named).stderr
    assert any("if-none-match" in headers for _, headers in web.asked)
    done = builds.run(f"FROM busybox\nADD --checksum={'0' * 40} {git} /x\n", check=False)
    assert f"expected checksum to match {'0' * 40}, got {commit}" in done.stderr
    assert ">>> ADD --checksum=" in done.stderr
    assert "does not contain ref nowhere" in builds.run(f"FROM busybox\nADD {git}#nowhere /x\n", check=False).stderr


def test_a_server_that_lies_about_a_tag_gives_no_files(builds, app, web):
    """Neither to who is pinned to the commit that it names, nor later to who asks an honest repository for that one."""
    tag, honest = app.run("rev-parse", "v1"), app.run("rev-parse", "HEAD")
    pinned = app.commit({"a": "two"})
    web.directories["/app.git"] = app.bare
    refs = app.bare / "info/refs"
    truth = refs.read_text()
    assert f"{honest}\trefs/tags/v1^{{}}" in truth and f"{pinned}\trefs/heads/main" in truth
    refs.write_text(truth.replace(f"{honest}\trefs/tags/v1^{{}}", f"{pinned}\trefs/tags/v1^{{}}"))
    source = f"{web.url}/app.git"
    for checksum in (pinned, tag):
        done = builds.run(f"FROM busybox\nADD --checksum={checksum} {source}#v1 /x\n", check=False)
        assert f"says that {tag} is the commit {pinned}, and it is {honest}" in done.stderr
    refs.write_text(truth)
    builds.run(f"FROM busybox\nADD --checksum={pinned} {source}#main /x\n")
    assert builds.sh("cat /x/a") == "two"


def test_a_private_repository_and_a_private_file(builds, app, web):
    web.directories["/app.git"] = app.bare
    web.files["/file"] = b"private"
    web.authorization = "basic c2VjcmV0"
    secret = builds.context.path.parent / "secret"
    secret.write_text("basic c2VjcmV0\n")
    remote = f"{web.url}/app.git"
    assert "could not read Username" in build(builds, remote, check=False).stderr
    build(builds, remote, "--secret", f"id=GIT_AUTH_HEADER,src={secret}")
    assert builds.sh("cat /a") == "one"
    dockerfile = f"FROM busybox\nADD {web.url}/file /file\n"
    assert "401" in builds.run(dockerfile, check=False).stderr
    done = builds.run(dockerfile, "--secret", f"id=HTTP_AUTH_HEADER_127.0.0.1,src={secret}")
    assert builds.sh("cat /file") == "private"
    assert "c2VjcmV0" not in done.stderr


def test_classic_contexts_from_elsewhere(daemon, builds, git, web):
    assert "Successfully built" in str(classic(daemon, f"{git}#v1"))
    assert builds.sh("cat /a") == "one"
    web.files["/x.tgz"] = gzip.compress(archive(Dockerfile=DOCKERFILE, a="1", sub__b="2"))
    assert "Successfully built" in str(classic(daemon, f"{web.url}/x.tgz"))
    web.files["/plain"] = b"FROM busybox\nLABEL a=b\n"
    assert "Successfully built" in str(classic(daemon, f"{web.url}/plain", dockerfile="other"))
    assert builds.config()["Labels"] == {"a": "b"}
    assert "404" in str(classic(daemon, f"{web.url}/none"))
    assert "repository not exported" in str(classic(daemon, git.replace("app", "none")))


# --- files -----------------------------------------------------------------------------------------------------------


def test_an_archive_or_a_dockerfile_of_the_web_is_a_context(builds, web):
    plain = archive(Dockerfile="FROM scratch", other__Dockerfile=DOCKERFILE, a="1", sub__b="2")
    web.files["/x.tar.zst"] = zstandard.compress(plain)
    build(builds, f"{web.url}/x.tar.zst", "-f", "other/Dockerfile")
    assert builds.sh("cat /a /sub/b") == "12"
    assert web.paths() == ["/x.tar.zst"], "a build asks once"
    build(builds, f"{web.url}/x.tar.zst", "-f", "-", input="FROM busybox\nCOPY a /from-stdin\n")
    assert builds.sh("cat /from-stdin") == "1"
    web.files["/plain"] = b"FROM busybox\nLABEL a=b\n"
    build(builds, f"{web.url}/plain")
    assert builds.config()["Labels"] == {"a": "b"}
    done = build(builds, f"{web.url}/none", check=False)
    assert f"failed to GET {web.url}/none with status 404 Not Found" in done.stderr


@pytest.mark.parametrize("buildkit", [True, False], ids=["buildkit", "classic"])
def test_a_context_on_standard_input(daemon, tmp_path, buildkit):
    context = tmp_path / "context"
    context.mkdir()
    builds = Builds(daemon, Context(context), buildkit=buildkit)
    plain = archive(Dockerfile=DOCKERFILE, a="1", sub__b="2")
    for pack in (bytes, gzip.compress, bz2.compress, lzma.compress):
        done = subprocess.run(
            ["docker", "build", "-t", "built", "-"],
            input=pack(plain),
            env=builds.environment,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
    assert builds.sh("cat /a /sub/b") == "12"
    forget_images(daemon)
    daemon.docker("builder", "prune", "-af")


def test_an_image_in_an_oci_layout(daemon, builds, tmp_path):
    builds.run("FROM busybox\nRUN echo laid > /laid\nENV FROM=layout\n")
    daemon.docker("save", "-o", str(tmp_path / "saved.tar"), "built")
    layout = tmp_path / "layout"
    subprocess.run(
        ["skopeo", "copy", "-q", f"docker-archive:{tmp_path}/saved.tar", f"oci:{layout}:v1"], check=True, timeout=60
    )
    forget_images(daemon)
    digest = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"]
    dockerfile = "FROM base\nRUN echo $FROM > /from\nCOPY --from=other /laid /copied\n"
    named = [f"--build-context=base=oci-layout://{layout}:v1", f"--build-context=other=oci-layout://{layout}@{digest}"]
    builds.run(dockerfile, *named)
    assert builds.sh("cat /from /copied") == "layout\nlaid\n"
    assert builds.run(dockerfile, *named).stderr.count("CACHED") >= 2


# --- bad ones --------------------------------------------------------------------------------------------------------


def test_servers_that_do_not_do_well(builds, web):
    def cut(request):
        request.send_response(200)
        request.send_header("Content-Length", "100000")
        request.end_headers()
        request.wfile.write(b"x" * 10)
        request.close_connection = True

    web.pages["/cut"] = cut
    web.pages["/circle"] = lambda request: web.send(request, 302, b"", {"Location": "/circle"})
    web.pages["/elsewhere"] = lambda request: web.send(request, 302, b"", {"Location": "file:///etc/passwd"})
    for path in ("/cut", "/circle", "/elsewhere"):
        done = build(builds, f"{web.url}{path}", check=False)
        assert done.returncode != 0
        assert f'Get "{web.url}{path}"' in done.stderr
    web.files["/half.tar"] = archive(Dockerfile=DOCKERFILE, a="1")[:700]
    assert build(builds, f"{web.url}/half.tar", check=False).returncode != 0
    assert builds.docker("buildx", "du").stdout.count("diff") == 0


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../../escaped", "../../escaped is outside of the root directory"),
        ("link/escaped", "archive entry link/escaped cannot be made"),
        ("/absolute", '"/link/passwd": not found'),
    ],
)
def test_archives_that_lead_out_of_the_context(builds, web, name, why):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
        for file, data in ((name, b"x"), ("Dockerfile", b"FROM busybox\nCOPY link/passwd /x\n")):
            info = tarfile.TarInfo(file)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    web.files["/x.tar"] = out.getvalue()
    done = build(builds, f"{web.url}/x.tar", check=False)
    assert why in done.stderr
    assert not any(Path(path).exists() for path in ("/etc/escaped", "/escaped", "/absolute"))


def test_a_client_that_goes_while_a_server_stalls(daemon, builds, web):
    def stall(request):
        request.send_response(200)
        request.send_header("Content-Length", "100000")
        request.end_headers()
        request.wfile.write(b"x")
        web.ending.wait(60)

    web.pages["/stall"] = stall
    command = ["docker", "build", f"{web.url}/stall"]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        command, env=builds.environment, process_group=0, stdin=nothing, stdout=nothing, stderr=nothing
    ) as client:
        until(lambda: web.paths() == ["/stall"], "the server is asked")
        os.killpg(client.pid, signal.SIGKILL)


@pytest.mark.skipif(PROGRAM is None, reason="sshd is not here: scripts/setup --test")
def test_a_repository_behind_ssh(builds: Builds, app: Repository, tmp_path: Path) -> None:
    place = tmp_path / "ssh"
    place.mkdir()
    with sshd(place) as server:
        url = f"ssh://root@127.0.0.1:{server.port}{app.bare}"
        builds.docker("build", "-t", "built", "--ssh", f"default={server.agent}", f"{url}#main")
        assert builds.sh("cat /a /sub/b") == "oneb"
        builds.context.write({"Dockerfile": f"FROM busybox\nADD {url}#v1 /added\n"})
        builds.docker("build", "-t", "built", "--ssh", f"default={server.agent}", str(builds.context.path))
        assert builds.sh("cat /added/a") == "one"
        refused = builds.docker("build", f"{url}#main", check=False)
        assert refused.returncode != 0
        assert "ssh" in refused.stderr.lower()
