import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.builder.dockerfile import arguments
from husk.builder.dockerfile.errors import DockerfileError


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("a  b", ["a", "b"]),
        ("'a b' c", ["'a b'", "c"]),
        ('a"b c"d', ['a"b c"d']),
        ("a\\ b", ["a\\ b"]),
        ('"a\\" b"', ['"a\\" b"']),
        ("'a\\' b", ["'a\\'", "b"]),
        ('a=""', ['a=""']),
        ("''", ["''"]),
        ("a\\", ["a"]),
    ],
)
def test_words_keep_their_quotes(text, words):
    assert arguments.words(text, "\\") == words


def test_arrays():
    assert arguments.json_array('["a", "b"]') == ["a", "b"]
    assert arguments.json_array("a") is None
    assert arguments.json_array('["a"') is None
    assert arguments.json_array("[" * 100_000) is None
    with pytest.raises(DockerfileError, match="strings only"):
        arguments.json_array('["a", 1]')


@given(st.text("ab '\"\\\t"))
def test_no_word_is_lost(text):
    kept = "".join(arguments.words(text, "\\"))
    assert set("ab") & set(text) <= set(kept)
