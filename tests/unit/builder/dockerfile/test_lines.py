import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.builder.dockerfile import lines
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.lines import FLAG, LIST, VALUE, Flags, Heredoc, heredoc_of, split
from husk.builder.dockerfile.rules import Span


def statements(text):
    return [line.original for line in split(text).lines]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROM a\nRUN b", ["FROM a", "RUN b"]),
        ("FROM a\r\nRUN b\r\n", ["FROM a", "RUN b"]),
        ("  FROM a  ", ["FROM a  "]),
        ("# c\n\nFROM a", ["FROM a"]),
        ("RUN a \\\n  b", ["RUN a   b"]),
        ("RUN a \\  \n b", ["RUN a  b"]),
        ("RUN a \\\n# comment\n b", ["RUN a  b"]),
        ("RUN a \\\n\n b", ["RUN a  b"]),
        ("RUN a \\\\\nRUN b", ["RUN a \\\\", "RUN b"]),
        ("RUN a \\", ["RUN a "]),
        ("\\\nFROM a", ["FROM a"]),
        ("\ufeffFROM a", ["FROM a"]),
        ("# escape=`\nFROM a\nRUN dir C:\\\nRUN x `\n y", ["FROM a", "RUN dir C:\\", "RUN x  y"]),
    ],
)
def test_what_one_line_is(text, expected):
    assert statements(text) == expected


def test_lines_know_where_they_stand():
    found = split("# one\nFROM a\n\nRUN b \\\n  c\nRUN d").lines
    assert [line.span for line in found] == [Span(2, 2), Span(4, 5), Span(6, 6)]


def test_comments_belong_to_what_follows():
    found = split("# syntax=x\n# first\n#\n# second\n\n# third\nFROM a\nRUN b").lines
    assert found[0].comments == ["second", "third"]
    assert found[1].comments == []


def test_empty_continuation_lines_are_told():
    assert split("FROM a\nRUN b \\\n\n c\nRUN d").empty_continuations == [Span(4, 4)]


@pytest.mark.parametrize(
    ("text", "keyword", "flags", "rest"),
    [
        ("FROM a", "FROM", [], "a"),
        ("from\ta  b ", "from", [], "a  b"),
        ("RUN", "RUN", [], ""),
        ("COPY --from=x --link a b", "COPY", ["--from=x", "--link"], "a b"),
        ("COPY --chown='a b' c d", "COPY", ["--chown=a b"], "c d"),
        ('COPY --chown="a\\"b" c d', "COPY", ['--chown=a"b'], "c d"),
        ("COPY --chown=a\\ b c d", "COPY", ["--chown=a b"], "c d"),
        ("RUN -- --x", "RUN", [], "--x"),
        ("RUN --x", "RUN", ["--x"], ""),
        ("RUN echo --x", "RUN", [], "echo --x"),
    ],
)
def test_flags_stand_before_the_rest(text, keyword, flags, rest):
    (line,) = split(text).lines
    assert (line.keyword, line.flags, line.rest) == (keyword, flags, rest)


def test_heredocs_hang_on_their_line():
    text = "FROM a\nRUN <<ONE cat <<-'TWO'\n1 $x\nONE\n\tinside\n\t\tdeeper\n\tTWO\nRUN c"
    _, run, last = split(text).lines
    one, two = run.heredocs
    assert (one.name, one.expand, one.text) == ("ONE", True, "1 $x\n")
    assert (two.name, two.expand, two.text) == ("TWO", False, "inside\ndeeper\n")
    assert run.span == Span(2, 7)
    assert last.original == "RUN c"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("RUN <<EOF", ["EOF"]),
        ("RUN 3<<EOF cat", ["EOF"]),
        ("RUN cat << EOF", ["EOF"]),
        ("COPY <<a <<b /d", ["a", "b"]),
        ("ADD <<a /d", ["a"]),
        ("ONBUILD RUN <<EOF", ["EOF"]),
        ("RUN cat <<<EOF", []),
        ("RUN '<<EOF'", []),
        ("RUN [ -f x ] && cat <<EOF", ["EOF"]),
        ('RUN ["cat", "<<EOF"]', []),
        ("ENV a=<<EOF", []),
        ("RUN it's <<EOF", []),
    ],
)
def test_which_words_are_heredocs(line, names):
    (found,) = split(line + "\n" + "".join(f"{name}\n" for name in names)).lines
    assert [heredoc.name for heredoc in found.heredocs] == names


def test_a_heredoc_without_end():
    with pytest.raises(DockerfileError, match="unterminated heredoc") as caught:
        split("FROM a\nRUN <<EOF\nx\n")
    assert caught.value.span == Span(2, 3)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment"])
def test_a_file_with_nothing_in_it(text):
    with pytest.raises(DockerfileError, match="file with no instructions"):
        split(text)


@given(st.text("ab \\\n#<'\"$RUN", max_size=40))
def test_every_line_is_in_one_place(text):
    try:
        found = split(text).lines
    except DockerfileError:
        return
    ends = [0] + [line.span.end for line in found]
    assert all(line.span.start > end for line, end in zip(found, ends, strict=False))


KNOWN = {"link": FLAG, "from": VALUE, "exclude": LIST}


def test_flags():
    flags = Flags(["--link", "--from=a=b", "--exclude=x", "--exclude=y"], KNOWN)
    assert flags.is_true("link")
    assert flags.value("from") == "a=b"
    assert flags.values("exclude") == ["x", "y"]
    assert flags.names == {"link", "from", "exclude"}


def test_what_was_not_said():
    flags = Flags(["--link=FALSE"], KNOWN)
    assert flags.maybe_true("link") is False
    assert flags.value("from") == ""
    assert "from" not in flags
    assert Flags([], KNOWN).maybe_true("link") is None


@pytest.mark.parametrize(
    "written", [["--x"], ["--link=x"], ["--link="], ["--from"], ["--link", "--link"], ["--exclude"]]
)
def test_refusals(written):
    with pytest.raises(DockerfileError):
        Flags(written, KNOWN)


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
    assert heredoc_of(word) == expected


def test_its_end():
    assert Heredoc("E", expand=True, strip_tabs=True).ends_with("\t\tE\r\n")
    assert not Heredoc("E", expand=True, strip_tabs=False).ends_with("\tE\n")
    assert not Heredoc("E", expand=True, strip_tabs=False).ends_with("E \n")


def test_a_descriptor_is_a_number_that_can_be_one():
    assert [heredoc_of(f"{digits}<<EOF") for digits in ("٣", "9" * 5000)] == [None, None]


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
    assert lines.argument_words(text, "\\") == words


def test_arrays():
    assert lines.json_array('["a", "b"]') == ["a", "b"]
    assert lines.json_array("a") is None
    assert lines.json_array('["a"') is None
    assert lines.json_array("[" * 100_000) is None
    with pytest.raises(DockerfileError, match="strings only"):
        lines.json_array('["a", 1]')


@given(st.text("ab '\"\\\t"))
def test_no_word_is_lost(text):
    kept = "".join(lines.argument_words(text, "\\"))
    assert set("ab") & set(text) <= set(kept)
