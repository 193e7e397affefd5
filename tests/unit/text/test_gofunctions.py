"""Functions of Go templates, and how values are written."""

import pytest

from husk.text.gofunctions import ABSENT, BUILTINS, printed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        (ABSENT, "<no value>"),
        (["a", 1], "[a 1]"),
        (True, "true"),
        (3, "3"),
        (2.5, "2.5"),
        ("x", "x"),
        ({"b": 1, "a": True}, "map[a:true b:1]"),
    ],
)
def test_values_as_a_template_writes_them(value: object, text: str) -> None:
    assert printed(value) == text


@pytest.mark.parametrize(
    ("form", "values", "text"),
    [
        ("%s-%d", ("a", 7), "a-7"),
        ("%5d|%-5d|%05d|%+d", (1, 2, 3, 4), "    1|2    |00003|+4"),
        ("%q %v %t", ("x", 1, True), '"x" 1 true'),
        ("%x %X %o %b", (255, 255, 8, 5), "ff FF 10 101"),
        ("%.2f %x", (1.005, "hi"), "1.00 6869"),
        ("100%%", (), "100%"),
        ("%d", (), "%!d(MISSING)"),
        ("%d", ("x",), "%!d(string=x)"),
        ("x", (1, "y"), "x%!(EXTRA int=1, string=y)"),
    ],
)
def test_printf(form: str, values: tuple[object, ...], text: str) -> None:
    assert BUILTINS["printf"](form, *values) == text


@pytest.mark.parametrize(
    ("name", "values", "result"),
    [
        ("and", (1, "", 2), ""),
        ("or", (0, "", "x"), "x"),
        ("not", ("",), True),
        ("eq", (1, 2, 1), True),
        ("ne", ("a", "b"), True),
        ("lt", ("a", "b"), True),
        ("ge", (2, 2), True),
        ("index", ({"a": {"b": "c"}}, "a", "b"), "c"),
        ("index", ("abc", 1), ord("b")),
        ("slice", ("abcdef", 1, 3), "bc"),
        ("slice", ("abc",), "abc"),
        ("len", ("é",), 2),
        ("print", (1, 2, "x", 3), "1 2x3"),
        ("println", (1, "x"), "1 x\n"),
        ("html", ("<a href='x'>",), "&lt;a href=&#39;x&#39;&gt;"),
        ("urlquery", ("a b&c",), "a+b%26c"),
        ("join", (", ", "a", "b"), "a, b"),
    ],
)
def test_functions(name: str, values: tuple[object, ...], result: object) -> None:
    assert BUILTINS[name](*values) == result


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("eq", (1,)),
        ("eq", (1, "1")),
        ("lt", (1, "1")),
        ("lt", (True, False)),
        ("index", (3, 1)),
        ("slice", ("abc", 9)),
        ("slice", (3,)),
        ("len", (3,)),
    ],
)
def test_what_has_no_answer(name: str, values: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        BUILTINS[name](*values)
