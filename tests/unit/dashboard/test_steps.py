from husk.dashboard.steps import Freed, command_of, freed, steps


def test_commands_are_as_the_dockerfile_has_them() -> None:
    assert command_of('/bin/sh -c #(nop)  CMD ["sh"]') == 'CMD ["sh"]'
    assert command_of("/bin/sh -c make all # buildkit") == "RUN make all"
    assert command_of("COPY . /app # buildkit") == "COPY . /app"
    assert command_of("") == ""


def test_steps_begin_with_the_first_and_know_their_layers() -> None:
    history = [{"CreatedBy": "CMD x", "Size": 0}, {"CreatedBy": "COPY a", "Size": 5}, {"CreatedBy": "FROM", "Size": 9}]
    found = steps(history, ["l1", "l2"])
    assert [(step.command, step.size, step.digest) for step in found] == [
        ("FROM", 9, "l1"),
        ("COPY a", 5, "l2"),
        ("CMD x", 0, ""),
    ]


def test_layers_that_cannot_be_told_apart_are_not_told() -> None:
    assert [step.digest for step in steps([{"Size": 0}, {"Size": 5}, {"Size": 1}], ["only"])] == ["", "", ""]
    assert [step.digest for step in steps([{"Size": 0}], ["empty"])] == ["empty"]


def test_what_a_prune_frees_is_what_nobody_shares() -> None:
    images: list[dict[str, object]] = [
        {"RepoTags": ["<none>:<none>"], "Containers": 0, "Size": 10, "SharedSize": 4},
        {"RepoTags": None, "Containers": 2, "Size": 10, "SharedSize": 0},
        {"RepoTags": ["app:1"], "Containers": 0, "Size": 7, "SharedSize": -1},
    ]
    assert freed(images, all=False) == Freed(1, 6)
    assert freed(images, all=True) == Freed(2, 13)
