import pytest

from tests.support.fake_engine import failed


@pytest.fixture
def completed(typed, monkeypatch):
    def ask(line: str, number: int) -> list[str]:
        monkeypatch.setenv("_HUSK_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(number))
        return [each.partition(",")[2] for each in typed().out.split()]

    return ask


def test_names_of_containers_and_images(engine, completed):
    engine.answers("GET", "/containers/json", [{"Id": "1", "Names": ["/web"]}, {"Id": "2", "Names": ["/db"]}])
    engine.answers("GET", "/images/json", [{"Id": "3", "RepoTags": ["busybox:latest", "app:1"]}])
    assert completed("husk stop ", 2) == ["db", "web"]
    assert completed("husk logs w", 2) == ["web"]
    assert completed("husk run ", 2) == ["app:1", "busybox", "busybox:latest"]
    assert completed("husk run busybox ", 3) == []
    assert "--detach" in completed("husk run --det", 2)
    assert completed("husk imag", 1) == ["image", "images"]
    engine.answers("GET", "/volumes", {"Volumes": [{"Name": "data"}, {"Name": "other"}]})
    assert completed("husk volume rm d", 3) == ["data"]


def test_conditions_and_templates(engine, completed):
    assert completed("husk ps --filter st", 3) == ["status="]
    assert completed("husk volume ls --filter d", 4) == ["dangling=", "driver="]
    assert completed("husk network ls --format {{.N", 4) == ["{{.Name}}"]
    assert completed("husk ps --format j", 3) == ["json"]


def test_an_engine_that_is_not_there_completes_nothing(engine, completed):
    engine.answers("GET", "/containers/json", failed(500, "no"))
    assert completed("husk stop ", 2) == []


def test_what_a_shell_would_take_for_more_than_a_name_is_not_completed(engine, completed):
    names = ["/web", "/$(reboot)", "/a`id`", "/a;b", "/\x1b[2J"]
    engine.answers("GET", "/containers/json", [{"Id": str(n), "Names": [name]} for n, name in enumerate(names)])
    assert completed("husk stop ", 2) == ["web"]
