"""Attributes that a container's options add to its messages."""

import pytest

from husk.engine.logs import attributes
from husk.errors import InvalidParameter
from tests.unit.engine.logs.samples import container


def test_attributes() -> None:
    labelled = container(labels="a,zz", env_regex="^[EF]", tag="{{.ID}}/{{ .DaemonName }}")
    assert attributes.extra(labelled) == {"a": "1", "E": "1", "F1": "2"}
    assert attributes.details(labelled) == "E=1,F1=2,a=1,tag=0123456789ab%2Fdocker"
    assert attributes.details(container("local")) == ""


@pytest.mark.parametrize("tag", ["{{" + " " * 20_000, "{{" * 20_000, "{{.ID" + " " * 20_000 + "x}}", "{{ .Nothing -}}"])
def test_tags_that_name_no_field_are_refused(tag: str) -> None:
    with pytest.raises(InvalidParameter, match="log-tag"):
        attributes.check({"tag": tag})


@pytest.mark.parametrize("name", ["labels-regex", "env-regex"])
def test_an_expression_that_nobody_writes_is_refused(name: str) -> None:
    attributes.check({name: "^(a|b)"})
    with pytest.raises(InvalidParameter, match="is the most"):
        attributes.check({name: "[" + "a" * 4_000_000})


def test_blanks_and_dashes_around_a_field_mean_nothing() -> None:
    attributes.check({"tag": "{{- .Name -}}{{  .ID}}"})
    assert attributes.details(container(tag="{{- .ID -}}")) == "tag=0123456789ab"
