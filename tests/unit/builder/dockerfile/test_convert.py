"""Operations that Dockerfiles become."""

import pytest

from husk.builder.dockerfile.options import NamedContext
from husk.builder.graph.operations import Exec, ExecMount, Source
from husk.builder.store.file_actions import NONE, MakeDirectory, Owner
from husk.registry.manifest import Platform
from tests.unit.builder.dockerfile.building import (
    Images,
    bodies,
    build,
    first_actions,
    histories,
    names,
    refusal,
)


def test_a_small_one():
    result = build('FROM busybox\nRUN echo hi\nCOPY a b /c/\nCMD ["x"]')
    image, run, context, files = bodies(result)
    assert image == Source(f"docker-image://docker.io/library/busybox@sha256:{'0' * 64}")
    assert isinstance(run, Exec)
    assert run.process.args == ["/bin/sh", "-c", "echo hi"]
    assert run.process.env == ["PATH=/bin"]
    assert run.mounts == [ExecMount(target="/", input=0, output=0)]
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
        ("FROM nothing", "nothing: no such image: nothing"),
        ("ARG T\nFROM busybox:$T", 'failed to parse stage name "busybox:": invalid reference format'),
        ("FROM busybox AS stage\nFROM stag", "stag: no such image: stag (did you mean stage?)"),
        ("FROM debain", "(did you mean debian?)"),
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
        ("FROM busybox\nCOPY https://x/y /", "source can't be a URL for COPY"),
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


def test_named_contexts_stand_for_stages_and_images():
    contexts = {"a": NamedContext(Source("local://a")), "tools": NamedContext(Source("oci-layout://t"))}
    images = Images(contexts)
    result = build("FROM busybox AS a\nRUN never\nFROM tools\nCOPY --from=a /x /", images)
    assert images.asked == []
    assert {body.identifier for body in bodies(result) if isinstance(body, Source)} == {"local://a", "oci-layout://t"}


def test_a_context_in_the_place_of_a_stage_is_all_of_it():
    images = Images({"one": NamedContext(Source("local://one"))})
    text = "FROM nowhere AS zero\nFROM zero AS one\nRUN never\nONBUILD RUN never\nFROM one\nCOPY --from=one /x /\n"
    result = build(text, images)
    assert "never" not in repr(bodies(result))
    assert {body.identifier for body in bodies(result) if isinstance(body, Source)} == {"local://one"}
    # A base of this name leaves the stage what it is.
    images = Images({"busybox": NamedContext(Source("local://base"))})
    assert "make" in repr(bodies(build("FROM busybox AS one\nRUN make\nFROM one\n", images)))


def test_a_context_with_nothing_in_it():
    result = build("FROM thing\nCOPY a /\n", Images({"thing": NamedContext(None)}))
    assert [type(body).__name__ for body in bodies(result)] == ["Source", "Files"]
    assert build("FROM thing\n", Images({"thing": NamedContext(None)})).root is None


def test_the_moment_of_creation_can_be_fixed():
    result = build("FROM busybox\nRUN x", epoch=0)
    assert result.image.history[0].created == "1970-01-01T00:00:00Z"


def test_vertices_know_their_lines():
    result = build("FROM busybox\n\nRUN a \\\n b")
    assert [(place.start, place.end) for place in list(result.graph)[-1].locations] == [(3, 4)]
    assert result.graph.files[0].name == "Dockerfile"


@pytest.mark.parametrize(
    "line",
    [
        "WORKDIR /a\0b",
        "RUN a\0b",
        "COPY a\0 /",
        'ENTRYPOINT ["\\u0000"]',
        "LABEL a=\0",
        "ADD https://x/\0 /",
        "VOLUME /\0",
    ],
)
def test_a_nul_stands_in_no_text(line):
    assert "NUL" in refusal(f"FROM busybox\n{line}")


def test_but_in_bytes_it_may():
    assert build("FROM busybox\nCOPY <<E /x\na\0b\nE\nLABEL a=\\\\u0000").image.config.labels == {"a": "\\u0000"}
