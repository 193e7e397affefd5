"""Operations as Go writes them: what is empty is left out, and the order of fields is that of BuildKit's structures."""

import pytest

from husk.builder.graph import llb_write, ops
from husk.builder.graph.llb_json import document, filled
from husk.builder.graph.operations import Exec, ProcessSpec, SecretVariable
from husk.builder.store.file_actions import Copy, FileAction, MakeDirectory, MakeFile, Owner, Remove, Symlink


def test_fields_that_are_empty_are_left_out_and_structures_are_not():
    assert filled({"a": 0, "b": "", "c": [], "d": None, "e": 1}) == {"e": 1}
    mount = ops.Mount(dest="/c", cache_opt=ops.CacheOpt(), tmpfs_opt=ops.TmpfsOpt(5), ssh_opt=ops.SSHOpt("default"))
    assert document(mount) == {"dest": "/c", "TmpfsOpt": {"size": 5}, "cacheOpt": {}, "SSHOpt": {"ID": "default"}}


def test_places_of_an_action_are_told_though_they_are_zero():
    assert document(ops.FileAction(output=-1)) == {"input": 0, "secondaryInput": 0, "output": -1}


def test_the_one_of_several_that_an_operation_is_has_a_name_around_it():
    assert document(ops.Op(merge=ops.MergeOp([ops.InputIndex(), ops.InputIndex(1)]))) == {
        "Op": {"merge": {"inputs": [{}, {"input": 1}]}}
    }
    built = ops.Op(build=ops.BuildOp(-1, {"a": ops.InputIndex(2)}, None, {"key": "value"}))
    assert document(built)["Op"] == {"build": {"builder": -1, "inputs": {"a": {"input": 2}}, "attrs": {"key": "value"}}}


def test_a_platform():
    written = document(ops.Platform("arm64", "linux", "v8", "1", ["a"]))
    assert written == {"Architecture": "arm64", "OS": "linux", "Variant": "v8", "OSVersion": "1", "OSFeatures": ["a"]}


@pytest.mark.parametrize(
    ("action", "name", "told"),
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
def test_actions_in_their_order(action, name, told):
    found = document(llb_write.file_action(FileAction(action=action)))["Action"]
    assert found == {name: told} and list(found[name]) == list(told)


def test_a_process():
    body = Exec(
        process=ProcessSpec(args=["sh"], extra_hosts=[("h", "1.2.3.4")]),
        mounts=[],
        network="none",
        insecure=True,
        secret_env=[SecretVariable("id", "NAME")],
    )
    written = document(llb_write.execution(body))
    assert list(written) == ["meta", "network", "security", "secretenv"]
    assert (written["network"], written["security"]) == (2, 1)
    assert written["meta"] == {"args": ["sh"], "cwd": "/", "extraHosts": [{"Host": "h", "IP": "1.2.3.4"}]}
    assert written["secretenv"] == [{"ID": "id", "name": "NAME"}]
