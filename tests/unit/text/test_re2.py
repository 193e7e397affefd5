"""Expressions mean what they mean to Go, and no expression takes long."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.text.re2 import BadExpression, Finder, TooMuch, parse


def finds(expression: str, text: str) -> bool:
    return Finder([expression]).finds(text)


@pytest.mark.parametrize(
    ("expression", "found", "not_found"),
    [
        ("", ["", "x"], []),
        ("web", ["web", "/web-1"], ["we", "Web"]),
        ("^/?web$", ["web", "/web"], ["web1", "a/web"]),
        ("(a+)+_$", ["aa_"], ["a" * 30, "a_b"]),
        ("a|b|", ["", "c"], []),
        ("^(?:a|bc){2,3}$", ["aa", "abc", "bcabc"], ["a", "aaaa"]),
        ("^a{2,}$", ["aa", "aaaaa"], ["a"]),
        ("^a{,2}$", ["a{,2}"], ["aa"]),
        ("^a{0}b??$", ["", "b"], ["ab"]),
        ("(?i)wEb", ["WEB", "web"], ["wb"]),
        ("(?i:w)eb", ["Web"], ["WEB"]),
        ("(?s)^a.b$", ["a\nb"], []),
        ("^a.b$", ["a-b"], ["a\nb", "ab"]),
        ("(?m)^b$", ["a\nb\nc"], ["ab"]),
        ("(?P<name>a)(?<other>b)", ["ab"], ["a"]),
        (r"\bfoo\b", ["a foo b", "foo"], ["foot"]),
        (r"\Boo\B", ["foot"], ["foo"]),
        (r"\Aa\z", ["a"], ["ab"]),
        (r"^\d\D\w\W\s\S$", ["1ab- x"], ["11b- x"]),
        (r"^[\d_a-c]+$", ["1_c"], ["d"]),
        (r"^[^a-c\s]$", ["d"], ["b", " "]),
        ("^[]a]$", ["]", "a"], ["b"]),
        ("^[a-]$", ["-"], ["b"]),
        ("^[[:alpha:][:^ascii:]]$", ["x", "é"], ["1"]),
        (r"^\pL\p{Nd}\P{L}\p{^L}$", ["é3--"], ["33--"]),
        (r"^\x41\x{42}\103\.\n$", ["ABC.\n"], []),
        (r"^\Qa.b*\E+$", ["a.b*"], ["axb"]),
    ],
)  # fmt: skip
def test_what_an_expression_is_found_in(expression: str, found: list[str], not_found: list[str]) -> None:
    assert [text for text in found if not finds(expression, text)] == []
    assert [text for text in not_found if finds(expression, text)] == []


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("x{1001}", "invalid repeat count: `{1001}`"),
        ("(a{100}){100}", "invalid repeat count: `(a{100}){100}`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("[a", "missing closing ]: `[a`"),
        ("\\", "trailing backslash at end of expression"),
        ("(" * 200, "expression nests too deeply"),
    ],
)
def test_what_is_no_expression(expression: str, complaint: str) -> None:
    with pytest.raises(BadExpression) as caught:
        parse(expression)
    assert complaint in str(caught.value)
    assert finds(expression, f"a{expression}b") and not finds(expression, "a")


def test_any_of_several_is_enough() -> None:
    finder = Finder(["^a", "b$", "plain", "("])
    assert [text for text in ("ax", "xb", "is plain", "x(", "none") if finder.finds(text)] == [
        "ax", "xb", "is plain", "x(",
    ]  # fmt: skip


_atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", r"\b", r"\w", r"\d", "_"])
_expressions = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=8,
)


@given(_expressions, st.text("ab1_", max_size=7))
def test_they_are_found_where_others_find_them(expression: str, text: str) -> None:
    assert finds(expression, text) == (re.search(expression, text) is not None)


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|aa)+$", "(.*)*$x", "(a?){30}a{30}$x", "(a|b)*a(a|b){200}$x"])
def test_the_work_grows_with_the_text_and_no_faster(expression: str) -> None:
    def work(length: int) -> int:
        finder = Finder([expression])
        before = finder._steps
        finder.finds("ab" * length)
        return before - finder._steps

    assert work(4000) <= 2.5 * work(2000)


@pytest.mark.parametrize(
    "expressions",
    [["(?:a|b){1000}" * 100], ["a|" * 9000], [f"x{number}" for number in range(50_000)], ["[ab]" * 5000]],
)
def test_what_is_too_large_is_refused(expressions: list[str]) -> None:
    with pytest.raises(TooMuch):
        Finder(expressions)


@pytest.mark.parametrize("text", ["a|" * 90_000, "|" * 1_000_000, "[" + "a" * 4_000_000, "(?P<" * 1_000_000])
def test_a_text_that_nobody_writes_is_refused_before_it_is_read(text: str) -> None:
    with pytest.raises(TooMuch, match="is the most"):
        parse(text)


def test_what_takes_too_long_is_refused() -> None:
    finder = Finder(["(a|b)*a(a|b){500}$x"], steps=10_000)
    with pytest.raises(TooMuch, match="too complex"):
        for number in range(1000):
            finder.finds(f"{number:b}".replace("0", "a").replace("1", "b") * 20)
