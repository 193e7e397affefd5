"""The `husk` command in this process, with an engine that answers as the test says."""

import io
from collections.abc import Callable
from typing import NamedTuple

import pytest

from husk.cli.commands import husk
from husk.cli.kit.entry import enter
from husk.client import blocking
from tests.support.fake_engine import FakeEngine


class Typed(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path) -> FakeEngine:
    fake = FakeEngine()
    # The engine lives in the command's event loop.
    monkeypatch.setattr(blocking, "dialer", lambda address, timeout=None: None)
    monkeypatch.setattr("husk.client.dial.dialer_to", lambda address: fake.dial)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return fake


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Typed]:
    """Type a line, with what is `given` on stdin: the exit code, and what was written."""

    def run(*words: str, given: str = "") -> Typed:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        try:
            code = enter(husk, "husk", list(words))
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        return Typed(code, *capfd.readouterr())

    return run
