import pytest

from husk.builder.dockerfile.heredocs import Heredoc, parse


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("<<EOF", Heredoc("EOF", expand=True, strip_tabs=False)),
        ("<<-EOF", Heredoc("EOF", expand=True, strip_tabs=True)),
        ("<< EOF", Heredoc("EOF", expand=True, strip_tabs=False)),
        ("<<'EOF'", Heredoc("EOF", expand=False, strip_tabs=False)),
        ('<<-"EOF"', Heredoc("EOF", expand=False, strip_tabs=True)),
        ("3<<EOF", Heredoc("EOF", expand=True, strip_tabs=False, descriptor=3)),
        ("<<$x", Heredoc("$x", expand=True, strip_tabs=False)),
        ("<<", None),
        ("<", None),
        ("<<<x", None),
        ("a<<EOF", None),
        ("<<a b", None),
    ],
)
def test_which_words_are_one(word, expected):
    assert parse(word) == expected


def test_its_end():
    assert Heredoc("E", expand=True, strip_tabs=True).ends_with("\t\tE\r\n")
    assert not Heredoc("E", expand=True, strip_tabs=False).ends_with("\tE\n")
    assert not Heredoc("E", expand=True, strip_tabs=False).ends_with("E \n")


def test_a_descriptor_is_a_number_that_can_be_one():
    assert [parse(f"{digits}<<EOF") for digits in ("٣", "9" * 5000)] == [None, None]
