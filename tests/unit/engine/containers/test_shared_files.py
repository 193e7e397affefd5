"""Owners of the files of networks that a container has."""

from pathlib import Path

import pytest

from husk.config import Config
from husk.engine.containers.shared_files import files_of
from husk.engine.model.container import Container
from husk.engine.model.container_config import HostConfig
from husk.errors import NotFound
from husk.runtime.assembly.paths import Paths
from tests.unit.engine.records import container

PATHS = Paths(Config(data_root=Path("/data"), exec_root=Path("/run")))


def on(name: str, mode: str) -> Container:
    return container(name, host_config=HostConfig(network_mode=mode))


@pytest.mark.parametrize(
    ("mode", "whose"),
    [
        ("bridge", "mine"),
        ("container:holder", "holder"),
        ("container:guest", "holder"),
        ("container:gone", "mine"),
        ("container:orphan", "mine"),
        ("container:loop", "loop"),
    ],
)
def test_a_guest_has_the_files_of_who_has_the_network(mode: str, whose: str) -> None:
    others = {
        name: on(name, its)
        for name, its in (
            ("holder", "none"), ("guest", "container:holder"), ("orphan", "container:gone"), ("loop", "container:loop")
        )
    }  # fmt: skip

    def find(reference: str) -> Container:
        if reference not in others:
            raise NotFound(f"No such container: {reference}")
        return others[reference]

    record = on("mine", mode)
    owner = others.get(whose, record)
    found = files_of(record, PATHS, find)
    expected = PATHS.of(owner.id)
    assert (found.hosts, found.hostname, found.resolv_conf) == (expected.hosts, expected.hostname, expected.resolv_conf)
    assert found.upper == PATHS.of(record.id).upper
