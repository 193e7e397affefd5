from pathlib import Path

import pytest

from husk.errors import InvalidParameter
from husk.library.embedded import Engine, EngineConfig


def test_each_data_root_has_an_exec_root_of_its_own():
    one, other = (EngineConfig(data_root=f"/var/lib/{name}").settings() for name in ("a", "b"))
    assert one.exec_root != other.exec_root
    assert one.exec_root.parent == Path("/run")
    assert EngineConfig().settings().exec_root == Path("/run/husk")
    assert EngineConfig(data_root="/a", exec_root="/b").settings().exec_root == Path("/b")


def test_settings_in_the_words_of_the_engine():
    config = EngineConfig(address_pools=(("10.0.0.0/8", 24),), runtimes={"x": "/bin/x"}, bridge="none").settings()
    assert (config.default_address_pools[0].size, config.runtimes["x"].path) == (24, "/bin/x")
    assert config.without_bridge
    assert config.hosts == ()


async def test_an_unknown_setting():
    with pytest.raises(InvalidParameter, match="datta_root"):
        async with Engine.open(datta_root="/x"):  # type: ignore[call-arg]
            pass


async def test_a_path_in_place_of_a_configuration():
    with pytest.raises(InvalidParameter, match="data_root='/x'"):
        async with Engine.open("/x"):  # type: ignore[arg-type]
            pass
