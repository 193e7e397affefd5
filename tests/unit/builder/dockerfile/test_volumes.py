"""Places for volumes, in a graph."""

from typing import Any

from husk.builder.graph.operations import Exec, Files
from husk.builder.store.file_actions import NONE
from tests.unit.builder.dockerfile.building import build


def test_a_command_writes_into_volumes_in_vain():
    made = build("FROM busybox\nVOLUME /b a/../c / \nRUN make\n", classic=True)
    (run,) = [vertex.operation for vertex in made.graph if isinstance(vertex.operation.body, Exec)]
    mounts = run.body.mounts
    assert [(mount.target, mount.selector, mount.output) for mount in mounts] == [
        ("/", "", 0),
        ("/b", "/b", NONE),
        ("/c", "/c", NONE),
    ]
    (places,) = [vertex.operation.body for vertex in made.graph if isinstance(vertex.operation.body, Files)]
    actions: list[Any] = places.actions
    assert [(one.action.path, one.input, one.output) for one in actions] == [("/b", 0, NONE), ("/c", 1, 0)]


def test_what_is_mounted_there_by_the_command_itself_comes_first():
    made = build("FROM busybox\nVOLUME /b\nRUN --mount=type=tmpfs,target=/b make\n", classic=True)
    (run,) = [vertex.operation for vertex in made.graph if isinstance(vertex.operation.body, Exec)]
    assert [mount.target for mount in run.body.mounts] == ["/", "/b"]


def test_by_buildkits_rules_volumes_are_for_containers_alone():
    made = build("FROM busybox\nVOLUME /b\nRUN make\n")
    (run,) = [vertex.operation for vertex in made.graph if isinstance(vertex.operation.body, Exec)]
    assert [mount.target for mount in run.body.mounts] == ["/"]


def test_volumes_of_an_empty_image():
    made = build("FROM scratch\nVOLUME /b /a/c\nCMD x\n", classic=True)
    (places,) = [vertex.operation.body for vertex in made.graph]
    assert [(one.action.path, one.input) for one in places.actions] == [("/a/c", NONE), ("/b", 0)]
    assert made.root is None
