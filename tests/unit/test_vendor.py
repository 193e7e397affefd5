"""`scripts/vendor` brings the files of npm packages, and only those whose digest is the one that is written in it."""

import base64
import hashlib
import importlib.util
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/vendor"


@pytest.fixture
def script() -> ModuleType:
    loader = SourceFileLoader("vendor", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Registry(ThreadingHTTPServer):
    archive = b""
    asked: list[str]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(server.archive)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = Registry(("127.0.0.1", 0), Handler)
    server.asked = []
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "NPM_CONFIG_REGISTRY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/")
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def archive(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"package/lib/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def package(script: ModuleType, content: bytes) -> Any:
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    return script.Package("@some/thing", "1.2.3", integrity, {"lib/wanted": "thing.js"})


def test_the_wanted_files_are_fetched_once(script: ModuleType, registry: Registry, tmp_path: Path) -> None:
    registry.archive = archive(wanted=b"text", other=b"more")
    wanted, target = (package(script, registry.archive),), tmp_path / "static/vendor"
    script.vendor(wanted, target)
    script.vendor(wanted, target)
    assert sorted(path.name for path in target.iterdir()) == [script.STAMP, "thing.js"]
    assert (target / "thing.js").read_bytes() == b"text"
    assert registry.asked == ["/@some/thing/-/thing-1.2.3.tgz"]


def test_a_file_that_is_gone_is_fetched_again(script: ModuleType, registry: Registry, tmp_path: Path) -> None:
    registry.archive = archive(wanted=b"text")
    wanted, target = (package(script, registry.archive),), tmp_path / "vendor"
    script.vendor(wanted, target)
    (target / "thing.js").unlink()
    script.vendor(wanted, target)
    assert (target / "thing.js").read_bytes() == b"text"


def test_another_file_than_the_wanted_is_refused(script: ModuleType, registry: Registry, tmp_path: Path) -> None:
    registry.archive = archive(wanted=b"first")
    target = tmp_path / "vendor"
    script.vendor((package(script, registry.archive),), target)
    newer = package(script, b"what was meant")
    with pytest.raises(script.Failed, match="not the file that is wanted"):
        script.vendor((newer,), target)
    assert (target / "thing.js").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["vendor"]


def test_a_package_without_the_file_is_said(script: ModuleType, registry: Registry, tmp_path: Path) -> None:
    registry.archive = archive(other=b"")
    with pytest.raises(script.Failed, match="no file lib/wanted"):
        script.vendor((package(script, registry.archive),), tmp_path / "vendor")


def test_a_registry_out_of_reach_is_said(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, registry: Registry, tmp_path: Path
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1")
    with pytest.raises(script.Failed, match=r"127\.0\.0\.1:1/@some/thing"):
        script.vendor((package(script, b""),), tmp_path / "vendor")
