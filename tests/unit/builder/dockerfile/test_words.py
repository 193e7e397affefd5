import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.words import DEEPEST, WordRules, expand

HOME = {"HOME": "/root", "EMPTY": "", "NAME": "world", "TWO": "a  b", "FILE": "lib.tar.gz", "ÜBER": "x"}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("plain", "plain"),
        ("a'b c'd", "ab cd"),
        ('a"b c"d', "ab cd"),
        (r"a\'b", "a'b"),
        (r"tab\tend", "tabtend"),
        (r'"tab\tend"', r"tab\tend"),
        (r'"quote\"d"', 'quote"d'),
        (r'"back\\slash"', r"back\slash"),
        (r"'nothing \means $HOME'", r"nothing \means $HOME"),
        ("end\\", "end"),
        ("end\\\\", "end\\"),
        ("$HOME", "/root"),
        ("${HOME}", "/root"),
        ("$HOMEr", ""),
        ("$HOME.r", "/root.r"),
        (r"\$HOME", "$HOME"),
        (r"\\$HOME", r"\/root"),
        ("'$HOME'", "$HOME"),
        ('"$HOME"', "/root"),
        ("$.", "$."),
        ("$", "$"),
        ("a$1b", "ab"),
        ("$12x", "x"),
        ("$@x", "x"),
        ("$ÜBER", "x"),
        ("${UNSET}", ""),
        ("${UNSET:-d}", "d"),
        ("${UNSET-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY-d}", ""),
        ("${HOME:-d}", "/root"),
        ("${UNSET:-$HOME/x}", "/root/x"),
        ("${UNSET:-${ALSO:-${NAME}}}", "world"),
        ("${UNSET:-'a}b'}", "a}b"),
        ('${UNSET:-"a b"}', "a b"),
        (r"${UNSET:-a\}b}", "a}b"),
        ("${HOME:+yes}", "yes"),
        ("${EMPTY:+yes}", ""),
        ("${EMPTY+yes}", "yes"),
        ("${UNSET+yes}", ""),
        ("${HOME:?gone}", "/root"),
        ("${EMPTY?gone}", ""),
        ("${FILE#*.}", "tar.gz"),
        ("${FILE##*.}", "gz"),
        ("${FILE%.*}", "lib.tar"),
        ("${FILE%%.*}", "lib"),
        ("${FILE#nothing}", "lib.tar.gz"),
        ("${FILE#l?b}", ".tar.gz"),
        ("${FILE/a/o}", "lib.tor.gz"),
        ("${FILE/./-}", "lib-tar.gz"),
        ("${FILE//./-}", "lib-tar-gz"),
        ("${FILE//[/-}", "lib.tar.gz"),
        (r"${HOME/\//-}", "-root"),
        ("${HOME%$HOME}", ""),
        ("${aaa}}", "}"),
        ("${UNSET:-bbb {foo}", "bbb {foo"),
    ],
)
def test_a_word(source, text):
    assert expand(source, HOME).text == text


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("it's", "matching single-quote"),
        ('say "hi', "matching double-quote"),
        ('"ends\\"', "matching double-quote"),
        ("${", "missing '}'"),
        ("${HOME", "missing '}'"),
        ("${}", "bad substitution"),
        ("${:-x}", "bad substitution"),
        ("${{x}", "bad substitution"),
        ("${HOME:=x}", "unsupported modifier (:=)"),
        ("${HOME=x}", "unsupported modifier (=)"),
        ("${HOME:#x}", "unsupported modifier (:#)"),
        ("${HOME:x}", "unsupported modifier (:x)"),
        ("${.}", "unsupported modifier (.)"),
        ("${HOME:-x", "missing '}'"),
        ("${HOME/x}", "missing '/'"),
        ("${HOME/x/y", "missing '}'"),
        ("${UNSET?}", "UNSET: is not allowed to be unset"),
        ("${UNSET:?}", "UNSET: is not allowed to be unset"),
        ("${EMPTY:?}", "EMPTY: is not allowed to be empty"),
        ("${UNSET:?set it, $NAME}", "UNSET: set it, world"),
        (r"${HOME#\x}", "invalid escape"),
    ],
)
def test_a_word_that_makes_no_sense(source, says):
    with pytest.raises(DockerfileError) as caught:
        expand(source, HOME)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a b\tc", ["a", "b", "c"]),
        ('a "b c"', ["a", "b c"]),
        (r"a\ b", ["a b"]),
        ("x$TWO", ["xa", "b"]),
        ('x"$TWO"', ["xa  b"]),
        ("  a  ", ["a"]),
        ("''", []),
        ("<<EOT x", ["<<EOT", "x"]),
        ("<< EOT", ["<< EOT"]),
        ("a<b", ["a<b"]),
    ],
)
def test_several_words(source, words):
    assert expand(source, HOME).words == words


def test_what_was_used_and_what_was_missing():
    found = expand("$HOME ${UNSET:-$NAME} $OTHER", HOME)
    assert found.used == {"HOME", "NAME"}
    assert found.missing == {"UNSET", "OTHER"}


def test_the_escape_can_be_a_backtick():
    assert expand("C:\\x`$HOME", HOME, WordRules(escape="`")).text == "C:\\x$HOME"


def test_what_is_not_set_can_stay():
    rules = WordRules(keep_unset=True)
    assert expand("$HOME $X ${X} ${X:-a} ${X#b} ${X/a/b}", HOME, rules).text == "/root $X ${X} ${X:-a} ${X#b} ${X/a/b}"


def test_quotes_can_stay():
    assert expand("""a "b $NAME" 'c'""", HOME, WordRules(keep_quotes=True)).text == """a "b world" 'c'"""
    assert expand("""a "b" 'c""", HOME, WordRules(quotes=False)).text == """a "b" 'c"""


def test_deep_nesting_is_refused():
    source = "${x:-" * (DEEPEST + 1) + "}" * (DEEPEST + 1)
    with pytest.raises(DockerfileError, match="nested more than"):
        expand(source, {})
    assert expand("${x:-" * DEEPEST + "y" + "}" * DEEPEST, {}).text == "y"


@given(st.text(), st.dictionaries(st.sampled_from("abc"), st.text(max_size=5)))
def test_nothing_but_a_dockerfile_error_comes_out(source, variables):
    with contextlib.suppress(DockerfileError):
        expand(source, variables)


@given(st.text())
def test_single_quotes_keep_everything(text):
    text = text.replace("'", "")
    assert expand(f"'{text}'", {}).text == text


# What a variable of each state becomes: not set, empty, or with a value.
_WORDS = st.text("xyz-", max_size=4)
_STATES = st.one_of(st.none(), _WORDS)


@given(_STATES, _WORDS, st.sampled_from([":-", "-", ":+", "+"]))
def test_defaults_and_alternatives(value, word, form):
    variables = {} if value is None else {"v": value}
    counts = value is not None and (value != "" or ":" not in form)
    expected = (word if counts else "") if form.endswith("+") else (value if counts else word)
    assert expand(f"${{v{form}{word}}}", variables).text == (expected or "")


@given(_STATES, st.sampled_from([":?", "?"]))
def test_what_must_be_there_is_there_or_the_error_says_why(value, form):
    variables = {} if value is None else {"v": value}
    source = f"${{v{form}why not}}"
    if value is None or (value == "" and ":" in form):
        with pytest.raises(DockerfileError, match="why not"):
            expand(source, variables)
    else:
        assert expand(source, variables).text == value


@given(st.text("ab", max_size=8), st.text("ab", min_size=1, max_size=3), st.text("xy", max_size=3))
def test_plain_patterns_are_what_python_does(value, pattern, new):
    variables = {"v": value}
    assert expand(f"${{v#{pattern}}}", variables).text == value.removeprefix(pattern)
    assert expand(f"${{v%{pattern}}}", variables).text == value.removesuffix(pattern)
    assert expand(f"${{v/{pattern}/{new}}}", variables).text == value.replace(pattern, new, 1)
    assert expand(f"${{v//{pattern}/{new}}}", variables).text == value.replace(pattern, new)


@given(
    st.dictionaries(st.sampled_from("abc"), st.text("xyz $\"'\\\\{}", max_size=5)), st.lists(st.sampled_from("abcd"))
)
def test_values_are_not_expanded_again(variables, names):
    source = "/".join(f"${{{name}}}" for name in names)
    assert expand(source, variables).text == "/".join(variables.get(name, "") for name in names)
