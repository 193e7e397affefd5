"""The records of a swarm and of this host's place in it."""

from pathlib import Path

from husk.config import ClusterStoreConfig
from husk.swarm.model.swarm import Membership, SwarmRoot, Trust


def root(name: str) -> SwarmRoot:
    return SwarmRoot(certificate=name, key=b"", subject=b"", public_key=b"", key_id=b"")


def test_where_the_records_of_a_swarm_are() -> None:
    assert Membership(node_id="n").cluster_store is None
    assert Membership(node_id="n", store="etcd://a").cluster_store == ClusterStoreConfig("etcd://a", None)
    found = Membership(node_id="n", store="etcd://a", store_files=["/ca", "/cert", "/key"]).cluster_store
    assert found == ClusterStoreConfig("etcd://a", (Path("/ca"), Path("/cert"), Path("/key")))


def test_while_a_root_is_replaced_the_next_one_signs_and_both_are_believed() -> None:
    assert (Trust(root=root("a")).signing.certificate, Trust(root=root("a")).roots) == ("a", "a")
    both = Trust(root=root("a"), next=root("b"))
    assert (both.signing.certificate, both.roots) == ("b", "ab")
