"""Operations without a name of their own are called by what they do."""

import pytest

from husk.builder.graph import operations as ours
from husk.builder.graph.llb_names import LONGEST, name_of
from husk.builder.graph.operations import Body, Edge, Operation
from husk.builder.store import file_actions

INPUTS = ["a", "b"]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (ours.Source("docker-image://x"), "docker-image://x"),
        (ours.Exec(process=ours.ProcessSpec(args=["echo", "hi"]), mounts=[]), "echo hi"),
        (ours.Merge(), "merge (a, b)"),
        (ours.Diff(0, 1), "diff a -> b"),
        (ours.Diff(file_actions.NONE, 1), "diff scratch -> b"),
        (ours.NestedBuild(file_actions.NONE), "build"),
        (
            ours.Files(
                [
                    file_actions.FileAction(action=file_actions.Copy(source="/a", destination="/b")),
                    file_actions.FileAction(action=file_actions.MakeFile(path="/f", mode=0o644, data=b"")),
                    file_actions.FileAction(action=file_actions.MakeDirectory(path="/d", mode=0o755)),
                    file_actions.FileAction(action=file_actions.Symlink(target="/t", path="/l")),
                    file_actions.FileAction(action=file_actions.Remove(path="/r")),
                ]
            ),
            "copy /a /b, mkfile /f, mkdir /d, symlink /l -> /t, rm /r",
        ),
    ],
)
def test_names(body: Body, name: str) -> None:
    assert name_of(Operation(body, [Edge("x"), Edge("y")]), INPUTS) == name


@pytest.mark.parametrize("body", [ours.Merge(), ours.Diff(0, 1)])
def test_names_that_are_made_of_names_do_not_grow(body: Body) -> None:
    name = "x"
    for _ in range(100):
        name = name_of(Operation(body, [Edge("x"), Edge("x")]), [name, name])
        assert len(name) < 3 * LONGEST


def test_a_name_tells_how_many_others_there_are() -> None:
    operation = Operation(ours.Merge(), [Edge("x")] * 1000)
    assert name_of(operation, ["y" * 500] * 1000).endswith("y, 998 more)")
