import pytest

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.run_mounts import MountFlag, parse, resolve
from husk.builder.dockerfile.words import expand

VARIABLES = {"DIR": "/var", "ID": "mine"}


def mount(text):
    return resolve(parse(text), lambda word: expand(word, VARIABLES).text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("target=/x", MountFlag(target="/x")),
        ("type=bind,src=a,dst=/x,rw", MountFlag(source="a", target="/x", read_only=False)),
        ("type=BIND,from=b,destination=$DIR/x,readwrite=false", MountFlag(origin="b", target="/var/x")),
        ("type=cache,id=$ID,target=/c", MountFlag(type="cache", id="mine", target="/c", read_only=False)),
        ("type=cache,target=/c,ro,sharing=locked", MountFlag(type="cache", target="/c", sharing="locked")),
        (
            "type=cache,target=/c,mode=0755,uid=1,gid=2",
            MountFlag(type="cache", target="/c", read_only=False, mode=0o755, uid=1, gid=2),
        ),
        ("type=tmpfs,target=/t,size=64m", MountFlag(type="tmpfs", target="/t", read_only=False, size=64 << 20)),
        ("type=tmpfs,target=/t,size=1.5GiB", MountFlag(type="tmpfs", target="/t", read_only=False, size=3 << 29)),
        ("type=secret,id=s,required", MountFlag(type="secret", id="s", required=True)),
        ("type=secret,id=s,env=TOKEN", MountFlag(type="secret", id="s", env="TOKEN")),
        ("type=ssh,required=true", MountFlag(type="ssh", required=True)),
        ('type=bind,"src=a,b",target=/x', MountFlag(source="a,b", target="/x")),
    ],
)
def test_a_mount(text, expected):
    assert mount(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("type=cahce,target=/x", 'unsupported mount type "cahce" (did you mean cache?)'),
        ("taget=/x", "unexpected key 'taget' in 'taget=/x' (did you mean target?)"),
        ("target", "must be a key=value pair"),
        ("type=bind,required", "unexpected key 'required' for mount type 'bind'"),
        ("type=bind,size=1", "unexpected key 'size' for mount type 'bind'"),
        ("type=tmpfs,size=lots", "invalid value for size: lots"),
        ("type=cache,sharing=x", "unsupported sharing value"),
        ("type=bind,sharing=shared", "invalid cache sharing set for bind mount"),
        ("type=bind,mode=755", 'mode not allowed for "bind" type mounts'),
        ("type=tmpfs,uid=1", 'uid not allowed for "tmpfs" type mounts'),
        ("type=cache,mode=9", "invalid value 9 for mode"),
        ("type=cache,uid=-1", "invalid value -1 for uid"),
        ("type=cache,gid=99999999999", "invalid value 99999999999 for gid"),
        ("type=bind,ro=maybe", "invalid value for readonly: maybe"),
        ("type=secret", "one of source, target required"),
        ("type=secret,id=a,source=b", "both source and id can't be set"),
        ("type=secret,id=a,from=b", "secret mount should not have a from"),
        ("type=secret,id=a,sharing=shared", "secret mount should not define sharing"),
        ('"x', "failed to parse csv mounts"),
    ],
)
def test_what_does_not_go_together(text, says):
    with pytest.raises(DockerfileError) as caught:
        mount(text)
    assert says in str(caught.value)


def test_the_stage_is_known_before_variables_are():
    assert parse("type=bind,from=base,target=$DIR").source == "base"
    assert parse("FROM=base").source == "base"
