import pytest

from husk.engine.builder.dockerfile.errors import DockerfileError, Span, suggestion


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("CPY", " (did you mean COPY?)"),
        ("copy", " (did you mean COPY?)"),
        ("rum", " (did you mean RUN?)"),
        ("xyz", ""),
        ("", ""),
    ],
)
def test_suggestions(word, hint):
    assert suggestion(word, ["COPY", "RUN"]) == hint


def test_an_error_keeps_its_first_place():
    error = DockerfileError("no").at(Span(2, 3), unreadable=True).at(Span(1, 9))
    assert str(error) == "dockerfile parse error on line 2: no"
    assert str(DockerfileError("no")) == "no"


def test_only_what_cannot_be_read_is_an_error_of_parsing():
    assert str(DockerfileError("no", plain=True).at(Span(2, 3), unreadable=True)) == "no"
    error = DockerfileError("no").at(Span(2, 3))
    assert (str(error), error.span) == ("no", Span(2, 3))
