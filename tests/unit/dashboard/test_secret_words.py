import pytest

from husk.dashboard.secret_words import (
    HIDDEN,
    is_secret,
    masked,
    masked_values,
    masked_words,
    variables,
    without_secrets,
)


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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ENV TOKEN=abc A=1", "ENV TOKEN=* A=1"),
        ("RUN |1 NPM_TOKEN=abc /bin/sh -c make", "RUN |1 NPM_TOKEN=* /bin/sh -c make"),
        ("mysql --password word --port 3", "mysql --password * --port 3"),
        ("mysql --password=word", "mysql --password=*"),
        ("curl -H 'Authorization: Bearer a.b' http://x", "curl -H 'Authorization: * * http://x"),
        ('ENV KEY="a b c" B=2', "ENV KEY=* * * B=2"),
        ("ENV KEY='abc' B=2", "ENV KEY=* B=2"),
        ("git clone https://me:word@host/x", "git clone https://*@host/x"),
        ("echo  two\tmonkey business", "echo  two\tmonkey business"),
        ("--token", "--token"),
        ("", ""),
        ("Authorization: Bearer abc x", "Authorization: * * x"),
        ("--header=Authorization: Basic abc", "--header=Authorization: * *"),
        ("curl -H Authorization:abc http://x", "curl -H Authorization:* http://x"),
        ("Bearer abc", "Bearer *"),
        ("-o user=me,password=abc,vers=3", "-o user=me,password=*,vers=3"),
        ("https://x/?a=1&token=abc", "https://x/?a=1&token=*"),
        ("make --build-arg=TOKEN=abc", "make --build-arg=TOKEN=*"),
        ('{"user":"me","password":"abc"}', '{"user":"me","password":*'),
    ],
)
def test_secrets_of_commands(text: str, told: str) -> None:
    assert masked(text) == told.replace("*", HIDDEN)


def test_secrets_of_lists_and_of_named_values() -> None:
    assert masked_words(["run", "--api-key", "a b", "--x", "PASS=1"]) == [
        "run",
        "--api-key",
        HIDDEN,
        "--x",
        f"PASS={HIDDEN}",
    ]
    assert masked_values({"app": "x", "auth.token": "y", "url": "http://a:b@c"}) == {
        "app": "x", "auth.token": HIDDEN, "url": HIDDEN
    }  # fmt: skip


def test_commands_and_options_of_a_container_have_no_secrets() -> None:
    inspected = {
        "Args": ["--token", "abc"],
        "Config": {"Cmd": ["--token", "abc"], "Entrypoint": ["x"], "Labels": {"key": "abc"}, "Env": None,
                   "Healthcheck": {"Test": ["CMD-SHELL", "curl -u x --pass abc"], "Retries": 1}},
        "HostConfig": {"LogConfig": {"Type": "splunk", "Config": {"splunk-token": "abc"}}, "Memory": 1},
    }  # fmt: skip
    shown = without_secrets(inspected)
    assert "abc" not in str(shown) and shown["HostConfig"]["Memory"] == 1
    assert shown["Config"]["Healthcheck"]["Retries"] == 1


@pytest.mark.parametrize("text", ["a" * 10**6, "=" * 10**6, "'" * 10**6, "://" * 10**5, "-key " * 10**5, "x:" * 10**6])
def test_what_is_long_is_judged_at_once(text: str) -> None:
    masked(text)


def test_options_of_mounts_annotations_and_checks_have_no_secrets() -> None:
    options = {"o": "user=me,password=abc", "type": "cifs"}
    inspected = {
        "Config": {"OnBuild": ["ENV TOKEN=abc"]},
        "HostConfig": {
            "Annotations": {"x.token": "abc", "y": "kept"},
            "Mounts": [
                {"Type": "tmpfs", "Target": "/t"},
                {"Type": "volume", "VolumeOptions": {"Labels": {"key": "abc"}, "DriverConfig": {"Options": options}}},
            ],
        },
        "State": {"Health": {"Status": "healthy", "Log": [{"ExitCode": 0, "Output": "token=abc"}]}, "Pid": 1},
    }  # fmt: skip
    shown = without_secrets(inspected)
    assert "abc" not in str(shown)
    assert shown["HostConfig"]["Mounts"][1]["VolumeOptions"]["DriverConfig"]["Options"]["type"] == "cifs"
    assert (shown["HostConfig"]["Annotations"]["y"], shown["State"]["Pid"]) == ("kept", 1)
    assert shown["State"]["Health"]["Log"] == [{"ExitCode": 0, "Output": f"token={HIDDEN}"}]
    assert "abc" in str(inspected)
