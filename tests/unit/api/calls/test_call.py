"""The parts of a request that a handler gets: parameters as dockerd reads them, documents and uploads with their
faults."""

import os
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from husk.api.calls.call import Call, Common, platform_parameter, platform_parameters
from husk.api.http.errors import BadRequest, BodyCutOff
from husk.api.http.request import Query
from husk.api.versioning import CURRENT
from husk.engine.model.container_config import HealthConfig
from husk.errors import InvalidParameter
from husk.registry.manifest import Platform
from husk.text.gojson import Reader, parse_document
from tests.unit.api.fake_engine import FakeEngine


class FakeBody:
    def __init__(self, data: bytes, fails: Exception | None = None) -> None:
        self._data, self._fails = data, fails

    async def document(self, most: int) -> bytes:
        return self._data

    async def pieces(self, largest: int) -> AsyncIterator[bytes]:
        for at in range(0, len(self._data), largest):
            yield self._data[at : at + largest]
        if self._fails is not None:
            raise self._fails


def call(query: str = "", body: bytes | None = None, content_type: str = "", fails: Exception | None = None) -> Call:
    request = SimpleNamespace(
        query=Query(query),
        query_text=query,
        body=None if body is None else FakeBody(body, fails),
        header=lambda name: content_type if name == "content-type" else "",
    )
    return Call(Common(cast(Any, FakeEngine())), cast(Any, request), CURRENT, "x")


@pytest.mark.parametrize(
    ("query", "value"),
    [("", False), ("f=", False), ("f=0", False), ("f=no", False), ("f=FALSE", False), ("f= none ", False),
     ("f=1", True), ("f=true", True), ("f=anything", True), ("f=2", True), ("g=1", False)],
)  # fmt: skip
def test_a_flag_is_what_dockerd_takes_for_one(query: str, value: bool) -> None:
    assert call(query).flag("f") is value
    assert call(query).flag("f", default=True) is (value or "f=" not in query)


@pytest.mark.parametrize(
    ("text", "number"), [("", None), ("5", 5), ("-5", -5), ("%2B5", 5), ("0", 0), ("9" * 19, int("9" * 19))]
)
def test_a_number(text: str, number: int | None) -> None:
    assert call(f"n={text}").integer("n") == number


@pytest.mark.parametrize("text", ["x", "1_000", " 5", "5.0", "1e3", "٣", "--5", "-", "9" * 20])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(InvalidParameter, match="for n: not a number"):
        call(f"n={text}").integer("n")


def test_a_version_is_needed_where_something_is_changed() -> None:
    assert call("version=12").object_version() == 12
    for query in ("", "version="):
        with pytest.raises(InvalidParameter, match="invalid version"):
            call(query).object_version()


def test_a_moment_that_is_none_names_its_parameter() -> None:
    assert call("since=5").timestamp("since") == 5 * 10**9
    with pytest.raises(InvalidParameter, match='invalid value for "since"'):
        call("since=yesterday").timestamp("since")


def test_the_name_of_a_file_keeps_its_bytes() -> None:
    assert os.fsencode(call("path=/a%FF%0Ab").file_name("path")) == b"/a\xff\nb"
    assert call("path=/\u00e4").file_name("path") == "/\u00e4"
    assert call("").file_name("path") == ""


async def test_a_document_is_json_and_says_so() -> None:
    assert await call(body=b'{"a": 1}', content_type="application/json; charset=utf-8").document() == {"a": 1}
    assert await call().document() is None


@pytest.mark.parametrize(
    ("body", "content_type", "says"),
    [
        (b"{}", "", "no media type"),
        (b"{}", "text/plain", "must be 'application/json'"),
        (None, "text/plain", "must be 'application/json'"),
        (b"", "application/json", "got EOF"),
        (b" \n", "application/json", "got EOF"),
        (b"{", "application/json", "JSON"),
        (b"[]", "application/json", "JSON"),
    ],
)
async def test_what_is_no_document(body: bytes | None, content_type: str, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        await call(body=body, content_type=content_type).document()


async def test_an_upload_comes_in_pieces_and_whole_or_not_at_all() -> None:
    assert [piece async for piece in call(body=b"abcde").upload(2)] == [b"ab", b"cd", b"e"]
    assert [piece async for piece in call().upload(2)] == []
    for fails, says in ((BodyCutOff(), "the client left before"), (BadRequest("bad chunk"), "bad chunk")):
        with pytest.raises(InvalidParameter, match=says):
            async for _ in call(body=b"ab", fails=fails).upload(2):
                pass


def test_answers_carry_what_every_answer_does() -> None:
    made = call().json({"a": 1}, status=201)
    assert (made.status, made.body) == (201, b'{"a":1}\n')
    assert b"Api-Version" in made.fields and b"application/json" in made.fields
    assert (call().empty().status, call().encoded(b"[]\n").body) == (204, b"[]\n")


def test_platforms_are_documents() -> None:
    assert platform_parameter("") is None
    assert platform_parameter('{"os": "linux", "architecture": "arm", "variant": "v7"}') == Platform(
        "arm", "linux", "v7"
    )
    assert platform_parameters(call('p={"os":"linux"}&p=&p={"os":"a"}'), "p") == [
        Platform("", "linux"),
        Platform("", "a"),
    ]
    for text in ("linux/arm", "[]", '{"os": 5}', "\udcff"):
        with pytest.raises(InvalidParameter, match="invalid platform"):
            platform_parameter(text)


async def test_both_doors_of_builds_have_one_history() -> None:
    class Builder:
        kept = None

        async def get(self) -> "Builder":
            return self

    engine = FakeEngine()
    engine.builder = Builder()
    common = Common(cast(Any, engine))
    assert await common.history() is await common.history()


async def test_a_document_of_many_values_is_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    here, readers = threading.get_ident(), []

    def parse(data: bytes) -> dict[str, object]:
        readers.append(threading.get_ident())
        return parse_document(data)

    monkeypatch.setattr("husk.api.calls.call.parse_document", parse)
    for values, in_thread in ((10, False), (6000, True)):
        asked = call(body=b'{"Test": [%b]}' % b",".join([b'"x"'] * values), content_type="application/json")
        found = await asked.body(Reader(HealthConfig))
        assert found.test == ["x"] * values
        assert (readers.pop() != here) is in_thread


async def test_a_document_has_an_end_to_its_values() -> None:
    asked = call(body=b'{"a": [%b]}' % b",".join([b"1"] * 524_289), content_type="application/json")
    with pytest.raises(InvalidParameter, match="more than 524288 values"):
        await asked.document()
