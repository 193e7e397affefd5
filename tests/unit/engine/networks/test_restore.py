"""Networks on the host that a daemon keeps when it starts, and those that it opens."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from husk.config import Config
from husk.engine.model.container import Endpoint
from husk.engine.model.network import Network
from husk.engine.networks import restore
from husk.network import host, sandbox
from husk.network.settings import BridgeSettings, TunnelSettings
from husk.network.wireguard import tunnel as wireguard
from tests.support.but import but
from tests.unit.engine.records import container

TUNNEL = TunnelSettings("wg", "husk bridge of husk", "husk-wg", 51820)


def network(name: str, driver: str = "bridge", **options: str) -> Network:
    return Network(id=name * 8, name=name, driver=driver, created="", subnet="10.1.0.0/24", options=options)


def settings(tmp_path: Path) -> BridgeSettings:
    return BridgeSettings("husk0", "husk bridge of husk", tmp_path / "netns", pool6="fd11:22::/48")


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    monkeypatch.setattr(sandbox, "sweep", lambda _, keep: found.update(sandboxes=list(keep)))

    def sweep(owner: str, keep: set[str]) -> list[str]:
        found["interfaces"] = set(keep)
        return [name for name in found.get("there", ()) if name not in keep]

    monkeypatch.setattr(host, "sweep", sweep)
    monkeypatch.setattr(host, "has_left", lambda *device: found.get("parts") == device)
    monkeypatch.setattr(wireguard, "remove_left", lambda left: found.update(left=left))
    return found


def test_what_belongs_to_nobody_goes(tmp_path: Path, swept: dict[str, Any]) -> None:
    running = container(status="running")
    running = but(running, sandbox_path="/netns/1")
    networks = [network("home"), network("lan", driver="macvlan", parent="eth7"), network("far", driver="overlay")]
    restore.sweep(settings(tmp_path), TUNNEL, networks, [running, container()], frozenset(), frozenset({"f" * 64}))
    assert swept["sandboxes"] == ["/netns/1"]
    far = {"br-farfarfarfar", "vx-farfarfarfar"}
    assert swept["interfaces"] == {"br-homehomehome", "eth7", "br-ffffffffffff", "vx-ffffffffffff", "wg"} | far


def test_no_sandbox_goes_while_a_container_cannot_be_read(tmp_path: Path, swept: dict[str, Any]) -> None:
    restore.sweep(settings(tmp_path), TUNNEL, [], [], frozenset({"c" * 64}), frozenset())
    assert "sandboxes" not in swept and swept["interfaces"] == set()


@pytest.mark.parametrize(("options", "kept"), [({"encrypted": ""}, True), ({}, False)])
def test_the_tunnel_stays_while_there_is_an_encrypted_network(
    tmp_path: Path, swept: dict[str, Any], options: dict[str, str], kept: bool
) -> None:
    networks = [but(network("far", driver="overlay", **options), vni=4097)]
    restore.sweep(settings(tmp_path), TUNNEL, networks, [], frozenset(), frozenset())
    assert ("wg" in swept["interfaces"]) is kept and "left" not in swept
    swept["there"] = ["wg"]
    restore.sweep(settings(tmp_path), TUNNEL, networks, [], frozenset(), frozenset())
    assert swept.get("left") == (None if kept else TUNNEL), "with its rules and its socket"


@pytest.mark.parametrize(("options", "kept"), [({"encrypted": ""}, True), ({}, False)])
def test_parts_of_a_tunnel_go_without_its_interface(
    tmp_path: Path, swept: dict[str, Any], options: dict[str, str], kept: bool
) -> None:
    networks = [but(network("far", driver="overlay", **options), vni=4097)]
    swept["parts"] = ("wg", "husk-wg", Path("/var/run/wireguard/wg.sock"))
    restore.sweep(settings(tmp_path), TUNNEL, networks, [], frozenset(), frozenset())
    assert swept.get("left") == (None if kept else TUNNEL)


def test_each_daemon_of_a_machine_has_a_tunnel_of_its_own() -> None:
    one, two = (restore.tunnel(Config(data_root=Path(root))) for root in ("/one", "/two"))
    assert one.interface != two.interface and len(one.interface) <= 15 and one.port == 51820


@pytest.mark.parametrize("spare", [True, False])
def test_networks_are_opened_with_the_leases_of_running_containers(tmp_path: Path, spare: bool) -> None:
    running = container(status="running")
    running = but(running, sandbox_path="/netns/1")
    endpoint = Endpoint(
        network_name="home", network_id="", ip_address="10.1.0.2", prefix_len=24, host_interface="veth1"
    )
    running = but(running, endpoints={"home": endpoint})
    networks = [network("home"), network("host", driver="host"), network("bridge")]
    opened = restore.openings(networks, [running], Config(), settings(tmp_path), spare)
    assert list(opened) == ["home", "bridge"]
    assert [lease.ip_address for lease in opened["home"].leases] == ["10.1.0.2"]
    assert {one.spare for one in opened.values()} == {spare}
    # The default network is used all the time: its sandboxes are kept ready for good.
    assert (opened["bridge"].settings.warm_for, opened["bridge"].subnet) == (0.0, "10.1.0.0/24")


@pytest.mark.parametrize(("free", "name"), [(True, "docker0"), (False, "husk0")])
def test_the_default_bridge_has_the_usual_name_where_it_can(
    free: bool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def claim(name: str, owner: str) -> AbstractContextManager[bool]:
        asked.append((name, owner))
        return nullcontext(free)

    monkeypatch.setattr(host, "free_name", claim)
    with restore.named(Config(usual_bridge="docker0")) as settled:
        assert settled.bridge_name == name
    assert asked == [("docker0", "husk bridge of husk")]


@pytest.mark.parametrize("settings", [{}, {"usual_bridge": "docker0", "bridge": "br9"}])
def test_who_names_the_bridge_or_none_asks_nobody(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "free_name", None)
    with restore.named(Config(**settings)) as settled:  # type: ignore[arg-type]
        assert settled.bridge_name == (settings.get("bridge") or "husk0")
