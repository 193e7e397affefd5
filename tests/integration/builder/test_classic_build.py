"""`DOCKER_BUILDKIT=0 docker build` and docker-py's builds through a real daemon."""

import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.support.building import Builds, Context, needs_buildx
from tests.support.daemon import Daemon
from tests.support.images import forget_images
from tests.support.registry import Registry, tar_of


@pytest.fixture
def builds(daemon: Daemon, tmp_path: Path) -> Iterator[Builds]:
    yield Builds(daemon, Context(tmp_path), buildkit=False)
    forget_images(daemon)
    daemon.docker("builder", "prune", "-af")


def lines(done: Any) -> list[str]:
    return done.stdout.splitlines()


def test_a_dockerfile_becomes_an_image_that_runs(builds):
    done = builds.run(
        "FROM busybox\nENV WHO=world\nWORKDIR /app\nCOPY greet .\nRUN chmod +x greet && ./greet > said\n"
        'CMD ["cat", "said"]\n',
        files={"greet": "#!/bin/sh\necho hello $WHO\n"},
    )
    assert "Step 1/6 : FROM busybox" in lines(done)
    assert f"Successfully built {builds.inspect()['Id'].removeprefix('sha256:')[:12]}" in lines(done)
    assert "Successfully tagged built:latest" in lines(done)
    assert builds.sh("cat /app/said") == "hello world\n"
    config = builds.config()
    assert (config["WorkingDir"], config["Cmd"]) == ("/app", ["cat", "said"])
    assert "WHO=world" in config["Env"]


def test_what_a_step_says_is_shown_and_a_failure_has_its_code(builds):
    done = builds.run("FROM busybox\nRUN echo before; exit 7\n", check=False)
    assert done.returncode == 7
    assert "before" in lines(done)
    assert "The command '/bin/sh -c echo before; exit 7' returned a non-zero code: 7" in done.stderr


def test_an_image_is_the_child_of_its_base(builds, daemon):
    with Registry() as registry:
        name = f"{registry.host}/team/base:1"
        daemon.docker("tag", "busybox", name)
        daemon.docker("push", name)
        (digest,) = daemon.http("GET", f"/images/{name}/json").json()["RepoDigests"]
        builds.run(f"FROM {digest}\nRUN true > /made\nLABEL a=b\n")
        base = daemon.http("GET", "/images/busybox/json").json()["Id"]
        assert builds.inspect()["Parent"] == base
        steps = daemon.docker("history", "-q", "--no-trunc", "built").stdout.split()
        assert steps == [builds.inspect()["Id"], "<missing>", base]
        for container, image in (("one", digest), ("two", "built"), ("three", name)):
            daemon.docker("create", "--name", container, image, "true")
        names = ["ps", "-a", "--format", "{{.Names}}", "--filter"]
        assert set(daemon.docker(*names, f"ancestor={digest}").stdout.split()) == {"one", "two", "three"}
        assert daemon.docker(*names, "ancestor=built").stdout.split() == ["two"]
        assert daemon.docker(*names, f"ancestor=busybox:no@{digest.partition('@')[2]}").stdout == ""
        assert "image has dependent child images" in daemon.docker("rmi", "-f", base, check=False).stderr


@needs_buildx
def test_it_is_in_the_history_of_builds(builds, daemon, tmp_path_factory):
    builds.run("FROM busybox\nRUN echo said in a classic build\n", "--no-cache")
    other = Builds(daemon, Context(tmp_path_factory.mktemp("buildx")), buildkit=True)
    assert "Completed" in other.docker("buildx", "history", "ls").stdout
    assert "said in a classic build" in other.docker("buildx", "history", "logs").stderr
    builds.run("FROM busybox\nRUN exit 7\n", check=False)
    assert "non-zero code: 7" in other.docker("buildx", "history", "inspect").stdout


def test_the_second_time_it_comes_from_the_cache(builds):
    dockerfile = "FROM busybox\nCOPY a /a\nRUN head -c 8 /dev/urandom | md5sum > /random\n"
    builds.run(dockerfile, files={"a": "1"})
    first = builds.inspect()["RootFS"]["Layers"]
    done = builds.run(dockerfile)
    assert " ---> Using cache" in lines(done)
    assert builds.inspect()["RootFS"]["Layers"] == first
    os.utime(builds.context.path / "a", (1, 1))
    builds.run(dockerfile)
    assert builds.inspect()["RootFS"]["Layers"] == first, "a file that was only touched is the same file"
    builds.run(dockerfile, files={"a": "2"})
    assert builds.inspect()["RootFS"]["Layers"][:1] == first[:1]
    assert builds.inspect()["RootFS"]["Layers"] != first
    builds.run(dockerfile, "--no-cache")
    assert builds.inspect()["RootFS"]["Layers"][-1] != first[-1]


def test_a_dockerfile_on_standard_input_beside_a_directory(builds):
    """The client ends that archive behind the last byte of the Dockerfile."""
    builds.context.write({"a": "from the directory"})
    builds.docker("build", "-t", "built", "-f", "-", str(builds.context.path), input="FROM busybox\nCOPY a /a\n")
    assert builds.sh("cat /a") == "from the directory"


def test_stages_arguments_and_targets(builds):
    dockerfile = """
ARG BASE=busybox
FROM $BASE AS one
ARG VALUE=default
RUN echo $VALUE > /value
FROM scratch AS two
COPY --from=one /value /other
FROM busybox
COPY --from=two /other /here
"""
    builds.run(dockerfile, "--build-arg", "VALUE=mine")
    assert builds.sh("cat /here") == "mine\n"
    builds.run(dockerfile, "--target", "one", "-t", "first")
    assert builds.sh("cat /value", "first") == "default\n"


def test_a_stage_that_nothing_needs_is_built_too(builds):
    dockerfile = "FROM busybox AS app\nRUN echo app\nFROM app AS tests\nRUN echo tested; {}\nFROM app\nCMD x\n"
    assert "tested" in lines(builds.run(dockerfile.format("true")))
    assert builds.run(dockerfile.format("exit 3"), check=False).returncode == 3
    assert "tested" not in lines(builds.run(dockerfile.format("false"), "--target", "app"))


def test_settings_of_an_image(builds):
    builds.run(
        """FROM busybox
LABEL a=b c="d e"
EXPOSE 80 53/udp
VOLUME /data
USER 1000:1000
STOPSIGNAL SIGINT
SHELL ["/bin/sh", "-ec"]
HEALTHCHECK --interval=5s --retries=2 CMD true
ONBUILD RUN echo triggered > /tmp/triggered
ENTRYPOINT ["/bin/sh"]
CMD ["-c", "id"]
""",
        "--label", "more=yes",
    )  # fmt: skip
    config = builds.config()
    assert config["Labels"] == {"a": "b", "c": "d e", "more": "yes"}
    assert sorted(config["ExposedPorts"]) == ["53/udp", "80/tcp"]
    assert list(config["Volumes"]) == ["/data"]
    assert (config["User"], config["StopSignal"], config["Shell"]) == ("1000:1000", "SIGINT", ["/bin/sh", "-ec"])
    assert config["Healthcheck"]["Retries"] == 2
    assert config["OnBuild"] == ["RUN echo triggered > /tmp/triggered"]
    builds.run("FROM built\nUSER root\n", "-t", "child")
    assert builds.sh("cat /tmp/triggered", "child") == "triggered\n"


def test_owners_and_modes(builds):
    builds.run(
        """FROM busybox
RUN mkdir /etc2; echo ada:x:1000:1001::/:/bin/sh >> /etc/passwd; echo staff:x:1001: >> /etc/group
COPY --chown=ada:staff a /ada
COPY --chown=5:6 --chmod=640 a /numbers
COPY tree /tree/
ADD some.tar /unpacked/
""",
        files={"a": "x", "tree/sub/file": "y", "some.tar": _tar({"inside": b"z"})},
    )
    assert builds.sh("stat -c %u:%g:%a /ada /numbers /tree/sub/file") == "1000:1001:644\n5:6:640\n0:0:644\n"
    assert builds.sh("cat /unpacked/inside") == "z"


def test_what_is_ignored_stays_behind(builds):
    builds.run(
        "FROM busybox\nCOPY . /all/\n",
        files={".dockerignore": "*.log\nDockerfile\n!keep.log\n", "a.log": "1", "keep.log": "2", "b": "3"},
    )
    assert builds.sh("ls -A /all").split() == [".dockerignore", "b", "keep.log"]


@pytest.mark.parametrize(
    ("dockerfile", "complaint"),
    [
        ("FROM busybox\nRUM make\n", "unknown instruction: RUM (did you mean RUN?)"),
        ("FROM busybox\nCOPY missing /\n", "missing"),
        ("FROM busybox\nCOPY --from=nobody a b\n", "nobody"),
        ("RUN true\n", "no build stage in current context"),
        ("FROM busybox\nCOPY ../../etc/passwd /\n", "etc/passwd"),
    ],
)
def test_what_is_wrong_is_told(builds, dockerfile, complaint):
    done = builds.run(dockerfile, check=False)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_limits_and_networks_of_steps(builds):
    script = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max"
    done = builds.run(
        f"FROM busybox\nRUN {script}; cat /etc/hosts; ulimit -n; ls /sys/class/net\n",
        "--memory", "64m", "--add-host", "db:10.1.2.3", "--ulimit", "nofile=100:100", "--network", "none",
    )  # fmt: skip
    said = done.stdout
    assert str(64 << 20) in said
    assert "10.1.2.3\tdb" in said
    assert "100" in lines(done)
    assert "eth0" not in said


def test_a_network_that_somebody_has_made(builds, daemon):
    daemon.docker("network", "create", "--subnet", "10.198.77.0/24", "mine")
    try:
        done = builds.run("FROM busybox\nRUN ip -4 addr show eth0\n", "--network", "mine")
        assert "10.198.77." in done.stdout
    finally:
        daemon.docker("network", "rm", "mine")
    assert builds.run("FROM busybox\nRUN true\n", "--network", "nowhere", "--no-cache", check=False).returncode != 0


def test_output_without_end_is_cut_off(builds):
    done = builds.run("FROM busybox\nRUN yes | head -c 50000000\n")
    assert len(done.stdout) < 3_000_000
    assert "output clipped" in done.stdout


def test_a_quiet_build_prints_the_id(builds):
    done = builds.run("FROM busybox\nRUN true\n", "-q")
    assert done.stdout.strip() == builds.inspect()["Id"]


def test_an_image_of_nothing_but_settings(builds):
    builds.run("FROM scratch\nLABEL a=b\n")
    assert builds.inspect()["RootFS"].get("Layers") in (None, [])


def test_an_image_without_files_is_the_same_each_time(builds, daemon):
    builds.run("FROM scratch\nMAINTAINER me\nEXPOSE 80 443\n")
    first = builds.inspect()["Id"]
    daemon.stop()
    daemon.start()
    done = builds.run("FROM scratch\nMAINTAINER me\nEXPOSE 443 80\n")
    assert builds.inspect()["Id"] == first
    assert lines(done).count(" ---> Using cache") == 2


def test_what_is_written_into_a_volume_is_gone(builds):
    done = builds.run(
        "FROM busybox\nRUN mkdir /v && echo a > /v/old\nVOLUME /v /run /var/new\n"
        "RUN echo b > /v/new; echo c > /run/file; echo d > /var/new/file; cat /v/* /run/* /var/new/*\n"
        "RUN ls /v /run /var/new\nCOPY a /v/\n",
        files={"a": "x"},
    )
    assert [line for line in lines(done) if line in tuple("abcd")] == ["b", "a", "c", "d"]
    assert builds.sh("ls /v") == "a\nold\n"


def test_the_cache_is_shown_and_pruned(builds, daemon):
    builds.run("FROM busybox\nRUN head -c 1000000 /dev/zero > /big\n")
    usage = json.loads(daemon.docker("system", "df", "--format", "json").stdout.splitlines()[-1])
    assert usage["Type"] == "Build Cache"
    assert int(usage["TotalCount"]) >= 1
    daemon.docker("rmi", "built")
    pruned = daemon.docker("builder", "prune", "-af").stdout
    assert "Total reclaimed space: 1MB" in pruned or "Total:" in pruned
    usage = json.loads(daemon.docker("system", "df", "--format", "json").stdout.splitlines()[-1])
    assert int(usage["TotalCount"]) == 0


def test_steps_are_never_listed_and_leave_nothing(builds, daemon):
    builds.run("FROM busybox\nRUN true\nRUN true\n")
    assert daemon.docker("ps", "-aq").stdout == ""


def test_docker_py_builds(builds, daemon):
    client = docker.DockerClient(base_url=daemon.host)
    try:
        file = io.BytesIO(b"FROM busybox\nRUN echo from python\n")
        image, log = client.images.build(fileobj=file, tag="python", rm=True)
        assert image.tags == ["python:latest"]
        assert "from python" in json.dumps(list(log))
        with pytest.raises(docker.errors.BuildError, match="non-zero code: 3"):
            client.images.build(fileobj=io.BytesIO(b"FROM busybox\nRUN exit 3\n"))
    finally:
        client.close()


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def test_a_registry_that_cannot_be_reached_is_told_in_the_stream(daemon):
    """As dockerd does: the build has begun, and its first step says so."""
    archive = _tar({"Dockerfile": b"FROM 127.0.0.1:1/app\n"})
    answer = daemon.http("POST", "/build?pull=1", archive, {"Content-Type": "application/x-tar"})
    told = [json.loads(line) for line in answer.body.splitlines()]
    assert answer.status == 200 and told[0]["stream"].startswith("Step 1/1 : FROM 127.0.0.1:1/app")
    assert "connect: connection refused" in told[-1]["error"]


def test_an_image_serves_as_a_cache_by_its_history(builds, daemon):
    dockerfile = (
        "FROM busybox\nENV A=b\nRUN head -c 8 /dev/urandom > /one\nCOPY a /a\nRUN head -c 8 /dev/urandom > /two\n"
    )
    builds.run(dockerfile, "-t", "old", files={"a": "1"})
    first = builds.inspect("old")["RootFS"]["Layers"]
    daemon.docker("builder", "prune", "-af")
    done = builds.run(dockerfile, "--cache-from", "old")
    assert lines(done).count(" ---> Using cache") == 3, "both commands, and what changes no file"
    assert builds.inspect()["RootFS"]["Layers"] == first
    daemon.docker("builder", "prune", "-af")
    done = builds.run(dockerfile, "--cache-from", "old", "--cache-from", "absent", files={"a": "2"})
    assert lines(done).count(" ---> Using cache") == 2, "what was copied is another file"
    assert builds.inspect()["RootFS"]["Layers"][:2] == first[:2]


def test_all_that_is_added_can_be_one_layer(tmp_path):
    text = "FROM busybox\nRUN echo 1 > /one; echo secret > /gone\nENV a=b\nRUN echo 2 > /two; rm /gone /bin/wget\n"
    with Daemon("--experimental") as daemon:
        builds = Builds(daemon, Context(tmp_path / "context"), buildkit=False)
        builds.run(text)
        whole = builds.inspect()["RootFS"]["Layers"]
        builds.run(text, "--squash")
        made = builds.inspect()
        assert len(made["RootFS"]["Layers"]) == len(whole) - 1 and made["RootFS"]["Layers"][:-1] == whole[:-2]
        assert builds.sh("cat /one /two; ls /gone /bin/wget 2>&1 | wc -l") == "1\n2\n2\n"
        assert "a=b" in made["Config"]["Env"]
        sizes = [line for line in daemon.docker("history", "--format", "{{.Size}}", "built").stdout.split() if line]
        assert sizes[0] != "0B" and sizes[1:4] == ["0B"] * 3, "one step has what three added"
        daemon.docker("rmi", "built")


def test_layers_are_squashed_by_experimental_daemons_alone(daemon):
    done = daemon.http("POST", "/build?squash=1", tar_of({"Dockerfile": b"FROM busybox\n"}))
    assert (done.status, done.message) == (400, "squash is only supported with experimental mode")
