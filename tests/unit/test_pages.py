"""Reading of the pages that a test follows (tests/support/pages.py)."""

import pytest

from tests.support.pages import blocks, pattern

PAGE = """\
# Title

A file `a.txt`:

```text a.txt
content
```

```console
$ one
printed
$ two \\
> more
```

```console ends with 3
$ fails
```

```console not run: it needs a moon
$ fly
```

```json
{"only": "to look at"}
```

```console in another terminal
$ serve
^C
```
"""


def test_what_there_is_to_do_on_a_page():
    file, plain, failing, unrun, beside = blocks(PAGE)
    assert (file.kind, file.name, file.text) == ("file", "a.txt", "content\n")
    assert [(each.text, each.printed) for each in plain.commands] == [("one", ["printed"]), ("two \\\nmore", [])]
    assert (plain.line, plain.commands[0].line, plain.status) == (9, 10, 0)
    assert (failing.kind, failing.status) == ("run", 3)
    assert (unrun.kind, unrun.text) == ("unrun", "it needs a moon")
    assert beside.kind == "background" and beside.commands[0].stopped


@pytest.mark.parametrize("page", ["```console sometimes\n$ x\n```", "```console\nx\n```", "```console\n```"])
def test_a_block_that_nobody_understands_is_no_block(page):
    with pytest.raises(ValueError, match=r"line \d"):
        list(blocks(page))


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (["a", "b"], "a\nb\n"),
        (["...", "b"], "b\n"),
        (["...", "b"], "x\ny\nb\n"),
        (["id ... up"], "id 123 abc up\n"),
        (["A   B"], "A B\n"),
        (["a", "^C"], "a\n"),
        (["...end"], "the end  \n"),
    ],
)
def test_lines_that_match(printed, text):
    assert pattern(printed).fullmatch(text)


@pytest.mark.parametrize(("printed", "text"), [(["a"], "a\nb\n"), (["a", "..."], "b\n"), (["a.c"], "abc\n")])
def test_lines_that_do_not_match(printed, text):
    assert not pattern(printed).fullmatch(text)
