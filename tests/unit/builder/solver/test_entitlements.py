import pytest

from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Exec, ExecMount, Operation, ProcessSpec
from husk.builder.solver import entitlements
from husk.errors import Forbidden

PLAIN = Exec(process=ProcessSpec(args=["x"]), mounts=[ExecMount(target="/")])
INSECURE = Exec(process=ProcessSpec(args=["x"]), mounts=[ExecMount(target="/")], insecure=True)
ON_THE_HOST = Exec(process=ProcessSpec(args=["x"]), mounts=[ExecMount(target="/")], network="host")


@pytest.mark.parametrize(("body", "name"), [(INSECURE, "security.insecure"), (ON_THE_HOST, "network.host")])
def test_what_a_step_must_be_entitled_to(body, name):
    graph = Graph()
    graph.add(Operation(PLAIN))
    graph.add(Operation(body))
    for names in ([], ["another"]):
        with pytest.raises(Forbidden, match=f"granting entitlement {name} is not allowed by build daemon"):
            entitlements.check_allowed(body, names)
        with pytest.raises(Forbidden, match=f"^{name} is not allowed$"):
            entitlements.check_granted(body, names)
        with pytest.raises(Forbidden, match=f"^{name} is not allowed$"):
            entitlements.check_graph(graph, names)
    entitlements.check_allowed(body, [name])
    entitlements.check_granted(body, [name])
    entitlements.check_graph(graph, [name])
    entitlements.check_granted(PLAIN, [])
