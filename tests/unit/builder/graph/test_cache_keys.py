import pytest
from msgspec.structs import replace

from husk.builder.graph.cache_keys import by_content, by_definition, selections
from husk.builder.graph.operations import (
    CacheMount,
    Exec,
    ExecMount,
    Files,
    Operation,
    ProcessSpec,
    SecretMount,
    Source,
)
from husk.builder.store.file_actions import Copy, FileAction, MakeFile, Owner, Selection
from husk.registry.manifest import Platform

ROOT = ExecMount(target="/", input=0, output=0)
RUN = Exec(process=ProcessSpec(args=["x"]), mounts=[ROOT])


def run(**changes):
    return Operation(replace(RUN, **changes))


def process(**changes):
    return run(process=replace(RUN.process, **changes))


@pytest.mark.parametrize(
    "changed",
    [
        process(args=["y"]),
        process(env=["a=b"]),
        process(cwd="/x"),
        process(user="1"),
        run(network="none"),
        run(insecure=True),
        run(mounts=[ROOT, ExecMount(target="/c", kind=CacheMount("c"))]),
        Operation(RUN, [], Platform("arm64", "linux")),
    ],
)
def test_what_changes_a_key(changed):
    assert by_definition(changed, ["a"]) != by_definition(Operation(RUN), ["a"])


def test_what_changes_none():
    assert by_definition(process(proxy={"http_proxy": "x"}), ["a"]) == by_definition(Operation(RUN), ["a"])
    one, other = (run(mounts=[ROOT, ExecMount(target="/s", kind=SecretMount("s", uid=uid))]) for uid in (1, 2))
    assert by_definition(one, []) == by_definition(other, [])


def test_inputs_and_kinds_tell_keys_apart():
    operation = Operation(Source("x"))
    assert len({by_definition(operation, ["a"]), by_definition(operation, ["b"]), by_content(operation, ["a"])}) == 3


def test_copies_look_at_what_they_copy():
    copy = Copy(source="/a*", destination="/b", wildcards=True, exclude=["x"])
    other = Copy(source="/c", destination="/b")
    files = Files([FileAction(action=copy, input=0, second_input=1), FileAction(action=other, input=2, second_input=1)])
    assert selections(Operation(files)) == {
        1: [Selection(path="/a*", wildcards=True, exclude=["x"]), Selection(path="/c")],
    }


def test_what_is_worked_on_counts_whole():
    copy = Copy(source="/a", destination="/b")
    assert selections(Operation(Files([FileAction(action=copy, input=0, second_input=0)]))) == {}
    owned = replace(copy, user=Owner(name="web", input=1))
    assert selections(Operation(Files([FileAction(action=owned, input=0, second_input=1)]))) == {}
    made = FileAction(action=MakeFile(path="/x", mode=0o644, data=b""), input=0)
    assert selections(Operation(Files([made]))) == {}


def test_mounts_that_are_only_read_count_by_their_content():
    mounts = [ROOT, ExecMount(target="/r", input=1, selector="/s", read_only=True), ExecMount(target="/w", input=2)]
    assert selections(run(mounts=mounts)) == {1: [Selection(path="/s", follow_links=True)]}
    both = [*mounts, ExecMount(target="/also", input=1)]
    assert selections(run(mounts=both)) == {}
    assert selections(Operation(Source("x"))) == {}
