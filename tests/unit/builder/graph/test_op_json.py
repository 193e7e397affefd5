"""Operations as Go writes them: what is empty is left out, and the order of fields is that of BuildKit's structures."""

import pytest

from husk.builder.graph import op_json
from husk.builder.graph.operations import (
    Copy,
    Exec,
    MakeDirectory,
    MakeFile,
    Owner,
    Process,
    Remove,
    SecretVariable,
    Symlink,
)


def test_what_is_empty_is_left_out_unless_it_is_kept():
    assert op_json.filled({"a": 0, "b": "", "c": [], "d": None, "e": 1}) == {"e": 1}
    assert op_json.filled({"a": op_json.NeverOmitted({}), "b": op_json.NeverOmitted({"c": 1})}) == {
        "a": {},
        "b": {"c": 1},
    }


@pytest.mark.parametrize(
    ("action", "name", "document"),
    [
        (Remove(path="/a", may_be_missing=True), "rm", {"path": "/a", "allowNotFound": True}),
        (Symlink(target="b", path="/a"), "symlink", {"oldpath": "b", "newpath": "/a", "timestamp": -1}),
        (
            MakeFile(path="/a", mode=0o644, data=b"x", user=Owner(number=0), timestamp=5),
            "mkfile",
            {"path": "/a", "mode": 0o644, "data": "eA==", "owner": {"user": {"User": {}}}, "timestamp": 5},
        ),
        (
            MakeDirectory(path="/a", mode=0o755, make_parents=True, group=Owner(name="staff", input=1)),
            "mkdir",
            {
                "path": "/a",
                "mode": 0o755,
                "makeParents": True,
                "owner": {"group": {"User": {"byName": {"name": "staff", "input": 1}}}},
                "timestamp": -1,
            },
        ),
        (
            Copy(source="/a", destination="/b", user=Owner(number=7), wildcards=True, exclude=["*.o"]),
            "copy",
            {
                "src": "/a",
                "dest": "/b",
                "owner": {"user": {"User": {"byId": 7}}},
                "mode": -1,
                "allowWildcard": True,
                "timestamp": -1,
                "exclude_patterns": ["*.o"],
            },
        ),
    ],
)
def test_actions_in_their_order(action, name, document):
    found = op_json.action(action)
    assert found == (name, document) and list(found[1]) == list(document)


def test_a_process():
    body = Exec(
        process=Process(args=["sh"]),
        mounts=[],
        network="none",
        insecure=True,
        secret_env=[SecretVariable("id", "NAME")],
    )
    meta = op_json.process(body.process, [{"Host": "h"}])
    assert meta["args"] == ["sh"] and meta["extraHosts"] == [{"Host": "h"}] and "user" not in meta
    document = op_json.execution(body, meta, [])
    assert list(document) == ["meta", "network", "security", "secretenv"]
    assert (document["network"], document["security"]) == (2, 1)
