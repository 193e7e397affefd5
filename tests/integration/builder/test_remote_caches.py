"""Caches that are elsewhere, with the stock buildx: written by one daemon, read by the next, and by a real dockerd."""

import json
import re

import pytest

from tests.support.building import Builds, Context, needs_buildx
from tests.support.daemon import Daemon
from tests.support.dockerd import Dockerd
from tests.support.registry import Registry

pytestmark = needs_buildx

DOCKERFILE = """\
FROM {base} AS one
WORKDIR /work
RUN echo one > /one
COPY dir dir/
RUN --mount=type=bind,source=dir,target=/d --mount=type=cache,target=/c cat /d/b.txt > /two
FROM {base}
COPY --from=one /one /two /out/
COPY --chmod=600 *.txt /txt/
COPY --link a.txt /linked/
RUN cat /out/* /txt/* /linked/* > /end
"""
FILES = {"a.txt": "a\n", "dir/b.txt": "b\n"}


@pytest.fixture(scope="module")
def registry():
    with Registry() as registry:
        yield registry


@pytest.fixture(scope="module")
def base(registry):
    """An image of the registry's, which no daemon here has."""
    name = f"{registry.host}/base:1"
    with Daemon() as daemon:
        daemon.docker("tag", "busybox", name)
        daemon.docker("push", name)
    return name


class Place:
    """Builds of one context on a daemon, and how many of its steps ran."""

    def __init__(self, daemon, path, base):
        path.mkdir(exist_ok=True)
        self.builds = Builds(daemon, Context(path / "context"), buildkit=True)
        self._dockerfile = DOCKERFILE.format(base=base)

    def build(self, *options, files=None, tag="built"):
        """The steps that ran."""
        context = self.builds.context.write({"Dockerfile": self._dockerfile, **(files or FILES)})
        words = ["--progress=plain", "--network=none", "-t", tag, *options, str(context.path)]
        done = self.builds.docker("build", *words)
        numbers = dict(re.findall(r"^#(\d+) \[\S+ \d+/\d+\] (.*)$", done.stderr, re.M))
        ran = set(re.findall(r"^#(\d+) DONE", done.stderr, re.M)) - set(
            re.findall(r"^#(\d+) CACHED", done.stderr, re.M)
        )
        return [name for number, name in numbers.items() if number in ran and not name.startswith("FROM")]


@pytest.fixture
def places(tmp_path, base):
    def open_place(daemon, name):
        return Place(daemon, tmp_path / name, base)

    return open_place


def test_all_three_kinds_are_read_by_another_daemon_and_base_images_are_not_listed(places, registry, tmp_path):
    inline, cache = f"{registry.host}/inline:1", f"{registry.host}/cache:1"
    local = str(tmp_path / "cache")
    with Daemon() as daemon:
        place = places(daemon, "one")
        kinds = ["--cache-to", f"type=local,dest={local},mode=max", "--cache-to", f"type=registry,ref={cache},mode=max"]
        assert len(place.build(*kinds, "--cache-to", "type=inline", "--push", tag=inline)) >= 8
        listed = daemon.docker("images", "--format", "{{.Repository}}").stdout.split()
        assert f"{registry.host}/base" not in listed
    for name, source in {"two": f"type=local,src={local}", "three": cache, "four": inline}.items():
        with Daemon() as daemon:
            place = places(daemon, name)
            assert place.build("--cache-from", source) == []
            assert place.builds.sh("cat /end") == "one\nb\na\na\n"
            # The next build hits without it; a change runs what depends on it, on top of what was fetched.
            assert place.build() == []
            changed = place.build(files=FILES | {"a.txt": "changed\n"})
            assert any("RUN cat" in step for step in changed)
            assert place.builds.sh("cat /end") == "one\nb\nchanged\nchanged\n"
            if name == "four":
                # What the cache has fetched goes with it.
                daemon.docker("image", "rm", "-f", "built")
                place.builds.docker("builder", "prune", "-af")
                held = json.loads(daemon.docker("system", "df", "--format", "json").stdout.splitlines()[-1])
                assert held["Size"] == "0B"


def test_a_cache_that_cannot_be_read_or_written(places, registry):
    with Daemon() as daemon:
        place = places(daemon, "one")
        nowhere = f"{registry.host}/nothing:1"
        assert len(place.build("--cache-from", nowhere, "--cache-from", f"{registry.host}/base:1")) >= 8
        place.build("--cache-to", "type=registry,ref=127.0.0.1:1/x,ignore-error=true")
        refused = {
            "type=registry,ref=127.0.0.1:1/x": "connect",
            f"type=registry,ref={nowhere},mode=most": "mode",
        }
        for words, told in refused.items():
            done = place.builds.docker("build", "--cache-to", words, str(place.builds.context.path), check=False)
            assert done.returncode != 0
            assert told in done.stderr


@pytest.mark.skipif(not Dockerd.available(), reason=Dockerd.missing() or "no dockerd")
def test_dockerd_reads_ours_and_we_read_its(places, registry):
    ours, theirs = f"{registry.host}/ours:1", f"{registry.host}/theirs:1"
    with Dockerd(containerd_store=True) as dockerd:
        if int(dockerd.docker("version", "--format", "{{.Server.Version}}").stdout.split(".")[0]) < 24:
            pytest.skip("this dockerd has no image store that its builder can export caches with")
        place = places(dockerd, "dockerd")
        assert len(place.build("--cache-to", f"type=registry,ref={theirs},mode=max")) >= 8
        with Daemon() as daemon:
            husk = places(daemon, "husk")
            assert husk.build("--cache-from", theirs, "--cache-to", f"type=registry,ref={ours},mode=max") == []
            assert husk.builds.sh("cat /end") == "one\nb\na\na\n"
        place.builds.docker("builder", "prune", "-af")
        assert place.build("--cache-from", ours) == []
