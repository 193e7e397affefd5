"""What Dockerfiles become. The engine's part is played by a double that knows a few images."""

import asyncio
from typing import Any

import pytest

from husk.engine.builder.dockerfile.convert import Result, convert
from husk.engine.builder.dockerfile.errors import DockerfileError
from husk.engine.builder.dockerfile.options import BaseImage, NamedContext, Options
from husk.engine.builder.operations import (
    NONE,
    BindMount,
    CacheMount,
    Exec,
    Files,
    MakeDirectory,
    MakeFile,
    Merge,
    Mount,
    Owner,
    SecretMount,
    SecretVariable,
    Source,
    SshMount,
    TmpfsMount,
)
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import ImageConfig, RootFS
from husk.errors import NotFound
from husk.registry.manifest import Platform

AMD64 = Platform("amd64", "linux")
IMAGES = {
    "busybox": ContainerConfig(env=["PATH=/bin"], cmd=["sh"]),
    "app": ContainerConfig(
        env=["PATH=/bin", "A=1"],
        working_dir="/srv",
        user="web",
        on_build=["COPY . /srv", "RUN --mount=from=tools,target=/t make"],
    ),
    "tools": ContainerConfig(env=["PATH=/tools"]),
    "trigger": ContainerConfig(on_build=["FROM x"]),
}


class Images:
    def __init__(self, contexts=None):
        self.asked = []
        self.contexts = contexts or {}

    async def image(self, name, platform):
        self.asked.append(name)
        if name not in IMAGES:
            raise NotFound(f"no such image: {name}")
        document = ImageConfig(
            architecture=platform.architecture, os="linux", config=IMAGES[name], rootfs=RootFS(diff_ids=["sha256:1"])
        )
        return BaseImage(f"docker.io/library/{name}@sha256:{'0' * 64}", document)

    async def named_context(self, name, platform):
        return self.contexts.get(name)

    def main_context(self, paths):
        return Source("local://context", {"paths": ",".join(paths)})


def build(text, images=None, **options):
    options.setdefault("platform", AMD64)
    options.setdefault("build_platform", AMD64)
    return asyncio.run(convert(text, Options(**options), images or Images()))


def bodies(result: Any) -> list[Any]:
    return [vertex.operation.body for vertex in result.graph.needed_for(result.root)]


def first_actions(result: Result) -> list[Any]:
    return [body.actions[0].action for body in bodies(result) if isinstance(body, Files)]


def names(result):
    return [vertex.name for vertex in result.graph.needed_for(result.root)]


def histories(result):
    return [step.created_by for step in result.image.history]


def refusal(text, **options):
    with pytest.raises(DockerfileError) as caught:
        build(text, **options)
    return str(caught.value)


def test_a_small_one():
    result = build('FROM busybox\nRUN echo hi\nCOPY a b /c/\nCMD ["x"]')
    image, run, context, files = bodies(result)
    assert image == Source(f"docker-image://docker.io/library/busybox@sha256:{'0' * 64}")
    assert isinstance(run, Exec)
    assert run.process.args == ["/bin/sh", "-c", "echo hi"]
    assert run.process.env == ["PATH=/bin"]
    assert run.mounts == [Mount(target="/", input=0, output=0)]
    assert context == Source("local://context", {"paths": "/a,/b"})

    assert [(action.input, action.second_input, action.output) for action in files.actions] == [(0, 1, NONE), (2, 1, 0)]
    assert [action.action.source for action in files.actions] == ["/a", "/b"]
    assert names(result) == [
        "[1/3] FROM docker.io/library/busybox@sha256:" + "0" * 64,
        "[2/3] RUN echo hi",
        "[internal] load build context",
        "[3/3] COPY a b /c/",
    ]
    assert histories(result) == ["RUN /bin/sh -c echo hi # buildkit", "COPY a b /c/ # buildkit", 'CMD ["x"]']
    assert [step.empty_layer for step in result.image.history] == [False, False, True]
    assert result.image.config.cmd == ["x"]


def test_from_scratch_there_is_nothing():
    result = build("FROM scratch\nCOPY a /\nLABEL x=y")
    _, files = bodies(result)
    assert files.actions[0].input == NONE
    assert result.image.config.labels == {"x": "y"}
    assert result.image.architecture == "amd64"
    assert build("FROM scratch").root is None


def test_only_what_the_target_needs():
    text = "FROM busybox AS a\nRUN a\nFROM tools AS unused\nRUN u\nFROM a\nCOPY --from=a /x /y\nRUN last"
    images = Images()
    result = build(text, images)
    assert images.asked == ["busybox"]
    assert [name for name in names(result) if "RUN" in name] == ["[a 2/2] RUN a", "[stage-2 2/2] RUN last"]
    assert histories(build(text, target="a")) == ["RUN /bin/sh -c a # buildkit"]
    assert 'target stage "uunsed" could not be found (did you mean unused?)' in refusal(text, target="uunsed")


def test_stages_by_name_number_and_image():
    text = "FROM busybox AS One\nRUN one\nFROM tools\nCOPY --from=ONE /1 /\nCOPY --from=0 /2 /\nCOPY --from=app /3 /"
    images = Images()
    copies = first_actions(build(text, images))
    assert [copy.source for copy in copies] == ["/1", "/2", "/3"]
    assert sorted(images.asked) == ["app", "busybox", "tools"]


def test_triggers_of_an_image_that_is_copied_from_do_nothing():
    assert histories(build("FROM busybox\nCOPY --from=trigger /x /")) == ["COPY /x / # buildkit"]


def test_triggers_come_first_and_bring_what_they_need():
    images = Images()
    result = build("FROM app\nRUN own", images)
    assert sorted(images.asked) == ["app", "tools"]
    assert names(result)[-2:] == ["[3/4] ONBUILD RUN --mount=from=tools,target=/t make", "[4/4] RUN own"]
    assert result.image.config.on_build is None
    assert "FROM isn't allowed as an ONBUILD trigger" in refusal("FROM trigger\nRUN x")


def test_triggers_of_a_stage():
    result = build("FROM busybox AS a\nONBUILD ENV x=1\nFROM a\nRUN echo $x")
    assert "x=1" in result.image.config.env
    assert build("FROM busybox\nONBUILD RUN x").image.config.on_build == ["RUN x"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("FROM nothing", "on line 1: nothing: no such image: nothing"),
        ("FROM $UNSET", "base name ($UNSET) should not be blank"),
        (
            "FROM busybox AS a\nCOPY --from=b /x /\nFROM busybox AS b\nCOPY --from=a /x /",
            "circular dependency detected on stage: a",
        ),
        ("FROM busybox AS a\nCOPY --from=a /x /", "circular dependency detected on stage: a"),
        (
            "FROM busybox AS a\nCOPY --from=b /x /\nFROM busybox AS b\nFROM a",
            'cannot copy from stage "b", it needs to be defined before current stage "a"',
        ),
        ("FROM busybox\nCOPY --from=3 /x /", "invalid stage index 3"),
        ("FROM busybox\nCOPY --from=$x /x /", "variable expansion is not supported for --from"),
        ("FROM --platform=$NONE busybox", "empty platform value from expression $NONE"),
        ("FROM --platform=linux/a/b/c busybox", "failed to parse platform"),
        ("FROM busybox\nCOPY https://x/y /", "on line 2: source can't be a URL for COPY"),
        ("FROM busybox\nCOPY https://x/y.git /", "source can't be a git ref for COPY"),
        ("FROM busybox\nCOPY --chmod=99 a /", "invalid chmod parameter: '99'"),
        ("FROM busybox\nADD --checksum=sha256:1 a /", "checksum requires HTTP(S) or Git sources"),
        (
            "FROM busybox\nADD --checksum=sha256:1 https://x/y https://x/z /",
            "checksum can't be specified for multiple sources",
        ),
        ("FROM busybox\nSTOPSIGNAL NOPE", "invalid signal: NOPE"),
        ("FROM busybox\nEXPOSE 99999", "invalid containerPort: 99999"),
        ("FROM busybox\nEXPOSE 80/xxx", "invalid proto: xxx"),
        ("FROM busybox\nVOLUME $UNSET", "VOLUME specified can not be an empty string"),
        ("FROM busybox\nRUN --mount=type=cache,target=/ x", 'invalid mount target "/"'),
        ("FROM busybox\nRUN --mount=type=ssh,source=x x", "ssh does not support source"),
        ("FROM busybox\nENV x=${y:?said}", "y: said"),
        ("ARG x=${", "missing '}'"),
    ],
)
def test_refusals(text, says):
    assert says in refusal(text if "FROM" in text else text + "\nFROM busybox")


def test_arguments():
    text = "ARG V=1\nARG W=$V.2\nFROM busybox AS b\nARG V\nARG W\nARG X=${V}x\nARG Y\nRUN echo $V $Y"
    result = build(text, build_args={"V": "7", "Y": "set"})
    run = bodies(result)[-1]
    assert run.process.env == ["PATH=/bin", "V=7", "W=7.2", "X=7x", "Y=set"]
    assert result.image.config.env == ["PATH=/bin"]
    assert histories(result)[-1] == "RUN |4 V=7 W=7.2 X=7x Y=set /bin/sh -c echo $V $Y # buildkit"
    assert histories(result)[0] == "ARG V=7"
    assert names(result)[-1] == "[2/2] RUN echo 7 set"


def test_global_arguments_are_not_seen_in_a_stage_that_does_not_ask():
    run = bodies(build("ARG V=1\nFROM busybox\nRUN echo $V"))[-1]
    assert run.process.env == ["PATH=/bin"]


def test_arguments_of_the_stage_below():
    result = build("FROM busybox AS a\nARG V=1\nFROM a\nRUN x")
    assert "V=1" in bodies(result)[-1].process.env
    assert histories(result)[-1] == "RUN |1 V=1 /bin/sh -c x # buildkit"


def test_platforms():
    text = (
        "FROM --platform=$BUILDPLATFORM busybox AS b\nARG TARGETARCH\nRUN echo $TARGETARCH\n"
        "FROM busybox\nCOPY --from=b /x /"
    )
    result = build(text, platform=Platform("arm64", "linux"), several_platforms=True)
    assert names(result)[1] == "[linux/amd64 b 2/2] RUN echo arm64"
    assert result.image.architecture == "arm64"


def test_the_environment():
    result = build("FROM app\nENV A=2 B=$A\nENV C $B\nRUN x")
    assert result.image.config.env == ["PATH=/bin", "A=2", "B=1", "C=1"]
    assert histories(result)[-3:-1] == ["ENV A=2 B=1", "ENV C=1"]


def test_directories_and_users():
    result = build("FROM busybox\nUSER 5\nWORKDIR a/b\nWORKDIR ../c\nCOPY x .\nRUN y")
    made = first_actions(result)
    assert made[0] == MakeDirectory(path="/a/b", mode=0o755, make_parents=True, user=Owner(number=5))
    assert made[1].path == "/a/c"
    assert made[2].destination == "/a/c/"
    run = bodies(result)[-1]
    assert (run.process.cwd, run.process.user) == ("/a/c", "5")
    assert histories(result)[:3] == ["USER 5", "WORKDIR /a/b", "WORKDIR /a/c"]
    assert build("FROM busybox\nWORKDIR /").image.history[0].empty_layer


def test_configuration():
    result = build(
        'FROM busybox\nENTRYPOINT ["e"]\nSHELL ["bash", "-c"]\nCMD x y\nEXPOSE 80 81-82/UDP\nVOLUME /a /b\n'
        "STOPSIGNAL SIGINT\nHEALTHCHECK --interval=90s --retries=2 CMD up\nMAINTAINER me\nLABEL a=b",
        labels={"c": "d"},
    )
    config = result.image.config
    assert (config.entrypoint, config.cmd, config.shell) == (["e"], ["bash", "-c", "x y"], ["bash", "-c"])
    assert list(config.exposed_ports) == ["80/tcp", "81/udp", "82/udp"]
    assert list(config.volumes) == ["/a", "/b"]
    assert config.stop_signal == "SIGINT"
    assert config.healthcheck.test == ["CMD-SHELL", "up"]
    assert config.labels == {"a": "b", "c": "d"}
    assert result.image.author == "me"
    assert histories(result) == [
        'ENTRYPOINT ["e"]',
        "SHELL [bash -c]",
        'CMD ["bash" "-c" "x y"]',
        "EXPOSE [80/tcp 81/udp 82/udp]",
        "VOLUME [/a /b]",
        "STOPSIGNAL SIGINT",
        "HEALTHCHECK {Test:[CMD-SHELL up] Interval:1m30s Timeout:0s StartPeriod:0s StartInterval:0s Retries:2}",
        "MAINTAINER me",
        "LABEL a=b",
    ]


def test_an_entrypoint_drops_the_command_of_the_base():
    assert build('FROM busybox\nENTRYPOINT ["e"]').image.config.cmd is None
    assert build('FROM busybox\nCMD ["c"]\nENTRYPOINT ["e"]').image.config.cmd == ["c"]


def test_copy_with_everything():
    result = build("FROM busybox\nCOPY --chown=web:7 --chmod=u+x --exclude=*.o --parents a/./b/c /d/")
    copy = bodies(result)[-1].actions[0].action

    assert (copy.user, copy.group) == (Owner(name="web", input=0), Owner(number=7))
    assert (copy.mode, copy.symbolic_mode, copy.exclude) == (None, "u+x", ["*.o"])
    assert (copy.source, copy.include, copy.required, copy.destination) == ("/a", ["b/c"], ["/a/b/c"], "/d/")
    assert histories(result) == ["COPY --parents --chown=web:7 --chmod=u+x a/./b/c /d/ # buildkit"]


def test_a_linked_copy_is_a_layer_of_its_own():
    result = build("FROM busybox\nCOPY --link a /")
    files, merge = bodies(result)[-2:]
    assert files.actions[0].input == NONE
    assert isinstance(merge, Merge)
    assert names(result)[-2:] == ["[2/2] COPY --link a /", "[2/2] LINK COPY --link a /"]


def test_texts_in_the_file():
    result = build("FROM busybox\nENV a=1\nCOPY <<one <<'two' /d/\n\"$a\"\none\n$a\ntwo")
    made = first_actions(result)[:2]
    assert made == [
        MakeFile(path="/one", mode=0o644, data=b'"1"\n'),
        MakeFile(path="/two", mode=0o644, data=b"$a\n"),
    ]
    assert histories(result)[-1] == "COPY <<one <<two /d/ # buildkit"


def test_add_of_addresses_and_repositories():
    result = build(
        "FROM busybox\nADD --checksum=sha256:1 --unpack https://x/y.tgz /a\nADD --keep-git-dir https://x/r.git#v1:d /b"
    )
    sources = [body for body in bodies(result) if isinstance(body, Source)][1:]
    assert sources == [
        Source("https://x/y.tgz", {"http.filename": "y.tgz", "http.checksum": "sha256:1"}),
        Source("git://https://x/r.git", {"git.ref": "v1", "git.directory": "d", "git.keep": "true"}),
    ]
    copies = first_actions(result)
    assert [(copy.source, copy.unpack) for copy in copies] == [("/y.tgz", True), ("/", False)]
    assert not any(body == Source("local://context", {"paths": ""}) for body in bodies(result))


def test_archives_are_unpacked_by_add_alone():
    unpacked = [
        bodies(build(f"FROM busybox\n{line}"))[-1].actions[0].action.unpack
        for line in ("ADD a /", "COPY a /", "ADD --unpack=false a /")
    ]
    assert unpacked == [True, False, False]


def test_mounts():
    result = build(
        "FROM busybox AS b\nFROM busybox\nWORKDIR /w\n"
        "RUN --mount=type=cache,target=/c,sharing=locked --mount=from=b,src=/x,target=y "
        "--mount=type=tmpfs,target=/t,size=1k "
        "--mount=type=secret,id=s --mount=type=secret,id=e,env=E,required --mount=type=ssh --mount=target=/ctx,rw make",
        cache_namespace="ns",
    )
    run = bodies(result)[-1]
    assert run.mounts == [
        Mount(target="/", input=0, output=0),
        Mount(target="/c", kind=CacheMount("ns//c", "locked")),
        Mount(target="/w/y", kind=BindMount(), input=1, selector="/x", read_only=True),
        Mount(target="/t", kind=TmpfsMount(1024)),
        Mount(target="/run/secrets/s", kind=SecretMount("s", optional=True)),
        Mount(target="/run/buildkit/ssh_agent.0", kind=SshMount("default", optional=True)),
        Mount(target="/ctx", kind=BindMount(), input=2),
    ]
    assert run.secret_env == [SecretVariable("e", "E")]


def test_a_cache_with_an_owner():
    result = build("FROM busybox\nRUN --mount=type=cache,target=/c,uid=5,mode=0700 x")
    made = bodies(result)[1].actions[0].action
    assert made == MakeDirectory(path="/cache", mode=0o700, user=Owner(number=5), group=Owner(number=0))
    assert bodies(result)[-1].mounts[1].selector == "/cache"


def test_scripts():
    script = build("FROM busybox\nRUN <<EOF\n#!/bin/awk\nx\nEOF")
    assert bodies(script)[-1].process.args == ["/dev/pipes/EOF"]
    assert bodies(script)[-1].mounts[1] == Mount(target="/dev/pipes", input=1, read_only=True)
    plain = build("FROM busybox\nRUN <<-EOF\n\ta\n\tb\nEOF")
    assert bodies(plain)[-1].process.args == ["/bin/sh", "-c", "a\nb\n"]
    assert names(plain)[-1] == "[2/2] RUN <<-EOF (a...)"
    shell = build("FROM busybox\nRUN cat <<EOF > x\na\nEOF")
    assert bodies(shell)[-1].process.args == ["/bin/sh", "-c", "cat <<EOF > x\na\nEOF"]


def test_limits_networks_and_proxies():
    result = build(
        "FROM busybox\nRUN a\nRUN --network=none --security=insecure b",
        network="host",
        hostname="h",
        extra_hosts=[("x", "1.2.3.4")],
        shm_size=5,
        build_args={"HTTP_PROXY": "p"},
        no_cache=True,
    )
    first, second = bodies(result)[1:]
    assert (first.network, second.network, second.insecure) == ("host", "none", True)
    assert (first.process.hostname, first.process.extra_hosts, first.process.proxy) == (
        "h",
        [("x", "1.2.3.4")],
        {"http_proxy": "p"},
    )
    assert first.mounts[-1] == Mount(target="/dev/shm", kind=TmpfsMount(5))
    assert all(vertex.ignore_cache for vertex in list(result.graph)[1:])


def test_named_contexts_stand_for_stages_and_images():
    contexts = {"a": NamedContext(Source("local://a")), "tools": NamedContext(Source("oci-layout://t"))}
    images = Images(contexts)
    result = build("FROM busybox AS a\nRUN never\nFROM tools\nCOPY --from=a /x /", images)
    assert images.asked == []
    assert {body.identifier for body in bodies(result) if isinstance(body, Source)} == {"local://a", "oci-layout://t"}


def test_the_moment_of_creation_can_be_fixed():
    result = build("FROM busybox\nRUN x", created="1970-01-01T00:00:00Z")
    assert result.image.history[0].created == "1970-01-01T00:00:00Z"


def test_vertices_know_their_lines():
    result = build("FROM busybox\n\nRUN a \\\n b")
    assert [(place.start, place.end) for place in list(result.graph)[-1].locations] == [(3, 4)]
    assert result.graph.files[0].name == "Dockerfile"
