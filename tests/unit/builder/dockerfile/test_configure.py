"""The instructions that change an image and no file."""

import pytest

from husk.builder.dockerfile import configure, convert, parse, state
from husk.builder.dockerfile.stages import StagePlan
from husk.builder.dockerfile.words import WordRules
from tests.support.work import lines_run
from tests.unit.builder.dockerfile.building import AMD64, build, histories, refusal


def test_the_environment():
    result = build("FROM app\nENV A=2 B=$A\nENV C $B\nRUN x")
    assert result.image.config.env == ["PATH=/bin", "A=2", "B=1", "C=1"]
    assert histories(result)[-3:-1] == ["ENV A=2 B=1", "ENV C=1"]


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
        'HEALTHCHECK &{["CMD-SHELL" "up"] "1m30s" "0s" "0s" "0s" \'\\x02\'}',
        "MAINTAINER me",
        "LABEL a=b",
    ]


def test_an_entrypoint_drops_the_command_of_the_base():
    assert build('FROM busybox\nENTRYPOINT ["e"]').image.config.cmd is None
    assert build('FROM busybox\nCMD ["c"]\nENTRYPOINT ["e"]').image.config.cmd == ["c"]


def test_what_a_base_has_stays_beside_what_is_new() -> None:
    below = "FROM busybox AS b\nVOLUME /a\nEXPOSE 80\nLABEL x=1 y=2\nONBUILD ENV o=1\n"
    config = build(below + "FROM b\nVOLUME /c\nEXPOSE 81\nLABEL y=3").image.config
    assert (list(config.volumes), list(config.exposed_ports)) == (["/a", "/c"], ["80/tcp", "81/tcp"])
    assert config.labels == {"x": "1", "y": "3"}
    assert "o=1" in config.env and not config.on_build, "a trigger is for the next image alone"


def test_nothing_is_shared_with_the_stage_below() -> None:
    result = build("FROM busybox AS b\nLABEL x=1\nFROM b AS c\nLABEL y=2\nFROM b\nLABEL z=3")
    assert result.image.config.labels == {"x": "1", "z": "3"}


def test_an_empty_entrypoint_is_none() -> None:
    assert build("FROM busybox\nENTRYPOINT []").image.config.entrypoint is None


def test_variables_in_instructions_that_know_them() -> None:
    config = build(
        'FROM busybox\nENV p="80 81" v=/v u=web s=SIGINT\nEXPOSE $p\nVOLUME $v\nUSER $u\nSTOPSIGNAL $s'
    ).image.config
    assert list(config.exposed_ports) == ["80/tcp", "81/tcp"]
    assert (list(config.volumes), config.user, config.stop_signal) == (["/v"], "web", "SIGINT")


def test_a_command_of_this_file_outlives_an_entrypoint_of_a_later_line_only() -> None:
    assert build('FROM busybox\nENTRYPOINT ["e"]\nCMD ["c"]').image.config.cmd == ["c"]
    stage = 'FROM busybox AS a\nCMD ["c"]\nFROM a\nENTRYPOINT ["e"]'
    assert build(stage).image.config.cmd is None


def test_a_shell_form_without_a_shell_of_its_own_is_warned_of() -> None:
    assert [warning.rule for warning in build("FROM busybox\nCMD x").warnings] == ["JSONArgsRecommended"]
    assert build('FROM busybox\nSHELL ["sh", "-c"]\nCMD x').warnings == []


def test_an_image_is_not_larger_than_registries_take(monkeypatch):
    """A line of a few letters is many of history, and names all that it exposes once more."""
    for module in (convert, state):
        assert module.LARGEST_IMAGE == 8 << 20
        monkeypatch.setattr(module, "LARGEST_IMAGE", 1 << 20)
    ports = "EXPOSE 1-9999\n"
    result = build(f"FROM busybox\n{ports * 5}")
    assert len(result.image.config.exposed_ports) == 9999
    told = "the configuration of the image would have more than 1 MiB"
    assert told in refusal(f"FROM busybox\n{ports * 20}")
    assert told in refusal("FROM busybox\nENV " + " ".join(f"A{n}={'x' * 100_000}" for n in range(11)))


def test_a_file_has_so_many_instructions():
    assert "more than 10000 instructions" in refusal("FROM busybox\n" + "USER x\n" * 10_000)


def test_variables_keep_their_places_however_many_they_are():
    many = " ".join(f"V{n}={n}" for n in range(1000))
    text = f"FROM app\nENV {many}\nENV A=2 V7=x NEW=1"
    env = build(text).image.config.env
    assert env[:3] == ["PATH=/bin", "A=2", "V0=0"] and env[9] == "V7=x" and env[-1] == "NEW=1"
    assert len(env) == 1003
    few, more = ("FROM app\nENV " + " ".join(f"V{n}=x" for n in range(count)) for count in (200, 800))
    assert lines_run(lambda: build(more)) < 5 * lines_run(lambda: build(few))


@pytest.mark.parametrize(
    ("line", "name"), [("EXPOSE {}", "exposed_ports"), ("VOLUME {}", "volumes"), ("ONBUILD RUN {}", "on_build")]
)
def test_what_a_line_adds_is_put_beside_what_there_is(line, name):
    """A copy for each of thousands of lines would take seconds."""
    read = parse.parse("\n".join(["FROM busybox", *(line.format(number) for number in (1, 2))])).stages[0]
    first, second = read.instructions
    stage = state.StageState(
        plan=StagePlan(name="", base="busybox", span=first.origin.span),
        root=None,
        platform=AMD64,
        image=state.empty_image(AMD64),
        rules=WordRules(),
    )
    configure.configure(stage, first)
    found = getattr(stage.config, name)
    configure.configure(stage, second)
    assert getattr(stage.config, name) is found
    assert len(found) == 2
