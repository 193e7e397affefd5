"""Fixtures for all tests: daemons, images and registries in one word. Tests that need root are skipped without it."""

import os
import random
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.daemon import Daemon
from tests.support.order import arranged

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("husk", deadline=None)
settings.load_profile("husk")

# What every random moment of a run comes from; set it to have the same ones again.
SEED = "HUSK_TEST_SEED"


def pytest_configure() -> None:
    # Workers inherit it.
    os.environ.setdefault(SEED, str(random.randrange(10**6)))
    # Who was started in the background ignores it, and so would all that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    return f"random moments: {SEED}={os.environ[SEED]} repeats them"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    names = {path: os.path.relpath(path, root) for path in dict.fromkeys(item.path for item in items)}
    places = {name: place for place, name in enumerate(arranged(names.values()))}
    items.sort(key=lambda item: places[names[item.path]])


@pytest.fixture(scope="module")
def module_daemon(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    """One daemon for all tests of a module: starting one costs more than most tests."""
    _require_root()
    with Daemon() as daemon:
        yield daemon


@pytest.fixture
def daemon(module_daemon: Daemon, request: pytest.FixtureRequest) -> Iterator[Daemon]:
    """The module's daemon, without containers before and after each test."""
    request.node.stash[_DAEMON] = module_daemon
    yield module_daemon
    if module_daemon.process is None:
        module_daemon.start()
    module_daemon.remove_containers()
    module_daemon.check_no_litter()
    module_daemon.check_no_stalls()


@pytest.fixture
def fresh_daemon(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    """A daemon for one test: to crash it, restart it, or look at its first start."""
    _require_root()
    with Daemon() as daemon:
        request.node.stash[_DAEMON] = daemon
        yield daemon


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """The source of a test's random moments: the seed of the run and the test's name give the same ones again."""
    return random.Random(f"{os.environ[SEED]} {request.node.nodeid}")


@pytest.fixture
def image() -> str:
    """The image every daemon has from its first start, made from the host's busybox."""
    return "busybox:latest"


_DAEMON = pytest.StashKey[Daemon]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the daemon logged, and which seed there was, below a failure."""
    report = yield
    if report.failed and "chance" in getattr(item, "fixturenames", ()):
        report.sections.append(("random moments", f"{SEED}={os.environ[SEED]}"))
    daemon = item.stash.get(_DAEMON, None)
    if report.failed and daemon is not None:
        report.sections.append(("daemon log", daemon.log()))
    return report


def _require_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it runs real containers")
