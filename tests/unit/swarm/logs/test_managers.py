from husk.swarm.logs.managers import askable
from husk.swarm.model.node import ManagerStatus, Node, NodeStatus


def node(id: str, manager: bool, state: str = "ready") -> Node:
    status = NodeStatus(state=state)
    told = ManagerStatus(addr=f"{id}:2377") if manager else None
    return Node(id=id, version=1, created_at="", updated_at="", status=status, manager=told)


def test_a_manager_is_asked_itself_and_for_a_worker_all_others_that_live() -> None:
    nodes = {one.id: one for one in (node("a", True), node("b", True), node("c", True, "down"), node("w", False))}
    assert [one.id for one in askable("b", nodes, "a")] == ["b"]
    assert [one.id for one in askable("w", nodes, "a")] == ["b"]
    assert [one.id for one in askable("gone", nodes, "b")] == ["a"]
