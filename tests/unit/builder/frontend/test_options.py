"""Options that BuildKit's clients send to a frontend."""

import pytest

from husk.builder.frontend.options import FrontendOptions, read
from husk.builder.graph.operations import StepLimits, StepUlimit
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform


def test_nothing_said():
    found = read({})
    assert found == FrontendOptions(options=found.options)
    assert (found.file_name, found.context_name, found.options.target) == ("Dockerfile", "context", "")


def test_words_of_the_dockerfile():
    found = read({"filename": "a/Dockerfile", "target": "prod", "build-arg:A": "1", "build-arg:B": "", "label:x": "y"})
    assert found.file_name == "a/Dockerfile"
    assert found.options.target == "prod"
    assert found.options.build_args == {"A": "1", "B": ""}
    assert found.options.labels == {"x": "y"}


@pytest.mark.parametrize(
    ("given", "all", "stages"),
    [({}, False, []), ({"no-cache": ""}, True, []), ({"no-cache": "a,b"}, False, ["a", "b"])],
)
def test_what_is_not_taken_from_the_cache(given, all, stages):
    options = read(given).options
    assert (options.no_cache, options.no_cache_stages) == (all, stages)


@pytest.mark.parametrize(
    ("given", "platforms", "several"),
    [
        ({"platform": "linux/arm64"}, [Platform("arm64", "linux")], False),
        ({"platform": "linux/amd64,linux/arm64"}, [Platform("amd64", "linux"), Platform("arm64", "linux")], True),
        ({"platform": "linux/amd64", "multi-platform": "true"}, [Platform("amd64", "linux")], True),
        ({"build-arg:BUILDKIT_MULTI_PLATFORM": "1"}, [], True),
    ],
)
def test_platforms(given, platforms, several):
    found = read(given)
    assert [(each.os, each.architecture) for each in found.platforms] == [(p.os, p.architecture) for p in platforms]
    assert found.several_platforms is several


def test_what_steps_get():
    options = read(
        {
            "add-hosts": "Db=10.0.0.1,six=::1",
            "shm-size": "1048576",
            "ulimit": "nofile=10:20,core=0",
            "force-network-mode": "host",
            "cgroup-parent": "/x",
            "build-arg:BUILDKIT_SANDBOX_HOSTNAME": "here",
            "memory": "1000",
            "memswap": "-1",
            "cpusetcpus": "0-1",
        }
    ).options
    assert options.extra_hosts == [("db", "10.0.0.1"), ("six", "::1")]
    assert options.ulimits == [StepUlimit("nofile", 10, 20), StepUlimit("core", 0, 0)]
    assert (options.shm_size, options.network, options.cgroup_parent) == (1 << 20, "host", "/x")
    assert options.hostname == "here"
    assert options.limits == StepLimits(memory=1000, memory_swap=-1, cpuset_cpus="0-1")


def test_contexts():
    found = read(
        {
            "ctx": "https://example.com/x.git",
            "contextsubdir": "sub",
            "contextkey": "ctx",
            "context:base": "docker-image://alpine",
            "input-metadata:base": "{}",
            "local-sessionid:ctx": "s1",
            "image-resolve-mode": "pull",
        }
    )
    assert (found.context, found.subdirectory, found.context_name) == ("https://example.com/x.git", "sub", "ctx")
    assert found.named_contexts == {"base": "docker-image://alpine"}
    assert found.input_metadata == {"base": "{}"}
    assert found.local_sessions == {"ctx": "s1"}
    assert found.pull


def test_questions_and_statements():
    found = read({"requestid": "frontend.lint", "build-arg:BUILDKIT_DOCKERFILE_CHECK": "skip=all"})
    assert (found.request, found.options.check) == ("frontend.lint", "skip=all")


def test_the_time_that_counts():
    found = read({"build-arg:SOURCE_DATE_EPOCH": "1"})
    assert (found.epoch, found.options.created) == (1, "1970-01-01T00:00:01Z")


@pytest.mark.parametrize(
    "given",
    [
        {"platform": "a/b/c/d"},
        {"platform": "linux/amd64,linux/arm64", "multi-platform": "0"},
        {"multi-platform": "perhaps"},
        {"add-hosts": "db"},
        {"add-hosts": "db=nowhere"},
        {"ulimit": "nofile"},
        {"ulimit": "nofile=many"},
        {"shm-size": "64m"},
        {"memory": "0"},
        {"memory": "-1"},
        {"cpuquota": "x"},
        {"force-network-mode": "bridge2"},
        {"image-resolve-mode": "sometimes"},
        {"build-arg:SOURCE_DATE_EPOCH": "yesterday"},
    ],
)
def test_what_is_wrong_is_refused(given):
    with pytest.raises(InvalidParameter):
        read(given)


@pytest.mark.parametrize("name", ["platform", "add-hosts", "ulimit"])
def test_lists_and_all_of_it_have_an_end(name):
    with pytest.raises(InvalidParameter, match=f"failed to parse {name}: it has more than 1000 fields"):
        read({name: "," * 1000})
    with pytest.raises(InvalidParameter, match="more than 4 MiB"):
        read({"build-arg:A": "x" * (4 << 20)})
    assert len(read({"no-cache": "," * 1_000_000}).options.no_cache_stages) == 1001
