"""JSON of others: bounded, and wrong in one way only."""

import ast
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.text import documents
from husk.text.documents import DEEPEST, MOST_VALUES, MalformedDocument, decode


class Pet(msgspec.Struct):
    name: str = ""
    age: int = 0
    friends: "list[Pet]" = []


def test_a_document_of_a_type():
    assert decode(b'{"name": "Rex", "age": 3, "kind": "dog"}', Pet) == Pet("Rex", 3)
    assert decode('["a"]', list[str]) == ["a"]


def test_a_document_of_any_kind():
    assert decode(b'{"a": [1, 2.5, null, true, "x"]}') == {"a": [1, 2.5, None, True, "x"]}


@pytest.mark.parametrize(
    "data, why",
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b'{"name": 1}', "Expected `str`, got `int`"),
        (b'{"age": ' + b"9" * 5000 + b"}", "out of range"),
        (b'{"name": "\xff"}', "not UTF-8"),
        ('{"name": "\ud800"}', "not UTF-8"),
        (b'{"x": ' * 100_000, "nested too deeply"),
        (b'{"friends": [' * 100_000, "nested too deeply"),
        (b"NaN", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
    ],
)
def test_what_is_wrong_is_malformed(data, why):
    with pytest.raises(MalformedDocument, match=why):
        decode(data, Pet)


def test_the_largest_there_may_be():
    text = b'"' + b"x" * 98 + b'"'
    assert decode(text, str, largest=100) == "x" * 98
    with pytest.raises(MalformedDocument, match="longer than 99 bytes"):
        decode(text, str, largest=99)


@pytest.mark.parametrize("value", ["[]", "{}", "1", '""', '{"a":1}'])
def test_the_most_values_there_may_be(value):
    """A few bytes each are millions of objects in a document that is not too large."""
    for text in (
        f'{{"x":[{",".join([value] * MOST_VALUES)}]}}',
        f'{{"x":[{",".join([value] * MOST_VALUES)}]}}'.encode(),
    ):
        with pytest.raises(MalformedDocument, match=f"more than {MOST_VALUES} values"):
            decode(text)
        with pytest.raises(MalformedDocument, match="more than 100 values"):
            decode(text, Pet, most=100)
    assert decode("[" + ",".join(["1"] * (MOST_VALUES - 2)) + "]")


@pytest.mark.parametrize("opens, closes", [("[", "]"), ('{"a":', "}")])
def test_the_deepest_there_may_be(opens, closes):
    assert decode(opens * DEEPEST + "1" + closes * DEEPEST)
    for depth in (DEEPEST + 1, 500):
        with pytest.raises(MalformedDocument, match="nested too deeply"):
            decode(opens * depth + "1" + closes * depth)


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_nothing_else_comes_of_any_bytes(data):
    for type in (object, Pet, dict[str, list[Pet]], list[msgspec.Raw]):
        try:
            decode(data, type)
        except documents.MalformedDocument as error:
            assert str(error)


# JSON that other functions read, and the reason why that is right.
OTHERWISE = {
    "config/settings.py": "the administrator's, and what is wrong with it is told at its place",
    "swarm/model/services.py": "a copy of a record that was just written",
    "kernel/keeping.py": "what the daemon tells its own helper",
    "builder/store/stack_lists.py": "lists that are our own",
    "storage/workers/messages.py": "what the daemon and its workers tell each other",
    "builder/dockerfile/lines.py": "a command: what is no array of strings is for a shell",
    "api/routes/build.py": "a header, which is short; all that Python can raise is a 400",
    "registry/auth.py": "a header, which is short; all that Python can raise is a 400",
    "text/documents.py": "it is here",
}


def test_json_of_others_is_read_here():
    """`husk` on a command line reads the answers of its own daemon."""
    source = Path(documents.__file__).parents[1]
    found = {path.relative_to(source).as_posix() for path in source.rglob("*.py") if _reads_json(path)}
    assert {name for name in found if name.split("/")[0] not in ("cli", "client")} == set(OTHERWISE)


def _reads_json(path: Path) -> bool:
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return any(ast.unparse(call.func) in ("json.loads", "json.load", "msgspec.json.decode") for call in calls)
