"""The engine's address, as a caller gives it, or the environment, or docker's contexts.

The order is docker's: an address that is given, a context that is given, `HUSK_HOST`, `DOCKER_HOST`, `DOCKER_CONTEXT`,
the context that is current in `~/.docker/config.json`, and at last the sockets that daemons have by default.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from husk.errors import InvalidParameter, NotFound
from husk.text.digits import read_number

DEFAULT = "unix:///run/husk.sock"
_DOCKERS = "unix:///var/run/docker.sock"
# The context that means what the environment says.
_ENVIRONMENT = "default"


class Address(NamedTuple):
    """An address, and for TLS the directory with ca.pem, cert.pem and key.pem."""

    url: str
    certificates: Path | None = None
    verify: bool = True


def resolve(
    given: str = "",
    context: str = "",
    environment: Mapping[str, str] = os.environ,
    ours: str = DEFAULT,
    dockers: str = _DOCKERS,
) -> Address:
    """The address of the engine; NotFound for a context that is not there, InvalidParameter for what is no address."""
    if given and context:
        raise InvalidParameter("conflicting options: cannot specify both --host and --context")
    if given:
        return _by_environment(given, environment)
    directory = config_directory(environment)
    if context and context != _ENVIRONMENT:
        return _by_context(context, directory)
    said = environment.get("HUSK_HOST") or environment.get("DOCKER_HOST") or ""
    if not context and not said:
        context = environment.get("DOCKER_CONTEXT") or _current(directory)
        if context and context != _ENVIRONMENT:
            return _by_context(context, directory)
    return _by_environment(said or _default(ours, dockers), environment)


def config_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the docker client's settings, contexts and logins: `DOCKER_CONFIG`, or `~/.docker`."""
    if said := environment.get("DOCKER_CONFIG"):
        return Path(said)
    return Path(environment.get("HOME") or "~").expanduser() / ".docker"


def normal(url: str, tls: bool = False) -> str:
    """An address with its scheme, and for TCP with its port; InvalidParameter where it cannot be one."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        scheme, rest = "tcp", scheme
    if scheme in ("tcp", "http", "https"):
        host, colon, port = rest.rstrip("/").rpartition(":")
        if not colon or "]" in port:
            host, port = rest.rstrip("/"), "2376" if tls else "2375"
        if host and (number := read_number(port, most=0xFFFF)) is not None and "/" not in host:
            return f"tcp://{host}:{number}"
    elif scheme == "unix" and rest.startswith("/"):
        return f"unix://{rest}"
    elif scheme == "ssh" and rest.strip("/") and not rest.startswith("-"):
        return f"ssh://{rest}"
    raise InvalidParameter(f"invalid address {url!r}: expected unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST")


def _by_environment(url: str, environment: Mapping[str, str]) -> Address:
    verify = bool(environment.get("DOCKER_TLS_VERIFY"))
    tls = verify or bool(environment.get("DOCKER_TLS"))
    plain = normal(url, tls)
    if not tls or not plain.startswith("tcp://"):
        return Address(plain)
    return Address(plain, Path(environment.get("DOCKER_CERT_PATH") or config_directory(environment)), verify)


def _default(ours: str, dockers: str) -> str:
    """Ours; docker's where only that is there."""
    there = os.path.exists(ours.removeprefix("unix://"))
    return dockers if not there and os.path.exists(dockers.removeprefix("unix://")) else ours


def _current(directory: Path) -> str:
    return str(read_json(directory / "config.json").get("currentContext") or "")


def _by_context(name: str, directory: Path) -> Address:
    # A door: OpenSSL, which only contexts need.
    import hashlib

    key = hashlib.sha256(name.encode()).hexdigest()
    contexts = directory / "contexts"
    file = contexts / "meta" / key / "meta.json"
    if not file.exists():
        raise NotFound(
            f"context {name!r} does not exist: there is no {file}; `docker context ls` lists those there are"
        )
    endpoint = (read_json(file).get("Endpoints") or {}).get("docker") or {}
    certificates = contexts / "tls" / key / "docker"
    tls = certificates.is_dir()
    url = normal(str(endpoint.get("Host") or DEFAULT), tls)
    if not tls or not url.startswith("tcp://"):
        return Address(url)
    return Address(url, certificates, not endpoint.get("SkipTLSVerify"))


def read_json(file: Path) -> dict[str, Any]:
    """A document of the docker client's; empty where there is none, InvalidParameter where it cannot be read."""
    try:
        found = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except ValueError as error:
        raise InvalidParameter(f"{file} is not JSON: {error}") from None
    return found if isinstance(found, dict) else {}
