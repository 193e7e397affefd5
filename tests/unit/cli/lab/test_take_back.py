"""Nothing is left of a lab."""

import pytest

from husk.cli.lab.layout import Lab
from husk.cli.lab.take_back import LabRemains, take_back
from husk.config import Config
from husk.errors import SystemFault


class NotedRemains(LabRemains):
    """Nothing is killed or removed, but noted."""

    def __init__(self) -> None:
        self.killed: list[str] = []
        self.cgroups: set[str] = set()
        self.tunnels: set[str] = set()
        self.interface = False

    def kill(self, mark: str) -> None:
        self.killed.append(mark)

    def has_interface(self, name: str) -> bool:
        return self.interface

    def remove_cgroup(self, parent: str) -> None:
        self.cgroups.add(parent)

    def remove_tunnel(self, name: str) -> None:
        self.tunnels.add(name)


@pytest.fixture
def remains() -> NotedRemains:
    return NotedRemains()


def test_what_is_left_of_a_lab_is_removed(lab: Lab, remains: NotedRemains) -> None:
    lab.run.mkdir(parents=True)
    (lab.data / "host1/some").mkdir(parents=True)
    take_back(lab, remains)
    take_back(lab, remains)
    assert not lab.run.parent.exists() and not lab.data.parent.exists() and remains.killed == [lab.mark] * 2
    remains.interface = True
    with pytest.raises(SystemFault, match="does not go away"):
        take_back(lab, remains, patience=0.05)


def test_whatever_a_larger_one_left_goes_too(lab: Lab, remains: NotedRemains) -> None:
    take_back(lab, remains)
    for number in (1, 50):
        config = Config(data_root=lab.data / f"host{number}")
        assert config.cgroup_parent in remains.cgroups and config.tunnel_name in remains.tunnels


def test_labs_beside_it_stay(lab: Lab, remains: NotedRemains) -> None:
    (lab.data.parent / "other").mkdir(parents=True)
    lab.data.mkdir()
    take_back(lab, remains)
    assert list(lab.data.parent.iterdir()) == [lab.data.parent / "other"]


def test_what_is_not_there_is_nothing_to_take_back(lab: Lab) -> None:
    remains = LabRemains()
    remains.kill(lab.mark)
    assert not remains.has_interface("no-such-lab")
