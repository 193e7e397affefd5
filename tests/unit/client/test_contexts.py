"""Contexts as docker keeps them: files that both read."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from husk.client.address import resolve
from husk.client.contexts import Contexts
from husk.errors import Conflict, InvalidParameter, NotFound


@pytest.fixture
def contexts(tmp_path: Path, monkeypatch) -> Contexts:
    for variable in ("HUSK_HOST", "DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(variable, raising=False)
    return Contexts(tmp_path / "docker")


def certificates(place: Path) -> dict[str, str]:
    for name in ("ca", "cert", "key"):
        (place / f"{name}.pem").write_text(name)
    return {name: str(place / f"{name}.pem") for name in ("ca", "cert", "key")}


def test_what_is_made_is_what_addresses_are_read_from(contexts, tmp_path):
    contexts.create("box", "", {"host": "tcp://box:2376", **certificates(tmp_path)})
    contexts.use("box")
    address = resolve(environment={"DOCKER_CONFIG": str(tmp_path / "docker")})
    assert address.url == "tcp://box:2376" and address.certificates is not None
    assert (address.certificates / "key.pem").read_text() == "key"
    assert (address.certificates / "key.pem").stat().st_mode & 0o777 == 0o600


def test_settings_beside_the_current_context_stay(contexts, tmp_path):
    contexts.create("box", "", {"host": "tcp://box:1"})
    settings = tmp_path / "docker/config.json"
    settings.write_text('{"auths": {"r": {}}}')
    contexts.use("box")
    assert json.loads(settings.read_text()) == {"auths": {"r": {}}, "currentContext": "box"}
    contexts.remove("box", force=True)
    assert json.loads(settings.read_text()) == {"auths": {"r": {}}}


def test_an_archive_has_all_of_it(contexts, tmp_path):
    contexts.create("box", "why", {"host": "tcp://box:2376", "skip-tls-verify": "true", **certificates(tmp_path)})
    contexts.import_archive("copy", contexts.export("box"))
    copy = contexts.get("copy")
    assert (copy.description, copy.host, copy.skip_verify) == ("why", "tcp://box:2376", True)
    assert copy.certificates is not None and (copy.certificates / "ca.pem").read_text() == "ca"
    contexts.create("third", "", {}, origin="copy")
    assert contexts.get("third").certificates is not None


# Texts for the place of a context, and sizes that its entry says.
HOSTILE = ((b"[]", 0), (b'{"Endpoints": [1]}', 0), (b'{"Metadata": "x"}', 0), (b"{}", 1 << 50))


def archived(given: tuple[bytes, int]) -> bytes:
    """Pack a context; with a size, an entry that has a hole of it."""
    text, size = given
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("meta.json")
        entry.size = len(text)
        if size:
            sparse = {"major": "0", "minor": "1", "map": f"0,{len(text)}", "size": str(size)}
            entry.pax_headers = {f"GNU.sparse.{name}": value for name, value in sparse.items()}
        archive.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


def test_what_makes_no_sense_is_refused(contexts):
    contexts.create("box", "", {"host": "tcp://box:1"})
    for name in ("default", "a", "../x", "a/b", ""):
        with pytest.raises(InvalidParameter):
            contexts.create(name, "", {"host": "tcp://x:1"})
    with pytest.raises(Conflict):
        contexts.create("box", "", {"host": "tcp://x:1"})
    with pytest.raises(InvalidParameter, match="cannot read"):
        contexts.update("box", None, {"ca": "/nowhere"})
    with pytest.raises(InvalidParameter, match="cannot read"):
        contexts.create("new", "", {"host": "tcp://x:1", "key": "/nowhere"})
    with pytest.raises(InvalidParameter, match="cannot read"):
        contexts.update("box", "other", {"ca": "/nowhere"})
    assert [(each.name, each.description) for each in contexts.list()[1:]] == [("box", "")], "nothing was changed"
    with pytest.raises(NotFound):
        contexts.get("none")
    with pytest.raises(InvalidParameter, match="cannot be removed"):
        contexts.remove("default")
    for archive in (b"", b"x" * 1024, b"\0" * 10240, *map(archived, HOSTILE)):
        with pytest.raises(InvalidParameter):
            contexts.import_archive("new", archive)
