"""The parameters of `POST /build` that are documents."""

from types import SimpleNamespace
from typing import Any

import pytest

from husk.api.build_request import outputs_of, request_of
from husk.errors import InvalidParameter


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
