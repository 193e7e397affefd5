import asyncio

import pytest

from husk.builder.dockerfile import stages
from husk.builder.dockerfile.convert import convert
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import Options
from husk.builder.dockerfile.parse import parse
from husk.builder.dockerfile.stages import StagePlans
from husk.builder.dockerfile.words import DEFAULT
from tests.unit.builder.dockerfile.building import Images


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


FILE = """ARG TAG=busybox
# NAME is the base
ARG NAME=$TAG
ARG UNUSED=x
ARG SHARED=s
FROM $NAME AS base
# WHO greets
ARG WHO=you
FROM busybox AS other
ARG NOT=here
FROM base
ARG SHARED
ARG FREE
RUN --mount=type=secret,id=a,required --mount=type=secret,id=b,env=B --mount=type=ssh true
"""


def outlined(**options):
    return asyncio.run(convert(FILE, Options(**options), Images()))


def test_arguments_of_the_target_and_of_what_it_needs():
    found = {one.name: (one.value, one.description, one.span.start) for one in outlined().args}
    assert found == {
        "TAG": ("busybox", "", 1),
        "NAME": ("busybox", "is the base", 3),
        "SHARED": ("s", "", 5),
        "WHO": ("you", "greets", 8),
        "FREE": ("", "", 13),
    }


def test_what_the_client_gives_is_shown():
    found = {one.name: one.value for one in outlined(build_args={"WHO": "me", "SHARED": "mine"}).args}
    assert (found["WHO"], found["SHARED"]) == ("me", "mine")
    assert [one.name for one in outlined(target="other").args] == ["NOT"]


def test_secrets_and_agents():
    graph = outlined().graph
    assert [(one.name, one.required, one.start) for one in stages.secrets(graph)] == [
        ("a", True, 14),
        ("b", False, 14),
    ]
    assert [(one.name, one.required) for one in stages.agents(graph)] == [("default", False)]
