"""Credentials of a build at registries, with a double of its client's session and a registry that wants tokens."""

from typing import Any

import pytest

from husk.builder.solver.sessions import SessionToken
from husk.builder.sources.registry_login import login_at
from husk.errors import HuskError, Unavailable
from husk.registry import reference
from husk.registry.auth import Credentials
from husk.registry.client import RegistryClient
from tests.support.fake_registry import FakeRegistry, Tokens
from tests.support.registry import make_image, tar_of


class Session:
    def __init__(self, token: Any = None, password: str = "p") -> None:
        self.asked: list[Any] = []
        self._token = token
        self._password = password

    async def credentials(self, host):
        self.asked.append(f"credentials for {host}")
        return Credentials("u", self._password)

    async def token(self, request):
        self.asked.append(request)
        if isinstance(self._token, Exception):
            raise self._token
        return SessionToken(self._token) if self._token else None


async def pull(fake: FakeRegistry, session: Any) -> None:
    fake.add("app", "1", make_image([tar_of({"a": b"b"})]))
    name = reference.parse(f"{fake.host}/app:1")
    async with RegistryClient() as client:
        await client.manifest(name, login_at(name, session))
        await client.manifest(name, login_at(name, session))


async def test_a_token_of_the_client_is_asked_for_once_and_no_password():
    session = Session("given")
    async with FakeRegistry(tokens=Tokens("u", "p", valid={"given"})) as fake:
        await pull(fake, session)
        (request,) = session.asked
        assert (request.host, list(request.scopes)) == (fake.host, ["repository:app:pull"])
        assert request.realm.endswith("/token")
        assert not any(path.startswith("/token") for _, path, _ in fake.requests)


@pytest.mark.parametrize("token", [None, Unavailable("no way there")])
async def test_else_its_password_gets_one(token):
    session = Session(token)
    async with FakeRegistry(tokens=Tokens("u", "p")) as fake:
        await pull(fake, session)
        assert session.asked[1:] == [f"credentials for {fake.host}"]


async def test_a_password_that_is_wrong():
    async with FakeRegistry(tokens=Tokens("u", "p")) as fake:
        with pytest.raises(HuskError):
            await pull(fake, Session(password="wrong"))


def test_docker_hub_has_a_name_of_its_own():
    session: Any = Session()
    login = login_at(reference.parse("busybox"), session)
    assert login is not None and login.server_address == "registry-1.docker.io"
    assert login == login_at(reference.parse("alpine"), session)
    assert login_at(reference.parse("busybox"), None) is None
