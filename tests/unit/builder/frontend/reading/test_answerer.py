"""Answers of the worker to questions, one after the other, without a worker."""

import json
from typing import Any

import pytest

from husk.builder.dockerfile.options import BaseImage, NamedContext, Options, StageAnswer
from husk.builder.dockerfile.rules import Span
from husk.builder.frontend.reading import graphs, messages
from husk.builder.frontend.reading.answerer import Answerer, warm_up
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Source
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import ImageConfig, RootFS

BASE = BaseImage("docker.io/library/busybox:1", ImageConfig(config=ContainerConfig(), rootfs=RootFS(diff_ids=["x"])))
CONTEXT = messages.Context(Source("local://context", {"local.session": "s"}), narrowed=True)


class Talk:
    opened: Any

    def __init__(self, text: bytes, ignored: bytes = b"") -> None:
        self.answerer = Answerer()
        self.opened = self.say(messages.Open(text, ignored))

    def pieces(self, question: messages.Question) -> list[bytes]:
        return list(self.answerer.turn(messages.encode(question)))

    def say(self, question: messages.Question) -> Any:
        return messages.decode_answer(self.pieces(question)[0])

    def convert(self, **options: Any) -> tuple[Any, list[bytes]]:
        first, *rest = self.pieces(messages.Convert(Options(**options), CONTEXT, "Dockerfile"))
        return messages.decode_answer(first), rest


def sources(pieces):
    graph = Graph()
    for piece in pieces:
        graphs.add(graph, piece)
    bodies = [vertex.operation.body for vertex in graph]
    return {body.identifier: body.attributes for body in bodies if isinstance(body, Source)}


def test_it_asks_for_what_is_not_in_the_file_all_at_once_and_goes_on():
    talk = Talk(b"FROM busybox AS one\nCOPY a /b\nFROM given\nCOPY --from=one /b /c\n")
    asking, _ = talk.convert(classic=True)
    asked = [(one.contexts, one.image) for one in asking.wanted]
    assert asked == [(["one", "busybox"], "busybox"), (["given"], "given")]
    found = [StageAnswer(BASE), StageAnswer(context=NamedContext(Source("local://given")))]
    first, *rest = talk.pieces(messages.Told(found))
    made: Any = messages.decode_answer(first)
    steps, *rest = rest
    assert [step.code for step in messages.decode_steps(steps)][-1] == "COPY --from=one /b /c"
    assert made.steps == 4
    assert set(sources(rest)) == {"docker-image://docker.io/library/busybox:1", "local://context", "local://given"}
    assert json.loads(sources(rest)["local://context"]["local.followpaths"]) == ["a"]
    assert sources(rest)["local://context"]["local.session"] == "s"


def test_what_cannot_be_had_is_told_at_its_line():
    talk = Talk(b"FROM scratch\nFROM busibox\n")
    talk.convert()
    wrong = talk.say(messages.Told([StageAnswer(error="no such image")]))
    assert wrong == messages.Wrong("busibox: no such image (did you mean busybox?)", Span(2, 2))


@pytest.mark.parametrize(
    "text", [b"FROM scratch\nLABEL a=\xff", b"FROM scratch\nRUN \xff", b"FROM scratch\nENV a=\xff\nRUN x"]
)
def test_bytes_that_are_no_text(text):
    assert "no UTF-8" in Talk(text).convert()[0].message
    made, _ = Talk(b"FROM scratch\nCOPY <<E /a\n\xff\nE\n").convert()
    assert isinstance(made, messages.Converted), "where any byte can stand, it can"


def test_what_is_wrong():
    assert Talk(b"FROM scratch\nX").say(messages.Convert(Options(), CONTEXT, "f")).span == Span(2, 2)
    asked = messages.Ask("frontend.other", Options(), CONTEXT, "f")
    assert Talk(b"FROM scratch").say(asked) == messages.Refused("unsupported request frontend.other", "frontend.other")


def test_what_is_left_out():
    talk = Talk(b"FROM scratch\nCOPY a.o /", b"*.o\n# no\n")
    assert talk.opened == messages.Opened(["*.o"])
    assert talk.say(messages.LeavesOut(["a.o", "a.c"])) == messages.Left(["a.o"])
    assert [one.rule for one in talk.convert(check="experimental=all")[0].warnings] == ["CopyIgnoredFile"]
    assert "not closed" in Talk(b"FROM scratch", b"[").opened.complaint


def test_which_frontend_it_asks_for():
    assert Talk(b"FROM scratch").say(messages.AskSyntax({})) == messages.SyntaxTold()
    told = Talk(b"# syntax=some/other:1 more\nFROM x").say(messages.AskSyntax({}))
    assert (told.syntax.image, told.syntax.line) == ("some/other:1", 1)
    told = Talk(b"# syntax=docker/dockerfile:9\nFROM x").say(messages.AskSyntax({}))
    assert told.syntax is None and "newer than" in told.notice


def test_questions_about_it():
    talk = Talk(b"FROM scratch AS one")
    answered = talk.say(messages.Ask("frontend.targets", Options(), CONTEXT, "f"))
    assert json.loads(answered.answer["result.json"])["targets"][0]["name"] == "one"


def test_what_every_file_needs_is_made_once():
    warm_up()
