import asyncio

from husk.builder.dockerfile import outline
from husk.builder.dockerfile.convert import convert
from husk.builder.dockerfile.options import Options
from tests.unit.builder.dockerfile.building import Images

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
    assert [(one.name, one.required, one.start) for one in outline.secrets(graph)] == [
        ("a", True, 14),
        ("b", False, 14),
    ]
    assert [(one.name, one.required) for one in outline.agents(graph)] == [("default", False)]
