"""`docker build` as the client does it by default: buildx, by BuildKit's protocol, against a real daemon."""

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.building import Builds, buildkit_builds, needs_buildx
from tests.support.daemon import Daemon
from tests.support.registry import Registry
from tests.support.waiting import until, wait_until

pytestmark = needs_buildx


@pytest.fixture
def builds(daemon: Daemon, tmp_path: Path) -> Iterator[Builds]:
    with buildkit_builds(daemon, tmp_path) as builds:
        yield builds


def test_a_dockerfile_becomes_an_image_that_runs(builds):
    done = builds.run(
        "FROM busybox\nENV WHO=world\nWORKDIR /app\nCOPY greet .\nRUN chmod +x greet && ./greet | tee said\n"
        'CMD ["cat", "said"]\n',
        files={"greet": "#!/bin/sh\necho hello $WHO\n"},
    )
    assert re.search(r"#\d+ \[4/4\] RUN chmod", done.stderr)
    assert re.search(r"#\d+ [\d.]+ hello world", done.stderr)
    assert f"writing image {builds.inspect()['Id']}" in done.stderr
    assert builds.sh("cat /app/said") == "hello world\n"


def test_the_second_time_it_comes_from_the_cache(builds):
    dockerfile = "FROM busybox\nCOPY a /a\nRUN head -c 8 /dev/urandom | md5sum > /random\n"
    builds.run(dockerfile, files={"a": "1", "b": "1"})
    first = builds.inspect()["Id"]
    os.utime(builds.context.path / "a", (1, 1))
    done = builds.run(dockerfile, files={"b": "2"})
    assert done.stderr.count("CACHED") == 3
    assert builds.inspect()["Id"] == first
    builds.run(dockerfile, files={"a": "2"})
    assert builds.inspect()["Id"] != first
    builds.run(dockerfile, "--no-cache", files={"a": "1"})
    assert builds.inspect()["Id"] != first


MANY = {f"many/{number}": f"{number}" for number in range(300)}


def test_what_is_made_of_a_context_does_not_change_it(builds):
    """So many files that a second process packs them; two of them are one."""
    dockerfile = "FROM busybox\nCOPY . /c/\n"
    builds.context.write({"a": "1", "b": "2", **MANY})
    os.link(builds.context.path / "a", builds.context.path / "same")
    builds.run(dockerfile + "RUN echo x >> /c/a && chmod 600 /c/b && rm /c/many/1\n")
    shown = "cat /c/a; echo; stat -c %a /c/b; ls /c/many | wc -l"
    assert builds.sh(shown).split() == ["1x", "600", "299"]
    builds.run(dockerfile, files={"new": ""})
    assert builds.sh(shown).split() == ["1", "644", "300"]
    assert builds.sh("stat -c %h /c/a /c/same /c/b").split() == ["2", "2", "1"]


def test_a_large_context_is_packed_while_it_comes_to_the_same_layer(builds, daemon):
    """The first build packs it ahead; the next one, to which nothing is sent, packs it as it copies."""
    builds.context.write({"Dockerfile": "FROM busybox\nCOPY . /c/\n", "large": os.urandom(20 << 20), "d/small": "text"})
    (builds.context.path / "link").symlink_to("d")
    layers = []
    for options in ((), ("--no-cache",)):
        builds.docker("build", "-t", "built", *options, str(builds.context.path))
        layers.append(builds.inspect()["RootFS"]["Layers"])
    assert layers[0] == layers[1]
    assert builds.sh("cat /c/link/small") == "text"
    assert os.listdir(daemon.config.data_root / "blobs/ingest") == []


@pytest.mark.parametrize("options", [[], ["--no-cache"]])
def test_many_builds_of_one_directory_leave_as_many_mirrors_as_one(builds, daemon, options):
    """Of the context, the Dockerfile and what is ignored."""

    def mirrors() -> int:
        return len(list((daemon.config.data_root / "mirrors").iterdir()))

    before = mirrors()
    for number in range(4):
        builds.run("FROM busybox\nCOPY file /\n", *options, files={"file": f"{number}", ".dockerignore": "no"})
    until(lambda: mirrors() == before + 3, "three mirrors")


def test_two_builds_of_one_context_at_once(builds):
    builds.context.write({"Dockerfile": "FROM busybox\n", **MANY})
    for name in "ab":
        builds.context.write({f"{name}.Dockerfile": f"FROM busybox\nCOPY . /c/\nRUN echo {name} > /c/many/1\n"})

    def build(name: str) -> str:
        file = builds.context.path / f"{name}.Dockerfile"
        builds.docker("build", "-t", name, "-f", str(file), str(builds.context.path))
        return builds.sh("cat /c/many/1 /c/many/2; ls /c/many | wc -l", name)

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(build, "ab")) == ["a\n2300\n", "b\n2300\n"]


def test_a_failure_shows_the_lines_and_the_code(builds):
    done = builds.run("FROM busybox\nRUN echo before; exit 7\n", check=False)
    assert done.returncode != 0
    assert "before" in done.stderr
    assert "exit code: 7" in done.stderr
    assert ">>> RUN echo before; exit 7" in done.stderr


def test_stages_run_side_by_side_and_unused_ones_not_at_all(builds):
    done = builds.run(
        """FROM busybox AS one
RUN touch /one
FROM busybox AS two
RUN touch /two
FROM busybox AS unused
RUN false
FROM busybox
COPY --from=one /one /
COPY --from=two /two /
"""
    )
    assert "unused" not in done.stderr
    assert builds.sh("ls /one /two") == "/one\n/two\n"


def test_mounts_of_steps(builds, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hush")
    dockerfile = """FROM busybox
RUN --mount=type=cache,target=/cache echo x >> /cache/count; wc -l < /cache/count > /times
RUN --mount=type=secret,id=s md5sum /run/secrets/s > /sum
RUN --mount=type=bind,target=/context cp /context/a /a
RUN --mount=type=tmpfs,target=/t touch /t/x
"""
    builds.run(dockerfile, "--secret", f"id=s,src={secret}", files={"a": "1\n"})
    builds.run(dockerfile.replace("/times", "/times; true"), "--secret", f"id=s,src={secret}")
    assert builds.sh("cat /times /a; ls -d /cache/* /t/* /run/secrets/* 2>/dev/null; true").split() == ["2", "1"]
    assert "hush" not in json.dumps(builds.inspect())
    done = builds.run("FROM busybox\nRUN --mount=type=secret,id=s,required true\n", check=False)
    assert "secret s: not found" in done.stderr or "not found" in done.stderr


def test_without_a_cache_its_mounts_are_empty_at_first(builds):
    dockerfile = (
        "FROM busybox\nRUN --mount=type=cache,target=/c,id=anew%s echo x >> /c/f; wc -l < /c/f > /times; true %s\n"
    )
    for options in ("", ",mode=700,uid=5"):
        for number, (given, count) in enumerate([((), "1"), ((), "2"), (("--no-cache",), "1"), ((), "2")]):
            builds.run(dockerfile % (options, number), *given)
            assert builds.sh("cat /times").split() == [count], (options, number)


def test_a_step_cannot_fill_the_memory_of_the_files_that_it_is_given(builds, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hush" * 5000)
    dockerfile = """FROM busybox
RUN --mount=type=secret,id=s,mode=0666 <<EOF
for file in /etc/hosts /etc/resolv.conf /run/secrets/s; do
    echo more 2> /dev/null >> $file || echo "$file stays" >> /said
done
set -- $(stat -f -c "%s %b" /run/secrets/s)
[ $(($1 * $2)) -lt 200000 ] && [ $(wc -c < /run/secrets/s) = 20000 ] && echo small >> /said
EOF
RUN cat /etc/hosts > /dev/null && ! rm /etc/hosts 2> /dev/null && cp /etc/hosts /copy
"""
    builds.run(dockerfile, "--secret", f"id=s,src={secret}")
    said = builds.sh("cat /said; test -s /copy && echo copied").splitlines()
    assert said == ["/etc/hosts stays", "/etc/resolv.conf stays", "/run/secrets/s stays", "small", "copied"]


def test_arguments_targets_and_ignored_files(builds):
    dockerfile = """ARG BASE=busybox
FROM $BASE AS first
ARG VALUE=default
RUN echo $VALUE > /value
FROM first
COPY . /all/
"""
    files = {".dockerignore": "*.log\n", "a.log": "1", "b": "2"}
    builds.run(dockerfile, "--build-arg", "VALUE=mine", files=files)
    assert builds.sh("cat /value; ls -A /all").split() == ["mine", ".dockerignore", "Dockerfile", "b"]
    builds.run(dockerfile, "--target", "first", "-t", "target")
    assert builds.sh("cat /value", "target") == "default\n"


def test_named_contexts(builds, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("from elsewhere")
    builds.run(
        "FROM base\nCOPY --from=other file /file\n",
        "--build-context", "base=docker-image://busybox",
        "--build-context", f"other={tmp_path / 'other'}",
    )  # fmt: skip
    assert builds.sh("cat /file") == "from elsewhere"


def test_a_named_context_in_the_place_of_a_stage(builds, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("from elsewhere")
    dockerfile = "FROM missing/base AS one\nRUN false\nFROM busybox\nCOPY --from=one file /file\n"
    builds.run(dockerfile, "--build-context", f"one={tmp_path / 'other'}")
    assert builds.sh("cat /file") == "from elsewhere"
    builds.run("FROM nothing\nCOPY --from=busybox /etc/passwd /\n", "--build-context", "nothing=docker-image://scratch")


def test_the_host_has_a_name(builds):
    done = builds.run("FROM busybox\nRUN grep the.host /etc/hosts\n", "--add-host", "the.host:host-gateway")
    assert "the.host" in done.stderr.split("grep the.host")[-1]


def test_warnings_come_with_a_failure(builds):
    for line in ("RUN false", "EXPOSE nothing"):
        done = builds.run(f"FROM busybox\nMAINTAINER me\n{line}\n", check=False)
        assert done.returncode == 1
        assert "MaintainerDeprecated" in done.stderr


def test_a_target_of_a_bake_file_begins_with_another(builds):
    builds.context.write(
        {
            "Dockerfile": "FROM base\nRUN echo $WHOSE > /whose\n",
            "base.Dockerfile": "FROM busybox\nENV WHOSE=other\n",
            "bake.json": json.dumps(
                {
                    "target": {
                        "base": {"dockerfile": "base.Dockerfile"},
                        "app": {"contexts": {"base": "target:base"}, "tags": ["built"]},
                    }
                }
            ),
        }
    )
    builds.docker("buildx", "bake", "--allow=fs.read=/", "-f", "bake.json", "app", cwd=builds.context.path)
    assert builds.sh("cat /whose") == "other\n"


def test_a_dockerfile_on_standard_input(builds):
    done = builds.docker("build", "-t", "built", "-", input="FROM busybox\nRUN echo piped > /piped\n")
    assert done.returncode == 0
    assert builds.sh("cat /piped") == "piped\n"


def test_a_policy_says_which_sources_a_build_may_have(builds, tmp_path):
    policy = tmp_path / "policy.json"

    def build(*rules: object) -> "subprocess.CompletedProcess[str]":
        policy.write_text(json.dumps({"version": 1, "rules": rules}))
        where = str(builds.context.path)
        environment = {"EXPERIMENTAL_BUILDKIT_SOURCE_POLICY": str(policy)}
        return builds.docker("build", "-t", "built", "--progress=plain", where, env=environment, check=False)

    builds.run("FROM missing/base\nRUN true\n", check=False)
    other = {"action": "CONVERT", "selector": {"identifier": "docker-image://docker.io/missing/*:*"}}
    done = build({**other, "updates": {"identifier": "docker-image://docker.io/library/busybox:latest"}})
    assert done.returncode == 0, done.stderr
    builds.context.write({"Dockerfile": "FROM busybox\nADD https://example.invalid/x /\n"})
    for denied in ("docker-image://docker.io/library/busybox:*", "https://example.invalid/*", "local://context"):
        done = build({"action": "DENY", "selector": {"identifier": denied}})
        assert done.returncode == 1 and "denied by policy" in done.stderr, denied


def test_metadata_and_ids_in_files(builds, tmp_path):
    builds.run(
        "FROM busybox\nRUN true\n",
        "--iidfile", str(tmp_path / "iid"), "--metadata-file", str(tmp_path / "meta"),
    )  # fmt: skip
    assert (tmp_path / "iid").read_text() == builds.inspect()["Id"]
    assert json.loads((tmp_path / "meta").read_text())["image.name"] == "docker.io/library/built:latest"


@pytest.mark.parametrize(
    ("dockerfile", "complaint"),
    [
        ("FROM busybox\nRUM make\n", "did you mean RUN?"),
        ("FROM busybox\nCOPY missing /\n", "missing"),
        ("FROM nowhere.invalid/x\n", "nowhere.invalid"),
    ],
)
def test_what_is_wrong_is_told(builds, dockerfile, complaint):
    done = builds.run(dockerfile, check=False)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_the_cache_is_shown_and_pruned(builds):
    builds.run("FROM busybox\nRUN echo x > /x\n")
    assert "exec /bin/sh -c echo x" in builds.docker("buildx", "du", "--verbose").stdout
    assert "Total" in builds.docker("buildx", "prune", "-af").stdout


def test_files_of_a_result_for_the_client(builds, tmp_path):
    builds.context.write({"Dockerfile": "FROM scratch\nCOPY a b/c /\n", "a": "1", "b/c": "2"})
    out = tmp_path / "out"
    builds.docker("build", "-o", str(out), str(builds.context.path))
    assert {path.name: path.read_text() for path in out.iterdir()} == {"a": "1", "c": "2"}


def test_checks_of_the_dockerfile_are_shown(builds):
    done = builds.run("FROM busybox\nCMD echo x\n")
    assert "JSONArgsRecommended" in done.stderr


def test_a_file_of_the_web(builds):
    with Registry() as registry:
        address = f"http://{registry.host}/v2/"
        builds.run(f"FROM busybox\nADD {address} /answer\nADD --chmod=644 {address} /other/\n")
    assert builds.sh("cat /answer; stat -c %a /answer").split() == ["{}600"]


def test_a_push_to_a_registry(builds):
    with Registry() as registry:
        name = f"{registry.host}/built:1"
        builds.context.write({"Dockerfile": "FROM busybox\nRUN echo pushed > /pushed\n"})
        builds.docker("build", "-t", name, "--push", str(builds.context.path))
        builds.docker("rmi", "-f", name)
        assert builds.sh("cat /pushed", name) == "pushed\n"


def test_builds_that_were_are_told_of_by_the_next_daemon_too(builds, daemon):
    builds.run("FROM busybox\nRUN echo remembered\n", "--no-cache")
    assert "Completed" in builds.docker("buildx", "history", "ls").stdout
    builds.run("FROM busybox\nRUN exit 9\n", check=False)
    daemon.restart()
    assert re.findall("Completed|Error", builds.docker("buildx", "history", "ls").stdout)[:2] == ["Error", "Completed"]
    assert "remembered" in builds.docker("buildx", "history", "logs", "^1").stderr
    shown = builds.docker("buildx", "history", "inspect").stdout
    assert "exit code: 9" in shown
    assert ">>> RUN exit 9" in shown
    assert "Build Steps:" in shown
    builds.docker("buildx", "history", "rm", "--all")
    daemon.restart()
    assert "Completed" not in builds.docker("buildx", "history", "ls").stdout


def test_a_builder_by_its_socket_alone(builds, daemon):
    builds.docker("buildx", "create", "--name", "remote", "--driver", "remote", daemon.host)
    builds.run("FROM busybox\nRUN echo remote > /remote\n", "--builder", "remote", "--output", "type=image,name=built")
    assert builds.sh("cat /remote") == "remote\n"
    cache = f"{builds.config_directory}/cache"
    dockerfile = "FROM busybox\nRUN head -c 8 /dev/urandom > /random\n"
    output = ("--builder", "remote", "--output", "type=image,name=built")
    builds.run(dockerfile, *output, "--cache-to", f"type=local,dest={cache},mode=max")
    made = builds.inspect()["RootFS"]
    daemon.docker("image", "rm", "built")
    daemon.docker("builder", "prune", "-af")
    done = builds.run(dockerfile, *output, "--cache-from", f"type=local,src={cache}")
    assert "importing cache manifest" in done.stderr
    assert builds.inspect()["RootFS"] == made


def test_a_session_whose_request_has_an_empty_body(daemon):
    """Node's clients (dockerode, testcontainers) send one."""
    head = b"POST /session HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n"
    id = b"X-Docker-Expose-Session-Uuid: with-a-body\r\n\r\n0\r\n\r\n"
    settings, acknowledged = b"\0\0\0\4\0\0\0\0\0", b"\0\0\0\4\1\0\0\0\0"
    with contextlib.closing(daemon.raw()) as channel:
        channel.settimeout(20)
        channel.sendall(head + id)
        seen = b""
        while b"PRI * HTTP/2.0" not in seen:
            seen += channel.recv(4096)
        channel.sendall(settings)
        while acknowledged not in seen:
            data = channel.recv(4096)
            assert data, seen
            seen += data


def test_a_client_that_goes_ends_the_build_at_once(builds, daemon):
    builds.context.write({"Dockerfile": "FROM busybox\nRUN echo ready; sleep 987\n"})
    environment = {**os.environ, "DOCKER_HOST": daemon.host, "DOCKER_CONFIG": str(builds.config_directory)}
    process = subprocess.Popen(
        ["docker", "build", "--progress=plain", str(builds.context.path)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if "ready" in line and "RUN" not in line:
            break
    process.terminate()
    process.communicate(timeout=30)
    wait_until(lambda: not running("sleep 987"), "the step's process ends")


def running(command: str) -> bool:
    return subprocess.run(["pgrep", "-xf", command], capture_output=True).returncode == 0
