import pytest

from husk.dashboard.secret_words import HIDDEN, is_secret, variables, without_secrets


@pytest.mark.parametrize(
    "name", ["DB_PASSWORD", "PGPASS", "api_token", "AWS_SECRET_ACCESS_KEY", "MYSQL_PWD", "GITHUB_AUTH", "SENTRY_DSN"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name, "value")
    assert not is_secret(name, "")


def test_an_address_with_a_password_is_a_secret() -> None:
    assert is_secret("DATABASE_URL", "postgres://user:word@db/shop")
    assert not is_secret("DATABASE_URL", "postgres://db/shop")


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "PWD_BEFORE"])
def test_others_are_none(name: str) -> None:
    assert not is_secret(name, "/usr/bin")


def test_a_secret_is_hidden_until_it_is_asked_for() -> None:
    environment = ["TOKEN=abc", "A=1", "KEY=xyz"]
    assert [(each.name, each.value) for each in variables(environment)] == [
        ("A", "1"),
        ("KEY", HIDDEN),
        ("TOKEN", HIDDEN),
    ]
    assert [each.value for each in variables(environment, "TOKEN")] == ["1", HIDDEN, "abc"]
    assert [each.value for each in variables(environment, "*")] == ["1", "xyz", "abc"]
    assert variables(None) == []


def test_what_is_known_of_a_container_has_no_secrets() -> None:
    inspected = {"Id": "x", "Config": {"Env": ["TOKEN=abc", "A=1"], "Image": "i"}}
    assert without_secrets(inspected) == {"Id": "x", "Config": {"Env": ["A=1", f"TOKEN={HIDDEN}"], "Image": "i"}}
    assert inspected["Config"] == {"Env": ["TOKEN=abc", "A=1"], "Image": "i"}
