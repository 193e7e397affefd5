"""The classic builder's own rules, and what it tells of a Dockerfile."""

import pytest

from husk.builder.dockerfile import classic
from husk.builder.dockerfile.errors import DockerfileError
from tests.unit.builder.dockerfile.building import build, refusal


@pytest.mark.parametrize(("target", "count"), [("", 7), ("one", 4), ("ONE", 4), ("0", 4), ("1", 7)])
def test_the_steps_that_lead_to_a_target(target, count):
    text = "ARG A=busybox B\nFROM $A AS one\nRUN a\nRUN b\nFROM busybox\nENV a=b\nCMD x\n"
    told = classic.until(classic.read(text), target)
    assert told == (["ARG A=busybox B", "FROM $A AS one"], count, ["A", "B"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "failed to parse Dockerfile: file with no instructions"),
        ("FROM a\nENV X\n", "failed to parse Dockerfile: ENV must have two arguments"),
        ("RUN x\n", "no build stage in current context"),
        ("FROM a\nRUM x\n", "dockerfile parse error on line 2: unknown instruction: RUM (did you mean RUN?)"),
    ],
)
def test_what_cannot_be_read(text, complaint):
    with pytest.raises(DockerfileError) as refused:
        classic.read(text)
    assert str(refused.value) == complaint


def test_a_target_that_is_not_there():
    with pytest.raises(DockerfileError, match=r'^target stage "7" could not be found$'):
        classic.until(classic.read("FROM a\n"), "7")


def test_all_stages_up_to_the_target_are_carried_out():
    made = build(
        "FROM busybox AS one\nRUN a\nFROM busybox AS two\nRUN b\nFROM busybox\nRUN c\n", classic=True, target="two"
    )
    assert [(step.code, step.stage) for step in made.steps] == [
        ("FROM busybox AS one", 0),
        ("RUN a", 0),
        ("FROM busybox AS two", 1),
        ("RUN b", 1),
    ]


def test_what_steps_are_known_by():
    text = "FROM busybox AS one\nARG A=1\nENV B=$A\nCOPY x /\nRUN true\nEXPOSE 2 1\nFROM one\nCOPY --from=one x /y\n"
    made = build(text, classic=True, labels={"b": "2", "a": "1 x"}, build_args={"A": "9"})
    told = {step.code: step for step in made.steps}
    assert [step.base_stage for step in made.steps if step.keyword == "FROM"] == [None, 0]
    assert told["ARG A=1"].written == "ARG A=1"
    assert told["ENV B=$A"].written == "ENV B=9"
    assert told["EXPOSE 2 1"].written == "EXPOSE [1/tcp 2/tcp]"
    assert [len(told[code].vertices) for code in ("ENV B=$A", "COPY x /", "RUN true")] == [0, 1, 1]
    assert (told["COPY x /"].from_context, told["COPY --from=one x /y"].from_context) == (True, False)
    assert [step.code for step in made.steps][-2:] == ["LABEL a=1 x", "LABEL b=2"]
    assert made.steps[-1].result == made.root


def test_what_another_stage_does_too_is_made_once():
    made = build("FROM busybox\nRUN a\nFROM busybox\nRUN a\n", classic=True)
    assert made.steps[1].vertices == made.steps[3].vertices == (made.root.digest,)


def test_a_health_check_in_place_of_another_is_told():
    made = build("FROM busybox\nHEALTHCHECK CMD a\nHEALTHCHECK NONE\nHEALTHCHECK CMD b\n", classic=True)
    assert [step.note for step in made.steps] == [
        "", "", "Note: overriding previous HEALTHCHECK: [CMD-SHELL a]\n", ""
    ]  # fmt: skip


def test_triggers_are_told_as_such():
    made = build("FROM app\nRUN x\n", classic=True)
    assert [step.from_trigger for step in made.steps] == [False, True, True, False]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("COPY a b /c", "more than one source file, the destination must be a directory and end with a /"),
        ("COPY ../a /c", "COPY failed: forbidden path outside the build context: ../a ()"),
        ("ADD a/../../b /c", "ADD failed: forbidden path outside the build context: a/../../b ()"),
        ("COPY --from=nobody a /c", "invalid from flag value nobody: no such image: nobody"),
    ],
)
def test_what_only_the_classic_builder_refuses(line, complaint):
    assert complaint in refusal(f"FROM busybox\n{line}\n", classic=True)


def test_empty_commands():
    made = build("FROM busybox\nRUN []\nRUN\n", classic=True)
    assert [vertex.operation.body.process.args for vertex in made.graph if vertex.name.endswith("RUN")] == [
        ["/bin/sh", "-c"]
    ]
    assert len(made.steps[1].vertices) == 0
