"""Statements as files beside those that they are about, with doubles of the disk."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from husk.builder.exporters.stated_files import StatedFiles, statements
from husk.builder.jobs.results import Predicate
from husk.builder.store.stack_lists import ListedFile
from husk.errors import InvalidParameter

FILES = [ListedFile("bin/link"), ListedFile("d/\udcff", "sha256:1"), ListedFile("x", "sha256:2")]
PREDICATE = Predicate(type="t", path="p.json", body=b'{"a":1}')


class Disk:
    def __init__(self):
        self.lists = {"base": FILES, "other": [ListedFile("x")], "third": [ListedFile("y")]}
        self.written = {}
        self.forgotten = []

    async def files(self, stack, *, digests=False):
        return self.lists[stack]

    async def apply(self, actions, inputs):
        self.written = {one.action.path: one.action for one in actions}
        return [f"{inputs[0]} diff:new"]

    async def forget(self, stack):
        self.forgotten.append(stack)


def part(*predicates: Predicate) -> Any:
    async def stack() -> str:
        return "base"

    return SimpleNamespace(stack=stack, predicates=predicates)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def stated(disk: Any) -> StatedFiles:
    return StatedFiles(disk, disk, disk.forget)


async def test_statements_lie_on_the_files_for_a_while(disk, stated):
    async with stated.beside(part(PREDICATE), lambda one: one.path) as stack:
        assert stack == "base diff:new"
        assert disk.forgotten == []
    assert disk.forgotten == ["diff:new"]
    (made,) = disk.written.values()
    assert (made.path, made.mode) == ("/p.json", 0o600)
    assert json.loads(made.data) == {
        "_type": "https://in-toto.io/Statement/v0.1",
        "predicateType": "t",
        "subject": [{"name": "d/\ufffd", "digest": {"sha256": "1"}}, {"name": "x", "digest": {"sha256": "2"}}],
        "predicate": {"a": 1},
    }


async def test_without_any_that_was_asked_for_there_is_nothing_beside(disk, stated):
    unasked = Predicate(type="t", path="p.json", body=b"{}", inline_only=True)
    async with stated.beside(part(unasked), lambda one: one.path) as stack:
        assert stack == "base"
    assert disk.forgotten == []


def test_two_of_one_name():
    with pytest.raises(InvalidParameter, match=r"duplicate attestation path name p\.json"):
        statements([PREDICATE, PREDICATE], [], lambda one: one.path)


async def test_platforms_in_one_directory_have_no_file_in_common(stated):
    await stated.check_apart({"linux/amd64": "base", "linux/arm64": "third"})
    with pytest.raises(InvalidParameter, match=r"cannot overwrite x from linux/amd64 with linux/arm64"):
        await stated.check_apart({"linux/amd64": "base", "linux/arm64": "other"})
