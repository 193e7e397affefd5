"""COPY and ADD: from where to where, whose the files are, and what is refused."""

from typing import Any

import pytest

from husk.builder.dockerfile.git_refs import GitRef, source_of
from husk.builder.graph.operations import Files, Merge, Source
from husk.builder.store.file_actions import NONE, MakeFile, Owner
from tests.unit.builder.dockerfile.building import bodies, build, first_actions, histories, names, refusal


def test_copy_with_everything():
    result = build("FROM busybox\nCOPY --chown=web:7 --chmod=u+x --exclude=*.o --parents a/./b/c /d/")
    copy = bodies(result)[-1].actions[0].action

    assert (copy.user, copy.group) == (Owner(name="web", input=0), Owner(number=7))
    assert (copy.mode, copy.symbolic_mode, copy.exclude) == (None, "u+x", ["*.o"])
    assert (copy.source, copy.include, copy.required, copy.destination) == ("/a", ["b/c"], ["/a/b/c"], "/d/")
    assert histories(result) == ["COPY --parents --chown=web:7 --chmod=u+x a/./b/c /d/ # buildkit"]


def test_a_linked_copy_is_a_layer_of_its_own():
    result = build("FROM busybox\nCOPY --link a /")
    files, merge = bodies(result)[-2:]
    assert files.actions[0].input == NONE
    assert isinstance(merge, Merge)
    assert names(result)[-2:] == ["[2/2] COPY --link a /", "[2/2] LINK COPY --link a /"]


def test_texts_in_the_file():
    result = build("FROM busybox\nENV a=1\nCOPY <<one <<'two' /d/\n\"$a\"\none\n$a\ntwo")
    made = first_actions(result)[:2]
    assert made == [
        MakeFile(path="/one", mode=0o644, data=b'"1"\n'),
        MakeFile(path="/two", mode=0o644, data=b"$a\n"),
    ]
    assert histories(result)[-1] == "COPY <<one <<two /d/ # buildkit"


def test_add_of_addresses_and_repositories():
    result = build(
        "FROM busybox\nADD --checksum=sha256:1 --unpack https://x/y.tgz /a\nADD --keep-git-dir https://x/r.git#v1:d /b"
    )
    sources = [body for body in bodies(result) if isinstance(body, Source)][1:]
    assert sources == [
        Source("https://x/y.tgz", {"http.filename": "y.tgz", "http.checksum": "sha256:1"}),
        source_of(GitRef(remote="https://x/r.git", ref="v1", directory="d", keep_git_dir=True)),
    ]
    copies = first_actions(result)
    assert [(copy.source, copy.unpack) for copy in copies] == [("/y.tgz", True), ("/", False)]
    assert not any(body == Source("local://context", {"paths": ""}) for body in bodies(result))


def test_archives_are_unpacked_by_add_alone():
    unpacked = [
        bodies(build(f"FROM busybox\n{line}"))[-1].actions[0].action.unpack
        for line in ("ADD a /", "COPY a /", "ADD --unpack=false a /")
    ]
    assert unpacked == [True, False, False]


def copies(line: str) -> list[Any]:
    """Return the actions of the COPY or ADD at the end of a Dockerfile."""
    return [action.action for action in bodies(build(f"FROM busybox\nWORKDIR /w\n{line}"))[-1].actions]


@pytest.mark.parametrize(
    ("written", "destination"),
    [(".", "/w/"), ("./", "/w/"), ("x", "/w/x"), ("x/", "/w/x/"), ("/x/../y", "/y"), ("/", "/"), ("../../..", "/")],
)
def test_a_destination_is_below_the_directory_and_its_last_slash_counts(written: str, destination: str) -> None:
    assert copies(f"COPY a {written}")[0].destination == destination


@pytest.mark.parametrize(
    ("path", "source", "include", "required"),
    [
        ("a/b", "/", ["a/b"], ["/a/b"]),
        ("a/./b/*", "/a", ["b/*"], []),
        ("a*/./b", "/a*", ["b"], []),
        (r"a/./\\*b", "/a", [r"\*b"], [r"/a/\*b"]),
        ("../../etc/passwd", "/", ["etc/passwd"], ["/etc/passwd"]),
    ],
)
def test_parents_are_kept_from_the_dot_on(path: str, source: str, include: list[str], required: list[str]) -> None:
    [copy] = copies(f"COPY --parents {path} /d/")
    assert (copy.source, copy.include, copy.required) == (source, include, required)


def test_nothing_leads_out_of_the_context() -> None:
    assert [copy.source for copy in copies("COPY ../../etc/passwd ./../x /d/")] == ["/etc/passwd", "/x"]


@pytest.mark.parametrize(
    ("chown", "user", "group"),
    [
        ("5", Owner(number=5), None),
        ("5:6", Owner(number=5), Owner(number=6)),
        (":6", None, Owner(number=6)),
        ("web:", Owner(name="web", input=0), None),
        ("0x5", Owner(name="0x5", input=0), None),
        ("4294967295:07", Owner(number=4294967295), Owner(number=7)),
        ("4294967296", Owner(name="4294967296", input=0), None),
        ("9" * 5000, Owner(name="9" * 5000, input=0), None),
        ("٣", Owner(name="٣", input=0), None),
    ],
)
def test_owners_by_number_or_by_name(chown: str, user: Owner | None, group: Owner | None) -> None:
    [copy] = copies(f"COPY --chown={chown} a /d")
    assert (copy.user, copy.group) == (user, group)


def test_a_linked_copy_looks_names_up_nowhere_and_with_a_mode_is_none() -> None:
    linked = build("FROM busybox\nCOPY --link --chown=web a /")
    assert bodies(linked)[-2].actions[0].action.user == Owner(name="web", input=NONE)
    assert isinstance(bodies(build("FROM scratch\nCOPY --link a /"))[-1], Files), "there is nothing to put it on"
    with_mode = bodies(build("FROM busybox\nCOPY --link --chmod=755 a /"))[-1]
    assert isinstance(with_mode, Files) and with_mode.actions[0].input == 0


def test_the_same_source_is_one_input() -> None:
    result = build("FROM busybox\nCOPY --from=tools /x /y /z/")
    actions = bodies(result)[-1].actions
    assert [action.second_input for action in actions] == [1, 1]


def test_variables_are_seen_in_all_its_parts() -> None:
    result = build("FROM busybox\nENV d=dir u=7 m=600\nCOPY --chown=$u --chmod=$m $d/a /$d")
    copy = bodies(result)[-1].actions[0].action
    assert (copy.source, copy.destination, copy.user, copy.mode) == ("/dir/a", "/dir", Owner(number=7), 0o600)
    assert histories(result)[-1] == "COPY --chown=7 --chmod=600 dir/a /dir # buildkit"


def test_an_address_without_a_name_gets_one() -> None:
    result = build("FROM busybox\nADD https://x/ /a")
    assert Source("https://x/", {"http.filename": "__unnamed__"}) in bodies(result)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("ADD --keep-git-dir=false https://x/r.git?keep-git-dir=true /", "inconsistent keep-git-dir configuration"),
        (f"ADD --checksum={'a' * 40} https://x/r.git?checksum={'b' * 40} /", "checksum mismatch"),
    ],
)
def test_what_is_said_twice_agrees(line: str, says: str) -> None:
    assert says in refusal(f"FROM busybox\n{line}")


def test_what_is_no_address_is_told_so() -> None:
    assert "http://[::1/x is no address: invalid ipv6 url" in refusal("FROM busybox\nADD http://[::1/x /")
