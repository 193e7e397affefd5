"""Credentials for registries: a program gives them, or a login, or the files and helpers of docker's client.

`~/.docker/config.json` (or that of `DOCKER_CONFIG`) has names and passwords by host (`auths`), and names programs that
keep them instead (`credHelpers` for one host, `credsStore` for all). Such a program is `docker-credential-NAME`: it is
told a host, and answers with a name and a password.
"""

import asyncio
import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from husk.client.names import host_of, registry_of
from husk.errors import InvalidParameter, SystemFault
from husk.text.documents import MalformedDocument, decode

# The API's words: `username` and `password`, or `identitytoken`.
Auth = Mapping[str, str]
REGISTRY_AUTH, REGISTRY_CONFIG = "X-Registry-Auth", "X-Registry-Config"
_NOT_FOUND = "credentials not found"
# The name that helpers give to a password that is a token.
_TOKEN = "<token>"


class _Entry(msgspec.Struct):
    auth: str = ""
    username: str = ""
    password: str = ""
    identitytoken: str = ""
    registrytoken: str = ""


class _File(msgspec.Struct, rename="camel"):
    auths: dict[str, _Entry] = {}
    creds_store: str = ""
    cred_helpers: dict[str, str] = {}


class _Answer(msgspec.Struct, rename="pascal"):
    username: str = ""
    secret: str = ""


class Keychain:
    """Credentials by registry. What `remember` was told comes before what files have."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._remembered: dict[str, Auth] = {}

    def remember(self, registry: str, auth: Auth) -> None:
        self._remembered[host_of(registry)] = dict(auth)

    async def headers_for(self, image: str, auth: Auth | None = None) -> dict[str, str]:
        """The header of a call that goes to the registry of an image; none where nobody knows who we are there."""
        found = auth if auth is not None else await self.of(registry_of(image))
        return {} if found is None else {REGISTRY_AUTH: encoded(found)}

    async def headers_for_build(self, auths: Mapping[str, Auth] | None = None) -> dict[str, str]:
        """The header of a build, which may go to several registries: all that is known."""
        found = auths if auths is not None else await self.all()
        return {REGISTRY_CONFIG: encoded(found)} if found else {}

    async def of(self, registry: str) -> Auth | None:
        host = host_of(registry)
        if host in self._remembered:
            return self._remembered[host]
        file = self._read()
        if helper := _by_host(file.cred_helpers).get(host, file.creds_store):
            return await asked(helper, host)
        entry = _by_host(file.auths).get(host)
        return None if entry is None else _auth(host, entry)

    async def all(self) -> dict[str, Auth]:
        file = self._read()
        hosts = {*_by_host(file.auths), *_by_host(file.cred_helpers), *self._remembered}
        if file.creds_store:
            hosts |= {host_of(each) for each in await _told(file.creds_store, "list", "", dict[str, str]) or {}}
        found = {host: await self.of(host) for host in sorted(hosts)}
        return {host: auth for host, auth in found.items() if auth is not None}

    def _read(self) -> _File:
        path = (self._directory or directory()) / "config.json"
        try:
            return decode(path.read_bytes(), _File)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return _File()
        except MalformedDocument as error:
            raise InvalidParameter(f"{path} cannot be read: {error}") from error


def directory() -> Path:
    """Return the directory of the docker client's settings: `DOCKER_CONFIG`, or `~/.docker`."""
    named = os.environ.get("DOCKER_CONFIG")
    return Path(named) if named else Path("~/.docker").expanduser()


def encoded(document: object) -> str:
    """Credentials as headers carry them."""
    return base64.urlsafe_b64encode(msgspec.json.encode(document)).decode()


async def asked(helper: str, host: str) -> Auth | None:
    """Ask a helper for the credentials of a host; None if it has none, SystemFault if it cannot be asked."""
    answer = await _told(helper, "get", host, _Answer)
    if answer is None:
        return None
    if answer.username == _TOKEN:
        return {"identitytoken": answer.secret, "serveraddress": host}
    return {"username": answer.username, "password": answer.secret, "serveraddress": host}


async def _told(helper: str, verb: str, given: str, kind: type[Any]) -> Any:
    program = f"docker-credential-{helper}"
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(program, verb, stdin=pipe, stdout=pipe, stderr=pipe)
    except OSError as error:
        raise SystemFault(
            f"cannot ask {program} for credentials: {error.strerror}. Docker's config.json names it: install it, or "
            "say who you are with auth="
        ) from error
    try:
        said, complaint = await process.communicate(given.encode())
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        reason = (said + complaint).decode(errors="replace").strip()
        if _NOT_FOUND in reason:
            return None
        raise SystemFault(f"{program} {verb} failed: {reason}")
    try:
        return decode(said, kind)
    except MalformedDocument as error:
        raise SystemFault(f"the answer of {program} cannot be read: {error}") from error


def _by_host(found: Mapping[str, Any]) -> dict[str, Any]:
    return {host_of(address): value for address, value in found.items()}


def _auth(host: str, entry: _Entry) -> Auth | None:
    username, password = entry.username, entry.password
    if entry.auth:
        try:
            username, _, password = base64.b64decode(entry.auth).decode().partition(":")
        except ValueError as error:
            raise InvalidParameter(f"docker's config.json: auth of {host} is not base64 of name:password") from error
    tokens = {"identitytoken": entry.identitytoken, "registrytoken": entry.registrytoken}
    known = {"username": username, "password": password, **tokens}
    found = {name: value.rstrip("\0") for name, value in known.items() if value}
    return {**found, "serveraddress": host} if found else None
