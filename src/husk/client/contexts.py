"""Contexts of docker's client: names for engines, in files that both of us read and write.

Each is a directory below `contexts/meta` of docker's settings, named by the digest of its name, and one below
`contexts/tls` where it has certificates. Which is current stands in `config.json`.
"""

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from husk.client.address import config_directory, normal, read_json, resolve
from husk.errors import Conflict, InvalidParameter, NotFound

ENVIRONMENT = "default"
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.+-]+")
_FILES = {"ca": "ca.pem", "cert": "cert.pem", "key": "key.pem"}
_LARGEST = 10 << 20


class StoredContext(NamedTuple):
    """A name for an engine."""

    name: str
    description: str = ""
    host: str = ""
    skip_verify: bool = False
    certificates: Path | None = None

    def document(self) -> dict[str, Any]:
        """Describe it as docker keeps it."""
        return {
            "Name": self.name,
            "Metadata": {"Description": self.description} if self.description else {},
            "Endpoints": {"docker": {"Host": self.host, "SkipTLSVerify": self.skip_verify}},
        }


class Contexts:
    """All contexts of a directory of docker's settings."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or config_directory()

    @property
    def current(self) -> str:
        """The name of the one that is used where nothing else is said."""
        if os.environ.get("HUSK_HOST") or os.environ.get("DOCKER_HOST"):
            return ENVIRONMENT
        said = os.environ.get("DOCKER_CONTEXT") or self._settings().get("currentContext")
        return str(said or ENVIRONMENT)

    def list(self) -> list[StoredContext]:
        """All of them; that of the environment is the first."""
        found = [self._read(file) for file in (self._directory / "contexts/meta").glob("*/meta.json")]
        return [self._of_environment(), *sorted((each for each in found if each.name), key=lambda each: each.name)]

    def get(self, name: str) -> StoredContext:
        """Find one; NotFound where there is none."""
        if name == ENVIRONMENT:
            return self._of_environment()
        file = self._meta(name) / "meta.json"
        if not file.exists():
            known = ", ".join(each.name for each in self.list())
            raise NotFound(f'context "{name}" does not exist: there are {known}')
        return self._read(file)

    def create(self, name: str, description: str, endpoint: Mapping[str, str], origin: str = "") -> None:
        """Make one, of an endpoint's `host`, `ca`, `cert`, `key` and `skip-tls-verify`, or of another context."""
        _check(name)
        if self._meta(name).exists():
            raise Conflict(f'context "{name}" already exists')
        base = self.get(origin) if origin else StoredContext(name)
        found = self._changed(base, endpoint)._replace(name=name, description=description or base.description)
        files = _certificates_of(endpoint, base.certificates)
        self._write(found)
        self._keep_certificates(name, files)

    def update(self, name: str, description: str | None, endpoint: Mapping[str, str]) -> None:
        """Change one; what is not given stays."""
        _check(name)
        found = self._changed(self.get(name), endpoint)
        files = _certificates_of(endpoint, None)
        self._write(found if description is None else found._replace(description=description))
        self._keep_certificates(name, files)

    def remove(self, name: str, force: bool = False) -> None:
        """Forget one; the current one only by force."""
        if name == ENVIRONMENT:
            raise InvalidParameter('context "default" cannot be removed: it is what the environment says')
        self.get(name)
        if name == str(self._settings().get("currentContext") or ""):
            if not force:
                raise Conflict(f'context "{name}" is in use, set -f flag to force remove')
            self.use(ENVIRONMENT)
        for place in (self._meta(name), self._tls(name)):
            shutil.rmtree(place, ignore_errors=True)

    def use(self, name: str) -> None:
        """Make one the current."""
        self.get(name)
        settings = {key: value for key, value in self._settings().items() if key != "currentContext"}
        if name != ENVIRONMENT:
            settings["currentContext"] = name
        self._directory.mkdir(0o700, parents=True, exist_ok=True)
        _replace(self._directory / "config.json", json.dumps(settings, indent="\t").encode(), 0o600)

    def export(self, name: str) -> bytes:
        """Pack one into an archive, with its certificates and keys."""
        found = self.get(name)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            _add(archive, "meta.json", json.dumps(found.document()).encode())
            for file in _FILES.values() if found.certificates else ():
                path = (found.certificates or Path()) / file
                if path.exists():
                    _add(archive, f"tls/docker/{file}", path.read_bytes())
        return packed.getvalue()

    def import_archive(self, name: str, data: bytes) -> None:
        """Make one of what `export` has packed."""
        _check(name)
        if self._meta(name).exists():
            raise Conflict(f'context "{name}" already exists')
        files = dict(_unpacked(data))
        try:
            found = _context(json.loads(files["meta.json"]))
        except (KeyError, ValueError, AttributeError, RecursionError):
            raise InvalidParameter("this is no archive of a context: it has no meta.json that is JSON") from None
        self._write(found._replace(name=name))
        given = {file: files.get(f"tls/docker/{file}") for file in _FILES.values()}
        self._keep_certificates(name, {file: content for file, content in given.items() if content})

    def _of_environment(self) -> StoredContext:
        return StoredContext(
            ENVIRONMENT, "What HUSK_HOST, DOCKER_HOST or the usual sockets say", resolve("", ENVIRONMENT).url
        )

    def _read(self, file: Path) -> StoredContext:
        found = _context(read_json(file))
        certificates = self._certificates(found.name)
        return found._replace(certificates=certificates if certificates.is_dir() else None)

    def _changed(self, base: StoredContext, endpoint: Mapping[str, str]) -> StoredContext:
        if unknown := endpoint.keys() - {"host", "skip-tls-verify", *_FILES}:
            raise InvalidParameter(
                f"unrecognized config key: {sorted(unknown)[0]}: expected host, ca, cert, key or skip-tls-verify"
            )
        skip = endpoint.get("skip-tls-verify")
        return base._replace(
            host=normal(endpoint["host"], "ca" in endpoint) if "host" in endpoint else base.host,
            skip_verify=base.skip_verify if skip is None else skip.lower() in ("1", "t", "true"),
        )

    def _keep_certificates(self, name: str, files: Mapping[str, bytes]) -> None:
        for file, content in files.items():
            self._certificates(name).mkdir(0o700, parents=True, exist_ok=True)
            _replace(self._certificates(name) / file, content, 0o600)

    def _write(self, context: StoredContext) -> None:
        place = self._meta(context.name)
        place.mkdir(0o755, parents=True, exist_ok=True)
        _replace(place / "meta.json", json.dumps(context.document()).encode(), 0o644)

    def _settings(self) -> dict[str, Any]:
        return read_json(self._directory / "config.json")

    def _meta(self, name: str) -> Path:
        return self._directory / "contexts/meta" / _digest(name)

    def _tls(self, name: str) -> Path:
        return self._directory / "contexts/tls" / _digest(name)

    def _certificates(self, name: str) -> Path:
        return self._tls(name) / "docker"


def _certificates_of(endpoint: Mapping[str, str], others: Path | None) -> dict[str, bytes]:
    """Read the certificates and keys that an endpoint names, beside those of another context, by the names of their
    files; InvalidParameter for one that cannot be read."""
    given = {file: Path(endpoint[key]) for key, file in _FILES.items() if key in endpoint}
    if others is not None:
        given = {**{file: others / file for file in _FILES.values() if (others / file).exists()}, **given}
    found = {}
    for file, path in given.items():
        try:
            found[file] = path.read_bytes()
        except OSError as error:
            raise InvalidParameter(f"cannot read {path}: {error.strerror}") from None
    return found


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _check(name: str) -> None:
    if name == ENVIRONMENT:
        raise InvalidParameter('"default" is a reserved context name')
    if not _NAME.fullmatch(name):
        raise InvalidParameter(
            f'context name "{name}" is invalid, names are validated against regexp "^[a-zA-Z0-9][a-zA-Z0-9_.+-]+$"'
        )


def _context(found: Mapping[str, Any]) -> StoredContext:
    endpoint = (found.get("Endpoints") or {}).get("docker") or {}
    return StoredContext(
        str(found.get("Name") or ""),
        str((found.get("Metadata") or {}).get("Description") or ""),
        str(endpoint.get("Host") or ""),
        bool(endpoint.get("SkipTLSVerify")),
    )


def _unpacked(data: bytes) -> Iterator[tuple[str, bytes]]:
    if len(data) > _LARGEST:
        raise InvalidParameter(f"an archive of a context has at most {_LARGEST} bytes")
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for entry in archive:
                # An entry with holes may say any size.
                if entry.size > _LARGEST:
                    raise InvalidParameter(f"an archive of a context has at most {_LARGEST} bytes")
                if entry.isfile() and (content := archive.extractfile(entry)) is not None:
                    yield entry.name, content.read()
    except tarfile.TarError:
        raise InvalidParameter("this is no archive of a context") from None


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    archive.addfile(entry, io.BytesIO(content))


def _replace(file: Path, content: bytes, mode: int) -> None:
    """Write a file whole or not at all, readable by those alone who may. A link stays, and leads to it."""
    file = file.resolve()
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with open(descriptor, "wb") as opened:
        opened.write(content)
    os.replace(beside, file)
