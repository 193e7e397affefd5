"""Checks that hold in every test of this folder: the daemon logs no error, whatever its clients do."""

from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon


@pytest.fixture(autouse=True)
def no_errors_in_the_log(module_daemon: Daemon) -> Iterator[None]:
    before = module_daemon.log_path.stat().st_size
    yield
    with module_daemon.log_path.open(errors="replace") as log:
        log.seek(before)
        wrong = [line for line in log if "level=error" in line or line.lstrip().startswith("Traceback")]
    assert wrong == []
