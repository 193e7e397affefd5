import base64
import json

import pytest

from husk.client.credentials import Keychain, directory
from husk.client.names import DOCKER_HUB
from husk.errors import InvalidParameter, SystemFault


def basic(name, password):
    return {"auth": base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.fixture
def keychain(tmp_path):
    def with_file(document):
        (tmp_path / "config.json").write_text(json.dumps(document))
        return Keychain(tmp_path)

    return with_file


@pytest.fixture
def helper(tmp_path, monkeypatch):
    """A program that keeps credentials: a script that answers with what the test says."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def make(name, script):
        program = tmp_path / f"docker-credential-{name}"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return make


async def test_nobody_is_known(tmp_path):
    keychain = Keychain(tmp_path / "nowhere")
    assert await keychain.of("host") is None
    assert await keychain.headers_for("host/a") == {}
    assert await keychain.headers_for_build() == {}


async def test_what_the_file_has(keychain):
    known = keychain(
        {"auths": {DOCKER_HUB: basic("me", "a:b"), "https://host:5000/v1/": {"identitytoken": "t"}, "x": {}}}
    )
    hub = {"username": "me", "password": "a:b", "serveraddress": DOCKER_HUB}
    assert await known.of("docker.io") == hub
    assert await known.of("host:5000") == {"identitytoken": "t", "serveraddress": "host:5000"}
    assert await known.of("x") is None
    assert (await known.all()).keys() == {DOCKER_HUB, "host:5000"}
    header = (await known.headers_for("busybox"))["X-Registry-Auth"]
    assert json.loads(base64.urlsafe_b64decode(header)) == hub


async def test_what_is_given_comes_first(keychain):
    known = keychain({"auths": {"host": basic("file", "x")}})
    known.remember("https://host", {"username": "login"})
    assert await known.of("host") == {"username": "login"}
    header = (await known.headers_for("host/a", {"username": "given"}))["X-Registry-Auth"]
    assert json.loads(base64.urlsafe_b64decode(header)) == {"username": "given"}
    header = (await known.headers_for_build())["X-Registry-Config"]
    assert json.loads(base64.urlsafe_b64decode(header)) == {"host": {"username": "login"}}


async def test_a_program_that_keeps_them(keychain, helper):
    helper("one", 'read host; echo "{\\"Username\\":\\"u-$host\\",\\"Secret\\":\\"s\\"}"')
    helper(
        "all",
        'if [ "$1" = list ]; then echo \'{"https://y":"u"}\'; else echo \'{"Username":"<token>","Secret":"t"}\'; fi',
    )
    known = keychain({"credHelpers": {"x": "one"}, "credsStore": "all"})
    assert await known.of("x") == {"username": "u-x", "password": "s", "serveraddress": "x"}
    assert await known.of("y") == {"identitytoken": "t", "serveraddress": "y"}
    assert (await known.all()).keys() == {"x", "y"}


async def test_a_program_that_knows_nobody(keychain, helper):
    helper("none", 'echo "credentials not found in native keychain"; exit 1')
    assert await keychain({"credsStore": "none"}).of("x") is None


async def test_a_program_that_fails(keychain, helper):
    helper("broken", 'echo "no session" >&2; exit 1')
    with pytest.raises(SystemFault, match="no session"):
        await keychain({"credsStore": "broken"}).of("x")
    helper("wordy", "echo hello")
    with pytest.raises(SystemFault, match="cannot be read"):
        await keychain({"credsStore": "wordy"}).of("x")


async def test_a_program_that_is_not_there(keychain, helper):
    with pytest.raises(SystemFault, match="docker-credential-gone"):
        await keychain({"credsStore": "gone"}).of("x")


async def test_a_file_that_makes_no_sense(keychain, tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InvalidParameter, match=r"config\.json cannot be read"):
        await Keychain(tmp_path).of("x")
    with pytest.raises(InvalidParameter, match="not base64"):
        await keychain({"auths": {"x": {"auth": "\u00e4"}}}).of("x")


def test_where_the_file_is(monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", "/there")
    assert str(directory()) == "/there"
    monkeypatch.delenv("DOCKER_CONFIG")
    monkeypatch.setenv("HOME", "/home/me")
    assert str(directory()) == "/home/me/.docker"
