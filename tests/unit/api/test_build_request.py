"""The parameters of `POST /build` that are documents."""

from types import SimpleNamespace
from typing import Any

import pytest

from husk.api.build_request import outputs_of, record_of, request_of
from husk.builder.classic.build import ClassicRequest
from husk.builder.dockerfile.options import Options
from husk.engine.images.tag import parse_target
from husk.errors import InvalidParameter
from husk.registry.manifest import parse_platform


def call(text: str) -> Any:
    return SimpleNamespace(text=lambda name: text)


@pytest.mark.parametrize("text", ["", "null", "[]"])
def test_no_outputs(text: str) -> None:
    assert outputs_of(call(text)) == []


def test_an_output_has_a_type_and_attributes() -> None:
    (output,) = outputs_of(call('[{"Type":"local","Attrs":{"a":"b"}}]'))
    assert (output.type, output.attrs) == ("local", {"a": "b"})


@pytest.mark.parametrize(
    ("text", "told"), [("{", "invalid outputs"), ('[{"Type":"a"},{"Type":"b"}]', "multiple outputs not supported")]
)
def test_outputs_that_make_no_sense(text: str, told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        outputs_of(call(text))


def test_an_isolation_that_linux_has_not() -> None:
    values = {"isolation": "hyperv"}
    asked: Any = SimpleNamespace(text=lambda name: values.get(name, ""))
    with pytest.raises(InvalidParameter, match='unsupported isolation: "hyperv"'):
        request_of(asked)


def request(target: str = "") -> ClassicRequest:
    name = parse_target("me/it:1", "")
    assert name is not None
    options = Options(platform=parse_platform("linux/arm/v7"), build_args={"A": "1"}, target=target)
    return ClassicRequest(options=options, names=[name], dockerfile="d/File")


def test_what_is_asked_for_is_told() -> None:
    record = record_of(request(target="prod"), "https://example.org/repo.git")
    assert record.frontend_attrs == {
        "filename": "d/File",
        "target": "prod",
        "platform": "linux/arm/v7",
        "context": "https://example.org/repo.git",
        "build-arg:A": "1",
    }
    assert [(each.type, each.attrs) for each in record.exporters] == [("image", {"name": "me/it:1"})]


def test_every_build_has_a_name_of_its_own_and_nothing_empty() -> None:
    one, other = record_of(request()), record_of(request())
    assert one.ref != other.ref and len(one.ref) == 25
    assert "target" not in one.frontend_attrs and "context" not in one.frontend_attrs


def test_a_password_in_an_address_is_not_kept() -> None:
    told = record_of(request(), "https://me:hunter2@example.org/repo.git").frontend_attrs["context"]
    assert "hunter2" not in told and "example.org/repo.git" in told
