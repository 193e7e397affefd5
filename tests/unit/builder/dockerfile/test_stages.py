import pytest

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.parse import parse
from husk.builder.dockerfile.stages import StagePlans
from husk.builder.dockerfile.words import DEFAULT


def plans(text, **variables):
    return StagePlans(parse(text), variables, DEFAULT)


def needed(text, target=""):
    found = plans(text)
    return [plan.given_name or plan.base for plan in found.needed_for(found.target(target))]


def test_bases_are_stages_that_stand_before():
    found = plans("FROM $B AS a\nFROM A AS b\nFROM c AS c", B="x")
    a, b, c = found.stages
    assert (a.base, a.base_stage, b.base_stage, c.base_stage) == ("x", None, a, None)


def test_what_a_target_needs():
    text = "FROM x AS a\nFROM x AS b\nCOPY --from=a / /\nFROM x AS c\nFROM b AS d\nRUN --mount=from=img,target=/x y"
    assert needed(text) == ["img", "a", "b", "d"]
    assert needed(text, "b") == ["a", "b"]
    assert needed(text, "2") == ["c"]


def test_a_name_that_comes_twice_is_the_last_one():
    found = plans("FROM x AS a\nFROM y AS a\nFROM a")
    assert found.stages[2].base_stage is found.stages[1]


def test_scratch_is_no_stage():
    assert plans("FROM x AS scratch\nFROM scratch").stages[1].base_stage is None


def test_a_long_chain_is_no_problem():
    text = "FROM x AS s0\n" + "\n".join(f"FROM s{n} AS s{n + 1}" for n in range(9_000))
    assert len(needed(text)) == 9_001


def test_circles_are_refused():
    with pytest.raises(DockerfileError, match=r"circular dependency detected on stage: a") as refused:
        plans("FROM x AS a\nCOPY --from=b / /\nFROM x AS b\nCOPY --from=c / /\nFROM x AS c\nCOPY --from=a / /")
    assert refused.value.span
    assert refused.value.span.start == 6
