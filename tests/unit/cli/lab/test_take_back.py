"""Nothing is left of a lab."""

import pytest

from husk.cli.lab import take_back
from husk.config import Config
from husk.errors import SystemFault
from husk.kernel import cgroups
from husk.network.wireguard import program


def test_what_is_left_of_a_lab_is_removed(lab, monkeypatch):
    lab.run.mkdir(parents=True)
    (lab.data / "host1/some").mkdir(parents=True)
    killed: list[str] = []
    monkeypatch.setattr(take_back, "kill_given", lambda marks, patience: killed.extend(marks))
    take_back.take_back(lab)
    take_back.take_back(lab)
    assert not lab.run.parent.exists() and not lab.data.parent.exists() and killed == [lab.mark] * 2
    monkeypatch.setattr(take_back, "_has_interface", lambda name: True)
    monkeypatch.setattr(take_back, "PATIENCE", 0.05)
    with pytest.raises(SystemFault, match="does not go away"):
        take_back.take_back(lab)


def test_whatever_a_larger_one_left_goes_too(lab, monkeypatch, tmp_path):
    removed: list[str] = []
    monkeypatch.setattr(cgroups, "remove", removed.append)
    monkeypatch.setattr(program, "_SOCKETS", tmp_path)
    configs = [Config(data_root=lab.data / f"host{number}") for number in (1, 50)]
    for config in configs:
        program.socket_of(config.tunnel_name).touch()
    take_back.take_back(lab)
    assert {config.cgroup_parent for config in configs} <= set(removed)
    assert not list(tmp_path.glob("*.sock"))


def test_labs_beside_it_stay(lab):
    (lab.data.parent / "other").mkdir(parents=True)
    lab.data.mkdir()
    take_back.take_back(lab)
    assert list(lab.data.parent.iterdir()) == [lab.data.parent / "other"]


def test_its_process_is_known_by_a_mark(lab, monkeypatch):
    monkeypatch.undo()
    assert not take_back.is_up(lab)
