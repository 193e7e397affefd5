"""The platforms of a result."""

import json
from typing import Any

import pytest

from husk.builder.exporters.parts import is_several, parts_of, refs_of
from husk.builder.jobs.results import Predicate, Result
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform, host_platform


def platforms(*architectures):
    listed = [{"ID": f"linux/{one}", "Platform": {"architecture": one, "os": "linux"}} for one in architectures]
    return json.dumps({"Platforms": listed}).encode()


def config(architecture):
    return json.dumps({"architecture": architecture, "os": "linux", "config": {"Cmd": [architecture]}}).encode()


REF: Any = object()


def test_one_that_tells_nothing_is_for_this_host():
    (part,) = parts_of(Result())
    assert (part.id, part.ref, part.platform) == ("", None, host_platform())
    assert part.document.config and part.document.config.working_dir == "/"


def test_one_platform():
    said = Predicate(type="t", body=b"{}")
    metadata = {"refs.platforms": platforms("arm64"), "containerimage.config": config("arm64")}
    result = Result(ref=REF, metadata=metadata, predicates={"linux/arm64": [said]})
    (part,) = parts_of(result)
    assert (part.id, part.ref, part.platform) == ("linux/arm64", REF, Platform("arm64", "linux"))
    assert part.document.config and part.document.config.cmd == ["arm64"]
    assert list(part.predicates) == [said]
    assert not is_several(result)


async def test_several_of_which_one_has_no_files():
    metadata = {"refs.platforms": platforms("amd64", "arm64")}
    metadata |= {f"containerimage.config/linux/{one}": config(one) for one in ("amd64", "arm64")}
    result = Result(refs={"linux/amd64": REF}, metadata=metadata)
    parts = parts_of(result)
    assert [(part.id, part.ref) for part in parts] == [("linux/amd64", REF), ("linux/arm64", None)]
    assert await parts[1].stack() == ""
    assert is_several(result)


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (Result(ref=REF, refs={"a": REF}), "either one ref"),
        (Result(refs={"a": REF}), "missing platforms mapping"),
        (Result(ref=REF, metadata={"refs.platforms": platforms("a", "b")}), "without multi-platform"),
        (Result(refs={"a": REF}, metadata={"refs.platforms": platforms("b")}), "failed to find ref for ID linux/b"),
        (Result(ref=REF, metadata={"refs.platforms": b"{"}), "failed to parse platforms"),
    ],
)
def test_what_makes_no_sense(result, complaint):
    with pytest.raises(InvalidParameter, match=complaint):
        parts_of(result)


def test_refs_alone_need_no_more_than_names():
    assert refs_of(Result()) == {}
    assert refs_of(Result(ref=REF)) == {"": REF}
    assert refs_of(Result(ref=REF, metadata={"refs.platforms": platforms("arm64")})) == {"linux/arm64": REF}
    assert refs_of(Result(refs={"a": REF})) == {"a": REF}
