import json


def test_a_context_from_its_making_to_its_end(typed, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for variable in ("HUSK_HOST", "DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(variable, raising=False)
    made = typed("context", "create", "--docker", "host=ssh://me@box", "--description", "the box", "box")
    assert made == (0, "box\n", 'Successfully created context "box"\n')
    assert typed("context", "ls", "-q").out == "default\nbox\n"
    assert typed("context", "use", "box").code == 0
    assert typed("context", "show").out == "box\n"
    assert typed("-c", "default", "context", "show").out == "default\n"
    assert "box *" in typed("context", "ls").out
    assert json.loads(typed("context", "inspect").out)[0]["Endpoints"]["docker"]["Host"] == "ssh://me@box"
    assert typed("context", "update", "--description", "x", "box").code == 0
    assert typed("context", "inspect", "-f", "{{.Metadata.Description}}", "box").out == "x\n"
    file = str(tmp_path / "packed")
    assert typed("context", "export", "box", file).code == 0
    assert "cannot write" in typed("context", "export", "box", file).err
    assert typed("context", "import", "copy", file).code == 0
    assert "is in use" in typed("context", "rm", "box").err
    assert typed("context", "rm", "-f", "box", "copy").out == "box\ncopy\n"
    assert typed("context", "show").out == "default\n"


def test_what_is_wrong_is_said(typed, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert "--docker host=ADDRESS" in typed("context", "create", "box").err
    assert "expected host, ca, cert" in typed("context", "create", "--docker", "hots=x", "box").err
    assert "does not exist: there are default" in typed("context", "use", "box").err


def test_a_variable_that_is_stronger_is_told(typed, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere:1")
    assert "DOCKER_HOST overrides the active context" in typed("context", "use", "default").err
