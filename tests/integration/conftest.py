"""Other engines, for tests beside them; such tests are skipped where they are not installed."""

from collections.abc import Iterator

import pytest

from tests.support.dockerd import Dockerd


@pytest.fixture
def dockerd() -> Iterator[Dockerd]:
    if reason := Dockerd.missing():
        pytest.skip(reason)
    with Dockerd() as dockerd:
        yield dockerd
