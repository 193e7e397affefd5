"""`docker info`, `docker version` and events: what is counted, what is hidden, and what older clients expect."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from husk.api.types.system import SystemInfo
from husk.api.versioning import CURRENT, Version
from husk.api.views import system as views
from husk.config import AddressPool, Config, Proxies
from husk.engine.model.container import Container, State
from husk.engine.model.events import Event
from husk.engine.system import Component
from husk.swarm.model.node import Node, manager_at
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.model.swarm import Swarm
from tests.unit.api.fake_engine import container
from tests.unit.api.fake_system import FakeSystem

SWARM = Swarm(
    id="s", version=1, created_at="", updated_at="", spec=SwarmSpec(),
    worker_token="worker-token", manager_token="manager-token",
)  # fmt: skip


def cluster(*, locked: bool = False, away: str = "") -> Any:
    own = Node(id="n", version=1, created_at="", updated_at="", manager=manager_at("2001:db8::1"))
    worker = Node(id="w", version=1, created_at="", updated_at="")
    return SimpleNamespace(
        active=not away, locked=locked, pending=bool(away), away=away, record=SWARM, node_id="n",
        advertise_address="2001:db8::1", nodes=[own, worker],
    )  # fmt: skip


def info(config: Config | None = None, containers: list[Container] | None = None, **more: Any) -> SystemInfo:
    config = config or Config(data_root=Path("/var/lib/test"))
    return views.info_document(FakeSystem().info(), config, containers or [], 3, 1, 2, **more)


def test_containers_are_counted_by_what_they_do() -> None:
    states = ("running", "restarting", "paused", "exited", "created", "dead")
    shown = info(containers=[container(name, state=State(status=name)) for name in states])  # type: ignore[arg-type]
    counts = shown.containers, shown.containers_running, shown.containers_paused, shown.containers_stopped
    assert counts == (6, 2, 1, 3)


def test_limits_follow_the_controllers_of_the_host() -> None:
    facts = msgspec.structs.replace(FakeSystem().info(), controllers=frozenset({"memory"}), cgroup_version="1")
    shown = views.info_document(facts, Config(), [], 0, 0, 0)
    assert (shown.memory_limit, shown.cpu_shares, shown.pids_limit, shown.oom_kill_disable) == (
        True,
        False,
        False,
        True,
    )
    assert not info().oom_kill_disable


@pytest.mark.parametrize(
    ("proxy", "shown"),
    [
        ("http://proxy:3128", "http://proxy:3128"),
        ("http://me:secret@proxy:3128", "http://xxxxx:xxxxx@proxy:3128"),
        ("http://me:sec@ret@proxy", "http://xxxxx:xxxxx@proxy"),
        ("me:secret@proxy", "xxxxx:xxxxx@proxy"),
    ],
)
def test_the_password_of_a_proxy_is_not_told(proxy: str, shown: str) -> None:
    config = Config(proxies=Proxies(http_proxy=proxy))
    found = info(config)
    assert found.http_proxy == shown and "sec" not in found.http_proxy


def test_the_environments_proxy_counts_where_the_settings_name_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://a:b@proxy")
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    assert info().https_proxy == "http://xxxxx:xxxxx@proxy"


def test_insecure_registries_are_hosts_or_networks() -> None:
    config = Config(
        insecure_registries=("10.0.0.0/8", "reg.local:5000"), registry_mirrors=("http://mirror", "http://b/")
    )
    shown = info(config).registry_config
    assert shown.insecure_registry_cidrs == ["127.0.0.0/8", "::1/128", "10.0.0.0/8"]
    assert not shown.index_configs["reg.local:5000"].secure and shown.index_configs["docker.io"].secure
    assert shown.mirrors == shown.index_configs["docker.io"].mirrors == ["http://mirror/", "http://b/"]
    assert info(Config()).registry_config.mirrors is None


def test_older_clients_find_what_they_look_for() -> None:
    old, middle, new = (views.info_for(Version(1, n), info()) for n in (41, 48, 52))
    assert old.kernel_memory is True and middle.kernel_memory is UNSET
    assert middle.bridge_nf_iptables is False and new.bridge_nf_iptables is UNSET
    assert middle.firewall_backend is UNSET and new.firewall_backend is not UNSET
    assert middle.registry_config.allow_nondistributable_artifacts_cidrs is None


def test_a_swarm_is_shown_without_the_way_into_it() -> None:
    assert info().swarm.local_node_state == "inactive"
    shown = info(cluster=cluster(), trouble="taken")
    assert (shown.swarm.local_node_state, shown.swarm.node_id) == ("active", "n")
    assert (shown.swarm.nodes, shown.swarm.managers, shown.swarm.error) == (2, 1, "taken")
    assert shown.swarm.remote_managers == [{"NodeID": "n", "Addr": "[2001:db8::1]:2377"}]
    assert b"worker-token" not in msgspec.json.encode(shown) and b"manager-token" not in msgspec.json.encode(shown)
    assert info(cluster=cluster()).swarm.error == ""
    locked = info(cluster=cluster(locked=True)).swarm
    waiting = info(cluster=cluster(away="nobody answers")).swarm
    assert (waiting.local_node_state, waiting.error, waiting.node_id) == ("pending", "nobody answers", "n")
    assert locked.local_node_state == "locked" and "unlock" in locked.error and locked.node_id == ""


def test_pools_are_shown_where_there_are_any() -> None:
    shown = info(Config(default_address_pools=(AddressPool("10.0.0.0/8", 24),))).default_address_pools
    assert not isinstance(shown, msgspec.UnsetType) and (shown[0].base, shown[0].size) == ("10.0.0.0/8", 24)


def test_versions_of_what_the_daemon_consists_of() -> None:
    shown = views.version_document(FakeSystem().info(), [Component("conmon", "2.1", "abc")], Version(1, 30))
    assert [(one.name, one.version) for one in shown.components] == [("Engine", "1.2.3"), ("conmon", "2.1")]
    assert (shown.api_version, shown.min_api_version) == (str(CURRENT), "1.30")


def test_events_repeat_themselves_for_older_clients() -> None:
    event = Event(
        type="container", action="start", actor_id="c", attributes={"image": "busybox"}, time_ns=1_500_000_000
    )
    old, new = (views.event_message(event, Version(1, n)) for n in (51, 52))
    assert (old.status, old.id, old.from_, old.time) == ("start", "c", "busybox", 1)
    assert (new.status, new.id, new.from_, new.time_nano) == (UNSET, UNSET, UNSET, 1_500_000_000)
    network = msgspec.structs.replace(event, type="network")
    assert views.event_message(network, Version(1, 51)).status is UNSET
