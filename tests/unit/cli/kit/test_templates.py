import pytest

from husk.cli.kit.templates import FormatTemplate
from husk.errors import InvalidParameter

DOCUMENT = {
    "Name": "/web",
    "State": {"Running": True, "Pid": 7, "Health": None},
    "Env": ["A=1", "B=2"],
    "Networks": {"one": {"IP": "10.0.0.1"}, "two": {"IP": "10.0.0.2"}},
    "Labels": {"com.a": "b"},
}


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("plain", "plain"),
        ("{{.Name}}", "/web"),
        ("{{ .State.Running }}/{{.State.Pid}}/{{.State.Health}}", "true/7/<nil>"),
        ("{{.Variant.At.All}}", "<no value>"),
        ("{{json .State}}", '{"Running":true,"Pid":7,"Health":null}'),
        ("{{.Env}} {{.Labels}}", "[A=1 B=2] map[com.a:b]"),
        ("{{range .Env}}<{{.}}>{{end}}", "<A=1><B=2>"),
        ("{{range .Networks}}{{.IP}} {{$.Name}} {{end}}", "10.0.0.1 /web 10.0.0.2 /web "),
        ("{{range .Options}}x{{else}}none{{end}}", "none"),
        ("{{if .State.Running}}up{{else}}down{{end}}", "up"),
        ('{{if not .State.Running}}down{{else if eq .Name "/web"}}mine{{end}}', "mine"),
        ("{{with .State}}{{.Pid}}{{end}}", "7"),
        ('{{index .Labels "com.a"}} {{index .Env 1}} {{(index .Networks "two").IP}}', "b B=2 10.0.0.2"),
        ("{{range $place, $one := .Env}}{{$place}}={{$one}} {{end}}", "0=A=1 1=B=2 "),
        ("{{range .State.Health}}x{{else}}none{{end}} {{eq .State.Health `x`}}", "none false"),
        ('{{join .Env ","}} {{.Name | upper}} {{len .Env}}', "A=1,B=2 /WEB 2"),
        ('{{printf "%s!" .Name}}{{/* said */}}', "/web!"),
        ("a {{- .Name -}} b", "a/webb"),
        ("{{eq .State.Pid 7}} {{ne .Name `x`}} {{and true .Name}} {{or .State.Health .Name}}", "true true /web /web"),
    ],
)
def test_what_is_written(template, told):
    assert FormatTemplate(template).fill(DOCUMENT) == told


@pytest.mark.parametrize("template", ["{{nosuch .}}", "{{range .}}", "{{end}}", "{{.A .B}}", "{{|}}", "{{a-b}}"])
def test_what_is_not_understood_is_said(template):
    with pytest.raises(InvalidParameter, match="template"):
        FormatTemplate(template)


def test_a_function_that_fails_says_where():
    with pytest.raises(InvalidParameter, match="error calling index"):
        FormatTemplate("{{index .Env 9}}").fill(DOCUMENT)
    with pytest.raises(InvalidParameter, match="error calling json"):
        FormatTemplate("{{json json}}").fill(DOCUMENT)
    with pytest.raises(InvalidParameter, match="error calling split"):
        FormatTemplate('{{split .State "a"}}').fill(DOCUMENT)


def test_a_misspelt_field_is_refused_and_one_that_may_be_missing_is_not():
    with pytest.raises(InvalidParameter, match="there is no 'Nope'"):
        FormatTemplate("{{.Nope}}").fill({"Id": "1"})
    assert FormatTemplate("{{.SizeRw}}").fill({"Id": "1"}) == "<no value>"


@pytest.mark.parametrize("word", ["²", "--5", "9" * 5000])
def test_what_only_looks_like_a_number_is_not_understood(word):
    with pytest.raises(InvalidParameter):
        FormatTemplate("{{ " + word + " }}")


def test_one_label_of_a_row():
    shape = FormatTemplate('{{.Label "x"}}|{{if .Label "y"}}has{{end}}|{{.Label `none`}}')
    assert shape.fill({"Labels": "x=a,b,y=c"}) == "a,b|has|"


def test_what_is_no_template_is_told_as_docker_tells_it():
    with pytest.raises(InvalidParameter, match="failed to parse template: template: :1: unclosed action"):
        FormatTemplate("{{.Names")
