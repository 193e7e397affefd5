import pytest
from msgspec import ValidationError

from husk.builder.dockerfile.options import Options, StageAnswer
from husk.builder.dockerfile.rules import Span
from husk.builder.frontend.reading import messages
from husk.builder.graph.operations import Source
from husk.engine.model.image import ImageConfig


def test_both_ways():
    context = messages.Context(Source("local://context"), narrowed=True)
    for question in (
        messages.Open(b"\xff", b""),
        messages.Convert(Options(build_args={"a": "b"}, epoch=1), context, "Dockerfile"),
        messages.Told([StageAnswer(error="x"), StageAnswer()]),
    ):
        assert messages.decode_question(messages.encode(question)) == question
    converted = messages.Converted(None, ImageConfig(os_version="1", author="a"), [], 0, [], {"a": None})
    for answer in (converted, messages.Wrong("x", Span(1, 2)), messages.Answered({"a": b"\0"})):
        assert messages.decode_answer(messages.encode(answer)) == answer


def test_an_answer_is_no_question():
    with pytest.raises(ValidationError):
        messages.decode_question(messages.encode(messages.Opened([])))
