"""Go's template language: what it says, and what it refuses. The expected texts are those of Go's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import InvalidParameter
from husk.text.gotemplate import LONGEST, Structure, parse

DOT = Structure(
    Name="web",
    Slot="3",
    Empty="",
    Labels={"tier": "back", "color": "red"},
    None_=None,
    Inner=Structure(Deep=Structure(Word="deep")),
)


def render(text: str) -> str:
    return parse(text).render(DOT, {"env": lambda name: f"<{name}>", "nothing": lambda: "none"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a{{.Name}}b", "awebb"),
        ("{{ .Inner.Deep.Word }}", "deep"),
        ("{{$.Name}}-{{$.Inner.Deep.Word}}", "web-deep"),
        ('{{"text"}} {{`raw "x"`}} {{"a\\tb"}}', 'text raw "x" a\tb'),
        ("{{1}} {{true}} {{2.5}}", "1 true 2.5"),
        ("{{.Labels}}", "map[color:red tier:back]"),
        ("{{.Labels.tier}}", "back"),
        ('{{index .Labels "tier"}}{{index .Labels "missing"}}', "back"),
        ('{{env "HOME"}} {{ env "A" | printf "%s!" }}', "<HOME> <A>!"),
        ("{{nothing}}", "none"),
        ('{{join "," .Name .Slot "z"}}', "web,3,z"),
        ('{{printf "%s-%03d %v %q %5s|%-5s|%%" .Name 7 true "x" "r" "l"}}', 'web-007 true "x"     r|l    |%'),
        ("{{print .Name 1 2 .Slot}}", "web1 23"),
        ("{{len .Name}} {{len .Labels}} {{slice .Name 1}} {{slice .Name 1 2}}", "3 2 eb e"),
        ('{{if eq .Name "web"}}yes{{else}}no{{end}}', "yes"),
        ('{{if ne .Name "web"}}1{{else if eq .Slot "3"}}2{{else}}3{{end}}.', "2."),
        ('{{if eq .Slot "1"}}1{{else if eq .Slot "2"}}2{{else if .Empty}}3{{else}}4{{end}}{{.Slot}}', "43"),
        ("{{if and .Name .Empty}}a{{end}}{{if or .Name .Empty}}b{{end}}{{if not .Empty}}c{{end}}", "bc"),
        ("{{if lt 1 2}}<{{end}}{{if gt 1 2}}>{{end}}", "<"),
        ("{{with .Inner.Deep}}{{.Word}} of {{$.Name}}{{end}}{{with .Empty}}x{{else}}y{{end}}", "deep of weby"),
        ("{{range .Labels}}[{{.}}]{{end}}", "[red][back]"),
        ("{{range $key, $value := .Labels}}{{$key}}={{$value}};{{end}}", "color=red;tier=back;"),
        ("{{$x := .Name}}{{$x}}{{$x = .Slot}}{{$x}}", "web3"),
        ("{{$x := 1}}{{if true}}{{$x = 2}}{{$y := 3}}{{$y}}{{end}}{{$x}}", "32"),
        ("{{(index .Labels `tier`)}} {{len (print .Name .Slot)}}", "back 4"),
        ("a  {{- .Name -}}  b", "awebb"),
        ("a {{/* nothing at all */}}b{{- /* or } } here */ -}} c", "a bc"),
        ('{{"}}"}}', "}}"),
        ("{{html `<a&b>'`}} {{urlquery `a b&c`}}", "&lt;a&amp;b&gt;&#39; a+b%26c"),
        ('{{printf "%d %s %d %+d" "x" 5 -1 3}}', "%!d(string=x) %!s(int=5) -1 +3"),
        ('{{printf "%d"}} {{printf "a" 1}}', "%!d(MISSING) a%!(EXTRA int=1)"),
        ("{ {.Name} }", "{ {.Name} }"),
    ],
)
def test_it_says(text: str, said: str) -> None:
    assert render(text) == said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{", "unclosed action"),
        ("{{.Name", "unclosed action"),
        ("{{}}", "missing value"),
        ("{{.Missing}}", "can't evaluate field Missing"),
        ("{{.Name.More}}", "can't evaluate field More"),
        ("{{.Labels.missing}}", 'no entry for key "missing"'),
        ("{{unknown}}", 'function "unknown" not defined'),
        ("{{$x}}", "undefined variable"),
        ("{{$x = 1}}", "undefined variable"),
        ("{{if true}}{{$y := 1}}{{end}}{{$y}}", "undefined variable"),
        ("{{if .Name}}", "unexpected EOF"),
        ("{{end}}", "unexpected {{end}}"),
        ("{{else}}", "unexpected {{else}}"),
        ("{{if .Name}}{{else}}{{else}}{{end}}", "unexpected {{else}}"),
        ("{{.Name .Slot}}", "non-function"),
        ("{{.Name | .Slot}}", "non-function"),
        ("{{(.Name}}", "unclosed left paren"),
        ("{{.Name)}}", "unexpected"),
        ("{{eq 1}}", "error calling eq"),
        ('{{eq 1 "1"}}', "incompatible types"),
        ("{{range .Name}}{{end}}", "can't iterate"),
        ('{{define "x"}}{{end}}', "not known to Husk"),
        ("{{#}}", "unexpected '#'"),
        ("{{" + '""' * 10_000, "unclosed action"),
        ("{{ " * 10_000, "unclosed action"),
        ("{{" + "9" * 5000 + "}}", "integer overflow"),
        ("{{9223372036854775808}}", "integer overflow"),
        *(
            (f'{{{{"{text}"}}}}', "bad text")
            for text in (r"\ud800", r"\/", r"\N{DOLLAR SIGN}", r"\x4", r"\777", r"\UFFFFFFFF", r"\xff")
        ),
        ("{{" + "(" * 200 + ".Name" + ")" * 200 + "}}", "too many parentheses"),
        ("{{if true}}" * 200, "too deep"),
    ],
)
def test_it_refuses(text: str, reason: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        render(text)
    assert reason in refused.value.message


def test_escapes_are_those_of_go() -> None:
    assert render(r'{{"a\tb\"c\\\u00e9\U0001F600\303\xa9é"}}{{`\n`}}') == 'a\tb"c\\\u00e9\U0001f600\u00e9\u00e9\\n'


def test_loops_in_loops_come_to_an_end() -> None:
    many = Structure(Labels={str(number): "x" * 1000 for number in range(1000)})
    for inner, reason in (("{{.}}", "says too much"), ("{{$x := 1}}", "does not come to an end")):
        text = "{{range .Labels}}{{range $.Labels}}" + inner + "{{end}}{{end}}"
        with pytest.raises(InvalidParameter, match=reason):
            parse(text).render(many, {})


@pytest.mark.parametrize(
    "text",
    [
        # Each would go through a thousand labels a thousand times, or many more.
        "{{range $.Labels}}" * 3 + "{{end}}" * 3,
        "{{range .Labels}}{{$x := print $}}{{end}}",
        '{{range .Labels}}{{printf "%.1s" $.Labels}}{{end}}',
        "{{range .Labels}}{{len (print $.Labels)}}{{end}}",
    ],
)
def test_what_is_gone_through_is_counted(text: str) -> None:
    many = Structure(Labels={str(number): "x" for number in range(1000)})
    with pytest.raises(InvalidParameter, match="does not come to an end"):
        parse(text).render(many, {})


def test_an_action_has_so_many_letters() -> None:
    assert render("a" * 2 * LONGEST + '{{"' + "b" * (LONGEST - 6) + '"}}') == "a" * 2 * LONGEST + "b" * (LONGEST - 6)
    with pytest.raises(InvalidParameter, match="longer than 65536 bytes"):
        render('{{"' + "b" * (LONGEST - 5) + '"}}')


@given(st.text(alphabet='{}. |()$:="`-abN\\/*', max_size=40))
def test_whatever_is_written_is_said_or_refused(text: str) -> None:
    try:
        render(text)
    except InvalidParameter:
        return
